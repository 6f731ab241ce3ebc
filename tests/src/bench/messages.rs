//! Messages of agents to people: through the conversation alone, and through a webhook on this machine.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runfleet_domain::RunId;
use runfleet_testkit::Servers;
use serde_json::Value;

use super::count;
use super::ears::{Ears, LONG};
use crate::fleet::Options;
use crate::post::{Post, sink_documents};
use crate::web::{Web, WebAnswer};

/// Messages of one run.
const EACH: usize = 10;

/// People who get the messages of rounds. One alone could not get all of them in a day, whatever the settings.
const PEOPLE: usize = 1_000;

/// What was measured of one sink.
pub(crate) struct Sent {
    /// From the first message to the last result.
    pub(crate) wall: Duration,
    /// From each call to the moment at which its run is woken with the result.
    pub(crate) told: Vec<Duration>,
}

/// Workers of delivery alone, a receiver, and who hears in the place of agent-runner.
pub(crate) struct Messages {
    pub(super) post: Post,
    pub(super) web: Web,
    pub(super) ears: Ears,
}

/// Caps that nobody meets.
const FREE: [(&str, &str); 4] = [
    ("RUNFLEET_CHAT_PER_RUN", "100"),
    ("RUNFLEET_CHAT_PER_DAY", "10000"),
    ("RUNFLEET_CHAT_BURST", "1000"),
    ("RUNFLEET_CHAT_LEASE_MS", "60000"),
];

/// The id of a person.
pub(super) fn person(number: usize) -> String {
    format!("p{number}")
}

impl Messages {
    /// Starts one delivery on `servers`, for rounds of messages that no cap holds up.
    pub(crate) async fn start(servers: Servers) -> Result<Self> {
        Self::start_with(servers, &FREE, PEOPLE).await
    }

    /// The same with these settings, and so many people.
    pub(super) async fn start_with(
        servers: Servers,
        settings: &[(&str, &str)],
        people: usize,
    ) -> Result<Self> {
        let web = Web::start(|_, _| WebAnswer::new(204, Value::Null)).await?;
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let options = Options {
            servers: Some(servers),
            settings: settings.iter().map(owned).collect(),
            without: Post::others(),
            // A build for debugging measures its like, which shows nothing but that the benchmark works.
            release: !cfg!(debug_assertions),
            ..Options::default()
        };
        let post = Post::start(sink_documents(&web.url(""), 1), options).await?;
        let people: Vec<String> = (0..people).map(|n| format!("{{id: {}}}", person(n))).collect();
        post.people(&people.join(", ")).await?;
        let ears = Ears::open(&post.fleet);
        Ok(Self { post, web, ears })
    }

    /// Sends `many` messages of as many runs as are needed, `in_flight` at a time.
    pub(crate) async fn round(&self, agent: &str, many: usize, in_flight: usize) -> Result<Sent> {
        let (path, sink) =
            (format!("/{agent}"), if agent == "own" { "builtin" } else { "webhook" });
        self.web.forget();
        let before = self.decided("delivery", sink, "sent").await?;
        let mut runs = Vec::new();
        for run in 0..many.div_ceil(EACH) {
            runs.push(self.post.run(agent, &person(run % PEOPLE)).await?);
        }
        let calls = (0..many).map(|number| (runs[number / EACH], number % EACH));
        let began = Instant::now();
        let told = calls.map(|(run, call)| self.one(run, call, "Hello, how is the deal?"));
        let told = stream::iter(told).buffer_unordered(in_flight);
        let told: Vec<Duration> = told.try_collect().await?;
        let wall = began.elapsed();
        for run in runs {
            let word = self.post.word(run).await?;
            ensure!(word == "SENT", "{agent}: the last message of a run is {word}");
        }
        let sent = self.decided("delivery", sink, "sent").await? - before;
        ensure!((sent - count(many)).abs() < 0.5, "{agent}: {sent} of {many} messages were sent");
        let came = self.web.count(&path);
        ensure!(agent == "own" || came == many, "{agent}: {came} of {many} messages came");
        Ok(Sent { wall, told })
    }

    /// Sends one message, and waits until its run is told.
    pub(super) async fn one(&self, run: RunId, call: usize, text: &str) -> Result<Duration> {
        let call = format!("call_1_{call}");
        let told = self.ears.expect(run, &call);
        let began = Instant::now();
        self.post.send(run, &call, text, LONG).await?;
        let at = told.wait().await.context("the result of a message")?;
        Ok(at.duration_since(began))
    }

    /// Messages about which a worker has decided so, since it was started.
    pub(super) async fn decided(&self, worker: &str, sink: &str, result: &str) -> Result<f64> {
        let series =
            format!("runfleet_delivery_messages_total{{result=\"{result}\",sink=\"{sink}\"}}");
        self.post.fleet.metric(worker, &series).await
    }

    /// Ends the fleet.
    pub(crate) async fn stop(self) -> Result<()> {
        self.post.fleet.remove().await
    }
}
