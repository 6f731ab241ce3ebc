//! Messages of agents to people: through the conversation alone, and through a webhook on this machine.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runfleet_domain::RunId;
use runfleet_testkit::Servers;
use serde_json::Value;

use crate::fleet::Options;
use crate::post::{Post, sink_documents};
use crate::web::{Web, WebAnswer};

/// Messages of one run.
const EACH: usize = 10;

/// How often the ledger is asked whether a run was told.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How long somebody waits for a message.
const LONG: Duration = Duration::from_mins(5);

/// What was measured of one sink.
pub(crate) struct Sent {
    /// From the first message to the last result.
    pub(crate) wall: Duration,
    /// From each call to its result, seen every 2 ms.
    pub(crate) told: Vec<Duration>,
}

/// A fleet of delivery alone, and a receiver.
pub(crate) struct Messages {
    post: Post,
    web: Web,
}

impl Messages {
    /// Starts the release build of delivery on `servers`.
    pub(crate) async fn start(servers: Servers) -> Result<Self> {
        let web = Web::start(|_, _| WebAnswer::new(204, Value::Null)).await?;
        let settings = [
            ("RUNFLEET_CHAT_PER_RUN", "100"),
            ("RUNFLEET_CHAT_PER_DAY", "10000"),
            ("RUNFLEET_CHAT_BURST", "1000"),
            ("RUNFLEET_CHAT_LEASE_MS", "60000"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let options = Options {
            servers: Some(servers),
            settings,
            without: Post::others(),
            release: true,
            ..Options::default()
        };
        let post = Post::start(sink_documents(&web.url(""), 1), options).await?;
        Ok(Self { post, web })
    }

    /// Sends `count` messages of as many runs as are needed, `in_flight` at a time.
    pub(crate) async fn round(&self, agent: &str, count: usize, in_flight: usize) -> Result<Sent> {
        let path = format!("/{agent}");
        let before = self.web.requests(&path).len();
        let mut runs = Vec::new();
        for _ in 0..count.div_ceil(EACH) {
            runs.push(self.post.run(agent, "ada").await?);
        }
        let calls = (0..count).map(|number| (runs[number / EACH], number % EACH));
        let began = Instant::now();
        let told = stream::iter(calls.map(|(run, call)| self.one(run, call)));
        let told: Vec<Duration> = told.buffer_unordered(in_flight).try_collect().await?;
        let wall = began.elapsed();
        for run in runs {
            ensure!(
                self.post.word(run).await? == "SENT",
                "{agent}: {}",
                self.post.word(run).await?
            );
        }
        let came = self.web.requests(&path).len() - before;
        ensure!(agent == "own" || came == count, "{came} of {count} messages came");
        Ok(Sent { wall, told })
    }

    async fn one(&self, run: RunId, call: usize) -> Result<Duration> {
        let call = format!("call_1_{call}");
        let id = format!("tool:{call}").parse()?;
        let began = Instant::now();
        self.post.send(run, &call, "Hello, how is the deal?", LONG).await?;
        while !self.post.fleet.store.knows_event(run, &id).await.context("looking")? {
            ensure!(began.elapsed() < LONG, "a message was never told");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(began.elapsed())
    }

    /// Ends the fleet.
    pub(crate) async fn stop(self) -> Result<()> {
        self.post.fleet.remove().await
    }
}
