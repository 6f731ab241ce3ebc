//! What only a server of its own can show: resource alarms, the acknowledgement timeout, a crash. It takes some seconds to start.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use runfleet_broker::{
    BrokerConfig, Management, PublishError, ReplyError, RequestError, Route, Verdict,
};
use runfleet_domain::Lane;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::fixture::{BOUND, Fixture, Seen, consume, lane, note, publish, wait_until};
use crate::proxy::Proxy;

const QUEUE: &str = "delivery.interactive";
const ROUTE: Route = Route::Deliver(Lane::Interactive);

/// A RabbitMQ in a directory of its own, stopped and removed at the end.
struct Server {
    directory: PathBuf,
}

impl Server {
    fn start() -> Self {
        let directory =
            std::env::temp_dir().join(format!("runfleet-broker-{:08x}", rand::random::<u32>()));
        let server = Self { directory };
        server.services(&["start-rabbitmq"]);
        server
    }

    fn services(&self, arguments: &[&str]) -> Output {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/local/services");
        let (command, rest) = arguments.split_first().unwrap();
        let output =
            Command::new(script).arg(command).arg(&self.directory).args(rest).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    fn control(&self, arguments: &[&str]) {
        self.services(&[&["rabbitmqctl"], arguments].concat());
    }

    fn port(&self, name: &str) -> u16 {
        let ports = std::fs::read_to_string(self.directory.join("rabbitmq/ports")).unwrap();
        let line = ports.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap().parse().unwrap()
    }

    fn url(&self, scheme: &str, port: &str) -> String {
        let password = std::fs::read_to_string(self.directory.join("rabbitmq/password")).unwrap();
        format!("{scheme}://runfleet:{}@127.0.0.1:{}/", password.trim(), self.port(port))
    }

    fn management(&self) -> SecretString {
        SecretString::from(self.url("http", "management"))
    }

    async fn fixture(&self) -> Fixture {
        Fixture::at(&self.url("amqp", "amqp"), &self.management(), &[QUEUE], |_| {}).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.services(&["stop"]);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_and_stuck_consumers_are_survived() {
    let server = Server::start();
    an_alarm_leaves_publishes_unconfirmed_and_work_resumes_after_it(&server).await;
    a_request_under_an_alarm_ends_in_time_and_says_whether_it_may_have_been_done(&server).await;
    a_delivery_that_is_held_too_long_costs_the_channel_and_consumption_goes_on(&server).await;
    a_broker_that_crashes_loses_no_confirmed_message(&server).await;
}

async fn an_alarm_leaves_publishes_unconfirmed_and_work_resumes_after_it(server: &Server) {
    let fixture = server.fixture().await;
    let change = |config: &mut BrokerConfig| {
        config.blocked_after = Duration::from_secs(2);
        config.confirm_timeout = Duration::from_secs(1);
    };
    let broker = fixture.broker_with(change).await;
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
    server.control(&["set_vm_memory_high_watermark", "absolute", "1MB"]);
    let during = async || broker.publisher().publish(&ROUTE, note("during")).await;
    wait_until("the alarm", async || during().await == Err(PublishError::NotConfirmed)).await;
    // Longer than `blocked_after`, so the session was given up at least once and its socket was cut.
    wait_until("a rebuilt session", async || fixture.reconnects() >= 1.0).await;
    server.control(&["set_vm_memory_high_watermark", "absolute", "1GB"]);
    let after = async || broker.publisher().publish(&ROUTE, note("after")).await;
    wait_until("publishes after the alarm", async || after().await.is_ok()).await;
    wait_until("the message after the alarm", async || seen.ids().contains(&"after".to_owned()))
        .await;
    running.stop().await;
    broker.close().await;
}

async fn a_request_under_an_alarm_ends_in_time_and_says_whether_it_may_have_been_done(
    server: &Server,
) {
    let fixture = server.fixture().await;
    // The answers come over another connection, which is blocked too once it has tried to publish.
    let broker = fixture.broker().await;
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 4), BOUND, {
        let (seen, publisher) = (seen.clone(), broker.publisher());
        move |message| {
            seen.add(&message);
            let publisher = publisher.clone();
            async move {
                if let (Some(address), Some(id)) = (message.reply_to, message.correlation_id) {
                    let _ = publisher.reply("reply.v1", &address, &id, b"done").await;
                }
                Ok(Verdict::Done)
            }
        }
    });
    let requester = broker.requester();
    let bound = Duration::from_millis(500);
    let ask = async |id: &str| {
        let began = Instant::now();
        let answer = requester.request(&ROUTE, note(id), bound).await;
        assert!(began.elapsed() < bound * 3, "{id}: {:?}", began.elapsed());
        answer
    };
    wait_until("an answer", async || ask("before").await.is_ok()).await;
    server.control(&["set_vm_memory_high_watermark", "absolute", "1MB"]);
    // The first ones are written before the broker says that it reads no more.
    let mut number = 0;
    let mut answer = Ok(vec![]);
    while answer != Err(RequestError::NotConnected) {
        assert!(matches!(answer, Ok(_) | Err(RequestError::TimedOut)), "{answer:?}");
        number += 1;
        assert!(number < 60, "the broker never said that it takes no messages");
        answer = ask(&format!("during-{number}")).await;
    }
    let never_sent = [format!("during-{number}"), "never-1".to_owned(), "never-2".to_owned()];
    assert_eq!(ask(&never_sent[1]).await, Err(RequestError::NotConnected));
    let publisher = broker.publisher();
    let published = publisher.publish_within(&ROUTE, note(&never_sent[2]), bound).await;
    assert_eq!(published, Err(PublishError::NotConnected));
    let reply = publisher.reply("reply.v1", "reply.nobody", "1", b"").await;
    assert_eq!(reply, Err(ReplyError::NotConnected));
    server.control(&["set_vm_memory_high_watermark", "absolute", "1GB"]);
    wait_until("an answer after the alarm", async || ask("after").await.is_ok()).await;
    assert!(fixture.reconnects() < 0.5, "the session has stood all the time");
    let ids = seen.ids();
    assert!(never_sent.iter().all(|id| !ids.contains(id)), "{ids:?}");
    running.stop().await;
    broker.close().await;
}

async fn a_delivery_that_is_held_too_long_costs_the_channel_and_consumption_goes_on(
    server: &Server,
) {
    let (held, tick) = ("consumer_timeout, 1000", "channel_tick_interval, 200");
    let set = |what| format!("application:set_env(rabbit, {what})");
    server.control(&["eval", &format!("{}, {}.", set(held), set(tick))]);
    let fixture = server.fixture().await;
    let broker = fixture.broker().await;
    let release = CancellationToken::new();
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 4), BOUND, {
        let (seen, release) = (seen.clone(), release.clone());
        move |message| {
            seen.add(&message);
            let release = release.clone();
            async move {
                if message.message_id == "held" {
                    release.cancelled().await;
                }
                Ok(Verdict::Done)
            }
        }
    });
    publish(&broker.publisher(), &ROUTE, "held").await;
    // The broker closes the channel, and with it the subscription, by a channel error. The connection stays.
    wait_until("a rebuilt session", async || fixture.reconnects() >= 1.0).await;
    release.cancel();
    publish(&broker.publisher(), &ROUTE, "after").await;
    wait_until("the message after", async || seen.ids().contains(&"after".to_owned())).await;
    running.stop().await;
    broker.close().await;
}

