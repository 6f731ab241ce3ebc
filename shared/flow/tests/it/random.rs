//! Random models, random orders of events, random slices: nothing is lost, doubled or stuck, and the end is always the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use runfleet_flow::{Definition, Doing, Event, Status, Subscription, What};
use serde_json::{Map, json};

use crate::blocks::{self, Counts, Model};
use crate::model;
use crate::play::{Dice, Play};

/// Cases of one pass of the suite; `RUNFLEET_FLOW_CASES` asks for more, `RUNFLEET_FLOW_FROM` says with which to begin, and
/// `RUNFLEET_FLOW_BLOCKS` how large models are.
const CASES: u64 = 256;

#[expect(
    clippy::disallowed_methods,
    reason = "asks for more cases by hand; nothing in the product reads it"
)]
pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Everything that could happen now, but for what never comes.
fn possible(play: &Play, dice: &mut Dice) -> Vec<Event> {
    let mut events = Vec::new();
    for active in play.state.view(None).active {
        let task = active.instance;
        events.push(match active.doing {
            Doing::Asked { attempt, .. } => match dice.below(4) {
                0 if attempt % 3 != 0 => Event::TaskFailed {
                    task,
                    attempt,
                    code: "BUSY".to_owned(),
                    retry: true,
                    after_ms: None,
                },
                1 if dice.below(3) == 0 => Event::TaskFailed {
                    task,
                    attempt,
                    code: "BROKEN".to_owned(),
                    retry: false,
                    after_ms: None,
                },
                _ => Event::TaskDone { task, attempt, answer: json!({}) },
            },
            Doing::Incident { .. } => Event::Retry { task: Some(task) },
            Doing::Person { .. } if !active.element.starts_with('N') => {
                Event::UserDone { task, variables: Map::new() }
            }
            Doing::Called { .. } => {
                Event::ChildEnded { task, output: Some(Map::new()), failed: None }
            }
            _ => continue,
        });
    }
    events.extend(play.state.subscriptions().into_iter().filter_map(|found| match found {
        Subscription::Message { id, .. } => {
            Some(Event::Message { subscription: id, variables: Map::new() })
        }
        Subscription::Signal { .. } => None,
    }));
    events
}

/// Plays a model to its end. With `wild`, events come in any order, in groups, twice, and in the middle of slices.
fn end(definition: &Arc<Definition>, seed: u64, wild: bool) -> Play {
    let steps = if wild { None } else { Some(100_000) };
    let mut play = Play::new(definition, json!({"total": 0})).with(seed, steps);
    let mut dice = Dice(seed ^ 0x5EED);
    let mut old: Vec<Event> = Vec::new();
    loop {
        assert!(play.slices < 20_000, "it does not end: {:?}", play.state.view(None));
        if !matches!(play.status, Status::Running | Status::Waiting { .. }) {
            return play;
        }
        let running = play.status == Status::Running;
        if running && (!wild || dice.below(3) > 0) {
            play.slice(Vec::new());
            continue;
        }
        let mut events = possible(&play, &mut dice);
        if events.is_empty() {
            match play.status {
                Status::Waiting { wake_ms: Some(wake) } => play.now_ms = wake,
                Status::Waiting { .. } => panic!("nothing can happen: {:?}", play.state.view(None)),
                _ => {}
            }
            play.slice(Vec::new());
            continue;
        }
        let mut chosen = vec![events.swap_remove(if wild { dice.below(events.len()) } else { 0 })];
        if wild && dice.below(4) == 0 && !events.is_empty() {
            chosen.push(events.swap_remove(dice.below(events.len())));
        }
        let known = chosen.clone();
        let mut ignored = play.ignored;
        if wild && dice.below(3) == 0 && !old.is_empty() {
            chosen.push(old[dice.below(old.len())].clone());
            ignored += 1;
        }
        play.slice(chosen);
        if matches!(play.status, Status::Running | Status::Waiting { .. }) {
            assert!(play.ignored >= ignored, "an old event has changed something");
        }
        // A retry is for whatever has failed by then.
        old.extend(known.into_iter().filter(|event| !matches!(event, Event::Retry { .. })));
    }
}

fn counts(play: &Play) -> Counts {
    let mut counts = Counts::new();
    for entry in &play.history {
        let count = counts.entry(entry.0.clone()).or_default();
        match entry.2 {
            What::Left => count.0 += 1,
            What::Canceled => count.1 += 1,
            _ => {}
        }
    }
    counts
}

fn check(model: &Model, play: &Play, case: u64) {
    let shown = || format!("case {case}:\n{}", model.text);
    assert!(matches!(play.status, Status::Completed { .. }), "{:?} in {}", play.status, shown());
    let found = counts(play);
    let mut expected = model.counts.clone();
    expected.extend([("start".to_owned(), (1, 0)), ("end".to_owned(), (1, 0))]);
    expected.retain(|_, count| *count != (0, 0));
    let differing: BTreeMap<_, _> = expected
        .iter()
        .map(|(id, count)| (id, (Some(count), found.get(id))))
        .chain(found.iter().map(|(id, count)| (id, (expected.get(id), Some(count)))))
        .filter(|(_, (expected, found))| expected != found)
        .collect();
    assert!(differing.is_empty(), "expected and found: {differing:?} in {}", shown());
    assert_eq!(play.output(), json!({"total": model.total}), "{}", shown());
}

#[test]
fn random_models_end_as_they_are_drawn_whatever_the_order_of_events_and_the_slices() {
    let cases = setting("RUNFLEET_FLOW_CASES").unwrap_or(CASES);
    let from = setting("RUNFLEET_FLOW_FROM").unwrap_or_default();
    let rounds = if cases > CASES { 2 } else { 1 };
    for case in from..from + cases {
        let mut dice = Dice(case.wrapping_mul(0x1234_5678_9ABC));
        let size = 3 + dice.below(
            setting("RUNFLEET_FLOW_BLOCKS").map_or(11, |most| usize::try_from(most).expect("few")),
        );
        let model = blocks::draw(&mut dice, size);
        let xml = model::document(&model.text);
        let definition = match Definition::parse(&xml) {
            Ok(definition) => Arc::new(definition),
            Err(problems) => panic!("{problems:?} in case {case}:\n{}", model.text),
        };
        let plain = end(&definition, case, false);
        check(&model, &plain, case);
        for round in 0..rounds {
            let wild = end(&definition, case * 2 + round, true);
            check(&model, &wild, case);
            assert_eq!(wild.state.steps(), plain.state.steps(), "case {case}:\n{}", model.text);
        }
    }
}
