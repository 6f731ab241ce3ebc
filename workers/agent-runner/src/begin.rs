//! From the record of a run that has just been accepted to what its agent begins with.

use std::collections::BTreeSet;

use runfleet_agent::{Approval, Begin, Definition, ErrorCode, RecordText};
use runfleet_catalog::{DocumentRecord, RecordSource};
use runfleet_contracts::agents::{AgentInput, AgentRecord, ApprovalPolicy};
use runfleet_store::RunRecord;
use serde_json::value::RawValue;

/// What the run begins with, or the code with which it ends because that cannot be had.
pub(crate) fn begin(
    definition: &Definition,
    record: &RunRecord,
    now_ms: u64,
) -> Result<Begin, ErrorCode> {
    let input = record.input.as_deref().unwrap_or_default();
    let input: AgentInput = serde_json::from_str(input).map_err(|_| ErrorCode::InternalError)?;
    let parse = |raw: &RawValue| serde_json::from_str(raw.get());
    let variables = input.variables.as_deref().map(|raw| serde_json::from_str(raw.get()));
    let variables = variables.transpose().map_err(|_| ErrorCode::InternalError)?;
    let schema = input.result_schema.as_deref().map(parse).transpose();
    let source = definition.blueprint().record_source.as_ref();
    let longest = now_ms.saturating_add(u64::from(input.timeout_seconds) * 1_000);
    Ok(Begin {
        instruction: input.instruction,
        variables: variables.unwrap_or_default(),
        records: records(source, &input.records)?,
        result_schema: schema.map_err(|_| ErrorCode::InternalError)?,
        approval: match input.approval_policy {
            ApprovalPolicy::Deny => Approval::Deny,
            ApprovalPolicy::AutoApprove => Approval::AutoApprove,
        },
        denied: BTreeSet::new(),
        found: Vec::new(),
        now_ms,
        deadline_ms: record.deadline_ms.unwrap_or(longest),
    })
}

/// The records as texts. One that is not there is told to the agent as such.
fn records(
    source: Option<&RecordSource>,
    wanted: &[AgentRecord],
) -> Result<Vec<RecordText>, ErrorCode> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let Some(RecordSource::Documents { records }) = source else {
        return Err(ErrorCode::ConfigLoadFailed);
    };
    let text = |wanted: &AgentRecord| {
        let found = records.iter().find(|record| {
            record.object_slug == wanted.object_slug && record.record_id == wanted.record_id
        });
        RecordText {
            object_slug: wanted.object_slug.clone(),
            record_id: wanted.record_id.clone(),
            text: found.map_or_else(
                || "There is no such record.".to_owned(),
                |record| written(record, wanted.with_activities),
            ),
        }
    };
    Ok(wanted.iter().map(text).collect())
}

fn written(record: &DocumentRecord, with_activities: bool) -> String {
    let mut lines: Vec<String> =
        record.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    if with_activities {
        lines.extend(record.activities.iter().map(|activity| format!("- {activity}")));
    }
    lines.join("\n")
}
