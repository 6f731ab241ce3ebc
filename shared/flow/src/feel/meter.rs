//! Bounds the work of one evaluation.
//!
//! The library has no such bound, so `guard` calls the functions below from inside the expression. When the budget is
//! spent they unwind the evaluation with a payload of their own, without a panic message; the caller catches it. The
//! count depends on the expression and its variables only, never on time, so it comes out the same on every machine.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, LazyLock};

use dsntk_feel::closure::Closure;
use dsntk_feel::context::FeelContext;
use dsntk_feel::values::Value;
use dsntk_feel::{Evaluator, FeelNumber, FeelScope, FeelType, FunctionBody, Name};

use super::pattern::{self, Weight};
use crate::limits;

/// Gives its value back and charges for its size.
pub(super) const KEEP: &str = "\u{1}keep";
/// Like [`KEEP`], for a list that is gone over: bounds its length.
pub(super) const SOURCE: &str = "\u{1}source";
/// Charges what one evaluation of a condition costs; always true.
pub(super) const TICK: &str = "\u{1}tick";
/// Gives back the answer of a filter and charges what it cost. An answer that is neither true, false, a position nor
/// null ends the evaluation: the library would return early and leave its context behind.
pub(super) const ANSWER: &str = "\u{1}answer";
/// Opens a `for`.
pub(super) const ENTER: &str = "\u{1}enter";
/// Gives back one result of a `for` and charges for it and for the results so far, which the library copies.
pub(super) const ITEM: &str = "\u{1}item";
/// Closes a `for` and gives its result back.
pub(super) const LEAVE: &str = "\u{1}leave";
/// Start of an interval that is gone over.
pub(super) const FROM: &str = "\u{1}from";
/// End of an interval that is gone over: bounds its length.
pub(super) const UP_TO: &str = "\u{1}upto";
/// Bounds a text that is inserted many times.
pub(super) const SHORT: &str = "\u{1}short";
/// Bounds the text of a range, which the library reads as FEEL.
pub(super) const RANGE: &str = "\u{1}range";
/// Charges for a list that is compared with itself.
pub(super) const SQUARE: &str = "\u{1}square";
/// Remembers an argument of a function with a regular expression: the value, its [`Role`] and how many arguments of the
/// call are remembered before it is charged.
pub(super) const ARGUMENT: &str = "\u{1}argument";

/// What an argument is to a function with a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The text that is looked through.
    Text,
    /// The regular expression.
    Pattern,
    /// What is put in its place.
    Replacement,
}

/// Longest text of a range, in bytes.
const RANGE_BYTES_MAX: usize = 128;
/// Cost of reading one.
const RANGE_COST: u64 = 2_000;

/// How often a value is copied on its way through a function, and how much cheaper a copy is than an evaluation.
const COPIES: u64 = 4;

/// Steps of naming a type that are one unit of work.
pub(crate) const TYPE_STEPS: u64 = 4;

/// Largest number an interval may start or end with; beyond it, adding one might change nothing.
const INTERVAL_BOUND: i64 = 1_000_000_000_000_000_000;

#[derive(Default)]
struct Meter {
    used: u64,
    /// Factor for what is repeated: looking up a variable copies it.
    weight: u64,
    /// Size of the results so far of each open `for`.
    loops: Vec<u64>,
    /// Starts of intervals whose end is not yet known.
    starts: Vec<Value>,
    /// Arguments of functions with a regular expression that are not yet complete.
    arguments: Vec<Argument>,
}

/// What is remembered of an argument.
enum Argument {
    Text(u64),
    Pattern(Weight),
    Replacement(u64),
}

thread_local! {
    static METER: RefCell<Meter> = RefCell::default();
}

/// Payload of an evaluation that spent its budget.
struct Exhausted;
/// Payload of an evaluation that met a value it cannot go on with.
struct Misfit;

/// Why an evaluation was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The budget was spent.
    Exhausted,
    /// A value did not fit, or the library panicked.
    Failed,
}

/// Runs an evaluation under a fresh budget, of which `used` is spent, and tells what it used. `weight` is at least 1.
pub(super) fn measured<T>(
    weight: u64,
    used: u64,
    evaluate: impl FnOnce() -> T,
) -> (Result<T, Cut>, u64) {
    if used > limits::EXPRESSION_WORK_MAX {
        return (Err(Cut::Exhausted), used);
    }
    METER.replace(Meter { used, weight, ..Meter::default() });
    let outcome = catch_unwind(AssertUnwindSafe(evaluate))
        .map_err(|payload| if payload.is::<Exhausted>() { Cut::Exhausted } else { Cut::Failed });
    (outcome, METER.take().used)
}

