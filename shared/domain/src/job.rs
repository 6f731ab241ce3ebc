//! Attempts of background jobs: which failures are tried again, and when.
//!
//! Pure: the spread of the waits comes from the id of the job run, so the same failure always waits as long.

use std::time::Duration;

use crate::id::JobId;

/// Waits after the first, second, … attempt; the last one goes for all later ones.
const WAITS: [Duration; 6] = [
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_secs(80),
    Duration::from_mins(5),
    Duration::from_mins(20),
    Duration::from_mins(30),
];

/// How far a wait is spread to either side, in thousandths.
const SPREAD: u64 = 200;

/// Longest code of an error of a job, in bytes.
pub const CODE_BYTES_MAX: usize = 64;

/// How long after attempt number `attempt` (the first is 1) the next one begins: 5 s, 20 s, 80 s, 5 min, 20 min, then 30 min, each
/// 20 % shorter or longer at most.
pub fn wait_after(job: JobId, attempt: u32) -> Duration {
    let step = usize::try_from(attempt.max(1) - 1).unwrap_or(usize::MAX);
    let wait = WAITS[step.min(WAITS.len() - 1)];
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    // From 800 to 1,200 thousandths, both included.
    let thousandths = 1_000 - SPREAD + spread(job, attempt) % (2 * SPREAD + 1);
    Duration::from_millis(millis.saturating_mul(thousandths) / 1_000)
}

/// A number that is evenly spread over job runs and attempts.
fn spread(job: JobId, attempt: u32) -> u64 {
    let text = format!("{job}:{attempt}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The upper half is mixed better than the lower one.
    hash >> 32
}

/// Why an attempt of a job failed, in a word. What the code of a project says of it is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobErrorCode(Box<str>);

impl JobErrorCode {
    /// The handler wants to be tried again.
    pub const RETRYABLE: &'static str = "RETRYABLE";
    /// The attempt took longer than the job allows.
    pub const TIMEOUT: &'static str = "JOB_TIMEOUT";
    /// The handler failed.
    pub const SCRIPT_ERROR: &'static str = "SCRIPT_ERROR";
    /// The active version of the project does not declare the job.
    pub const NOT_DECLARED: &'static str = "JOB_NOT_DECLARED";
    /// No host could carry it out: its message was given up.
    pub const GIVEN_UP: &'static str = "JOB_GIVEN_UP";
    /// The person it runs as is not active any more.
    pub const ACTOR_UNAVAILABLE: &'static str = "JOB_ACTOR_UNAVAILABLE";

    /// The code that a host reports, if it is one: capital letters, digits and `_`, beginning with a letter.
    pub fn new(text: &str) -> Option<Self> {
        let good = text.len() <= CODE_BYTES_MAX
            && text.as_bytes().first().is_some_and(u8::is_ascii_uppercase)
            && text
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        good.then(|| Self(text.into()))
    }

    /// The code that a host reports; what is none is a failure of the handler.
    pub fn reported(text: Option<&str>) -> Self {
        text.and_then(Self::new).unwrap_or_else(|| Self(Self::SCRIPT_ERROR.into()))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The fixed English sentence for the code of a failed attempt.
pub fn sentence(code: &str) -> &'static str {
    match code {
        JobErrorCode::RETRYABLE => "The handler asked to be tried again.",
        JobErrorCode::TIMEOUT => "The attempt took longer than the job allows.",
        JobErrorCode::NOT_DECLARED => "The active version of the project does not declare the job.",
        JobErrorCode::GIVEN_UP => "No host of the project could carry out the job.",
        JobErrorCode::ACTOR_UNAVAILABLE => "The person that the job runs as is not active.",
        _ => "The handler failed.",
    }
}

#[cfg(test)]
mod tests {
    use ulid::Ulid;

    use super::*;
    use crate::id::Shard;

    fn job(number: u128) -> JobId {
        JobId::new(Shard::of_workspace("acme"), Ulid::from(number))
    }

    #[test]
    fn waits_grow_from_five_seconds_to_half_an_hour() {
        let seconds = [5_u64, 20, 80, 300, 1_200, 1_800, 1_800, 1_800, 1_800];
        for (attempt, seconds) in (1_u32..).zip(seconds) {
            let waits: Vec<_> = (0..1_000).map(|number| wait_after(job(number), attempt)).collect();
            let (low, high) = (seconds * 800, seconds * 1_200);
            let millis = |wait: &Duration| u64::try_from(wait.as_millis()).unwrap();
            assert!(waits.iter().map(millis).all(|wait| (low..=high).contains(&wait)), "{attempt}");
            // The whole width is used, and evenly: the mean is the nominal wait, give or take 2 %.
            let mean = waits.iter().map(millis).sum::<u64>() / 1_000;
            assert!(mean.abs_diff(seconds * 1_000) < seconds * 20, "{attempt}: {mean}");
            assert!(waits.iter().map(millis).min().unwrap() < seconds * 820);
            assert!(waits.iter().map(millis).max().unwrap() > seconds * 1_180);
        }
    }

    #[test]
    fn ten_attempts_of_a_job_begin_at_times_that_the_rule_says() {
        // Virtual time: nothing is waited for.
        let mut now = Duration::ZERO;
        for attempt in 1..10 {
            now += wait_after(job(7), attempt);
        }
        let nominal = 5 + 20 + 80 + 300 + 1_200 + 4 * 1_800;
        assert!(now >= Duration::from_millis(nominal * 800));
        assert!(now <= Duration::from_millis(nominal * 1_200));
    }

    #[test]
    fn one_failure_always_waits_as_long_and_jobs_that_fail_together_come_back_apart() {
        assert_eq!(wait_after(job(7), 3), wait_after(job(7), 3));
        let mut waits: Vec<_> = (0..100).map(|number| wait_after(job(number), 6)).collect();
        waits.sort_unstable();
        waits.dedup();
        assert!(waits.len() > 80, "{}", waits.len());
    }

    #[test]
    fn a_code_is_a_word_in_capital_letters_and_anything_else_is_a_failure_of_the_handler() {
        for good in ["RETRYABLE", "HTTP_503", "A"] {
            assert_eq!(JobErrorCode::reported(Some(good)).as_str(), good);
        }
        for bad in ["", "_A", "7A", "retryable", "A B", "Ä", &"A".repeat(65)] {
            assert_eq!(JobErrorCode::reported(Some(bad)).as_str(), "SCRIPT_ERROR", "{bad}");
        }
        assert_eq!(JobErrorCode::reported(None).as_str(), "SCRIPT_ERROR");
        assert!(sentence("ANYTHING").ends_with('.'));
    }
}
