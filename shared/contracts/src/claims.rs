//! What an execution token says about the execution of project code that holds it.

pub use runfleet_domain::Source;
use runfleet_domain::{Caller, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `aud` of every execution token.
pub const AUDIENCE: &str = "runfleet";

/// Longest origin, in bytes.
const ORIGIN_BYTES_MAX: usize = 128;

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
    /// The version of the project whose code is executed; absent means the active one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
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
    /// For a backfill: a start that meets a daily limit waits for the next UTC day instead of being refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait_for_day: bool,
    /// What `enqueuedBy` says of jobs that this execution enqueues, such as `job:KEY` or `trigger:KEY`; absent means a word for
    /// its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

impl Claims {
    /// The execution as rules see it.
    pub fn caller(&self, expired: bool) -> Caller<'_> {
        Caller {
            source: self.source,
            read_only: self.read_only,
            expired,
            user: self.user.as_ref(),
            hops: self.hops,
            depth: self.depth,
        }
    }

    /// What `enqueuedBy` says of jobs that this execution enqueues: at most 128 printable characters.
    pub fn enqueued_by(&self) -> String {
        let good = |text: &&String| {
            (1..=ORIGIN_BYTES_MAX).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_graphic())
        };
        if let Some(origin) = self.origin.as_ref().filter(good) {
            return origin.clone();
        }
        let word = match self.source {
            Source::Route => "http",
            Source::Script | Source::Action => "rpc",
            Source::Webhook => "inbound",
            Source::Schedule => "schedule",
            Source::Development => "development",
            Source::Job => "job",
            Source::TriggerBefore | Source::TriggerAfter => "trigger",
            // A backfill, or a host that registers itself: whoever runs the platform has begun that.
            Source::Batch | Source::Host => "management",
        };
        word.to_owned()
    }

    /// The identity that owns keys and runs: the person, or the project's own automation.
    pub fn identity(&self) -> String {
        match &self.user {
            Some(user) => format!("user:{user}"),
            None => "system".to_owned(),
        }
    }
}
