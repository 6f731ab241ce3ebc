//! Work for somebody else: a task definition with its headers, pauses and results.

use roxmltree::Node;
use serde_json::{Map, Value};

use super::context::{Context, Place};
use super::modeler::Extensions;
use super::{own, timing, xml};
use crate::definition::{Task, TaskResult, Text};
use crate::engine::{AGENT_WORK, HTTP_WORK};
use crate::limits;

/// Attempts in all when a task does not say.
const ATTEMPTS: &str = "3";
/// The same of a task for an agent, which costs money each time.
const AGENT_ATTEMPTS: &str = "1";
/// What types begin with that mean something here.
const RESERVED: &str = "runfleet:";
/// Headers of a task for an agent, each of which may be an input mapping of that name instead.
const AGENT_HEADERS: [&str; 3] = ["agentId", "instruction", "resultSchema"];
/// Pauses between attempts when a task does not say.
const BACK_OFF_MS: [u64; 3] = [5_000, 30_000, 120_000];
/// Headers that say what the engine does with the answer.
#[derive(Default)]
struct Understood {
    back_off: Option<String>,
    variable: Option<String>,
    expression: Option<String>,
    error: Option<String>,
}

/// Reads the task definition of an element, which must have one.
pub(super) fn read(
    node: Node<'_, '_>,
    id: &str,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> Option<Task> {
    let definition = extensions.get("taskDefinition")?;
    extensions.known(definition, &["type", "retries"], context.problems);
    let work = definition.attribute("type").unwrap_or_default();
    let work = context.text(id, "the type of the task", work, |work| {
        if work.starts_with(RESERVED) && work != AGENT_WORK {
            return Some(format!("is reserved; there is only `{AGENT_WORK}`"));
        }
        (work.len() > limits::WORK_BYTES_MAX)
            .then(|| format!("is longer than {} bytes", limits::WORK_BYTES_MAX))
    });
    let is_agent = matches!(&work, Some(Text::Given(work)) if work == AGENT_WORK);
    let few = if is_agent { AGENT_ATTEMPTS } else { ATTEMPTS };
    let retries = definition.attribute("retries").filter(|text| !text.is_empty());
    let attempts =
        context.text(id, "`retries`", retries.unwrap_or(few), |text| match text.parse::<u32>() {
            Ok(1..=limits::ATTEMPTS_MAX) => None,
            _ => Some(format!("is 1 to {}", limits::ATTEMPTS_MAX)),
        });
    let (headers, understood) = headers(id, extensions, context);
    let is_http = matches!(&work, Some(Text::Given(work)) if HTTP_WORK.contains(&work.as_str()));
    let (timeout, most) = if is_http {
        (limits::HTTP_TIMEOUT_SECONDS, limits::HTTP_TIMEOUT_SECONDS_MAX)
    } else if is_agent {
        agent_problems(id, &headers, extensions, context);
        (limits::AGENT_TIMEOUT_SECONDS, limits::AGENT_TIMEOUT_SECONDS_MAX)
    } else {
        (limits::TASK_TIMEOUT_SECONDS, limits::TASK_TIMEOUT_SECONDS_MAX)
    };
    let settings = own::task(node, id, most, context.problems);
    let back_off_ms = pauses(id, settings.back_off_ms, understood.back_off.as_deref(), context);
    let result = result(node, id, &understood, context);
    Some(Task {
        work: work?,
        headers,
        attempts: attempts?,
        back_off_ms,
        timeout_ms: settings.timeout_seconds.unwrap_or(timeout) * 1000,
        result,
    })
}

/// What is wrong with the headers of a task for an agent.
fn agent_problems(
    id: &str,
    headers: &[(String, String)],
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) {
    let mapped = |name: &str| {
        let mapping = extensions.get("ioMapping");
        mapping.into_iter().flat_map(|mapping| mapping.children()).any(|entry| {
            entry.is_element()
                && xml::local(entry) == "input"
                && entry.attribute("target").map(str::trim) == Some(name)
        })
    };
    for (key, _) in headers.iter().filter(|(key, _)| !AGENT_HEADERS.contains(&key.as_str())) {
        context.at(id, format!("the header `{key}` is not known in a task for an agent"));
    }
    for name in ["agentId", "instruction"] {
        let given = headers.iter().any(|(key, value)| key == name && !value.trim().is_empty());
        if !given && !mapped(name) {
            let message = format!("the task for an agent has no `{name}` (a header or an input)");
            context.at(id, message);
        }
    }
    let schema = headers.iter().find(|(key, _)| key == "resultSchema").map(|(_, text)| text);
    let is_object = |text: &String| serde_json::from_str::<Map<String, Value>>(text).is_ok();
    if schema.is_some_and(|text| !is_object(text)) {
        context.at(id, "the header `resultSchema` is no JSON object");
    }
}

/// The headers that go to whoever carries it out, and the ones that the engine understands.
fn headers(
    id: &str,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> (Vec<(String, String)>, Understood) {
    let mut understood = Understood::default();
    let mut headers: Vec<(String, String)> = Vec::new();
    let Some(list) = extensions.get("taskHeaders") else { return (headers, understood) };
    let known = ["key", "value"];
    for header in extensions.children(list, &["header"], &known, context.problems) {
        let key = header.attribute("key").unwrap_or_default().trim().to_owned();
        let value = header.attribute("value").unwrap_or_default().to_owned();
        let slot = match key.as_str() {
            "retryBackoff" => &mut understood.back_off,
            "resultVariable" => &mut understood.variable,
            "resultExpression" => &mut understood.expression,
            "errorExpression" => &mut understood.error,
            _ => {
                header_problem(id, &headers, &key, &value, context);
                headers.push((key, value));
                continue;
            }
        };
        if slot.is_some() {
            context.at(id, format!("the header `{key}` is given twice"));
        }
        // What a template has left empty was not given.
        *slot = Some(value).filter(|value| !value.trim().is_empty());
    }
    if headers.len() > limits::HEADERS_MAX {
        context.at(id, format!("the task has more than {} headers", limits::HEADERS_MAX));
        headers.clear();
    }
    (headers, understood)
}

fn header_problem(
    id: &str,
    before: &[(String, String)],
    key: &str,
    value: &str,
    context: &mut Context<'_>,
) {
    let most = limits::GIVEN_TEXT_BYTES_MAX;
    if key.is_empty() || key.len() > limits::VARIABLE_NAME_BYTES_MAX {
        let most = limits::VARIABLE_NAME_BYTES_MAX;
        context.at(id, format!("the key of a header has 1 to {most} bytes"));
    } else if value.len() > most {
        context.at(id, format!("the header `{key}` is longer than {most} bytes"));
    // Beyond the limit of headers nothing is compared any more.
    } else if before.iter().take(limits::HEADERS_MAX).any(|(other, _)| other == key) {
        context.at(id, format!("the header `{key}` is given twice"));
    }
}

/// Pauses between attempts, from our own list or the modeler's single duration.
fn pauses(
    id: &str,
    own: Option<Vec<u64>>,
    modelers: Option<&str>,
    context: &mut Context<'_>,
) -> Vec<u64> {
    match (own, modelers) {
        (Some(_), Some(_)) => {
            context.at(id, "`rf:retry` and the header `retryBackoff` exclude each other");
            BACK_OFF_MS.to_vec()
        }
        (Some(own), None) => own,
        (None, None) => BACK_OFF_MS.to_vec(),
        (None, Some(text)) => {
            let most = limits::BACK_OFF_SECONDS_MAX;
            let pause = timing::duration_ms(text.trim()).filter(|pause| *pause <= most * 1000);
            if pause.is_none() {
                let form = "a duration such as `PT30S`";
                context.at(
                    id,
                    format!("the header `retryBackoff` is {form} of at most {most} seconds"),
                );
            }
            vec![pause.unwrap_or_default()]
        }
    }
}

fn result(
    node: Node<'_, '_>,
    id: &str,
    understood: &Understood,
    context: &mut Context<'_>,
) -> TaskResult {
    let own = node.attribute((xml::RUNFLEET, "resultVariable"));
    let variable = match (own, understood.variable.as_deref()) {
        (Some(_), Some(_)) => {
            context.at(id, "the variable for the result is given twice");
            None
        }
        (Some(name), None) | (None, Some(name)) => context.variable(id, name.trim()),
        (None, None) => None,
    };
    let mut computed = |header: &str, text: &Option<String>, place| {
        let text = text.as_deref()?;
        context.computed(id, &format!("the header `{header}`"), text, place)
    };
    let expression = computed("resultExpression", &understood.expression, Place::Response);
    let error = computed("errorExpression", &understood.error, Place::Failure);
    TaskResult { variable, expression, error }
}
