//! A process that dies at a named point: the message is there afterwards, once or twice, and never lost.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use runfleet_broker::{Broker, BrokerConfig, Line, Route, Verdict};
use secrecy::{ExposeSecret, SecretString};

use crate::fixture::{BOUND, Fixture, consume, lane, publish, wait_until};

const QUEUE: &str = "agent-runner.interactive";
const OTHER: &str = "agent-runner.quarantine";
const URL: &str = "RUNFLEET_IT_CHILD_URL";
const SIGKILL: i32 = 9;

fn move_on(broker: &Broker) -> crate::fixture::Running {
    consume(broker, lane(QUEUE, 1), BOUND, |_| async {
        Ok(Verdict::Move(Route::Agent(Line::Quarantine)))
    })
}

/// The process that dies. As an ordinary test it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    #[expect(clippy::disallowed_methods, reason = "how the parent talks to it")]
    let Ok(url) = std::env::var(URL) else { return };
    let mut config = BrokerConfig::new(SecretString::from(url), "child");
    config.required = vec![];
    let broker = Broker::start(config, &prometheus::Registry::new()).unwrap();
    let _running = move_on(&broker);
    tokio::time::sleep(BOUND).await;
    panic!("it should have died");
}

fn die_at(fixture: &Fixture, point: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["crashing::child", "--exact"])
        .env(URL, fixture.urls.expose_secret())
        .env(runfleet_faults::FAIL_AT, point)
        .output()
        .unwrap();
    assert_eq!(
        child.status.signal(),
        Some(SIGKILL),
        "{point}: {}",
        String::from_utf8_lossy(&child.stdout)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_between_two_steps_loses_no_message() {
    let fixture = Fixture::new(&[QUEUE, OTHER]).await;
    let broker = fixture.broker().await;
    let points = [
        ("consumer.handled", 1..=1),
        ("publisher.sent", 1..=2),
        ("publisher.confirmed", 2..=2),
        ("consumer.before_ack", 2..=2),
        ("consumer.settled", 1..=2),
        ("consumer.after_ack", 1..=2),
    ];
    for (point, copies) in points {
        publish(&broker.publisher(), &Route::Agent(Line::Interactive), point).await;
        tokio::task::block_in_place(|| die_at(&fixture, point));
        let before = fixture.settled(QUEUE, "moved");
        // The broker gives back what the dead process held once it sees the closed socket.
        let running = move_on(&broker);
        if *copies.start() == 2 || point == "consumer.handled" {
            let moved = async || fixture.settled(QUEUE, "moved") > before;
            wait_until("the message that was given back", moved).await;
        } else {
            // Whether there is one to wait for depends on what left the socket before the process died.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        running.stop().await;
        let found = fixture.purge(OTHER).await;
        assert!(copies.contains(&found), "{point}: {found}");
        assert_eq!(fixture.ready(QUEUE).await, 0, "{point}");
    }
}
