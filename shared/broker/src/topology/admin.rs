//! Declares the topology in a broker and compares it with what is there. Needs the configure right, which workers have not.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_rs::TokioRuntime;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};
use runfleet_domain::Name;
use secrecy::SecretString;

use super::{BindingSpec, ExchangeSpec, Kind, Object, PolicySpec, QueueSpec, Topology};
use crate::config::{ConfigError, endpoints};
use crate::management::{Management, ManagementError, Policy};
use crate::names;
use crate::outgoing::{short, text};
use crate::session::{Link, LinkError, Scratch};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Declaring a quorum queue starts a small cluster, so this is generous.
const DECLARE_TIMEOUT: Duration = Duration::from_secs(30);

const CLOSE_BOUND: Duration = Duration::from_secs(2);

/// Why the topology could not be declared or compared.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The AMQP URL can never work.
    #[error("broker configuration: {0}")]
    Config(#[from] ConfigError),
    /// A name has more than 255 bytes.
    #[error("a name in the topology has more than 255 bytes")]
    Name,
    /// AMQP did not work.
    #[error("{doing}: {problem}")]
    Amqp {
        /// What was being done.
        doing: String,
        /// What the broker or the socket said.
        problem: String,
    },
    /// The management API did not work.
    #[error("{0}")]
    Management(#[from] ManagementError),
}

/// Messages of one queue, some seconds old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDepth {
    /// The queue.
    pub queue: String,
    /// Messages that wait.
    pub ready: u64,
    /// Messages that a consumer holds.
    pub unacked: u64,
    /// Consumers.
    pub consumers: u64,
}

/// Declares and compares a topology.
#[derive(Debug, Clone)]
pub struct TopologyAdmin {
    urls: SecretString,
    vhost: String,
    management: Management,
    topology: Topology,
}

impl TopologyAdmin {
    /// Works on the virtual host that the first of `urls` names.
    pub fn new(
        urls: SecretString,
        management: Management,
        topology: Topology,
    ) -> Result<Self, TopologyError> {
        let vhost = endpoints(&urls, Duration::from_secs(10))?.swap_remove(0).vhost;
        Ok(Self { urls, vhost, management, topology })
    }

    /// Declares everything. May be repeated; a queue or exchange of another type is an error, and is left as it is.
    pub async fn apply(&self) -> Result<(), TopologyError> {
        // The policies first, so that no queue ever takes a message without its bounds.
        for policy in &self.topology.policies {
            self.management.put_policy(&self.vhost, &as_policy(policy)).await?;
        }
        self.on_channel(async |link, channel| {
            for exchange in &self.topology.exchanges {
                declare_exchange(link, channel, exchange).await?;
            }
            for queue in &self.topology.queues {
                declare_queue(link, channel, queue).await?;
            }
            for binding in &self.topology.bindings {
                bind(link, channel, binding).await?;
            }
            Ok(())
        })
        .await
    }