async fn a_broker_that_crashes_loses_no_confirmed_message(server: &Server) {
    let mut fixture = server.fixture().await;
    let proxy = Proxy::new(fixture.address()).await;
    fixture.urls = fixture.url_at(proxy.address);
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    let publishing = tokio::spawn(async move {
        let mut confirmed = Vec::new();
        for number in 0..400 {
            let id = number.to_string();
            let within = Duration::from_mins(1);
            if publisher.publish_within(&ROUTE, note(&id), within).await.is_ok() {
                confirmed.push(id);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        confirmed
    });
    wait_until("some messages", async || fixture.ready(QUEUE).await > 250).await;
    tokio::task::block_in_place(|| server.services(&["restart-rabbitmq", "--kill"]));
    // A server whose port was taken meanwhile comes back on another.
    proxy.retarget(format!("127.0.0.1:{}", server.port("amqp")));
    fixture.management = Management::new(&server.management()).unwrap();
    let confirmed = publishing.await.unwrap();
    assert_eq!(confirmed.len(), 400);
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 50), BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async { Ok(Verdict::Done) }
        }
    });
    let all = async || {
        let ids = seen.ids();
        confirmed.iter().all(|id| ids.contains(id))
    };
    wait_until("every confirmed message", all).await;
    running.stop().await;
    broker.close().await;
}
