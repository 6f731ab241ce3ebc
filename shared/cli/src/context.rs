//! Where the fleet is and who asks: from the environment, or from the development fleet of this directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use prometheus::Registry;
use runfleet_broker::{Broker, Management, TopologyAdmin};
use runfleet_contracts::Claims;
use runfleet_contracts::claims::{AUDIENCE, Source};
use runfleet_domain::Name;
use runfleet_domain::limits::HOPS_START;
use runfleet_identity::Signer;
use runfleet_runtime::Env;
use runfleet_runtime::clock::now_ms;
use runfleet_store::Store;
use runfleet_worker::settings::{broker_from_env, store_from_env};
use secrecy::SecretString;
use ulid::Ulid;

/// Written by `runfleet dev`, read by every other command when the environment names no fleet.
pub(crate) const DEV_ENV: &str = ".runfleet/dev.env";

/// How long a token minted by the command line is valid.
const TOKEN_SECONDS: u64 = 3_600;

/// Settings of the command line.
pub(crate) struct Context {
    env: Env,
}

/// Who asks, for commands that make calls as project code would.
#[derive(Debug, clap::Args)]
pub(crate) struct Identity {
    /// The workspace.
    #[arg(long, env = "RUNFLEET_WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The project whose code you act for.
    #[arg(long, env = "RUNFLEET_PROJECT")]
    pub(crate) project: Option<String>,
    /// The person on whose behalf; without it the call has no user.
    #[arg(long)]
    pub(crate) user: Option<String>,
}

impl Context {
    /// From the environment; else from the development fleet of this directory.
    pub(crate) fn load() -> Result<Self> {
        let mut variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let file = Path::new(DEV_ENV);
        if !variables.contains_key("RUNFLEET_AMQP_URL")
            && !variables.contains_key("RUNFLEET_REDIS_URL")
            && file.is_file()
        {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("reading {DEV_ENV}"))?;
            for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
                variables.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        Ok(Self { env: Env::from_map(variables) })
    }

    fn checked<T>(&self, value: Option<T>) -> Result<T> {
        self.env.finish().with_context(|| {
            format!("no fleet: set its addresses, or run `runfleet dev` here ({DEV_ENV})")
        })?;
        value.context("a setting is missing")
    }

    /// The ledger.
    pub(crate) async fn store(&mut self) -> Result<Store> {
        let config = store_from_env(&mut self.env);
        let config = self.checked(config)?;
        let store = Store::open(&config, &Registry::new()).context("preparing the ledger")?;
        store.ping().await.context("connecting to redis")?;
        Ok(store)
    }

    /// The broker.
    pub(crate) fn broker(&mut self) -> Result<Broker> {
        let config = broker_from_env(&mut self.env, "runfleet-cli");
        let mut config = self.checked(config)?;
        // Commands say themselves what is missing.
        config.required = Vec::new();
        Broker::start(config, &Registry::new()).context("starting the broker session")
    }

    /// The address of the broker, for programs that are started beside this one.
    pub(crate) fn amqp_url(&mut self) -> Result<SecretString> {
        let amqp = self.env.secret("RUNFLEET_AMQP_URL", "RabbitMQ.");
        self.checked(amqp)
    }

    /// Whoever may declare exchanges, queues and policies.
    pub(crate) fn topology_admin(&mut self) -> Result<TopologyAdmin> {
        let amqp = self.env.secret("RUNFLEET_AMQP_URL", "RabbitMQ.");
        let management = self.env.secret(
            "RUNFLEET_AMQP_MANAGEMENT_URL",
            "Management interface of RabbitMQ, for policies.",
        );
        let amqp = self.checked(amqp)?;
        let management = self.checked(management)?;
        let management =
            Management::new(&management).context("reading RUNFLEET_AMQP_MANAGEMENT_URL")?;
        TopologyAdmin::new(amqp, management, crate::apply::topology())
            .context("preparing the topology")
    }

    /// Workspace and project, from options, environment or the development fleet.
    pub(crate) fn project(&mut self, identity: &Identity) -> Result<(Name, Name)> {
        let workspace =
            self.env.optional::<String>("RUNFLEET_WORKSPACE", "The workspace.").flatten();
        let project = self.env.optional::<String>("RUNFLEET_PROJECT", "The project.").flatten();
        let name = |given: &Option<String>, found: Option<String>, option: &str| -> Result<Name> {
            let text = given.clone().or(found).with_context(|| format!("--{option} is missing"))?;
            text.parse().map_err(|error| anyhow::anyhow!("--{option} {error}"))
        };
        Ok((
            name(&identity.workspace, workspace, "workspace")?,
            name(&identity.project, project, "project")?,
        ))
    }

    /// A token for one execution: the given one, or a fresh one signed with the key that the settings name.
    pub(crate) fn token(&mut self, identity: &Identity) -> Result<SecretString> {
        let given =
            self.env.optional_secret("RUNFLEET_TOKEN", "Execution token to make calls with.");
        if let Some(token) = given.flatten() {
            return Ok(token);
        }
        let claims = self.claims(identity)?;
        self.signer()?.mint(&claims).context("minting a token")
    }

    /// A project key: the given one, or one for a moment, signed with the key that the settings name.
    pub(crate) fn project_key(&mut self, identity: &Identity) -> Result<SecretString> {
        let given = self.env.optional_secret("RUNFLEET_PROJECT_KEY", "Project key of a host.");
        if let Some(key) = given.flatten() {
            return Ok(key);
        }
        let mut claims = self.claims(identity)?;
        claims.source = Source::Host;
        self.signer()?.mint(&claims).context("minting a project key")
    }

    /// What the token of a fresh execution of a script says.
    pub(crate) fn claims(&mut self, identity: &Identity) -> Result<Claims> {
        let (workspace, project) = self.project(identity)?;
        let user = identity.user.as_ref().map(|user| user.parse()).transpose();
        let user = user.map_err(|error| anyhow::anyhow!("--user {error}"))?;
        Ok(claims(workspace, project, user))
    }

    /// The signer of the key file that the settings name.
    pub(crate) fn signer(&mut self) -> Result<Signer> {
        let file = self.env.optional::<PathBuf>(
            "RUNFLEET_TOKEN_SIGNING_KEY_FILE",
            "Private key that signs execution tokens.",
        );
        let kid = self.env.or(
            "RUNFLEET_TOKEN_SIGNING_KID",
            "development".to_owned(),
            "Name of that key in the key set.",
        );
        let Some(file) = file.flatten() else {
            bail!("no token: set RUNFLEET_TOKEN, or RUNFLEET_TOKEN_SIGNING_KEY_FILE to mint one");
        };
        let pem = std::fs::read_to_string(&file)
            .with_context(|| format!("reading {}", file.display()))?;
        Signer::new(&kid.unwrap_or_default(), &pem.into())
            .with_context(|| format!("reading {}", file.display()))
    }
}

/// Claims of a fresh execution of a script.
pub(crate) fn claims(workspace: Name, project: Name, user: Option<Name>) -> Claims {
    let now = now_ms() / 1_000;
    let execution = Ulid::generate().to_string();
    Claims {
        aud: AUDIENCE.to_owned(),
        exp: now + TOKEN_SECONDS,
        iat: now,
        workspace,
        project,
        // A ULID is a name by its alphabet; the fallback is never taken.
        execution: execution.parse().unwrap_or_else(|_| unreachable!("a ULID is a name")),
        source: Source::Script,
        user,
        read_only: false,
        hops: HOPS_START,
        depth: 0,
        chain: 0,
        version: None,
        wait_for_day: false,
        origin: None,
    }
}
