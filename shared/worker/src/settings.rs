//! Settings that all workers share: where broker and ledger are, how much at once, how patient.

use std::time::Duration;

use runfleet_broker::BrokerConfig;
use runfleet_domain::limits::{ALARM_HANDOVER, ALARM_UNCLAIMED, CHAT_RETENTION, LEASE};
use runfleet_runtime::Env;
use runfleet_store::{StoreConfig, Timings};

/// How long the broker waits for an acknowledgement before it closes the channel, where nobody has changed it.
const BROKER_ACK_TIMEOUT: Duration = Duration::from_mins(30);

/// What every worker is told.
#[derive(Debug)]
pub struct Settings {
    /// The broker.
    pub broker: BrokerConfig,
    /// The ledger.
    pub store: StoreConfig,
    /// Messages in hand at once, interactive lane.
    pub prefetch_interactive: u16,
    /// Messages in hand at once, backfill lane.
    pub prefetch_backfill: u16,
    /// How long one message may be worked on.
    pub handler_timeout: Duration,
    /// How often overdue alarms are looked for.
    pub sweep_every: Duration,
    /// How often the catalog is asked for changes.
    pub catalog_every: Duration,
}

/// The part that finds the ledger: shared with the command line.
pub fn store_from_env(env: &mut Env) -> Option<StoreConfig> {
    let url = env.secret(
        "RUNFLEET_REDIS_URL",
        "Redis: redis://, rediss://, redis-sentinel://host,host/?master=NAME or redis-cluster://host,host.",
    );
    let namespace = env.or(
        "RUNFLEET_NAMESPACE",
        "runfleet".to_owned(),
        "Prefix of every Redis key: separates fleets on one Redis.",
    );
    let connections =
        env.or("RUNFLEET_REDIS_CONNECTIONS", 4_usize, "Shared connections to Redis, 1 to 64.");
    let lease = env.millis_or(
        "RUNFLEET_LEASE_MS",
        LEASE,
        "How long one claim of a run lasts without renewal.",
    );
    let unclaimed = env.millis_or(
        "RUNFLEET_ALARM_UNCLAIMED_MS",
        ALARM_UNCLAIMED,
        "When a start that no runner has claimed is published again; doubles each time.",
    );
    let handover = env.millis_or(
        "RUNFLEET_ALARM_HANDOVER_MS",
        ALARM_HANDOVER,
        "When an outcome that is not handed over, or a job that has not ended, is published again; doubles each time.",
    );
    let retention = env.millis_or(
        "RUNFLEET_CHAT_RETENTION_MS",
        CHAT_RETENTION,
        "How long a conversation is kept after its last message.",
    );
    let mut config = StoreConfig::new(url?, namespace?);
    config.chat_retention = retention?;
    config.connections = connections?;
    config.timings =
        Timings { lease: lease?, alarm_unclaimed: unclaimed?, alarm_handover: handover? };
    Some(config)
}

/// The part that finds the broker: shared with the command line.
pub fn broker_from_env(env: &mut Env, name: &str) -> Option<BrokerConfig> {
    let urls = env.secret(
        "RUNFLEET_AMQP_URL",
        "RabbitMQ; several endpoints of one cluster are separated by commas.",
    );
    let lost_after = env.millis_or(
        "RUNFLEET_AMQP_LOST_AFTER_MS",
        Duration::from_mins(5),
        "How long the broker may be away until the process exits with 70, to be started afresh.",
    );
    let channels = env.or(
        "RUNFLEET_AMQP_PUBLISH_CHANNELS",
        2_usize,
        "Channels to publish on, 1 to 64. The broker confirms in larger groups when they are few.",
    );
    let mut config = BrokerConfig::new(urls?, name);
    config.lost_after = lost_after?;
    config.publish_channels = channels?;
    Some(config)
}

impl Settings {
    /// Reads all of them.
    pub fn from_env(env: &mut Env, worker: &'static str) -> Option<Self> {
        let broker = broker_from_env(env, worker);
        let store = store_from_env(env);
        let prefetch_interactive = env.or(
            "RUNFLEET_PREFETCH_INTERACTIVE",
            192_u16,
            "Messages in hand at once, interactive lane.",
        );
        let prefetch_backfill = env.or(
            "RUNFLEET_PREFETCH_BACKFILL",
            64_u16,
            "Messages in hand at once, backfill lane.",
        );
        let handler_timeout = env.millis_or(
            "RUNFLEET_HANDLER_TIMEOUT_MS",
            Duration::from_secs(30),
            "How long one message may be worked on.",
        );
        let sweep_every = env.millis_or(
            "RUNFLEET_SWEEP_EVERY_MS",
            Duration::from_secs(1),
            "How often overdue alarms are looked for.",
        );
        let catalog_every = env.millis_or(
            "RUNFLEET_CATALOG_EVERY_MS",
            Duration::from_millis(500),
            "How often the catalog is asked for changes.",
        );
        for (name, prefetch) in [
            ("RUNFLEET_PREFETCH_INTERACTIVE", prefetch_interactive),
            ("RUNFLEET_PREFETCH_BACKFILL", prefetch_backfill),
        ] {
            env.check(
                prefetch.is_none_or(|n| (1..=2_000).contains(&n)),
                format!("{name} must be 1 to 2000"),
            );
        }
        env.check(
            handler_timeout.is_none_or(|timeout| timeout < BROKER_ACK_TIMEOUT),
            "RUNFLEET_HANDLER_TIMEOUT_MS must be shorter than the broker's acknowledgement timeout of 30 minutes",
        );
        Some(Self {
            broker: broker?,
            store: store?,
            prefetch_interactive: prefetch_interactive?,
            prefetch_backfill: prefetch_backfill?,
            handler_timeout: handler_timeout?,
            sweep_every: sweep_every?,
            catalog_every: catalog_every?,
        })
    }
}
