//! One compiled expression.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dsntk_feel::context::FeelContext;
use dsntk_feel::values::Value;
use dsntk_feel::{Evaluator, FeelScope, Name};
use dsntk_feel_evaluator::prepare;
use dsntk_feel_parser::{AstNode, parse_expression};
use serde_json::Value as Json;

use super::check::{self, Mention};
use super::names::{self, Names};
use super::{guard, meter, quick, tree, untangle};
use crate::variable::VariableType;
use crate::{limits, value};

/// Work of taking in variables that makes the repeated part of an expression that names them count once more.
const WEIGHT_WORK: u64 = 64;

thread_local! {
    /// The functions of the meter, laid under the variables of one evaluation after the other.
    static SCOPE: FeelScope = FeelScope::from(meter::functions());
}

/// A FEEL expression, ready to be evaluated any number of times from any thread.
pub(crate) struct Expression {
    text: String,
    evaluator: Evaluator,
    /// Variables that it names.
    variables: Vec<String>,
    /// The same as the library wants them, and how each is named.
    names: Vec<(Name, Mention)>,
    /// Whether it cannot take long.
    is_quick: bool,
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
    /// Compiles `text`, with or without a leading `=`, in which `names` can be named.
    pub(crate) fn compile(text: &str, names: &Names) -> Result<Self, Vec<String>> {
        let text = text.trim();
        let text = text.strip_prefix('=').unwrap_or(text).trim();
        bounded(text).map_err(|problem| vec![problem])?;
        let mut node = read(text).map_err(|problem| vec![problem])?;
        let found = check::variables(&node, names)?;
        let is_quick = quick::is_quick(&node);
        guard::guard(&mut node);
        let names = found.iter().map(|(name, mention)| (Name::from(name), *mention)).collect();
        let variables = found.into_keys().collect();
        Ok(Self { text: text.to_owned(), evaluator: prepare(&node), variables, names, is_quick })
    }

    /// The text without the leading `=`.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it cannot take long, whatever its variables are.
    pub(crate) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// The variables that it names, sorted. A word inside a filter may also turn out to be a property of an item.
    pub(crate) fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Evaluates with the variables that `lookup` finds; what it does not find is null. Only values that are
    /// [plain](value::is_plain) may be found. Adds to `work` what it took, also when it failed.
    pub(crate) fn evaluate_in<'v>(
        &self,
        lookup: impl Fn(&str) -> Option<(&'v Json, VariableType)>,
        work: &mut u64,
    ) -> Result<Value, EvaluationError> {
        // Each time that a variable is named, it is copied.
        let (mut variables, mut weight, mut copied) = (FeelContext::default(), 1_u64, 0_u64);
        for (variable, (name, mention)) in self.variables.iter().zip(&self.names) {
            let value = lookup(variable).map_or(Value::Null(None), |(json, kind)| {
                let taken = value::work(json);
                copied = copied.saturating_add(taken.saturating_mul(mention.places));
                if mention.repeated {
                    weight = weight.saturating_add(taken / WEIGHT_WORK);
                }
                value::to_feel(json, kind)
            });
            variables.set_entry(name, value);
        }
        let (outcome, used) = SCOPE.with(|scope| {
            scope.push(variables);
            self.evaluate_from(scope, weight, copied)
        });
        *work = work.saturating_add(used);
        outcome
    }

