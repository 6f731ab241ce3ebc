//! From arguments to a request: each is escaped for the place where it goes. Pure.

use runfleet_http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use runfleet_http::{HeaderMap, HeaderValue, Url, basic};
use serde_json::{Map, Value};

use super::{Auth, HttpMistake, HttpTool, IDEMPOTENCY_KEY, Request, URL_BYTES_MAX, takes_body};
use crate::call::texts;
use crate::outcome::ToolOutcome;
use crate::template::{Filling, Template, Wrong, percent, plain, scalar};

/// Deepest nesting of a described body.
const BODY_DEPTH_MAX: usize = 16;

/// Most values in one list of a query.
const LIST_MAX: usize = 100;

/// Who calls, as templates.
pub(super) enum Who {
    Bearer(Template),
    Basic(Template, Template),
}

impl Who {
    pub(super) fn read(auth: &Auth) -> Result<Option<Self>, HttpMistake> {
        let read = |text: &str| {
            let template = Template::read(text).ok();
            let template = template.filter(|template| template.arguments().next().is_none());
            template.ok_or(HttpMistake("auth"))
        };
        Ok(match auth {
            Auth::None => None,
            Auth::Bearer(token) => Some(Self::Bearer(read(token)?)),
            Auth::Basic(name, password) => Some(Self::Basic(read(name)?, read(password)?)),
        })
    }

    pub(super) fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Bearer(token) => vec![token],
            Self::Basic(name, password) => vec![name, password],
        }
    }

    /// None when the other side could not tell where the name ends.
    fn fill(&self, filling: Filling<'_>) -> Option<String> {
        let fill = |template: &Template| template.fill(filling, plain).ok();
        match self {
            Self::Bearer(token) => Some(format!("Bearer {}", fill(token)?)),
            Self::Basic(name, password) => {
                let name = fill(name).filter(|name| !name.contains(':'))?;
                Some(basic(&name, &fill(password)?))
            }
        }
    }
}

/// A body with places.
pub(super) enum Body {
    Text(Template),
    List(Vec<Body>),
    Object(Vec<(String, Body)>),
    Other(Value),
}

impl Body {
    pub(super) fn read(value: &Value) -> Result<Self, HttpMistake> {
        Self::read_within(value, BODY_DEPTH_MAX)
    }

    fn read_within(value: &Value, depth: usize) -> Result<Self, HttpMistake> {
        const WRONG: HttpMistake = HttpMistake("body");
        let depth = depth.checked_sub(1).ok_or(WRONG)?;
        Ok(match value {
            Value::String(text) => Self::Text(Template::read(text).map_err(|_| WRONG)?),
            Value::Array(items) => {
                let items = items.iter().map(|item| Self::read_within(item, depth));
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Value::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), Self::read_within(value, depth)?)));
                Self::Object(entries.collect::<Result<_, HttpMistake>>()?)
            }
            value => Self::Other(value.clone()),
        })
    }

    pub(super) fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Text(text) => vec![text],
            Self::List(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Object(entries) => {
                entries.iter().flat_map(|(_, value)| value.templates()).collect()
            }
            Self::Other(_) => Vec::new(),
        }
    }

    /// None where an argument is missing: its entry is left out.
    fn fill(&self, filling: Filling<'_>) -> Result<Option<Value>, Wrong> {
        Ok(Some(match self {
            Self::Text(text) if text.lacks(filling) => return Ok(None),
            Self::Text(text) => match text.only_argument().and_then(|name| filling.given(name)) {
                Some(value) => value.clone(),
                None => Value::String(text.fill(filling, plain)?),
            },
            Self::List(items) => {
                let items = items.iter().filter_map(|item| item.fill(filling).transpose());
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Self::Object(entries) => {
                let mut filled = Map::new();
                for (name, value) in entries {
                    if let Some(value) = value.fill(filling)? {
                        filled.insert(name.clone(), value);
                    }
                }
                Value::Object(filled)
            }
            Self::Other(value) => value.clone(),
        }))
    }
}

fn wrong(Wrong(name): Wrong) -> ToolOutcome {
    if name.is_empty() {
        ToolOutcome::failed(texts::NOT_SET_UP)
    } else {
        ToolOutcome::argument(&name, texts::ARGUMENT)
    }
}

