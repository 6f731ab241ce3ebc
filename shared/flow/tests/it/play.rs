//! Plays a model event by event. Events are addressed by the id of the element, every slice goes through the stored form, the
//! slices are cut anew for each seed, and after each of them everything that is true of every run is asserted.

use std::cell::Cell;
use std::collections::BTreeSet;

use runfleet_flow::{
    AwaitedView, Definition, Doing, Effect, Entry, Event, FailureCode, State, Status, Subscription,
    What,
};
use serde_json::{Map, Value, json};

use crate::support::{NOW_MS, advance_with, map, parse};
use crate::{model, watch};

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// Plays the same with slices of one step, slices without end, and slices of some steps.
pub(crate) fn cut(play: impl Fn()) {
    for seed in 0..6 {
        SEED.set(seed);
        play();
    }
}

/// Numbers that look random and are the same every time.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % (bound.max(1) as u64)).expect("it is small")
    }
}

/// A run under play.
pub(crate) struct Play {
    pub(crate) definition: std::sync::Arc<Definition>,
    pub(crate) state: State,
    pub(crate) status: Status,
    pub(crate) now_ms: u64,
    pub(crate) history: Vec<Entry>,
    /// Everything that was called for, in order.
    pub(crate) effects: Vec<Effect>,
    /// Events that changed nothing.
    pub(crate) ignored: u32,
    pub(crate) slices: u32,
    /// Size of the largest state that was stored, in bytes.
    pub(crate) largest: usize,
    /// Tasks and attempts that were answered.
    answered: BTreeSet<(u64, u32)>,
    asked: BTreeSet<(u64, u32)>,
    pub(crate) books: watch::Books,
    dice: Dice,
    /// Most steps of a slice; drawn each time when there is none.
    steps: Option<u32>,
}

/// Starts a model without input and plays it until it waits.
pub(crate) fn play(model: &str) -> Play {
    play_with(model, json!({}))
}

/// Starts a model and plays it until it waits.
pub(crate) fn play_with(model: &str, input: Value) -> Play {
    let mut play = Play::new(&std::sync::Arc::new(parse(&model::document(model))), input);
    play.rest(Vec::new());
    play
}

impl Play {
    /// A run that has not begun, with slices as the seed says.
    pub(crate) fn new(definition: &std::sync::Arc<Definition>, input: Value) -> Self {
        let seed = SEED.get();
        let steps = match seed {
            0 => Some(1),
            1 => Some(100_000),
            _ => None,
        };
        Self {
            definition: definition.clone(),
            state: definition.start(map(input)).expect("the input fits"),
            status: Status::Running,
            now_ms: NOW_MS,
            history: Vec::new(),
            effects: Vec::new(),
            ignored: 0,
            slices: 0,
            largest: 0,
            answered: BTreeSet::new(),
            asked: BTreeSet::new(),
            books: watch::Books::default(),
            dice: Dice(seed),
            steps,
        }
    }

    /// Cuts the slices by these dice.
    pub(crate) fn with(mut self, seed: u64, steps: Option<u32>) -> Self {
        (self.dice, self.steps) = (Dice(seed), steps);
        self
    }

    /// One slice.
    pub(crate) fn slice(&mut self, events: Vec<Event>) {
        for event in &events {
            if let Event::TaskDone { task, attempt, .. }
            | Event::TaskFailed { task, attempt, .. }
            | Event::TaskError { task, attempt, .. } = event
                && self.asked.contains(&(*task, *attempt))
            {
                self.answered.insert((*task, *attempt));
            }
        }
        let steps =
            self.steps.unwrap_or_else(|| 1 + u32::try_from(self.dice.below(7)).expect("few"));
        let advanced =
            advance_with(&self.definition, self.state.clone(), events, self.now_ms, steps);
        let stored = serde_json::to_string(&advanced.state).expect("a state can be written");
        self.state = State::from_json(&stored).expect("a state can be read");
        assert_eq!(self.state, advanced.state, "the stored form is not the state");
        self.status = advanced.status;
        self.ignored += advanced.ignored;
        self.slices += 1;
        self.largest = self.largest.max(stored.len());
        assert!(self.slices < 200_000, "the run must come to rest");
        self.note(&advanced.effects);
        self.books.keep(&advanced.history, &advanced.effects);
        self.history.extend(advanced.history);
        self.effects.extend(advanced.effects);
        watch::slice(self, &stored);
    }

