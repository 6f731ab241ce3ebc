//! The settings that every worker has.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::env::{Env, Setting};
use crate::logs;

/// How much longer than the grace the process waits for its worker: the time to give work back and to close connections.
/// Whoever stops the process from outside should wait longer than both together.
pub const DRAIN_MARGIN: Duration = Duration::from_secs(3);

/// More threads than this are a mistake.
const THREADS_MAX: usize = 512;

/// Settings of the process around a worker.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) admin_addr: SocketAddr,
    pub(crate) admin_file: Option<PathBuf>,
    pub(crate) grace: Duration,
    pub(crate) threads: usize,
}

impl Frame {
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        let admin_addr = env.or(
            "RUNFLEET_ADMIN_ADDR",
            SocketAddr::from(([127, 0, 0, 1], 9464)),
            "Address of /live, /ready and /metrics; port 0 takes a free one.",
        );
        let admin_file = env.optional(
            "RUNFLEET_ADMIN_FILE",
            "File that gets the address of the admin server once it listens.",
        );
        let grace = env.millis_or(
            "RUNFLEET_SHUTDOWN_GRACE_MS",
            Duration::from_secs(25),
            "How long work in hand may take after the request to stop.",
        );
        // Not written as a default number: it differs by machine, and the reference table must not.
        let threads = env.optional(
            "RUNFLEET_THREADS",
            "Threads that run tasks, 1 to 512; absent: one for each core.",
        );
        env.check(
            threads.flatten().is_none_or(|threads| (1..=THREADS_MAX).contains(&threads)),
            "RUNFLEET_THREADS must be 1 to 512",
        );
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Some(Self {
            admin_addr: admin_addr?,
            admin_file: admin_file?,
            grace: grace?,
            threads: threads?.unwrap_or(cores.min(THREADS_MAX)),
        })
    }
}

/// Every setting of a worker, those of its frame first: the reference table. Reads nothing from the environment.
pub fn reference_of<C>(from_env: fn(&mut Env) -> Option<C>) -> Vec<Setting> {
    let mut env = Env::from_map::<String, String>([]);
    logs::Settings::from_env(&mut env);
    Frame::from_env(&mut env);
    from_env(&mut env);
    env.reference().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_of_a_worker_begins_with_its_frame() {
        let settings =
            reference_of(|env| env.or("RUNFLEET_DELIVERY_PREFETCH", 16_u16, "Messages at once."));
        let names: Vec<_> = settings.iter().map(|setting| setting.name).collect();
        assert_eq!(
            names,
            [
                "RUNFLEET_LOG",
                "RUNFLEET_LOG_FORMAT",
                "RUNFLEET_ADMIN_ADDR",
                "RUNFLEET_ADMIN_FILE",
                "RUNFLEET_SHUTDOWN_GRACE_MS",
                "RUNFLEET_THREADS",
                "RUNFLEET_DELIVERY_PREFETCH"
            ]
        );
    }

    #[test]
    fn a_number_of_threads_outside_its_bounds_is_refused() {
        for (threads, good) in [("0", false), ("1", true), ("512", true), ("513", false)] {
            let mut env = Env::from_map([("RUNFLEET_THREADS", threads)]);
            Frame::from_env(&mut env);
            assert_eq!(env.finish().is_ok(), good, "{threads}");
        }
    }
}
