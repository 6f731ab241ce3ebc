//! This product's own extension elements and attributes, in which every mistake counts.

use roxmltree::Node;

use super::Settings;
use super::xml::{self, local};
use crate::definition::{OnFailure, ProcessKind};
use crate::feel::variable_name_problem;
use crate::limits;
use crate::problem::Problems;
use crate::variable::{Variable, VariableType};

/// Reads the settings and variables of the process.
pub(super) fn settings(process: Node<'_, '_>, id: &str, problems: &mut Problems) -> Settings {
    let mut settings = Settings {
        kind: ProcessKind::Normal,
        on_failure: OnFailure::default(),
        deadline_seconds: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let mut described = false;
    for extension in xml::extensions(process, xml::RUNFLEET) {
        match local(extension) {
            "process" if described => problems.at(id, "`rf:process` is given twice"),
            "process" => {
                described = true;
                process_settings(extension, &mut settings, id, problems);
            }
            "variable" => variable(extension, &mut settings, id, problems),
            other => problems.at(id, format!("`rf:{other}` is not known")),
        }
    }
    refuse_attributes(process, id, &[], problems);
    agree(&settings, id, problems);
    settings
}

fn process_settings(
    node: Node<'_, '_>,
    settings: &mut Settings,
    id: &str,
    problems: &mut Problems,
) {
    for attribute in node.attributes() {
        match (attribute.name(), attribute.value()) {
            ("kind", value) => match ProcessKind::named(value) {
                Some(kind) => settings.kind = kind,
                None => problems.at(id, "the kind of a process is `normal`, `event` or `sub`"),
            },
            ("deadlineSeconds", value) => match value.parse() {
                Ok(seconds) if (1..=limits::DEADLINE_SECONDS_MAX).contains(&seconds) => {
                    settings.deadline_seconds = Some(seconds);
                }
                _ => problems
                    .at(id, format!("deadlineSeconds is 1 to {}", limits::DEADLINE_SECONDS_MAX)),
            },
            ("onFailure", "hold") => settings.on_failure = OnFailure::Hold,
            ("onFailure", "fail") => settings.on_failure = OnFailure::Fail,
            ("onFailure", _) => problems.at(id, "onFailure is `hold` or `fail`"),
            (other, _) => problems.at(id, format!("`{other}` is not known in `rf:process`")),
        }
    }
}

fn variable(node: Node<'_, '_>, settings: &mut Settings, id: &str, problems: &mut Problems) {
    if settings.inputs.len() + settings.outputs.len() > limits::VARIABLES_MAX {
        // Told once, with the process.
        return;
    }
    let name = node.attribute("name").unwrap_or_default();
    if let Some(problem) = variable_name_problem(name) {
        return problems.at(id, problem);
    }
    let (mut kind, mut direction, mut required) = (Some(VariableType::Any), None, false);
    for attribute in node.attributes() {
        match (attribute.name(), attribute.value()) {
            ("name", _) | ("required", "false") => {}
            ("type", value) => kind = VariableType::named(value),
            ("direction", value) => direction = Some(value),
            ("required", "true") => required = true,
            ("required", _) => {
                problems.at(id, format!("variable `{name}`: required is `true` or `false`"));
            }
            (other, _) => problems.at(id, format!("variable `{name}`: `{other}` is not known")),
        }
    }
    let Some(kind) = kind else {
        return problems.at(
            id,
            format!(
                "variable `{name}`: the type is number, string, boolean, date, dateTime, list, context or any"
            ),
        );
    };
    let variables = match direction {
        Some("input") => &mut settings.inputs,
        Some("output") if required => {
            return problems.at(id, format!("variable `{name}`: only an input can be required"));
        }
        Some("output") => &mut settings.outputs,
        _ => {
            return problems
                .at(id, format!("variable `{name}`: the direction is `input` or `output`"));
        }
    };
    if variables.iter().any(|variable| variable.name == name) {
        return problems.at(id, format!("variable `{name}` is declared twice"));
    }
    variables.push(Variable { name: name.to_owned(), kind, required });
}

/// A name that is both input and output is one variable, so it has one type.
fn agree(settings: &Settings, id: &str, problems: &mut Problems) {
    if settings.inputs.len() + settings.outputs.len() > limits::VARIABLES_MAX {
        problems
            .at(id, format!("the process declares more than {} variables", limits::VARIABLES_MAX));
    }
    for output in &settings.outputs {
        if settings
            .inputs
            .iter()
            .any(|input| input.name == output.name && input.kind != output.kind)
        {
            problems.at(id, format!("variable `{}` has two types", output.name));
        }
    }
}

/// Settings of a task for somebody else, from `rf:task` and `rf:retry`.
#[derive(Debug, Default)]
pub(super) struct TaskSettings {
    /// Longest time of one attempt.
    pub(super) timeout_seconds: Option<u64>,
    /// Pauses between attempts. Not empty.
    pub(super) back_off_ms: Option<Vec<u64>>,
}

/// Reads the settings of a task; the longest time of an attempt may be 1 to `timeout_max` seconds.
pub(super) fn task(
    node: Node<'_, '_>,
    id: &str,
    timeout_max: u64,
    problems: &mut Problems,
) -> TaskSettings {
    let mut settings = TaskSettings::default();
    let mut seen = Vec::new();
    for extension in xml::extensions(node, xml::RUNFLEET) {
        let name = local(extension);
        if !matches!(name, "task" | "retry") {
            // Refused with the element itself.
            continue;
        }
        if seen.contains(&name) {
            problems.at(id, format!("`rf:{name}` is given twice"));
            continue;
        }
        seen.push(name);
        for attribute in extension.attributes() {
            match (name, attribute.name()) {
                ("task", "timeoutSeconds") => match attribute.value().parse() {
                    Ok(seconds) if (1..=timeout_max).contains(&seconds) => {
                        settings.timeout_seconds = Some(seconds);
                    }
                    _ => problems.at(id, format!("timeoutSeconds is 1 to {timeout_max} here")),
                },
                ("retry", "backOffSeconds") => {
                    settings.back_off_ms = pauses(attribute.value());
                    if settings.back_off_ms.is_none() {
                        problems.at(id, pauses_problem());
                    }
                }
                (_, other) => problems.at(id, format!("`{other}` is not known in `rf:{name}`")),
            }
        }
    }
    settings
}

fn pauses(text: &str) -> Option<Vec<u64>> {
    let pauses: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|word| word.parse().ok().filter(|seconds| *seconds <= limits::BACK_OFF_SECONDS_MAX))
        .map(|seconds: Option<u64>| seconds.map(|seconds| seconds * 1000))
        .collect();
    pauses.filter(|list| (1..=limits::BACK_OFFS_MAX).contains(&list.len()))
}

