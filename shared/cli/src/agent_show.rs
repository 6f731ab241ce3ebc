//! What `runfleet run show` says about an agent run beside what every run has. Nothing of what is said.

use runfleet_agent::{CallDoing, Doing, State};
use runfleet_contracts::agent_run::{AgentOutput, AgentUsage};
use runfleet_domain::RunKind;
use runfleet_store::RunRecord;

use crate::credits::credits;

/// Lines about an agent run; none about any other.
pub(crate) fn facts(record: &RunRecord) -> Vec<(&'static str, String)> {
    if record.id.kind() != RunKind::Agent {
        return Vec::new();
    }
    let Some(position) = &record.position else {
        let usage = AgentOutput::read(record.output.as_deref()).usage;
        return usage.map(|usage| ("usage", used(&usage))).into_iter().collect();
    };
    let Ok(state) = State::from_json(position) else {
        return vec![(
            "doing",
            "something that only another version of this program can read".to_owned(),
        )];
    };
    let view = state.view();
    let usage = AgentUsage {
        input_tokens: view.usage.input_tokens,
        output_tokens: view.usage.output_tokens,
        iterations: view.usage.iterations,
        duration_ms: view.usage.duration_ms,
    };
    let mut facts = vec![("doing", doing(&view.doing))];
    if let Doing::Calling { calls } = &view.doing {
        facts.extend(
            calls.iter().map(|call| {
                ("call", format!("{} {} {}", call.call_id, call.name, stage(call.doing)))
            }),
        );
    }
    facts.push(("turns", format!("{}, and {} tool calls", view.turns, view.tool_calls)));
    facts.push(("usage", used(&usage)));
    facts
}

/// What the answers of its models have cost, if anything.
pub(crate) fn cost(record: &RunRecord) -> Option<(&'static str, String)> {
    let cost = credits(record.cost);
    (record.cost > 0).then(|| ("cost", format!("{cost} credits")))
}

/// Lines about the messages that a run may send a person, and about the conversation in which it is a turn.
pub(crate) fn messages(record: &RunRecord) -> Vec<(&'static str, String)> {
    let recipient = record.recipient.as_ref().map(|person| ("writes to", person.to_string()));
    let delivery = record.delivery.as_ref().map(|delivery| ("message", delivery.to_string()));
    let turn = record.conversation.map(|conversation| ("turn in", conversation.to_string()));
    [recipient, delivery, turn].into_iter().flatten().collect()
}

fn doing(doing: &Doing) -> String {
    match doing {
        Doing::Ready => "it begins next".to_owned(),
        Doing::Asking { turn, attempt, what, .. } => {
            format!("the model is asked: question {turn} ({what}), attempt {attempt}")
        }
        Doing::Pausing { turn, attempt, .. } => {
            format!("the model is asked again after a pause: question {turn}, attempt {attempt}")
        }
        Doing::Calling { calls } => format!("{} tool calls of one answer", calls.len()),
        Doing::Ended => "it has ended".to_owned(),
        _ => "something that only a newer version knows".to_owned(),
    }
}

fn stage(doing: CallDoing) -> &'static str {
    match doing {
        CallDoing::Held => "waits for a person",
        CallDoing::Waiting => "waits for its turn",
        CallDoing::Out => "is carried out",
        CallDoing::Done => "is done",
        CallDoing::Failed => "has failed",
    }
}

fn used(usage: &AgentUsage) -> String {
    let AgentUsage { input_tokens, output_tokens, iterations, duration_ms } = usage;
    format!(
        "{input_tokens} tokens read, {output_tokens} written, {iterations} answers, {duration_ms} ms"
    )
}
