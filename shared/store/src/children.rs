//! Runs that are called by runs. A child is a run of its own; its end goes into the inbox of its parent by the script that
//! ends it, and a parent that ends first keeps an alarm until its children have ended too.

use runfleet_domain::limits::{
    INBOX_EVENTS_MAX, INPUT_BYTES_MAX, INSTANCE_NAME_CHARS_MAX, RUN_CHILDREN_MAX,
};
use runfleet_domain::{Lane, Name, RunId, RunKind};
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use crate::error::StoreError;
use crate::find::IDENTITY_BYTES_MAX;
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::record::{AsksIn, OutcomeState, RUN_VERSION};
use crate::reply::{Reply, items, text};
use crate::store::{Args, Store, check_shard, check_size};

/// Largest instance number: beyond it Redis cannot keep numbers apart.
const INSTANCE_MAX: u64 = 1 << 53;

/// Everything about a run that another run calls. It is made once for each attempt of an instance of its parent.
#[derive(Debug, Clone, Copy)]
pub struct StartChild<'a> {
    /// The run that calls.
    pub parent: RunId,
    /// The instance in it.
    pub instance: u64,
    /// The attempt of that instance, from 1: a call that is tried again after its child has failed makes another child.
    pub attempt: u32,
    /// The fence of whoever holds the parent, or held it when this was decided; none when anybody may make this child.
    pub fence: Option<u64>,
    /// Whether the caller does not wait for it: then it is nobody's child. Its end is told to nobody, and it goes on when the run
    /// that has started it ends.
    pub detached: bool,
    /// What the child is.
    pub kind: RunKind,
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// The lane.
    pub lane: Lane,
    /// Who owns the run.
    pub identity: &'a str,
    /// The Process or agent.
    pub target: &'a Name,
    /// Its active version.
    pub target_version: u32,
    /// The execution that called start for the first run of the chain.
    pub execution: &'a Name,
    /// The person it runs as.
    pub user: Option<&'a Name>,
    /// Automation steps that the run carries.
    pub hops: u32,
    /// Agents around it.
    pub depth: u32,
    /// Links of the job chain.
    pub chain: u32,
    /// The name of the instance.
    pub instance_name: Option<&'a str>,
    /// Input as JSON, at most 128 KiB.
    pub input: Option<&'a str>,
    /// Unix milliseconds by which the run must have ended.
    pub deadline_ms: Option<u64>,
    /// Where a person decides about calls of the child; none when nobody does.
    pub asks_in: Option<AsksIn>,
    /// W3C trace context.
    pub traceparent: Option<&'a str>,
}

/// What became of the wish to call a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildStarted {
    /// The child is there. The caller publishes the wake-up; the alarm stands in for it.
    Started {
        /// The child.
        run: RunId,
        /// Whether the same call had made it before. It may have ended since.
        duplicate: bool,
    },
    /// The parent has ended, or is not there.
    ParentEnded,
    /// Somebody else holds the parent by now: nothing was made, stop at once.
    Lost,
    /// The parent has as many open children as it may, or too many events wait for it. Passing.
    Full,
}

/// A child that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// The run.
    pub run_id: RunId,
    /// The instance of the parent that has called it.
    pub instance: u64,
}

impl StartChild<'_> {
    /// The id of the child: made of what calls it, so that it is known before it is made and after an answer was lost. Its
    /// time is that of the parent.
    pub fn run_id(&self) -> RunId {
        child_id(self.parent, self.kind, self.instance, self.attempt)
    }

    fn check(&self) -> Result<(), StoreError> {
        check_shard(self.parent.shard(), self.workspace.as_str())?;
        if self.instance > INSTANCE_MAX {
            return Err(StoreError::Invalid("the number of the instance is too large"));
        }
        check_size(self.input, 2 * INPUT_BYTES_MAX, "the input is larger than 128 KiB")?;
        // A character has at most four bytes.
        check_size(
            self.instance_name,
            4 * INSTANCE_NAME_CHARS_MAX,
            "the instance name is too long",
        )?;
        check_size(self.traceparent, 128, "the trace context is too long")?;
        check_size(Some(self.identity), IDENTITY_BYTES_MAX, "the identity is too long")
    }

    fn fields(&self, args: Args) -> Args {
        let message = format!("child:{}:{}:{}", self.parent, self.instance, self.attempt);
        let attached = !self.detached;
        args.field("v", RUN_VERSION)
            .field("workspace", self.workspace)
            .field("project", self.project)
            .field("kind", self.kind)
            .field("lane", self.lane)
            .field("message", message)
            .field("identity", self.identity)
            .field("target", self.target)
            .field("target_version", self.target_version)
            .field("execution", self.execution)
            .field("hops", self.hops)
            .field("depth", self.depth)
            .field("chain", self.chain)
            .field("outcome", OutcomeState::NONE)
            .field_if("parent", attached.then_some(self.parent))
            .field_if("parent_instance", attached.then_some(self.instance))
            .field_if("user", self.user)
            .field_if("instance_name", self.instance_name)
            .field_if("input", self.input)
            .field_if("deadline", self.deadline_ms)
            .field_if("asks_in", self.asks_in)
            .field_if("trace", self.traceparent)
    }
}

