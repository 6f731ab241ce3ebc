//! Names of exchanges and queues. One place, so that a name is never put together twice.
//!
//! The routing key of a message to a work queue is the name of that queue, everywhere: a message that comes back from a
//! retry queue, or that the broker dead-letters by itself, then finds its way without any per-queue setting.

use runfleet_domain::Name;
use runfleet_domain::retry::Rung;

/// Exchange that parked messages go through, by the name of the queue they came from.
pub const DEAD_EXCHANGE: &str = "x.dead";

/// Exchange that brings messages back from the retry queues.
pub const RETURN_EXCHANGE: &str = "x.return";

/// Exchange of the job queues of projects.
pub const JOB_EXCHANGE: &str = "x.job";

/// Exchange of the task queues of projects.
pub const TASK_EXCHANGE: &str = "x.task";

/// Exchange that hosts publish their answers to tasks to. Nothing else goes through it, so that a host may publish here
/// without being able to wake runs.
pub const ANSWER_EXCHANGE: &str = "x.answers";

/// Exchange of facts: what has happened, for whoever binds a queue of its own. Routing keys are `<kind>.<workspace>.<name>`; nothing
/// in it is persistent, and nobody has to listen.
pub const FACTS_EXCHANGE: &str = "x.facts";

/// Parking queue shared by the job queues of all projects; the dispatcher reads it.
pub const DEAD_JOBS: &str = "dead.jobs";

/// Parking queue shared by the task queues of all projects. Nobody reads it: the attempt of a parked task runs out of time and
/// the next one is asked for.
pub const DEAD_TASKS: &str = "dead.tasks";

/// Parking queue for what cannot even be read from [`DEAD_JOBS`].
pub const DEAD_UNREADABLE: &str = "dead.unreadable";

const JOBS_PREFIX: &str = "jobs.";

const TASKS_PREFIX: &str = "tasks.";

const CALLS_PREFIX: &str = "calls.";

/// Exchange of a retry queue.
pub fn retry_exchange(rung: Rung) -> &'static str {
    match rung {
        Rung::S5 => "x.retry.5s",
        Rung::S30 => "x.retry.30s",
        Rung::M2 => "x.retry.2m",
        Rung::M10 => "x.retry.10m",
        Rung::H1 => "x.retry.1h",
    }
}

/// A retry queue.
pub fn retry_queue(rung: Rung) -> String {
    format!("retry.{}", rung.as_str())
}

/// The parking queue of a work queue.
pub fn dead_queue(work_queue: &str) -> String {
    format!("dead.{work_queue}")
}

/// The job queue of a project. A dot separates the names, and no name holds one.
pub fn job_queue(workspace: &Name, project: &Name) -> String {
    format!("{JOBS_PREFIX}{workspace}.{project}")
}

/// The task queue of a project.
pub fn task_queue(workspace: &Name, project: &Name) -> String {
    format!("{TASKS_PREFIX}{workspace}.{project}")
}

/// The queue of calls of one version of a project, which its hosts declare and which goes with the last of them. The version comes
/// last: it may hold dots.
pub fn call_queue(workspace: &Name, project: &Name, version: &str) -> String {
    format!("{CALLS_PREFIX}{workspace}.{project}.{version}")
}

/// Whether a queue belongs to a project.
pub(crate) fn is_of_project(queue: &str) -> bool {
    queue.starts_with(JOBS_PREFIX) || queue.starts_with(TASKS_PREFIX)
}

/// The routing key under which a message of `queue` is parked.
pub fn park_key(queue: &str) -> &str {
    if queue.starts_with(JOBS_PREFIX) {
        "jobs"
    } else if queue.starts_with(TASKS_PREFIX) {
        "tasks"
    } else if queue == DEAD_JOBS {
        "unreadable"
    } else {
        queue
    }
}

/// The word for `queue` in metrics: job queues share one, and task queues, because there is no bound on their number.
pub fn queue_label(queue: &str) -> &str {
    if queue.starts_with(JOBS_PREFIX) {
        "jobs"
    } else if queue.starts_with(TASKS_PREFIX) {
        "tasks"
    } else if queue.starts_with(CALLS_PREFIX) {
        "calls"
    } else {
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_has_an_exchange_and_a_queue_of_its_word() {
        for rung in Rung::ALL {
            assert_eq!(retry_exchange(rung), format!("x.{}", retry_queue(rung)));
        }
    }

    #[test]
    fn job_queues_share_a_parking_queue_and_a_metric_label() {
        let queue = job_queue(&"acme".parse().unwrap(), &"shop".parse().unwrap());
        assert_eq!(queue, "jobs.acme.shop");
        assert_eq!(dead_queue(park_key(&queue)), DEAD_JOBS);
        assert_eq!(queue_label(&queue), "jobs");
        assert_eq!(dead_queue(park_key(DEAD_JOBS)), DEAD_UNREADABLE);
        assert_eq!(park_key("delivery.backfill"), "delivery.backfill");
    }

    #[test]
    fn the_queue_of_calls_names_workspace_project_and_version() {
        let queue = call_queue(&"acme".parse().unwrap(), &"shop".parse().unwrap(), "1.4.0+3f");
        assert_eq!(queue, "calls.acme.shop.1.4.0+3f");
        assert_eq!(queue_label(&queue), "calls");
        assert!(!is_of_project(&queue));
    }

    #[test]
    fn task_queues_share_a_parking_queue_and_a_metric_label() {
        let queue = task_queue(&"acme".parse().unwrap(), &"shop".parse().unwrap());
        assert_eq!(queue, "tasks.acme.shop");
        assert_eq!(dead_queue(park_key(&queue)), DEAD_TASKS);
        assert_eq!(queue_label(&queue), "tasks");
        assert!(is_of_project(&queue) && !is_of_project(DEAD_TASKS));
    }
}
