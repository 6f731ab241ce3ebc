//! Evaluates on threads of its own, each for a limited time, so that an evaluation that takes too long delays nobody else.
//!
//! A thread cannot be stopped from outside. One that does not come back in time is given up: whoever waits is told, another
//! thread takes its place, and it ends when it does come back. When too many are away, new work is refused at once. Nothing
//! here knows what is evaluated.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus::{IntGauge, IntGaugeVec, Opts, Registry};
use runfleet_runtime::Env;
use tokio::sync::oneshot;

/// Most threads that were given up and have not come back.
const STRAY_MAX: usize = 8;
/// Most work that waits for a thread.
const QUEUE_MAX: usize = 10_000;
/// Stack of a thread, in bytes: twice what the deepest allowed expression needs.
const STACK_BYTES: usize = 4 * 1024 * 1024;

/// Size and time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadSettings {
    /// Threads that evaluate at the same time, at least 1.
    pub(crate) threads: usize,
    /// Longest time of one evaluation, from when a thread takes it.
    pub(crate) limit: Duration,
}

impl ThreadSettings {
    /// Reads the settings.
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        let threads = env.or(
            "RUNFLEET_EVALUATION_THREADS",
            0_usize,
            "Threads that evaluate expressions; 0: as many as there are cores.",
        );
        let limit = env.millis_or(
            "RUNFLEET_EVALUATION_TIME_LIMIT_MS",
            Duration::from_secs(2),
            "Longest time of one slice of a Process on its thread.",
        );
        env.check(
            limit.is_none_or(|limit| !limit.is_zero()),
            "RUNFLEET_EVALUATION_TIME_LIMIT_MS must be at least 1",
        );
        let threads = match threads? {
            0 => std::thread::available_parallelism().map_or(1, Into::into),
            threads => threads,
        };
        Some(Self { threads, limit: limit? })
    }
}

/// Why work gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfinished {
    /// It did not end in time. It would not the next time either.
    #[error("the evaluation took too long")]
    TimedOut,
    /// It panicked.
    #[error("the evaluation panicked")]
    Panicked,
    /// It was not begun, because too many threads have not come back; later it may be.
    #[error("no thread is free for an evaluation")]
    NoThread,
}

/// The threads. They end when this is dropped and their work is done.
pub(crate) struct Threads {
    pool: Arc<Pool>,
}

struct Pool {
    state: Mutex<State>,
    /// Told when there is work.
    work: Condvar,
    /// Told when the pool is closed.
    closed: Condvar,
    settings: ThreadSettings,
    busy: IntGauge,
    stray: IntGauge,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// What is being evaluated in time.
    running: HashMap<u64, Running>,
    next: u64,
    /// Threads that are free or evaluate in time.
    threads: usize,
    /// Threads that were given up.
    stray: usize,
    closed: bool,
}

struct Job {
    /// Evaluates and gives the result to whoever waits.
    evaluate: Box<dyn FnOnce() + Send>,
    /// Tells whoever waits that it took too long.
    expire: Box<dyn FnOnce() + Send>,
}

struct Running {
    since: Instant,
    expire: Box<dyn FnOnce() + Send>,
}

impl Threads {
    /// Starts the threads and registers their metric.
    pub(crate) fn start(settings: ThreadSettings, registry: &Registry) -> anyhow::Result<Self> {
        let gauges = IntGaugeVec::new(
            Opts::new(
                "runfleet_process_evaluation_threads",
                "Threads that evaluate (busy), and that did not come back in time (stray).",
            ),
            &["state"],
        )?;
        registry.register(Box::new(gauges.clone()))?;
        let pool = Arc::new(Pool {
            state: Mutex::default(),
            work: Condvar::new(),
            closed: Condvar::new(),
            settings,
            busy: gauges.with_label_values(&["busy"]),
            stray: gauges.with_label_values(&["stray"]),
        });
        let threads = Self { pool: Arc::clone(&pool) };
        for _ in 0..settings.threads.max(1) {
            spawn("evaluation", Arc::clone(&pool), Pool::serve)?;
            pool.lock().threads += 1;
        }
        spawn("evaluation-watch", pool, Pool::watch)?;
        Ok(threads)
    }

