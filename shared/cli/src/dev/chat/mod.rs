//! The chat page of a development fleet: conversations of one person, over HTTP on this machine alone.
//!
//! Everything goes over the public path as that person, like the calls of any client; nothing here reads the ledger. The page
//! serves whoever has given the code that was printed, and nobody else: other pages of the same browser, other names for this
//! address and other machines are refused. It is not made for anything but development.

mod answer;
mod calls;
mod events;
mod gate;
mod serve;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use runfleet_broker::Broker;
use runfleet_client::Client;
use runfleet_domain::Name;
use runfleet_identity::Signer;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::events::Events;
use self::gate::Gate;
use crate::context::claims;

/// Whose conversations are shown, and for which project the calls are made.
#[derive(Debug, Clone)]
pub struct Whose {
    /// The workspace.
    pub workspace: Name,
    /// The project.
    pub project: Name,
    /// The person.
    pub person: Name,
}

/// What every request needs.
struct Shared {
    gate: Gate,
    whose: Whose,
    signer: Signer,
    client: Client,
    events: Events,
    told: Box<dyn Fn(&str) + Send + Sync>,
}

impl Shared {
    /// A client with a token of its own: each call is an execution, so that no budget of one is ever used up.
    fn client(&self) -> Result<Client> {
        let Whose { workspace, project, person } = self.whose.clone();
        let claims = claims(workspace, project, Some(person));
        let token = self.signer.mint(&claims).context("minting a token")?;
        Ok(self.client.clone().token(token))
    }
}

/// The page. It is gone when this is dropped.
pub struct ChatPage {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl ChatPage {
    /// Serves the page at a listener, which must be one of the loopback interface. `told` gets each code that opens the page: one at
    /// once, and the next one whenever one was used.
    pub fn start(
        listener: TcpListener,
        broker: &Broker,
        whose: Whose,
        signer: Signer,
        told: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self> {
        let address = listener.local_addr().context("finding the address of the page")?;
        anyhow::ensure!(address.ip().is_loopback(), "the page is for this machine alone");
        let (gate, code) = Gate::new(address.port())?;
        told(&code);
        let shared = Shared {
            gate,
            client: Client::new(broker, SecretString::default()),
            events: Events::hear(broker, &whose),
            whose,
            signer,
            told: Box::new(told),
        };
        let serving = tokio::spawn(serve::serve(listener, Arc::new(shared)));
        Ok(Self { address, serving })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for ChatPage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
