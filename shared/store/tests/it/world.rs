//! A ledger of its own for each test, in a namespace that is removed at the end.

use std::time::Duration;

use prometheus::Registry;
use redis::aio::MultiplexedConnection;
use runfleet_domain::{
    IdempotencyKey, JobKey, Lane, MessageId, Name, RunId, RunKind, RunState, Shard,
};
use runfleet_store::{
    AlarmSet, Claim, Claimed, End, Finished, HandOver, HandOverVerdict, OutcomeJob, RunRecord,
    StartRun, Started, Store, StoreConfig, Timings, Verdict,
};
use ulid::Ulid;

/// Where the tests find their Redis.
pub(crate) fn redis_url() -> String {
    std::env::var_os("RUNFLEET_REDIS_URL")
        .and_then(|url| url.into_string().ok())
        .expect("run `make test`, or source the services.env of `deploy/local/services start`")
}

/// A connection with more patience than the client library has by itself.
pub(crate) async fn connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let patience = Some(Duration::from_secs(10));
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(patience)
        .set_response_timeout(patience);
    redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

pub(crate) fn message(text: &str) -> MessageId {
    text.parse().expect("a message id")
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    text.parse().expect("an idempotency key")
}

/// A store with its namespace, workspace and project.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) config: StoreConfig,
    pub(crate) workspace: Name,
    pub(crate) project: Name,
    pub(crate) shard: Shard,
}

impl World {
    /// With the clock of Redis.
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// With a clock that the test can move.
    pub(crate) async fn with_movable_clock() -> Self {
        Self::with(|config| config.skew = true).await
    }

    /// With settings that the test changes.
    pub(crate) async fn with(change: impl FnOnce(&mut StoreConfig)) -> Self {
        let namespace = format!("test-{}", Ulid::generate().to_string().to_lowercase());
        let mut config = StoreConfig::new(redis_url(), namespace);
        config.connections = 2;
        change(&mut config);
        let registry = Registry::new();
        let store = Store::open(&config, &registry).expect("settings that work");
        store.ping().await.expect("a Redis that answers");
        let workspace = name("acme");
        let shard = Shard::of_workspace(workspace.as_str());
        Self { store, registry, config, workspace, project: name("crm"), shard }
    }

    /// Removes everything that the test has stored.
    pub(crate) async fn end(self) {
        self.store.delete_namespace().await.expect("a clean end");
    }

    /// A connection past the store, to look at keys.
    pub(crate) async fn raw(&self) -> MultiplexedConnection {
        connect(&redis_url()).await.expect("a connection")
    }

    /// The full name of a key.
    pub(crate) fn key_name(&self, rest: &str) -> String {
        format!("{}:{{s{}}}:{rest}", self.config.namespace, self.shard)
    }

    pub(crate) async fn move_clock(&self, skew: i64) {
        self.store.set_skew(self.shard, skew).await.expect("a movable clock");
    }

    pub(crate) fn fresh_run(&self, kind: RunKind) -> RunId {
        RunId::new(kind, self.shard, Ulid::generate())
    }

    /// Sends a start with a fresh run id.
    pub(crate) async fn start(&self, request: &Request) -> Started {
        self.store.start_run(&request.start(self)).await.expect("an answer")
    }

    /// Makes a run.
    pub(crate) async fn run(&self, request: &Request) -> RunId {
        match self.start(request).await {
            Started::Created { run } => run,
            other => panic!("not created: {other:?}"),
        }
    }

    pub(crate) async fn load(&self, run: RunId) -> RunRecord {
        self.store.load_run(run).await.expect("an answer").expect("a run")
    }

    /// Claims a run and returns the fence.
    pub(crate) async fn claim(&self, run: RunId) -> u64 {
        match self.store.claim_run(run, Claim::default()).await.expect("an answer") {
            Claimed::Claimed { fence, .. } => fence,
            other => panic!("not claimed: {other:?}"),
        }
    }

