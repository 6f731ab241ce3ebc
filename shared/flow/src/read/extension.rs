//! Extension elements and attributes: this product's own, in which every mistake counts, and the script of the common
//! open modeler.

use roxmltree::Node;

use super::Settings;
use super::xml::{self, local};
use crate::definition::ProcessKind;
use crate::feel::variable_name_problem;
use crate::limits;
use crate::problem::Problems;
use crate::variable::{Variable, VariableType};

/// Modeler extensions that would change what an element does.
const EFFECTIVE: [&str; 6] = [
    "calledElement",
    "executionListeners",
    "ioMapping",
    "loopCharacteristics",
    "subscription",
    "taskDefinition",
];

/// Reads the settings and variables of the process.
pub(super) fn settings(process: Node<'_, '_>, id: &str, problems: &mut Problems) -> Settings {
    let mut settings = Settings {
        kind: ProcessKind::Normal,
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
    for attribute in
        process.attributes().filter(|attribute| attribute.namespace() == Some(xml::RUNFLEET))
    {
        problems.at(id, format!("the attribute `rf:{}` is not known here", attribute.name()));
    }
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
        match attribute.name() {
            "kind" => match ProcessKind::named(attribute.value()) {
                Some(kind) => settings.kind = kind,
                None => problems.at(id, "the kind of a process is `normal`, `event` or `sub`"),
            },
            "deadlineSeconds" => match attribute.value().parse() {
                Ok(seconds) if (1..=limits::DEADLINE_SECONDS_MAX).contains(&seconds) => {
                    settings.deadline_seconds = Some(seconds);
                }
                _ => problems
                    .at(id, format!("deadlineSeconds is 1 to {}", limits::DEADLINE_SECONDS_MAX)),
            },
            other => problems.at(id, format!("`{other}` is not known in `rf:process`")),
        }
    }
}

fn variable(node: Node<'_, '_>, settings: &mut Settings, id: &str, problems: &mut Problems) {
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

/// The script in the form of the common open modeler: its text and the name of the variable for its result.
pub(super) fn modeler_script(
    node: Node<'_, '_>,
    id: &str,
    problems: &mut Problems,
) -> Option<(String, Option<String>)> {
    let mut scripts =
        xml::extensions(node, xml::ZEEBE).filter(|extension| local(*extension) == "script");
    let script = scripts.next()?;
    if scripts.next().is_some() {
        problems.at(id, "the script task has two scripts");
    }
    let expression = script.attribute("expression").unwrap_or_default().to_owned();
    Some((expression, script.attribute("resultVariable").map(str::to_owned)))
}

/// Refuses extensions of a flow node or flow that are ours but unknown, or that would change what it does.
pub(super) fn refuse_unknown(node: Node<'_, '_>, id: &str, problems: &mut Problems) {
    for extension in xml::extensions(node, xml::RUNFLEET) {
        problems.at(id, format!("`rf:{}` is not known here", local(extension)));
    }
    for extension in
        xml::extensions(node, xml::ZEEBE).filter(|extension| EFFECTIVE.contains(&local(*extension)))
    {
        problems.at(id, format!("`zeebe:{}` is not supported", local(extension)));
    }
    for attribute in
        node.attributes().filter(|attribute| attribute.namespace() == Some(xml::RUNFLEET))
    {
        if local(node) != "scriptTask" || attribute.name() != "resultVariable" {
            problems.at(id, format!("the attribute `rf:{}` is not known here", attribute.name()));
        }
    }
}
