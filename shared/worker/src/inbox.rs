//! Reading bodies by their kind.

use runfleet_broker::{DecodeError, Inbox};
use runfleet_contracts::host::{HostAccepted, HostProgress};
use runfleet_contracts::{Advance, AgentTool, AgentTurn, HostAnswer, JobRun, Message, ProcessCall};

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

/// What process-runner takes from its lines for HTTP calls.
pub type CallInbox = Only<ProcessCall>;

/// What agent-runner takes from its lines for model calls.
pub type TurnInbox = Only<AgentTurn>;

/// What agent-runner takes from its lines for tool calls.
pub type ToolInbox = Only<AgentTool>;

/// What process-runner takes from its lanes.
#[derive(Debug)]
pub enum RunnerInbox {
    /// Look at a run.
    Advance(Advance),
    /// A host has answered.
    Answer(HostAnswer),
    /// A host has got further, which changes nothing.
    Progress(HostProgress),
    /// A host has begun, which changes nothing.
    Note,
}

impl Inbox for RunnerInbox {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        match kind {
            Advance::KIND => decode(body).map(Self::Advance),
            HostAnswer::KIND => HostAnswer::parse(body).map(Self::Answer).map_err(|error| {
                let fact = |name: &str| error.details.get(name).and_then(|fact| fact.as_str());
                let (field, problem) = (fact("field"), fact("problem"));
                let (field, problem) = (field.unwrap_or_default(), problem.unwrap_or_default());
                DecodeError::Malformed(format!("`{field}` {problem}"))
            }),
            HostAccepted::KIND => decode::<HostAccepted>(body).map(|_| Self::Note),
            HostProgress::KIND => decode(body).map(Self::Progress),
            kind => Err(unknown_kind(
                kind,
                &[Advance::KIND, HostAnswer::KIND, HostAccepted::KIND, HostProgress::KIND],
            )),
        }
    }
}

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
    fn a_runner_takes_runs_and_answers_and_says_what_is_wrong_with_an_answer() {
        let read = |kind: &str, name: &str| {
            let path = format!("{}/../contracts/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
            RunnerInbox::decode(kind, &std::fs::read(path).unwrap())
        };
        for (kind, name) in [
            ("run.advance.v1", "run.advance.v1-fresh"),
            ("host.answer.v1", "host.answer.v1-ok"),
            ("host.answer.v1", "host.answer.v1-error"),
            ("host.answer.v1", "host.answer.v1-failed"),
            ("host.accepted.v1", "host.accepted.v1"),
            ("host.progress.v1", "host.progress.v1"),
        ] {
            read(kind, name).unwrap();
        }
        assert_eq!(
            read("host.answer.v2", "host.answer.v1-ok").unwrap_err(),
            DecodeError::NewerVersion
        );
        assert_eq!(read("job.run.v1", "job.run.v1").unwrap_err(), DecodeError::UnknownKind);
        let error =
            RunnerInbox::decode("host.answer.v1", br#"{"requestId":"s3cret"}"#).unwrap_err();
        let expected = "`requestId` has a value of the wrong type".to_owned();
        assert_eq!(error, DecodeError::Malformed(expected));
    }

    #[test]
    fn a_malformed_body_is_described_without_its_values() {
        let error = AdvanceInbox::decode("run.advance.v1", br#"{"runId":"s3cret"}"#).unwrap_err();
        let DecodeError::Malformed(text) = error else { panic!("{error:?}") };
        assert!(!text.contains("s3cret"), "{text}");
    }
}
