//! Process models in a few words, for tests that need many of them.
//!
//! One statement a line. `a -> b -> c if EXPR` draws flows, the last with a condition (or `else` for the default). What no line
//! declares is a task with nothing to do, or, when it is called `start` or `end`, that event of its scope. `ID: KIND … | part
//! | part` declares an element, `ID: sub {` and `ID: eventsub TRIGGER {` open a scope that `}` closes.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::support::NAMESPACES;

/// What an element says beside its kind: `in x = …`, `out x = …`, `each x in …`, `times …`, `seq`, `collect x = …`, `until …`,
/// `retries n`, `pauses 0 7`, `timeout n`, `result x`, `header k = v`, `assignee …`, `exact`, `quiet`.
const SEPARATOR: &str = " | ";

/// A process or sub-process that is being read.
#[derive(Default)]
struct Scope {
    id: String,
    /// What closes it, and what stands before its body.
    around: Option<(String, String)>,
    /// Trigger of its start event.
    trigger: String,
    declared: BTreeSet<String>,
    mentioned: Vec<String>,
    defaults: Vec<(String, String)>,
    body: String,
}

/// Root elements that events refer to, by id.
#[derive(Default)]
struct Roots(Vec<(String, String)>);

impl Roots {
    fn refer(&mut self, tag: &str, attributes: &str, inner: &str) -> String {
        let text = format!("{attributes}>{inner}</{tag}>");
        if let Some((id, _)) = self.0.iter().find(|(_, known)| known.ends_with(&text)) {
            return id.clone();
        }
        let id = format!("root{}", self.0.len());
        self.0.push((id.clone(), format!("<{tag} id=\"{id}\"{text}")));
        id
    }
}

fn quote(text: &str) -> String {
    crate::support::escape(text).replace('"', "&quot;")
}

/// The BPMN document of a model.
pub(crate) fn document(model: &str) -> String {
    let (mut roots, mut flows, mut head) = (Roots::default(), 0, String::new());
    let (mut fail, mut open) = ("", vec![Scope::default()]);
    for line in model.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let current = open.len() - 1;
        if line == "}" {
            let scope = open.pop().expect("a scope");
            let (before, after) = scope.around.clone().expect("a scope that was opened");
            let body = close(scope);
            let _ = write!(open[current - 1].body, "{before}{body}{after}");
        } else if let Some((id, rest)) = line.split_once(": ").filter(|(id, _)| is_id(id)) {
            open[current].declared.insert(id.to_owned());
            if let Some(rest) = rest.strip_suffix('{') {
                open.push(begin(id, rest.trim(), &mut roots));
            } else {
                let text = element(id, rest, &mut roots);
                open[current].body.push_str(&text);
            }
        } else if line.contains("->") {
            draw(line, &mut open[current], &mut flows);
        } else if line == "fail" {
            fail = "<rf:process onFailure=\"fail\"/>";
        } else {
            variables(line, &mut head);
        }
    }
    let body = close(open.pop().expect("the process"));
    let roots: String = roots.0.into_iter().map(|(_, text)| text).collect();
    format!(
        "<definitions {NAMESPACES}><process id=\"p\" isExecutable=\"true\"><extensionElements>{fail}{head}</extensionElements>\
         {body}</process>{roots}</definitions>"
    )
}

