//! The AsyncAPI document of everything that start-intake takes and gives and of the facts that workers tell, put together from the types. `asyncapi.json` holds
//! it; a test keeps it fresh, and a public parser judges it.

mod facts;

use runfleet_domain::Lane;
use runfleet_domain::limits::BODY_BYTES_MAX;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::address::{DIRECT_REPLY, START_EXCHANGE, start_key};
use crate::error::ErrorCode;
use crate::request::{Operation, REPLY_KIND, REQUEST_KIND};
use crate::{header, schema};

/// Version of the contract. The major one is part of the kinds of messages.
pub const VERSION: &str = "1.1.0";

/// Examples of options and answer; the golden files.
fn examples(operation: Operation) -> (Value, Value) {
    macro_rules! golden {
        ($name:literal) => {
            (
                parsed(include_str!(concat!("../golden/", $name, ".json"))),
                parsed(include_str!(concat!("../golden/", $name, ".reply.json"))),
            )
        };
    }
    match operation {
        Operation::ProcessesStart => golden!("processes.start"),
        Operation::ProcessesGet => golden!("processes.get"),
        Operation::ProcessesCancel => golden!("processes.cancel"),
        Operation::ProcessesDelete => golden!("processes.delete"),
        Operation::ProcessesPause => golden!("processes.pause"),
        Operation::ProcessesResume => golden!("processes.resume"),
        Operation::ProcessesRetry => golden!("processes.retry"),
        Operation::ProcessesSet => golden!("processes.set"),
        Operation::ProcessesCompleteTask => golden!("processes.completeTask"),
        Operation::ProcessesAssignTask => golden!("processes.assignTask"),
        Operation::ProcessesHistory => golden!("processes.history"),
        Operation::ProcessesMessage => golden!("processes.message"),
        Operation::ProcessesSignal => golden!("processes.signal"),
        Operation::AgentsStart => golden!("agents.start"),
        Operation::AgentsGet => golden!("agents.get"),
        Operation::ChatList => golden!("chat.list"),
        Operation::ChatRead => golden!("chat.read"),
        Operation::ChatReply => golden!("chat.reply"),
        Operation::ChatDecide => golden!("chat.decide"),
        Operation::ChatSettings => golden!("chat.settings"),
        Operation::JobsEnqueue => golden!("jobs.enqueue"),
        Operation::ProjectsRegister => golden!("projects.register"),
        Operation::ProjectsActivate => golden!("projects.activate"),
        Operation::ProjectsShow => golden!("projects.show"),
        Operation::ProjectsSession => golden!("projects.session"),
        Operation::ProjectsCall => golden!("projects.call"),
        Operation::DataGet => golden!("data.get"),
        Operation::DataQuery => golden!("data.query"),
        Operation::DataUpdate => golden!("data.update"),
        Operation::DataCreate => golden!("data.create"),
        Operation::ModelsInvoke => golden!("models.invoke"),
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or(Value::Null)
}

/// The name of an operation in the document.
fn id(operation: Operation) -> &'static str {
    match operation {
        Operation::ProcessesStart => "startProcess",
        Operation::ProcessesGet => "getProcess",
        Operation::ProcessesCancel => "cancelProcess",
        Operation::ProcessesDelete => "deleteProcess",
        Operation::ProcessesPause => "pauseProcess",
        Operation::ProcessesResume => "resumeProcess",
        Operation::ProcessesRetry => "retryProcess",
        Operation::ProcessesSet => "setVariables",
        Operation::ProcessesCompleteTask => "completeTask",
        Operation::ProcessesAssignTask => "assignTask",
        Operation::ProcessesHistory => "getHistory",
        Operation::ProcessesMessage => "publishMessage",
        Operation::ProcessesSignal => "sendSignal",
        Operation::AgentsStart => "startAgent",
        Operation::AgentsGet => "getAgent",
        Operation::ChatList => "listConversations",
        Operation::ChatRead => "readConversation",
        Operation::ChatReply => "replyInConversation",
        Operation::ChatDecide => "decideAboutCall",
        Operation::ChatSettings => "changeChatSettings",
        Operation::JobsEnqueue => "enqueueJob",
        Operation::ProjectsRegister => "registerVersion",
        Operation::ProjectsActivate => "activateVersion",
        Operation::ProjectsShow => "showProject",
        Operation::ProjectsSession => "openSession",
        Operation::ProjectsCall => "callProject",
        Operation::DataGet => "getRecord",
        Operation::DataQuery => "queryRecords",
        Operation::DataUpdate => "updateRecord",
        Operation::DataCreate => "createRecord",
        Operation::ModelsInvoke => "invokeModel",
    }
}

