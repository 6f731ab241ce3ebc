//! One compiled expression.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dsntk_feel::values::Value;
use dsntk_feel::{Evaluator, FeelScope};
use dsntk_feel_evaluator::prepare;
use dsntk_feel_parser::{AstNode, parse_expression};

use super::{check, guard, meter, names, tree, untangle};
use crate::limits;

/// A FEEL expression, ready to be evaluated any number of times from any thread.
pub(crate) struct Expression {
    text: String,
    evaluator: Evaluator,
}

/// Why an evaluation gave no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// It did more work than is allowed.
    TooExpensive,
    /// A value did not fit, or the library gave up.
    Failed,
}

impl Expression {
    /// Compiles `text`, with or without a leading `=`, in which `variables` can be named.
    pub(crate) fn compile(text: &str, variables: &BTreeSet<String>) -> Result<Self, Vec<String>> {
        let text = text.trim();
        let text = text.strip_prefix('=').unwrap_or(text).trim();
        bounded(text).map_err(|problem| vec![problem])?;
        let mut node = read(text).map_err(|problem| vec![problem])?;
        let problems = check::problems(&node, variables);
        if !problems.is_empty() {
            return Err(problems);
        }
        guard::guard(&mut node);
        Ok(Self { text: text.to_owned(), evaluator: prepare(&node) })
    }

    /// The text without the leading `=`.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates in `scope`, which holds [`meter::functions`] and every variable, and tells the work it took. `weight`
    /// says how large the variables are and is at least 1. The scope is left as it was.
    pub(crate) fn evaluate(
        &self,
        scope: &FeelScope,
        weight: u64,
    ) -> (Result<Value, EvaluationError>, u64) {
        let (outcome, work) = meter::measured(weight, || (self.evaluator)(scope));
        restore(scope);
        let outcome = outcome.map_err(|cut| match cut {
            meter::Cut::Exhausted => EvaluationError::TooExpensive,
            meter::Cut::Failed => EvaluationError::Failed,
        });
        (outcome, work)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

/// Removes what an evaluation that ended early left on the stack of contexts.
fn restore(scope: &FeelScope) {
    let mut bottom = None;
    while let Some(context) = scope.pop() {
        bottom = Some(context);
    }
    if let Some(context) = bottom {
        scope.push(context);
    }
}

/// Refuses a text that is not worth reading.
fn bounded(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("the expression is empty".to_owned());
    }
    if text.len() > limits::EXPRESSION_BYTES_MAX {
        return Err(format!(
            "the expression is longer than {} bytes",
            limits::EXPRESSION_BYTES_MAX
        ));
    }
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        if depth > limits::EXPRESSION_BRACKETS_MAX {
            let most = limits::EXPRESSION_BRACKETS_MAX;
            return Err(format!("brackets of the expression nest deeper than {most}"));
        }
    }
    Ok(())
}

fn read(text: &str) -> Result<AstNode, String> {
    let Some(quick) = untangle::untangle(text) else {
        let most = untangle::RUN_MAX;
        return Err(format!(
            "the expression has more than {most} words and operators in a row; use parentheses"
        ));
    };
    let scope = names::reading_scope(text);
    // The reader indexes without looking in places; a panic there must not take the caller down.
    let node = catch_unwind(AssertUnwindSafe(|| parse_expression(&scope, &quick, false)));
    let Ok(Ok(node)) = node else {
        return Err(format!(
            "`{}` is not a valid FEEL expression",
            text.chars().take(60).collect::<String>()
        ));
    };
    if tree::depth(&node) > limits::EXPRESSION_DEPTH_MAX {
        let most = limits::EXPRESSION_DEPTH_MAX;
        return Err(format!(
            "the expression nests more than {most} operations; split it over several script tasks"
        ));
    }
    Ok(node)
}
