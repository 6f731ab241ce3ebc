//! Judges the addresses of places with which something else than HTTP is spoken, by the same rules.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::Url;

use crate::allow::AllowList;
use crate::guard::{Guard, NotAllowed};
use crate::resolve::{Lookup, SystemLookup};

/// Addresses of one place that are given.
const ADDRESSES_MAX: usize = 8;

/// Why there is no address to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// The place may not be connected to.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The name has no address, or nobody could say.
    #[error("the name has no address")]
    Unknown,
}

/// Finds and judges addresses. The caller connects to what it gives, and to nothing else.
#[derive(Clone)]
pub struct Judge {
    guard: Guard,
    lookup: Arc<dyn Lookup>,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl Judge {
    /// One that lets through what is public and what is listed, and asks the resolver of the system.
    pub fn new(allow: AllowList) -> Self {
        Self { guard: Guard::new(allow), lookup: Arc::new(SystemLookup::new()) }
    }

    /// The addresses of a place that may be connected to. What is not protected by TLS goes only to places that are listed.
    /// The caller bounds the time.
    pub async fn addresses(
        &self,
        host: &str,
        port: u16,
        protected: bool,
    ) -> Result<Vec<IpAddr>, NoAddress> {
        let scheme = if protected { "https" } else { "http" };
        let literal = host.parse::<IpAddr>();
        let host_of_url = match literal {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => host.to_owned(),
        };
        let url = Url::parse(&format!("{scheme}://{host_of_url}:{port}/"));
        let url = url.map_err(|_| NotAllowed::Url)?;
        let ground = self.guard.admit(&url)?;
        // Reading the URL may have made an address of what looked like a name.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let found = self.lookup.lookup(host).await.map_err(|_| NoAddress::Unknown)?;
        if found.is_empty() {
            return Err(NoAddress::Unknown);
        }
        let passed = found.into_iter().filter(|address| self.guard.passes(ground, *address));
        let passed: Vec<_> = passed.take(ADDRESSES_MAX).collect();
        if passed.is_empty() { Err(NotAllowed::Address.into()) } else { Ok(passed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn judged(allow: &str, host: &str, protected: bool) -> Result<usize, NoAddress> {
        let judge = Judge::new(allow.parse().unwrap());
        judge.addresses(host, 25, protected).await.map(|found| found.len())
    }

    #[tokio::test]
    async fn a_place_is_judged_as_a_url_of_it_would_be() {
        let url = Err(NoAddress::NotAllowed(NotAllowed::Url));
        let address = Err(NoAddress::NotAllowed(NotAllowed::Address));
        for (allow, host, protected, expected) in [
            ("", "8.8.8.8", true, Ok(1)),
            ("", "8.8.8.8", false, url),
            ("", "127.0.0.1", true, address),
            ("", "0x7f.1", true, address),
            ("", "::1", true, address),
            ("", "169.254.169.254", true, address),
            ("127.0.0.1:25", "127.0.0.1", false, Ok(1)),
            ("127.0.0.1:26", "127.0.0.1", false, address),
            ("[::1]:25", "::1", false, Ok(1)),
            ("", "a b", true, url),
            ("", "user@host", true, url),
        ] {
            assert_eq!(judged(allow, host, protected).await, expected, "{host} {allow}");
        }
        assert!(judged("localhost:25", "localhost", false).await.is_ok());
        assert_eq!(judged("", "localhost", true).await, address);
    }
}
