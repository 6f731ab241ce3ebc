//! Checks what a run is started with. Problems name the variable and never its value.

use serde_json::{Map, Value as Json};

use crate::limits;
use crate::value;
use crate::variable::{Variable, VariableType};

/// Why an input was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputProblem {
    /// The process declares no input of this name (the name is cut after 64 characters).
    #[error("`{name}` is not an input variable of the process")]
    Unknown {
        /// Name as given.
        name: String,
    },
    /// A required input is absent or null.
    #[error("input variable `{name}` is required")]
    Missing {
        /// Declared name.
        name: String,
    },
    /// A value does not have the declared type.
    #[error("input variable `{name}` must be of type {expected}")]
    WrongType {
        /// Declared name.
        name: String,
        /// Declared type.
        expected: VariableType,
    },
    /// A value nests too deep, or has a key that begins or ends with white space.
    #[error("input variable `{name}` nests too deep or has a key with white space at an end")]
    Unstorable {
        /// Declared name.
        name: String,
    },
    /// All values together are too large.
    #[error("the input is larger than {} bytes", limits::VARIABLES_BYTES_MAX)]
    TooLarge,
}

impl InputProblem {
    /// Name of the variable the problem belongs to.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Unknown { name }
            | Self::Missing { name }
            | Self::WrongType { name, .. }
            | Self::Unstorable { name } => Some(name),
            Self::TooLarge => None,
        }
    }
}

/// Checks `input` against the declared inputs.
pub(crate) fn check(declared: &[Variable], input: &Map<String, Json>) -> Result<(), InputProblem> {
    for name in input.keys() {
        if !declared.iter().any(|variable| variable.name == *name) {
            return Err(InputProblem::Unknown { name: name.chars().take(64).collect() });
        }
    }
    let mut total = 0;
    for variable in declared {
        let given = input.get(&variable.name).filter(|given| !given.is_null());
        let name = || variable.name.clone();
        let Some(given) = given else {
            if variable.required {
                return Err(InputProblem::Missing { name: name() });
            }
            continue;
        };
        if !variable.kind.accepts(given) {
            return Err(InputProblem::WrongType { name: name(), expected: variable.kind });
        }
        if !value::is_plain(given) {
            return Err(InputProblem::Unstorable { name: name() });
        }
        total += value::bytes(given);
    }
    if total > limits::VARIABLES_BYTES_MAX { Err(InputProblem::TooLarge) } else { Ok(()) }
}
