//! Exchanges, queues, bindings and policies as data. `admin` declares them and compares them with a broker.
//!
//! A queue's declaration says only that it is a durable quorum queue. Everything that an operator may want to change is in
//! one policy per class, because exactly one policy applies to a queue. Only keys that RabbitMQ 3.10 and 4.x both know.

mod admin;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use runfleet_domain::retry::Rung;
use runfleet_domain::{Lane, Name};
use serde_json::{Value, json};

pub use admin::{QueueDepth, TopologyAdmin, TopologyError};

use crate::names::{
    self, ANSWER_EXCHANGE, DEAD_EXCHANGE, DEAD_JOBS, DEAD_TASKS, DEAD_UNREADABLE, FACTS_EXCHANGE,
    JOB_EXCHANGE, RETURN_EXCHANGE, TASK_EXCHANGE,
};
use crate::route::Route;

/// Messages that wait in a work queue before more are refused.
pub const WORK_LENGTH_MAX: u32 = 100_000;

/// Messages that wait in one retry queue.
pub const RETRY_LENGTH_MAX: u32 = 200_000;

/// Messages kept in one parking queue. The oldest go first: a full one must not stop work, and its alert is long red.
pub const DEAD_LENGTH_MAX: u32 = 100_000;

/// Bytes kept in one parking queue.
pub const DEAD_BYTES_MAX: u64 = 1 << 30;

/// Messages that wait in the job queue of one project. The dispatcher's own limit is half of it.
pub const JOBS_LENGTH_MAX: u32 = 20_000;

/// Messages that wait in the task queue of one project. A full one refuses: the attempt that was to be asked for has failed.
pub const TASKS_LENGTH_MAX: u32 = 20_000;

/// Calls that wait for the hosts of one version of a project. A full queue refuses, and the caller is told.
pub const CALLS_LENGTH_MAX: u32 = 1_000;

/// How long a call waits for a host, in milliseconds: as long as the longest call may take.
pub const CALLS_TTL_MS: u32 = 30_000;

/// How long a queue of calls without a consumer stays, in milliseconds.
pub const CALLS_EXPIRE_MS: u32 = 300_000;

/// Returns of a message to its queue before the broker gives it up. A net under crash loops, far above what restarts of
/// workers cause; before 4.0 every return counts.
pub const DELIVERY_LIMIT: u32 = 200;

/// Something that must exist.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// An exchange.
    Exchange(String),
    /// A queue.
    Queue(String),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange(name) => write!(f, "exchange `{name}`"),
            Self::Queue(name) => write!(f, "queue `{name}`"),
        }
    }
}

/// How an exchange routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By routing key.
    Direct,
    /// To every bound queue.
    Fanout,
    /// By pattern of the routing key.
    Topic,
}

/// A durable exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeSpec {
    /// Its name.
    pub name: String,
    /// How it routes.
    pub kind: Kind,
}

/// A durable quorum queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name.
    pub name: String,
}

/// A queue bound to an exchange.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingSpec {
    /// The exchange.
    pub exchange: String,
    /// The queue.
    pub queue: String,
    /// The routing key.
    pub key: String,
}

/// What a class of queues has in common beside its type.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySpec {
    /// Its name.
    pub name: String,
    /// Anchored pattern of the names of its queues. No queue matches two.
    pub pattern: String,
    /// Distinct, so that an operator's own policy has a defined place above or below.
    pub priority: i32,
    /// The keys.
    pub definition: BTreeMap<String, Value>,
}

/// Everything the fleet needs in a virtual host, but the queues of projects.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The exchanges.
    pub exchanges: Vec<ExchangeSpec>,
    /// The queues.
    pub queues: Vec<QueueSpec>,
    /// The bindings.
    pub bindings: Vec<BindingSpec>,
    /// The policies.
    pub policies: Vec<PolicySpec>,
}

impl Topology {
    /// What runs in production.
    pub fn standard() -> Self {
        Self::with_delays(Rung::delay)
    }

