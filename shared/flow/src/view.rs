//! What a stored state says, for whoever looks at a run from outside.

use serde::Serialize;

use crate::definition::Definition;
use crate::state::{AskedNow, Awaited, Instance, Stage, State};

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// Active elements, in the order in which they became active.
    pub active: Vec<ActiveElement>,
    /// What the run waits for from outside and from the clock.
    pub awaited: Vec<AwaitedView>,
}

/// One active element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveElement {
    /// The instance: how operations name this visit of the element.
    pub instance: u64,
    /// Id of the element.
    pub element: String,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The sub-process or multi-instance activity that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<u64>,
    /// Which item of a multi-instance activity it is, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// What it is doing, as a word.
    pub doing: Doing,
}

/// What an active element is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Doing {
    /// It is executed next.
    Ready,
    /// It waits for an event or a time.
    Waiting,
    /// It waits at a join for other paths.
    Joining,
    /// Somebody was asked to carry it out.
    Asked {
        /// Task type.
        work: String,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt failed; another one comes.
    Pausing {
        /// Task type.
        work: String,
        /// Number of the attempt that failed.
        attempt: u32,
    },
    /// All attempts failed: somebody has to look.
    Incident {
        /// Task type.
        work: String,
        /// Number of the last attempt.
        attempt: u32,
        /// A fixed word for what went wrong.
        code: String,
        /// Unix milliseconds.
        since: u64,
    },
    /// A person is to do it.
    Person {
        /// Who has it.
        assignee: Option<String>,
        /// Groups that may take it.
        candidate_groups: Vec<String>,
        /// People who may take it.
        candidate_users: Vec<String>,
        /// When it should be done, ISO 8601.
        due: Option<String>,
        /// Unix milliseconds since when it waits.
        since: u64,
    },
    /// A run of another process is under way.
    Called {
        /// Id of that process.
        process: String,
    },
    /// A sub-process with active elements.
    Open,
    /// A multi-instance activity.
    Repeating {
        /// Items in all.
        total: u32,
        /// Items that have ended.
        ended: u32,
    },
}

/// Something that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum AwaitedView {
    /// A time.
    Time {
        /// The timer event, or the task whose attempt ends or begins then.
        element: String,
        /// Unix milliseconds.
        due: u64,
    },
    /// A message.
    Message {
        /// The event.
        element: String,
        /// Its name.
        name: String,
        /// Its correlation key.
        key: Option<String>,
    },
    /// A signal.
    Signal {
        /// The event.
        element: String,
        /// Its name.
        name: String,
    },
}

/// A message or signal for which the ledger should let others find the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscription {
    /// A message of this name and key goes to one run.
    Message {
        /// Unique in the run.
        id: u64,
        /// Its name.
        name: String,
        /// Its correlation key.
        key: Option<String>,
    },
    /// A signal of this name goes to all.
    Signal {
        /// Its name.
        name: String,
    },
}

impl State {
    /// Where the run stands, for people. Without a definition there are no display names.
    pub fn view(&self, definition: Option<&Definition>) -> RunView {
        let active = self.instances.iter().map(|(id, instance)| ActiveElement {
            instance: *id,
            element: instance.element.clone(),
            name: definition.and_then(|definition| {
                definition.nodes[*definition.index.get(&instance.element)?].name.clone()
            }),
            inside: Some(instance.scope).filter(|scope| *scope != crate::state::ROOT),
            item: instance.item.map(|item| item + 1),
            doing: doing(instance),
        });
        let awaited = self.waits.iter().map(|wait| {
            let element = wait.element.clone();
            match &wait.awaited {
                Awaited::Timer { due_ms, .. }
                | Awaited::Expiry { due_ms }
                | Awaited::Retry { due_ms } => AwaitedView::Time { element, due: *due_ms },
                Awaited::Message { name, key } => {
                    AwaitedView::Message { element, name: name.clone(), key: key.clone() }
                }
                Awaited::Signal { name } => AwaitedView::Signal { element, name: name.clone() },
            }
        });
        RunView { active: active.collect(), awaited: awaited.collect() }
    }

    /// The messages and signals that the run waits for.
    pub fn subscriptions(&self) -> Vec<Subscription> {
        let mut found: Vec<Subscription> = Vec::new();
        for wait in &self.waits {
            let subscription = match &wait.awaited {
                Awaited::Message { name, key } => {
                    Subscription::Message { id: wait.id, name: name.clone(), key: key.clone() }
                }
                Awaited::Signal { name } => Subscription::Signal { name: name.clone() },
                Awaited::Timer { .. } | Awaited::Expiry { .. } | Awaited::Retry { .. } => continue,
            };
            // Several waits for one signal are one subscription.
            if !found.contains(&subscription) {
                found.push(subscription);
            }
        }
        found
    }

    /// Tasks that have failed for good and wait for somebody to look.
    pub fn incidents(&self) -> u32 {
        let failed = self.instances.values().filter(|instance| {
            matches!(&instance.stage, Stage::Asked(asked) if matches!(asked.now, AskedNow::Incident { .. }))
        });
        u32::try_from(failed.count()).unwrap_or(u32::MAX)
    }

    /// Whether a time has come that the run waits for.
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.waits.iter().filter_map(|wait| wait.awaited.due_ms()).any(|due_ms| due_ms <= now_ms)
    }

    /// Whether a run that instance `task` has called may still matter to this one.
    pub fn wants_child_of(&self, task: u64) -> bool {
        self.instances.get(&task).is_some_and(|instance| {
            matches!(instance.stage, Stage::Called { .. } | Stage::Asked(_))
        })
    }

    /// Whether it waits for the end of a called process or an agent.
    pub fn calls(&self) -> bool {
        self.instances.values().any(|instance| instance.stage.has_child())
    }

    /// Whether `task` is a user task that waits for its person.
    pub fn is_open_task(&self, task: u64) -> bool {
        self.instances.get(&task).is_some_and(|instance| matches!(instance.stage, Stage::Person(_)))
    }
}

fn doing(instance: &Instance) -> Doing {
    match &instance.stage {
        Stage::Ready | Stage::Fired => Doing::Ready,
        Stage::Waiting => Doing::Waiting,
        Stage::Joining(_) => Doing::Joining,
        Stage::Asked(asked) => {
            let (work, attempt) = (asked.work.clone(), asked.attempt);
            match &asked.now {
                AskedNow::Out { .. } => Doing::Asked { work, attempt },
                AskedNow::Pause => Doing::Pausing { work, attempt },
                AskedNow::Incident { code, since_ms } => {
                    Doing::Incident { work, attempt, code: code.clone(), since: *since_ms }
                }
            }
        }
        Stage::Person(person) => Doing::Person {
            assignee: person.assignee.clone(),
            candidate_groups: person.groups.clone(),
            candidate_users: person.users.clone(),
            due: person.due.clone(),
            since: person.since_ms,
        },
        Stage::Called { process } => Doing::Called { process: process.clone() },
        Stage::Open => Doing::Open,
        Stage::Repeating(repeating) => {
            Doing::Repeating { total: repeating.total, ended: repeating.ended }
        }
    }
}