fn is_id(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn variables(line: &str, head: &mut String) {
    let (direction, names) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
    assert!(matches!(direction, "input" | "output"), "{line:?}");
    for name in names.split(' ') {
        let (name, kind) = name.split_once(':').unwrap_or((name, "any"));
        let _ = write!(
            head,
            "<rf:variable name=\"{name}\" direction=\"{direction}\" type=\"{kind}\"/>"
        );
    }
}

fn draw(line: &str, scope: &mut Scope, flows: &mut u32) {
    let (line, condition) = match line.split_once(" if ") {
        Some((line, condition)) => (line, Some(condition)),
        None => (line, None),
    };
    let (line, default) = match line.strip_suffix(" else") {
        Some(line) => (line, true),
        None => (line, false),
    };
    let ends: Vec<&str> = line.split("->").map(str::trim).collect();
    for (position, pair) in ends.windows(2).enumerate() {
        *flows += 1;
        let id = format!("f{flows}");
        let [source, target] = [pair[0], pair[1]].map(|end| match end {
            "start" | "end" => named(&scope.id, end),
            end => end.to_owned(),
        });
        let last = position + 2 == ends.len();
        let condition = condition.filter(|_| last).map(|condition| {
            format!(
                "<conditionExpression>={}</conditionExpression>",
                crate::support::escape(condition)
            )
        });
        if last && default {
            scope.defaults.push((source.clone(), id.clone()));
        }
        let _ = write!(
            scope.body,
            "<sequenceFlow id=\"{id}\" sourceRef=\"{source}\" targetRef=\"{target}\">{}</sequenceFlow>",
            condition.unwrap_or_default()
        );
        scope.mentioned.extend([source, target]);
    }
}

fn named(scope: &str, event: &str) -> String {
    if scope.is_empty() { event.to_owned() } else { format!("{scope}_{event}") }
}

/// Opens a sub-process.
fn begin(id: &str, rest: &str, roots: &mut Roots) -> Scope {
    let (kind, parts) = rest.split_once(SEPARATOR).unwrap_or((rest, ""));
    let mut words = kind.split(' ');
    let mut scope = Scope { id: id.to_owned(), ..Scope::default() };
    let mut attributes = "";
    if words.next() == Some("eventsub") {
        attributes = " triggeredByEvent=\"true\"";
        let words: Vec<&str> = words.collect();
        let (beside, words) = beside(&words);
        let start = named(id, "start");
        let parts = Parts::read(parts);
        scope.trigger = format!(
            "<startEvent id=\"{start}\"{}>{}{}</startEvent>",
            if beside { " isInterrupting=\"false\"" } else { "" },
            parts.extensions(""),
            trigger(words, roots)
        );
        scope.declared.insert(start);
        scope.around = Some((
            format!("<subProcess id=\"{id}\"{attributes}>{}", scope.trigger),
            "</subProcess>".to_owned(),
        ));
        return scope;
    }
    let parts = Parts::read(parts);
    let before = format!(
        "<subProcess id=\"{id}\"{attributes} DEFAULT_{id}>{}{}",
        parts.extensions(""),
        parts.repeated()
    );
    scope.around = Some((before, "</subProcess>".to_owned()));
    scope
}

/// Everything inside a scope, with what was only mentioned.
fn close(mut scope: Scope) -> String {
    for id in std::mem::take(&mut scope.mentioned) {
        if scope.declared.insert(id.clone()) {
            let tag = if id == named(&scope.id, "start") {
                "startEvent"
            } else if id == named(&scope.id, "end") {
                "endEvent"
            } else {
                "task"
            };
            let _ = write!(scope.body, "<{tag} id=\"{id}\" DEFAULT_{id}/>");
        }
    }
    let mut body = scope.body;
    for (source, flow) in &scope.defaults {
        body = body.replace(&format!(" DEFAULT_{source}>"), &format!(" default=\"{flow}\">"));
        body = body.replace(&format!(" DEFAULT_{source}/>"), &format!(" default=\"{flow}\"/>"));
    }
    // Those without a default.
    for id in scope.declared.iter().rev() {
        body = body
            .replace(&format!(" DEFAULT_{id}>"), ">")
            .replace(&format!(" DEFAULT_{id}/>"), "/>");
    }
    body
}

fn beside<'a, 'w>(words: &'a [&'w str]) -> (bool, &'a [&'w str]) {
    match words {
        ["beside", rest @ ..] => (true, rest),
        words => (false, words),
    }
}

