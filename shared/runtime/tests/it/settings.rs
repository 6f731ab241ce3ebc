//! A worker whose settings are wrong says so and does not start.

use crate::child::Worker;

#[test]
fn all_mistakes_are_one_log_line_and_the_exit_code_is_78() {
    let worker = Worker::start(&[
        ("RUNFLEET_SHUTDOWN_GRACE_MS", "s3cret"),
        ("RUNFLEET_THREADS", "0"),
        ("RUNFLEET_LOG_FORMAT", "xml"),
    ]);
    let ended = worker.ended();
    assert_eq!(ended.code, Some(78));
    assert_eq!(ended.lines.len(), 1);
    let line = ended.line("configuration refused");
    assert_eq!(line["level"], "ERROR");
    assert_eq!(line["worker"], "smallest-worker");
    assert_eq!(
        line["error"],
        "invalid configuration: RUNFLEET_LOG_FORMAT is not valid: must be `json` or `pretty`; \
         RUNFLEET_SHUTDOWN_GRACE_MS is not valid: invalid digit found in string; \
         RUNFLEET_THREADS must be 1 to 512; \
         RUNFLEET_EXAMPLE_URL is not set, and neither is its _FILE form"
    );
}

#[test]
fn an_admin_address_that_is_taken_ends_the_start_with_1() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let ended = Worker::started("drain", &[("RUNFLEET_ADMIN_ADDR", &addr)]).ended();
    assert_eq!(ended.code, Some(1));
    let error = ended.line("start failed")["error"].as_str().unwrap();
    assert!(error.starts_with(&format!("binding the admin server to {addr}: ")), "{error}");
}
