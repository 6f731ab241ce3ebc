//! Facts: told to whoever listens, and no burden for anybody else.

use std::time::Duration;

use lapin::options::{QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use runfleet_broker::Route;
use runfleet_broker::names::FACTS_EXCHANGE;
use runfleet_contracts::facts::{RunEnded, RunStarted};
use runfleet_domain::{Lane, RunId};

use crate::fixture::{BOUND, Fixture, publish, wait_until};

const QUEUE: &str = "start-intake.backfill";

fn run() -> RunId {
    "AG1501JDX3Z8GF0000000000000000".parse().unwrap()
}

fn started(project: &str, target: &str) -> RunStarted {
    RunStarted {
        run_id: run(),
        workspace: "acme".parse().unwrap(),
        project: project.parse().unwrap(),
        target: target.parse().unwrap(),
        at: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_comes_to_whoever_has_bound_a_queue_to_its_key_and_keeps_nobody_waiting() {
    let fixture = Fixture::new(&[]).await;
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    // Nobody listens yet.
    publisher.publish_fact(&started("shop", "early"));
    wait_until("the first fact is written", async || {
        fixture.metric("runfleet_facts_total{result=\"written\"}") >= 1.0
    })
    .await;
    let (_connection, channel) = fixture.raw().await;
    let (options, table) = (QueueDeclareOptions::default(), FieldTable::default());
    channel.queue_declare("ears".into(), options, table.clone()).await.unwrap();
    let (bind, key) = (QueueBindOptions::default(), "run.started.v1.acme.shop");
    channel
        .queue_bind("ears".into(), FACTS_EXCHANGE.into(), key.into(), bind, table)
        .await
        .unwrap();
    for (project, target) in [("shop", "one"), ("other", "two"), ("shop", "three")] {
        publisher.publish_fact(&started(project, target));
    }
    publisher.publish_fact(&RunEnded {
        run_id: run(),
        workspace: "acme".parse().unwrap(),
        project: "shop".parse().unwrap(),
        target: "four".parse().unwrap(),
        state: "COMPLETED".into(),
        at: 1,
    });
    for target in ["one", "three"] {
        let message = fixture.take("ears").await;
        assert_eq!(message.properties.kind().as_ref().unwrap().as_str(), "run.started.v1");
        assert_eq!(*message.properties.delivery_mode(), Some(1));
        let fact: RunStarted = serde_json::from_slice(&message.data).unwrap();
        assert_eq!(fact.target.as_str(), target);
    }
    wait_until("all facts are written", async || {
        fixture.metric("runfleet_facts_total{result=\"written\"}") >= 5.0
    })
    .await;
    assert_eq!(fixture.ready("ears").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_that_the_broker_does_not_take_stops_nothing_else() {
    let fixture = Fixture::with(&[QUEUE], |topology| {
        topology.exchanges.retain(|exchange| exchange.name != FACTS_EXCHANGE);
    })
    .await;
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    // The first one makes the broker close its channel; the next ones find it closed.
    wait_until("facts are gone", async || {
        publisher.publish_fact(&started("shop", "one"));
        fixture.metric("runfleet_facts_total{result=\"gone\"}") >= 3.0
    })
    .await;
    publish(&publisher, &Route::Start(Lane::Backfill), "m1").await;
    assert_eq!(fixture.purge(QUEUE).await, 1);
    assert!(fixture.reconnects() < 1.0, "the session was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_hears_the_facts_of_its_keys_and_again_after_its_connection_was_lost() {
    let fixture = Fixture::new(&[]).await;
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    let mut listener = broker.listen(vec!["run.started.v1.acme.shop".into()]);
    for target in ["one", "two"] {
        let heard = async {
            loop {
                publisher.publish_fact(&started("other", target));
                publisher.publish_fact(&started("shop", target));
                let next = tokio::time::timeout(Duration::from_millis(100), listener.next());
                let Ok(Some(heard)) = next.await else { continue };
                assert_eq!(heard.kind, "run.started.v1");
                let fact: RunStarted = serde_json::from_slice(&heard.body).unwrap();
                assert_eq!(fact.project.as_str(), "shop");
                if fact.target.as_str() == target {
                    return;
                }
            }
        };
        tokio::time::timeout(BOUND, heard).await.expect("nothing is heard");
        if target == "one" {
            wait_until("its connection is cut", async || fixture.kill_connections().await > 0)
                .await;
        }
    }
}