    /// The same with other waits on the retry queues, for tests that cannot wait for the real ones.
    pub fn with_delays(delay: impl Fn(Rung) -> Duration) -> Self {
        let mut topology = Self {
            exchanges: vec![],
            queues: vec![],
            bindings: vec![],
            policies: policies(&delay),
        };
        for exchange in
            [DEAD_EXCHANGE, RETURN_EXCHANGE, JOB_EXCHANGE, TASK_EXCHANGE, ANSWER_EXCHANGE]
        {
            topology.exchange(exchange, Kind::Direct);
        }
        topology.exchange(FACTS_EXCHANGE, Kind::Topic);
        for route in Route::fixed() {
            topology.exchange(route.exchange(), Kind::Direct);
            let queue = route.queue();
            topology.queue(&queue, &[(route.exchange(), &queue), (RETURN_EXCHANGE, &queue)]);
            topology.queue(&names::dead_queue(&queue), &[(DEAD_EXCHANGE, &queue)]);
        }
        for route in Lane::ALL.into_iter().flat_map(|lane| {
            [
                Route::Answer(lane),
                Route::AgentAnswer(lane),
                Route::JobAnswer(lane),
                Route::StartAnswer(lane),
            ]
        }) {
            topology.bind(route.exchange(), &route.queue());
        }
        topology.queue(DEAD_TASKS, &[(DEAD_EXCHANGE, "tasks")]);
        topology.queue(DEAD_JOBS, &[(DEAD_EXCHANGE, "jobs"), (RETURN_EXCHANGE, DEAD_JOBS)]);
        topology.queue(DEAD_UNREADABLE, &[(DEAD_EXCHANGE, "unreadable")]);
        for rung in Rung::ALL {
            let exchange = names::retry_exchange(rung);
            topology.exchange(exchange, Kind::Fanout);
            topology.queue(&names::retry_queue(rung), &[(exchange, "")]);
        }
        topology
    }

    /// Every exchange and queue, for [`crate::BrokerConfig::required`].
    pub fn objects(&self) -> Vec<Object> {
        let exchanges =
            self.exchanges.iter().map(|exchange| Object::Exchange(exchange.name.clone()));
        exchanges.chain(self.queues.iter().map(|queue| Object::Queue(queue.name.clone()))).collect()
    }

