//! Reading stored states, also those that earlier versions wrote.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::{Instance, Phase, ROOT, Sent, Stage, State, StateProblem, Wait};
use crate::limits;

/// Highest id and count that a run can have come to.
const COUNT_MAX: u64 = 1 << 53;

/// Version of the stored form.
pub(super) const VERSION: u32 = 2;

#[derive(Deserialize)]
struct Version {
    v: u64,
}

/// The first form: tokens that stand on elements.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct V1 {
    process: String,
    phase: Phase,
    variables: Map<String, Json>,
    tokens: Vec<V1Token>,
    next_id: u64,
    steps: u64,
    #[serde(default)]
    visits: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct V1Token {
    element: String,
    instance: u64,
}

#[derive(Deserialize)]
struct V2 {
    v: u64,
    process: String,
    phase: Phase,
    variables: Map<String, Json>,
    #[serde(default)]
    instances: BTreeMap<u64, Instance>,
    #[serde(default)]
    waits: Vec<Wait>,
    #[serde(default)]
    sent: Vec<Sent>,
    #[serde(default)]
    dropped: Vec<u64>,
    next: u64,
    steps: u64,
    #[serde(default)]
    visits: BTreeMap<String, u32>,
}

impl State {
    /// Reads a stored state and tells a newer one from a broken one.
    pub fn from_json(text: &str) -> Result<Self, StateProblem> {
        // Nearly all are of this version, and need to be gone through only once.
        if let Ok(stored) = serde_json::from_str::<V2>(text)
            && stored.v == 2
        {
            return Some(Self::from(stored)).filter(Self::is_sound).ok_or(StateProblem::Malformed);
        }
        let version: Version = serde_json::from_str(text).map_err(|_| StateProblem::Malformed)?;
        match version.v {
            1 => {}
            // It has been tried.
            0 | 2 => return Err(StateProblem::Malformed),
            found => return Err(StateProblem::Newer { found }),
        }
        let state = serde_json::from_str::<V1>(text).map(Self::from);
        state.ok().filter(State::is_sound).ok_or(StateProblem::Malformed)
    }

    /// Whether every reference inside leads somewhere, no id can be given out twice, and all counts fit to each other.
    fn is_sound(&self) -> bool {
        let known = |id: u64| id == ROOT || self.instances.contains_key(&id);
        self.next.max(self.steps) <= COUNT_MAX
            && self.instances.iter().all(|(id, instance)| {
                *id != ROOT
                    && *id < self.next
                    && instance.scope < *id
                    && known(instance.scope)
                    && instance.stage.is_sound()
            })
            && self.waits.iter().all(|wait| wait.id < self.next && known(wait.owner))
    }
}

impl Stage {
    fn is_sound(&self) -> bool {
        match self {
            Self::Asked(asked) => {
                asked.attempt <= asked.last && asked.last - asked.attempt <= asked.granted
            }
            Self::Repeating(repeating) => {
                repeating.ended <= repeating.begun
                    && repeating.begun <= repeating.total
                    && repeating.total <= limits::ITEMS_MAX
            }
            _ => true,
        }
    }
}

impl From<V1> for State {
    fn from(old: V1) -> Self {
        let instances = old.tokens.into_iter().map(|token| {
            let instance = Instance {
                element: token.element,
                scope: ROOT,
                stage: Stage::Ready,
                variables: Map::new(),
                item: None,
            };
            (token.instance, instance)
        });
        Self {
            v: VERSION,
            process: old.process,
            phase: old.phase,
            variables: old.variables,
            instances: instances.collect(),
            waits: Vec::new(),
            sent: Vec::new(),
            dropped: Vec::new(),
            next: old.next_id,
            steps: old.steps,
            visits: old.visits,
        }
    }
}

impl From<V2> for State {
    fn from(stored: V2) -> Self {
        Self {
            v: VERSION,
            process: stored.process,
            phase: stored.phase,
            variables: stored.variables,
            instances: stored.instances,
            waits: stored.waits,
            sent: stored.sent,
            dropped: stored.dropped,
            next: stored.next,
            steps: stored.steps,
            visits: stored.visits,
        }
    }
}
