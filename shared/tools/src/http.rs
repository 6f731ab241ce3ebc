//! Tools that are one HTTP call, made from a description and the arguments of the model.
//!
//! The model fills places in the path, the query, in few headers and in the body, never in scheme, host or port; what it fills in
//! is escaped for its place. Calls go through the guarded client, which judges addresses.

mod end;
mod fill;

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;
use runfleet_http::header::AUTHORIZATION;
use runfleet_http::{Call, Endpoint, HeaderMap, HeaderName, Method, Service, Url};
use runfleet_secrets::Secrets;
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio::time::Instant;

pub use self::end::{failure, said_no};

use self::fill::Body;
use crate::call::{Calling, Executor, ToolCall, texts};
use crate::outcome::ToolOutcome;
use crate::template::{Filling, Template};

/// Largest answer that is read, in bytes; what is handed on is cut further.
const ANSWER_BYTES_MAX: usize = 1_024 * 1_024;

/// Longest URL, in bytes.
const URL_BYTES_MAX: usize = 8_192;

/// Most headers.
const HEADERS_MAX: usize = 32;

/// Different secrets in one call.
const SECRETS_MAX: usize = 16;

/// Headers that belong to the connection.
const RESERVED: [&str; 13] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Headers that say who calls: no argument goes there.
const WHO: [&str; 3] = ["authorization", "cookie", "idempotency-key"];

/// What another system tells repetitions of one call by.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How an HTTP tool is described. In its texts `{{name}}` stands for an argument and `{{secrets.NAME}}` for a secret of the
/// workspace.
#[derive(Clone, Default)]
pub struct HttpSpec {
    /// `GET`, `HEAD`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// The URL, with places in path and query only. A query parameter whose argument is missing is left out.
    pub url: String,
    /// Headers. One whose argument is missing is left out.
    pub headers: BTreeMap<String, String>,
    /// Who calls.
    pub auth: Auth,
    /// The body, in which a text that is one place becomes the argument as it is. Without one, arguments that have no place go
    /// into the query of `GET`, `HEAD` and `DELETE`, and as a JSON object into the body of the others.
    pub body: Option<Value>,
}

/// Who calls. The texts may hold secrets and no arguments.
#[derive(Clone, Default)]
pub enum Auth {
    /// Nobody, or whoever a header says.
    #[default]
    None,
    /// A bearer token.
    Bearer(String),
    /// A name without a colon, and a password.
    Basic(String, String),
}

/// A description cannot be used: which part, as a word of a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {0} of the tool cannot be used")]
pub struct HttpMistake(pub &'static str);

/// Makes the calls of one HTTP tool.
pub struct HttpTool {
    service: Service,
    secrets: Secrets,
    method: Method,
    /// Scheme, host and port.
    origin: String,
    path: Template,
    query: Vec<(Template, Template)>,
    headers: Vec<(HeaderName, Template)>,
    auth: Option<fill::Who>,
    body: Option<Body>,
    /// Arguments that have a place.
    placed: BTreeSet<String>,
    /// Secrets that are needed.
    needed: BTreeSet<String>,
}

impl std::fmt::Debug for HttpTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTool").field("method", &self.method).finish_non_exhaustive()
    }
}

impl HttpTool {
    /// Reads a description. Calls are made by `service`, with the secrets of the workspace that asks.
    pub fn new(service: Service, secrets: Secrets, spec: HttpSpec) -> Result<Self, HttpMistake> {
        let method = method(&spec.method)?;
        let (origin, path, query) = split(&spec.url)?;
        let headers = headers(spec.headers)?;
        let auth = fill::Who::read(&spec.auth)?;
        if auth.is_some() && headers.iter().any(|(name, _)| name == AUTHORIZATION) {
            return Err(HttpMistake("auth"));
        }
        let body = spec.body.as_ref().map(Body::read).transpose()?;
        if body.is_some() && !takes_body(&method) {
            return Err(HttpMistake("body"));
        }
        let mut all: Vec<&Template> = vec![&path];
        all.extend(query.iter().flat_map(|(name, value)| [name, value]));
        all.extend(headers.iter().map(|(_, value)| value));
        all.extend(auth.iter().flat_map(fill::Who::templates));
        all.extend(body.iter().flat_map(Body::templates));
        let placed = all.iter().flat_map(|part| part.arguments()).map(str::to_owned).collect();
        let needed: BTreeSet<String> =
            all.iter().flat_map(|part| part.secrets()).map(str::to_owned).collect();
        if needed.len() > SECRETS_MAX {
            return Err(HttpMistake("secrets"));
        }
        Ok(Self {
            service,
            secrets,
            method,
            origin,
            path,
            query,
            headers,
            auth,
            body,
            placed,
            needed,
        })
    }