    /// What a process needs that publishes to `routes` and consumes `queues`.
    pub fn objects_for<'a>(
        routes: &[Route],
        queues: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Object> {
        let mut found = Vec::new();
        for route in routes {
            // The default exchange is always there.
            if !route.exchange().is_empty() {
                found.push(Object::Exchange(route.exchange().to_owned()));
            }
            if !route.is_of_project() {
                found.push(Object::Queue(route.queue().into_owned()));
            }
        }
        for queue in queues {
            found.push(Object::Queue(queue.to_owned()));
            found.push(Object::Queue(names::dead_queue(names::park_key(queue))));
            found.push(Object::Exchange(DEAD_EXCHANGE.to_owned()));
            found.push(Object::Exchange(RETURN_EXCHANGE.to_owned()));
            for rung in Rung::ALL {
                found.push(Object::Exchange(names::retry_exchange(rung).to_owned()));
                found.push(Object::Queue(names::retry_queue(rung)));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// The queues of a project with their bindings: jobs and tasks.
    pub fn of_project(workspace: &Name, project: &Name) -> [(QueueSpec, [BindingSpec; 2]); 2] {
        let (workspace, project) = (workspace.clone(), project.clone());
        let routes = [
            Route::Job { workspace: workspace.clone(), project: project.clone() },
            Route::Task { workspace, project },
        ];
        routes.map(|route| {
            let queue = route.queue();
            let bindings =
                [route.exchange(), RETURN_EXCHANGE].map(|exchange| binding(exchange, &queue));
            (QueueSpec { name: queue.into_owned() }, bindings)
        })
    }

    /// The policy of this name, to change a limit of it.
    pub fn policy_mut(&mut self, name: &str) -> Option<&mut PolicySpec> {
        self.policies.iter_mut().find(|policy| policy.name == name)
    }

    fn bind(&mut self, exchange: &str, queue: &str) {
        self.bindings.push(binding(exchange, queue));
    }

    fn exchange(&mut self, name: &str, kind: Kind) {
        if !self.exchanges.iter().any(|exchange| exchange.name == name) {
            self.exchanges.push(ExchangeSpec { name: name.to_owned(), kind });
        }
    }

    fn queue(&mut self, name: &str, bindings: &[(&str, &str)]) {
        self.queues.push(QueueSpec { name: name.to_owned() });
        for (exchange, key) in bindings {
            let (exchange, key) = ((*exchange).to_owned(), (*key).to_owned());
            self.bindings.push(BindingSpec { exchange, queue: name.to_owned(), key });
        }
    }
}

/// A queue under its own name.
fn binding(exchange: &str, queue: &str) -> BindingSpec {
    BindingSpec { exchange: exchange.to_owned(), queue: queue.to_owned(), key: queue.to_owned() }
}

fn policies(delay: &impl Fn(Rung) -> Duration) -> Vec<PolicySpec> {
    let mut found = vec![
        policy("runfleet-work", work_pattern(), 10, parked(WORK_LENGTH_MAX, None)),
        policy("runfleet-jobs", r"^jobs\.".to_owned(), 20, parked(JOBS_LENGTH_MAX, Some("jobs"))),
        policy(
            "runfleet-tasks",
            r"^tasks\.".to_owned(),
            25,
            parked(TASKS_LENGTH_MAX, Some("tasks")),
        ),
        policy("runfleet-dead", r"^dead\.".to_owned(), 30, dead()),
        policy("runfleet-calls", r"^calls\.".to_owned(), 28, calls()),
    ];
    for (rung, priority) in Rung::ALL.into_iter().zip(40..) {
        let word = rung.as_str();
        let mut definition = at_least_once(RETRY_LENGTH_MAX, RETURN_EXCHANGE);
        let wait = u64::try_from(delay(rung).as_millis()).unwrap_or(u64::MAX);
        definition.insert("message-ttl".to_owned(), json!(wait));
        found.push(policy(
            &format!("runfleet-retry-{word}"),
            format!(r"^retry\.{word}$"),
            priority,
            definition,
        ));
    }
    found
}

fn policy(
    name: &str,
    pattern: String,
    priority: i32,
    definition: BTreeMap<String, Value>,
) -> PolicySpec {
    PolicySpec { name: name.to_owned(), pattern, priority, definition }
}

fn work_pattern() -> String {
    let mut workers: Vec<_> = Route::fixed()
        .filter_map(|route| route.queue().split_once('.').map(|(worker, _)| worker.to_owned()))
        .collect();
    let mut known = HashSet::new();
    workers.retain(|worker| known.insert(worker.clone()));
    let lines = "interactive|backfill|quarantine|calls|calls-backfill|turns|turns-backfill|tools|tools-backfill";
    format!(r"^({})\.({lines})$", workers.join("|"))
}

/// Messages that the broker gives up go to the parking queue, and none is lost on the way: that needs a refusing queue.
fn parked(length_max: u32, key: Option<&str>) -> BTreeMap<String, Value> {
    let mut definition = at_least_once(length_max, DEAD_EXCHANGE);
    if let Some(key) = key {
        definition.insert("dead-letter-routing-key".to_owned(), json!(key));
    }
    definition
}

fn at_least_once(length_max: u32, exchange: &str) -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("delivery-limit".to_owned(), json!(DELIVERY_LIMIT)),
        ("max-length".to_owned(), json!(length_max)),
        ("overflow".to_owned(), json!("reject-publish")),
        ("dead-letter-exchange".to_owned(), json!(exchange)),
        ("dead-letter-strategy".to_owned(), json!("at-least-once")),
    ])
}