    /// A run that has completed with its outcome wanted.
    pub(crate) async fn ended_run(&self, request: &Request) -> RunId {
        let run = self.run(request).await;
        let fence = self.claim(run).await;
        let end = End { output: Some(r#"{"total":7}"#), ..End::plain(RunState::Completed) };
        let answer = self.store.finish_run(run, fence, &end).await.expect("an answer");
        assert_eq!(answer, finished(request.outcome));
        run
    }

    /// The hand-over of a run of [`Request::new`].
    pub(crate) fn hand_over<'a>(&'a self, run_id: RunId, job: &'a JobKey) -> HandOver<'a> {
        HandOver {
            run_id,
            workspace: &self.workspace,
            project: &self.project,
            job,
            hops: 9,
            chain: 2,
            verdict: HandOverVerdict::Deliver { job_hops: 8 },
            jobs_waiting_max: 100,
            max_attempts: 5,
            timeout_ms: 30_000,
        }
    }

    /// Unix milliseconds at which a run's alarm is due, and the clock of the ledger.
    pub(crate) async fn alarm(&self, run: RunId) -> (Option<u64>, u64) {
        let explained = self.store.explain_run(run).await.expect("an answer").expect("a run");
        (explained.alarm_at_ms, explained.now_ms)
    }

    /// Whether the alarm of a run is `span` from now, give or take two seconds.
    pub(crate) async fn alarm_is_in(&self, run: RunId, span: Duration) -> bool {
        let (at, now) = self.alarm(run).await;
        let distance = i128::from(at.expect("an alarm")) - i128::from(now);
        let wanted = i128::try_from(span.as_millis()).expect("a short span");
        (distance - wanted).abs() < 2_000
    }

    pub(crate) async fn alarms(&self, set: AlarmSet) -> u64 {
        self.store.count_alarms(self.shard, set).await.expect("an answer").all
    }

    /// How many starts of today are counted.
    pub(crate) async fn starts_today(&self, kind: RunKind) -> u64 {
        let counted = self.store.starts_of_day(&self.workspace, &self.project, kind).await;
        counted.expect("an answer").map_or(0, |day| day.starts)
    }
}

/// A start, with everything in it that a test may want to change.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) kind: RunKind,
    pub(crate) message: MessageId,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) identity: String,
    pub(crate) target: Name,
    pub(crate) execution: Name,
    pub(crate) calls_budget: Option<u32>,
    pub(crate) calls_limit: Option<u32>,
    pub(crate) batch: bool,
    pub(crate) day_limit: u32,
    pub(crate) verdict: Verdict,
    pub(crate) outcome: bool,
    pub(crate) job: JobKey,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) user: Name,
    pub(crate) recipient: Option<Name>,
}

impl Request {
    pub(crate) fn new(kind: RunKind) -> Self {
        Self {
            kind,
            message: message(&Ulid::generate().to_string()),
            key: None,
            identity: "user:ann".to_owned(),
            target: name("invoice"),
            execution: name("exec-1"),
            calls_budget: Some(10_000),
            calls_limit: Some(1_000),
            batch: false,
            day_limit: 1_000,
            verdict: Verdict::Accept,
            outcome: true,
            job: "onDone".parse().expect("a job key"),
            deadline_ms: None,
            user: name("ann"),
            recipient: None,
        }
    }

    pub(crate) fn process() -> Self {
        Self::new(RunKind::Process)
    }

    pub(crate) fn with_key(self, text: &str) -> Self {
        Self { key: Some(key(text)), ..self }
    }

    /// The same with another message id.
    pub(crate) fn again(&self) -> Self {
        Self { message: message(&Ulid::generate().to_string()), ..self.clone() }
    }

    pub(crate) fn start<'a>(&'a self, world: &'a World) -> StartRun<'a> {
        StartRun {
            run_id: world.fresh_run(self.kind),
            workspace: &world.workspace,
            project: &world.project,
            lane: Lane::Interactive,
            message_id: &self.message,
            key: self.key.as_ref(),
            identity: &self.identity,
            target: &self.target,
            target_version: 3,
            execution: &self.execution,
            calls_budget: self.calls_budget,
            calls_limit: self.calls_limit,
            batch: self.batch,
            day_limit: self.day_limit,
            verdict: self.verdict,
            user: Some(&self.user),
            recipient: self.recipient.as_ref(),
            hops: 9,
            depth: 1,
            chain: 2,
            instance_name: Some("No. 7"),
            input: Some(r#"{"amount":7}"#),
            outcome: self.outcome.then_some(OutcomeJob { job: &self.job, echo: Some("[1]") }),
            deadline_ms: self.deadline_ms,
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        }
    }
}

/// The answer to the end of a run that has neither parent nor children.
pub(crate) fn finished(outcome_wanted: bool) -> Finished {
    Finished::Finished {
        outcome_wanted,
        children: false,
        parent_to_wake: None,
        next_turn: None,
        said: None,
    }
}

/// Spans short enough to wait for.
pub(crate) fn short_timings() -> Timings {
    Timings {
        lease: Duration::from_millis(300),
        alarm_unclaimed: Duration::from_millis(300),
        alarm_handover: Duration::from_millis(300),
    }
}
