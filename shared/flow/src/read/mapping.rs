//! Input and output mappings of an element.

use super::context::{Context, Place};
use super::modeler::Extensions;
use super::xml::{local, short};
use crate::definition::Mapping;
use crate::feel::Expression;
use crate::limits;

/// Reads the mappings: inputs, then outputs. `answered` says that the outputs see an answer without known names.
pub(super) fn read(
    kind: &str,
    id: &str,
    extensions: &Extensions<'_, '_>,
    answered: bool,
    context: &mut Context<'_>,
) -> (Vec<Mapping>, Vec<Mapping>) {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let Some(mapping) = extensions.get("ioMapping") else { return (inputs, outputs) };
    let entries =
        extensions.children(mapping, &["input", "output"], &["source", "target"], context.problems);
    if entries.len() > limits::MAPPINGS_MAX {
        context.at(id, format!("the element has more than {} mappings", limits::MAPPINGS_MAX));
        return (inputs, outputs);
    }
    for entry in entries {
        let side = local(entry);
        let misplaced = match side {
            "input" => matches!(kind, "startEvent" | "boundaryEvent"),
            _ => kind == "endEvent",
        };
        if misplaced {
            context.at(id, format!("a `{kind}` has no `zeebe:{side}`"));
            continue;
        }
        let place = if answered && side == "output" { Place::Answered } else { Place::Any };
        let source = source(id, side, entry.attribute("source"), place, context);
        let target = target(id, entry.attribute("target").unwrap_or_default(), context);
        let list = if side == "input" { &mut inputs } else { &mut outputs };
        list.extend(source.zip(target).map(|(source, target)| Mapping { source, target }));
    }
    (inputs, outputs)
}

/// An expression when it begins with `=`, and the text itself otherwise.
fn source(
    id: &str,
    side: &str,
    source: Option<&str>,
    place: Place,
    context: &mut Context<'_>,
) -> Option<Expression> {
    match source {
        None => {
            context.at(id, format!("a `zeebe:{side}` has no source"));
            None
        }
        Some(source) if source.trim_start().starts_with('=') => {
            context.expression(id, source, place)
        }
        Some(source) => {
            let literal = literal(source);
            if literal.len() > limits::EXPRESSION_BYTES_MAX {
                let most = limits::EXPRESSION_BYTES_MAX;
                context
                    .at(id, format!("the source of a `zeebe:{side}` is longer than {most} bytes"));
                return None;
            }
            context.expression(id, &literal, place)
        }
    }
}

/// A FEEL expression whose value is `text`.
fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// A variable and the path inside it.
fn target(id: &str, target: &str, context: &mut Context<'_>) -> Option<Vec<String>> {
    let path: Vec<&str> = target.trim().split('.').map(str::trim).collect();
    let (variable, inner) = path.split_first()?;
    context.variable(id, variable)?;
    let is_word = |part: &&str| {
        !part.is_empty()
            && part.len() <= limits::VARIABLE_NAME_BYTES_MAX
            && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    if path.len() > limits::TARGET_PARTS_MAX || !inner.iter().all(is_word) {
        let most = limits::TARGET_PARTS_MAX;
        let target = short(target);
        context.at(id, format!("the target `{target}` is no path of at most {most} words"));
        return None;
    }
    Some(path.into_iter().map(str::to_owned).collect())
}