/// What an event waits for or sends.
fn trigger(words: &[&str], roots: &mut Roots) -> String {
    let rest = words.get(1..).unwrap_or_default().join(" ");
    let timer = |part: &str| {
        format!(
            "<timerEventDefinition><{part}>{}</{part}></timerEventDefinition>",
            crate::support::escape(&rest)
        )
    };
    let coded = |roots: &mut Roots, tag: &str, attribute: &str| {
        if rest.is_empty() {
            return format!("<{tag}EventDefinition/>");
        }
        let id = roots.refer(tag, &format!(" {attribute}=\"{rest}\""), "");
        format!("<{tag}EventDefinition {tag}Ref=\"{id}\"/>")
    };
    match words.first().copied().unwrap_or_default() {
        "timer" => timer("timeDuration"),
        "date" => timer("timeDate"),
        "cycle" => timer("timeCycle"),
        "msg" => {
            let id = message(&words[1..], roots);
            format!("<messageEventDefinition messageRef=\"{id}\"/>")
        }
        "signal" => {
            let id = roots.refer("signal", &format!(" name=\"{}\"", quote(&rest)), "");
            format!("<signalEventDefinition signalRef=\"{id}\"/>")
        }
        "error" => coded(roots, "error", "errorCode"),
        "escalation" => coded(roots, "escalation", "escalationCode"),
        "terminate" => "<terminateEventDefinition/>".to_owned(),
        other => panic!("no trigger {other:?}"),
    }
}

fn message(words: &[&str], roots: &mut Roots) -> String {
    let key = words[1..].join(" ");
    let inner = if key.is_empty() {
        String::new()
    } else {
        let key = quote(&key);
        format!(
            "<extensionElements><zeebe:subscription correlationKey=\"={key}\"/></extensionElements>"
        )
    };
    roots.refer("message", &format!(" name=\"{}\"", words[0]), &inner)
}

/// One element that is no sub-process.
fn element(id: &str, rest: &str, roots: &mut Roots) -> String {
    let mut split = rest.splitn(2, SEPARATOR);
    let kind = split.next().unwrap_or_default();
    let mut parts = Parts::read(split.next().unwrap_or_default());
    let words: Vec<&str> = kind.split(' ').collect();
    let tail = kind.split_once(' ').map_or("", |(_, tail)| tail);
    let event = |tag: &str, attributes: &str, parts: &Parts, inner: &str| {
        format!("<{tag} id=\"{id}\"{attributes}>{}{inner}</{tag}>", parts.extensions(""))
    };
    match words[0] {
        "end" if tail.is_empty() => format!("<endEvent id=\"{id}\"/>"),
        "end" | "throw" => {
            let tag = if words[0] == "end" { "endEvent" } else { "intermediateThrowEvent" };
            let definition = trigger(&words[1..], roots);
            event(tag, "", &parts, &definition)
        }
        "catch" => {
            let definition = trigger(&words[1..], roots);
            event("intermediateCatchEvent", "", &parts, &definition)
        }
        "on" | "beside" => {
            let cancel = if words[0] == "on" { "" } else { " cancelActivity=\"false\"" };
            let definition = trigger(&words[2..], roots);
            let attributes = format!(" attachedToRef=\"{}\"{cancel}", words[1]);
            event("boundaryEvent", &attributes, &parts, &definition)
        }
        "xor" => format!("<exclusiveGateway id=\"{id}\" DEFAULT_{id}/>"),
        "or" => format!("<inclusiveGateway id=\"{id}\" DEFAULT_{id}/>"),
        "and" => format!("<parallelGateway id=\"{id}\"/>"),
        "events" => format!("<eventBasedGateway id=\"{id}\"/>"),
        "pass" => parts.activity("task", id, "", ""),
        "user" => parts.activity("userTask", id, "", ""),
        "script" => {
            let (name, expression) = tail.split_once(" = ").expect("a result");
            let script = format!(
                "<zeebe:script expression=\"={}\" resultVariable=\"{name}\"/>",
                quote(expression)
            );
            parts.activity("scriptTask", id, "", &script)
        }
        "task" => {
            let retries = std::mem::take(&mut parts.retries);
            let work = format!("<zeebe:taskDefinition type=\"{}\"{retries}/>", quote(tail));
            parts.activity("serviceTask", id, "", &work)
        }
        "receive" => {
            let attribute = format!(" messageRef=\"{}\"", message(&words[1..], roots));
            parts.activity("receiveTask", id, &attribute, "")
        }
        "call" => {
            let called = format!(
                "<zeebe:calledElement processId=\"{}\"{}/>",
                quote(tail),
                std::mem::take(&mut parts.called)
            );
            parts.activity("callActivity", id, "", &called)
        }
        other => panic!("no kind {other:?} in {rest:?}"),
    }
}

