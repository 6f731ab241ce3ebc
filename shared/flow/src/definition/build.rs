//! From a draft to a definition: resolves references and compiles expressions, and collects what does not fit.

use std::collections::{BTreeMap, HashMap};

use super::{Definition, End, Flow, Node, NodeKind, OnFailure, Scope, Summary, shape};
use crate::feel::{Expression, Names, variable_name_problem};
use crate::limits;
use crate::problem::Problems;
use crate::read::{Draft, DraftFlow, DraftKind, DraftNode};
use crate::variable::VariableType;

/// Builds the definition. None is returned only with a problem.
pub(super) fn build(draft: Draft, problems: &mut Problems) -> Option<Definition> {
    if expression_bytes(&draft) > limits::EXPRESSIONS_BYTES_MAX {
        let most = limits::EXPRESSIONS_BYTES_MAX;
        problems.at(&draft.id, format!("the expressions are longer than {most} bytes together"));
        return None;
    }
    let variables = variables(&draft, problems);
    let names = Names { known: variables.keys().cloned().collect(), open: false };
    let index: HashMap<String, usize> =
        draft.nodes.iter().enumerate().map(|(index, node)| (node.id.clone(), index)).collect();
    shape::check(&draft, &index, problems);
    let start = draft.nodes.iter().position(|node| node.kind == DraftKind::Start);
    let flow_index: HashMap<&str, usize> =
        draft.flows.iter().enumerate().map(|(index, flow)| (flow.id.as_str(), index)).collect();
    let mut nodes: Vec<Option<Node>> =
        draft.nodes.iter().map(|node| build_node(node, &flow_index, &names, problems)).collect();
    let mut flows = Vec::with_capacity(draft.flows.len());
    for (position, flow) in draft.flows.iter().enumerate() {
        if let Some(Some(source)) = index.get(&flow.source).map(|source| &mut nodes[*source]) {
            source.outgoing.push(position);
        }
        if let Some(Some(target)) = index.get(&flow.target).map(|target| &mut nodes[*target]) {
            target.incoming.push(position);
        }
        flows.push(build_flow(flow, &index, &names, problems));
    }
    let settings = draft.settings;
    Some(Definition {
        summary: Summary {
            id: draft.id,
            name: draft.name,
            kind: settings.kind,
            inputs: settings.inputs,
            outputs: settings.outputs,
            deadline_seconds: settings.deadline_seconds,
        },
        nodes: nodes.into_iter().collect::<Option<_>>()?,
        flows: flows.into_iter().collect::<Option<_>>()?,
        scopes: vec![Scope { owner: None, start: start?, events: Vec::new() }],
        index,
        variables,
        on_failure: OnFailure::Hold,
    })
}

fn expression_bytes(draft: &Draft) -> usize {
    let scripts = draft.nodes.iter().map(|node| match &node.kind {
        DraftKind::Script { expression, .. } => expression.len(),
        _ => 0,
    });
    let conditions = draft.flows.iter().filter_map(|flow| flow.condition.as_ref()).map(String::len);
    scripts.chain(conditions).sum()
}

/// Every variable an expression can name: the declared ones and the results of scripts.
fn variables(draft: &Draft, problems: &mut Problems) -> BTreeMap<String, VariableType> {
    let declared = draft.settings.inputs.iter().chain(&draft.settings.outputs);
    let mut variables: BTreeMap<_, _> =
        declared.map(|variable| (variable.name.clone(), variable.kind)).collect();
    for node in &draft.nodes {
        if let DraftKind::Script { result, .. } = &node.kind {
            if let Some(problem) = variable_name_problem(result) {
                problems.at(&node.id, problem);
            }
            variables.entry(result.clone()).or_insert(VariableType::Any);
        }
    }
    variables
}

fn build_node(
    draft: &DraftNode,
    flows: &HashMap<&str, usize>,
    names: &Names,
    problems: &mut Problems,
) -> Option<Node> {
    let kind = match &draft.kind {
        DraftKind::Start => NodeKind::Start { trigger: None, interrupting: false },
        DraftKind::End => NodeKind::End(End::None),
        DraftKind::Exclusive => NodeKind::Exclusive,
        DraftKind::Script { expression, result } => NodeKind::Script {
            expression: compile(expression, &draft.id, names, problems)?,
            result: result.clone(),
        },
    };
    Some(Node {
        id: draft.id.clone(),
        name: draft.name.clone(),
        scope: 0,
        kind,
        incoming: Vec::new(),
        outgoing: Vec::new(),
        default: draft.default.as_deref().and_then(|default| flows.get(default).copied()),
        boundary: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        repeat: None,
    })
}

fn build_flow(
    draft: &DraftFlow,
    nodes: &HashMap<String, usize>,
    names: &Names,
    problems: &mut Problems,
) -> Option<Flow> {
    let condition = match &draft.condition {
        Some(condition) => Some(compile(condition, &draft.id, names, problems)?),
        None => None,
    };
    let (source, target) = (*nodes.get(&draft.source)?, *nodes.get(&draft.target)?);
    Some(Flow { id: draft.id.clone(), name: draft.name.clone(), source, target, condition })
}

fn compile(
    text: &str,
    element: &str,
    names: &Names,
    problems: &mut Problems,
) -> Option<Expression> {
    match Expression::compile(text, names) {
        Ok(expression) => Some(expression),
        Err(found) => {
            for problem in found {
                problems.at(element, problem);
            }
            None
        }
    }
}