impl HttpTool {
    /// The request, or which argument makes no sense in it.
    pub(super) fn request(&self, key: &str, filling: Filling<'_>) -> Result<Request, ToolOutcome> {
        let rest = self.rest(filling.arguments);
        let takes_body = takes_body(&self.method);
        let url = self.url(filling, if takes_body { None } else { Some(&rest) })?;
        let mut headers = self.headers(key, filling)?;
        let body = match &self.body {
            Some(body) => body.fill(filling).map_err(wrong)?.unwrap_or(Value::Null),
            None if takes_body => Value::Object(rest),
            None => return Ok(Request { url, headers, body: Vec::new() }),
        };
        let body = match body {
            Value::String(text) if headers.contains_key(CONTENT_TYPE) => text.into_bytes(),
            value => {
                let json = HeaderValue::from_static("application/json");
                headers.entry(CONTENT_TYPE).or_insert(json);
                value.to_string().into_bytes()
            }
        };
        Ok(Request { url, headers, body })
    }

    fn url(
        &self,
        filling: Filling<'_>,
        rest: Option<&Map<String, Value>>,
    ) -> Result<Url, ToolOutcome> {
        let path = self.path.fill(filling, percent).map_err(wrong)?;
        // A segment of dots leads out of the folder that the description means, and an empty one to the folder itself.
        let holds_nothing =
            |name: &str| filling.given(name).and_then(scalar).is_none_or(|text| text.is_empty());
        let culprit = self.path.arguments().next().unwrap_or_default();
        if let Some(name) = self.path.arguments().find(|name| holds_nothing(name)) {
            return Err(ToolOutcome::argument(name, texts::ARGUMENT));
        }
        if path.split('/').any(is_dots) {
            return Err(ToolOutcome::argument(culprit, texts::ARGUMENT));
        }
        let mut query = Vec::new();
        for (name, value) in &self.query {
            let name = name.fill(filling, plain).map_err(wrong)?;
            match value.only_argument().and_then(|only| Some((only, filling.given(only)?))) {
                Some((only, given)) => add(&mut query, &name, only, given)?,
                None if value.lacks(filling) => {}
                None => {
                    let text = value.fill(filling, percent).map_err(wrong)?;
                    query.push(format!("{name}={text}"));
                }
            }
        }
        for (name, value) in rest.into_iter().flatten() {
            add(&mut query, &percent(name), name, value)?;
        }
        let mark = if query.is_empty() { "" } else { "?" };
        let text = format!("{}{path}{mark}{}", self.origin, query.join("&"));
        let url = Url::parse(&text).ok().filter(|_| text.len() <= URL_BYTES_MAX);
        let url = url.ok_or_else(|| ToolOutcome::failed(texts::ARGUMENTS_TOO_LARGE))?;
        // What was filled in changes the path and the query only.
        let stays = url.as_str().starts_with(&format!("{}/", self.origin));
        if stays { Ok(url) } else { Err(ToolOutcome::failed(texts::REFUSED)) }
    }

    fn headers(&self, key: &str, filling: Filling<'_>) -> Result<HeaderMap, ToolOutcome> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/*;q=0.9"));
        let not_set_up = || ToolOutcome::failed(texts::NOT_SET_UP);
        if !self.method.is_safe() {
            headers.insert(IDEMPOTENCY_KEY, header(key).ok_or_else(not_set_up)?);
        }
        for (name, value) in &self.headers {
            if value.lacks(filling) {
                continue;
            }
            let text = value.fill(filling, plain).map_err(wrong)?;
            let value = header(&text).ok_or_else(|| match value.arguments().next() {
                Some(name) => ToolOutcome::argument(name, texts::ARGUMENT),
                None => not_set_up(),
            })?;
            headers.insert(name, value);
        }
        if let Some(who) = &self.auth {
            let value = who.fill(filling).and_then(|text| header(&text)).ok_or_else(not_set_up)?;
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// Adds a parameter; a list gives one several times. `name` is escaped already, `argument` is to blame.
fn add(
    query: &mut Vec<String>,
    name: &str,
    argument: &str,
    value: &Value,
) -> Result<(), ToolOutcome> {
    let items = match value {
        Value::Array(items) if items.len() <= LIST_MAX => items.as_slice(),
        value => std::slice::from_ref(value),
    };
    for item in items {
        let text = scalar(item).ok_or_else(|| ToolOutcome::argument(argument, texts::ARGUMENT))?;
        query.push(format!("{name}={}", percent(&text)));
    }
    Ok(())
}

/// Whether a URL would take a segment for "here" or "one up", in any spelling.
fn is_dots(segment: &str) -> bool {
    let segment = segment.to_ascii_lowercase().replace("%2e", ".");
    segment == "." || segment == ".."
}

/// Marked, so that nothing below prints it.
fn header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_seen_in_every_spelling() {
        for segment in [".", "..", "%2e", ".%2E", "%2e%2E"] {
            assert!(is_dots(segment), "{segment}");
        }
        for segment in ["", "...", "a.", ".a", "%252e"] {
            assert!(!is_dots(segment), "{segment}");
        }
    }
}
