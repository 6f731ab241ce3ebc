//! Web search: several queries at once, asked of a search service that the operator has set up.
//!
//! The service is described by a URL with the places `{{query}}` and `{{limit}}`, and answers JSON with a list of results; many
//! services and self-hosted search engines do. What it answers is cut to its title, address and snippet.

use futures_util::StreamExt as _;
use runfleet_http::Service;
use runfleet_secrets::Secrets;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::call::{Calling, Executor, ToolCall, texts};
use crate::http::{HttpMistake, HttpSpec, HttpTool};
use crate::outcome::ToolOutcome;

/// Most queries of one call.
const QUERIES_MAX: usize = 8;

/// Longest query, in characters.
const QUERY_CHARS_MAX: usize = 500;

/// Queries on their way at a time.
const WIDTH: usize = 4;

/// Most results of one query.
const RESULTS_MAX: usize = 20;

/// Results of one query when nobody says how many.
const RESULTS: usize = 5;

/// Longest title and longest address of a result, in bytes.
const LINE_BYTES_MAX: usize = 512;

/// Longest snippet of a result, in bytes.
const SNIPPET_BYTES_MAX: usize = 1_024;

/// A search service.
#[derive(Clone)]
pub struct SearchSpec {
    /// How it is asked for one query: a `GET` with the places `{{query}}` and, where it has that, `{{limit}}`.
    pub http: HttpSpec,
    /// JSON pointer to the list of results, such as `/results` or `/web/results`.
    pub results: String,
}

/// Searches the web.
#[derive(Debug)]
pub struct WebSearch {
    tool: HttpTool,
    results: String,
}

impl WebSearch {
    /// Reads the description of a service.
    pub fn new(service: Service, secrets: Secrets, spec: SearchSpec) -> Result<Self, HttpMistake> {
        if spec.http.method != "GET" {
            return Err(HttpMistake("method"));
        }
        if !spec.results.is_empty() && !spec.results.starts_with('/') {
            return Err(HttpMistake("results"));
        }
        let tool = HttpTool::new(service, secrets, spec.http)?;
        Ok(Self { tool, results: spec.results })
    }

    async fn ask(&self, call: &ToolCall, query: &str, limit: usize, deadline: Instant) -> Found {
        let mut call = call.clone();
        call.arguments = Map::from_iter([
            ("query".to_owned(), query.into()),
            ("limit".to_owned(), limit.into()),
        ]);
        let answer = self.tool.ask(&call, deadline).await.map_err(|outcome| match outcome {
            ToolOutcome::Failed { message, .. } => message,
            ToolOutcome::Done(_) | ToolOutcome::Unknown => texts::UNREACHABLE,
        })?;
        let results = answer.pointer(&self.results).and_then(Value::as_array);
        let results = results.ok_or(texts::UNREADABLE)?;
        Ok(results.iter().filter_map(result).take(limit).collect())
    }
}

/// The results of one query, or why there are none.
type Found = Result<Vec<Value>, &'static str>;

impl Executor for WebSearch {
    fn call(&self, call: ToolCall, deadline: Instant) -> Calling<'_> {
        Box::pin(async move {
            let (queries, limit) = match read(&call.arguments) {
                Ok(read) => read,
                Err(outcome) => return outcome,
            };
            let asked: Vec<_> =
                queries.iter().map(|query| self.ask(&call, query, limit, deadline)).collect();
            let asked = futures_util::stream::iter(asked).buffered(WIDTH);
            let found: Vec<Found> = asked.collect().await;
            if let Some(Err(first)) = found.first()
                && found.iter().all(Result::is_err)
            {
                return ToolOutcome::failed(first);
            }
            let told = queries.iter().zip(found).map(|(query, found)| match found {
                Ok(results) => json!({"query": query, "results": results}),
                Err(message) => json!({"query": query, "error": message}),
            });
            ToolOutcome::success(Value::Array(told.collect()))
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

fn read(arguments: &Map<String, Value>) -> Result<(Vec<String>, usize), ToolOutcome> {
    let wrong = |name| ToolOutcome::argument(name, texts::ARGUMENT);
    let queries = arguments.get("queries").and_then(Value::as_array);
    let queries = queries.filter(|queries| (1..=QUERIES_MAX).contains(&queries.len()));
    let queries = queries.ok_or_else(|| wrong("queries"))?.iter().map(|query| {
        let query = query.as_str().map(str::trim).unwrap_or_default();
        (1..=QUERY_CHARS_MAX).contains(&query.chars().count()).then(|| query.to_owned())
    });
    let queries: Option<Vec<String>> = queries.collect();
    let queries = queries.ok_or_else(|| wrong("queries"))?;
    let limit = match arguments.get("resultsPerQuery") {
        None | Some(Value::Null) => RESULTS,
        Some(limit) => limit
            .as_u64()
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| (1..=RESULTS_MAX).contains(limit))
            .ok_or_else(|| wrong("resultsPerQuery"))?,
    };
    Ok((queries, limit))
}

/// A result, by the names that services have for its parts. One without an address is no result.
fn result(found: &Value) -> Option<Value> {
    let part = |names: &[&str], bytes_max| {
        let text = names.iter().find_map(|name| found.get(*name)?.as_str())?;
        Some(&text[..text.floor_char_boundary(bytes_max)])
    };
    let url = part(&["url", "link"], LINE_BYTES_MAX)?;
    Some(json!({
        "title": part(&["title", "name"], LINE_BYTES_MAX).unwrap_or_default(),
        "url": url,
        "snippet": part(&["snippet", "content", "description"], SNIPPET_BYTES_MAX).unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests;