    /// Evaluates in `scope`, which holds [`meter::functions`] and the variables, and tells the work it took. `weight` says how
    /// large the variables are and is at least 1. Only the bottom of the scope is left.
    fn evaluate_from(
        &self,
        scope: &FeelScope,
        weight: u64,
        used: u64,
    ) -> (Result<Value, EvaluationError>, u64) {
        let (outcome, work) = meter::measured(weight, used, || (self.evaluator)(scope));
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

/// Removes all contexts but the bottom, also what an evaluation that ended early left on the stack.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value as Json, json};

    use super::{EvaluationError, Expression};
    use crate::feel::Names;
    use crate::value::{Unstorable, to_json};
    use crate::variable::VariableType;

    fn names(open: bool) -> Names {
        Names { known: ["x", "y"].map(str::to_owned).into(), open }
    }

    fn compile(text: &str) -> Expression {
        Expression::compile(text, &names(true)).unwrap_or_else(|found| panic!("{text}: {found:?}"))
    }

    fn evaluate_with(
        expression: &Expression,
        variables: &Json,
        work: &mut u64,
    ) -> Result<Json, EvaluationError> {
        let kinds = BTreeMap::from([("day", VariableType::Date)]);
        let value = expression.evaluate_in(
            |name| {
                let kind = kinds.get(name).copied().unwrap_or(VariableType::Any);
                variables.get(name).map(|json| (json, kind))
            },
            work,
        )?;
        to_json(&value).map_err(|_: Unstorable| EvaluationError::Failed)
    }

    #[expect(clippy::needless_pass_by_value, reason = "calls are easier to read so")]
    fn evaluate(text: &str, variables: Json) -> Result<Json, EvaluationError> {
        evaluate_with(&compile(text), &variables, &mut 0)
    }

    #[test]
    fn an_expression_tells_the_variables_that_it_names_and_no_other_names() {
        for (text, expected) in [
            ("1 + 2", vec![]),
            ("y + x.address.city + x.y", vec!["x", "y"]),
            ("sum(x) + string length(other)", vec!["other", "x"]),
            ("for i in x, j in 1..y return i + j + count(partial)", vec!["x", "y"]),
            ("some i in x satisfies i > limit", vec!["limit", "x"]),
            ("every i in x, j in i satisfies j > 1", vec!["x"]),
            ("x[item > y]", vec!["x", "y"]),
            ("x[price > 4].name", vec!["price", "x"]),
            ("{a: x, b: a + c}.b", vec!["c", "x"]),
            ("[{a: 1}, a]", vec!["a"]),
            ("for i in [1] return i + (for j in i return k)", vec!["k"]),
            ("sort(x, function(a, b) a.n < b.n + c)", vec!["c", "x"]),
            ("sort(list: x, precedes: function(a, b) a < b)", vec!["x"]),
            ("\"x y z\"", vec![]),
            ("response.body", vec!["response"]),
        ] {
            assert_eq!(compile(text).variables(), expected, "{text}");
        }
        let closed = Expression::compile("x[price > y]", &names(false)).expect("it can be read");
        assert_eq!(closed.variables(), ["x", "y"], "nobody declares a property");
    }

    #[test]
    fn names_that_nobody_declares_are_allowed_only_where_names_are_open() {
        let found = Expression::compile("z + 1", &names(false)).expect_err("unknown");
        assert_eq!(found, ["unknown name `z`"]);
        assert_eq!(evaluate("z", json!({})), Ok(json!(null)));
        assert_eq!(evaluate("z + 1", json!({"z": 2})), Ok(json!(3)));
        for text in ["sum", "now()", "z(1)", "function(a) a", "item", "partial"] {
            assert!(Expression::compile(text, &names(true)).is_err(), "{text}");
        }
        let long = "z".repeat(crate::limits::VARIABLE_NAME_BYTES_MAX + 1);
        assert!(Expression::compile(&long, &names(true)).is_err());
    }

    #[test]
    fn names_of_one_place_are_known_there_only() {
        let names = names(false);
        assert!(Expression::compile("response.status", &names).is_err());
        let expression = Expression::compile("response.status + x", &names.with(&["response"]));
        let expression = expression.expect("it can be read");
        let variables = json!({"response": {"status": 200}, "x": 1});
        assert_eq!(evaluate_with(&expression, &variables, &mut 0), Ok(json!(201)));
    }

    #[test]
    fn what_nobody_has_set_is_null() {
        assert_eq!(evaluate("x = null and other = null", json!({})), Ok(json!(true)));
        assert_eq!(evaluate("if x then 1 else 2", json!({})), Ok(json!(2)));
        assert_eq!(
            evaluate("x[price > 4].name", json!({"x": [{"price": 5, "name": "a"}, {}]})),
            Ok(json!(["a"]))
        );
        assert_eq!(
            evaluate("x[price > most].name", json!({"x": [{"price": 5, "name": "a"}], "most": 4})),
            Ok(json!(["a"]))
        );
    }

    #[test]
    fn a_declared_date_is_a_date() {
        assert_eq!(evaluate("day.year", json!({"day": "2026-01-31"})), Ok(json!(2026)));
        assert_eq!(evaluate("x instance of string", json!({"x": "2026-01-31"})), Ok(json!(true)));
    }

    #[test]
    fn an_evaluation_that_is_cut_off_leaves_nothing_for_the_next() {
        let endless = compile("for i in 1..9000 return for j in 1..9000 return i");
        let secret = json!({"secret": 42});
        for broken in [endless, compile("{secret: secret, b: time(1, 2, 3, duration(\"PT99H\"))}")]
        {
            let mut work = 0;
            assert!(evaluate_with(&broken, &secret, &mut work).is_err());
            assert_eq!(evaluate("secret", json!({})), Ok(json!(null)));
        }
    }

    #[test]
    fn work_grows_with_what_is_done_and_with_the_size_of_what_is_named() {
        let work_of = |text: &str, variables: &Json| {
            let mut work = 0;
            let _ = evaluate_with(&compile(text), variables, &mut work);
            work
        };
        let small = json!({"x": [1], "other": 1});
        let large = json!({"x": [1], "other": "a".repeat(200_000)});
        assert_eq!(work_of("1 + 1", &large), 0);
        let item = "for i in 1..100 return i";
        assert!(work_of(item, &small) > 100);
        assert_eq!(work_of(item, &small), work_of(item, &large), "it is not named");
        let both = "for i in 1..100 return other";
        assert!(work_of(both, &large) > 40 * work_of(both, &small));
        let spent = work_of("for i in 1..9000 return for j in 1..9000 return i", &small);
        assert!(spent > crate::limits::EXPRESSION_WORK_MAX);
        assert!(work_of("string length(other)", &large) > 5_000, "it is converted");
    }
}
