//! Starting a run: the one commit that makes a run, its key, its counters and its alarm, or changes nothing.

use runfleet_domain::limits::{
    DAY_COUNTER_MEMORY, EXECUTION_MEMORY, INPUT_BYTES_MAX, INSTANCE_NAME_CHARS_MAX,
    JOB_ECHO_BYTES_MAX, MESSAGE_ID_MEMORY,
};
use runfleet_domain::{IdempotencyKey, JobKey, Lane, MessageId, Name, RunId, RunState};

use crate::batch::{BATCH_IDS_MAX, BATCH_MEMORY};
use crate::error::StoreError;
use crate::find::{FindStart, IDENTITY_BYTES_MAX};
use crate::keys::{AlarmSet, Keys};
use crate::metrics::Operation;
use crate::record::{OutcomeState, RUN_VERSION};
use crate::reply::Reply;
use crate::store::{Args, Store, check_shard, check_size};

/// Instructions, variables and records of an agent run come as input too, so it may be larger than that of a Process.
const RUN_INPUT_BYTES_MAX: usize = 2 * INPUT_BYTES_MAX;

/// What the facts outside the ledger say about a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be made.
    Accept,
    /// It may not: only a run that already exists is told.
    Refuse,
}

/// The job that the outcome of a run becomes.
#[derive(Debug, Clone, Copy)]
pub struct OutcomeJob<'a> {
    /// Which job of the project.
    pub job: &'a JobKey,
    /// What the job gets back, as JSON.
    pub echo: Option<&'a str>,
}

/// Everything about a start that is decided before the ledger is asked. What kind of run it is, the id says.
#[derive(Debug, Clone)]
pub struct StartRun<'a> {
    /// The id that the run gets if it is made. Fresh, in the shard of the workspace.
    pub run_id: RunId,
    /// The workspace.
    pub workspace: &'a Name,
    /// The project that calls.
    pub project: &'a Name,
    /// Who waits for it.
    pub lane: Lane,
    /// The request. A second start with the same one in the same project is the same start.
    pub message_id: &'a MessageId,
    /// Two starts of a project with the same one become one run.
    pub key: Option<&'a IdempotencyKey>,
    /// Who owns the run and the key.
    pub identity: &'a str,
    /// The Process or agent.
    pub target: &'a Name,
    /// Its active version.
    pub target_version: u32,
    /// The execution that calls.
    pub execution: &'a Name,
    /// Calls of every kind that one execution may make; none when there is no such bound.
    pub calls_budget: Option<u32>,
    /// Starts of this kind that one execution may call; none when there is no such bound. Without either bound nothing is
    /// counted.
    pub calls_limit: Option<u32>,
    /// Whether the execution is a batch: it can be revoked, and its progress is recorded.
    pub batch: bool,
    /// Starts of this kind that the project may make in a UTC day.
    pub day_limit: u32,
    /// What the facts outside the ledger say.
    pub verdict: Verdict,
    /// The person it runs as.
    pub user: Option<&'a Name>,
    /// The person whom the run may send messages.
    pub recipient: Option<&'a Name>,
    /// Automation steps that the run carries.
    pub hops: u32,
    /// Agents around it.
    pub depth: u32,
    /// Links of the job chain of the execution that calls.
    pub chain: u32,
    /// The name of the instance.
    pub instance_name: Option<&'a str>,
    /// Input as JSON, at most 128 KiB.
    pub input: Option<&'a str>,
    /// The job that the outcome becomes.
    pub outcome: Option<OutcomeJob<'a>>,
    /// Unix milliseconds by which the run must have ended.
    pub deadline_ms: Option<u64>,
    /// W3C trace context.
    pub traceparent: Option<&'a str>,
}

/// What became of a start. Only [`Started::Created`] has made something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// The run was made.
    Created {
        /// The run.
        run: RunId,
    },
    /// The same message has made this run before.
    Replayed {
        /// The run.
        run: RunId,
        /// Where it is.
        state: RunState,
    },
    /// The key names this run.
    Duplicate {
        /// The run.
        run: RunId,
        /// Where it is.
        state: RunState,
    },
    /// The key or message belongs to another identity.
    Conflict,
    /// The key or message names a run of another Process or agent.
    OtherTarget,
    /// The execution has made as many calls of every kind as it may. This one was not counted.
    BudgetExceeded {
        /// The budget that is spent.
        limit: u32,
        /// The calls that are counted: the budget, or more when it was larger before.
        used: u32,
    },
    /// The execution has called starts of this kind as often as it may.
    CallsExceeded,
    /// The batch is revoked.
    Revoked,
    /// The project has made as many runs today as it may.
    DayExceeded {
        /// The limit that was met.
        limit: u32,
        /// Unix milliseconds at which the next UTC day begins, counted from the newest day that anything was started on.
        resets_at_ms: u64,
    },
    /// The verdict was to refuse, and neither message nor key names a run.
    Refused,
}