    /// Makes one call, for the body of its answer: JSON if it is JSON, a text otherwise, null if there is none.
    pub(crate) async fn ask(
        &self,
        call: &ToolCall,
        deadline: Instant,
    ) -> Result<Value, ToolOutcome> {
        let secrets = self.secrets_of(&call.caller.workspace).await?;
        let filling = Filling { arguments: &call.arguments, secrets: &secrets };
        let request = self.request(&call.key, filling)?;
        let within = deadline.saturating_duration_since(Instant::now());
        let endpoint =
            Endpoint { answer_bytes_max: ANSWER_BYTES_MAX, ..Endpoint::new(request.url) };
        let (method, headers) = (self.method.clone(), request.headers);
        let call = Call { method, endpoint, headers, body: request.body.into(), within };
        let answer = self.service.exchange(call).await;
        end::read(&answer, self.only_reads())
    }

    async fn secrets_of(
        &self,
        workspace: &Name,
    ) -> Result<BTreeMap<String, SecretString>, ToolOutcome> {
        let mut found = BTreeMap::new();
        for name in &self.needed {
            let secret = self.secrets.get(workspace, name).await;
            let secret = secret.map_err(|_| ToolOutcome::failed(texts::NOT_SET_UP))?;
            found.insert(name.clone(), secret);
        }
        Ok(found)
    }

    /// Arguments that have no place.
    fn rest(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let rest = arguments
            .iter()
            .filter(|(name, value)| !self.placed.contains(name.as_str()) && !value.is_null());
        rest.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl Executor for HttpTool {
    fn call(&self, call: ToolCall, deadline: Instant) -> Calling<'_> {
        Box::pin(async move {
            match self.ask(&call, deadline).await {
                Ok(Value::Null) => ToolOutcome::success(Value::Null),
                Ok(value) => ToolOutcome::Done(value),
                Err(outcome) => outcome,
            }
        })
    }

    fn only_reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}

fn takes_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn method(text: &str) -> Result<Method, HttpMistake> {
    match text {
        "GET" => Ok(Method::GET),
        "HEAD" => Ok(Method::HEAD),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => Err(HttpMistake("method")),
    }
}

/// The parameters of a query, in order.
type Query = Vec<(Template, Template)>;

/// Origin, path and query of a URL with places. Nothing may stand in for scheme, host or port.
fn split(text: &str) -> Result<(String, Template, Query), HttpMistake> {
    const WRONG: HttpMistake = HttpMistake("url");
    if text.len() > URL_BYTES_MAX || text.contains(['#', '\\']) || !text.is_ascii() {
        return Err(WRONG);
    }
    let (scheme, rest) = text.split_once("://").ok_or(WRONG)?;
    let (host, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if !matches!(scheme, "http" | "https") || host.contains(['{', '@']) || host.is_empty() {
        return Err(WRONG);
    }
    let origin = Url::parse(&format!("{scheme}://{host}/")).map_err(|_| WRONG)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let read = |text: &str| Template::read(text).map_err(|_| WRONG);
    let path = read(if path.is_empty() { "/" } else { path })?;
    let mut parameters = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let (name, value) = (read(name)?, read(value)?);
        if !name.is_plain() {
            return Err(WRONG);
        }
        parameters.push((name, value));
    }
    Ok((origin.as_str().trim_end_matches('/').to_owned(), path, parameters))
}

fn headers(given: BTreeMap<String, String>) -> Result<Vec<(HeaderName, Template)>, HttpMistake> {
    const WRONG: HttpMistake = HttpMistake("headers");
    if given.len() > HEADERS_MAX {
        return Err(WRONG);
    }
    let mut headers: Vec<(HeaderName, Template)> = Vec::new();
    for (name, value) in given {
        let name = HeaderName::try_from(name).map_err(|_| WRONG)?;
        let value = Template::read(&value).map_err(|_| WRONG)?;
        let for_nobody = WHO.contains(&name.as_str()) && value.arguments().next().is_some();
        let twice = headers.iter().any(|(other, _)| *other == name);
        if RESERVED.contains(&name.as_str()) || for_nobody || twice {
            return Err(WRONG);
        }
        headers.push((name, value));
    }
    Ok(headers)
}

/// What is sent.
struct Request {
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
}

#[cfg(test)]
mod tests;
