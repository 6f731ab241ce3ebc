//! Events: start, end, intermediate and boundary, with what triggers them or what they send.

use roxmltree::Node;

use super::context::{Context, anything};
use super::element::Within;
use super::modeler::Extensions;
use super::xml::{self, local, short};
use super::{DraftKind, Role, job, timing};
use crate::definition::{End, Message, NodeKind, Text, Throw, Timer, Trigger};
use crate::limits;

/// Whether an event of this kind may have this child.
pub(super) fn allows(kind: &str, child: &str) -> bool {
    let definitions: &[&str] = match kind {
        "startEvent" | "boundaryEvent" => &["timer", "message", "signal", "error", "escalation"],
        "intermediateCatchEvent" => &["timer", "message", "signal"],
        "intermediateThrowEvent" => &["message", "signal", "escalation"],
        "endEvent" => &["error", "terminate", "message", "escalation", "signal"],
        _ => &[],
    };
    child.strip_suffix("EventDefinition").is_some_and(|kind| definitions.contains(&kind))
}

/// Reads an event.
pub(super) fn read(
    node: Node<'_, '_>,
    id: &str,
    within: Within,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> (Role, Option<DraftKind>) {
    let definition = definition(node, id, context);
    match local(node) {
        "startEvent" => (Role::Start, start(node, id, within, definition, context)),
        "boundaryEvent" => (Role::Boundary, boundary(node, id, definition, context)),
        "intermediateCatchEvent" => {
            let kind = caught(id, definition, context).map(NodeKind::Catch);
            (Role::Catch, kind.map(DraftKind::Ready))
        }
        "intermediateThrowEvent" => {
            let kind = thrown(node, id, definition, extensions, context);
            (Role::Throw, kind.map(DraftKind::Ready))
        }
        _ => {
            let end = end(node, id, definition, extensions, context);
            (Role::End, end.map(NodeKind::End).map(DraftKind::Ready))
        }
    }
}

/// The event definition among those that this kind of event may have.
fn definition<'a, 'i>(
    node: Node<'a, 'i>,
    id: &str,
    context: &mut Context<'_>,
) -> Option<Node<'a, 'i>> {
    let mut found = xml::bpmn_children(node)
        .filter(|child| local(*child).ends_with("EventDefinition"))
        .filter(|child| allows(local(node), local(*child)));
    let definition = found.next()?;
    if found.next().is_some() {
        context.at(id, "the event has more than one event definition");
    }
    Extensions::of(definition, id, &[], context.problems);
    Some(definition)
}

fn start(
    node: Node<'_, '_>,
    id: &str,
    within: Within,
    definition: Option<Node<'_, '_>>,
    context: &mut Context<'_>,
) -> Option<DraftKind> {
    let Some(definition) = definition else {
        return Some(DraftKind::Ready(NodeKind::Start { trigger: None, interrupting: true }));
    };
    if !within.event {
        let kind = local(definition);
        context.at(
            id,
            format!("`{kind}` is not supported in a `startEvent` outside an event sub-process"),
        );
        return None;
    }
    let interrupting = interrupting(node, id, "isInterrupting", definition, context);
    let trigger = trigger(definition, id, context)?;
    Some(DraftKind::Ready(NodeKind::Start { trigger: Some(trigger), interrupting }))
}

fn boundary(
    node: Node<'_, '_>,
    id: &str,
    definition: Option<Node<'_, '_>>,
    context: &mut Context<'_>,
) -> Option<DraftKind> {
    if !node.has_attribute("attachedToRef") {
        context.at(id, "the boundary event is attached to nothing (attachedToRef)");
    }
    let Some(definition) = definition else {
        context.at(id, "the event does not say what it waits for");
        return None;
    };
    let interrupting = interrupting(node, id, "cancelActivity", definition, context);
    let trigger = trigger(definition, id, context)?;
    Some(DraftKind::Boundary { trigger, interrupting })
}

fn interrupting(
    node: Node<'_, '_>,
    id: &str,
    attribute: &str,
    definition: Node<'_, '_>,
    context: &mut Context<'_>,
) -> bool {
    let interrupting = context.flag(node, id, attribute, true);
    if !interrupting && local(definition) == "errorEventDefinition" {
        context.at(id, "an error always interrupts");
    }
    interrupting
}

fn caught(
    id: &str,
    definition: Option<Node<'_, '_>>,
    context: &mut Context<'_>,
) -> Option<Trigger> {
    let Some(definition) = definition else {
        context.at(id, "the event does not say what it waits for");
        return None;
    };
    let trigger = trigger(definition, id, context)?;
    if matches!(trigger, Trigger::Timer(Timer::Cycle(_))) {
        context.at(id, "an intermediate event waits once and has no `timeCycle`");
    }
    Some(trigger)
}

fn thrown(
    node: Node<'_, '_>,
    id: &str,
    definition: Option<Node<'_, '_>>,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> Option<NodeKind> {
    let Some(definition) = definition else { return Some(NodeKind::Pass) };
    if extensions.get("taskDefinition").is_some() {
        return job::read(node, id, extensions, context).map(Box::new).map(NodeKind::Task);
    }
    throw(definition, id, context).map(NodeKind::Throw)
}

fn end(
    node: Node<'_, '_>,
    id: &str,
    definition: Option<Node<'_, '_>>,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> Option<End> {
    let Some(definition) = definition else { return Some(End::None) };
    match local(definition) {
        "terminateEventDefinition" => Some(End::Terminate),
        "errorEventDefinition" => {
            let code = code(definition, id, "error", context).ok()?;
            if code.is_none() {
                context.at(id, "the event does not say which error it throws (errorRef)");
            }
            Some(End::Error { code: code? })
        }
        _ => {
            if extensions.get("taskDefinition").is_some() {
                return job::read(node, id, extensions, context).map(Box::new).map(End::Task);
            }
            throw(definition, id, context).map(End::Throw)
        }
    }
}

fn throw(definition: Node<'_, '_>, id: &str, context: &mut Context<'_>) -> Option<Throw> {
    match local(definition) {
        "messageEventDefinition" => message(definition, id, context).map(Throw::Message),
        "signalEventDefinition" => {
            signal(definition, id, context).map(|name| Throw::Signal { name })
        }
        _ => {
            let code = code(definition, id, "escalation", context).ok()?;
            if code.is_none() {
                context.at(id, "the event does not say which escalation it throws (escalationRef)");
            }
            Some(Throw::Escalation { code: code? })
        }
    }
}

fn trigger(definition: Node<'_, '_>, id: &str, context: &mut Context<'_>) -> Option<Trigger> {
    match local(definition) {
        "timerEventDefinition" => timer(definition, id, context).map(Trigger::Timer),
        "messageEventDefinition" => message(definition, id, context).map(Trigger::Message),
        "signalEventDefinition" => {
            signal(definition, id, context).map(|name| Trigger::Signal { name })
        }
        "errorEventDefinition" => {
            code(definition, id, "error", context).ok().map(|code| Trigger::Error { code })
        }
        _ => {
            let code = code(definition, id, "escalation", context).ok()?;
            Some(Trigger::Escalation { code })
        }
    }
}

fn timer(definition: Node<'_, '_>, id: &str, context: &mut Context<'_>) -> Option<Timer> {
    let mut parts = Vec::new();
    for child in xml::bpmn_children(definition) {
        match local(child) {
            "documentation" | "extensionElements" => {}
            "timeDate" | "timeDuration" | "timeCycle" => parts.push(child),
            other => context.at(id, format!("`{other}` is not supported in a timer")),
        }
    }
    let [part] = parts.as_slice() else {
        context.at(id, "a timer has one `timeDate`, `timeDuration` or `timeCycle`");
        return None;
    };
    let text = xml::text(*part);
    match local(*part) {
        "timeDate" => context.text(id, "the date", &text, timing::date_problem).map(Timer::Date),
        "timeDuration" => {
            context.text(id, "the duration", &text, timing::duration_problem).map(Timer::Duration)
        }
        _ => context.text(id, "the cycle", &text, timing::cycle_problem).map(Timer::Cycle),
    }
}

/// The message that the `messageRef` of an event definition or a task names.
pub(super) fn message(node: Node<'_, '_>, id: &str, context: &mut Context<'_>) -> Option<Message> {
    let Some(reference) = node.attribute("messageRef") else {
        context.at(id, "no message is named (messageRef)");
        return None;
    };
    let Some(root) = context.roots.message(reference) else {
        context.at(id, format!("messageRef `{}` names no message", short(reference)));
        return None;
    };
    let name = context.text(
        id,
        "the name of the message",
        root.text.as_deref().unwrap_or_default(),
        name_problem,
    );
    let key = root.key.as_deref().filter(|key| !key.trim().is_empty());
    let key = key.map(|key| context.text(id, "the correlation key", key, anything));
    match key {
        Some(key) => Some(Message { name: name?, key: Some(key?) }),
        None => Some(Message { name: name?, key: None }),
    }
}

fn signal(definition: Node<'_, '_>, id: &str, context: &mut Context<'_>) -> Option<Text> {
    let Some(reference) = definition.attribute("signalRef") else {
        context.at(id, "no signal is named (signalRef)");
        return None;
    };
    let Some(root) = context.roots.signal(reference) else {
        context.at(id, format!("signalRef `{}` names no signal", short(reference)));
        return None;
    };
    context.text(
        id,
        "the name of the signal",
        root.text.as_deref().unwrap_or_default(),
        name_problem,
    )
}

/// A problem has been told.
struct Told;

/// The code of an error or escalation; no code when none is named.
fn code(
    definition: Node<'_, '_>,
    id: &str,
    kind: &str,
    context: &mut Context<'_>,
) -> Result<Option<String>, Told> {
    let attribute = format!("{kind}Ref");
    let Some(reference) = definition.attribute(attribute.as_str()) else { return Ok(None) };
    let root = match kind {
        "error" => context.roots.error(reference),
        _ => context.roots.escalation(reference),
    };
    let Some(root) = root else {
        context.at(id, format!("{attribute} `{}` names no {kind}", short(reference)));
        return Err(Told);
    };
    let code = root.text.as_deref().unwrap_or_default();
    if code.len() > limits::CODE_BYTES_MAX {
        context.at(
            id,
            format!("the code of the {kind} is longer than {} bytes", limits::CODE_BYTES_MAX),
        );
        return Err(Told);
    }
    context.given(id, &format!("the code of the {kind}"), code).map(Some).ok_or(Told)
}

fn name_problem(name: &str) -> Option<String> {
    let most = limits::EVENT_NAME_BYTES_MAX;
    (name.len() > most).then(|| format!("is longer than {most} bytes"))
}
