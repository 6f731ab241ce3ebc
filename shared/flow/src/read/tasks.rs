//! Tasks and call activities.

use roxmltree::Node;

use super::context::{Context, Place, anything};
use super::element::is_feel;
use super::modeler::Extensions;
use super::process::process_id_problem;
use super::xml::{self, local, short};
use super::{DraftKind, Role, events, job, timing};
use crate::definition::{Call, NodeKind, Text, Throw, Trigger, UserTask};

/// Reads a task.
pub(super) fn read(
    node: Node<'_, '_>,
    id: &str,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> (Role, Option<DraftKind>) {
    let kind = local(node);
    let role = if kind == "receiveTask" { Role::Receive } else { Role::Activity };
    let read = match kind {
        "task" | "manualTask" => Some(NodeKind::Pass),
        "userTask" => Some(NodeKind::User(Box::new(user(id, extensions, context)))),
        "callActivity" => call(node, id, extensions, context).map(NodeKind::Call),
        "receiveTask" => receive(node, id, context),
        "scriptTask" if extensions.get("taskDefinition").is_none() => {
            script(node, id, extensions, context)
        }
        _ if extensions.get("taskDefinition").is_some() => {
            refuse_second_script(node, id, extensions, context);
            job::read(node, id, extensions, context).map(Box::new).map(NodeKind::Task)
        }
        "sendTask" if node.has_attribute("messageRef") => {
            let message = events::message(node, id, context);
            message.map(|message| NodeKind::Throw(Throw::Message(message)))
        }
        _ => {
            let message =
                format!("the `{kind}` does not say who carries it out (zeebe:taskDefinition)");
            context.at(id, message);
            None
        }
    };
    (role, read.map(DraftKind::Ready))
}

fn receive(node: Node<'_, '_>, id: &str, context: &mut Context<'_>) -> Option<NodeKind> {
    if context.flag(node, id, "instantiate", false) {
        context.at(id, "a receive task that starts a process is not supported");
    }
    let message = events::message(node, id, context)?;
    Some(NodeKind::Catch(Trigger::Message(message)))
}

fn refuse_second_script(
    node: Node<'_, '_>,
    id: &str,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) {
    let standard = xml::bpmn_children(node).any(|child| local(child) == "script");
    if standard || extensions.get("script").is_some() {
        context.at(id, "a task is either a script or somebody else's (zeebe:taskDefinition)");
    }
}

fn script(
    node: Node<'_, '_>,
    id: &str,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> Option<NodeKind> {
    if extensions.get("taskHeaders").is_some() {
        context.at(id, "a script has no `zeebe:taskHeaders`");
    }
    let standard = standard_script(node, id, context);
    let modeler = extensions.get("script").map(|script| {
        extensions.known(script, &["expression", "resultVariable"], context.problems);
        let text = script.attribute("expression").unwrap_or_default().to_owned();
        (text, script.attribute("resultVariable").map(str::to_owned))
    });
    let is_modelers = modeler.is_some();
    let (text, result) = match (standard, modeler) {
        (Some(_), Some(_)) => {
            context.at(id, "the script task has two scripts");
            return None;
        }
        (Some(script), None) | (None, Some(script)) => script,
        (None, None) => {
            context.at(id, "the script task has no script");
            return None;
        }
    };
    let expression = if is_modelers {
        context.computed(id, "the script", &text, Place::Any)
    } else {
        context.expression(id, &text, Place::Any)
    };
    let Some(result) = result.filter(|name| !name.is_empty()) else {
        context.at(
            id,
            "the script task does not name the variable for its result (rf:resultVariable)",
        );
        return None;
    };
    let result = context.variable(id, &result);
    Some(NodeKind::Script { expression: expression?, result: result? })
}

/// The script in the form of the standard: its text and the name of the variable for its result.
fn standard_script(
    node: Node<'_, '_>,
    id: &str,
    context: &mut Context<'_>,
) -> Option<(String, Option<String>)> {
    let script = xml::bpmn_children(node).find(|child| local(*child) == "script")?;
    match node.attribute("scriptFormat") {
        Some(format) if is_feel(format) => {}
        Some(format) => {
            let format = short(format);
            context.at(id, format!("scripts in `{format}` are not supported, only `feel`"));
        }
        None => context.at(id, "scriptFormat must be `feel`"),
    }
    let result = node.attribute((xml::RUNFLEET, "resultVariable")).map(str::to_owned);
    Some((xml::text(script), result))
}

fn user(id: &str, extensions: &Extensions<'_, '_>, context: &mut Context<'_>) -> UserTask {
    if let Some(marker) = extensions.get("userTask") {
        extensions.known(marker, &[], context.problems);
    }
    // An attribute that the modeler has left empty is one that was not given.
    let mut attributes = |name: &str, known: &[&str]| {
        let extension = extensions.get(name)?;
        extensions.known(extension, known, context.problems);
        Some(move |attribute: &str| extension.attribute(attribute).filter(|text| !text.is_empty()))
    };
    let assignment = ["assignee", "candidateGroups", "candidateUsers"];
    let assigned = attributes("assignmentDefinition", &assignment);
    let scheduled = attributes("taskSchedule", &["dueDate"]);
    let forms = ["formId", "formKey", "externalReference"];
    let formed =
        attributes("formDefinition", &["formId", "formKey", "externalReference", "bindingType"]);
    let mut text = |attribute: &str| -> Option<Text> {
        let value = assigned.as_ref().and_then(|assigned| assigned(attribute))?;
        context.text(id, &format!("`{attribute}`"), value, anything)
    };
    let [assignee, candidate_groups, candidate_users] = assignment.map(&mut text);
    let due = scheduled
        .and_then(|scheduled| scheduled("dueDate"))
        .and_then(|due| context.text(id, "the due date", due, timing::date_problem));
    let form = formed.and_then(|formed| {
        let mut given = forms.into_iter().filter_map(formed);
        let form = given.next();
        if given.next().is_some() {
            context.at(id, "the user task has two forms");
        }
        form.and_then(|form| context.given(id, "the form", form))
    });
    UserTask { assignee, candidate_groups, candidate_users, form, due }
}

fn call(
    node: Node<'_, '_>,
    id: &str,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> Option<Call> {
    let called = extensions.get("calledElement");
    let (mut all_in, mut all_out) = (true, true);
    if let Some(called) = called {
        let known = [
            "processId",
            "propagateAllParentVariables",
            "propagateAllChildVariables",
            "bindingType",
        ];
        extensions.known(called, &known, context.problems);
        if called.attribute("bindingType").is_some_and(|binding| binding != "latest") {
            context.at(id, "`bindingType` other than `latest` is not supported");
        }
        all_in = context.flag(called, id, "propagateAllParentVariables", true);
        all_out = context.flag(called, id, "propagateAllChildVariables", true);
    }
    let process = called
        .and_then(|called| called.attribute("processId"))
        .or_else(|| node.attribute("calledElement"))
        .filter(|process| !process.trim().is_empty());
    let Some(process) = process else {
        context
            .at(id, "the call activity does not say which process it calls (zeebe:calledElement)");
        return None;
    };
    let process = context.text(id, "the id of the called process", process, process_id_problem)?;
    Some(Call { process, all_in, all_out })
}
