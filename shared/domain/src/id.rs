//! Ids of runs and job runs, and the shard that each carries.
//!
//! An id is two letters for the kind, two digits for the shard and 26 characters of Crockford base 32 (a ULID: time-ordered,
//! 128 bits). Whoever holds an id can find its Redis slot without asking anybody.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

use crate::limits::SHARDS;

/// Length of every id in characters.
pub const ID_CHARS: usize = 30;

/// What a run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunKind {
    /// An instance of a Process (BPMN).
    Process,
    /// A run of an AI agent.
    Agent,
}

impl RunKind {
    /// Both kinds, for loops over everything.
    pub const ALL: [Self; 2] = [Self::Process, Self::Agent];

    /// The word used in records, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Agent => "agent",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Process => "PI",
            Self::Agent => "AG",
        }
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where the keys of a workspace live: a number below [`SHARDS`], written as two digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard(u8);

impl Shard {
    /// The shard of a workspace. The same for ever: it is part of ids and of key names.
    pub fn of_workspace(workspace: &str) -> Self {
        // FNV-1a, 64 bit: short, fixed, and good enough to spread names over 64 places.
        let hash = workspace.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(u8::try_from(hash % u64::from(SHARDS)).unwrap_or_default())
    }

    /// Every shard, for sweeps.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(Self)
    }

    /// The number, below [`SHARDS`].
    pub fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}", self.0)
    }
}

/// Why a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdError {
    /// Not exactly [`ID_CHARS`] ASCII characters.
    #[error("an id has {ID_CHARS} characters")]
    Length,
    /// The first two letters name no kind of id that is expected here.
    #[error("the id is of another kind")]
    Kind,
    /// The two digits after the kind are not a shard.
    #[error("the id names no shard")]
    Shard,
    /// The rest is not upper-case Crockford base 32.
    #[error("the id has characters outside Crockford base 32")]
    Encoding,
}

fn parse_tail(text: &str) -> Result<(Shard, Ulid), ParseIdError> {
    if text.len() != ID_CHARS || !text.is_ascii() {
        return Err(ParseIdError::Length);
    }
    let (shard, ulid) = (&text[2..4], &text[4..]);
    let number: u8 = shard.parse().map_err(|_| ParseIdError::Shard)?;
    if number >= SHARDS || !shard.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseIdError::Shard);
    }
    let parsed = Ulid::from_string(ulid).map_err(|_| ParseIdError::Encoding)?;
    // The decoder accepts lower case; one id must have one spelling.
    if parsed.to_string() != ulid {
        return Err(ParseIdError::Encoding);
    }
    Ok((Shard(number), parsed))
}

/// Names one run of a Process or of an agent, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId {
    kind: RunKind,
    shard: Shard,
    ulid: Ulid,
}

impl RunId {
    /// A run of `kind` in `shard`; `ulid` must be fresh.
    pub fn new(kind: RunKind, shard: Shard, ulid: Ulid) -> Self {
        Self { kind, shard, ulid }
    }

    /// What this run executes.
    pub fn kind(self) -> RunKind {
        self.kind
    }

    /// Where its keys live.
    pub fn shard(self) -> Shard {
        self.shard
    }

    /// The id of the one job run that its outcome becomes. Derived, so that a repeated hand-over finds the first one.
    pub fn outcome_job(self) -> JobId {
        JobId { shard: self.shard, ulid: self.ulid }
    }

    /// Unix milliseconds at which the id was made.
    pub fn created_at_ms(self) -> u64 {
        self.ulid.timestamp_ms()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.kind.prefix(), self.shard, self.ulid)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (shard, ulid) = parse_tail(text)?;
        let kind = RunKind::ALL
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))
            .ok_or(ParseIdError::Kind)?;
        Ok(Self { kind, shard, ulid })
    }
}

/// Names one run of a background job of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId {
    shard: Shard,
    ulid: Ulid,
}

impl JobId {
    const PREFIX: &'static str = "JB";