    /// Evaluates on one of the threads. Waiting for a thread does not count against the time limit; since everything that
    /// is being evaluated ends or is given up in time, it is bounded as well. When the caller goes away, the work is still
    /// done and watched.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        let (sender, result) = oneshot::channel();
        // Whoever is first takes it: the thread with the result, or the watch when time is up.
        let sender = Arc::new(Mutex::new(Some(sender)));
        let late = Arc::clone(&sender);
        let answer = |sender: &Mutex<Option<oneshot::Sender<_>>>, result| {
            let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).take();
            // The caller may have gone away.
            sender.map(|sender| sender.send(result).is_ok())
        };
        let evaluate = move || {
            let result = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Unfinished::Panicked);
            answer(&sender, result);
        };
        let expire = move || {
            answer(&late, Err(Unfinished::TimedOut));
        };
        self.pool.submit(Job { evaluate: Box::new(evaluate), expire: Box::new(expire) })?;
        result.await.unwrap_or(Err(Unfinished::NoThread))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.closed = true;
        // Whoever waits for one of these is told that it was not begun.
        state.queue.clear();
        drop(state);
        self.pool.work.notify_all();
        self.pool.closed.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(&self, job: Job) -> Result<(), Unfinished> {
        let mut state = self.lock();
        let full = state.stray >= STRAY_MAX || state.queue.len() >= QUEUE_MAX;
        if state.closed || full || state.threads == 0 {
            return Err(Unfinished::NoThread);
        }
        state.queue.push_back(job);
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// The life of a thread.
    fn serve(self: Arc<Self>) {
        while let Some((id, evaluate)) = self.next() {
            evaluate();
            if !self.ended(id) {
                return;
            }
        }
    }

    /// Waits for work and takes it; none when the pool is closed.
    fn next(&self) -> Option<(u64, Box<dyn FnOnce() + Send>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(Job { evaluate, expire }) = state.queue.pop_front() {
                let id = state.next;
                state.next += 1;
                state.running.insert(id, Running { since: Instant::now(), expire });
                self.busy.inc();
                return Some((id, evaluate));
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that the work has ended; false when the thread has been replaced and is not needed any more.
    fn ended(&self, id: u64) -> bool {
        let mut state = self.lock();
        if state.running.remove(&id).is_some() {
            self.busy.dec();
            return true;
        }
        state.stray -= 1;
        self.stray.dec();
        let needed = state.threads < self.settings.threads.max(1);
        state.threads += usize::from(needed);
        needed
    }

    /// Gives up what takes too long, until the pool is closed.
    fn watch(self: Arc<Self>) {
        let tick =
            (self.settings.limit / 8).clamp(Duration::from_millis(1), Duration::from_millis(100));
        let mut state = self.lock();
        while !state.closed {
            self.give_up(&mut state);
            state = self.closed.wait_timeout(state, tick).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn give_up(self: &Arc<Self>, state: &mut State) {
        let limit = self.settings.limit;
        for (_, late) in state.running.extract_if(|_, running| running.since.elapsed() > limit) {
            state.threads -= 1;
            state.stray += 1;
            self.busy.dec();
            self.stray.inc();
            if state.stray > STRAY_MAX {
                tracing::error!(stray = state.stray, "a thread that hangs is not replaced");
            } else if let Err(error) = spawn("evaluation", Arc::clone(self), Pool::serve) {
                tracing::error!(%error, "a thread that hangs could not be replaced");
            } else {
                tracing::warn!(stray = state.stray, "a thread that hangs is replaced");
                state.threads += 1;
            }
            // Last, so that whoever hears of it finds everything as it is.
            (late.expire)();
        }
    }
}

fn spawn(
    name: &str,
    pool: Arc<Pool>,
    life: impl FnOnce(Arc<Pool>) + Send + 'static,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || life(pool)).map(drop)
}

#[cfg(test)]
mod tests;
