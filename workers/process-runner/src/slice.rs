//! One slice of a run: from the stored record and what has happened to what has to be committed. Pure.

use runfleet_domain::RunState;
use runfleet_domain::limits::{
    CHECKPOINT_BYTES_MAX, HISTORY_ENTRY_BYTES_MAX, PROCESS_OUTPUT_BYTES_MAX,
};
use runfleet_flow::{
    Definition, Effect, Entry, Event, FailureCode, Slice, State, StateProblem, Status,
    Subscription, advance,
};
use runfleet_store::{End, Wake};
use serde_json::{Map, Value};

/// How often a run is looked at that waits for called ones, in milliseconds.
const CALLS_LOOKED_AT_MS: u64 = 30 * 60 * 1_000;

/// How a run ends, before it is committed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// A final state.
    pub(crate) state: RunState,
    /// Output as JSON.
    pub(crate) output: Option<String>,
    /// Code and fixed sentence.
    pub(crate) error: Option<(String, String)>,
}

impl Ending {
    /// The same as the ledger takes it, with what has happened last.
    pub(crate) fn as_end<'a>(&'a self, history: &'a [&'a str]) -> End<'a> {
        let error = self.error.as_ref().map(|(code, message)| (code.as_str(), message.as_str()));
        End { state: self.state, output: self.output.as_deref(), error, history }
    }
}

/// What a slice leads to.
#[derive(Debug)]
pub(crate) struct Worked {
    /// How the run stands.
    pub(crate) step: Step,
    /// What to do outside, once that is committed.
    pub(crate) effects: Vec<Effect>,
    /// What has happened, as compact JSON.
    pub(crate) history: Vec<String>,
    /// Events that changed nothing.
    pub(crate) ignored: u32,
}

impl Worked {
    /// A run that ends without having been executed.
    pub(crate) fn ended(end: Ending) -> Self {
        Self { step: Step::End(end), effects: Vec::new(), history: Vec::new(), ignored: 0 }
    }
}

/// How a run stands after a slice.
#[derive(Debug)]
pub(crate) enum Step {
    /// It has reached its end.
    End(Ending),
    /// It goes on later.
    Save(Box<Save>),
}

/// What has to be stored of a run that goes on.
#[derive(Debug)]
pub(crate) struct Save {
    /// The state.
    pub(crate) state: State,
    /// The same as JSON.
    pub(crate) position: String,
    /// When to look at it again.
    pub(crate) wake: Wake,
    /// What it waits for from now on, if that has changed.
    pub(crate) waits: Option<Vec<Subscription>>,
    /// Incidents that are open.
    pub(crate) incidents: u32,
}

impl Save {
    /// Takes out what has been sent, if there is anything; then it has to be stored once more.
    pub(crate) fn settle(&mut self) -> bool {
        if self.state.sent().is_empty() {
            return false;
        }
        self.state.settle();
        if let Ok(position) = serde_json::to_string(&self.state) {
            self.position = position;
        }
        self.waits = None;
        true
    }
}

/// A run that ends with an error: a code and a fixed sentence, nothing of the run's data.
pub(crate) fn failed(code: &str, message: &str) -> Ending {
    Ending {
        state: RunState::Failed,
        output: None,
        error: Some((code.to_owned(), message.to_owned())),
    }
}

/// A stored position was written by a newer version of the engine: this runner must not touch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored position was written by a newer version")]
pub(crate) struct Newer;

/// The state in a stored position, or that of a run at its start, or how the run ends because it has neither.
pub(crate) fn state_of(
    definition: &Definition,
    position: Option<&str>,
    input: Option<&str>,
) -> Result<Result<State, Ending>, Newer> {
    if let Some(position) = position {
        return match State::from_json(position) {
            Ok(state) => Ok(Ok(state)),
            Err(StateProblem::Newer { .. }) => Err(Newer),
            Err(StateProblem::Malformed) => {
                Ok(Err(failed("INTERNAL_ERROR", "The run could not be continued.")))
            }
        };
    }
    let invalid = || failed("INPUT_INVALID", "The input of the run is not valid.");
    let input: Map<String, Value> = match input.map(serde_json::from_str).transpose() {
        Ok(input) => input.unwrap_or_default(),
        Err(_) => return Ok(Err(invalid())),
    };
    Ok(definition.start(input).map_err(|_| invalid()))
}

