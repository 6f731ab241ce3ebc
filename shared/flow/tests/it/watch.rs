//! What is true of every run after every slice, whatever the model and the events.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_flow::{Effect, Phase, Status, What};
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

/// Every visit is entered once and ends once, and the ones that have not ended are the ones that are there.
fn tokens(play: &Play, instances: &BTreeMap<u64, &Value>) {
    let (mut entered, mut over) = (BTreeMap::new(), BTreeSet::new());
    for entry in &play.history {
        let (element, id) = (&entry.0, entry.1);
        match entry.2 {
            What::Entered => {
                assert!(entered.insert(id, element).is_none(), "{element} {id} was entered twice");
            }
            What::Left | What::Canceled => {
                assert_eq!(entered.get(&id), Some(&element), "{element} {id} ends unentered");
                assert!(over.insert(id), "{element} {id} ended twice");
            }
            _ => assert!(entered.contains_key(&id), "{element} {id} fails unentered"),
        }
    }
    for (id, instance) in instances {
        assert!(!over.contains(id), "{id} has ended and is there");
        let waiting = matches!(stage(instance), "ready" | "joining");
        let failed = play.state.phase() != &Phase::Running;
        assert!(
            failed || waiting != entered.contains_key(id),
            "{id} {instance} is entered: {}",
            entered.contains_key(id)
        );
    }
    if matches!(play.state.phase(), Phase::Failed { .. }) {
        return;
    }
    for (id, element) in entered {
        assert!(over.contains(&id) != instances.contains_key(&id), "{element} {id} is lost");
    }
}

/// Who waits has what it waits for, and a scope has members.
fn stages(play: &Play, instances: &BTreeMap<u64, &Value>, waits: &[&Value]) {
    let of = |wait: &Value| wait.get("of").and_then(Value::as_u64).unwrap_or_default();
    let kind = |wait: &Value| wait["for"].as_object().and_then(|kind| kind.keys().next().cloned());
    for wait in waits {
        let owner = of(wait);
        assert!(owner == 0 || instances.contains_key(&owner), "{wait} belongs to nobody");
        assert!(
            owner == 0 || !matches!(stage(instances[&owner]), "ready" | "joining" | "fired"),
            "{wait} belongs to {}",
            instances[&owner]
        );
    }
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
        let own = |wanted: &str| {
            waits
                .iter()
                .filter(|wait| of(wait) == *id && kind(wait).as_deref() == Some(wanted))
                .count()
        };
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
            "waiting" => assert!(waits.iter().any(|wait| of(wait) == *id), "{instance}"),
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
    assert_eq!(asked, play.unanswered(), "outstanding is not what is asked");
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