    /// Declares the queues of a project: jobs and tasks.
    pub async fn apply_job_queue(
        &self,
        workspace: &Name,
        project: &Name,
    ) -> Result<(), TopologyError> {
        let queues = Topology::of_project(workspace, project);
        self.on_channel(async |link, channel| {
            for (queue, bindings) in &queues {
                declare_queue(link, channel, queue).await?;
                for binding in bindings {
                    bind(link, channel, binding).await?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Declares the queue of calls of a version of a project, as hosts do it. It goes when its last consumer has gone.
    pub async fn declare_call_queue(
        &self,
        workspace: &Name,
        project: &Name,
        version: &str,
    ) -> Result<(), TopologyError> {
        let queue = names::call_queue(workspace, project, version);
        self.on_channel(async |link, channel| {
            let arguments = FieldTable::from(BTreeMap::from([(
                ShortString::from("x-queue-type"),
                text("classic"),
            )]));
            let options = QueueDeclareOptions {
                durable: true,
                auto_delete: true,
                ..QueueDeclareOptions::default()
            };
            let declaring = channel.queue_declare(name(&queue)?, options, arguments);
            let declared = link.bounded(declaring).await;
            declared.map_err(|error| failed(format!("declaring queue `{queue}`"), &error))?;
            Ok(())
        })
        .await
    }

    /// What is missing, as a process that only connects would see it.
    pub async fn verify(&self) -> Result<Vec<Object>, TopologyError> {
        let mut missing = Vec::new();
        self.on_channel(async |link, _channel| {
            let scratch = Scratch::default();
            for object in self.topology.objects() {
                let doing = || format!("looking for {object}");
                if !scratch.exists(link, &object).await.map_err(|error| failed(doing(), &error))? {
                    missing.push(object);
                }
            }
            Ok(())
        })
        .await?;
        Ok(missing)
    }

    /// What differs between the broker and what is wanted: one sentence each, nothing if all is well.
    pub async fn diff(&self) -> Result<Vec<String>, TopologyError> {
        let mut found = self.diff_exchanges().await?;
        found.extend(self.diff_queues().await?);
        found.extend(self.diff_bindings().await?);
        found.extend(self.diff_policies().await?);
        Ok(found)
    }

    /// The fleet's queues with what is in them, those of projects too.
    pub async fn show(&self) -> Result<Vec<QueueDepth>, TopologyError> {
        let ours: HashSet<&str> =
            self.topology.queues.iter().map(|queue| queue.name.as_str()).collect();
        let queues = self.management.queues(&self.vhost).await?;
        let ours = queues.into_iter().filter(|queue| {
            ours.contains(queue.name.as_str()) || names::is_of_project(&queue.name)
        });
        Ok(ours
            .map(|queue| QueueDepth {
                queue: queue.name,
                ready: queue.messages_ready,
                unacked: queue.messages_unacknowledged,
                consumers: queue.consumers,
            })
            .collect())
    }

    async fn diff_exchanges(&self) -> Result<Vec<String>, TopologyError> {
        let there = self.management.exchanges(&self.vhost).await?;
        let wanted = self.topology.exchanges.iter();
        Ok(wanted
            .filter_map(|exchange| match there.iter().find(|found| found.name == exchange.name) {
                None => Some(format!("exchange `{}` is missing", exchange.name)),
                Some(found) if found.kind != exchange.kind.word() || !found.durable => {
                    Some(format!(
                        "exchange `{}` is not a durable {} exchange",
                        exchange.name,
                        exchange.kind.word()
                    ))
                }
                Some(_) => None,
            })
            .collect())
    }

    async fn diff_queues(&self) -> Result<Vec<String>, TopologyError> {
        let there = self.management.declared_queues(&self.vhost).await?;
        let mut differences = Vec::new();
        for queue in &self.topology.queues {
            match there.iter().find(|found| found.name == queue.name) {
                None => differences.push(format!("queue `{}` is missing", queue.name)),
                Some(found) => differences.extend(self.diff_queue(found)),
            }
        }
        let of_projects = there.iter().filter(|queue| names::is_of_project(&queue.name));
        differences.extend(of_projects.filter_map(|queue| self.diff_queue(queue)));
        Ok(differences)
    }

    fn diff_queue(&self, found: &crate::management::Queue) -> Option<String> {
        if found.kind != "quorum" {
            return Some(format!("queue `{}` is a {} queue", found.name, found.kind));
        }
        let policy = found.policy.as_deref().unwrap_or("none");
        let ours = self.topology.policies.iter().any(|wanted| wanted.name == policy);
        (!ours).then(|| {
            format!(
                "queue `{}` has the policy `{policy}`, which is not one of the fleet",
                found.name
            )
        })
    }

    async fn diff_bindings(&self) -> Result<Vec<String>, TopologyError> {
        let mut there = HashSet::new();
        for exchange in &self.topology.exchanges {
            for found in self.management.bindings(&self.vhost, &exchange.name).await? {
                there.insert((found.source, found.destination, found.routing_key));
            }
        }
        let wanted = self.topology.bindings.iter();
        Ok(wanted
            .filter(|binding| {
                !there.contains(&(
                    binding.exchange.clone(),
                    binding.queue.clone(),
                    binding.key.clone(),
                ))
            })
            .map(|binding| {
                let BindingSpec { exchange, queue, key } = binding;
                format!("queue `{queue}` is not bound to `{exchange}` under `{key}`")
            })
            .collect())
    }

    async fn diff_policies(&self) -> Result<Vec<String>, TopologyError> {
        let there = self.management.policies(&self.vhost).await?;
        let wanted = self.topology.policies.iter().map(as_policy);
        Ok(wanted
            .filter_map(|policy| match there.iter().find(|found| found.name == policy.name) {
                None => Some(format!("policy `{}` is missing", policy.name)),
                Some(found) if *found != policy => {
                    Some(format!("policy `{}` is different", policy.name))
                }
                Some(_) => None,
            })
            .collect())
    }

    async fn on_channel(
        &self,
        work: impl AsyncFnOnce(&Link, &Channel) -> Result<(), TopologyError>,
    ) -> Result<(), TopologyError> {
        let mut problem = None;
        for uri in endpoints(&self.urls, Duration::from_secs(10))? {
            let runtime = TokioRuntime::tokio_current();
            match Link::connect(uri, "runfleet topology", runtime, CONNECT_TIMEOUT, DECLARE_TIMEOUT)
                .await
            {
                Ok(link) => {
                    let channel = link
                        .channel()
                        .await
                        .map_err(|error| failed("opening a channel", &error))?;
                    let done = work(&link, &channel).await;
                    link.close(CLOSE_BOUND).await;
                    return done;
                }
                Err(error) => problem = Some(error),
            }
        }
        Err(failed("connecting", &problem.unwrap_or(LinkError::TimedOut)))
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
        }
    }
}

fn failed(doing: impl Into<String>, error: &LinkError) -> TopologyError {
    TopologyError::Amqp { doing: doing.into(), problem: error.to_string() }
}

fn name(value: &str) -> Result<ShortString, TopologyError> {
    short(value).map_err(|_| TopologyError::Name)
}

fn as_policy(spec: &PolicySpec) -> Policy {
    Policy {
        name: spec.name.clone(),
        pattern: spec.pattern.clone(),
        priority: spec.priority,
        apply_to: "queues".to_owned(),
        definition: spec.definition.clone(),
    }
}

async fn declare_exchange(
    link: &Link,
    channel: &Channel,
    exchange: &ExchangeSpec,
) -> Result<(), TopologyError> {
    let kind = match exchange.kind {
        Kind::Direct => ExchangeKind::Direct,
        Kind::Fanout => ExchangeKind::Fanout,
        Kind::Topic => ExchangeKind::Topic,
    };
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declaring =
        channel.exchange_declare(name(&exchange.name)?, kind, options, FieldTable::default());
    link.bounded(declaring)
        .await
        .map_err(|error| failed(format!("declaring exchange `{}`", exchange.name), &error))
}

async fn declare_queue(
    link: &Link,
    channel: &Channel,
    queue: &QueueSpec,
) -> Result<(), TopologyError> {
    let mut arguments = FieldTable::default();
    let kind: AMQPValue = text("quorum");
    arguments.insert("x-queue-type".into(), kind);
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declaring = channel.queue_declare(name(&queue.name)?, options, arguments);
    link.bounded(declaring)
        .await
        .map_err(|error| failed(format!("declaring queue `{}`", queue.name), &error))?;
    Ok(())
}

async fn bind(link: &Link, channel: &Channel, binding: &BindingSpec) -> Result<(), TopologyError> {
    let BindingSpec { exchange, queue, key } = binding;
    let options = QueueBindOptions::default();
    let binding = channel.queue_bind(
        name(queue)?,
        name(exchange)?,
        name(key)?,
        options,
        FieldTable::default(),
    );
    link.bounded(binding)
        .await
        .map_err(|error| failed(format!("binding queue `{queue}` to `{exchange}`"), &error))
}
