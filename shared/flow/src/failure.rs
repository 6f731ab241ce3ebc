//! Why a run failed. The texts are fixed: they reach callers, and a text built from values could leak one.

use serde::{Deserialize, Serialize};

/// Reason for which the engine ended a run as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum FailureCode {
    /// An expression met an error: a type that does not fit, a division by zero, a bad argument.
    ExpressionFailed,
    /// An expression did more work than one evaluation may do.
    ExpressionTooExpensive,
    /// A condition was neither true nor false; the element is its flow.
    ConditionNotBoolean,
    /// The result of a script is no value that a variable can hold, or nests too deep.
    ResultNotStorable,
    /// The result of a script does not have the declared type of its variable.
    ResultTypeMismatch,
    /// The variables of the run grew too large.
    VariablesTooLarge,
    /// No condition of an exclusive gateway was true and it has no default flow; the element is the gateway.
    NoFlowTaken,
    /// One element was entered too often.
    ElementVisitLimit,
    /// The stored state does not belong to this definition.
    DefinitionMismatch,
    /// An error of the drawing was thrown and nobody catches it.
    UncaughtError,
    /// Whoever was asked to carry out a task could not, in all attempts.
    TaskFailed,
    /// A called process did not complete.
    CalledProcessFailed,
    /// Paths wait for each other, and nothing can happen any more.
    Stuck,
    /// Too much is active or awaited at a time.
    TooManyInstances,
    /// A multi-instance activity has too many items.
    TooManyItems,
    /// What a multi-instance activity goes over is neither a list nor a whole number.
    CollectionInvalid,
    /// An expression does not give a text where one is needed.
    TextExpected,
    /// An expression does not give a whole number where one is needed.
    NumberExpected,
    /// An expression does not give a context where one is needed.
    ContextExpected,
    /// The time of a timer cannot be read.
    TimerInvalid,
}

impl FailureCode {
    /// The code as it is written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExpressionFailed => "EXPRESSION_FAILED",
            Self::ExpressionTooExpensive => "EXPRESSION_TOO_EXPENSIVE",
            Self::ConditionNotBoolean => "CONDITION_NOT_BOOLEAN",
            Self::ResultNotStorable => "RESULT_NOT_STORABLE",
            Self::ResultTypeMismatch => "RESULT_TYPE_MISMATCH",
            Self::VariablesTooLarge => "VARIABLES_TOO_LARGE",
            Self::NoFlowTaken => "NO_FLOW_TAKEN",
            Self::ElementVisitLimit => "ELEMENT_VISIT_LIMIT",
            Self::DefinitionMismatch => "DEFINITION_MISMATCH",
            Self::UncaughtError => "UNCAUGHT_ERROR",
            Self::TaskFailed => "TASK_FAILED",
            Self::CalledProcessFailed => "CALLED_PROCESS_FAILED",
            Self::Stuck => "STUCK",
            Self::TooManyInstances => "TOO_MANY_INSTANCES",
            Self::TooManyItems => "TOO_MANY_ITEMS",
            Self::CollectionInvalid => "COLLECTION_INVALID",
            Self::TextExpected => "TEXT_EXPECTED",
            Self::NumberExpected => "NUMBER_EXPECTED",
            Self::ContextExpected => "CONTEXT_EXPECTED",
            Self::TimerInvalid => "TIMER_INVALID",
        }
    }

    /// Text for people, without any value of the run.
    pub const fn message(self) -> &'static str {
        match self {
            Self::ExpressionFailed => "an expression of this element could not be evaluated",
            Self::ExpressionTooExpensive => {
                "an expression of this element takes more work than is allowed"
            }
            Self::ConditionNotBoolean => "the condition of this flow is neither true nor false",
            Self::ResultNotStorable => "the result of this element cannot be kept in a variable",
            Self::ResultTypeMismatch => {
                "the result of this element does not have the declared type of its variable"
            }
            Self::VariablesTooLarge => "the variables of the run are too large",
            Self::NoFlowTaken => {
                "no outgoing flow of this gateway has a true condition and none is the default"
            }
            Self::ElementVisitLimit => "this element was entered too often in one run",
            Self::DefinitionMismatch => {
                "the stored state of the run does not fit the definition of the process"
            }
            Self::UncaughtError => "an error was thrown here and no event catches it",
            Self::TaskFailed => "this task failed in all of its attempts",
            Self::CalledProcessFailed => "the process that this element calls did not complete",
            Self::Stuck => "paths of the run wait for each other here, so that none can go on",
            Self::TooManyInstances => "too many elements of the run are active at a time",
            Self::TooManyItems => "this multi-instance activity has more items than are allowed",
            Self::CollectionInvalid => {
                "what this multi-instance activity goes over is neither a list nor a whole number"
            }
            Self::TextExpected => "an expression of this element does not give a text",
            Self::NumberExpected => "an expression of this element does not give a whole number",
            Self::ContextExpected => "an expression of this element does not give a context",
            Self::TimerInvalid => "the time of this timer cannot be read",
        }
    }
}

/// A failure and where it happened, on its way to the state.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: FailureCode,
    pub(crate) element: Option<String>,
    /// Code of an error of the drawing, or the word of whoever failed.
    pub(crate) error: Option<String>,
}

impl Failure {
    pub(crate) fn at(code: FailureCode, element: &str) -> Self {
        Self { code, element: Some(element.to_owned()), error: None }
    }
}
