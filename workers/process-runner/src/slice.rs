//! One slice of a run: from the stored record to what has to be committed. Pure.

use runfleet_domain::RunState;
use runfleet_domain::limits::{CHECKPOINT_BYTES_MAX, PROCESS_OUTPUT_BYTES_MAX};
use runfleet_flow::{Definition, Slice, State, StateProblem, Status, advance};
use runfleet_store::End;
use serde_json::{Map, Value};

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
    /// The same as the ledger takes it.
    pub(crate) fn as_end(&self) -> End<'_> {
        let error = self.error.as_ref().map(|(code, message)| (code.as_str(), message.as_str()));
        End { state: self.state, output: self.output.as_deref(), error, history: &[] }
    }
}

/// What a slice leads to.
#[derive(Debug)]
pub(crate) enum Step {
    /// The run has reached its end.
    End(Ending),
    /// The run goes on from this position.
    Continue {
        /// The state as JSON.
        position: String,
    },
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

/// Evaluates one slice of at most `steps` steps from a stored position, or from the start with `input`.
pub(crate) fn evaluate(
    definition: &Definition,
    position: Option<&str>,
    input: Option<&str>,
    now_ms: u64,
    steps: u32,
) -> Result<Step, Newer> {
    let state = match position_of(definition, position, input)? {
        Ok(state) => state,
        Err(ending) => return Ok(Step::End(ending)),
    };
    let advanced = advance(definition, state, Vec::new(), now_ms, Slice { max_steps: steps });
    Ok(match advanced.status {
        Status::Completed { output } => Step::End(completed(output)),
        Status::Failed { code, message, .. } => Step::End(failed(code.as_str(), &message)),
        Status::Running => match serde_json::to_string(&advanced.state) {
            Ok(position) if position.len() <= CHECKPOINT_BYTES_MAX => Step::Continue { position },
            Ok(_) => Step::End(failed(
                "STATE_TOO_LARGE",
                "The variables of the run have become too large to store.",
            )),
            Err(_) => Step::End(failed("INTERNAL_ERROR", "The run could not be continued.")),
        },
        // The engine may learn to wait before this worker does; such a run must not be lost in silence.
        _ => Step::End(failed(
            "INTERNAL_ERROR",
            "The run has reached something that this runner cannot wait for.",
        )),
    })
}

fn position_of(
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

/// Output that is too large for the outcome is not kept at all.
fn completed(output: Option<Map<String, Value>>) -> Ending {
    let output = output
        .and_then(|output| serde_json::to_string(&output).ok())
        .filter(|output| output.len() <= PROCESS_OUTPUT_BYTES_MAX);
    Ending { state: RunState::Completed, output, error: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str) -> Definition {
        let path = format!("{}/../../deploy/example/{name}.bpmn", env!("CARGO_MANIFEST_DIR"));
        Definition::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn a_straight_process_ends_in_its_first_slice_with_its_output() {
        let step =
            evaluate(&definition("approve-discount"), None, Some(r#"{"amount": 120}"#), 0, 1_000)
                .unwrap();
        let Step::End(end) = step else { panic!("{step:?}") };
        assert_eq!((end.state, end.error), (RunState::Completed, None));
        assert!(end.output.unwrap().contains(r#""approved":true"#));
    }

    #[test]
    fn a_long_process_goes_on_from_its_stored_position() {
        let definition = definition("count-to-limit");
        let mut position = None;
        let mut slices = 0;
        let end = loop {
            slices += 1;
            match evaluate(&definition, position.as_deref(), Some(r#"{"limit": 50}"#), 0, 20)
                .unwrap()
            {
                Step::Continue { position: next } => position = Some(next),
                Step::End(end) => break end,
            }
        };
        assert_eq!(end.state, RunState::Completed);
        assert!(slices > 2, "{slices}");
    }

    #[test]
    fn input_that_does_not_fit_ends_the_run_with_a_fixed_text() {
        for input in [None, Some("[]"), Some("{"), Some(r#"{"amount": "s3cret"}"#)] {
            let step = evaluate(&definition("approve-discount"), None, input, 0, 1_000).unwrap();
            let Step::End(end) = step else { panic!("{step:?}") };
            assert_eq!(end.error.as_ref().unwrap().0, "INPUT_INVALID");
            assert!(!format!("{end:?}").contains("s3cret"));
        }
    }

    #[test]
    fn a_position_of_a_newer_version_is_left_alone_and_a_broken_one_fails() {
        let definition = definition("count-to-limit");
        assert_eq!(evaluate(&definition, Some(r#"{"v": 99}"#), None, 0, 10).unwrap_err(), Newer);
        let step = evaluate(&definition, Some("nonsense"), None, 0, 10).unwrap();
        let Step::End(end) = step else { panic!("{step:?}") };
        assert_eq!(end.error.unwrap().0, "INTERNAL_ERROR");
    }
}