impl Store {
    /// Makes a run, once per message id and once per idempotency key. One round trip, whatever comes of it.
    ///
    /// Checked in this order: batch revoked (a message that has made a run is told it all the same), calls of the execution
    /// (all, then those of this kind), message id, key (identity, then target), verdict, day. A refusal writes nothing but
    /// the call and the progress of the batch; both count once per message id. Days never run backwards: after a step back
    /// of the clock the newest day goes on being filled.
    ///
    /// # Errors
    /// After [`StoreError::Unavailable`] with `maybe_written` the run may exist; the same start again finds it.
    pub async fn start_run(&self, start: &StartRun<'_>) -> Result<Started, StoreError> {
        check(start)?;
        let find = start.find();
        let (keys, args) = (self.start_keys(start, &find), self.start_args(start, &find));
        let lua = &self.scripts().run_start;
        let value = self.run_script(Operation::StartRun, lua, &keys, args).await?;
        let (tag, mut reply) = Reply::open("run_start", value)?;
        let run = start.run_id;
        Ok(match tag.as_str() {
            "created" => Started::Created { run },
            "day_exceeded" => {
                Started::DayExceeded { limit: start.day_limit, resets_at_ms: reply.parsed()? }
            }
            "refused" => Started::Refused,
            tag => match find.told(tag, &mut reply)? {
                // The first answer to this very call was lost.
                Started::Replayed { run: made, .. } if made == run => Started::Created { run },
                told => told,
            },
        })
    }

    fn start_keys(&self, start: &StartRun<'_>, find: &FindStart<'_>) -> Vec<String> {
        let StartRun { run_id, workspace, project, .. } = *start;
        let (keys, shard) = (self.keys(), run_id.shard());
        let own = [
            keys.run(run_id),
            keys.days(shard, workspace, project, run_id.kind()),
            keys.alarms(shard, AlarmSet::from(run_id.kind())),
        ];
        find.keys(keys, own)
    }

    fn start_args(&self, start: &StartRun<'_>, find: &FindStart<'_>) -> Args {
        let kind = start.run_id.kind();
        let args = find
            .args(OWN_KEYS)
            .with(start.run_id)
            .with(start.day_limit)
            .flag(start.verdict == Verdict::Accept)
            .millis(self.inner.timings.alarm_unclaimed)
            .millis(EXECUTION_MEMORY)
            .millis(MESSAGE_ID_MEMORY)
            .millis(DAY_COUNTER_MEMORY)
            .millis(BATCH_MEMORY)
            .with(BATCH_IDS_MAX);
        let outcome = start.outcome.map_or(OutcomeState::NONE, |_| OutcomeState::PENDING);
        args.field("v", RUN_VERSION)
            .field("workspace", start.workspace)
            .field("project", start.project)
            .field("kind", kind)
            .field("lane", start.lane)
            .field("message", start.message_id)
            .field("identity", start.identity)
            .field("target", start.target)
            .field("target_version", start.target_version)
            .field("execution", start.execution)
            .field("hops", start.hops)
            .field("depth", start.depth)
            .field("chain", start.chain)
            .field("outcome", outcome)
            .field_if(
                "key_ref",
                start.key.map(|key| Keys::key_ref(start.workspace, start.project, key)),
            )
            .field_if("user", start.user)
            .field_if("deliver_to", start.recipient)
            .field_if("instance_name", start.instance_name)
            .field_if("input", start.input)
            .field_if("job", start.outcome.map(|outcome| outcome.job))
            .field_if("echo", start.outcome.and_then(|outcome| outcome.echo))
            .field_if("deadline", start.deadline_ms)
            .field_if("trace", start.traceparent)
    }
}

/// Keys of a start that looking for it does not need: the run, the days and the alarms.
const OWN_KEYS: usize = 3;

impl<'a> StartRun<'a> {
    /// What is looked for before anything is decided.
    fn find(&self) -> FindStart<'a> {
        FindStart {
            workspace: self.workspace,
            project: self.project,
            kind: self.run_id.kind(),
            message_id: self.message_id,
            key: self.key,
            identity: self.identity,
            target: self.target,
            execution: self.execution,
            calls_budget: self.calls_budget,
            calls_limit: self.calls_limit,
            batch: self.batch,
        }
    }
}

fn check(start: &StartRun<'_>) -> Result<(), StoreError> {
    check_shard(start.run_id.shard(), start.workspace.as_str())?;
    check_size(start.input, RUN_INPUT_BYTES_MAX, "the input is larger than 128 KiB")?;
    check_size(
        start.outcome.and_then(|outcome| outcome.echo),
        JOB_ECHO_BYTES_MAX,
        "the payload of the outcome job is too large",
    )?;
    // A character has at most four bytes.
    check_size(start.instance_name, 4 * INSTANCE_NAME_CHARS_MAX, "the instance name is too long")?;
    check_size(start.traceparent, 128, "the trace context is too long")?;
    check_size(Some(start.identity), IDENTITY_BYTES_MAX, "the identity is too long")
}
