//! Versions of projects: a host registers what it has loaded, somebody makes it the active one, everybody may look.
//!
//! Registering and activating needs a project key. Which version is active stands in the catalog of the workspace, so it is changed
//! like that: read, change, put back if nobody else has changed it meanwhile, announce.

use runfleet_broker::{Classify, Failure, Inbound, Verdict};
use runfleet_catalog::{ActivateError, Declared, Snapshot};
use runfleet_contracts::projects::{
    ActivateVersion, HostShown, OpenSession, ProjectShown, RegisterVersion, SessionOpened,
    ShowProject, VersionActivated, VersionRegistered, VersionShown,
};
use runfleet_contracts::{Claims, ErrorBody, ErrorCode, Operation, Reply, Request};
use runfleet_domain::limits::HOPS_START;
use runfleet_domain::{RunKind, Source, admission};
use runfleet_identity::Verified;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{CatalogPut, Definition, Registered, Registration, StoreError};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use ulid::Ulid;

use crate::answer::Caller;
use crate::handler::{Deps, RawRequest, patience};

/// Somebody else may change the catalog meanwhile; so often it is changed anew before this is given up.
const TRIES: u32 = 8;

/// How long a token of a development session is valid, in seconds.
const SESSION_SECONDS: u64 = 3_600;

/// What the caller is told; a failure passes.
pub(crate) type Told = Result<Result<Box<RawValue>, ErrorBody>, Failure>;

/// Data as it is told.
pub(crate) fn data<T: Serialize>(data: T) -> Told {
    to_raw_value(&Reply::Done(data)).permanent("writing the answer").map(Ok)
}

/// Carries out something within the time of its request, and tells the caller.
pub(crate) async fn told(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    operation: Operation,
    doing: impl Future<Output = Told>,
) -> Result<Verdict, Failure> {
    let word = operation.as_str();
    let done = tokio::time::timeout(patience(message), doing).await;
    match done.unwrap_or_else(|_| Err(Failure::transient("doing it in time"))) {
        Ok(Ok(answer)) => {
            deps.count(word, "ok");
            caller.send(&deps.publisher, answer.get().as_bytes()).await;
            Ok(Verdict::Done)
        }
        Ok(Err(error)) => Ok(deps.refuse(caller, word, error).await),
        Err(failure) => deps.postpone(caller, word, true, failure).await,
    }
}

pub(crate) async fn projects(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let payload = &request.payload;
    told(deps, caller, message, request.operation, async {
        match request.operation {
            Operation::ProjectsRegister => register(deps, asks, payload).await,
            Operation::ProjectsActivate => activate(deps, asks, payload).await,
            Operation::ProjectsSession => session(deps, asks, payload).await,
            _ => show(deps, asks, payload).await,
        }
    })
    .await
}

fn denied(reason: &str) -> ErrorBody {
    ErrorBody::new(ErrorCode::PermissionDenied).with("reason", reason)
}

/// What a project key says, when the asker has one that is good for this.
async fn key<'a>(
    deps: &Deps,
    asks: &'a Verified,
    writes: bool,
) -> Result<Result<&'a Claims, ErrorBody>, Failure> {
    let claims = &asks.claims;
    if claims.source != Source::Host {
        return Ok(Err(denied("PROJECT_KEY_NEEDED")));
    }
    if asks.expired {
        return Ok(Err(denied("TOKEN_EXPIRED")));
    }
    if writes && claims.read_only {
        return Ok(Err(denied("READ_ONLY")));
    }
    let revoked = deps.store.batch_revoked(&claims.workspace, &claims.project, &claims.execution);
    if revoked.await.transient("looking for the project key")? {
        return Ok(Err(denied("PROJECT_KEY_REVOKED")));
    }
    Ok(Ok(claims))
}

fn no_project(claims: &Claims) -> ErrorBody {
    ErrorBody::new(ErrorCode::NotFound)
        .with("resource", "project")
        .with("resourceId", claims.project.as_str())
}