fn summary(operation: Operation) -> &'static str {
    match operation {
        Operation::ProcessesStart => "Starts a Process; answered once the run exists.",
        Operation::ProcessesGet => "Tells where a Process run of the project stands.",
        Operation::ProcessesCancel => {
            "Ends a Process run and every run that it has called; a run that has ended stays as it is."
        }
        Operation::ProcessesDelete => "The same, as removed.",
        Operation::ProcessesPause => {
            "Holds a Process run: nothing happens until it is resumed, but its deadline counts."
        }
        Operation::ProcessesResume => "Lets a Process run go on that was held.",
        Operation::ProcessesRetry => {
            "Tries again what has failed for good in a Process run: one incident or all."
        }
        Operation::ProcessesSet => {
            "Sets variables of a Process run or of one of its sub-processes."
        }
        Operation::ProcessesCompleteTask => "Completes a user task.",
        Operation::ProcessesAssignTask => "Gives a user task to a person, or to nobody.",
        Operation::ProcessesHistory => "Tells what has happened in a Process run, oldest first.",
        Operation::ProcessesMessage => {
            "Gives a message to the one Process run that has waited for it longest, or keeps it for a while."
        }
        Operation::ProcessesSignal => {
            "Gives a signal to every Process run of the project that waits for it."
        }
        Operation::AgentsStart => "Starts an agent; answered once the run exists.",
        Operation::AgentsGet => "Tells where an agent run of the project stands.",
        Operation::ChatList => "Lists the conversations of the person with agents.",
        Operation::ChatRead => "Tells messages of a conversation of the person.",
        Operation::ChatReply => {
            "Says something in a conversation; its agent answers as that person."
        }
        Operation::ChatDecide => "Decides about a tool call that waits for the person.",
        Operation::ChatSettings => "Says when the person wants no messages of agents.",
        Operation::JobsEnqueue => {
            "Enqueues a background job of the project, now or for later; answered once the job run exists."
        }
        Operation::ProjectsRegister => {
            "Registers what a version of a project declares; a project key is needed."
        }
        Operation::ProjectsActivate => {
            "Makes a registered version the active one; effective within a second."
        }
        Operation::ProjectsShow => {
            "Tells which versions of a project are registered, which one is active, and which hosts were seen."
        }
        Operation::ProjectsSession => {
            "Gives a token for local development to the user of a project key."
        }
        Operation::ProjectsCall => {
            "Calls a script, route, trigger or action of the active version and gives back what it returns."
        }
        Operation::DataGet => "Reads a record of the workspace.",
        Operation::DataQuery => "Looks for records of the workspace.",
        Operation::DataUpdate => "Changes fields of a record.",
        Operation::DataCreate => "Makes a record.",
        Operation::ModelsInvoke => "Asks a model: starts a run of an agent that answers once.",
    }
}

/// The whole document.
pub fn document() -> Value {
    let (mut messages, mut operations) = (Map::new(), Map::new());
    let (mut requests, mut replies) = (Map::new(), Map::new());
    for operation in Operation::ALL {
        let id = id(operation);
        let (request, reply) = (format!("{id}Request"), format!("{id}Reply"));
        messages.insert(request.clone(), request_message(operation));
        messages.insert(reply.clone(), reply_message(operation));
        operations.insert(id.to_owned(), operation_object(operation, &request, &reply));
        let message = |name: &str| reference(&format!("components/messages/{name}"));
        requests.insert(request.clone(), message(&request));
        replies.insert(reply.clone(), message(&reply));
    }
    facts::messages(&mut messages);
    operations.insert("tellFacts".to_owned(), facts::operation());
    json!({
        "asyncapi": "3.0.0",
        "info": info(),
        "defaultContentType": "application/json",
        "servers": {
            "rabbitmq": {
                "host": "rabbitmq.example.com:5672",
                "protocol": "amqp",
                "protocolVersion": "0.9.1",
                "description": "The broker of the fleet.",
                "security": [reference("components/securitySchemes/user")],
            },
        },
        "channels": {
            "requests": requests_channel(&requests),
            "replies": replies_channel(&replies),
            "facts": facts::channel(),
        },
        "operations": operations,
        "components": {
            "messages": messages,
            "schemas": schemas(),
            "securitySchemes": {
                "user": {"type": "userPassword", "description": "User and password of the broker."},
            },
        },
    })
}

fn info() -> Value {
    let codes = ErrorCode::ALL.iter();
    let codes: Vec<Value> =
        codes.map(|code| json!({"code": code.as_str(), "message": code.text()})).collect();
    json!({
        "title": "runfleet",
        "version": VERSION,
        "description": "Starts Processes and AI agents in the background, tells where their runs stand, and acts on \
            Process runs. Each request carries an execution token; identity comes from nowhere else. Tells facts to whoever listens.",
        "license": {"name": "MIT OR Apache-2.0"},
        "x-error-codes": codes,
    })
}

fn reference(path: &str) -> Value {
    json!({"$ref": format!("#/{path}")})
}

fn operation_object(operation: Operation, request: &str, reply: &str) -> Value {
    json!({
        "action": "receive",
        "summary": summary(operation),
        "channel": reference("channels/requests"),
        "messages": [reference(&format!("channels/requests/messages/{request}"))],
        "reply": {
            "address": {
                "location": "$message.header#/reply_to",
                "description": "Requests without an address are valid: nobody waits for them.",
            },
            "channel": reference("channels/replies"),
            "messages": [reference(&format!("channels/replies/messages/{reply}"))],
        },
    })
}