/// Takes in events and executes one slice of at most `steps` steps.
pub(crate) fn work(
    definition: &Definition,
    state: State,
    events: Vec<Event>,
    now_ms: u64,
    steps: u32,
) -> Worked {
    let before = state.subscriptions();
    let advanced = advance(definition, state, events, now_ms, Slice { max_steps: steps });
    let step = match advanced.status {
        Status::Completed { output } => Step::End(completed(output)),
        Status::Failed { code, error, message, .. } => {
            Step::End(failed_as_drawn(code, error, &message))
        }
        Status::Running => save(advanced.state, Wake::Now, &before),
        Status::Waiting { wake_ms } => {
            // A call that nobody has come to making, whose message is lost as well, has nothing else that would ring.
            let look_ms = advanced.state.calls().then(|| now_ms.saturating_add(CALLS_LOOKED_AT_MS));
            let wake_ms = [wake_ms, look_ms].into_iter().flatten().min();
            save(advanced.state, wake_ms.map_or(Wake::Never, Wake::At), &before)
        }
        // The engine may learn more before this worker does; such a run must not be lost in silence.
        _ => Step::End(failed(
            "INTERNAL_ERROR",
            "The run has reached something that this runner does not know.",
        )),
    };
    Worked {
        step,
        effects: advanced.effects,
        history: advanced.history.iter().filter_map(entry).collect(),
        ignored: advanced.ignored,
    }
}

/// Steps after which [`to_the_end`] looks at its time.
const STEPS_AT_A_TIME: u32 = 25;

/// Executes a run from its start to its end, in at most about `steps` steps. `None` when it does not come to its end like that: it
/// waits, asks for something, or `in_time` has said no between two steps.
pub(crate) fn to_the_end(
    definition: &Definition,
    mut state: State,
    now_ms: u64,
    steps: u32,
    in_time: impl Fn() -> bool,
) -> Option<Worked> {
    let (mut left, mut history) = (steps, Vec::new());
    loop {
        let now = STEPS_AT_A_TIME.min(left);
        let mut worked = work(definition, state, Vec::new(), now_ms, now);
        history.append(&mut worked.history);
        match worked.step {
            Step::End(_) if worked.effects.is_empty() => return Some(Worked { history, ..worked }),
            Step::Save(save) if save.wake == Wake::Now && worked.effects.is_empty() => {
                left -= now;
                if left == 0 || !in_time() {
                    return None;
                }
                state = save.state;
            }
            Step::End(_) | Step::Save(_) => return None,
        }
    }
}

fn save(state: State, wake: Wake, before: &[Subscription]) -> Step {
    match serde_json::to_string(&state) {
        Ok(position) if position.len() <= CHECKPOINT_BYTES_MAX => {
            let waits = state.subscriptions();
            let waits = (waits != before).then_some(waits);
            let incidents = state.incidents();
            Step::Save(Box::new(Save { state, position, wake, waits, incidents }))
        }
        Ok(_) => Step::End(failed(
            "STATE_TOO_LARGE",
            "The state of the run has become too large to store.",
        )),
        Err(_) => Step::End(failed("INTERNAL_ERROR", "The run could not be continued.")),
    }
}

/// One entry of the history. Element ids are shorter than what an entry may have.
fn entry(entry: &Entry) -> Option<String> {
    serde_json::to_string(entry).ok().filter(|text| text.len() <= HISTORY_ENTRY_BYTES_MAX)
}

/// The error of a failed run. A code of the drawing goes with the fixed one, so that the process that has called this one can
/// catch it.
fn failed_as_drawn(code: FailureCode, error: Option<String>, message: &str) -> Ending {
    let code = match error {
        Some(error) if code == FailureCode::UncaughtError => {
            // The ledger keeps 128 bytes of a code.
            let error: String = error.chars().filter(|c| !c.is_control()).take(24).collect();
            format!("{}:{error}", code.as_str())
        }
        Some(word) if code == FailureCode::TaskFailed => format!("{}:{word}", code.as_str()),
        _ => code.as_str().to_owned(),
    };
    failed(&code, message)
}

/// The code that catches the end of a called process: that of the error in its drawing that nobody caught, or the fixed word.
pub(crate) fn code_to_catch(code: &str) -> String {
    let prefix = format!("{}:", FailureCode::UncaughtError.as_str());
    code.strip_prefix(&prefix).unwrap_or(code).to_owned()
}

