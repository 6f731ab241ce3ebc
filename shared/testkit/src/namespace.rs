//! The servers that a test uses, and its own place on them.

use std::time::Duration;

use anyhow::{Context, Result};
use runfleet_broker::{Management, Topology, TopologyAdmin};
use runfleet_runtime::Env;
use runfleet_store::{Store, StoreConfig};
use secrecy::{ExposeSecret, SecretString};
use ulid::Ulid;

/// Addresses of the RabbitMQ and Redis that tests may use.
#[derive(Debug, Clone)]
pub struct Servers {
    /// AMQP URL, with any virtual host.
    pub amqp: SecretString,
    /// Management URL of the same broker.
    pub management: SecretString,
    /// Redis URL.
    pub redis: SecretString,
}

const MISSING: &str =
    "run `make test`, or source the services.env of `deploy/local/services start DIR`";

impl Servers {
    /// From the environment. Missing variables are an error that says what to do: a test is never skipped.
    pub fn from_env() -> Result<Self> {
        Self::read(&mut Env::from_process())
    }

    /// From the text of a `services.env` file.
    pub fn from_file(text: &str) -> Result<Self> {
        Self::read(&mut Env::from_map(text.lines().filter_map(|line| line.split_once('='))))
    }

    fn read(env: &mut Env) -> Result<Self> {
        let amqp = env.secret("RUNFLEET_AMQP_URL", "RabbitMQ for tests.");
        let management = env.secret("RUNFLEET_AMQP_MANAGEMENT_URL", "Management of that RabbitMQ.");
        let redis = env.secret("RUNFLEET_REDIS_URL", "Redis for tests.");
        env.finish().context(MISSING)?;
        Ok(Self {
            amqp: amqp.context(MISSING)?,
            management: management.context(MISSING)?,
            redis: redis.context(MISSING)?,
        })
    }
}

/// A virtual host and a key prefix that nobody else uses.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// Name of both.
    pub name: String,
    /// AMQP URL of the virtual host.
    pub amqp: SecretString,
    servers: Servers,
}

impl Namespace {
    /// Makes the virtual host; with `topology`, declares it there.
    pub async fn new(servers: Servers, topology: Option<&Topology>) -> Result<Self> {
        let name = format!("test-{}", Ulid::generate().to_string().to_lowercase());
        let management = Management::new(&servers.management)?;
        management.put_vhost(&name, management.user()).await.context("making a virtual host")?;
        let url = servers.amqp.expose_secret();
        let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
        let amqp = SecretString::from(format!("{server}/{name}"));
        if let Some(topology) = topology {
            TopologyAdmin::new(amqp.clone(), management, topology.clone())?
                .apply()
                .await
                .context("declaring the topology")?;
        }
        Ok(Self { name, amqp, servers })
    }

    /// Address of the ledger.
    pub fn redis(&self) -> &SecretString {
        &self.servers.redis
    }

    /// Address of the management interface.
    pub fn management(&self) -> &SecretString {
        &self.servers.management
    }

    /// A store of this namespace.
    pub fn store(&self) -> Result<Store> {
        let config = StoreConfig::new(self.servers.redis.clone(), self.name.clone());
        Store::open(&config, &prometheus::Registry::new()).context("preparing the ledger")
    }

    /// Removes both. Not in `Drop`: it takes requests over the network, and a test that failed keeps its traces.
    pub async fn remove(self) -> Result<()> {
        self.store()?.delete_namespace().await?;
        let management = Management::new(&self.servers.management)?;
        // A broker that has just come back from a crash may say no for a while: its queues elect leaders first.
        for _ in 0..40 {
            if management.delete_vhost(&self.name).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(management.delete_vhost(&self.name).await?)
    }
}
