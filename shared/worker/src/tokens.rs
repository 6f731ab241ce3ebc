//! Execution tokens for what project code is asked to do: jobs, tasks and tools. With one, that code may call the fleet, as the
//! person and within the budget that it runs with.
//!
//! Without a key there are no tokens: hosts get their work, and their code can start nothing.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use runfleet_contracts::claims::{AUDIENCE, Source};
use runfleet_contracts::{Claims, HostRequest};
use runfleet_domain::Name;
use runfleet_identity::Signer;
use runfleet_runtime::Env;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{JobOrigin, JobRecord, RunRecord};
use secrecy::SecretString;

/// How much longer than the work a token is valid, in seconds: clocks differ, and a last call may be on its way.
const MARGIN_SECONDS: u64 = 30;

/// Where the key is.
#[derive(Debug, Clone)]
pub struct TokenSettings {
    file: Option<PathBuf>,
    kid: String,
}

impl TokenSettings {
    /// Reads the settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        let file = env.optional::<PathBuf>(
            "RUNFLEET_TOKEN_SIGNING_KEY_FILE",
            "Private key that signs execution tokens for jobs, tasks and tools of projects. Without it their code can call nothing.",
        );
        let kid = env.or(
            "RUNFLEET_TOKEN_SIGNING_KID",
            "development".to_owned(),
            "Name of that key in the key set of start-intake.",
        );
        Some(Self { file: file?, kid: kid? })
    }
}

/// Mints execution tokens. Clones share the key.
#[derive(Clone, Default)]
pub struct Tokens {
    signer: Option<Arc<Signer>>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("has_key", &self.signer.is_some()).finish()
    }
}

impl Tokens {
    /// Reads the key that the settings name; says so in the log when they name none.
    ///
    /// # Errors
    /// When the file cannot be read or holds no key.
    pub fn open(settings: &TokenSettings) -> Result<Self> {
        let Some(file) = &settings.file else {
            tracing::warn!(
                "no key to sign execution tokens with: jobs, tasks and tools of projects can call nothing"
            );
            return Ok(Self::default());
        };
        let reading = || format!("reading the key in {}", file.display());
        let pem = std::fs::read_to_string(file).with_context(reading)?;
        let signer = Signer::new(&settings.kid, &pem.into()).with_context(reading)?;
        Ok(Self { signer: Some(Arc::new(signer)) })
    }

    /// With a key that is there already.
    pub fn with(signer: Signer) -> Self {
        Self { signer: Some(Arc::new(signer)) }
    }

    /// The token that says `claims`; none without a key.
    pub fn mint(&self, claims: &Claims) -> Option<SecretString> {
        let minted = self.signer.as_ref()?.mint(claims);
        minted.inspect_err(|error| tracing::error!(%error, "a token could not be minted")).ok()
    }

    /// The token of an attempt of a job that may be begun until `deadline_ms`.
    pub fn for_job(&self, job: &JobRecord, deadline_ms: u64) -> Option<SecretString> {
        let source = match job.origin {
            JobOrigin::Outcome(_) | JobOrigin::Enqueued { .. } => Source::Job,
            JobOrigin::Scheduled => Source::Schedule,
        };
        let until = deadline_ms.saturating_add(job.timeout_ms.into());
        self.mint(&Claims {
            execution: format!("{}-{}", job.id, job.attempt).parse().ok()?,
            source,
            user: job.user.clone(),
            hops: job.hops,
            depth: job.depth,
            chain: job.chain,
            origin: Some(format!("job:{}", job.job)),
            ..claims(&job.workspace, &job.project, until)?
        })
    }

    /// The token of a request to a host that a run has asked.
    pub fn for_request(&self, run: &RunRecord, request: &HostRequest) -> Option<SecretString> {
        let ask = request.request_id;
        self.mint(&Claims {
            execution: format!("{}-{}-{}", ask.run_id, ask.instance, ask.attempt).parse().ok()?,
            source: Source::Action,
            user: run.user.clone(),
            hops: run.hops,
            depth: run.depth,
            chain: run.chain,
            ..claims(&request.workspace, &request.project, request.deadline)?
        })
    }
}

/// Claims of an execution that may go on until `until_ms`; what it may do is filled in.
fn claims(workspace: &Name, project: &Name, until_ms: u64) -> Option<Claims> {
    Some(Claims {
        aud: AUDIENCE.to_owned(),
        exp: (until_ms / 1_000).saturating_add(MARGIN_SECONDS),
        iat: now_ms() / 1_000,
        workspace: workspace.clone(),
        project: project.clone(),
        version: None,
        execution: "none".parse().ok()?,
        source: Source::Action,
        user: None,
        read_only: false,
        hops: 0,
        depth: 0,
        chain: 0,
        wait_for_day: false,
        origin: None,
    })
}
