//! Who calls a fleet in tests: claims, tokens and clients of the example project.

use anyhow::Result;
use runfleet_client::Client;
use runfleet_contracts::Claims;
use runfleet_contracts::claims::{AUDIENCE, Source};
use secrecy::SecretString;

use crate::fleet::{Fleet, project};

impl Fleet {
    /// Claims of a fresh execution of the example project.
    pub fn claims(&self) -> Claims {
        let (workspace, project) = project();
        let now = runfleet_runtime::clock::now_ms() / 1_000;
        let execution = ulid::Ulid::generate().to_string();
        Claims {
            aud: AUDIENCE.to_owned(),
            exp: now + 3_600,
            iat: now,
            workspace,
            project,
            execution: execution.parse().unwrap_or_else(|_| unreachable!("a ULID is a name")),
            source: Source::Batch,
            user: None,
            read_only: false,
            hops: 10,
            depth: 0,
            chain: 0,
            version: None,
            wait_for_day: false,
            origin: None,
        }
    }

    /// A signed token.
    pub fn token(&self, claims: &Claims) -> Result<SecretString> {
        Ok(self.signer.mint(claims)?)
    }

    /// A client of the example project.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::new(&self.broker, self.token(&self.claims())?))
    }
}