fn requests_channel(messages: &Map<String, Value>) -> Value {
    let keys = Lane::ALL.map(start_key);
    json!({
        "address": "{routingKey}",
        "description":
            format!("Published to the exchange `{START_EXCHANGE}`, at most {BODY_BYTES_MAX} bytes each."),
        "parameters": {
            "routingKey": {
                "description": "Interactive work, or a backfill with a share of its own.",
                "enum": keys,
                "default": keys[0],
            },
        },
        "messages": messages,
        "bindings": {
            "amqp": {
                "is": "routingKey",
                "exchange":
                    {"name": START_EXCHANGE, "type": "direct", "durable": true, "autoDelete": false},
            },
        },
    })
}

fn replies_channel(messages: &Map<String, Value>) -> Value {
    json!({
        "address": null,
        "description": format!(
            "The `reply_to` of the request, usually `{DIRECT_REPLY}`. `correlation_id` repeats that of the request, or its \
             `message_id`."
        ),
        "messages": messages,
    })
}

fn request_message(operation: Operation) -> Value {
    let word = operation.as_str();
    json!({
        "name": REQUEST_KIND,
        "title": word,
        "summary": summary(operation),
        "contentType": "application/json",
        "headers": request_headers(),
        "correlationId": {"location": "$message.header#/correlation_id"},
        "payload": {
            "type": "object",
            "properties": {
                "operation": {"const": word},
                "payload": reference(&format!("components/schemas/{word}")),
            },
            "required": ["operation", "payload"],
            "additionalProperties": false,
        },
        "examples": [
            {"name": "golden", "payload": {"operation": word, "payload": examples(operation).0}},
        ],
    })
}

fn reply_message(operation: Operation) -> Value {
    json!({
        "name": REPLY_KIND,
        "title": format!("answer to {}", operation.as_str()),
        "contentType": "application/json",
        "correlationId": {"location": "$message.header#/correlation_id"},
        "payload": reference(&format!("components/schemas/{}.reply", operation.as_str())),
        "examples": [{"name": "golden", "payload": examples(operation).1}],
    })
}

/// Properties and headers of a request, by the name that AMQP has for them.
fn request_headers() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "properties": {
            "type": {"const": REQUEST_KIND, "description": "Property: kind and major version."},
            "message_id": text(
                "Property: unique, 1 to 128 printable ASCII characters. The same message id is done once and gets the same \
                 answer."
            ),
            "reply_to": text("Property: where the answer goes; absent when nobody waits."),
            "correlation_id": text("Property: repeated by the answer."),
            header::AUTHORIZATION: text(
                "Header: the execution token, a JWT signed with EdDSA; its claims are the schema `execution-token`."
            ),
            header::EXPIRES_AT: {
                "type": "integer",
                "description": "Header: Unix milliseconds after which the request has no effect.",
            },
            header::TRACEPARENT: text("Header: W3C trace context."),
        },
        "required": ["type", "message_id", header::AUTHORIZATION],
    })
}

/// The schemas of everything that start-intake takes and gives, with references that point into the document.
fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    for (name, schema) in schema::all() {
        let of_requests =
            Operation::ALL.iter().any(|operation| name.starts_with(operation.as_str()));
        if of_requests || name == "error" || name == "execution-token" {
            collect(name, schema, &mut schemas);
        }
    }
    facts::schemas(&mut schemas);
    schemas
}

fn collect(name: &str, schema: Schema, schemas: &mut Map<String, Value>) {
    let mut value = schema.to_value();
    if let Value::Object(object) = &mut value {
        object.remove("$schema");
        if let Some(Value::Object(definitions)) = object.remove("$defs") {
            for (name, mut definition) in definitions {
                repoint(&mut definition);
                schemas.insert(name, definition);
            }
        }
    }
    repoint(&mut value);
    schemas.insert(name.to_owned(), value);
}

fn repoint(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                match value {
                    Value::String(text) if name == "$ref" => {
                        *text = text.replace("#/$defs/", "#/components/schemas/");
                    }
                    value => repoint(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(repoint),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_document_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/asyncapi.json");
        let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(text, stored, "UPDATE_GOLDEN=1 rewrites it");
    }

    #[test]
    fn every_operation_has_a_request_a_reply_and_an_example() {
        let document = document();
        for operation in Operation::ALL {
            let id = id(operation);
            let request = &document["components"]["messages"][format!("{id}Request")];
            assert!(request["examples"][0]["payload"]["payload"].is_object(), "{id}");
            let reply = &document["components"]["messages"][format!("{id}Reply")];
            assert!(reply["examples"][0]["payload"]["ok"].is_boolean(), "{id}");
            assert!(document["components"]["schemas"][operation.as_str()].is_object());
        }
    }

    #[test]
    fn every_error_code_is_published_with_its_sentence() {
        let document = document();
        let codes = document["info"]["x-error-codes"].as_array().unwrap();
        assert_eq!(codes.len(), ErrorCode::ALL.len());
        assert!(codes.iter().all(|code| code["message"].as_str().unwrap().ends_with('.')));
    }
}