/// Queues of hosts, with messages for which somebody waits. What nobody takes in time is gone, and a queue that nobody consumes too.
fn calls() -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("max-length".to_owned(), json!(CALLS_LENGTH_MAX)),
        ("overflow".to_owned(), json!("reject-publish")),
        ("message-ttl".to_owned(), json!(CALLS_TTL_MS)),
        ("expires".to_owned(), json!(CALLS_EXPIRE_MS)),
    ])
}

fn dead() -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("delivery-limit".to_owned(), json!(DELIVERY_LIMIT)),
        ("max-length".to_owned(), json!(DEAD_LENGTH_MAX)),
        ("max-length-bytes".to_owned(), json!(DEAD_BYTES_MAX)),
        ("overflow".to_owned(), json!("drop-head")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_queue_has_its_way_in_back_and_out() {
        let topology = Topology::standard();
        for route in Route::fixed() {
            let queue = route.queue();
            for exchange in [route.exchange(), RETURN_EXCHANGE] {
                let wanted = BindingSpec {
                    exchange: exchange.to_owned(),
                    queue: queue.to_string(),
                    key: queue.to_string(),
                };
                assert!(topology.bindings.contains(&wanted), "{wanted:?}");
            }
            assert!(topology.objects().contains(&Object::Queue(names::dead_queue(&queue))));
        }
    }

    #[test]
    fn names_patterns_and_priorities_are_distinct() {
        let topology = Topology::standard();
        let queues: HashSet<_> = topology.queues.iter().map(|queue| &queue.name).collect();
        assert_eq!(queues.len(), topology.queues.len());
        let priorities: HashSet<_> =
            topology.policies.iter().map(|policy| policy.priority).collect();
        assert_eq!(priorities.len(), topology.policies.len());
        assert!(topology.policies.iter().all(|policy| policy.pattern.starts_with('^')));
    }

    #[test]
    fn the_work_policy_names_the_five_workers() {
        assert_eq!(
            work_pattern(),
            r"^(start-intake|process-runner|agent-runner|delivery|completion-dispatcher)\.(interactive|backfill|quarantine|calls|calls-backfill|turns|turns-backfill|tools|tools-backfill)$"
        );
    }

    #[test]
    fn answers_reach_both_lanes_of_who_has_asked_and_nothing_else() {
        let topology = Topology::standard();
        let mut queues: Vec<_> = topology
            .bindings
            .iter()
            .filter(|binding| binding.exchange == ANSWER_EXCHANGE)
            .map(|binding| (binding.queue.as_str(), binding.key.as_str()))
            .collect();
        queues.sort_unstable();
        let lanes = [
            "agent-runner.backfill",
            "agent-runner.interactive",
            "completion-dispatcher.backfill",
            "completion-dispatcher.interactive",
            "process-runner.backfill",
            "process-runner.interactive",
            "start-intake.backfill",
            "start-intake.interactive",
        ];
        assert_eq!(queues, lanes.map(|queue| (queue, queue)));
    }

    #[test]
    fn a_project_has_a_queue_for_jobs_and_one_for_tasks() {
        let [jobs, tasks] =
            Topology::of_project(&"acme".parse().unwrap(), &"shop".parse().unwrap());
        assert_eq!(
            (jobs.0.name.as_str(), tasks.0.name.as_str()),
            ("jobs.acme.shop", "tasks.acme.shop")
        );
        for ((queue, bindings), exchange) in [(jobs, JOB_EXCHANGE), (tasks, TASK_EXCHANGE)] {
            let wanted = [exchange, RETURN_EXCHANGE].map(|exchange| binding(exchange, &queue.name));
            assert_eq!(bindings, wanted);
        }
    }

    #[test]
    fn a_consumer_needs_the_ladder_and_its_parking_queue() {
        let needs =
            Topology::objects_for(&[Route::Done(runfleet_domain::Lane::Backfill)], ["dead.jobs"]);
        for name in ["completion-dispatcher.backfill", "dead.jobs", "dead.unreadable", "retry.1h"] {
            assert!(needs.contains(&Object::Queue(name.to_owned())), "{name}");
        }
    }
}
