//! Records: where they come from, and the tool that reads them.
//!
//! A source is an HTTP service, which is told for whom it is asked and decides what that person may see, or a list of documents for
//! development, which everybody may see.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use runfleet_domain::Name;
use runfleet_http::{Endpoint, HttpError, Reason, Service};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::call::{Caller, Calling, Executor, ToolCall, texts};
use crate::outcome::ToolOutcome;

/// Most records of one answer.
const RECORDS_MAX: usize = 50;

/// Records of one answer when nobody says how many.
const RECORDS: usize = 10;

/// Most ids in one question.
const IDS_MAX: usize = 20;

/// Longest text of a question, in bytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// Largest answer of a service, in bytes.
const ANSWER_BYTES_MAX: usize = 1_024 * 1_024;

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The kind of record.
    pub object_slug: String,
    /// Which one.
    pub record_id: String,
    /// Its fields.
    pub fields: Map<String, Value>,
    /// What happened to it, oldest first; none unless it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<Value>,
}

/// Which records are asked for: those with these ids, or those in which a text is found, or any.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordQuery {
    /// The kind of record.
    pub object_slug: String,
    /// Their ids, 20 at most; empty for any.
    pub record_ids: Vec<String>,
    /// A text that is found in them.
    pub search: Option<String>,
    /// How many at most, 1 to 50.
    pub limit: usize,
    /// Whether their activities are wanted.
    pub with_activities: bool,
    /// Values that fields of theirs have; empty for any.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub filter: Map<String, Value>,
}

impl RecordQuery {
    fn read(arguments: &Map<String, Value>) -> Result<Self, ToolOutcome> {
        let wrong = |name| ToolOutcome::argument(name, texts::ARGUMENT);
        let given = |name| arguments.get(name).filter(|value| !value.is_null());
        let short = |value: &Value| {
            let text = value.as_str().filter(|text| (1..=TEXT_BYTES_MAX).contains(&text.len()));
            text.map(str::to_owned)
        };
        let object_slug = given("objectSlug").and_then(short).ok_or_else(|| wrong("objectSlug"))?;
        let record_ids = match given("recordIds") {
            None => Vec::new(),
            Some(Value::Array(ids)) if ids.len() <= IDS_MAX => {
                let ids: Option<Vec<String>> = ids.iter().map(short).collect();
                ids.ok_or_else(|| wrong("recordIds"))?
            }
            Some(_) => return Err(wrong("recordIds")),
        };
        let search = match given("search") {
            None => None,
            Some(Value::String(text)) if text.is_empty() => None,
            Some(value) => Some(short(value).ok_or_else(|| wrong("search"))?),
        };
        let limit = match given("limit") {
            None => RECORDS.max(record_ids.len()),
            Some(limit) => limit
                .as_u64()
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| (1..=RECORDS_MAX).contains(limit))
                .ok_or_else(|| wrong("limit"))?,
        };
        let with_activities = match given("withActivities") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| wrong("withActivities"))?,
        };
        let filter = Map::new();
        Ok(Self { object_slug, record_ids, search, limit, with_activities, filter })
    }
}

/// Why there are no records. Tells nothing that was asked or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SourceFailure {
    /// Nobody answered, or not in time; another attempt may help.
    #[error("the source of records cannot be reached")]
    Unreachable,
    /// The source does not let the asker have them.
    #[error("the source of records refused")]
    Refused,
    /// There is no such kind of record.
    #[error("the source of records knows no such kind")]
    Unknown,
    /// The answer is not what was expected, or too large.
    #[error("the answer of the source of records cannot be read")]
    Unreadable,
    /// Nothing can be written there.
    #[error("the source of records can only be read")]
    ReadOnly,
}

/// A record that is to be made or changed.
#[derive(Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordWrite {
    /// The kind of record.
    pub object_slug: String,
    /// Which one; none makes a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    /// New values of its fields.
    pub fields: Map<String, Value>,
    /// The same for every repetition of this write and for no other.
    pub request_id: String,
    /// Automation steps that are left to whoever writes.
    pub hops: u32,
}

/// A record that is being written.
pub type Writing<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Record>, SourceFailure>> + Send + 'a>>;

/// Records on their way.
pub type Recording<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Record>, SourceFailure>> + Send + 'a>>;

/// Where records come from. Nothing changes by asking.
pub trait RecordSource: Send + Sync {
    /// The records that `query` asks for and `caller` may see, at most as many as it says; within a time.
    fn fetch<'a>(
        &'a self,
        caller: &'a Caller,
        query: &'a RecordQuery,
        within: Duration,
    ) -> Recording<'a>;

    /// Makes a record or changes one, and gives it as it is then; none when the source does not tell. A write whose answer was lost
    /// may have been done; the source tells repetitions by its `request_id`.
    fn write<'a>(
        &'a self,
        caller: &'a Caller,
        write: &'a RecordWrite,
        within: Duration,
    ) -> Writing<'a> {
        let _ = (caller, write, within);
        Box::pin(async { Err(SourceFailure::ReadOnly) })
    }
}

/// An HTTP service. It gets a POST of JSON, `workspace`, `personnelId`, `project` and the fields of the query, and answers
/// `{"records": […]}`. A write has `operation` (`create` or `update`) and its own fields instead, and is answered by the record.
#[derive(Debug, Clone)]
pub struct HttpRecords {
    service: Service,
    endpoint: Endpoint,
}

impl HttpRecords {
    /// A service at a place. Answers have 1 MiB at most, whatever the place says.
    pub fn new(service: Service, endpoint: Endpoint) -> Self {
        Self { service, endpoint: Endpoint { answer_bytes_max: ANSWER_BYTES_MAX, ..endpoint } }
    }
}

