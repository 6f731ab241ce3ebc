//! The part of the AsyncAPI document about facts: what anybody may listen to, and nobody has to.

use serde_json::{Map, Value, json};

use super::{collect, parsed, reference};
use crate::message::Message;
use crate::schema;

/// The exchange that facts go through.
const EXCHANGE: &str = "x.facts";

/// Name in the document, kind, file of the schema, summary, example.
const FACTS: [(&str, &str, &str, &str, &str); 4] = [
    (
        "chatMessage",
        crate::facts::ChatMessage::KIND,
        "chat.message",
        "There is a message in a conversation; who may read it reads it there.",
        include_str!("../../golden/chat.message.v1.json"),
    ),
    (
        "agentProgress",
        crate::facts::AgentProgress::KIND,
        "agent.progress",
        "An agent got further.",
        include_str!("../../golden/agent.progress.v1.json"),
    ),
    (
        "runStarted",
        crate::facts::RunStarted::KIND,
        "run.started",
        "A run exists.",
        include_str!("../../golden/run.started.v1.json"),
    ),
    (
        "runEnded",
        crate::facts::RunEnded::KIND,
        "run.ended",
        "A run has ended.",
        include_str!("../../golden/run.ended.v1.json"),
    ),
];

pub(super) fn messages(messages: &mut Map<String, Value>) {
    for (name, kind, schema, summary, example) in FACTS {
        let message = json!({
            "name": kind,
            "title": kind,
            "summary": summary,
            "contentType": "application/json",
            "payload": reference(&format!("components/schemas/{schema}")),
            "examples": [{"name": "golden", "payload": parsed(example)}],
        });
        messages.insert(name.to_owned(), message);
    }
}

pub(super) fn schemas(schemas: &mut Map<String, Value>) {
    for (name, schema) in schema::all() {
        if FACTS.iter().any(|(_, _, of, _, _)| *of == name) {
            collect(name, schema, schemas);
        }
    }
}

pub(super) fn channel() -> Value {
    let messages: Map<String, Value> = FACTS
        .iter()
        .map(|(name, ..)| ((*name).to_owned(), reference(&format!("components/messages/{name}"))))
        .collect();
    json!({
        "address": "{kind}.{workspace}.{about}",
        "description": format!(
            "Published to the exchange `{EXCHANGE}`: not persistent, unconfirmed, perhaps lost, perhaps twice. Whoever \
             listens binds a queue of its own."
        ),
        "parameters": {
            "kind": {
                "description": "The kind of the fact.",
                "enum": FACTS.map(|(_, kind, ..)| kind),
            },
            "workspace": {"description": "The workspace."},
            "about": {"description": "The project; for facts about a conversation the person."},
        },
        "messages": messages,
        "bindings": {
            "amqp": {
                "is": "routingKey",
                "exchange": {"name": EXCHANGE, "type": "topic", "durable": true, "autoDelete": false},
            },
        },
    })
}

pub(super) fn operation() -> Value {
    let messages: Vec<Value> = FACTS
        .iter()
        .map(|(name, ..)| reference(&format!("channels/facts/messages/{name}")))
        .collect();
    json!({
        "action": "send",
        "summary": "Tells what has happened.",
        "channel": reference("channels/facts"),
        "messages": messages,
    })
}
