//! `kind: McpServer`, `kind: ModelProvider` and `kind: RecordSource`: what agents reach.

use std::collections::{BTreeMap, BTreeSet};

use super::agent::is_model;
use super::tool::{PERMISSIONS, address, headers, place};
use crate::bounds::{
    CALL_SECONDS, CALL_SECONDS_DEFAULT, DOCUMENT_RECORD_BYTES_MAX, DOCUMENT_RECORDS_MAX, LISTED_MAX,
};
use crate::node::Value;
use crate::reader::{At, Fields};
use crate::tool::{
    DocumentRecord, McpServer, McpTransport, ModelProvider, ProviderKind, RecordSource, Secretly,
};

const PROVIDERS: &[(&str, ProviderKind)] = &[
    ("openai", ProviderKind::Openai),
    ("anthropic", ProviderKind::Anthropic),
    ("gemini", ProviderKind::Gemini),
    ("ollama", ProviderKind::Ollama),
    ("scripted", ProviderKind::Scripted),
];

pub(super) fn server(spec: At<'_>) -> Option<McpServer> {
    let mut fields = spec.fields()?;
    let transport = transport(&mut fields);
    let permission = fields.or("permission", None, |at| at.word(PERMISSIONS).map(Some));
    let tool_permissions = fields.or("toolPermissions", BTreeMap::new(), |at| {
        let entries = at.entries(LISTED_MAX)?;
        entries.into_iter().map(|(name, at)| Some((name, at.word(PERMISSIONS)?))).collect()
    });
    let only = fields.or("only", None, |at| lines(&at).map(Some));
    let idempotent = fields.or("idempotent", BTreeSet::new(), |at| lines(&at));
    let timeout = fields.or("timeoutSeconds", CALL_SECONDS_DEFAULT, |at| at.integer(CALL_SECONDS));
    fields.finish();
    Some(McpServer {
        transport: transport?,
        permission: permission?,
        tool_permissions: tool_permissions?,
        only: only?,
        idempotent: idempotent?,
        timeout_seconds: timeout?,
    })
}

fn transport(fields: &mut Fields<'_>) -> Option<McpTransport> {
    match (fields.optional("stdio"), fields.optional("http")) {
        (Some(at), None) => {
            let mut fields = at.fields()?;
            let command = fields.required("command").and_then(|at| at.line());
            fields.finish();
            Some(McpTransport::Stdio { command: command? })
        }
        (None, Some(at)) => {
            let mut fields = at.fields()?;
            let url = fields.required("url").and_then(|at| address(&at));
            let headers = fields.or("headers", BTreeMap::new(), |at| headers(&at));
            fields.finish();
            Some(McpTransport::Http { url: url?, headers: headers? })
        }
        _ => {
            fields.mistake("must have one of stdio, http");
            None
        }
    }
}

fn lines(at: &At<'_>) -> Option<BTreeSet<String>> {
    let lines: Vec<Option<String>> = at.items(LISTED_MAX)?.iter().map(At::line).collect();
    lines.into_iter().collect()
}

pub(super) fn provider(spec: At<'_>) -> Option<ModelProvider> {
    let mut fields = spec.fields()?;
    let kind = fields.required("kind").and_then(|at| at.word(PROVIDERS));
    let base_url = fields.or("baseUrl", None, |at| address(&at).map(Some));
    let key = place(&mut fields, "keyEnv", "keyFile");
    let script = fields.or("script", None, |at| at.line().map(Some));
    let models = fields.required("models").and_then(|at| models(&at));
    let scripted = kind == Some(ProviderKind::Scripted);
    if scripted && script == Some(None) {
        fields.mistake("needs a script, being scripted");
    }
    if kind.is_some() && !scripted && matches!(script, Some(Some(_))) {
        fields.mistake("must not have a script unless it is scripted");
    }
    fields.finish();
    Some(ModelProvider { kind: kind?, base_url: base_url?, key, script: script?, models: models? })
}

/// A list of names, or a mapping from the names that agents use to those that the provider knows.
fn models(at: &At<'_>) -> Option<BTreeMap<String, String>> {
    let pairs: Vec<(String, String)> = if matches!(at.node.value, Value::List(_)) {
        let items: Vec<Option<String>> = at.items(LISTED_MAX)?.iter().map(At::line).collect();
        items.into_iter().flatten().map(|name| (name.clone(), name)).collect()
    } else {
        let entries = at.entries(LISTED_MAX)?;
        entries.into_iter().filter_map(|(name, at)| Some((name, at.line()?))).collect()
    };
    if pairs.is_empty() || !pairs.iter().all(|(name, known)| is_model(name) && is_model(known)) {
        at.mistake("must name at least one model, each in printable ASCII without spaces");
        return None;
    }
    Some(pairs.into_iter().collect())
}

pub(super) fn records(spec: At<'_>) -> Option<RecordSource> {
    let mut fields = spec.fields()?;
    let source = match (fields.optional("http"), fields.optional("documents")) {
        (Some(at), None) => http_records(at),
        (None, Some(at)) => {
            let items = at.items(DOCUMENT_RECORDS_MAX)?;
            let records: Vec<Option<DocumentRecord>> = items.into_iter().map(document).collect();
            let records: Option<Vec<_>> = records.into_iter().collect();
            records.map(|records| RecordSource::Documents { records })
        }
        _ => {
            fields.mistake("must have one of http, documents");
            None
        }
    };
    fields.finish();
    source
}

fn http_records(at: At<'_>) -> Option<RecordSource> {
    let mut fields = at.fields()?;
    let url = fields.required("url").and_then(|at| address(&at));
    let headers = fields.or("headers", BTreeMap::new(), |at| bearer(&at));
    let timeout = fields.or("timeoutSeconds", CALL_SECONDS_DEFAULT, |at| at.integer(CALL_SECONDS));
    fields.finish();
    Some(RecordSource::Http { url: url?, headers: headers?, timeout_seconds: timeout? })
}

/// The only header with which records are asked for.
fn bearer(at: &At<'_>) -> Option<BTreeMap<String, Secretly>> {
    let headers = headers(at)?;
    if headers.keys().any(|name| !name.eq_ignore_ascii_case("authorization")) {
        at.mistake("must have no field but `authorization`, whose value begins with `Bearer `");
        return None;
    }
    Some(headers)
}

fn document(at: At<'_>) -> Option<DocumentRecord> {
    let mut fields = at.fields()?;
    let object_slug = fields.required("objectSlug").and_then(|at| at.line());
    let record_id = fields.required("recordId").and_then(|at| at.line());
    let values = fields.required("fields").and_then(|at| at.json_object(DOCUMENT_RECORD_BYTES_MAX));
    let activities = fields.or("activities", Vec::new(), |at| {
        let items = at.items(100)?;
        items.iter().map(|at| at.json_object(DOCUMENT_RECORD_BYTES_MAX).map(Into::into)).collect()
    });
    fields.finish();
    Some(DocumentRecord {
        object_slug: object_slug?,
        record_id: record_id?,
        fields: values?,
        activities: activities?,
    })
}
