//! A piece of real servers for the tests of this worker: a ledger, the lines of process-runner, and a run in it.

use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use runfleet_broker::{
    Broker, BrokerConfig, Consumer, ConsumerConfig, Inbound, LaneConfig, Management, Topology,
    TopologyAdmin,
};
use runfleet_contracts::RunEvent;
use runfleet_domain::{Lane, Name, RunId, RunKind, Shard};
use runfleet_identity::AnswerKeys;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Claim, Claimed, RunRecord, StartRun, Started, Store, Verdict};
use runfleet_testkit::{Namespace, Servers};
use runfleet_worker::Tokens;
use serde_json::Value;
use ulid::Ulid;

use crate::answers::Answers;
use runfleet_flow::Ask as Asked;

/// Longest wait for anything that must happen.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// The queues that are needed here; declaring all takes its time.
const QUEUES: [&str; 4] = [
    "process-runner.interactive",
    "process-runner.calls",
    "dead.tasks",
    "dead.process-runner.calls",
];

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// What a test has.
pub(crate) struct World {
    pub(crate) namespace: Namespace,
    pub(crate) store: Store,
    pub(crate) broker: Broker,
    pub(crate) answers: Arc<Answers>,
    topology: Topology,
}

impl World {
    pub(crate) async fn new(keys: Option<AnswerKeys>) -> Self {
        let mut topology = Topology::standard();
        topology.queues.retain(|queue| QUEUES.contains(&queue.name.as_str()));
        topology.bindings.retain(|binding| QUEUES.contains(&binding.queue.as_str()));
        let servers = Servers::from_env().unwrap();
        let namespace = Namespace::new(servers, Some(&topology)).await.unwrap();
        let store = namespace.store().unwrap();
        let mut config = BrokerConfig::new(namespace.amqp.clone(), "test");
        config.required = topology.objects();
        let broker = Broker::start(config, &Registry::new()).unwrap();
        assert!(broker.wait_connected(BOUND).await);
        let (own, publisher) = (store.clone(), broker.publisher());
        let answers = Arc::new(Answers { store: own, publisher, keys, tokens: Tokens::default() });
        Self { namespace, store, broker, answers, topology }
    }

    /// Declares the queues of the project of all runs here.
    pub(crate) async fn with_project_queues(&self) {
        let management = Management::new(self.namespace.management()).unwrap();
        let amqp = self.namespace.amqp.clone();
        let admin = TopologyAdmin::new(amqp, management, self.topology.clone()).unwrap();
        admin.apply_job_queue(&name("acme"), &name("shop")).await.unwrap();
    }

    /// A run of acme/shop.
    pub(crate) async fn run(&self) -> RunRecord {
        let workspace = name("acme");
        let ulid = Ulid::generate();
        let run_id = RunId::new(RunKind::Process, Shard::of_workspace("acme"), ulid);
        let start = StartRun {
            run_id,
            workspace: &workspace,
            project: &name("shop"),
            lane: Lane::Interactive,
            message_id: &ulid.to_string().parse().unwrap(),
            key: None,
            identity: "acme:shop",
            target: &name("order"),
            target_version: 1,
            execution: &name("e1"),
            calls_budget: None,
            calls_limit: None,
            batch: false,
            day_limit: 10,
            verdict: Verdict::Accept,
            user: None,
            recipient: None,
            hops: 9,
            depth: 0,
            chain: 0,
            instance_name: None,
            input: None,
            outcome: None,
            deadline_ms: None,
            traceparent: None,
        };
        let started = self.store.start_run(&start).await.unwrap();
        assert!(matches!(started, Started::Created { .. }), "{started:?}");
        self.store.load_run(run_id).await.unwrap().unwrap()
    }

    /// What waits in the inbox of a run. Claims it.
    pub(crate) async fn inbox(&self, run: RunId) -> Vec<RunEvent> {
        match self.store.claim_run(run, Claim::default()).await.unwrap() {
            Claimed::Claimed { inbox, .. } => {
                let events = inbox.iter();
                events.map(|event| RunEvent::parse(event.body.as_bytes()).unwrap()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// A consumer of one queue, one message after the other.
    pub(crate) fn consumer(&self, queue: &str) -> Consumer {
        let lane = LaneConfig::new(queue, Lane::Interactive, 1);
        self.broker.consumer(ConsumerConfig::new(vec![lane]))
    }

    pub(crate) async fn end(self) {
        self.broker.close().await;
        self.namespace.remove().await.unwrap();
    }
}

/// The first attempt of task 7, with a minute left.
pub(crate) fn asked(work: &str, variables: &Value) -> Asked {
    Asked {
        task: 7,
        attempt: 1,
        element: "Activity_1".to_owned(),
        work: work.to_owned(),
        headers: vec![("warehouse".to_owned(), "north".to_owned())],
        variables: variables.as_object().unwrap().clone(),
        expires_ms: now_ms() + 60_000,
    }
}

/// A message without its body.
pub(crate) fn message() -> Inbound<()> {
    Inbound {
        message_id: "m".to_owned(),
        kind: "host.answer.v1".to_owned(),
        queue: "process-runner.interactive".into(),
        exchange: "x.answers".to_owned(),
        lane: Lane::Interactive,
        attempt: 1,
        redelivered: false,
        reply_to: None,
        correlation_id: None,
        traceparent: None,
        authorization: None,
        expires_at_ms: None,
        timestamp_ms: 0,
        body: (),
    }
}