fn stop() -> ! {
    resume_unwind(Box::new(Exhausted))
}

fn charge(units: u64) {
    let used = METER.with_borrow_mut(|meter| {
        meter.used = meter.used.saturating_add(units);
        meter.used
    });
    if used > limits::EXPRESSION_WORK_MAX {
        stop();
    }
}

fn charge_repeated(units: u64) {
    charge(METER.with_borrow(|meter| meter.weight).saturating_mul(units));
}

/// How much there is of a value.
#[derive(Clone, Copy, Default)]
struct Size {
    /// Number of values in it, long texts counting more.
    values: u64,
    /// Steps that the library takes to name its type, which it does for each argument that does not fit. It looks at the
    /// first item of a list twice, so lists in lists double them.
    type_steps: u64,
}

impl Size {
    fn work(self) -> u64 {
        self.values.saturating_add(self.type_steps / TYPE_STEPS)
    }
}

/// Measures a value. Stops when it nests too deep, because everything that is done with it uses the stack.
fn size(value: &Value, depth: usize) -> Size {
    if depth > 2 * limits::VALUE_DEPTH_MAX {
        stop();
    }
    let mut sum = Size { values: 1, type_steps: 1 };
    let mut add = |size: Size| {
        sum.values += size.values;
        sum.type_steps = sum.type_steps.saturating_add(size.type_steps);
    };
    match value {
        Value::String(text) => add(Size { values: text.len() as u64 / 64, type_steps: 0 }),
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                let size = size(item, depth + 1);
                add(size);
                if index == 0 {
                    add(Size { values: 0, ..size });
                }
            }
        }
        Value::Context(context) => {
            context.iter().for_each(|(_, item)| add(size(item, depth + 1)));
        }
        _ => {}
    }
    sum
}

/// The functions to lay under every scope in which a guarded expression is evaluated.
pub(crate) fn functions() -> FeelContext {
    static FUNCTIONS: LazyLock<FeelContext> = LazyLock::new(|| {
        let mut context = FeelContext::default();
        let mut define = |name: &str, parameters: &[&str], body: Evaluator| {
            let parameters =
                parameters.iter().map(|name| (Name::from(*name), FeelType::Any)).collect();
            let body = FunctionBody::LiteralExpression(Arc::new(body));
            let (closure, values) = (Closure::default(), FeelContext::default());
            let function =
                Value::FunctionDefinition(parameters, body, false, closure, values, FeelType::Any);
            context.set_entry(&Name::from(name), function);
        };
        define(KEEP, &["a"], Box::new(|scope| keep(take(scope, "a"))));
        define(SOURCE, &["a"], Box::new(|scope| source(take(scope, "a"))));
        define(TICK, &["a"], Box::new(|scope| tick(&take(scope, "a"))));
        define(ANSWER, &["a", "b"], Box::new(|scope| answer(take(scope, "a"), &take(scope, "b"))));
        define(ENTER, &[], Box::new(|_| enter()));
        define(ITEM, &["a", "b"], Box::new(|scope| item(take(scope, "a"), &take(scope, "b"))));
        define(LEAVE, &["a", "b"], Box::new(|scope| leave(take(scope, "b"))));
        define(FROM, &["a"], Box::new(|scope| from(take(scope, "a"))));
        define(UP_TO, &["a"], Box::new(|scope| up_to(take(scope, "a"))));
        define(SHORT, &["a"], Box::new(|scope| short(take(scope, "a"))));
        define(RANGE, &["a"], Box::new(|scope| range(take(scope, "a"))));
        define(SQUARE, &["a"], Box::new(|scope| square(take(scope, "a"))));
        let argument =
            |scope: &FeelScope| argument(take(scope, "a"), &take(scope, "b"), &take(scope, "c"));
        define(ARGUMENT, &["a", "b", "c"], Box::new(argument));
        context
    });
    FUNCTIONS.clone()
}

/// Takes an argument out of the innermost context instead of copying it.
fn take(scope: &FeelScope, name: &str) -> Value {
    let Some(mut arguments) = scope.pop() else { return Value::Null(None) };
    let value = arguments.remove_entry(&Name::from(name));
    scope.push(arguments);
    value.unwrap_or(Value::Null(None))
}

fn keep(value: Value) -> Value {
    charge(size(&value, 0).work().saturating_mul(COPIES));
    value
}