    fn note(&mut self, effects: &[Effect]) {
        let of = |wanted: fn(&Effect) -> bool| effects.iter().filter(move |effect| wanted(effect));
        let sent = of(|effect| matches!(effect, Effect::Message { .. } | Effect::Signal { .. }));
        let given_up = of(|effect| matches!(effect, Effect::CancelCall { .. }));
        let expected: Vec<Effect> = sent.chain(given_up).cloned().collect();
        assert_eq!(self.state.sent(), expected, "what was sent or given up is kept");
        for effect in effects {
            let Effect::Ask(ask) = effect else { continue };
            let id = (ask.task, ask.attempt);
            assert!(!self.answered.contains(&id), "{id:?} was asked after its answer");
            assert!(self.asked.insert(id), "{id:?} was asked twice");
        }
    }

    /// Slices until nothing is ready.
    pub(crate) fn rest(&mut self, events: Vec<Event>) {
        self.slice(events);
        while self.status == Status::Running {
            self.slice(Vec::new());
        }
    }

    /// Takes in one event that must change something, and comes to rest.
    pub(crate) fn tell(&mut self, event: Event) {
        let before = self.ignored;
        let shown = format!("{event:?}");
        self.rest(vec![event]);
        assert_eq!(self.ignored, before, "{shown} changed nothing");
    }

    /// Takes in one event that must change nothing.
    pub(crate) fn ignores(&mut self, event: Event) {
        let (before, state) = (self.ignored, self.state.clone());
        let shown = format!("{event:?}");
        self.rest(vec![event]);
        assert_eq!(self.ignored, before + 1, "{shown} changed something");
        let same = |state: &State| {
            let mut state = serde_json::to_value(state).expect("writable");
            // What the last slice sent is told once.
            let entries = state.as_object_mut().expect("an object");
            entries.retain(|key, _| !matches!(key.as_str(), "sent" | "dropped"));
            state
        };
        assert_eq!(same(&self.state), same(&state), "{shown} changed something");
    }

    /// Instances of an element that wait for somebody outside or for an event, oldest first.
    pub(crate) fn all(&self, element: &str) -> Vec<(u64, Doing)> {
        let active = self.state.view(None).active.into_iter();
        active
            .filter(|active| active.element == element)
            .map(|active| (active.instance, active.doing))
            .collect()
    }

    /// The oldest instance of an element that somebody can end.
    pub(crate) fn one(&self, element: &str) -> (u64, u32) {
        self.nth(element, 0)
    }

    /// The n-th of those, with its attempt.
    pub(crate) fn nth(&self, element: &str, n: usize) -> (u64, u32) {
        let mut found = self.all(element).into_iter().filter_map(|(id, doing)| match doing {
            Doing::Asked { attempt, .. } | Doing::Incident { attempt, .. } => Some((id, attempt)),
            Doing::Person { .. } | Doing::Called { .. } | Doing::Waiting => Some((id, 1)),
            _ => None,
        });
        found
            .nth(n)
            .unwrap_or_else(|| panic!("no {element} is open in {:?}", self.state.view(None)))
    }

    /// The event that ends the n-th open instance of a task, user task or call.
    pub(crate) fn ending(&self, element: &str, n: usize, result: Value) -> Event {
        let (task, attempt) = self.nth(element, n);
        let doing =
            self.all(element).into_iter().find(|(id, _)| *id == task).expect("it is active");
        match doing.1 {
            Doing::Person { .. } => Event::UserDone { task, variables: map(result) },
            Doing::Called { .. } => {
                Event::ChildEnded { task, output: Some(map(result)), failed: None }
            }
            _ => Event::TaskDone { task, attempt, answer: result },
        }
    }

    /// A task, user task or call is done, without a result.
    pub(crate) fn done(&mut self, element: &str) {
        self.done_with(element, json!({}));
    }

    pub(crate) fn done_with(&mut self, element: &str, result: Value) {
        let event = self.ending(element, 0, result);
        self.tell(event);
    }

    /// Several are done one after the other.
    pub(crate) fn all_done(&mut self, elements: &[&str]) {
        for element in elements {
            self.done(element);
        }
    }

    /// An attempt fails.
    pub(crate) fn failed(&mut self, element: &str, code: &str, retry: bool, after_ms: Option<u64>) {
        let (task, attempt) = self.one(element);
        self.tell(Event::TaskFailed { task, attempt, code: code.to_owned(), retry, after_ms });
    }

