//! What is true of every run after every slice, whatever the model and the events.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_flow::{Effect, Entry, Phase, Status, What};
use serde_json::Value;

use crate::play::Play;

/// Checks a run after a slice; `stored` is its state.
pub(crate) fn slice(play: &Play, stored: &str) {
    let stored: Value = serde_json::from_str(stored).expect("a state is JSON");
    let empty = serde_json::Map::new();
    let instances: BTreeMap<u64, &Value> = stored
        .get("instances")
        .and_then(Value::as_object)
        .unwrap_or(&empty)
        .iter()
        .map(|(id, instance)| (id.parse().expect("an id"), instance))
        .collect();
    let waits: Vec<&Value> =
        stored.get("waits").and_then(Value::as_array).into_iter().flatten().collect();
    tokens(play, &instances);
    if play.state.phase() == &Phase::Running {
        stages(play, &instances, &waits);
        outstanding(play, &instances);
        status(play, &instances, &waits);
    } else if play.state.phase() == &Phase::Completed {
        assert!(instances.is_empty() && waits.is_empty(), "something is left after the end");
    }
}

fn stage(instance: &Value) -> &str {
    match instance.get("st") {
        None => "ready",
        Some(Value::String(stage)) => stage,
        Some(Value::Object(stage)) => stage.keys().next().expect("a stage"),
        Some(other) => panic!("{other}"),
    }
}

/// What was seen of a run from outside.
#[derive(Default)]
pub(crate) struct Books {
    /// Visits that were entered, with their elements.
    entered: BTreeMap<u64, String>,
    /// Those of them that have not ended.
    live: BTreeSet<u64>,
    /// Attempts that were asked for and are neither answered nor given up.
    asked: BTreeSet<(u64, u32)>,
}

impl Books {
    /// Takes down what a slice did: every visit is entered once and ends once.
    pub(crate) fn keep(&mut self, history: &[Entry], effects: &[Effect]) {
        for effect in effects {
            if let Effect::Ask(ask) = effect {
                self.asked.insert((ask.task, ask.attempt));
            }
        }
        for Entry(element, id, what, attempt, _) in history {
            match what {
                What::Entered => {
                    let before = self.entered.insert(*id, element.clone());
                    assert_eq!(before, None, "{element} {id} was entered twice");
                    self.live.insert(*id);
                }
                What::Left | What::Canceled => {
                    assert_eq!(
                        self.entered.get(id),
                        Some(element),
                        "{element} {id} was not entered"
                    );
                    assert!(self.live.remove(id), "{element} {id} ended twice");
                    self.asked.retain(|(task, _)| task != id);
                }
                _ => {
                    // A join at which a run is stuck was never entered.
                    let there = self.live.contains(id) || !self.entered.contains_key(id);
                    assert!(there, "{element} {id} fails after its end");
                    self.asked.remove(&(*id, *attempt));
                }
            }
        }
    }
}

/// The visits that have not ended are the ones that are there.
fn tokens(play: &Play, instances: &BTreeMap<u64, &Value>) {
    let begun = instances
        .iter()
        .filter(|(_, instance)| !matches!(stage(instance), "ready" | "joining"))
        .map(|(id, _)| *id);
    let begun: BTreeSet<u64> = begun.collect();
    if matches!(play.state.phase(), Phase::Failed { .. }) {
        // What failed while it was being entered is not yet at work, and what failed at its end is gone.
        assert!(begun.iter().all(|id| play.books.live.contains(id)), "something was not entered");
    } else {
        assert_eq!(begun, play.books.live, "a visit is lost or was never entered");
    }
}

