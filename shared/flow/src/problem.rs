//! What is wrong with a document, told all at once so that its author repairs it in one go.

use serde::{Deserialize, Serialize};

use crate::limits;

/// One mistake in a BPMN document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{message}", element.as_ref().map(|id| format!("{id}: ")).unwrap_or_default())]
pub struct Problem {
    /// Id of the BPMN element, when the mistake belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// What is wrong, for the author of the document.
    pub message: String,
}

impl Problem {
    /// A problem of the document as a whole.
    pub(crate) fn of_document(message: impl Into<String>) -> Self {
        Self { element: None, message: message.into() }
    }
}

/// Collects problems, at most [`limits::PROBLEMS_MAX`] of them.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, element: Option<&str>, message: impl AsRef<str>) {
        if self.0.len() < limits::PROBLEMS_MAX {
            let cut = |text: &str| text.chars().take(limits::PROBLEM_CHARS_MAX).collect::<String>();
            self.0.push(Problem { element: element.map(cut), message: cut(message.as_ref()) });
        }
    }

    pub(crate) fn at(&mut self, element: &str, message: impl AsRef<str>) {
        self.add(Some(element), message);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_vec(self) -> Vec<Problem> {
        self.0
    }
}
