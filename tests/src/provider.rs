//! A provider of models and a service with effects, on one port of this machine. Both count what they are asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What was asked.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Questions to the model by the number of answers that they already hold.
    pub turns: BTreeMap<usize, usize>,
    /// Calls of the service by their idempotency key.
    pub effects: BTreeMap<String, usize>,
}

/// The provider. It speaks the language of chat completions: first it calls three tools, then one that must not be repeated,
/// then it says that it is done.
pub struct Provider {
    address: SocketAddr,
    asked: Arc<Mutex<Asked>>,
    task: JoinHandle<()>,
}

impl Provider {
    /// Starts it.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Asked::default()));
        let shared = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asked = Arc::clone(&shared);
                let service = service_fn(move |request| answer(Arc::clone(&asked), request));
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { address, asked, task })
    }

    /// Settings by which a fleet may call it.
    pub fn settings(&self) -> Vec<(String, String)> {
        ["RUNFLEET_MODEL_ALLOW", "RUNFLEET_HTTP_ALLOW"]
            .map(|name| (name.to_owned(), self.address.to_string()))
            .into()
    }

    /// An agent that is answered here, with its tools.
    pub fn documents(&self) -> String {
        let address = self.address;
        format!(
            r"
apiVersion: runfleet/v1
kind: ModelProvider
metadata: {{name: served}}
spec: {{kind: openai, baseUrl: 'http://{address}/v1', models: [served/one]}}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {{name: note}}
spec:
  description: Notes something.
  permission: ALLOW
  idempotent: true
  http: {{method: POST, url: 'http://{address}/effect'}}
  inputSchema: {{type: object, properties: {{what: {{type: string}}}}}}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {{name: charge}}
spec:
  description: Charges somebody.
  permission: ALLOW
  http: {{method: POST, url: 'http://{address}/effect'}}
  inputSchema: {{type: object, properties: {{what: {{type: string}}}}}}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {{name: clerk}}
spec: {{model: served/one, parallel: 1, tools: [calculate, note, charge]}}
"
        )
    }

    /// What was asked so far.
    pub fn asked(&self) -> Asked {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    asked: Arc<Mutex<Asked>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_effect = request.uri().path() == "/effect";
    let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
    let key = key.unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let question: Value =
        body.ok().and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default();
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    if is_effect {
        *asked.effects.entry(key).or_default() += 1;
        return Ok(json_answer(&json!({"done": true})));
    }
    let answers = question["messages"].as_array().map_or(0, |messages| {
        messages.iter().filter(|message| message["role"] == "assistant").count()
    });
    *asked.turns.entry(answers).or_default() += 1;
    Ok(events(&match answers {
        0 => calls(&[
            ("calculate", r#"{"expression":"6 * 7"}"#),
            ("current-time", "{}"),
            ("note", r#"{"what":"first"}"#),
        ]),
        1 => calls(&[("charge", r#"{"what":"second"}"#)]),
        _ => json!({"content": "All done."}),
    }))
}

fn calls(calls: &[(&str, &str)]) -> Value {
    let call = |(index, (name, arguments)): (usize, &(&str, &str))| {
        json!({"index": index, "id": format!("c{index}"), "type": "function",
            "function": {"name": name, "arguments": arguments}})
    };
    json!({"tool_calls": calls.iter().enumerate().map(call).collect::<Vec<_>>()})
}

/// An answer in pieces, of which there is one.
fn events(delta: &Value) -> Response<Full<Bytes>> {
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let reason = if delta["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    let text = format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    let mut response = Response::new(Full::new(Bytes::from(text)));
    let kind = hyper::header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    response
}

fn json_answer(body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    let kind = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    response
}