fn source(value: Value) -> Value {
    if matches!(&value, Value::List(items) if items.len() > limits::ITERATION_MAX) {
        stop();
    }
    keep(value)
}

fn tick(cost: &Value) -> Value {
    charge_repeated(units(cost));
    Value::Boolean(true)
}

fn answer(value: Value, cost: &Value) -> Value {
    charge_repeated(units(cost));
    match value {
        Value::Boolean(_) | Value::Number(_) | Value::Null(_) => value,
        _ => resume_unwind(Box::new(Misfit)),
    }
}

fn enter() -> Value {
    METER.with_borrow_mut(|meter| meter.loops.push(0));
    Value::Null(None)
}

fn item(value: Value, cost: &Value) -> Value {
    let size = size(&value, 0).work();
    let so_far = METER.with_borrow_mut(|meter| {
        let so_far = meter.loops.last_mut()?;
        *so_far = so_far.saturating_add(size);
        Some(*so_far)
    });
    charge_repeated(units(cost));
    charge(size.saturating_mul(COPIES).saturating_add(so_far.unwrap_or_default() / 2));
    value
}

fn leave(value: Value) -> Value {
    METER.with_borrow_mut(|meter| meter.loops.pop());
    value
}

fn from(value: Value) -> Value {
    METER.with_borrow_mut(|meter| meter.starts.push(value.clone()));
    value
}

fn up_to(value: Value) -> Value {
    let start = METER.with_borrow_mut(|meter| meter.starts.pop());
    let bound = FeelNumber::from(INTERVAL_BOUND);
    let short = match (start, &value) {
        (Some(Value::Number(start)), Value::Number(end)) => {
            start.abs() <= bound
                && end.abs() <= bound
                && (*end - start).abs() <= FeelNumber::from(limits::ITERATION_MAX)
        }
        (Some(Value::Date(start)), Value::Date(end)) => {
            i64::from(start.year()).abs_diff(i64::from(end.year())) * 366
                <= limits::ITERATION_MAX as u64
        }
        _ => true,
    };
    if short { value } else { stop() }
}

fn short(value: Value) -> Value {
    match &value {
        Value::String(text) if text.len() > limits::INSERTED_TEXT_BYTES_MAX => stop(),
        _ => value,
    }
}

fn range(value: Value) -> Value {
    charge(RANGE_COST);
    match &value {
        Value::String(text) if text.len() > RANGE_BYTES_MAX => stop(),
        _ => value,
    }
}

fn square(value: Value) -> Value {
    if let Value::List(items) = &value {
        charge((items.len() as u64).saturating_mul(items.len() as u64) / 16);
    }
    value
}

fn argument(value: Value, role: &Value, before: &Value) -> Value {
    let text = if let Value::String(text) = &value { text.as_str() } else { "" };
    let length = text.len() as u64;
    let argument = match role {
        role if *role == role_value(Role::Text) => Argument::Text(length),
        role if *role == role_value(Role::Pattern) => Argument::Pattern(pattern::weight(text)),
        _ => Argument::Replacement(length),
    };
    let complete = METER.with_borrow_mut(|meter| {
        meter.arguments.push(argument);
        let first = meter.arguments.len().checked_sub(1 + usize::try_from(units(before)).ok()?)?;
        (*before != Value::Null(None)).then(|| meter.arguments.split_off(first))
    });
    if let Some(arguments) = complete {
        charge(cost_of_pattern(&arguments));
    }
    value
}

/// What is known of a call with a regular expression before it is made.
fn cost_of_pattern(arguments: &[Argument]) -> u64 {
    let (mut text, mut weight, mut replacement) = (0_u64, Weight::default(), None);
    for argument in arguments {
        match argument {
            Argument::Text(length) => text = *length,
            Argument::Pattern(pattern) => weight = *pattern,
            Argument::Replacement(length) => replacement = Some(*length),
        }
    }
    // Each place of the text may be replaced, and a replacement may repeat all of it for every two of its own bytes.
    let result = replacement.map_or(0, |length| (text + 1).saturating_mul(length + 1) / 16);
    weight
        .states
        .saturating_mul(4)
        .saturating_add(weight.active.saturating_mul(text) / 64)
        .saturating_add(result)
}

/// A role as an argument of [`ARGUMENT`].
pub(super) fn role_value(role: Role) -> Value {
    Value::Number(FeelNumber::from(role as i64))
}

fn units(cost: &Value) -> u64 {
    match cost {
        Value::Number(cost) => u64::try_from(cost).unwrap_or(1),
        _ => 1,
    }
}
