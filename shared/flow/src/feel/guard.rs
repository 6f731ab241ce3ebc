//! Puts the counters of `meter` into an expression: around whatever repeats, and around whatever is given a name, since
//! only a value with a name can be used twice and so grow exponentially. What the expression means stays as it is.

use std::mem::replace;

use dsntk_feel::Name;
use dsntk_feel_parser::AstNode;

use super::meter::{self, Role};
use super::tree;

/// Extra cost of a function that translates a regular expression, or reads FEEL, on each call.
const REGEX_COST: u64 = 2_000;

/// Extra cost of a function that reads a text.
const READ_COST: u64 = 100;

/// Guards the whole expression. The tree must not be deep: this walks it on the stack.
pub(super) fn guard(node: &mut AstNode) {
    // Costs are those of the text as written, so they are taken before the children change.
    let cost = own_cost(node);
    tree::children_mut(node).into_iter().for_each(guard);
    match node {
        AstNode::For(contexts, body) => {
            tree::children_mut(contexts).into_iter().for_each(guard_source);
            call(body, meter::ITEM, |value| vec![value, number(cost)]);
            call(node, meter::LEAVE, |value| vec![invocation(meter::ENTER, Vec::new()), value]);
        }
        AstNode::Some(contexts, satisfies) => nest(contexts, satisfies, cost, AstNode::Some),
        AstNode::Every(contexts, satisfies) => nest(contexts, satisfies, cost, AstNode::Every),
        AstNode::Filter(_, predicate) if !matches!(&**predicate, AstNode::Numeric(..)) => {
            call(predicate, meter::ANSWER, |value| vec![value, number(cost)]);
        }
        AstNode::FunctionDefinition(_, body) => {
            if let AstNode::FunctionBody(body, _) = &mut **body {
                ticked(body, cost);
            }
        }
        AstNode::ContextEntry(_, value) if !is_leaf(value) => {
            call(value, meter::KEEP, |value| vec![value]);
        }
        // Lists in lists; the innermost adds one level only.
        AstNode::List(items) if !items.iter().all(is_leaf) => {
            call(node, meter::KEEP, |value| vec![value]);
        }
        AstNode::FunctionInvocation(callee, arguments) => {
            let AstNode::Name(name) = &**callee else { return };
            if guard_arguments(name.as_str(), arguments) {
                call(node, meter::KEEP, |value| vec![value]);
            }
        }
        _ => {}
    }
}

/// What evaluating the repeated part of `node` once costs; 0 where nothing is repeated.
fn own_cost(node: &AstNode) -> u64 {
    let repeated = match node {
        AstNode::For(_, body) | AstNode::Filter(_, body) | AstNode::FunctionDefinition(_, body) => {
            &**body
        }
        AstNode::Some(..) | AstNode::Every(..) => node,
        _ => return 0,
    };
    tree::size(repeated) + costly_calls(repeated)
}

/// Extra cost of the functions that are called in `node`.
fn costly_calls(node: &AstNode) -> u64 {
    let own = match node {
        AstNode::FunctionInvocation(callee, _) => match &**callee {
            AstNode::Name(name) => match name.as_str() {
                "matches" | "replace" | "split" | "range" => REGEX_COST,
                "date" | "time" | "date and time" | "duration" | "number" => READ_COST,
                _ => 0,
            },
            _ => 0,
        },
        AstNode::At(_) => READ_COST,
        _ => 0,
    };
    own + tree::children(node).into_iter().map(costly_calls).sum::<u64>()
}

/// Bounds what a variable goes over.
fn guard_source(context: &mut AstNode) {
    match context {
        AstNode::IterationContextInterval(_, start, end) => bound_interval(start, end),
        AstNode::IterationContextSingle(_, source) => match &mut **source {
            AstNode::Range(start, end) => {
                if let (AstNode::IntervalStart(start, _), AstNode::IntervalEnd(end, _)) =
                    (&mut **start, &mut **end)
                {
                    bound_interval(start, end);
                }
            }
            // A variable of the same `for` must stay bare to be found.
            AstNode::Name(_) => {}
            source => call(source, meter::SOURCE, |value| vec![value]),
        },
        AstNode::QuantifiedContext(_, source) => call(source, meter::SOURCE, |value| vec![value]),
        _ => {}
    }
}

fn bound_interval(start: &mut AstNode, end: &mut AstNode) {
    call(start, meter::FROM, |value| vec![value]);
    call(end, meter::UP_TO, |value| vec![value]);
}

/// Makes `some a in x, b in y satisfies z` into `some a in x satisfies some b in y satisfies z`. The library would step
/// through all combinations after the answer is known, and would not let `y` use `a`.
fn nest(
    contexts: &mut Box<AstNode>,
    satisfies: &mut Box<AstNode>,
    cost: u64,
    quantifier: fn(Box<AstNode>, Box<AstNode>) -> AstNode,
) {
    if let AstNode::Satisfies(condition) = &mut **satisfies {
        ticked(condition, cost);
    }
    let AstNode::QuantifiedContexts(list) = &mut **contexts else { return };
    list.iter_mut().for_each(guard_source);
    while list.len() > 1 {
        let Some(last) = list.pop() else { return };
        let inner_contexts = Box::new(AstNode::QuantifiedContexts(vec![last]));
        let mut inner = quantifier(inner_contexts, replace(satisfies, Box::new(AstNode::Null)));
        ticked(&mut inner, cost);
        **satisfies = AstNode::Satisfies(Box::new(inner));
    }
}

