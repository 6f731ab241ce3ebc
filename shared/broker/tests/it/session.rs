//! Sessions: connecting, losing, rebuilding.

use std::time::{Duration, Instant};

use lapin::options::QueueDeleteOptions;
use prometheus::Registry;
use runfleet_broker::{Broker, Route, Verdict};
use runfleet_domain::Lane;
use secrecy::{ExposeSecret, SecretString};

use crate::fixture::{BOUND, Fixture, Seen, consume, lane, publish, wait_until};
use crate::proxy::Proxy;

const QUEUE: &str = "delivery.interactive";
const ROUTE: Route = Route::Deliver(Lane::Interactive);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_connections_carry_the_name_of_the_process_and_close_when_asked() {
    let fixture = Fixture::new(&[]).await;
    let broker = fixture.broker().await;
    let names = async || {
        let connections = fixture.management.connections().await.unwrap();
        let ours = connections.into_iter().filter(|connection| connection.vhost == fixture.vhost);
        let mut names: Vec<_> = ours.map(|connection| connection.user_provided_name).collect();
        names.sort();
        names
    };
    let wanted = ["consume", "publish"].map(|what| format!("it {} {what}", fixture.vhost));
    wait_until("two connections with their names", async || names().await == wanted).await;
    assert!((fixture.metric("runfleet_broker_connected") - 1.0).abs() < f64::EPSILON);
    let began = Instant::now();
    broker.close().await;
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(!*broker.connected().borrow());
    wait_until("both closed", async || names().await.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_keeps_the_session_down_until_it_is_there() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let (_connection, channel) = fixture.raw().await;
    channel.queue_delete(QUEUE.into(), QueueDeleteOptions::default()).await.unwrap();
    let broker = Broker::start(fixture.config(), &fixture.registry).unwrap();
    assert!(!broker.wait_connected(Duration::from_secs(1)).await);
    fixture.admin().apply().await.unwrap();
    assert!(broker.wait_connected(BOUND).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_endpoint_is_passed_over() {
    let fixture = Fixture::new(&[]).await;
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let urls = format!("{},{}", fixture.url_at(dead).expose_secret(), fixture.urls.expose_secret());
    let broker = fixture.broker_with(|config| config.urls = SecretString::from(urls)).await;
    broker.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_stays_away_is_reported_lost_but_not_after_a_close() {
    let fixture = Fixture::new(&[]).await;
    let proxy = Proxy::new(fixture.address()).await;
    let change = |config: &mut runfleet_broker::BrokerConfig| {
        config.urls = fixture.url_at(proxy.address);
        config.lost_after = Duration::from_millis(600);
    };
    let broker = fixture.broker_with(change).await;
    // Longer than `lost_after`: nothing may be reported while the session stands.
    assert!(tokio::time::timeout(Duration::from_secs(1), broker.lost()).await.is_err());
    proxy.set(|mode| mode.refuse = true);
    proxy.cut();
    tokio::time::timeout(BOUND, broker.lost()).await.unwrap();
    broker.close().await;
    assert!(tokio::time::timeout(Duration::from_secs(1), broker.lost()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_stalls_is_given_up() {
    let fixture = Fixture::new(&[]).await;
    let proxy = Proxy::new(fixture.address()).await;
    proxy.set(|mode| mode.stall_down = true);
    let mut config = fixture.config();
    config.urls = fixture.url_at(proxy.address);
    config.connect_timeout = Duration::from_millis(300);
    let broker = Broker::start(config, &fixture.registry).unwrap();
    assert!(!broker.wait_connected(Duration::from_secs(1)).await);
    proxy.set(|mode| mode.stall_down = false);
    assert!(broker.wait_connected(BOUND).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumption_goes_on_after_the_broker_closed_the_connections() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 4), BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async { Ok(Verdict::Done) }
        }
    });
    publish(&broker.publisher(), &ROUTE, "before").await;
    seen.wait_for(1).await;
    wait_until("the connections in the management API", async || {
        fixture.kill_connections().await >= 2
    })
    .await;
    wait_until("a rebuilt session", async || fixture.reconnects() >= 1.0).await;
    publish(&broker.publisher(), &ROUTE, "after").await;
    wait_until("the message after", async || seen.ids().contains(&"after".to_owned())).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_queue_ends_the_session_and_consumption_goes_on_when_it_is_back() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 4), BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async { Ok(Verdict::Done) }
        }
    });
    publish(&broker.publisher(), &ROUTE, "before").await;
    seen.wait_for(1).await;
    let (_connection, channel) = fixture.raw().await;
    channel.queue_delete(QUEUE.into(), QueueDeleteOptions::default()).await.unwrap();
    wait_until("the end of the session", async || !*broker.connected().borrow()).await;
    fixture.admin().apply().await.unwrap();
    assert!(broker.wait_connected(BOUND).await);
    publish(&broker.publisher(), &ROUTE, "after").await;
    wait_until("the message after", async || seen.ids().contains(&"after".to_owned())).await;
    running.stop().await;
}

#[test]
fn worker_threads_that_compute_do_not_cost_the_connection() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    };
    let fixture = runtime().block_on(Fixture::new(&[QUEUE]));
    let workers = runtime();
    let broker =
        workers.block_on(fixture.broker_with(|config| config.heartbeat = Duration::from_secs(1)));
    let began = Instant::now();
    let blocked: Vec<_> = (0..2)
        .map(|_| workers.spawn(async { std::thread::sleep(Duration::from_secs(5)) }))
        .collect();
    // The broker would have closed a silent connection after two seconds.
    workers.block_on(async {
        for task in blocked {
            task.await.unwrap();
        }
        publish(&broker.publisher(), &ROUTE, "m").await;
    });
    assert!(began.elapsed() >= Duration::from_secs(5));
    assert!(fixture.reconnects() < 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_is_silent_while_its_queue_is_not_empty_is_rebuilt() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let proxy = Proxy::new(fixture.address()).await;
    let broker = fixture
        .broker_with(|config| {
            config.urls = fixture.url_at(proxy.address);
            config.silence_after = Duration::from_millis(400);
        })
        .await;
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 1), BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async { Ok(Verdict::Done) }
        }
    });
    // More than the silence with an empty queue is no reason.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(*broker.connected().borrow());
    assert!(fixture.reconnects() < 1.0);
    // Only the consuming connection, which was opened second, goes deaf.
    proxy.deafen_second();
    publish(&broker.publisher(), &ROUTE, "a").await;
    publish(&broker.publisher(), &ROUTE, "b").await;
    wait_until("the end of the session", async || !*broker.connected().borrow()).await;
    proxy.hear_again();
    seen.wait_for(2).await;
    running.stop().await;
}

#[test]
fn a_broker_can_be_dropped_inside_and_outside_of_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = || {
        let urls = SecretString::from("amqp://127.0.0.1:1/");
        let config = runfleet_broker::BrokerConfig::new(urls, "it");
        Broker::start(config, &Registry::new()).unwrap()
    };
    drop(start());
    runtime.block_on(async { drop(start()) });
}
