//! What one element does, in words.

use super::one_line;
use crate::definition::{
    Call, End, Message, Node, NodeKind, Repeat, Task, TaskResult, Text, Throw, Timer, Trigger,
    UserTask,
};

/// The kind of an element, in a few words.
pub(super) fn title(node: &Node) -> String {
    let title = match &node.kind {
        NodeKind::Start { trigger: None, .. } => "start".to_owned(),
        NodeKind::Start { trigger: Some(trigger), interrupting } => {
            format!("{}start on {}", whether(*interrupting), caught(trigger))
        }
        NodeKind::End(end) => format!("end{}", ended(end)),
        NodeKind::Script { .. } => "script task".to_owned(),
        NodeKind::Task(task) => format!("task for {}", text(&task.work)),
        NodeKind::User(_) => "user task".to_owned(),
        NodeKind::Pass => "nothing to do".to_owned(),
        NodeKind::Call(call) => format!("call of {}", text(&call.process)),
        NodeKind::Sub { .. } => "sub-process".to_owned(),
        NodeKind::EventSub { .. } => "event sub-process".to_owned(),
        NodeKind::Exclusive => "exclusive gateway".to_owned(),
        NodeKind::Parallel => "parallel gateway".to_owned(),
        NodeKind::Inclusive => "inclusive gateway".to_owned(),
        NodeKind::EventBased => "event-based gateway".to_owned(),
        NodeKind::Catch(trigger) => format!("wait for {}", caught(trigger)),
        NodeKind::Throw(throw) => format!("send {}", thrown(throw)),
        NodeKind::Boundary { trigger, interrupting, .. } => {
            format!("{}on {}", whether(*interrupting), caught(trigger))
        }
    };
    match &node.repeat {
        Some(Repeat { sequential: true, .. }) => format!("{title}, one after the other"),
        Some(_) => format!("{title}, all at once"),
        None => title,
    }
}

/// Further lines about what an element does.
pub(super) fn details(node: &Node) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(repeat) = &node.repeat {
        repeated(repeat, &mut lines);
    }
    match &node.kind {
        NodeKind::Script { expression, result } => {
            lines.push(format!("{result} = {}", one_line(expression.text())));
        }
        NodeKind::Task(task) | NodeKind::End(End::Task(task)) => asked(task, &mut lines),
        NodeKind::User(user) => assigned(user, &mut lines),
        NodeKind::Call(Call { all_in, all_out, .. }) => {
            if *all_in {
                lines.push("hands over all inputs that it declares".to_owned());
            }
            if *all_out && node.outputs.is_empty() {
                lines.push("takes over all its output".to_owned());
            }
        }
        _ => {}
    }
    lines
}

fn whether(interrupting: bool) -> &'static str {
    if interrupting { "" } else { "beside it, " }
}

fn caught(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Timer(Timer::Date(date)) => format!("the time {}", text(date)),
        Trigger::Timer(Timer::Duration(duration)) => format!("the timer {}", text(duration)),
        Trigger::Timer(Timer::Cycle(cycle)) => format!("the cycle {}", text(cycle)),
        Trigger::Message(message) => named_message(message),
        Trigger::Signal { name } => format!("the signal {}", text(name)),
        Trigger::Error { code: Some(code) } => format!("the error {}", one_line(code)),
        Trigger::Error { code: None } => "any error".to_owned(),
        Trigger::Escalation { code: Some(code) } => format!("the escalation {}", one_line(code)),
        Trigger::Escalation { code: None } => "any escalation".to_owned(),
    }
}

fn thrown(throw: &Throw) -> String {
    match throw {
        Throw::Message(message) => named_message(message),
        Throw::Signal { name } => format!("the signal {}", text(name)),
        Throw::Escalation { code } => format!("the escalation {}", one_line(code)),
    }
}

fn ended(end: &End) -> String {
    match end {
        End::None => String::new(),
        End::Terminate => " of everything around it".to_owned(),
        End::Error { code } => format!(" with the error {}", one_line(code)),
        End::Throw(throw) => format!(", send {}", thrown(throw)),
        End::Task(task) => format!(", task for {}", text(&task.work)),
    }
}

fn named_message(message: &Message) -> String {
    match &message.key {
        Some(key) => format!("the message {} for {}", text(&message.name), text(key)),
        None => format!("the message {}", text(&message.name)),
    }
}

fn asked(task: &Task, lines: &mut Vec<String>) {
    let pauses: Vec<String> = task.back_off_ms.iter().map(|pause| seconds(*pause)).collect();
    lines.push(format!(
        "{} attempts of at most {}, pauses {}",
        text(&task.attempts),
        seconds(task.timeout_ms),
        pauses.join(" ")
    ));
    for (key, value) in &task.headers {
        lines.push(format!("header {} = {}", one_line(key), one_line(value)));
    }
    let TaskResult { variable, expression, error } = &task.result;
    if let Some(variable) = variable {
        lines.push(format!("{variable} = response"));
    }
    if let Some(expression) = expression {
        lines.push(format!("result = {}", one_line(expression.text())));
    }
    if let Some(error) = error {
        lines.push(format!("error = {}", one_line(error.text())));
    }
}

fn assigned(user: &UserTask, lines: &mut Vec<String>) {
    let texts = [
        ("assignee", &user.assignee),
        ("candidate groups", &user.candidate_groups),
        ("candidate users", &user.candidate_users),
        ("due", &user.due),
    ];
    for (what, value) in texts {
        if let Some(value) = value {
            lines.push(format!("{what} {}", text(value)));
        }
    }
    if let Some(form) = &user.form {
        lines.push(format!("form {}", one_line(form)));
    }
}

fn repeated(repeat: &Repeat, lines: &mut Vec<String>) {
    let over = one_line(repeat.over.text());
    lines.push(match &repeat.item {
        Some(item) => format!("for each {item} in {over}"),
        None => format!("for each of {over}"),
    });
    if let Some((list, result)) = &repeat.collect {
        lines.push(format!("{list} = list of {}", one_line(result.text())));
    }
    if let Some(until) = &repeat.until {
        lines.push(format!("until {}", one_line(until.text())));
    }
}

fn seconds(milliseconds: u64) -> String {
    let (whole, rest) = (milliseconds / 1000, milliseconds % 1000);
    if rest == 0 { format!("{whole} s") } else { format!("{whole}.{rest:03} s") }
}

/// A computed text with its `=`, a given one as it is.
fn text(text: &Text) -> String {
    match text {
        Text::Given(text) => one_line(text),
        Text::Feel(expression) => format!("= {}", one_line(expression.text())),
    }
}