/// Guards the arguments of a function that repeats or compares; true when its result can be much larger than they are, or
/// nests deeper.
fn guard_arguments(function: &str, arguments: &mut AstNode) -> bool {
    let each = |arguments: &mut AstNode, index, named, wrapper| {
        for value in chosen(arguments, index, named) {
            call(value, wrapper, |value| vec![value]);
        }
    };
    match function {
        "replace" => each(arguments, Some(2), "replacement", meter::SHORT),
        "string join" => each(arguments, Some(1), "delimiter", meter::SHORT),
        "range" => each(arguments, Some(0), "from", meter::RANGE),
        "distinct values" | "mode" | "union" => each(arguments, None, "list", meter::SQUARE),
        _ => {}
    }
    match function {
        "matches" => {
            guard_pattern(arguments, &[(0, "input", Role::Text), (1, "pattern", Role::Pattern)]);
        }
        "split" => {
            guard_pattern(arguments, &[(0, "string", Role::Text), (1, "delimiter", Role::Pattern)]);
        }
        "replace" => guard_pattern(
            arguments,
            &[
                (0, "input", Role::Text),
                (1, "pattern", Role::Pattern),
                (2, "replacement", Role::Replacement),
            ],
        ),
        _ => {}
    }
    matches!(
        function,
        "replace"
            | "string join"
            | "split"
            | "string"
            | "append"
            | "insert before"
            | "list replace"
            | "context"
            | "context put"
            | "get entries"
    )
}

/// Has the arguments of a function with a regular expression looked at as they are evaluated, and the last of them charge
/// for the call.
fn guard_pattern(arguments: &mut AstNode, roles: &[(usize, &str, Role)]) {
    let mut found: Vec<(&mut AstNode, Role)> = Vec::new();
    match arguments {
        AstNode::PositionalParameters(list) => {
            for (index, value) in list.iter_mut().enumerate() {
                if let Some((.., role)) = roles.iter().find(|(at, ..)| *at == index) {
                    found.push((value, *role));
                }
            }
        }
        AstNode::NamedParameters(list) => {
            for parameter in list {
                let AstNode::NamedParameter(name, value) = parameter else { continue };
                let AstNode::ParameterName(name) = &**name else { continue };
                if let Some((.., role)) = roles.iter().find(|(_, named, _)| *named == name.as_str())
                {
                    found.push((value, *role));
                }
            }
        }
        _ => {}
    }
    let last = found.len().saturating_sub(1);
    for (position, (value, role)) in found.into_iter().enumerate() {
        let before = if position == last { number(last as u64) } else { AstNode::Null };
        call(value, meter::ARGUMENT, |value| vec![value, number(role as u64), before]);
    }
}

/// The argument at `index` or called `named`; all of a list of arguments without an index.
fn chosen<'n>(
    arguments: &'n mut AstNode,
    index: Option<usize>,
    named: &str,
) -> Vec<&'n mut AstNode> {
    match arguments {
        AstNode::PositionalParameters(list) => {
            let list = list.iter_mut().enumerate();
            list.filter(|(at, _)| index.is_none_or(|index| index == *at))
                .map(|(_, value)| value)
                .collect()
        }
        AstNode::NamedParameters(list) => list
            .iter_mut()
            .filter_map(|parameter| match parameter {
                AstNode::NamedParameter(name, value)
                    if matches!(&**name, AstNode::ParameterName(name) if name.as_str() == named) =>
                {
                    Some(&mut **value)
                }
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn is_leaf(node: &AstNode) -> bool {
    tree::children(node).is_empty()
}

/// Replaces `condition` by `if tick(cost) then condition else null`.
fn ticked(condition: &mut AstNode, cost: u64) {
    let inner = replace(condition, AstNode::Null);
    let tick = invocation(meter::TICK, vec![number(cost)]);
    *condition = AstNode::If(Box::new(tick), Box::new(inner), Box::new(AstNode::Null));
}

/// Replaces `node` by a call of `function` with the arguments that `arguments` makes of it.
fn call(node: &mut AstNode, function: &str, arguments: impl FnOnce(AstNode) -> Vec<AstNode>) {
    let inner = replace(node, AstNode::Null);
    *node = invocation(function, arguments(inner));
}

fn invocation(function: &str, arguments: Vec<AstNode>) -> AstNode {
    let callee = AstNode::Name(Name::from(function));
    AstNode::FunctionInvocation(
        Box::new(callee),
        Box::new(AstNode::PositionalParameters(arguments)),
    )
}

fn number(value: u64) -> AstNode {
    AstNode::Numeric(value.to_string(), String::new(), '+', String::new())
}
