//! The policy: which URLs may be called and which addresses may be connected to. Pure.

use std::net::IpAddr;

use reqwest::Url;

use crate::address::{Reach, reach};
use crate::allow::AllowList;

/// Why a target is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// The URL has a scheme, user information or a port that is not allowed.
    #[error("the URL is not allowed")]
    Url,
    /// The address, or every address that the name resolves to, is not allowed.
    #[error("the address is not allowed")]
    Address,
}

/// On what ground a URL was let through: it says which addresses its name may resolve to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Public addresses and those that the operator has listed.
    Public,
    /// Only addresses that the operator has listed: plain `http` to a name that is not listed.
    Listed,
    /// The operator has listed the name: also loopback and private addresses.
    Named,
}

impl Ground {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Public, Self::Listed, Self::Named];
}

/// Decides about targets.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allow: AllowList,
}

impl Guard {
    /// A guard that lets through what is public and what is listed.
    pub fn new(allow: AllowList) -> Self {
        Self { allow }
    }

    /// Whether a URL may be called. A URL with an address is decided for good; for one with a name, the addresses that the
    /// name resolves to are to be judged on the ground that is returned.
    pub fn admit(&self, url: &Url) -> Result<Ground, NotAllowed> {
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(NotAllowed::Url),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(NotAllowed::Url)?;
        let port = url.port_or_known_default().filter(|port| *port > 0).ok_or(NotAllowed::Url)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NotAllowed::Url);
        }
        let named = self.allow.names(host, port);
        if let Some(address) = address_of(host) {
            let listed = named || self.allow.covers(address);
            return match reach(address) {
                _ if listed => Ok(Ground::Named),
                Reach::Public if secure => Ok(Ground::Public),
                Reach::Public => Err(NotAllowed::Url),
                Reach::Internal | Reach::Never => Err(NotAllowed::Address),
            };
        }
        match (named, secure) {
            (true, _) => Ok(Ground::Named),
            (false, true) => Ok(Ground::Public),
            (false, false) if self.allow.has_nets() => Ok(Ground::Listed),
            (false, false) => Err(NotAllowed::Url),
        }
    }

    /// Whether a name that was let through on `ground` may be connected to at `address`.
    pub fn passes(&self, ground: Ground, address: IpAddr) -> bool {
        self.allow.covers(address)
            || match (ground, reach(address)) {
                (Ground::Public | Ground::Named, Reach::Public)
                | (Ground::Named, Reach::Internal) => true,
                (Ground::Listed, _) | (Ground::Public, Reach::Internal) | (_, Reach::Never) => {
                    false
                }
            }
    }
}

/// The address that a host of a URL is, if it is not a name. Reading a URL has turned every spelling of an IPv4 address into
/// the plain one.
fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(allow: &str) -> Guard {
        Guard::new(allow.parse().unwrap())
    }

    fn admit(guard: &Guard, url: &str) -> Result<Ground, NotAllowed> {
        guard.admit(&url.parse().unwrap())
    }

    #[test]
    fn no_spelling_of_an_address_that_is_not_public_is_let_through() {
        let guard = guard("");
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "0",
            "0.0.0.0",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "127。0。0。1",
            "①②⑦.0.0.1",
            "169.254.169.254",
            "2852039166",
            "0xA9.0xFE.0xA9.0xFE",
            "10.0.0.1",
            "192.168.0.1",
            "100.64.0.1",
            "255.255.255.255",
            "[::1]",
            "[::]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[2002:7f00:1::]",
            "[2001:0:7f00:1::]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[fc00::1]",
        ] {
            for port in ["", ":8443"] {
                let url = format!("https://{host}{port}/x");
                assert_eq!(admit(&guard, &url), Err(NotAllowed::Address), "{url}");
            }
        }
    }

    #[test]
    fn only_https_without_user_information_is_let_through() {
        let guard = guard("");
        assert_eq!(admit(&guard, "https://example.com/x?y"), Ok(Ground::Public));
        assert_eq!(admit(&guard, "https://example.com.:8443"), Ok(Ground::Public));
        assert_eq!(admit(&guard, "https://bücher.example"), Ok(Ground::Public));
        assert_eq!(admit(&guard, "https://8.8.8.8"), Ok(Ground::Public));
        // A backslash ends the host as a slash does: this calls example.com, not what follows.
        assert_eq!(admit(&guard, "https://example.com\\@127.0.0.1"), Ok(Ground::Public));
        for url in [
            "http://example.com",
            "http://8.8.8.8",
            "ftp://example.com",
            "file:///etc/passwd",
            "data:text/plain,x",
            "ws://example.com",
            "https://example.com:0",
            "https://user@example.com",
            "https://user:pass@example.com",
            "https://:pass@example.com",
            "https://example.com@127.0.0.1",
            "https://127.0.0.1@example.com",
        ] {
            assert_eq!(admit(&guard, url), Err(NotAllowed::Url), "{url}");
        }
    }

    #[test]
    fn what_the_operator_has_listed_is_let_through_and_nothing_beside_it() {
        let guard = guard("directory.internal:8080, 10.0.0.0/8, 127.0.0.1:9000");
        for (url, expected) in [
            ("http://directory.internal:8080/", Ok(Ground::Named)),
            ("https://DIRECTORY.internal.:8080/", Ok(Ground::Named)),
            ("http://directory.internal:8081/", Ok(Ground::Listed)),
            ("https://directory.internal/", Ok(Ground::Public)),
            ("http://10.1.2.3/", Ok(Ground::Named)),
            ("https://0x0a.1.2.3/", Ok(Ground::Named)),
            ("https://11.1.2.3/", Ok(Ground::Public)),
            ("http://11.1.2.3/", Err(NotAllowed::Url)),
            ("http://127.0.0.1:9000/", Ok(Ground::Named)),
            ("http://127.0.0.1:9001/", Err(NotAllowed::Address)),
            ("http://[::ffff:10.1.2.3]/", Err(NotAllowed::Address)),
            ("http://user@directory.internal:8080/", Err(NotAllowed::Url)),
        ] {
            assert_eq!(admit(&guard, url), expected, "{url}");
        }
    }

    #[test]
    fn the_ground_says_which_addresses_a_name_may_have() {
        let guard = guard("10.0.0.0/8");
        let passes = |address: &str| {
            Ground::ALL.map(|ground| guard.passes(ground, address.parse().unwrap()))
        };
        assert_eq!(passes("8.8.8.8"), [true, false, true]);
        assert_eq!(passes("10.1.2.3"), [true, true, true]);
        assert_eq!(passes("127.0.0.1"), [false, false, true]);
        assert_eq!(passes("fd00::1"), [false, false, true]);
        assert_eq!(passes("169.254.169.254"), [false, false, false]);
        assert_eq!(passes("::ffff:8.8.8.8"), [false, false, false]);
    }
}