/// Attempts of one instance that are looked at for the one that has made a run.
const ATTEMPTS_LOOKED_AT: u32 = 1_000;

/// The attempt of an instance of `parent` that has made `child`; none when none of the first 1,000 has.
pub fn attempt_of(parent: RunId, instance: u64, child: RunId) -> Option<u32> {
    (1..=ATTEMPTS_LOOKED_AT)
        .find(|attempt| child_id(parent, child.kind(), instance, *attempt) == child)
}

/// The run that an attempt of an instance calls.
fn child_id(parent: RunId, kind: RunKind, instance: u64, attempt: u32) -> RunId {
    let hash = Sha256::digest(format!("{parent}:{instance}:{attempt}"));
    let random = hash.iter().take(10).fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    RunId::new(kind, parent.shard(), Ulid::from_parts(parent.created_at_ms(), random))
}

impl Store {
    /// Makes the run that an attempt of an instance calls, once.
    ///
    /// # Errors
    /// After [`StoreError::Unavailable`] with `maybe_written` the child may exist; the same call again finds it.
    pub async fn start_child(&self, start: &StartChild<'_>) -> Result<ChildStarted, StoreError> {
        start.check()?;
        let (keys, run, parent) = (self.keys(), start.run_id(), start.parent);
        let names = [
            keys.run(run),
            keys.run(parent),
            keys.kids(parent),
            keys.inbox(parent),
            keys.events(parent),
            keys.alarms(run.shard(), AlarmSet::from(start.kind)),
        ];
        let args = Args::default()
            .with(run)
            .with(start.fence.map_or(String::new(), |fence| fence.to_string()))
            .with(if start.detached { String::new() } else { start.instance.to_string() })
            .millis(self.inner.timings.alarm_unclaimed)
            .with(RUN_CHILDREN_MAX)
            .with(INBOX_EVENTS_MAX + RUN_CHILDREN_MAX);
        let lua = &self.scripts().child_start;
        let value = self.run_script(Operation::StartChild, lua, &names, start.fields(args)).await?;
        let (tag, mut reply) = Reply::open("child_start", value)?;
        match tag.as_str() {
            "started" => Ok(ChildStarted::Started { run, duplicate: reply.flag()? }),
            "parent_ended" => Ok(ChildStarted::ParentEnded),
            "lost" => Ok(ChildStarted::Lost),
            "full" => Ok(ChildStarted::Full),
            _ => reply.unknown(),
        }
    }

    /// The children of a run that have not ended, at most `limit` (1 to 1,000) of them, in the order of the instances that have
    /// called them.
    pub async fn open_children(&self, run: RunId, limit: u32) -> Result<Vec<Child>, StoreError> {
        let corrupt = || StoreError::Corrupt { kind: "kids", field: "answer" };
        let mut command = redis::cmd("ZRANGE");
        let last = limit.clamp(1, RUN_CHILDREN_MAX) - 1;
        command.arg(self.keys().kids(run)).arg(0).arg(last).arg("WITHSCORES");
        let answer = self.run_command(Operation::OpenChildren, command).await?;
        let texts: Option<Vec<_>> =
            items(answer).and_then(|items| items.into_iter().map(text).collect());
        let mut texts = texts.ok_or_else(corrupt)?.into_iter();
        let mut children = Vec::with_capacity(texts.len() / 2);
        while let (Some(id), Some(instance)) = (texts.next(), texts.next()) {
            let run_id = id.parse().map_err(|_| corrupt())?;
            children.push(Child { run_id, instance: instance.parse().map_err(|_| corrupt())? });
        }
        Ok(children)
    }
}
