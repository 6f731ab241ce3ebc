//! What every part of the reader needs: the names that expressions may use, the root elements, and a place for problems.

use super::roots::Roots;
use super::xml;
use crate::definition::Text;
use crate::feel::{Expression, Names, variable_name_problem};
use crate::limits;
use crate::problem::Problems;

/// Where an expression stands, which decides what it may name beside the variables of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Anywhere.
    Any,
    /// After an answer without known names.
    Answered,
    /// In the result expression of a task.
    Response,
    /// In the error expression of a task.
    Failure,
    /// In the completion condition of a multi-instance activity.
    Until,
}

/// What the completion condition of a multi-instance activity can ask for.
const COUNTS: [&str; 4] = [
    "numberOfInstances",
    "numberOfActiveInstances",
    "numberOfCompletedInstances",
    "numberOfTerminatedInstances",
];

/// Reads one process.
pub(super) struct Context<'p> {
    pub(super) problems: &'p mut Problems,
    pub(super) roots: Roots,
    process: String,
    names: Names,
    answered: Names,
    response: Names,
    failure: Names,
    until: Names,
    /// Whether it has been told that there are too many elements.
    pub(super) full: bool,
    /// Bytes of the expressions compiled so far.
    bytes: usize,
    /// Whether none of them can take long.
    pub(super) quick: bool,
}

impl<'p> Context<'p> {
    pub(super) fn new(
        process: &str,
        roots: Roots,
        names: Names,
        problems: &'p mut Problems,
    ) -> Self {
        Self {
            problems,
            roots,
            process: process.to_owned(),
            answered: Names { known: names.known.clone(), open: true },
            response: names.with(&["response"]),
            failure: names.with(&["response", "error"]),
            until: names.with(&COUNTS),
            names,
            full: false,
            bytes: 0,
            quick: true,
        }
    }

    /// Tells a problem.
    pub(super) fn at(&mut self, element: &str, message: impl AsRef<str>) {
        self.problems.at(element, message);
    }

    /// Compiles an expression, with or without a leading `=`.
    pub(super) fn expression(&mut self, id: &str, text: &str, place: Place) -> Option<Expression> {
        let before = self.bytes;
        self.bytes = before.saturating_add(text.len());
        if self.bytes > limits::EXPRESSIONS_BYTES_MAX {
            if before <= limits::EXPRESSIONS_BYTES_MAX {
                let most = limits::EXPRESSIONS_BYTES_MAX;
                let message = format!("the expressions are longer than {most} bytes together");
                self.problems.at(&self.process, message);
            }
            return None;
        }
        let names = match place {
            Place::Any => &self.names,
            Place::Answered => &self.answered,
            Place::Response => &self.response,
            Place::Failure => &self.failure,
            Place::Until => &self.until,
        };
        match Expression::compile(text, names) {
            Ok(expression) => {
                self.quick &= expression.is_quick();
                Some(expression)
            }
            Err(found) => {
                for problem in found {
                    self.problems.at(id, problem);
                }
                None
            }
        }
    }

    /// An attribute that must be an expression: it begins with `=`.
    pub(super) fn computed(
        &mut self,
        id: &str,
        what: &str,
        text: &str,
        place: Place,
    ) -> Option<Expression> {
        if !text.trim_start().starts_with('=') {
            self.at(id, format!("{what} must be an expression, which begins with `=`"));
            return None;
        }
        self.expression(id, text, place)
    }

    /// A text that is computed when it begins with `=` and given otherwise. A given text must please `check`, which says
    /// what is wrong with it.
    pub(super) fn text(
        &mut self,
        id: &str,
        what: &str,
        text: &str,
        check: impl FnOnce(&str) -> Option<String>,
    ) -> Option<Text> {
        let text = text.trim();
        if text.starts_with('=') {
            return self.expression(id, text, Place::Any).map(Text::Feel);
        }
        if let Some(problem) = bounded(text).or_else(|| check(text)) {
            self.at(id, format!("{what} {problem}"));
            return None;
        }
        Some(Text::Given(text.to_owned()))
    }

    /// A text that cannot be computed.
    pub(super) fn given(&mut self, id: &str, what: &str, text: &str) -> Option<String> {
        let text = text.trim();
        let problem = if text.starts_with('=') {
            Some("cannot be an expression".to_owned())
        } else {
            bounded(text)
        };
        if let Some(problem) = problem {
            self.at(id, format!("{what} {problem}"));
            return None;
        }
        Some(text.to_owned())
    }

    /// Name of a variable.
    pub(super) fn variable(&mut self, id: &str, name: &str) -> Option<String> {
        match variable_name_problem(name) {
            Some(problem) => {
                self.at(id, problem);
                None
            }
            None => Some(name.to_owned()),
        }
    }

    /// A truth value of the document.
    pub(super) fn flag(
        &mut self,
        node: roxmltree::Node<'_, '_>,
        id: &str,
        attribute: &str,
        absent: bool,
    ) -> bool {
        match node.attribute(attribute) {
            None => absent,
            Some(value) => xml::truth(value).unwrap_or_else(|| {
                self.at(id, format!("`{attribute}` is `true` or `false`"));
                absent
            }),
        }
    }
}

/// Any given text that is not empty, not long, and holds no control characters.
fn bounded(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("is empty".to_owned());
    }
    if text.len() > limits::GIVEN_TEXT_BYTES_MAX {
        return Some(format!("is longer than {} bytes", limits::GIVEN_TEXT_BYTES_MAX));
    }
    text.contains(char::is_control).then(|| "holds a control character".to_owned())
}

/// For a given text of which nothing is asked.
pub(super) fn anything(_: &str) -> Option<String> {
    None
}