/// Output that is too large for the outcome is not kept at all.
fn completed(output: Option<Map<String, Value>>) -> Ending {
    let output = output
        .and_then(|output| serde_json::to_string(&output).ok())
        .filter(|output| output.len() <= PROCESS_OUTPUT_BYTES_MAX);
    Ending { state: RunState::Completed, output, error: None }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn definition(name: &str) -> Definition {
        let path = format!("{}/../../deploy/example/{name}.bpmn", env!("CARGO_MANIFEST_DIR"));
        Definition::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn begin(definition: &Definition, input: &str, steps: u32) -> Worked {
        let state = state_of(definition, None, Some(input)).unwrap().unwrap();
        work(definition, state, Vec::new(), 0, steps)
    }

    #[test]
    fn a_straight_process_ends_in_its_first_slice_with_its_output() {
        let worked = begin(&definition("approve-discount"), r#"{"amount": 120}"#, 1_000);
        let Step::End(end) = worked.step else { panic!("{worked:?}") };
        assert_eq!((end.state, end.error), (RunState::Completed, None));
        assert!(end.output.unwrap().contains(r#""approved":true"#));
        assert_eq!(worked.history[0], r#"["OrderReceived",1,"e",1,0]"#);
        assert!(worked.effects.is_empty());
    }

    #[test]
    fn a_long_process_goes_on_from_its_stored_position() {
        let definition = definition("count-to-limit");
        let mut worked = begin(&definition, r#"{"limit": 50}"#, 20);
        let mut slices = 1;
        let end = loop {
            match worked.step {
                Step::Save(save) => {
                    assert_eq!((save.wake, save.waits), (Wake::Now, None));
                    let state = state_of(&definition, Some(&save.position), None).unwrap().unwrap();
                    worked = work(&definition, state, Vec::new(), 0, 20);
                    slices += 1;
                }
                Step::End(end) => break end,
            }
        };
        assert_eq!(end.state, RunState::Completed);
        assert!(slices > 2, "{slices}");
    }

    #[test]
    fn a_run_comes_to_its_end_at_once_only_in_its_steps_and_in_its_time() {
        let definition = definition("count-to-limit");
        let begin = |steps, in_time: &dyn Fn() -> bool| {
            let state = state_of(&definition, None, Some(r#"{"limit": 12}"#)).unwrap().unwrap();
            to_the_end(&definition, state, 0, steps, in_time)
        };
        let whole = begin(1_000, &|| true).unwrap();
        let Step::End(end) = &whole.step else { panic!("{whole:?}") };
        assert_eq!(end.state, RunState::Completed);
        assert_eq!(whole.history.len(), whole.history.iter().collect::<BTreeSet<_>>().len());
        assert_eq!(whole.history[0], r#"["Started",1,"e",1,0]"#, "from the first step on");
        assert!(whole.history.last().unwrap().starts_with(r#"["Counted""#));
        assert!(begin(30, &|| true).is_none(), "more steps than it may have");
        let asked = std::cell::Cell::new(0);
        let once = || {
            asked.set(asked.get() + 1);
            false
        };
        assert!(begin(1_000, &once).is_none(), "its time is over");
        assert_eq!(asked.get(), 1);
    }

    #[test]
    fn a_run_that_waits_for_a_called_one_alone_is_looked_at_all_the_same() {
        let bpmn = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"
            xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:test">
            <process id="p" isExecutable="true"><startEvent id="s"/><endEvent id="e"/>
            <callActivity id="c"><extensionElements><zeebe:calledElement processId="q"/></extensionElements></callActivity>
            <sequenceFlow id="f" sourceRef="s" targetRef="c"/><sequenceFlow id="g" sourceRef="c" targetRef="e"/>
            </process></definitions>"#;
        let worked = begin(&Definition::parse(bpmn).unwrap(), "{}", 100);
        let Step::Save(save) = worked.step else { panic!("{worked:?}") };
        assert_eq!(save.wake, Wake::At(CALLS_LOOKED_AT_MS));
    }

    #[test]
    fn input_that_does_not_fit_ends_the_run_with_a_fixed_text() {
        for input in [None, Some("[]"), Some("{"), Some(r#"{"amount": "s3cret"}"#)] {
            let end = state_of(&definition("approve-discount"), None, input).unwrap().unwrap_err();
            assert_eq!(end.error.as_ref().unwrap().0, "INPUT_INVALID");
            assert!(!format!("{end:?}").contains("s3cret"));
        }
    }

    #[test]
    fn a_position_of_a_newer_version_is_left_alone_and_a_broken_one_fails() {
        let definition = definition("count-to-limit");
        assert_eq!(state_of(&definition, Some(r#"{"v": 99}"#), None).unwrap_err(), Newer);
        let end = state_of(&definition, Some("nonsense"), None).unwrap().unwrap_err();
        assert_eq!(end.error.unwrap().0, "INTERNAL_ERROR");
    }

    #[test]
    fn the_code_of_an_error_that_nobody_caught_is_what_a_caller_catches() {
        let code =
            |code, error: &str| failed_as_drawn(code, Some(error.to_owned()), "").error.unwrap().0;
        let uncaught = code(FailureCode::UncaughtError, "CARD_DECLINED");
        assert_eq!(uncaught, "UNCAUGHT_ERROR:CARD_DECLINED");
        assert_eq!(code_to_catch(&uncaught), "CARD_DECLINED");
        assert_eq!(
            code_to_catch(&code(FailureCode::TaskFailed, "HTTP_TIMEOUT")),
            "TASK_FAILED:HTTP_TIMEOUT"
        );
        assert!(code(FailureCode::UncaughtError, &"é".repeat(128)).len() <= 128);
    }
}
