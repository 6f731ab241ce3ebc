//! The names of all keys, and which of them live together.
//!
//! A key is `<namespace>:{s<shard>}:<kind>:…`. The part in braces is the hash tag: all keys of a shard are in one slot, so
//! one script can touch a run, its counters and its alarm. Names of a caller's choice come last, so that no character in
//! them can make two names equal or move a key to another slot. Names and correlation keys of messages and signals, which may
//! have any characters, are in keys as a digest only. What the scripts put together themselves is only a kind with the id of a
//! run, job or message (`run`, `inbox`, `events`, `seen`, `kids`, `job`, `chatmsg`) or of a conversation (`conv`, `convlog`, `convturns`), a kind
//! with a digest that a record holds or Rust has made (`wait`, `signal`, `kept`, `bodies`), and a suffix that a record holds
//! (`key_ref`, `jobs_ref`, `caps_ref`, `pair_ref`, `person_ref`), always under the prefix of the shard.
//!
//! Lifetimes: a run, its history, its idempotency key and its job with its key have none until they end; `jobhist` is kept for as
//! long as what it lists; `msg`, `jobmsg`, `calls`, `day`, `batch`,
//! `batchids`, `revoked`, `sent` and what is kept of messages have one from the start; inboxes and waits go with their run;
//! the children of a run go one by one as they end; messages to people, their caps and conversations live as long as their
//! last change says; catalogs and definitions stay until they are replaced, and what a person has said until it is changed.
//! Versions of a project and
//! what they declare stay until newer ones take their place; its `hosts` and each `hostcall` have a lifetime from the start.

use runfleet_domain::{
    ConversationId, IdempotencyKey, JobId, JobKey, MessageId, Name, RunId, RunKind, Shard,
};

use crate::digest::Digest;

/// Which alarms: each kind of worker sweeps a set of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlarmSet {
    /// Runs of Processes that are not finished.
    Process,
    /// Runs of agents that are not finished.
    Agent,
    /// Ended runs whose outcome has not become a job, and jobs that have not ended.
    Done,
    /// Messages to people that have had to wait for a time and about which nothing is decided.
    Chat,
}

impl AlarmSet {
    /// All sets, for metrics.
    pub const ALL: [Self; 4] = [Self::Process, Self::Agent, Self::Done, Self::Chat];

    /// The word used in keys and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Agent => "agent",
            Self::Done => "done",
            Self::Chat => "chat",
        }
    }
}

impl From<RunKind> for AlarmSet {
    fn from(kind: RunKind) -> Self {
        match kind {
            RunKind::Process => Self::Process,
            RunKind::Agent => Self::Agent,
        }
    }
}

/// Makes the key names of one namespace.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    namespace: String,
}

impl Keys {
    pub(crate) fn new(namespace: String) -> Self {
        Self { namespace }
    }

    fn at(&self, shard: Shard, rest: &str) -> String {
        format!("{}:{{s{shard}}}:{rest}", self.namespace)
    }

    /// Matches every key of the namespace and no other.
    pub(crate) fn everything(&self) -> String {
        format!("{}:{{*", self.namespace)
    }

    /// Hash: the record of a run.
    pub(crate) fn run(&self, run: RunId) -> String {
        self.at(run.shard(), &format!("run:{run}"))
    }

    /// Sorted set: ids of the events that wait for a run, in the order in which they came.
    pub(crate) fn inbox(&self, run: RunId) -> String {
        self.at(run.shard(), &format!("inbox:{run}"))
    }

    /// Hash: the bodies of the events that wait for a run.
    pub(crate) fn events(&self, run: RunId) -> String {
        self.at(run.shard(), &format!("events:{run}"))
    }

    /// Sorted set: ids of the events that a run has ever got, by the time they came.
    pub(crate) fn seen(&self, run: RunId) -> String {
        self.at(run.shard(), &format!("seen:{run}"))
    }

    /// List: what has happened in a run, oldest first.
    pub(crate) fn history(&self, run: RunId) -> String {
        self.at(run.shard(), &format!("hist:{run}"))
    }

