//! The session with the broker: two connections that live and die together.
//!
//! Publishing and consuming have a connection each, because the broker stops reading from a publishing connection under an
//! alarm, and acks must still get through. Whatever goes wrong anywhere ends the whole session, and the supervisor
//! builds a new one: one explicit path instead of many half-recovered states.

mod broker;
mod link;
mod scratch;
mod supervisor;

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_rs::TokioRuntime;
use lapin::Channel;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use broker::Shared;
pub use broker::{Broker, BrokerError, NotAsked};
pub(crate) use link::{Link, LinkError};
pub use scratch::QueueState;
pub(crate) use scratch::Scratch;

use crate::publisher::slot::{Slot, Slots};
use crate::topology::Object;

/// For how long a job queue that was seen counts as there. Bounds what is lost when one is deleted by hand.
const JOB_QUEUE_SEEN: Duration = Duration::from_mins(1);

/// One session. Whoever holds one may find it failed at any time.
pub(crate) struct Session {
    pub(crate) publish: Link,
    pub(crate) consume: Link,
    pub(crate) slots: Slots,
    pub(crate) replies: Channel,
    pub(crate) blocked: watch::Sender<bool>,
    scratch: Scratch,
    job_queues: Mutex<HashMap<String, Instant>>,
    looking: tokio::sync::Mutex<()>,
    failed: CancellationToken,
    reason: OnceLock<String>,
    handle: Handle,
}

impl Session {
    pub(crate) async fn open(shared: &Shared, endpoint: usize) -> Result<Self, LinkError> {
        let config = &shared.config;
        let uri = &shared.endpoints[endpoint % shared.endpoints.len()];
        let handle = Handle::current();
        let connect = |suffix: &str| {
            let name = format!("{} {suffix}", config.name);
            let runtime = TokioRuntime::tokio_with_handle(handle.clone());
            let uri = uri.clone();
            async move {
                Link::connect(uri, &name, runtime, config.connect_timeout, config.rpc_timeout).await
            }
        };
        let publish = connect("publish").await?;
        let consume = connect("consume").await?;
        let mut slots = Vec::with_capacity(config.publish_channels);
        for _ in 0..config.publish_channels {
            slots.push(Slot::new(publish.confirm_channel().await?));
        }
        let replies = publish.channel().await?;
        Ok(Self {
            publish,
            consume,
            slots: Slots::new(slots),
            replies,
            blocked: watch::Sender::new(false),
            scratch: Scratch::default(),
            job_queues: Mutex::default(),
            looking: tokio::sync::Mutex::new(()),
            failed: CancellationToken::new(),
            reason: OnceLock::new(),
            handle,
        })
    }

    /// Ends the session; only the first reason counts.
    pub(crate) fn fail(&self, reason: impl Display) {
        let _ = self.reason.set(reason.to_string());
        self.failed.cancel();
    }

    pub(crate) async fn failed(&self) {
        self.failed.cancelled().await;
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_cancelled()
    }

    /// Waits while the broker says that it takes no messages. What is written meanwhile would stay in this process and be
    /// delivered at any later time. Returns also when the session has ended.
    pub(crate) async fn unblocked(&self) {
        if !*self.blocked.borrow() {
            return;
        }
        let mut blocked = self.blocked.subscribe();
        tokio::select! {
            _ = blocked.wait_for(|blocked| !*blocked) => {}
            () = self.failed() => {}
        }
    }

    fn reason(&self) -> &str {
        self.reason.get().map_or("asked to stop", String::as_str)
    }

    /// The runtime that the connections live on; work that must outlive its caller is spawned here.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Messages that wait in a queue, or none if there is no such queue.
    pub(crate) async fn depth(&self, queue: &str) -> Result<Option<u32>, LinkError> {
        Ok(self.queue(queue).await?.map(|queue| queue.messages))
    }

    pub(crate) async fn queue(&self, queue: &str) -> Result<Option<QueueState>, LinkError> {
        self.scratch.queue(&self.publish, queue).await
    }

    /// Whether a queue is there and somebody consumes it. Asked anew each time: such a queue goes with its last consumer.
    pub(crate) async fn is_consumed(&self, queue: &str) -> Result<bool, LinkError> {
        self.scratch.is_consumed(&self.publish, queue).await
    }

    pub(crate) async fn exists(&self, object: &Object) -> Result<bool, LinkError> {
        self.scratch.exists(&self.publish, object).await
    }

    /// True if the job queue is there. Asked at most once a minute for each queue, however many want to know.
    pub(crate) async fn has_job_queue(&self, queue: &str) -> Result<bool, LinkError> {
        if self.saw_job_queue(queue) {
            return Ok(true);
        }
        let _turn = self.looking.lock().await;
        if self.saw_job_queue(queue) {
            return Ok(true);
        }
        let found = self.depth(queue).await?.is_some();
        let mut seen = self.job_queues.lock().unwrap_or_else(PoisonError::into_inner);
        if found {
            seen.insert(queue.to_owned(), Instant::now());
        } else {
            seen.remove(queue);
        }
        Ok(found)
    }

    fn saw_job_queue(&self, queue: &str) -> bool {
        let seen = self.job_queues.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(queue).is_some_and(|when| when.elapsed() < JOB_QUEUE_SEEN)
    }

    async fn close(self: Arc<Self>, bound: Duration) {
        tokio::join!(self.publish.close(bound), self.consume.close(bound));
    }
}
