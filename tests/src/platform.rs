//! Services of a platform that know facts about people, money and recipients; they say what a test wants, or nothing at all.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The token that the services want to see.
const TOKEN: &str = "platform-s3cret";

#[derive(Default)]
struct State {
    /// Facts that are false, as `service.field`.
    bad: Vec<String>,
    /// What was asked: service and question.
    asked: Vec<(String, Value)>,
    /// Services that never answer.
    silent: bool,
    /// Services that answer 500.
    broken: bool,
}

/// The services, all on one port of this machine.
pub struct Platform {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Platform {
    /// Starts them; every fact is good.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                let service = service_fn(move |request| answer(Arc::clone(&state), request));
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { address, state, task })
    }

    /// Settings that send a fleet here for facts of all kinds.
    pub fn settings(&self, timeout_ms: u64) -> Vec<(String, String)> {
        let url = |service: &str| format!("http://{}/{service}", self.address);
        [
            ("RUNFLEET_DIRECTORY_URL", url("directory")),
            ("RUNFLEET_BILLING_URL", url("billing")),
            ("RUNFLEET_RECIPIENTS_URL", url("recipients")),
            ("RUNFLEET_PLATFORM_TOKEN", TOKEN.to_owned()),
            ("RUNFLEET_PLATFORM_ALLOW", self.address.to_string()),
            ("RUNFLEET_PLATFORM_TIMEOUT_MS", timeout_ms.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these facts, written as `service.field`, are false and all others true.
    pub fn bad(&self, facts: &[&str]) {
        self.with(|state| state.bad = facts.iter().map(ToString::to_string).collect());
    }

    /// Whether the services take questions and never answer.
    pub fn silent(&self, silent: bool) {
        self.with(|state| state.silent = silent);
    }

    /// Whether the services answer 500.
    pub fn broken(&self, broken: bool) {
        self.with(|state| state.broken = broken);
    }

    /// What was asked since the last look, in the order of the services' names.
    pub fn take_asked(&self) -> Vec<(String, Value)> {
        let mut asked = self.with(|state| std::mem::take(&mut state.asked));
        asked.sort_by(|(one, _), (other, _)| one.cmp(other));
        asked
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let service = request.uri().path().trim_start_matches('/').to_owned();
    let known = request
        .headers()
        .get(AUTHORIZATION)
        .is_some_and(|value| value.to_str().is_ok_and(|value| value == format!("Bearer {TOKEN}")));
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let question = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
    let Some(question) = question.filter(|_| known) else {
        return Ok(response(StatusCode::BAD_REQUEST, &Value::Null));
    };
    let (silent, broken, answer) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked.push((service.clone(), question));
        let fields: &[&str] = match service.as_str() {
            "directory" => &["active", "account", "mayStart", "aiSeat"],
            "billing" => &["subscription", "credits", "agentCredits", "modelPriced"],
            _ => &["delivery", "exists", "mayUse", "aiSeat"],
        };
        let mut answer = json!({"more": "is ignored"});
        for field in fields {
            answer[*field] = (!state.bad.contains(&format!("{service}.{field}"))).into();
        }
        (state.silent, state.broken, answer)
    };
    if silent {
        std::future::pending::<()>().await;
    }
    let status = if broken { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    Ok(response(status, &answer))
}

fn response(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response
}
