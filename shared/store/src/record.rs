//! Stored runs: the fields of their hashes, and the types that the rest of the fleet sees.
//!
//! Old and new versions of the fleet read the same records during a deploy. A field is never given another meaning; a new one
//! is optional; [`RUN_VERSION`] grows only when an old program must not touch the record.

use std::fmt;
use std::str::FromStr;

use runfleet_domain::outcome::DropReason;
use runfleet_domain::{
    ConversationId, IdempotencyKey, JobKey, Lane, MessageId, Name, RunId, RunState,
};

use crate::delivery::Delivery;
use crate::error::StoreError;
use crate::keys::Keys;
use crate::reply::Fields;

/// Newest version of a run record that this program reads, and the one that it writes.
pub const RUN_VERSION: u64 = 1;

pub(crate) const RUN: &str = "run";

/// What becomes of the outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeState {
    /// The start named no job.
    None,
    /// The run has not ended, or its outcome has not been handed over.
    Pending,
    /// It has become the job [`RunId::outcome_job`].
    Job,
    /// It was not delivered.
    Dropped(DropReason),
}

impl OutcomeState {
    /// The word in the ledger for an outcome that waits.
    pub(crate) const PENDING: &'static str = "PENDING";
    /// The word in the ledger for a run without an outcome.
    pub(crate) const NONE: &'static str = "NONE";

    fn from_word(word: &str) -> Option<Self> {
        match word {
            Self::NONE => Some(Self::None),
            Self::PENDING => Some(Self::Pending),
            "JOB" => Some(Self::Job),
            _ => drop_reason(word.strip_prefix("DROPPED:")?).map(Self::Dropped),
        }
    }
}

/// The reason that [`DropReason::as_str`] names.
pub(crate) fn drop_reason(word: &str) -> Option<DropReason> {
    DropReason::ALL.into_iter().find(|reason| reason.as_str() == word)
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunError {
    /// A word of the contract.
    pub code: String,
    /// The fixed sentence for it.
    pub message: String,
}

impl RunError {
    pub(crate) fn read(fields: &mut Fields) -> Option<Self> {
        let code = fields.text("error_code")?;
        Some(Self { code, message: fields.text("error_message").unwrap_or_default() })
    }
}

/// The run that has called another one, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The run.
    pub run_id: RunId,
    /// The instance in it.
    pub instance: u64,
}

impl Parent {
    fn read(fields: &mut Fields) -> Result<Option<Self>, StoreError> {
        let Some(run_id) = fields.maybe("parent")? else { return Ok(None) };
        Ok(Some(Self { run_id, instance: fields.must("parent_instance")? }))
    }
}

/// Where a person decides about calls of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsksIn {
    /// The conversation of that person.
    pub conversation: ConversationId,
    /// The turn there that the run is, or that it is a part of.
    pub turn: RunId,
}

impl fmt::Display for AsksIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.conversation, self.turn)
    }
}

impl FromStr for AsksIn {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let corrupt = || StoreError::Corrupt { kind: RUN, field: "asks_in" };
        let (conversation, turn) = text.split_once(':').ok_or_else(corrupt)?;
        let conversation = conversation.parse().map_err(|_| corrupt())?;
        Ok(Self { conversation, turn: turn.parse().map_err(|_| corrupt())? })
    }
}

/// Everything that the ledger holds about one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The run.
    pub id: RunId,
    /// Its workspace.
    pub workspace: Name,
    /// The project that started it.
    pub project: Name,
    /// The lane of its start, for life.
    pub lane: Lane,
    /// The message that made it.
    pub message_id: MessageId,
    /// The idempotency key of its start.
    pub key: Option<IdempotencyKey>,
    /// Who owns it.
    pub identity: String,
    /// The Process or agent.
    pub target: Name,
    /// The version of the target that was active at the start.
    pub target_version: u32,
    /// The execution that called start.
    pub execution: Name,
    /// The person it runs as; none for an execution without a user.
    pub user: Option<Name>,
    /// Automation steps that the run carries.
    pub hops: u32,
    /// Agents around it, itself included.
    pub depth: u32,
    /// Links of the job chain of the execution that called start.
    pub chain: u32,
    /// The name given to the instance.
    pub instance_name: Option<String>,
    /// Input as JSON. Gone when the run has ended.
    pub input: Option<String>,
    /// Unix milliseconds by which it must have ended.
    pub deadline_ms: Option<u64>,
    /// W3C trace context of the start.
    pub traceparent: Option<String>,
    /// Where it is.
    pub state: RunState,
    /// Grows with each change.
    pub version: u64,
    /// Grows with each claim.
    pub fence: u64,
    /// Unix milliseconds; 0 when nobody holds it.
    pub lease_until_ms: u64,
    /// Claims in quarantine since it last got further.
    pub crashes: u32,
    /// How far it has got, in the words of its runner. Gone when the run has ended.
    pub position: Option<String>,
    /// Output as JSON. With the end of the run; for a Process gone when it has become a job.
    pub output: Option<String>,
    /// Why it failed.
    pub error: Option<RunError>,
    /// What becomes of its outcome.
    pub outcome: OutcomeState,
    /// The job that its outcome becomes.
    pub job: Option<JobKey>,
    /// What the job gets back of the start, as JSON. Gone when the outcome has been handed over.
    pub echo: Option<String>,
    /// Unix milliseconds.
    pub created_at_ms: u64,
    /// Unix milliseconds of the first claim.
    pub started_at_ms: Option<u64>,
    /// Unix milliseconds of the end.
    pub finished_at_ms: Option<u64>,
    /// How often its alarm has gone off since it last got further.
    pub alarm_tries: u32,
    /// The run that has called it. Lane and trace context are those of the parent.
    pub parent: Option<Parent>,
    /// Whether it has called runs, so that some may be open: see [`crate::Store::open_children`].
    pub has_called: bool,
    /// Messages and signals that it waits for, those included that have come and that it has not dealt with.
    pub waits: usize,
    /// Incidents that are open.
    pub incidents: u32,
    /// The person whom it may send messages.
    pub recipient: Option<Name>,
    /// What has become of its message to that person. Provisional until it has ended; then there is one for every run with a
    /// recipient.
    pub delivery: Option<Delivery>,
    /// The conversation in which it is a turn.
    pub conversation: Option<ConversationId>,
    /// Where a person decides about its calls although it is no turn: it is a part of one.
    pub asks_in: Option<AsksIn>,
    /// What the answers of models have cost, in millionths of a credit.
    pub cost: u64,
}

