//! Records of the workspace for code of a project: from the source that the project names, or the only one of the workspace, as the
//! person on whose behalf the code runs. The source decides what that person may see and change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use runfleet_broker::{Classify, Failure, Inbound, Verdict};
use runfleet_catalog::{RecordSource as Declared, Snapshot};
use runfleet_contracts::data::{
    CreateRecord, GetRecord, QueryRecords, RecordFound, RecordShown, RecordsFound, UpdateRecord,
};
use runfleet_contracts::{Claims, ErrorBody, ErrorCode, Operation, Request};
use runfleet_domain::limits::StartLimits;
use runfleet_domain::{Name, admission};
use runfleet_http::{AllowList, Client, Config, Service};
use runfleet_identity::Verified;
use runfleet_runtime::Env;
use runfleet_tools::{Caller, Record, RecordQuery, RecordSource, RecordWrite, SourceFailure};
use runfleet_worker::keys::Places;
use runfleet_worker::records as sources;
use serde_json::value::RawValue;

use crate::answer;
use crate::calls::count;
use crate::handler::{Deps, RawRequest, patience};
use crate::projects::{Told, data, told};

/// Records of one answer when nobody says how many.
const RECORDS: usize = 10;

/// Where sources of records may be, and where their secrets are.
#[derive(Debug)]
pub(crate) struct DataConfig {
    allow: AllowList,
    places: Places,
}

impl DataConfig {
    /// Reads all settings.
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        let allow = env.optional::<AllowList>("RUNFLEET_HTTP_ALLOW", "Hosts, host:port, addresses and networks that HTTP tasks and tools may call although they are not public or not https; separated by commas.");
        let folder = env.optional::<PathBuf>("RUNFLEET_HTTP_SECRETS_DIR", "Folder with the secrets of HTTP tasks and tools, one file WORKSPACE/NAME each; absent: what names a secret fails.");
        let variables = env.or(
            "RUNFLEET_SECRET_VARIABLES",
            String::new(),
            "Environment variables that documents may name as secrets, such as the keys of model providers; separated by commas.",
        );
        let names = variables?;
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        let variables = names.map(str::to_owned).collect();
        Some(Self {
            allow: allow?.unwrap_or_default(),
            places: Places { variables, folder: folder? },
        })
    }
}

/// Makes sources out of what is declared.
pub(crate) struct Sources {
    service: Service,
    places: Places,
}

impl Sources {
    pub(crate) fn new(config: DataConfig, http: &Client) -> anyhow::Result<Self> {
        let own = Config { allow: config.allow, ..Config::default() };
        let client = http.beside(own).context("preparing calls of record sources")?;
        // Without a breaker: the calls go to many places, and one that fails says nothing about the others.
        Ok(Self { service: client.service("records", None), places: config.places })
    }

    async fn of(&self, workspace: &Name, declared: &Declared) -> Option<Arc<dyn RecordSource>> {
        sources::source(declared, workspace, &self.service, &self.places).await
    }
}

/// What is asked of a source.
enum Asked {
    Get(RecordQuery),
    Query(RecordQuery),
    Write(RecordWrite),
}

impl Asked {
    fn parse(
        operation: Operation,
        payload: &RawValue,
        claims: &Claims,
        message_id: &str,
    ) -> Result<Self, ErrorBody> {
        let write = |object_slug, record_id, fields| {
            // The same message is the same write; other executions may have messages of the same id.
            let request_id = format!("{}:{message_id}", claims.execution);
            Self::Write(RecordWrite {
                object_slug,
                record_id,
                fields,
                request_id,
                hops: claims.hops,
            })
        };
        match operation {
            Operation::DataGet => {
                let GetRecord { object_slug, record_id } = GetRecord::parse(payload)?;
                Ok(Self::Get(RecordQuery {
                    object_slug,
                    record_ids: vec![record_id],
                    search: None,
                    limit: 1,
                    with_activities: false,
                    filter: serde_json::Map::new(),
                }))
            }
            Operation::DataUpdate => {
                let (options, fields) = UpdateRecord::parse(payload)?;
                Ok(write(options.object_slug, Some(options.record_id), fields))
            }
            Operation::DataCreate => {
                let (options, fields) = CreateRecord::parse(payload)?;
                Ok(write(options.object_slug, None, fields))
            }
            _ => {
                let (options, filter) = QueryRecords::parse(payload)?;
                let record_ids = options.record_ids.unwrap_or_default();
                let limit = options.limit.and_then(|limit| usize::try_from(limit).ok());
                Ok(Self::Query(RecordQuery {
                    object_slug: options.object_slug,
                    limit: limit.unwrap_or_else(|| RECORDS.max(record_ids.len())),
                    record_ids,
                    search: options.search,
                    with_activities: false,
                    filter,
                }))
            }
        }
    }
}