fn pauses_problem() -> String {
    format!(
        "backOffSeconds is a list of 1 to {} pauses of at most {} seconds, such as `5 30 120`",
        limits::BACK_OFFS_MAX,
        limits::BACK_OFF_SECONDS_MAX
    )
}

/// Refuses what is ours and has no place in this element. Tasks for somebody else have settings, and those and scripts a
/// variable for the result.
pub(super) fn refuse_unknown(node: Node<'_, '_>, id: &str, is_task: bool, problems: &mut Problems) {
    for extension in xml::extensions(node, xml::RUNFLEET) {
        if !(is_task && matches!(local(extension), "task" | "retry")) {
            problems.at(id, format!("`rf:{}` is not known here", local(extension)));
        }
    }
    let known: &[&str] =
        if is_task || local(node) == "scriptTask" { &["resultVariable"] } else { &[] };
    refuse_attributes(node, id, known, problems);
}

fn refuse_attributes(node: Node<'_, '_>, id: &str, known: &[&str], problems: &mut Problems) {
    for attribute in
        node.attributes().filter(|attribute| attribute.namespace() == Some(xml::RUNFLEET))
    {
        if !known.contains(&attribute.name()) {
            problems.at(id, format!("the attribute `rf:{}` is not known here", attribute.name()));
        }
    }
}
