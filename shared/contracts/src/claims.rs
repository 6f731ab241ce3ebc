//! What an execution token says about the execution of project code that holds it.

use runfleet_domain::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `aud` of every execution token.
pub const AUDIENCE: &str = "runfleet";

/// What kind of execution holds the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// A backfill: long-lived, without the count per execution.
    Batch,
    /// Local development.
    Development,
}

/// The claims of an execution token (a JWT signed with EdDSA). Identity comes from here and from the stored run only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// Always [`AUDIENCE`].
    pub aud: String,
    /// Unix seconds after which the token is refused.
    pub exp: u64,
    /// Unix seconds at which it was made.
    pub iat: u64,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project whose code is executed.
    #[schemars(with = "String")]
    pub project: Name,
    /// Names the execution; its calls are counted under this name.
    #[schemars(with = "String")]
    pub execution: Name,
    /// What kind of execution it is.
    pub source: Source,
    /// The person on whose behalf it runs, or null for an execution without a user. Never absent.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(with = "Option<String>")]
    pub user: Option<Name>,
    /// Whether the execution may only read.
    #[serde(default)]
    pub read_only: bool,
    /// Steps left of the automation budget.
    pub hops: u32,
    /// How many agents are around this execution.
    #[serde(default)]
    pub depth: u32,
    /// Links of the job chain that led here.
    #[serde(default)]
    pub chain: u32,
}

impl Claims {
    /// The identity that owns keys and runs: the person, or the project's own automation.
    pub fn identity(&self) -> String {
        match &self.user {
            Some(user) => format!("user:{user}"),
            None => "system".to_owned(),
        }
    }
}
