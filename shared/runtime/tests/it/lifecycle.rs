//! How a worker ends, and what it tells while it lives.

use crate::child::{Worker, wait_for};

#[test]
fn a_worker_that_is_asked_to_stop_drains_and_exits_with_0() {
    for signal in ["TERM", "INT"] {
        let worker = Worker::started("drain", &[("RUNFLEET_EXAMPLE_DRAIN_MS", "300")]);
        worker.wait_until_ready();
        worker.signal(signal);
        let (_, body) = wait_for("/ready to say 503 while draining", || {
            worker.get("/ready").filter(|(status, _)| *status == 503)
        });
        assert_eq!(body, "{\"ready\":false,\"failing\":[\"stopping\"]}\n");
        let ended = worker.ended();
        assert_eq!(ended.code, Some(0));
        assert_eq!(ended.line("stopping")["signal"], format!("SIG{signal}"));
        assert_eq!(ended.line("stopped")["code"], 0);
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let worker = Worker::started("drain", &[("RUNFLEET_EXAMPLE_DRAIN_MS", "600000")]);
    worker.wait_until_ready();
    worker.signal("TERM");
    worker.wait_until_logged("stopping");
    worker.signal("TERM");
    assert_eq!(worker.ended().code, Some(130));
}

#[test]
fn work_that_outlives_the_grace_and_its_margin_ends_with_1_and_says_what_was_left() {
    let settings = [("RUNFLEET_EXAMPLE_DRAIN_MS", "600000"), ("RUNFLEET_SHUTDOWN_GRACE_MS", "50")];
    let worker = Worker::started("drain", &settings);
    worker.wait_until_ready();
    worker.signal("TERM");
    let ended = worker.ended();
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.line("not drained in time")["background_tasks"], 1);
}

#[test]
fn a_worker_whose_threads_are_all_stuck_still_obeys_the_deadline_and_the_second_signal() {
    let settings = [("RUNFLEET_THREADS", "1"), ("RUNFLEET_SHUTDOWN_GRACE_MS", "50")];
    let worker = Worker::started("stuck", &settings);
    worker.wait_until_ready();
    worker.signal("TERM");
    assert_eq!(worker.ended().code, Some(1));

    let worker = Worker::started("stuck", &[("RUNFLEET_THREADS", "1")]);
    worker.wait_until_ready();
    worker.signal("TERM");
    worker.wait_until_logged("stopping");
    worker.signal("INT");
    assert_eq!(worker.ended().code, Some(130));
}

#[test]
fn each_way_of_ending_without_being_asked_has_its_exit_code() {
    for (ending, code, message, error) in [
        ("lost", 70, "the worker failed", Some("consuming: broker is lost")),
        ("fail", 1, "the worker failed", Some("the queue is gone")),
        ("panic", 1, "panicked", Some("a fault of the worker")),
        ("early", 1, "the worker ended without being asked", None),
    ] {
        let ended = Worker::started(ending, &[]).ended();
        assert_eq!(ended.code, Some(code), "{ending}");
        assert_eq!(ended.line(message)["error"].as_str(), error, "{ending}");
    }
}

#[test]
fn the_admin_server_shows_life_readiness_and_metrics() {
    let worker = Worker::started("drain", &[]);
    worker.wait_until_ready();
    assert_eq!(worker.get("/live"), Some((200, "live\n".to_owned())));
    let (status, metrics) = worker.get("/metrics").unwrap();
    assert_eq!(status, 200);
    let version = env!("CARGO_PKG_VERSION");
    let build =
        format!("runfleet_build_info{{version=\"{version}\",worker=\"smallest-worker\"}} 1\n");
    assert!(metrics.contains(&build), "{metrics}");
    assert!(metrics.contains("process_open_fds "), "{metrics}");
}