#[derive(Deserialize)]
struct Answer {
    records: Vec<Record>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    workspace: &'a str,
    project: Option<&'a str>,
    personnel_id: Option<&'a str>,
    #[serde(flatten)]
    query: &'a RecordQuery,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    workspace: &'a str,
    project: Option<&'a str>,
    personnel_id: Option<&'a str>,
    operation: &'a str,
    #[serde(flatten)]
    write: &'a RecordWrite,
}

impl RecordSource for HttpRecords {
    fn fetch<'a>(
        &'a self,
        caller: &'a Caller,
        query: &'a RecordQuery,
        within: Duration,
    ) -> Recording<'a> {
        Box::pin(async move {
            let question = Question {
                workspace: caller.workspace.as_str(),
                project: caller.project.as_ref().map(Name::as_str),
                personnel_id: caller.personnel_id.as_ref().map(Name::as_str),
                query,
            };
            let asked = self.service.post_json(&self.endpoint, &question, within).await;
            let Answer { mut records } = asked.map_err(refusal)?;
            // What was not asked for is not handed on, whatever a service says.
            records.retain(|record| {
                record.object_slug == query.object_slug
                    && (query.record_ids.is_empty() || query.record_ids.contains(&record.record_id))
            });
            records.truncate(query.limit);
            Ok(records)
        })
    }

    fn write<'a>(
        &'a self,
        caller: &'a Caller,
        write: &'a RecordWrite,
        within: Duration,
    ) -> Writing<'a> {
        Box::pin(async move {
            let question = Written {
                workspace: caller.workspace.as_str(),
                project: caller.project.as_ref().map(Name::as_str),
                personnel_id: caller.personnel_id.as_ref().map(Name::as_str),
                operation: if write.record_id.is_some() { "update" } else { "create" },
                write,
            };
            let asked = self.service.post_json(&self.endpoint, &question, within).await;
            let Answer { records } = asked.map_err(refusal)?;
            let mine = |record: &Record| {
                record.object_slug == write.object_slug
                    && write.record_id.as_ref().is_none_or(|id| *id == record.record_id)
            };
            Ok(records.into_iter().find(mine))
        })
    }
}

fn refusal(error: HttpError) -> SourceFailure {
    match error.reason() {
        Reason::Status(404 | 410) => SourceFailure::Unknown,
        Reason::Status(status) if !matches!(status, 408 | 425 | 429 | 500..) => {
            SourceFailure::Refused
        }
        Reason::RefusedUrl | Reason::RefusedAddress | Reason::Redirect => SourceFailure::Refused,
        Reason::Answer | Reason::TooLarge | Reason::Request => SourceFailure::Unreadable,
        Reason::Dns
        | Reason::Connect
        | Reason::Tls
        | Reason::Timeout
        | Reason::Broken
        | Reason::Status(_)
        | Reason::OpenCircuit => SourceFailure::Unreachable,
    }
}

/// Records that are written down. For development: everybody sees all of them.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    records: Vec<Record>,
}

impl Documents {
    /// These records.
    pub fn new(records: Vec<Record>) -> Self {
        Self { records }
    }

    fn find(&self, query: &RecordQuery) -> Vec<Record> {
        let search = query.search.as_ref().map(|text| text.to_lowercase());
        let wanted = self.records.iter().filter(|record| {
            record.object_slug == query.object_slug
                && (query.record_ids.is_empty() || query.record_ids.contains(&record.record_id))
                && search
                    .as_ref()
                    .is_none_or(|text| record.fields.values().any(|value| mentions(value, text)))
                && query.filter.iter().all(|(name, value)| record.fields.get(name) == Some(value))
        });
        let mut found: Vec<Record> = wanted.take(query.limit).cloned().collect();
        if !query.with_activities {
            for record in &mut found {
                record.activities.clear();
            }
        }
        found
    }
}

fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => value.to_string().contains(text),
        Value::String(found) => found.to_lowercase().contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(entries) => entries.values().any(|value| mentions(value, text)),
    }
}

impl RecordSource for Documents {
    fn fetch<'a>(
        &'a self,
        _caller: &'a Caller,
        query: &'a RecordQuery,
        _within: Duration,
    ) -> Recording<'a> {
        Box::pin(async move { Ok(self.find(query)) })
    }
}

/// The tool that reads records.
#[derive(Clone)]
pub struct Records {
    source: Arc<dyn RecordSource>,
}

impl Records {
    /// Reads from a source.
    pub fn new(source: Arc<dyn RecordSource>) -> Self {
        Self { source }
    }
}

impl Executor for Records {
    fn call(&self, call: ToolCall, deadline: Instant) -> Calling<'_> {
        Box::pin(async move {
            let query = match RecordQuery::read(&call.arguments) {
                Ok(query) => query,
                Err(outcome) => return outcome,
            };
            let within = deadline.saturating_duration_since(Instant::now());
            let found = self.source.fetch(&call.caller, &query, within).await;
            match found {
                Ok(records) => ToolOutcome::success(json!({"records": records})),
                Err(SourceFailure::Unreachable) => ToolOutcome::failed(texts::UNREACHABLE),
                Err(SourceFailure::Refused) => ToolOutcome::failed(texts::FORBIDDEN),
                Err(SourceFailure::Unknown) => ToolOutcome::failed(texts::NOT_FOUND),
                Err(SourceFailure::Unreadable | SourceFailure::ReadOnly) => {
                    ToolOutcome::failed(texts::UNREADABLE)
                }
            }
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
