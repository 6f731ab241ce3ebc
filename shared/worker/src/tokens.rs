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

#[cfg(test)]
mod tests {
    use runfleet_contracts::host::AskId;
    use runfleet_domain::{JobId, Lane, RunId};
    use runfleet_identity::Verifier;
    use runfleet_store::JobState;

    use super::*;

    const NOW: u64 = 1_764_468_000_000;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn job(origin: JobOrigin) -> JobRecord {
        let run: RunId = "PI1501KC5Q8A9B2C3D4E5F6G7H8J9K".parse().unwrap();
        let id: JobId = run.outcome_job();
        JobRecord {
            id,
            origin,
            enqueued_by: "http".to_owned(),
            state: JobState::Pending,
            attempt: 2,
            max_attempts: 5,
            timeout_ms: 60_000,
            workspace: name("acme"),
            project: name("shop"),
            job: "remind".parse().unwrap(),
            lane: Lane::Interactive,
            user: Some(name("ada")),
            identity: "user:ada".to_owned(),
            hops: 7,
            depth: 1,
            chain: 3,
            enqueued_at_ms: NOW,
            run_at_ms: None,
            due_at_ms: NOW,
            last_error: None,
            traceparent: None,
            alarm_tries: 0,
        }
    }

    fn pair() -> (Tokens, Verifier) {
        let (private, public) = runfleet_identity::generate("k").unwrap();
        (Tokens::with(Signer::new("k", &private).unwrap()), Verifier::new(&public).unwrap())
    }

    #[test]
    fn an_attempt_of_a_job_calls_as_its_person_within_its_budget_until_its_time_is_over() {
        let (tokens, verifier) = pair();
        let job = job(JobOrigin::Enqueued { payload: None });
        let token = tokens.for_job(&job, NOW).unwrap();
        let claims = verifier.verify(&token, NOW).unwrap().claims;
        assert_eq!(claims.execution.as_str(), format!("{}-2", job.id));
        assert_eq!((claims.source, claims.user), (Source::Job, Some(name("ada"))));
        assert_eq!((claims.hops, claims.depth, claims.chain), (7, 1, 3));
        assert_eq!(claims.exp, NOW / 1_000 + 60 + 30);
        assert_eq!(claims.origin.as_deref(), Some("job:remind"));
        assert_eq!((claims.workspace, claims.project), (name("acme"), name("shop")));
    }

    #[test]
    fn a_scheduled_job_is_an_execution_of_its_schedule() {
        let (tokens, verifier) = pair();
        let token = tokens.for_job(&job(JobOrigin::Scheduled), NOW).unwrap();
        assert_eq!(verifier.verify(&token, NOW).unwrap().claims.source, Source::Schedule);
    }

    #[test]
    fn the_name_of_the_longest_execution_of_a_task_is_a_name() {
        let run_id: RunId = "AG637ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse().unwrap();
        let ask = AskId { run_id, instance: u64::MAX, attempt: u32::MAX };
        let execution = format!("{}-{}-{}", ask.run_id, ask.instance, ask.attempt);
        assert!(execution.parse::<Name>().is_ok(), "{execution}");
    }

    #[test]
    fn without_a_key_there_is_no_token_and_no_key_is_shown() {
        let tokens = Tokens::default();
        assert!(tokens.for_job(&job(JobOrigin::Scheduled), NOW).is_none());
        assert_eq!(format!("{:?}", pair().0), "Tokens { has_key: true }");
    }
}