/// The parts of an element behind its kind.
#[derive(Default)]
struct Parts {
    mappings: String,
    headers: String,
    own: String,
    attributes: String,
    retries: String,
    called: String,
    assignment: String,
    repeat: Option<String>,
    loops: String,
    sequential: bool,
    cardinality: String,
    until: String,
}

impl Parts {
    fn read(text: &str) -> Self {
        let mut parts = Self::default();
        for part in text.split(SEPARATOR).map(str::trim).filter(|part| !part.is_empty()) {
            parts.take(part);
        }
        parts
    }

    fn take(&mut self, part: &str) {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        let pair = |by: &str| rest.split_once(by).unwrap_or_else(|| panic!("{part:?}"));
        match word {
            "in" | "out" => {
                let (target, source) = pair(" = ");
                let side = format!("{word}put");
                let _ = write!(
                    self.mappings,
                    "<zeebe:{side} source=\"={}\" target=\"{target}\"/>",
                    quote(source)
                );
            }
            "each" => {
                let (item, list) = pair(" in ");
                let list = quote(list);
                let _ = write!(self.loops, " inputCollection=\"={list}\" inputElement=\"{item}\"");
                self.repeat = Some(String::new());
            }
            "times" => {
                self.cardinality = format!("<loopCardinality>={}</loopCardinality>", quote(rest));
                self.repeat = Some(String::new());
            }
            "seq" => self.sequential = true,
            "collect" => {
                let (list, result) = pair(" = ");
                let result = quote(result);
                let _ =
                    write!(self.loops, " outputCollection=\"{list}\" outputElement=\"={result}\"");
            }
            "until" => {
                self.until = format!("<completionCondition>={}</completionCondition>", quote(rest));
            }
            "retries" => self.retries = format!(" retries=\"{}\"", quote(rest)),
            "pauses" => {
                let _ = write!(self.own, "<rf:retry backOffSeconds=\"{rest}\"/>");
            }
            "timeout" => {
                let _ = write!(self.own, "<rf:task timeoutSeconds=\"{rest}\"/>");
            }
            "result" => self.attributes = format!(" rf:resultVariable=\"{rest}\""),
            "header" => {
                let (key, value) = pair(" = ");
                let value = quote(value);
                let _ = write!(self.headers, "<zeebe:header key=\"{key}\" value=\"{value}\"/>");
            }
            "assignee" => {
                self.assignment =
                    format!("<zeebe:assignmentDefinition assignee=\"={}\"/>", quote(rest));
            }
            "exact" => self.called.push_str(" propagateAllParentVariables=\"false\""),
            "quiet" => self.called.push_str(" propagateAllChildVariables=\"false\""),
            other => panic!("no part {other:?}"),
        }
    }

    fn extensions(&self, kind: &str) -> String {
        let mut all = format!("{kind}{}{}", self.own, self.assignment);
        if !self.headers.is_empty() {
            let _ = write!(all, "<zeebe:taskHeaders>{}</zeebe:taskHeaders>", self.headers);
        }
        if !self.mappings.is_empty() {
            let _ = write!(all, "<zeebe:ioMapping>{}</zeebe:ioMapping>", self.mappings);
        }
        if all.is_empty() { all } else { format!("<extensionElements>{all}</extensionElements>") }
    }

    fn repeated(&self) -> String {
        if self.repeat.is_none() {
            return String::new();
        }
        let extension = if self.loops.is_empty() {
            String::new()
        } else {
            format!(
                "<extensionElements><zeebe:loopCharacteristics{}/></extensionElements>",
                self.loops
            )
        };
        format!(
            "<multiInstanceLoopCharacteristics isSequential=\"{}\">{extension}{}{}</multiInstanceLoopCharacteristics>",
            self.sequential, self.cardinality, self.until
        )
    }

    fn activity(&self, tag: &str, id: &str, attributes: &str, kind: &str) -> String {
        format!(
            "<{tag} id=\"{id}\"{attributes}{} DEFAULT_{id}>{}{}</{tag}>",
            self.attributes,
            self.extensions(kind),
            self.repeated()
        )
    }
}
