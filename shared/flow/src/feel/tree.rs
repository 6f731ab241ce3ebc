//! Children of a syntax tree node. The match names every variant, so that a new kind of node in the library is noticed
//! by the compiler and not by a hole in the checks.

use dsntk_feel_parser::AstNode;

/// Pushes the children of `$node` to `$out`; shared by the two borrowing forms below.
macro_rules! push_children {
    ($node:expr, $out:ident, $iter:ident) => {
        match $node {
            AstNode::At(_)
            | AstNode::Boolean(_)
            | AstNode::ContextEntryKey(_)
            | AstNode::ContextTypeEntryKey(_)
            | AstNode::FeelType(_)
            | AstNode::Irrelevant
            | AstNode::Name(_)
            | AstNode::Null
            | AstNode::Numeric(..)
            | AstNode::ParameterName(_)
            | AstNode::QualifiedNameSegment(_)
            | AstNode::String(_) => {}
            AstNode::EvaluatedExpression(a)
            | AstNode::FunctionBody(a, _)
            | AstNode::IntervalEnd(a, _)
            | AstNode::IntervalStart(a, _)
            | AstNode::ListType(a)
            | AstNode::Neg(a)
            | AstNode::RangeType(a)
            | AstNode::Satisfies(a)
            | AstNode::UnaryEq(a)
            | AstNode::UnaryGe(a)
            | AstNode::UnaryGt(a)
            | AstNode::UnaryLe(a)
            | AstNode::UnaryLt(a)
            | AstNode::UnaryNe(a) => $out.push(a),
            AstNode::Add(a, b)
            | AstNode::And(a, b)
            | AstNode::ContextEntry(a, b)
            | AstNode::ContextTypeEntry(a, b)
            | AstNode::Div(a, b)
            | AstNode::Eq(a, b)
            | AstNode::Every(a, b)
            | AstNode::Exp(a, b)
            | AstNode::Filter(a, b)
            | AstNode::For(a, b)
            | AstNode::FormalParameter(a, b)
            | AstNode::FunctionDefinition(a, b)
            | AstNode::FunctionInvocation(a, b)
            | AstNode::FunctionType(a, b)
            | AstNode::Ge(a, b)
            | AstNode::Gt(a, b)
            | AstNode::In(a, b)
            | AstNode::InstanceOf(a, b)
            | AstNode::IterationContextSingle(a, b)
            | AstNode::Le(a, b)
            | AstNode::Lt(a, b)
            | AstNode::Mul(a, b)
            | AstNode::NamedParameter(a, b)
            | AstNode::Nq(a, b)
            | AstNode::Or(a, b)
            | AstNode::Out(a, b)
            | AstNode::Path(a, b)
            | AstNode::QuantifiedContext(a, b)
            | AstNode::Range(a, b)
            | AstNode::Some(a, b)
            | AstNode::Sub(a, b) => {
                $out.push(a);
                $out.push(b);
            }
            AstNode::Between(a, b, c)
            | AstNode::If(a, b, c)
            | AstNode::IterationContextInterval(a, b, c) => {
                $out.push(a);
                $out.push(b);
                $out.push(c);
            }
            AstNode::CommaList(list)
            | AstNode::Context(list)
            | AstNode::ContextType(list)
            | AstNode::ExpressionList(list)
            | AstNode::FormalParameters(list)
            | AstNode::IterationContexts(list)
            | AstNode::List(list)
            | AstNode::NamedParameters(list)
            | AstNode::NegatedList(list)
            | AstNode::ParameterTypes(list)
            | AstNode::PositionalParameters(list)
            | AstNode::QualifiedName(list)
            | AstNode::QuantifiedContexts(list) => $out.extend(list.$iter()),
        }
    };
}

/// The direct children of a node, in the order of their text.
pub(super) fn children(node: &AstNode) -> Vec<&AstNode> {
    let mut out: Vec<&AstNode> = Vec::new();
    push_children!(node, out, iter);
    out
}

/// The direct children of a node, to be changed.
pub(super) fn children_mut(node: &mut AstNode) -> Vec<&mut AstNode> {
    let mut out: Vec<&mut AstNode> = Vec::new();
    push_children!(node, out, iter_mut);
    out
}

/// How deep the tree is, without using the stack: a chain of a thousand additions is a thousand deep.
pub(super) fn depth(root: &AstNode) -> usize {
    let mut deepest = 0;
    let mut open = vec![(root, 1)];
    while let Some((node, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(children(node).into_iter().map(|child| (child, depth + 1)));
    }
    deepest
}

/// Number of nodes of the tree.
pub(super) fn size(root: &AstNode) -> u64 {
    let mut count = 0;
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        count += 1;
        open.extend(children(node));
    }
    count
}