impl RunRecord {
    /// Whether the outcome still has to be handed over.
    pub fn outcome_wanted(&self) -> bool {
        self.state.is_final() && self.outcome == OutcomeState::Pending
    }

    /// Whether it should have ended by now.
    pub fn is_late(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_some_and(|deadline| deadline <= now_ms)
    }

    /// Where a person decides about its calls: in the conversation in which it is a turn, or a part of one.
    pub fn decided_in(&self) -> Option<AsksIn> {
        let own = self.conversation.map(|conversation| AsksIn { conversation, turn: self.id });
        own.or(self.asks_in)
    }

    /// Reads the hash of `id`.
    pub(crate) fn read(id: RunId, mut fields: Fields) -> Result<Self, StoreError> {
        let fields = &mut fields;
        fields.check_version(RUN_VERSION)?;
        Ok(Self {
            id,
            workspace: fields.must("workspace")?,
            project: fields.must("project")?,
            lane: fields.word("lane", Lane::from_word)?,
            message_id: fields.must("message")?,
            key: read_key(fields)?,
            identity: fields.must("identity")?,
            target: fields.must("target")?,
            target_version: fields.must("target_version")?,
            execution: fields.must("execution")?,
            user: fields.maybe("user")?,
            hops: fields.must("hops")?,
            depth: fields.must("depth")?,
            chain: fields.must("chain")?,
            instance_name: fields.text("instance_name"),
            input: fields.text("input"),
            deadline_ms: fields.maybe("deadline")?,
            traceparent: fields.text("trace"),
            state: fields.word("state", RunState::from_word)?,
            version: fields.must("version")?,
            fence: fields.must("fence")?,
            lease_until_ms: fields.must("lease_until")?,
            crashes: fields.or("crashes", 0)?,
            position: fields.text("position"),
            output: fields.text("output"),
            error: RunError::read(fields),
            outcome: fields.word("outcome", OutcomeState::from_word)?,
            job: fields.maybe("job")?,
            echo: fields.text("echo"),
            created_at_ms: fields.must("created_at")?,
            started_at_ms: fields.maybe("started_at")?,
            finished_at_ms: fields.maybe("finished_at")?,
            alarm_tries: fields.or("tries", 0)?,
            parent: Parent::read(fields)?,
            has_called: fields.text("kids").is_some(),
            waits: fields.text("waits").map_or(0, |waits| waits.split_whitespace().count()),
            incidents: fields.or("incidents", 0)?,
            recipient: fields.maybe("deliver_to")?,
            delivery: fields.maybe("delivery")?,
            conversation: fields.maybe("conversation")?,
            asks_in: fields.maybe("asks_in")?,
            cost: fields.or("cost", 0)?,
        })
    }
}

