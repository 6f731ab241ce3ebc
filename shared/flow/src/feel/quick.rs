//! Which expressions cannot take long: they repeat nothing, and every function that they call goes over its arguments once.

use dsntk_feel_parser::AstNode;

use super::tree;

/// Functions whose work is that of going over their arguments a few times.
const FUNCTIONS: [&str; 24] = [
    "abs",
    "ceiling",
    "contains",
    "count",
    "date",
    "date and time",
    "decimal",
    "duration",
    "ends with",
    "even",
    "floor",
    "is defined",
    "lower case",
    "modulo",
    "not",
    "number",
    "odd",
    "starts with",
    "string",
    "string length",
    "substring",
    "time",
    "upper case",
    "sum",
];

/// Whether an expression, before it is guarded, is one of them. The tree must not be deep.
pub(super) fn is_quick(node: &AstNode) -> bool {
    let itself = match node {
        AstNode::For(..)
        | AstNode::Some(..)
        | AstNode::Every(..)
        | AstNode::Filter(..)
        | AstNode::FunctionDefinition(..)
        | AstNode::Range(..)
        | AstNode::Exp(..) => false,
        AstNode::FunctionInvocation(callee, _) => {
            matches!(&**callee, AstNode::Name(name) if FUNCTIONS.contains(&name.as_str()))
        }
        _ => true,
    };
    itself && tree::children(node).into_iter().all(is_quick)
}
