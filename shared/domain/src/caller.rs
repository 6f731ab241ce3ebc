//! Who makes a call: what the execution token says, as far as rules need it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Name;

/// What kind of execution of project code makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A script called by a person or a client.
    Script,
    /// An HTTP route.
    Route,
    /// A trigger before a change is stored: may not start anything.
    TriggerBefore,
    /// A trigger after a change was stored.
    TriggerAfter,
    /// A background job.
    Job,
    /// A custom module action.
    Action,
    /// An inbound webhook.
    Webhook,
    /// A schedule.
    Schedule,
    /// A backfill: long-lived, without the counts per execution.
    Batch,
    /// Local development.
    Development,
    /// A host of the project, which holds a project key: it registers versions and starts nothing.
    Host,
}

impl Source {
    /// Every kind of execution.
    pub const ALL: [Self; 11] = [
        Self::Script,
        Self::Route,
        Self::TriggerBefore,
        Self::TriggerAfter,
        Self::Job,
        Self::Action,
        Self::Webhook,
        Self::Schedule,
        Self::Batch,
        Self::Development,
        Self::Host,
    ];
}

/// One execution of project code, as its token describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller<'a> {
    /// What kind of execution it is.
    pub source: Source,
    /// Whether it may only read.
    pub read_only: bool,
    /// Whether the time of its token is over.
    pub expired: bool,
    /// The person on whose behalf it runs; none for an execution without a user.
    pub user: Option<&'a Name>,
    /// Steps left of the automation budget.
    pub hops: u32,
    /// Agents around it.
    pub depth: u32,
}
