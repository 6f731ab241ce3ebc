//! From the variables of an HTTP task to the request that is made, or to the part of it that makes no sense. Pure; knows no
//! value of an error.
//!
//! The names are those of the modeler's HTTP connector: `method`, `url`, `headers`, `queryParameters`, `body`, `authentication`,
//! `connectionTimeoutInSeconds`, `readTimeoutInSeconds`. What is null is not there.

use std::time::Duration;

use runfleet_http::header::{AUTHORIZATION, CONTENT_TYPE};
use runfleet_http::{Call, Endpoint, HeaderMap, HeaderName, HeaderValue, Method, Url, basic};
use serde_json::{Map, Value};

/// Largest answer that is read, in bytes: its JSON must fit into an event beside status and headers.
const ANSWER_BYTES_MAX: usize = 49_152;

/// Longest URL, in bytes.
const URL_BYTES_MAX: usize = 8_192;

/// Most headers and most query parameters.
const FIELDS_MAX: usize = 64;

/// Longest time of a call, whatever a task says.
pub(crate) const CALL_MAX: Duration = Duration::from_mins(5);

/// Headers that belong to the connection and not to whoever draws a Process.
const RESERVED: [&str; 12] = [
    "connection",
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

/// What another system tells repetitions of one task by.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Which part of a request makes no sense: a word of a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Invalid(pub(crate) &'static str);

impl Invalid {
    /// The code that the task fails with.
    pub(crate) fn code(self) -> String {
        format!("HTTP_REQUEST_INVALID_{}", self.0)
    }
}

const METHOD: Invalid = Invalid("METHOD");
const URL: Invalid = Invalid("URL");
const HEADERS: Invalid = Invalid("HEADERS");
const QUERY: Invalid = Invalid("QUERY");
const BODY: Invalid = Invalid("BODY");
const AUTHENTICATION: Invalid = Invalid("AUTHENTICATION");
const TIMEOUT: Invalid = Invalid("TIMEOUT");

/// A request before its time is known. No `Debug`: it may hold secrets.
pub(crate) struct Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
    within: Option<Duration>,
}

impl Request {
    /// Reads the variables of a task. `task` is the same for every attempt.
    pub(crate) fn read(variables: &Map<String, Value>, task: &str) -> Result<Self, Invalid> {
        let method = method(given(variables, "method"))?;
        let mut url = url(given(variables, "url"))?;
        let mut headers = headers(given(variables, "headers"))?;
        query(&mut url, given(variables, "queryParameters"))?;
        authenticate(&mut url, &mut headers, given(variables, "authentication"))?;
        let body = body(&method, &mut headers, given(variables, "body"))?;
        if !headers.contains_key(IDEMPOTENCY_KEY) {
            headers.insert(IDEMPOTENCY_KEY, header_value(task).ok_or(HEADERS)?);
        }
        let within = within(variables)?;
        Ok(Self { method, url, headers, body, within })
    }

    /// The call, which ends within `left` and within what the task says.
    pub(crate) fn into_call(self, left: Duration) -> Call {
        let within = self.within.unwrap_or(CALL_MAX).min(left).min(CALL_MAX);
        let endpoint = Endpoint { answer_bytes_max: ANSWER_BYTES_MAX, ..Endpoint::new(self.url) };
        let Self { method, headers, body, .. } = self;
        Call { method, endpoint, headers, body: body.into(), within }
    }
}

fn given<'a>(variables: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    variables.get(name).filter(|value| !value.is_null())
}

/// A scalar as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The entries of an object that are there.
fn entries(value: Option<&Value>, invalid: Invalid) -> Result<Vec<(&String, &Value)>, Invalid> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let entries = value.as_object().filter(|object| object.len() <= FIELDS_MAX).ok_or(invalid)?;
    Ok(entries.iter().filter(|(_, value)| !value.is_null()).collect())
}

fn method(value: Option<&Value>) -> Result<Method, Invalid> {
    let Some(value) = value else { return Ok(Method::GET) };
    match value.as_str().ok_or(METHOD)?.trim().to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "HEAD" => Ok(Method::HEAD),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => Err(METHOD),
    }
}

fn url(value: Option<&Value>) -> Result<Url, Invalid> {
    let text = value.and_then(Value::as_str).map(str::trim);
    let text = text.filter(|text| text.len() <= URL_BYTES_MAX).ok_or(URL)?;
    let mut url = Url::parse(text).map_err(|_| URL)?;
    let plain = url.username().is_empty() && url.password().is_none() && url.host().is_some();
    if !plain || !matches!(url.scheme(), "http" | "https") {
        return Err(URL);
    }
    url.set_fragment(None);
    Ok(url)
}

