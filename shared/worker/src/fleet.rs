//! From settings to a connected worker: broker, ledger, catalog, readiness, consumer, sweeper.

use std::time::Duration;

use anyhow::{Context, Result};
use prometheus::{IntCounterVec, Opts};
use runfleet_broker::{
    Broker, ConsumerConfig, ConsumerError, Drained, Failure, Inbound, Inbox, LaneConfig, Publisher,
    Verdict,
};
use runfleet_domain::Lane;
use runfleet_domain::limits::BODY_BYTES_MAX;
use runfleet_runtime::{Lost, Process};
use runfleet_store::{AlarmSet, Store};
use tokio::task::JoinHandle;

use crate::catalog::CatalogCache;
use crate::settings::Settings;
use crate::sweeper::Sweeper;

/// How long a worker waits for the ledger when it starts, before it gives up and is started afresh.
const LEDGER_WITHIN: Duration = Duration::from_mins(1);

/// A connected worker.
pub struct Fleet {
    /// The frame.
    pub process: Process,
    /// To publish.
    pub publisher: Publisher,
    /// The ledger.
    pub store: Store,
    /// The catalog in memory.
    pub catalog: CatalogCache,
    broker: Broker,
    settings: Settings,
    /// Consumers beside the one of [`Fleet::consume`].
    beside: Vec<JoinHandle<Result<Drained, ConsumerError>>>,
}

impl Fleet {
    /// Connects to ledger and broker and keeps readiness true to both.
    pub async fn connect(settings: Settings, process: Process) -> Result<Self> {
        process.readiness.declare(&["ledger", "broker"]);
        let store = connect_store(&settings, &process).await?;
        let broker = Broker::start(settings.broker.clone(), &process.registry)
            .context("starting the broker session")?;
        let catalog = CatalogCache::new(store.clone());
        let follow = catalog.clone().follow(settings.catalog_every, process.shutdown.clone());
        process.tasks.spawn(follow);
        process.tasks.spawn(watch_broker(broker.clone(), process.clone()));
        process.tasks.spawn(watch_ledger(store.clone(), process.clone()));
        let publisher = broker.publisher();
        Ok(Self { publisher, store, catalog, broker, settings, process, beside: Vec::new() })
    }

    /// The queues of this worker in the given lanes, with their prefetch.
    pub fn lanes(&self, lanes: &[Lane]) -> Vec<LaneConfig> {
        lanes
            .iter()
            .map(|lane| {
                let prefetch = match lane {
                    Lane::Interactive => self.settings.prefetch_interactive,
                    Lane::Backfill => self.settings.prefetch_backfill,
                };
                LaneConfig::new(format!("{}.{lane}", self.process.worker), *lane, prefetch)
            })
            .collect()
    }

    /// Sweeps one set of alarms in the background.
    pub fn sweep(&self, set: AlarmSet) -> Result<()> {
        let woken = IntCounterVec::new(
            Opts::new(
                "runfleet_alarms_total",
                "Overdue alarms whose message was published again, by kind and result.",
            ),
            &["kind", "result"],
        )?;
        self.process.registry.register(Box::new(woken.clone()))?;
        for kind in ["advance", "outcome", "job", "message"] {
            for result in ["published", "failed"] {
                woken.with_label_values(&[kind, result]);
            }
        }
        let sweeper = Sweeper {
            store: self.store.clone(),
            publisher: self.publisher.clone(),
            connected: self.broker.connected(),
            set,
            every: self.settings.sweep_every,
            woken,
        };
        self.process.tasks.spawn(sweeper.run(self.process.shutdown.clone()));
        Ok(())
    }

    /// The broker, for whoever asks about queues.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Handles messages of further lanes, each of which may be worked on for `handler_timeout`, until the process is asked to
    /// stop; then drains beside [`Fleet::consume`], which waits for it.
    pub fn consume_beside<I, F, Fut>(
        &mut self,
        lanes: Vec<LaneConfig>,
        handler_timeout: Duration,
        handler: F,
    ) where
        I: Inbox,
        F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Verdict, Failure>> + Send + 'static,
    {
        self.consume_large(lanes, handler_timeout, BODY_BYTES_MAX, handler);
    }

    /// The same for bodies of at most `body_bytes_max`.
    pub fn consume_large<I, F, Fut>(
        &mut self,
        lanes: Vec<LaneConfig>,
        handler_timeout: Duration,
        body_bytes_max: usize,
        handler: F,
    ) where
        I: Inbox,
        F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Verdict, Failure>> + Send + 'static,
    {
        let mut config = ConsumerConfig::new(lanes);
        config.handler_timeout = handler_timeout;
        config.body_bytes_max = body_bytes_max;
        let consumer = self.broker.consumer(config);
        let (shutdown, grace) = (self.process.shutdown.clone(), self.process.grace);
        let running = async move { consumer.run::<I, _, _>(handler, shutdown, grace).await };
        self.beside.push(self.process.tasks.spawn(running));
    }

    /// Handles messages until the process is asked to stop, then drains. Ends with [`Lost`] when the broker stays away.
    pub async fn consume<I, F, Fut>(self, lanes: Vec<LaneConfig>, handler: F) -> Result<()>
    where
        I: Inbox,
        F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Verdict, Failure>> + Send + 'static,
    {
        let mut config = ConsumerConfig::new(lanes);
        config.handler_timeout = self.settings.handler_timeout;
        let consumer = self.broker.consumer(config);
        let (shutdown, grace) = (self.process.shutdown.clone(), self.process.grace);
        let drained = tokio::select! {
            drained = consumer.run::<I, _, _>(handler, shutdown, grace) => drained.context("consuming")?,
            () = self.broker.lost() => return Err(Lost("rabbitmq").into()),
        };
        tracing::info!(finished = drained.finished, requeued = drained.requeued, "drained");
        for running in self.beside {
            let drained = running.await.context("waiting for a consumer")?.context("consuming")?;
            tracing::info!(finished = drained.finished, requeued = drained.requeued, "drained");
        }
        self.broker.close().await;
        Ok(())
    }
}

/// Connects, patiently: a worker is often started together with its servers.
async fn connect_store(settings: &Settings, process: &Process) -> Result<Store> {
    let store = Store::open(&settings.store, &process.registry).context("preparing the ledger")?;
    let until = tokio::time::Instant::now() + LEDGER_WITHIN;
    let mut wait = Duration::from_millis(100);
    loop {
        match store.ping().await {
            Ok(()) => {
                process.readiness.set("ledger", true);
                return Ok(store);
            }
            Err(error) if error.is_transient() && tokio::time::Instant::now() < until => {
                tracing::warn!(%error, "the ledger is not there yet");
            }
            Err(error) => return Err(error).context("connecting to redis"),
        }
        if process.shutdown.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            anyhow::bail!("asked to stop before redis was there");
        }
        wait = (wait * 2).min(Duration::from_secs(2));
    }
}

async fn watch_broker(broker: Broker, process: Process) {
    let mut connected = broker.connected();
    loop {
        let now = *connected.borrow_and_update();
        process.readiness.set("broker", now);
        match process.shutdown.run_until_cancelled(connected.changed()).await {
            Some(Ok(())) => {}
            Some(Err(_)) | None => return,
        }
    }
}

async fn watch_ledger(store: Store, process: Process) {
    while process
        .shutdown
        .run_until_cancelled(tokio::time::sleep(Duration::from_secs(2)))
        .await
        .is_some()
    {
        process.readiness.set("ledger", store.ping().await.is_ok());
    }
}
