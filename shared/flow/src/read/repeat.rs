//! Multi-instance: an activity that runs once for each item.

use roxmltree::Node;

use super::context::{Context, Place};
use super::modeler::Extensions;
use super::xml::{self, local};
use crate::definition::Repeat;
use crate::feel::Expression;

/// Reads the multi-instance characteristics of an activity, if it has any. `answered` says that the result of one item
/// sees an answer without known names.
pub(super) fn read(
    activity: Node<'_, '_>,
    id: &str,
    answered: bool,
    context: &mut Context<'_>,
) -> Option<Repeat> {
    let mut found = xml::bpmn_children(activity)
        .filter(|child| local(*child) == "multiInstanceLoopCharacteristics");
    let node = found.next()?;
    if found.next().is_some() {
        context.at(id, "`multiInstanceLoopCharacteristics` is given twice");
    }
    if node.attribute("behavior").is_some_and(|behavior| behavior != "All") {
        context.at(id, "events of single instances (`behavior`) are not supported");
    }
    let (mut cardinality, mut until) = (None, None);
    for child in xml::bpmn_children(node) {
        match local(child) {
            "documentation" | "extensionElements" => {}
            "loopCardinality" => cardinality = Some(xml::text(child)),
            "completionCondition" => until = Some(xml::text(child)),
            other => context.at(
                id,
                format!("`{other}` is not supported in `multiInstanceLoopCharacteristics`"),
            ),
        }
    }
    let extensions = Extensions::of(node, id, &["loopCharacteristics"], context.problems);
    let extension = extensions.get("loopCharacteristics");
    if let Some(extension) = extension {
        let known = ["inputCollection", "inputElement", "outputCollection", "outputElement"];
        extensions.known(extension, &known, context.problems);
    }
    // An attribute that the modeler has left empty is one that was not given.
    let attribute = |name| {
        extension
            .and_then(|extension| extension.attribute(name))
            .map(str::trim)
            .filter(|value| !value.is_empty())
    };
    let sequential = context.flag(node, id, "isSequential", false);
    let over = over(id, attribute("inputCollection"), cardinality.as_deref(), context);
    let item = attribute("inputElement").map(|name| context.variable(id, name));
    let collect = match (attribute("outputCollection"), attribute("outputElement")) {
        (None, None) => None,
        (Some(list), Some(result)) => {
            let place = if answered { Place::Answered } else { Place::Any };
            let list = context.variable(id, list);
            let result = context.computed(id, "`outputElement`", result, place);
            Some(list.zip(result))
        }
        _ => {
            context.at(id, "`outputCollection` and `outputElement` are given together");
            None
        }
    };
    let until = until.map(|text| context.expression(id, &text, Place::Until));
    Some(Repeat {
        sequential,
        over: over?,
        item: item.flatten(),
        collect: collect.flatten(),
        until: until.flatten(),
    })
}

/// The list to go through, or the number of times.
fn over(
    id: &str,
    list: Option<&str>,
    cardinality: Option<&str>,
    context: &mut Context<'_>,
) -> Option<Expression> {
    match (list, cardinality) {
        (Some(list), None) => context.computed(id, "`inputCollection`", list, Place::Any),
        (None, Some(cardinality)) => context.expression(id, cardinality, Place::Any),
        (Some(_), Some(_)) => {
            context.at(id, "`inputCollection` and `loopCardinality` exclude each other");
            None
        }
        (None, None) => {
            context.at(id, "multi-instance needs an `inputCollection` or a `loopCardinality`");
            None
        }
    }
}
