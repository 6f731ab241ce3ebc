//! From the record of a run that has just been accepted to what its agent begins with.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use runfleet_agent::{Approval, Begin, Definition, Earlier, ErrorCode, RecordText};
use runfleet_catalog::RecordSource;
use runfleet_contracts::agents::{AgentInput, AgentRecord, ApprovalPolicy};
use runfleet_store::RunRecord;
use runfleet_tools::{Caller, Record, RecordQuery, SourceFailure};
use serde_json::value::RawValue;

use crate::tools::Tools;

/// Bound of fetching the records of a run, well within a lease.
const RECORDS_WITHIN: Duration = Duration::from_secs(15);

/// A run cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It ends with this code.
    Code(ErrorCode),
    /// Later it may.
    Passing,
}

/// What the run begins with.
pub(crate) async fn begin(
    tools: &Tools,
    definition: &Definition,
    record: &RunRecord,
    earlier: Vec<Earlier>,
    now_ms: u64,
) -> Result<Begin, Failed> {
    let internal = |_| Failed::Code(ErrorCode::InternalError);
    let input = record.input.as_deref().unwrap_or_default();
    let input: AgentInput = serde_json::from_str(input).map_err(internal)?;
    let parse = |raw: &RawValue| serde_json::from_str(raw.get());
    let variables = input.variables.as_deref().map(|raw| serde_json::from_str(raw.get()));
    let variables = variables.transpose().map_err(internal)?;
    let schema = input.result_schema.as_deref().map(parse).transpose();
    let source = definition.blueprint().record_source.as_ref();
    let longest = now_ms.saturating_add(u64::from(input.timeout_seconds) * 1_000);
    let approval = match input.approval_policy {
        _ if record.decided_in().is_some() => Approval::Person,
        ApprovalPolicy::Deny => Approval::Deny,
        ApprovalPolicy::AutoApprove => Approval::AutoApprove,
    };
    Ok(Begin {
        earlier,
        instruction: input.instruction,
        variables: variables.unwrap_or_default(),
        records: records(tools, source, record, &input.records).await?,
        result_schema: schema.map_err(internal)?,
        approval,
        deliver: input.deliver_to.is_some(),
        // Whoever knows what is declared now fills this.
        denied: BTreeSet::new(),
        found: tools.found(&record.workspace, definition.blueprint()).await,
        now_ms,
        deadline_ms: record.deadline_ms.unwrap_or(longest),
    })
}

/// The records as texts. One that is not there is told to the agent as such.
async fn records(
    tools: &Tools,
    source: Option<&RecordSource>,
    record: &RunRecord,
    wanted: &[AgentRecord],
) -> Result<Vec<RecordText>, Failed> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let source = source.ok_or(Failed::Code(ErrorCode::ConfigLoadFailed))?;
    let within = match source {
        RecordSource::Http { timeout_seconds, .. } => {
            Duration::from_secs((*timeout_seconds).into())
        }
        RecordSource::Documents { .. } => RECORDS_WITHIN,
    };
    let source = tools.records(&record.workspace, source).await;
    let source = source.ok_or(Failed::Code(ErrorCode::ConfigLoadFailed))?;
    let caller = Caller {
        workspace: record.workspace.clone(),
        project: Some(record.project.clone()),
        personnel_id: record.user.clone(),
    };
    let asks = wanted.iter().map(|wanted| {
        let query = RecordQuery {
            object_slug: wanted.object_slug.clone(),
            record_ids: vec![wanted.record_id.clone()],
            search: None,
            limit: 1,
            with_activities: wanted.with_activities,
            filter: serde_json::Map::new(),
        };
        let (source, caller) = (&source, &caller);
        async move { source.fetch(caller, &query, within.min(RECORDS_WITHIN)).await }
    });
    let mut texts = Vec::with_capacity(wanted.len());
    for (wanted, found) in wanted.iter().zip(join_all(asks).await) {
        let text = match found.as_deref() {
            Ok([found, ..]) => written(found),
            Ok([]) | Err(SourceFailure::Unknown) => "There is no such record.".to_owned(),
            Err(SourceFailure::Unreachable) => return Err(Failed::Passing),
            Err(SourceFailure::Refused | SourceFailure::Unreadable | SourceFailure::ReadOnly) => {
                return Err(Failed::Code(ErrorCode::ConfigLoadFailed));
            }
        };
        texts.push(RecordText {
            object_slug: wanted.object_slug.clone(),
            record_id: wanted.record_id.clone(),
            text,
        });
    }
    Ok(texts)
}

fn written(record: &Record) -> String {
    let mut lines: Vec<String> =
        record.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    lines.extend(record.activities.iter().map(|activity| format!("- {activity}")));
    lines.join("\n")
}