    /// A job run in `shard`; `ulid` must be fresh.
    pub fn new(shard: Shard, ulid: Ulid) -> Self {
        Self { shard, ulid }
    }

    /// Where its keys live.
    pub fn shard(self) -> Shard {
        self.shard
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", Self::PREFIX, self.shard, self.ulid)
    }
}

impl FromStr for JobId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (shard, ulid) = parse_tail(text)?;
        if !text.starts_with(Self::PREFIX) {
            return Err(ParseIdError::Kind);
        }
        Ok(Self { shard, ulid })
    }
}

/// Names a conversation between an agent and a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationId {
    shard: Shard,
    ulid: Ulid,
}

impl ConversationId {
    const PREFIX: &'static str = "CV";

    /// A conversation in `shard`; `ulid` must be fresh.
    pub fn new(shard: Shard, ulid: Ulid) -> Self {
        Self { shard, ulid }
    }

    /// Where its keys live.
    pub fn shard(self) -> Shard {
        self.shard
    }

    /// The name of the chat session that the conversation is held in. There is one for each conversation.
    pub fn session(self) -> String {
        format!("CS{}{}", self.shard, self.ulid)
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", Self::PREFIX, self.shard, self.ulid)
    }
}

impl FromStr for ConversationId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (shard, ulid) = parse_tail(text)?;
        if !text.starts_with(Self::PREFIX) {
            return Err(ParseIdError::Kind);
        }
        Ok(Self { shard, ulid })
    }
}

macro_rules! as_json_string {
    ($($id:ty),*) => {$(
        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

as_json_string!(RunId, JobId, ConversationId);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: RunKind) -> RunId {
        RunId::new(
            kind,
            Shard::of_workspace("acme"),
            Ulid::from(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128),
        )
    }

    #[test]
    fn an_id_is_read_back_as_it_was_written() {
        for kind in RunKind::ALL {
            let id = run(kind);
            assert_eq!(id.to_string().len(), ID_CHARS);
            assert_eq!(id.to_string().parse(), Ok(id));
            let job = id.outcome_job();
            assert_eq!(job.to_string().parse(), Ok(job));
            assert_eq!(job.shard(), id.shard());
            let conversation = ConversationId::new(id.shard(), Ulid::from(7_u128));
            assert_eq!(conversation.to_string().parse(), Ok(conversation));
            assert_eq!(id.to_string().parse::<ConversationId>(), Err(ParseIdError::Kind));
        }
    }

    #[test]
    fn the_shard_of_a_workspace_never_changes() {
        // These are part of stored keys: a change here orphans every record.
        for (workspace, shard) in [("acme", "15"), ("demo", "22"), ("", "37"), ("w-1", "16")] {
            assert_eq!(Shard::of_workspace(workspace).to_string(), shard, "{workspace:?}");
        }
    }

    #[test]
    fn what_is_not_an_id_is_refused_with_its_reason() {
        let id = run(RunKind::Process).to_string();
        let cases = [
            ("", ParseIdError::Length),
            (&id[1..], ParseIdError::Length),
            (&format!("JB{}", &id[2..]), ParseIdError::Kind),
            (&format!("PI64{}", &id[4..]), ParseIdError::Shard),
            (&format!("PI+1{}", &id[4..]), ParseIdError::Shard),
            (&format!("{}U", &id[..29]), ParseIdError::Encoding),
            (&format!("{}{}", &id[..4], id[4..].to_lowercase()), ParseIdError::Encoding),
            (&format!("{}é", &id[..28]), ParseIdError::Length),
        ];
        for (text, reason) in cases {
            assert_eq!(text.parse::<RunId>(), Err(reason), "{text}");
        }
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made() {
        let shard = Shard::of_workspace("acme");
        let early = RunId::new(RunKind::Process, shard, Ulid::from_parts(1_000, u128::MAX >> 60));
        let late = RunId::new(RunKind::Process, shard, Ulid::from_parts(1_001, 0));
        assert!(early.to_string() < late.to_string());
        assert_eq!(late.created_at_ms(), 1_001);
    }
}