    /// Sorted set: the children of a run that have not ended, by the instance that has called them.
    pub(crate) fn kids(&self, run: RunId) -> String {
        self.at(run.shard(), &format!("kids:{run}"))
    }

    /// Sorted set: the runs with an open incident, by the time since which they have had one.
    pub(crate) fn incidents(&self, shard: Shard) -> String {
        self.at(shard, "incidents")
    }

    /// Sorted set: subscriptions to the messages of one name and correlation key in a project, oldest first.
    pub(crate) fn wait(&self, shard: Shard, digest: &Digest) -> String {
        self.at(shard, &format!("wait:{digest}"))
    }

    /// Sorted set: runs that wait for a signal.
    pub(crate) fn signal(&self, shard: Shard, digest: &Digest) -> String {
        self.at(shard, &format!("signal:{digest}"))
    }

    /// Sorted set: the messages that are kept of one name and correlation key, oldest first.
    pub(crate) fn kept(&self, shard: Shard, digest: &Digest) -> String {
        self.at(shard, &format!("kept:{digest}"))
    }

    /// Hash: the variables of the messages that are kept of one name and correlation key.
    pub(crate) fn bodies(&self, shard: Shard, digest: &Digest) -> String {
        self.at(shard, &format!("bodies:{digest}"))
    }

    /// Sorted set: all messages that are kept of a project, by the time at which they are no longer good.
    pub(crate) fn kept_of_project(&self, shard: Shard, workspace: &Name, project: &Name) -> String {
        self.at(shard, &format!("keptall:{workspace}:{project}"))
    }

    /// String: what became of a message with a certain id.
    pub(crate) fn sent(&self, shard: Shard, digest: &Digest) -> String {
        self.at(shard, &format!("sent:{digest}"))
    }

    /// What comes after the prefix of the shard in the name of an idempotency key; the run remembers it.
    pub(crate) fn key_ref(workspace: &Name, project: &Name, key: &IdempotencyKey) -> String {
        format!("key:{workspace}:{project}:{key}")
    }

    /// The idempotency key in a [`Keys::key_ref`].
    pub(crate) fn key_in_ref(key_ref: &str) -> Option<&str> {
        key_ref.splitn(4, ':').nth(3)
    }

    /// String: the run that an idempotency key names.
    pub(crate) fn key(&self, shard: Shard, key_ref: &str) -> String {
        self.at(shard, key_ref)
    }

    /// String: the run that a message made.
    pub(crate) fn message(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        message: &MessageId,
    ) -> String {
        self.at(shard, &format!("msg:{workspace}:{project}:{message}"))
    }

    /// Hash: the calls of one execution, and as what each of its messages counts.
    pub(crate) fn calls(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        execution: &Name,
    ) -> String {
        self.at(shard, &format!("calls:{workspace}:{project}:{execution}"))
    }

    /// Hash: how far the batch of that name has got.
    pub(crate) fn batch(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        execution: &Name,
    ) -> String {
        self.at(shard, &format!("batch:{workspace}:{project}:{execution}"))
    }

    /// Sorted set: messages of a batch that made no run, by the time of their answer.
    pub(crate) fn batch_ids(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        execution: &Name,
    ) -> String {
        self.at(shard, &format!("batchids:{workspace}:{project}:{execution}"))
    }

    /// String: there while the batch of that name is revoked.
    pub(crate) fn revoked(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        execution: &Name,
    ) -> String {
        self.at(shard, &format!("revoked:{workspace}:{project}:{execution}"))
    }

    /// Hash: starts of a project on the newest UTC day (days since 1970) that it has started something on.
    pub(crate) fn days(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        kind: RunKind,
    ) -> String {
        self.at(shard, &format!("day:{workspace}:{project}:{kind}"))
    }

    /// Sorted set: what must be looked at, by the time it is due.
    pub(crate) fn alarms(&self, shard: Shard, set: AlarmSet) -> String {
        self.at(shard, &format!("alarms:{}", set.as_str()))
    }

    /// Hash: the record of a job run.
    pub(crate) fn job(&self, job: JobId) -> String {
        self.at(job.shard(), &format!("job:{job}"))
    }