    /// A task reports an error of the drawing.
    pub(crate) fn error(&mut self, element: &str, code: &str) {
        let (task, attempt) = self.one(element);
        let variables = map(json!({"why": code}));
        self.tell(Event::TaskError { task, attempt, code: code.to_owned(), variables });
    }

    /// A called process fails.
    pub(crate) fn child_failed(&mut self, element: &str, code: &str) {
        let task = self.one(element).0;
        self.tell(Event::ChildEnded { task, output: None, failed: Some(code.to_owned()) });
    }

    /// The subscription for a message; panics when the run does not wait for it.
    pub(crate) fn subscription(&self, name: &str, key: Option<&str>) -> u64 {
        let found = self.state.subscriptions().into_iter().find_map(|found| match found {
            Subscription::Message { id, name: n, key: k } if n == name && k.as_deref() == key => {
                Some(id)
            }
            _ => None,
        });
        found.unwrap_or_else(|| panic!("nobody waits for {name} {key:?}"))
    }

    /// A message without a key comes.
    pub(crate) fn message(&mut self, name: &str, variables: Value) {
        let subscription = self.subscription(name, None);
        self.tell(Event::Message { subscription, variables: map(variables) });
    }

    /// A signal comes to somebody.
    pub(crate) fn signal(&mut self, name: &str) {
        self.tell(Event::Signal { name: name.to_owned(), variables: Map::new() });
    }

    /// Time passes, and the run is woken each time that it wants to be.
    pub(crate) fn pass(&mut self, seconds: u64) {
        let until = self.now_ms + seconds * 1_000;
        while let Status::Waiting { wake_ms: Some(due) } = self.status {
            if due > until {
                break;
            }
            self.now_ms = due.max(self.now_ms);
            self.rest(Vec::new());
        }
        self.now_ms = until;
    }

    /// Ids of the elements that begin with a capital letter and belong to no scope by name, as they were left; `-` stands
    /// before one that was ended early.
    pub(crate) fn path(&self) -> String {
        let shown = self.history.iter().filter(|entry| {
            entry.0.starts_with(|c: char| c.is_ascii_uppercase()) && !entry.0.contains('_')
        });
        let words = shown.filter_map(|entry| match entry.2 {
            What::Left => Some(entry.0.clone()),
            What::Canceled => Some(format!("-{}", entry.0)),
            _ => None,
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// How often an element was left.
    pub(crate) fn left(&self, element: &str) -> usize {
        self.history.iter().filter(|entry| entry.0 == element && entry.2 == What::Left).count()
    }

    /// Asserts the path so far, and that the run has completed.
    pub(crate) fn ends(&self, path: &str) {
        assert!(
            matches!(self.status, Status::Completed { .. }),
            "{:?} after {}",
            self.status,
            self.path()
        );
        assert_eq!(self.path(), path);
    }

    /// Asserts the path so far, and that the run waits.
    pub(crate) fn waits(&self, path: &str) {
        assert!(
            matches!(self.status, Status::Waiting { .. }),
            "{:?} after {}",
            self.status,
            self.path()
        );
        assert_eq!(self.path(), path);
    }

    /// Asserts that the run has failed.
    pub(crate) fn fails(&self, code: FailureCode, element: &str, error: Option<&str>) {
        let Status::Failed { code: c, element: e, error: r, .. } = &self.status else {
            panic!("{:?} after {}", self.status, self.path());
        };
        assert_eq!((*c, e.as_deref(), r.as_deref()), (code, Some(element), error));
    }

    /// Declared outputs at the end.
    pub(crate) fn output(&self) -> Value {
        let Status::Completed { output: Some(output) } = &self.status else {
            panic!("{:?} after {}", self.status, self.path());
        };
        Value::Object(output.clone())
    }

    /// Value of a variable of the run.
    pub(crate) fn value(&self, name: &str) -> Value {
        self.state.variables().get(name).cloned().unwrap_or(Value::Null)
    }

    /// What the run waits for in this element by the clock, in seconds from now.
    pub(crate) fn due(&self, element: &str) -> Vec<u64> {
        let awaited = self.state.view(None).awaited.into_iter();
        awaited
            .filter_map(|awaited| match awaited {
                AwaitedView::Time { element: e, due } if e == element => {
                    Some(due.saturating_sub(self.now_ms) / 1_000)
                }
                _ => None,
            })
            .collect()
    }
}
