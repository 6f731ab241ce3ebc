//! Threads that end, hang, panic and come back.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use prometheus::Registry;
use runfleet_runtime::Env;

use super::{STRAY_MAX, ThreadSettings, Threads, Unfinished};

fn threads(threads: usize, limit_ms: u64) -> (Threads, Registry) {
    let registry = Registry::new();
    let settings = ThreadSettings { threads, limit: Duration::from_millis(limit_ms) };
    (Threads::start(settings, &registry).unwrap(), registry)
}

fn gauge(registry: &Registry, state: &str) -> String {
    let families = registry.gather();
    let metrics = families[0].get_metric();
    let metric = metrics.iter().find(|metric| metric.get_label()[0].value() == state).unwrap();
    metric.get_gauge().get_value().to_string()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Work that does not end before the sender is dropped.
fn held() -> (mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
    let (release, wait) = mpsc::channel::<()>();
    let work = move || {
        let _ = wait.recv();
    };
    (release, work)
}

#[tokio::test]
async fn work_gives_its_result_from_another_thread() {
    let (threads, registry) = threads(2, 10_000);
    let name = threads.run(|| std::thread::current().name().map(str::to_owned)).await.unwrap();
    assert_eq!(name.as_deref(), Some("evaluation"));
    let all = (0..100_u64).map(|number| threads.run(move || number * 2));
    for (number, result) in futures(all).await.into_iter().enumerate() {
        assert_eq!(result, Ok(number as u64 * 2));
    }
    until("nothing is busy", || gauge(&registry, "busy") == "0").await;
    assert_eq!(gauge(&registry, "stray"), "0");
}

/// Drives all at once.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut results: Vec<Option<T>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in all.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *result = Some(value);
            }
        }
        if results.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_thread_goes_on() {
    let (threads, registry) = threads(1, 10_000);
    for _ in 0..3 {
        assert_eq!(threads.run(|| panic!("on purpose")).await, Err::<(), _>(Unfinished::Panicked));
        assert_eq!(threads.run(|| 7).await, Ok(7));
    }
    assert_eq!(gauge(&registry, "stray"), "0");
}

#[tokio::test]
async fn a_thread_that_does_not_come_back_is_replaced_and_ends_when_it_does() {
    let (threads, registry) = threads(1, 150);
    let (release, work) = held();
    assert_eq!(threads.run(work).await, Err(Unfinished::TimedOut));
    assert_eq!(gauge(&registry, "stray"), "1");
    assert_eq!(threads.run(|| 7).await, Ok(7), "another thread is there");
    drop(release);
    until("the stray thread ends", || gauge(&registry, "stray") == "0").await;
    until("there is one thread", || threads.pool.lock().threads == 1).await;
    assert_eq!(threads.run(|| 8).await, Ok(8));
}

#[tokio::test]
async fn waiting_for_a_thread_does_not_count_against_the_limit() {
    let (threads, _) = threads(1, 300);
    let slow = || std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    // The last one waits for longer than the limit.
    for result in futures((0..6).map(|_| threads.run(slow))).await {
        assert_eq!(result, Ok(()));
    }
    assert!(begun.elapsed() > Duration::from_millis(300));
}

#[tokio::test]
async fn when_too_many_threads_are_away_new_work_is_refused_until_they_come_back() {
    let (threads, registry) = threads(1, 100);
    let mut releases = Vec::new();
    for _ in 0..STRAY_MAX {
        let (release, work) = held();
        releases.push(release);
        assert_eq!(threads.run(work).await, Err(Unfinished::TimedOut));
    }
    assert_eq!(gauge(&registry, "stray"), STRAY_MAX.to_string());
    assert_eq!(threads.run(|| 7).await, Err(Unfinished::NoThread));
    drop(releases);
    until("they come back", || gauge(&registry, "stray") == "0").await;
    assert_eq!(threads.run(|| 7).await, Ok(7));
    assert_eq!(threads.pool.lock().threads, 1);
}

#[tokio::test]
async fn work_whose_caller_went_away_is_watched_as_well() {
    let (threads, registry) = threads(1, 150);
    let (release, work) = held();
    let gone = tokio::time::timeout(Duration::from_millis(1), threads.run(work)).await;
    assert!(gone.is_err());
    assert_eq!(threads.run(|| 7).await, Ok(7), "its thread is replaced");
    assert_eq!(gauge(&registry, "stray"), "1");
    drop(release);
    until("the stray thread ends", || gauge(&registry, "stray") == "0").await;
}

#[tokio::test]
async fn threads_end_when_the_pool_is_dropped() {
    let (threads, _) = threads(2, 10_000);
    let pool = std::sync::Arc::downgrade(&threads.pool);
    drop(threads);
    until("no thread holds the pool", || pool.strong_count() == 0).await;
}

#[test]
fn settings_have_defaults_and_are_checked() {
    let mut env = Env::from_map::<&str, &str>([]);
    let settings = ThreadSettings::from_env(&mut env).unwrap();
    assert!(settings.threads >= 1);
    assert_eq!(settings.limit, Duration::from_secs(2));
    let mut env = Env::from_map([
        ("RUNFLEET_EVALUATION_THREADS", "3"),
        ("RUNFLEET_EVALUATION_TIME_LIMIT_MS", "50"),
    ]);
    let settings = ThreadSettings::from_env(&mut env).unwrap();
    assert_eq!(settings, ThreadSettings { threads: 3, limit: Duration::from_millis(50) });
}