pub(crate) async fn records(
    deps: &Deps,
    caller: &answer::Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let within = patience(message);
    told(deps, caller, message, request.operation, async {
        let claims = &asks.claims;
        let asked = Asked::parse(request.operation, &request.payload, claims, &message.message_id);
        match asked {
            Ok(asked) => ask(deps, asks, asked, within).await,
            Err(error) => Ok(Err(error)),
        }
    })
    .await
}

async fn ask(deps: &Deps, asks: &Verified, asked: Asked, within: Duration) -> Told {
    let claims = &asks.claims;
    let (limits, declared) = declared(deps, claims).await?;
    let writes = matches!(asked, Asked::Write(_));
    let budget = match admission::call(&claims.caller(asks.expired), writes, &limits) {
        Ok(budget) => budget,
        Err(refusal) => return Ok(Err(refusal.into())),
    };
    if let Some(error) = count(deps, claims, budget).await? {
        return Ok(Err(error));
    }
    let not_set_up = || ErrorBody::new(ErrorCode::NotSupported).with("reason", "NO_RECORD_SOURCE");
    let Some(declared) = declared else { return Ok(Err(not_set_up())) };
    let Some(source) = deps.sources.of(&claims.workspace, &declared).await else {
        tracing::error!(workspace = %claims.workspace, "a source of records cannot be used");
        return Ok(Err(not_set_up()));
    };
    let caller = Caller {
        workspace: claims.workspace.clone(),
        project: Some(claims.project.clone()),
        personnel_id: claims.user.clone(),
    };
    match asked {
        Asked::Get(query) => match source.fetch(&caller, &query, within).await {
            Ok(records) => data(RecordFound { record: records.into_iter().next().map(shown) }),
            // There is no such kind of record, so there is no such record.
            Err(SourceFailure::Unknown) => data(RecordFound { record: None }),
            Err(failure) => Ok(Err(refusal(failure, false))),
        },
        Asked::Query(query) => match source.fetch(&caller, &query, within).await {
            Ok(records) => data(RecordsFound { records: records.into_iter().map(shown).collect() }),
            Err(failure) => Ok(Err(refusal(failure, false))),
        },
        Asked::Write(write) => match source.write(&caller, &write, within).await {
            Ok(record) => data(RecordFound { record: record.map(shown) }),
            Err(failure) => Ok(Err(refusal(failure, true))),
        },
    }
}

/// The limits of the project, and the source that it names, or the only one.
async fn declared(
    deps: &Deps,
    claims: &Claims,
) -> Result<(StartLimits, Option<Declared>), Failure> {
    let snapshot = deps.catalog.get(&claims.workspace).await.transient("loading the catalog")?;
    let project =
        snapshot.as_deref().and_then(|snapshot: &Snapshot| snapshot.project(&claims.project));
    let limits = project.map_or(StartLimits::DEFAULT, |project| project.limits.start());
    let source = snapshot.as_deref().zip(project).and_then(|(snapshot, project)| {
        let sources = &snapshot.record_sources;
        match &project.record_source {
            Some(name) => sources.get(name),
            None if sources.len() == 1 => sources.values().next(),
            None => None,
        }
    });
    Ok((limits, source.cloned()))
}

fn shown(record: Record) -> RecordShown {
    let Record { object_slug, record_id, fields, .. } = record;
    RecordShown { object_slug, record_id, fields }
}

fn refusal(failure: SourceFailure, writes: bool) -> ErrorBody {
    match failure {
        SourceFailure::Unreachable | SourceFailure::Unreadable => {
            ErrorBody::retryable(writes).with("reason", "RECORDS_UNAVAILABLE")
        }
        SourceFailure::Refused => {
            ErrorBody::new(ErrorCode::PermissionDenied).with("reason", "RECORDS_DENIED")
        }
        SourceFailure::Unknown => ErrorBody::new(ErrorCode::NotFound)
            .with("resource", if writes { "record" } else { "object" }),
        SourceFailure::ReadOnly => {
            ErrorBody::new(ErrorCode::NotSupported).with("reason", "RECORDS_READ_ONLY")
        }
    }
}
