//! Whether the outcome of a run becomes a job, or is dropped, and why.

/// Why an outcome is not delivered. Nobody gets an error; the run keeps the reason and a metric counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The automation budget of the caller does not reach back to its project.
    NoHopsLeft,
    /// The chain of jobs has become too long.
    ChainTooLong,
    /// The active version of the project no longer declares the job.
    JobNotDeclared,
    /// The project already has as many job runs waiting as it may.
    TooManyJobsWaiting,
}

impl DropReason {
    /// All reasons, for metrics that exist from the start.
    pub const ALL: [Self; 4] =
        [Self::NoHopsLeft, Self::ChainTooLong, Self::JobNotDeclared, Self::TooManyJobsWaiting];

    /// The word stored on the run and used as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoHopsLeft => "NO_HOPS_LEFT",
            Self::ChainTooLong => "CHAIN_TOO_LONG",
            Self::JobNotDeclared => "JOB_NOT_DECLARED",
            Self::TooManyJobsWaiting => "TOO_MANY_JOBS_WAITING",
        }
    }
}

/// What is known when the outcome of a run is about to be handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Automation steps that the run itself carries: the caller's, less the one that the start used.
    pub run_hops: u32,
    /// Links in the job chain of the execution that called start.
    pub chain: u32,
    /// Links that a job chain of the project may have.
    pub chain_max: u32,
    /// Whether the active version of the project declares the job.
    pub job_declared: bool,
}

/// The automation steps that the outcome job starts with, or the reason why there is no job.
pub fn decide(facts: Facts) -> Result<u32, DropReason> {
    let Some(job_hops) = facts.run_hops.checked_sub(1) else {
        return Err(DropReason::NoHopsLeft);
    };
    if facts.chain >= facts.chain_max {
        return Err(DropReason::ChainTooLong);
    }
    if !facts.job_declared {
        return Err(DropReason::JobNotDeclared);
    }
    Ok(job_hops)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Facts = Facts { run_hops: 9, chain: 2, chain_max: 3, job_declared: true };

    /// CG-113
    #[test]
    fn the_job_gets_one_step_less_than_the_run() {
        assert_eq!(decide(GOOD), Ok(8));
        assert_eq!(decide(Facts { run_hops: 1, ..GOOD }), Ok(0));
    }

    /// CG-115, CG-117
    #[test]
    fn each_reason_to_drop_is_told_apart() {
        assert_eq!(decide(Facts { run_hops: 0, ..GOOD }), Err(DropReason::NoHopsLeft));
        assert_eq!(decide(Facts { chain: 3, ..GOOD }), Err(DropReason::ChainTooLong));
        assert_eq!(decide(Facts { job_declared: false, ..GOOD }), Err(DropReason::JobNotDeclared));
    }
}
