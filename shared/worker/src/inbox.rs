//! Reading bodies by their kind.

use runfleet_broker::{DecodeError, Inbox};
use runfleet_contracts::{Advance, JobRun, Message};

/// Reads a body of one kind. The text of an error tells the place, never a value.
pub fn decode<M: Message>(body: &[u8]) -> Result<M, DecodeError> {
    serde_json::from_slice(body).map_err(|error| {
        let what =
            if error.is_data() { "a field is missing or has the wrong type" } else { "not JSON" };
        DecodeError::Malformed(format!("{what}, line {} column {}", error.line(), error.column()))
    })
}

/// Says why a kind is not one of `known`: a newer major version of one of them waits, anything else is parked.
pub fn unknown_kind(kind: &str, known: &[&str]) -> DecodeError {
    let split = |kind: &str| {
        let (name, version) = kind.rsplit_once(".v")?;
        Some((name.to_owned(), version.parse::<u32>().ok()?))
    };
    let Some((name, version)) = split(kind) else { return DecodeError::UnknownKind };
    let newer = known
        .iter()
        .filter_map(|known| split(known))
        .any(|(known, ours)| known == name && version > ours);
    if newer { DecodeError::NewerVersion } else { DecodeError::UnknownKind }
}

/// One kind, for a queue that carries nothing else.
#[derive(Debug)]
pub struct Only<M>(pub M);

impl<M: Message> Inbox for Only<M> {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        if kind == M::KIND { decode(body).map(Self) } else { Err(unknown_kind(kind, &[M::KIND])) }
    }
}

/// What runners take.
pub type AdvanceInbox = Only<Advance>;

/// What project hosts take.
pub type JobInbox = Only<JobRun>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_version_waits_and_anything_else_is_unknown() {
        let known = ["run.advance.v1"];
        assert_eq!(unknown_kind("run.advance.v2", &known), DecodeError::NewerVersion);
        for kind in ["run.advance.v0", "run.advance", "run.other.v2", "", "run.advance.vx"] {
            assert_eq!(unknown_kind(kind, &known), DecodeError::UnknownKind, "{kind}");
        }
    }

    #[test]
    fn a_malformed_body_is_described_without_its_values() {
        let error = AdvanceInbox::decode("run.advance.v1", br#"{"runId":"s3cret"}"#).unwrap_err();
        let DecodeError::Malformed(text) = error else { panic!("{error:?}") };
        assert!(!text.contains("s3cret"), "{text}");
    }
}