async fn register(deps: &Deps, asks: &Verified, payload: &RawValue) -> Told {
    let claims = match key(deps, asks, true).await? {
        Ok(claims) => claims,
        Err(error) => return Ok(Err(error)),
    };
    let checked = RegisterVersion::parse(payload).and_then(|declared| {
        Declared::new(&claims.project, &declared)?;
        Ok(declared)
    });
    let declared = match checked {
        Ok(declared) => declared,
        Err(error) => return Ok(Err(error)),
    };
    let (workspace, project) = (&claims.workspace, &claims.project);
    let known = |snapshot: &Snapshot| snapshot.project(project).is_some();
    let mut snapshot = deps.catalog.get(workspace).await.transient("loading the catalog")?;
    if !snapshot.as_deref().is_some_and(known) {
        snapshot = deps.catalog.refresh(workspace).await.transient("loading the catalog")?;
    }
    let Some(found) = snapshot.as_deref().and_then(|snapshot| snapshot.project(project)) else {
        return Ok(Err(no_project(claims)));
    };
    let manifest = serde_json::to_string(&declared).permanent("writing the manifest")?;
    let summary = serde_json::to_string(&summary(&declared)).permanent("writing the summary")?;
    let new = Registration {
        workspace,
        project,
        version: &declared.version,
        summary: &summary,
        manifest: &manifest,
        active: found.registered.as_ref().map(|version| version.version.as_str()),
    };
    let registered = deps.store.register_version(&new).await.transient("registering a version")?;
    if registered == Registered::Other {
        let problem = "is registered already, with other content";
        return Ok(Err(ErrorBody::field("version", problem)));
    }
    let (version, created) = (declared.version, registered == Registered::Created);
    tracing::info!(%workspace, %project, version, created, "a version was registered");
    data(VersionRegistered { version, created })
}

fn summary(declared: &RegisterVersion) -> VersionShown {
    VersionShown {
        version: declared.version.clone(),
        registered_at: 0,
        active: false,
        jobs: declared.jobs.len(),
        scripts: declared.scripts.len(),
        routes: declared.routes.len(),
        triggers: declared.triggers.len(),
        actions: declared.actions.len(),
        tools: declared.tools.len(),
    }
}