fn read_key(fields: &mut Fields) -> Result<Option<IdempotencyKey>, StoreError> {
    let Some(key_ref) = fields.text("key_ref") else { return Ok(None) };
    Keys::key_in_ref(&key_ref)
        .and_then(|key| key.parse().ok())
        .map(Some)
        .ok_or(StoreError::Corrupt { kind: RUN, field: "key_ref" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::golden;

    const ID: &str = "PI1501KC5Q8A9B2C3D4E5F6G7H8J9K";

    fn read(text: &str) -> Result<RunRecord, StoreError> {
        RunRecord::read(ID.parse().unwrap(), golden(RUN, text))
    }

    #[test]
    fn a_run_that_an_older_program_has_stored_is_still_read() {
        let run = read(include_str!("../golden/run_v1.txt")).unwrap();
        let expected = RunRecord {
            id: ID.parse().unwrap(),
            workspace: "acme".parse().unwrap(),
            project: "crm".parse().unwrap(),
            lane: Lane::Interactive,
            message_id: "m-1".parse().unwrap(),
            key: Some("order:7".parse().unwrap()),
            identity: "user:ann".to_owned(),
            target: "invoice".parse().unwrap(),
            target_version: 3,
            execution: "exec-1".parse().unwrap(),
            user: Some("ann".parse().unwrap()),
            hops: 9,
            depth: 1,
            chain: 2,
            instance_name: Some("No. 7".to_owned()),
            input: Some(r#"{"amount":7}"#.to_owned()),
            deadline_ms: Some(1_800_000_000_000),
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
            state: RunState::Running,
            version: 4,
            fence: 2,
            lease_until_ms: 1_764_468_060_000,
            crashes: 1,
            position: Some(r#"{"at":"task"}"#.to_owned()),
            output: None,
            error: None,
            outcome: OutcomeState::Pending,
            job: Some("onDone".parse().unwrap()),
            echo: Some("[1]".to_owned()),
            created_at_ms: 1_764_468_000_000,
            started_at_ms: Some(1_764_468_000_500),
            finished_at_ms: None,
            alarm_tries: 0,
            parent: None,
            has_called: false,
            waits: 0,
            incidents: 0,
            recipient: None,
            delivery: None,
            conversation: None,
            asks_in: None,
            cost: 0,
        };
        assert_eq!(run, expected);
    }

    #[test]
    fn an_ended_run_that_an_older_program_has_stored_is_still_read() {
        let run = read(include_str!("../golden/run_v1_ended.txt")).unwrap();
        assert_eq!(run.state, RunState::Failed);
        assert_eq!(run.error.unwrap().code, "MAX_TURNS");
        assert_eq!(run.outcome, OutcomeState::Dropped(DropReason::NoHopsLeft));
        assert_eq!((run.key, run.user, run.crashes), (None, None, 0));
        assert_eq!(run.finished_at_ms, Some(1_764_468_001_000));
    }

    #[test]
    fn a_called_run_that_waits_is_read() {
        let run = read(include_str!("../golden/run_v1_child.txt")).unwrap();
        let run_id = "PI1501KC5Q8A9B2C3D4E5F6G7H8J9J".parse().unwrap();
        assert_eq!(run.parent, Some(Parent { run_id, instance: 12 }));
        assert_eq!((run.has_called, run.waits, run.incidents), (true, 2, 1));
    }

    #[test]
    fn a_run_with_a_message_to_a_person_and_a_turn_of_a_conversation_are_read() {
        let id = "CV1501KC5Q8A9B2C3D4E5F6G7H8J9K";
        let text = include_str!("../golden/run_v1_ended.txt");
        let run = read(&format!("{text}deliver_to=ada\ndelivery=SENT:{id}:1\n")).unwrap();
        assert_eq!(run.recipient.unwrap().as_str(), "ada");
        assert_eq!(run.delivery.unwrap().conversation, Some(id.parse().unwrap()));
        let turn = read(include_str!("../golden/run_v1_turn.txt")).unwrap();
        assert_eq!(turn.conversation, Some(id.parse().unwrap()));
        assert_eq!((turn.recipient.as_ref(), turn.delivery.as_ref()), (None, None));
        let conversation = id.parse().unwrap();
        assert_eq!(turn.decided_in(), Some(AsksIn { conversation, turn: turn.id }));
    }

    #[test]
    fn a_part_of_a_turn_asks_in_the_conversation_of_the_turn() {
        let text = include_str!("../golden/run_v1_child.txt");
        assert_eq!(read(text).unwrap().decided_in(), None);
        let asks_in = "CV1501KC5Q8A9B2C3D4E5F6G7H8J9K:AG1501KC5Q8A9B2C3D4E5F6G7H8J9J";
        let part = read(&format!("{text}asks_in={asks_in}\n")).unwrap();
        assert_eq!(part.decided_in().unwrap().to_string(), asks_in);
        assert_eq!(part.conversation, None);
        assert!(read(&format!("{text}asks_in=CV1\n")).is_err());
    }

    #[test]
    fn fields_of_a_newer_program_are_ignored_and_a_newer_version_is_left_alone() {
        let text = include_str!("../golden/run_v1.txt");
        assert!(read(&format!("{text}mood=good\n")).is_ok());
        let newer = read(&text.replace("v=1\n", "v=2\n"));
        assert!(matches!(newer, Err(StoreError::Newer { kind: RUN, version: 2 })), "{newer:?}");
    }

    #[test]
    fn a_damaged_field_is_named() {
        let text = include_str!("../golden/run_v1.txt");
        for (good, bad, field) in [
            ("lane=interactive", "lane=fast", "lane"),
            ("fence=2", "fence=-1", "fence"),
            ("outcome=PENDING", "outcome=DROPPED:BORED", "outcome"),
            ("key_ref=key:acme:crm:order:7", "key_ref=key", "key_ref"),
            ("workspace=acme", "other=acme", "workspace"),
        ] {
            match read(&text.replace(good, bad)) {
                Err(StoreError::Corrupt { kind: RUN, field: named }) => assert_eq!(named, field),
                other => panic!("{other:?}"),
            }
        }
    }
}