    /// What comes after the prefix of the shard in the name of a project's set of jobs; the job remembers it.
    pub(crate) fn jobs_ref(workspace: &Name, project: &Name) -> String {
        format!("jobs:{workspace}:{project}")
    }

    /// Set: the job runs of a project that have not ended.
    pub(crate) fn jobs(&self, shard: Shard, jobs_ref: &str) -> String {
        self.at(shard, jobs_ref)
    }

    /// Sorted set: the job runs of a project that have ended, by their end. The scripts make this name from `jobs_ref`.
    pub(crate) fn jobs_ended(&self, shard: Shard, workspace: &Name, project: &Name) -> String {
        self.at(shard, &format!("jobhist:{workspace}:{project}"))
    }

    /// String: the job run that a message made.
    pub(crate) fn job_message(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        message: &MessageId,
    ) -> String {
        self.at(shard, &format!("jobmsg:{workspace}:{project}:{message}"))
    }

    /// What comes after the prefix of the shard in the name of an idempotency key of a job; the job run remembers it.
    pub(crate) fn job_key_ref(
        workspace: &Name,
        project: &Name,
        job: &JobKey,
        key: &IdempotencyKey,
    ) -> String {
        format!("jobkey:{workspace}:{project}:{job}:{key}")
    }

    /// String: the job run that an idempotency key of a job names.
    pub(crate) fn job_key(&self, shard: Shard, key_ref: &str) -> String {
        self.at(shard, key_ref)
    }

    /// Hash: the catalog of a workspace.
    pub(crate) fn catalog(&self, workspace: &Name) -> String {
        self.at(Shard::of_workspace(workspace.as_str()), &format!("catalog:{workspace}"))
    }

    /// String: the text of one version of a Process.
    pub(crate) fn definition(
        &self,
        kind: RunKind,
        workspace: &Name,
        target: &Name,
        version: u32,
    ) -> String {
        let place = match kind {
            RunKind::Process => "def",
            RunKind::Agent => "agent",
        };
        let rest = format!("{place}:{workspace}:{target}:{version}");
        self.at(Shard::of_workspace(workspace.as_str()), &rest)
    }

    /// Hash: millionths of a credit that were charged to a workspace (`total`) and to each of its agents (`a:<agent>`).
    pub(crate) fn credits(&self, workspace: &Name) -> String {
        self.at(Shard::of_workspace(workspace.as_str()), &format!("credits:{workspace}"))
    }

    /// String: who has the call of a run in hand.
    pub(crate) fn call(&self, run: RunId, event: &MessageId) -> String {
        self.at(run.shard(), &format!("call:{run}:{event}"))
    }

    /// Something of a kind that a project has once: its versions, what they declare, its hosts.
    pub(crate) fn of_project(
        &self,
        shard: Shard,
        kind: &str,
        workspace: &Name,
        project: &Name,
    ) -> String {
        self.at(shard, &format!("{kind}:{workspace}:{project}"))
    }

    /// Hash: a call of code of a project.
    pub(crate) fn host_call(
        &self,
        shard: Shard,
        workspace: &Name,
        project: &Name,
        call: &Name,
    ) -> String {
        self.at(shard, &format!("hostcall:{workspace}:{project}:{call}"))
    }

    /// String: how many catalogs have ever been announced.
    pub(crate) fn catalog_revision(&self) -> String {
        format!("{}:{{catalog}}:revision", self.namespace)
    }

    /// Sorted set: workspaces by the announcement of their last change.
    pub(crate) fn catalog_changes(&self) -> String {
        format!("{}:{{catalog}}:changes", self.namespace)
    }

    /// Hash: a message of a run to a person. Its id begins with the run, so that no other run can have it.
    pub(crate) fn chat_message(&self, run: RunId, call: &str) -> String {
        self.at(run.shard(), &format!("chatmsg:{run}.{call}"))
    }

    /// What comes after the prefix of the shard in the name of the caps of an agent and a person; the message remembers it.
    pub(crate) fn caps_ref(workspace: &Name, agent: &Name, person: &Name) -> String {
        format!("chatcaps:{workspace}:{agent}:{person}")
    }