async fn activate(deps: &Deps, asks: &Verified, payload: &RawValue) -> Told {
    let claims = match key(deps, asks, true).await? {
        Ok(claims) => claims,
        Err(error) => return Ok(Err(error)),
    };
    let version = match ActivateVersion::parse(payload) {
        Ok(options) => options.version,
        Err(error) => return Ok(Err(error)),
    };
    let (workspace, project) = (&claims.workspace, &claims.project);
    let manifest = deps.store.load_manifest(workspace, project, &version).await;
    let Some(manifest) = manifest.transient("loading a version")? else {
        let missing = ErrorBody::new(ErrorCode::NotFound).with("resource", "project_version");
        return Ok(Err(missing));
    };
    let declared: RegisterVersion =
        serde_json::from_str(&manifest).permanent("reading a version")?;
    let declared = match Declared::new(project, &declared) {
        Ok(declared) => declared,
        Err(error) => return Ok(Err(error)),
    };
    for _ in 0..TRIES {
        match try_to_activate(deps, claims, &declared).await? {
            Ok(Some(previous)) => {
                // What this process has in memory is old now.
                let _ = deps.catalog.refresh(workspace).await;
                tracing::info!(%workspace, %project, version, "a version is active");
                return data(VersionActivated { version, previous });
            }
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Err(Failure::transient("changing the catalog, which others change all the time"))
}

/// One try: the version that was active before, when nobody else has changed the catalog meanwhile.
async fn try_to_activate(
    deps: &Deps,
    claims: &Claims,
    declared: &Declared,
) -> Result<Result<Option<Option<String>>, ErrorBody>, Failure> {
    let (workspace, project) = (&claims.workspace, &claims.project);
    let stored = deps.store.load_catalog(workspace).await.transient("loading the catalog")?;
    let Some(stored) = stored else { return Ok(Err(no_project(claims))) };
    let snapshot = Snapshot::from_json(stored.json.as_bytes()).transient("reading the catalog")?;
    let merged = match snapshot.activate(project, declared) {
        Ok(merged) => merged,
        Err(ActivateError::NoProject) => return Ok(Err(no_project(claims))),
        Err(ActivateError::ToolTaken { tool, project }) => {
            let error = ErrorBody::field("version", "has a tool that another project has already");
            let error = error.with("tool", tool.as_str()).with("project", project.as_str());
            return Ok(Err(error));
        }
        Err(ActivateError::Merge(error)) => {
            tracing::warn!(%error, %workspace, %project, "a version does not fit");
            let problem = "is more than the workspace can hold";
            return Ok(Err(ErrorBody::field("version", problem)));
        }
    };
    let active = |snapshot: &Snapshot| {
        let project = snapshot.project(project)?;
        project.registered.as_ref().map(|version| version.version.clone())
    };
    let definitions: Vec<Definition<'_>> = merged
        .agent_versions
        .iter()
        .map(|new| Definition {
            kind: RunKind::Agent,
            target: &new.agent,
            version: new.version,
            text: &new.json,
        })
        .collect();
    let json = merged.snapshot.to_json().permanent("writing the catalog")?;
    // Also without a change: storing announces the catalog again, which heals an announcement that got lost.
    match deps.store.put_catalog(workspace, Some(stored.revision), &json, &definitions).await {
        Ok(CatalogPut::Stored { .. }) => Ok(Ok(Some(active(&snapshot)))),
        Ok(CatalogPut::Changed { .. }) => Ok(Ok(None)),
        Err(StoreError::Invalid(_)) => {
            let problem = "is more than the workspace can hold";
            Ok(Err(ErrorBody::field("version", problem)))
        }
        Err(error) => Err(error).transient("storing the catalog"),
    }
}

async fn show(deps: &Deps, asks: &Verified, payload: &RawValue) -> Told {
    let claims = &asks.claims;
    let options = match ShowProject::parse(payload) {
        Ok(options) => options,
        Err(error) => return Ok(Err(error)),
    };
    let is_host = claims.source == Source::Host;
    let may = if is_host && asks.expired {
        Err(denied("TOKEN_EXPIRED"))
    } else if !is_host && options.host.is_some() {
        Err(denied("PROJECT_KEY_NEEDED"))
    } else if is_host {
        Ok(())
    } else {
        let limits = runfleet_domain::limits::StartLimits::DEFAULT;
        let caller = claims.caller(asks.expired);
        admission::call(&caller, false, &limits).map(drop).map_err(ErrorBody::from)
    };
    if let Err(error) = may {
        return Ok(Err(error));
    }
    let (workspace, project) = (&claims.workspace, &claims.project);
    let host = options.host.as_ref().map(|host| (host.id.as_str(), host.version.as_str()));
    let state = deps.store.show_project(workspace, project, host).await;
    let state = state.transient("looking at a project")?;
    let snapshot = deps.catalog.get(workspace).await.transient("loading the catalog")?;
    let found = snapshot.as_deref().and_then(|snapshot| snapshot.project(project));
    let active = found.and_then(|found| Some(found.registered.as_ref()?.version.clone()));
    let versions = state.versions.into_iter().filter_map(|kept| {
        let shown: VersionShown = serde_json::from_str(&kept.summary).ok()?;
        let registered_at = kept.registered_at_ms;
        let active = active.as_ref() == Some(&kept.version);
        Some(VersionShown { registered_at, active, ..shown })
    });
    let hosts = state.hosts.into_iter().map(|host| HostShown {
        id: host.id,
        version: host.version,
        seen_at: host.seen_at_ms,
    });
    let (versions, hosts) = (versions.collect(), hosts.collect());
    data(ProjectShown { active, versions, hosts })
}

async fn session(deps: &Deps, asks: &Verified, payload: &RawValue) -> Told {
    let claims = match key(deps, asks, false).await? {
        Ok(claims) => claims,
        Err(error) => return Ok(Err(error)),
    };
    let options = match OpenSession::parse(payload) {
        Ok(options) => options,
        Err(error) => return Ok(Err(error)),
    };
    if claims.user.is_none() {
        return Ok(Err(denied("PROJECT_KEY_WITHOUT_USER")));
    }
    let now = now_ms() / 1_000;
    let execution = Ulid::generate().to_string();
    let session = Claims {
        source: Source::Development,
        execution: execution.parse().permanent("naming a session")?,
        // Never longer than the key itself.
        exp: now.saturating_add(SESSION_SECONDS).min(claims.exp),
        iat: now,
        read_only: claims.read_only || options.read_only,
        hops: HOPS_START,
        depth: 0,
        chain: 0,
        ..claims.clone()
    };
    let Some(token) = deps.tokens.mint(&session) else {
        return Ok(Err(ErrorBody::new(ErrorCode::NotSupported)));
    };
    let expires_at = session.exp.saturating_mul(1_000);
    data(SessionOpened { token: token.expose_secret().to_owned(), expires_at })
}