/// Who waits has what it waits for, and a scope has members.
fn stages(play: &Play, instances: &BTreeMap<u64, &Value>, waits: &[&Value]) {
    let of = |wait: &Value| wait.get("of").and_then(Value::as_u64).unwrap_or_default();
    let kind = |wait: &Value| wait["for"].as_object().and_then(|kind| kind.keys().next().cloned());
    let mut own: BTreeMap<(u64, String), usize> = BTreeMap::new();
    for wait in waits {
        let owner = of(wait);
        *own.entry((owner, kind(wait).unwrap_or_default())).or_default() += 1;
        assert!(owner == 0 || instances.contains_key(&owner), "{wait} belongs to nobody");
        assert!(
            owner == 0 || !matches!(stage(instances[&owner]), "ready" | "joining" | "fired"),
            "{wait} belongs to {}",
            instances[&owner]
        );
    }
    let owners: BTreeSet<u64> = own.keys().map(|(owner, _)| *owner).collect();
    let mut members: BTreeMap<u64, u64> = BTreeMap::new();
    for instance in instances.values() {
        let scope = instance.get("in").and_then(Value::as_u64).unwrap_or_default();
        *members.entry(scope).or_default() += 1;
        if scope != 0 {
            let around = stage(instances[&scope]);
            let fits = if instance.get("i").is_some() { "repeating" } else { "open" };
            assert_eq!(around, fits, "{instance} lies in {}", instances[&scope]);
        }
    }
    for (id, instance) in instances {
        let own = |wanted: &str| own.get(&(*id, wanted.to_owned())).copied().unwrap_or_default();
        let (expiries, retries) = match stage(instance) {
            "asked" if instance["st"]["asked"]["now"].get("out").is_some() => (1, 0),
            "asked" if instance["st"]["asked"]["now"] == "pause" => (0, 1),
            _ => (0, 0),
        };
        assert_eq!((own("expiry"), own("retry")), (expiries, retries), "{instance}");
        let inside = members.get(id).copied().unwrap_or_default();
        match stage(instance) {
            "open" => assert!(inside > 0, "{instance} is empty and goes on"),
            "repeating" => {
                let repeating = &instance["st"]["repeating"];
                let count = |name: &str| repeating[name].as_u64().expect("a number");
                assert_eq!(count("begun") - count("ended"), inside, "{instance}");
                assert!(count("begun") <= count("total") && inside > 0, "{instance}");
            }
            "waiting" => assert!(owners.contains(id), "{instance}"),
            _ => assert_eq!(inside, 0, "{instance} has members"),
        }
    }
    assert!(!instances.is_empty(), "{:?} has no token", play.status);
}

/// What would be done again after a crash is what was asked for and is not over.
fn outstanding(play: &Play, instances: &BTreeMap<u64, &Value>) {
    let outstanding = play.state.outstanding(&play.definition);
    let mut asked = BTreeSet::new();
    let mut called = BTreeSet::new();
    for effect in &outstanding {
        match effect {
            Effect::Ask(ask) => {
                assert!(asked.insert((ask.task, ask.attempt)), "{ask:?} is outstanding twice");
            }
            Effect::Call { task, .. } => assert!(called.insert(*task), "{task} calls twice"),
            _ => {}
        }
    }
    assert_eq!(asked, play.books.asked, "outstanding is not what is asked");
    let calling: BTreeSet<u64> = instances
        .iter()
        .filter(|(_, instance)| stage(instance) == "called")
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(called, calling);
    let sent = play.state.sent();
    assert_eq!(outstanding[..sent.len()], sent[..]);
}

fn status(play: &Play, instances: &BTreeMap<u64, &Value>, waits: &[&Value]) {
    let ready = instances.values().any(|instance| matches!(stage(instance), "ready" | "fired"));
    match play.status {
        Status::Running => assert!(ready, "it says that it goes on, and nothing is ready"),
        Status::Waiting { wake_ms } => {
            assert!(!ready, "it says that it waits, and something is ready");
            let due = waits.iter().filter_map(|wait| {
                wait["for"].as_object()?.values().next()?.get("dueMs")?.as_u64()
            });
            assert_eq!(wake_ms, due.min(), "it does not wake in time");
            assert!(wake_ms.is_none_or(|wake| wake > play.now_ms), "something is overdue");
        }
        ref other => panic!("{other:?} while it runs"),
    }
}
