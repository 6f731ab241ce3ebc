//! Names to addresses, of which only those that pass the guard are ever seen by the connector.

use std::error::Error;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::guard::{Ground, Guard, NotAllowed};

/// Look-ups at once. The system's resolver blocks a thread, possibly for long; more than these wait within their own bound.
const LOOKUPS_MAX: usize = 32;

/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 16;

/// A look-up on its way.
pub type Lookups = Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a name. Whatever it answers is judged afterwards.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of `name`.
    fn lookup(&self, name: &str) -> Lookups;
}

/// The resolver of the system.
pub(crate) struct SystemLookup {
    permits: Arc<Semaphore>,
}

impl SystemLookup {
    pub(crate) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Lookup for SystemLookup {
    fn lookup(&self, name: &str) -> Lookups {
        let (permits, name) = (Arc::clone(&self.permits), name.to_owned());
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(std::io::Error::other)?;
            let asked = tokio::task::spawn_blocking(move || {
                // Held by the thread, which goes on when nobody waits for it any more.
                let _permit = permit;
                let found = (name.as_str(), 0).to_socket_addrs()?;
                Ok(found.map(|address| address.ip()).collect())
            });
            asked.await.map_err(std::io::Error::other)?
        })
    }
}

/// A name has no address.
#[derive(Debug, thiserror::Error)]
#[error("the name has no address")]
struct NoAddress;

/// Hands only judged addresses to the connector. A connection is made to what this returns and to nothing else.
pub(crate) struct Judged {
    pub(crate) guard: Arc<Guard>,
    pub(crate) ground: Ground,
    pub(crate) lookup: Arc<dyn Lookup>,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, ground) = (Arc::clone(&self.guard), self.ground);
        let found = self.lookup.lookup(name.as_str());
        Box::pin(async move {
            let found = found.await?;
            if found.is_empty() {
                return Err(Box::<dyn Error + Send + Sync>::from(NoAddress));
            }
            let passed: Vec<_> = found
                .into_iter()
                .filter(|address| guard.passes(ground, *address))
                .take(ADDRESSES_MAX)
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if passed.is_empty() {
                return Err(NotAllowed::Address.into());
            }
            Ok(Box::new(passed.into_iter()) as Addrs)
        })
    }
}