/// Marked, so that nothing below prints it.
fn header_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn headers(value: Option<&Value>) -> Result<HeaderMap, Invalid> {
    let mut headers = HeaderMap::new();
    for (name, value) in entries(value, HEADERS)? {
        let name = HeaderName::try_from(name.as_str()).map_err(|_| HEADERS)?;
        if RESERVED.contains(&name.as_str()) || headers.contains_key(&name) {
            return Err(HEADERS);
        }
        let value = text(value).and_then(|text| header_value(&text)).ok_or(HEADERS)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Adds parameters behind those that the URL has. A list gives one parameter several times.
fn query(url: &mut Url, value: Option<&Value>) -> Result<(), Invalid> {
    let mut pairs = Vec::new();
    for (name, value) in entries(value, QUERY)? {
        match value {
            Value::Array(items) => {
                for item in items {
                    pairs.push((name, text(item).ok_or(QUERY)?));
                }
            }
            value => pairs.push((name, text(value).ok_or(QUERY)?)),
        }
    }
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    if url.as_str().len() > URL_BYTES_MAX { Err(QUERY) } else { Ok(()) }
}

fn authenticate(
    url: &mut Url,
    headers: &mut HeaderMap,
    value: Option<&Value>,
) -> Result<(), Invalid> {
    let Some(value) = value else { return Ok(()) };
    let part = |name: &str| value.get(name).and_then(text).ok_or(AUTHENTICATION);
    let kind = value.as_str().or_else(|| value.get("type")?.as_str()).ok_or(AUTHENTICATION)?;
    let header = match kind {
        "noAuth" => return Ok(()),
        "basic" => {
            let (user, password) = (part("username")?, part("password")?);
            // The other side could not tell where the name ends.
            if user.contains(':') {
                return Err(AUTHENTICATION);
            }
            (AUTHORIZATION, basic(&user, &password))
        }
        "bearer" => (AUTHORIZATION, format!("Bearer {}", part("token")?)),
        "apiKey" => {
            let (name, key) = (part("name")?, part("value")?);
            if part("apiKeyLocation")? == "query" {
                url.query_pairs_mut().append_pair(&name, &key);
                return Ok(());
            }
            let name = HeaderName::try_from(name).map_err(|_| AUTHENTICATION)?;
            if RESERVED.contains(&name.as_str()) || part("apiKeyLocation")? != "headers" {
                return Err(AUTHENTICATION);
            }
            (name, key)
        }
        _ => return Err(AUTHENTICATION),
    };
    headers.insert(header.0, header_value(&header.1).ok_or(AUTHENTICATION)?);
    Ok(())
}

/// A text is sent as it is; anything else as JSON, or as a form if the headers say so.
fn body(
    method: &Method,
    headers: &mut HeaderMap,
    value: Option<&Value>,
) -> Result<Vec<u8>, Invalid> {
    let Some(value) = value else { return Ok(Vec::new()) };
    if matches!(*method, Method::GET | Method::HEAD) {
        return Err(BODY);
    }
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default().to_owned());
    let is_form =
        kind.as_deref().is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let (body, default) = match value {
        Value::String(text) => (text.clone().into_bytes(), "text/plain; charset=utf-8"),
        value if is_form => (form(value)?.into_bytes(), ""),
        value => (serde_json::to_vec(value).map_err(|_| BODY)?, "application/json"),
    };
    if kind.is_none() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(default));
    }
    Ok(body)
}

fn form(value: &Value) -> Result<String, Invalid> {
    // The way in which a URL writes its query is the way in which a form is written.
    let mut url = Url::parse("http://form/").map_err(|_| BODY)?;
    for (name, value) in entries(Some(value), BODY)? {
        url.query_pairs_mut().append_pair(name, &text(value).ok_or(BODY)?);
    }
    Ok(url.query().unwrap_or_default().to_owned())
}

/// The time that the task gives the call: the two times of the modeler together. Zero means that it gives none.
fn within(variables: &Map<String, Value>) -> Result<Option<Duration>, Invalid> {
    let connect = seconds(given(variables, "connectionTimeoutInSeconds"))?;
    let read = seconds(given(variables, "readTimeoutInSeconds"))?;
    Ok(read.map(|read| read + connect.unwrap_or_default()))
}

fn seconds(value: Option<&Value>) -> Result<Option<Duration>, Invalid> {
    let Some(text) = value else { return Ok(None) };
    let number = text_of_number(text).and_then(|text| text.parse::<f64>().ok()).ok_or(TIMEOUT)?;
    let within = Duration::try_from_secs_f64(number).map_err(|_| TIMEOUT)?.min(CALL_MAX);
    Ok(Some(within).filter(|within| !within.is_zero()))
}

fn text_of_number(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.trim().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "request/tests.rs"]
mod tests;