    /// What comes after the prefix in the name of the conversations between an agent and a person; each remembers it.
    pub(crate) fn pair_ref(workspace: &Name, agent: &Name, person: &Name) -> String {
        format!("convs:{workspace}:{agent}:{person}")
    }

    /// What comes after the prefix in the name of all conversations of a person; each remembers it.
    pub(crate) fn person_ref(workspace: &Name, person: &Name) -> String {
        format!("chats:{workspace}:{person}")
    }

    /// The key with one of the names above: the caps are a hash, conversations a sorted set by their last change.
    pub(crate) fn named(&self, shard: Shard, reference: &str) -> String {
        self.at(shard, reference)
    }

    /// Hash: a conversation. Its messages and the turns that wait in it are beside it, in lists that only scripts name.
    pub(crate) fn conversation(&self, conversation: ConversationId) -> String {
        self.at(conversation.shard(), &format!("conv:{conversation}"))
    }

    /// String: the turn that a message of a person became.
    pub(crate) fn reply(&self, shard: Shard, digest: &Digest) -> String {
        self.at(shard, &format!("reply:{digest}"))
    }

    /// Hash: what a person has said about messages of agents.
    pub(crate) fn chat_settings(&self, workspace: &Name, person: &Name) -> String {
        self.at(Shard::of_workspace(workspace.as_str()), &format!("chatset:{workspace}:{person}"))
    }

    /// Sorted set: the messages of agents that wait until a person may be written to, by the time for which they wait.
    pub(crate) fn chat_waiting(&self, workspace: &Name, person: &Name) -> String {
        self.at(Shard::of_workspace(workspace.as_str()), &format!("chatwait:{workspace}:{person}"))
    }

    /// String: milliseconds that tests add to the clock of a shard. `lua/skewed_clock.lua` knows this name too.
    pub(crate) fn skew(&self, shard: Shard) -> String {
        self.at(shard, "skew")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_workspace_has_the_tag_of_its_shard() {
        let keys = Keys::new("fleet".to_owned());
        let workspace: Name = "acme".parse().unwrap();
        let project: Name = "crm".parse().unwrap();
        let shard = Shard::of_workspace("acme");
        let message: MessageId = "a}b{c".parse().unwrap();
        let names = [
            keys.message(shard, &workspace, &project, &message),
            keys.days(shard, &workspace, &project, RunKind::Agent),
            keys.calls(shard, &workspace, &project, &project),
            keys.batch(shard, &workspace, &project, &project),
            keys.batch_ids(shard, &workspace, &project, &project),
            keys.revoked(shard, &workspace, &project, &project),
            keys.alarms(shard, AlarmSet::Done),
            keys.catalog(&workspace),
            keys.definition(RunKind::Process, &workspace, &project, 7),
            keys.skew(shard),
            keys.incidents(shard),
            keys.wait(shard, &Digest::of(&["}:{s00}:x"])),
            keys.kept_of_project(shard, &workspace, &project),
            keys.credits(&workspace),
        ];
        for name in names {
            assert!(name.starts_with("fleet:{s15}:"), "{name}");
        }
    }

    #[test]
    fn a_digest_never_changes_and_tells_texts_apart() {
        let digest = Digest::of(&["message", "acme", "crm", "paid", "7"]);
        assert_eq!(digest.to_string(), "a7e6f194169e859613a99b0fe6cb3c95");
        assert_ne!(Digest::of(&["ab", "c"]), Digest::of(&["a", "bc"]));
        assert_ne!(Digest::of(&["a", ""]), Digest::of(&["a"]));
    }

    #[test]
    fn a_reference_to_an_idempotency_key_gives_the_key_back() {
        let name: Name = "acme".parse().unwrap();
        let key: IdempotencyKey = "order:17:a".parse().unwrap();
        let key_ref = Keys::key_ref(&name, &name, &key);
        assert_eq!(Keys::key_in_ref(&key_ref), Some("order:17:a"));
    }
}
