//! The operator's list of targets that may be called although they are not public. Pure.

use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use crate::address::shares;

/// Entries at most.
const ENTRIES_MAX: usize = 256;

/// Why a list cannot be read. Holds the place, never the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllowListError {
    /// An entry is none of the forms; counted from 1.
    #[error("entry {0} is not a host, host:port, address or network")]
    Entry(usize),
    /// A network has bits behind its prefix, which says that something else was meant; counted from 1.
    #[error("entry {0} is an address inside a network, not the network")]
    Network(usize),
    /// There are too many.
    #[error("has more than {ENTRIES_MAX} entries")]
    TooMany,
}

/// A host as a URL has it, with its port if only that one is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    host: String,
    port: Option<u16>,
}

/// Targets that may be called although they are not public. Separated by commas; empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    places: Vec<Place>,
    nets: Vec<(IpAddr, u32)>,
}

impl AllowList {
    /// Whether a place is listed by the name or address that a URL has for it. `host` in the form that URLs are read into.
    pub(crate) fn names(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.');
        self.places
            .iter()
            .any(|place| place.host == host && place.port.is_none_or(|only| only == port))
    }

    /// Whether an address is listed, whatever the port.
    pub(crate) fn covers(&self, address: IpAddr) -> bool {
        self.nets.iter().any(|(first, bits)| shares(address, *first, *bits))
    }

    /// Whether any address is listed.
    pub(crate) fn has_nets(&self) -> bool {
        !self.nets.is_empty()
    }

    fn add(&mut self, at: usize, entry: &str) -> Result<(), AllowListError> {
        let wrong = AllowListError::Entry(at);
        if let Some((first, bits)) = entry.split_once('/') {
            let first: IpAddr = first.parse().map_err(|_| wrong)?;
            let bits: u32 = bits.parse().map_err(|_| wrong)?;
            let (all, inside) = match first {
                IpAddr::V4(first) => (32, first.to_bits().checked_shl(bits).unwrap_or(0) != 0),
                IpAddr::V6(first) => (128, first.to_bits().checked_shl(bits).unwrap_or(0) != 0),
            };
            if bits > all {
                return Err(wrong);
            }
            if inside {
                return Err(AllowListError::Network(at));
            }
            self.nets.push((first, bits));
        } else if let Ok(address) = entry.parse::<IpAddr>() {
            self.nets.push((address, if address.is_ipv4() { 32 } else { 128 }));
        } else {
            self.places.push(place(entry).ok_or(wrong)?);
        }
        Ok(())
    }
}

/// Reads `host`, `host:port`, `address:port` or `[address]:port`.
fn place(entry: &str) -> Option<Place> {
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) => {
            let digits = port.bytes().all(|byte| byte.is_ascii_digit());
            (name, Some(port.parse().ok().filter(|port: &u16| digits && *port > 0)?))
        }
        None => (entry, None),
    };
    // Written as a URL so that both sides are compared in the same form.
    let url = Url::parse(&format!("https://{name}/")).ok()?;
    let plain = url.path() == "/"
        && url.username().is_empty()
        && url.password().is_none()
        && url.port().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let host = url.host_str().filter(|_| plain)?.trim_end_matches('.').to_owned();
    // Spellings like 0x7f.1 turn into addresses: whoever writes a list means what is there.
    let becomes_address = host.parse::<IpAddr>().is_ok() && host != name;
    let name_like = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[:]".contains(&byte);
    let clear = !host.is_empty() && host.bytes().all(name_like) && !becomes_address;
    clear.then_some(Place { host, port })
}

impl FromStr for AllowList {
    type Err = AllowListError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut list = Self::default();
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        for (index, entry) in entries.enumerate() {
            if index >= ENTRIES_MAX {
                return Err(AllowListError::TooMany);
            }
            list.add(index + 1, entry)?;
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> AllowList {
        text.parse().unwrap()
    }

    #[test]
    fn a_list_has_names_addresses_and_networks() {
        let list = list(
            "Directory.internal, billing.internal:8080,,10.0.0.0/8, fd00::5 ,[::1]:80,127.0.0.1:8081",
        );
        assert!(list.names("directory.internal", 1) && list.names("directory.internal.", 443));
        assert!(!list.names("x.directory.internal", 443) && !list.names("internal", 443));
        assert!(list.names("billing.internal", 8080) && !list.names("billing.internal", 443));
        assert!(list.names("[::1]", 80) && !list.names("[::1]", 81));
        assert!(list.names("127.0.0.1", 8081) && !list.names("127.0.0.1", 8080));
        let covers = |text: &str| list.covers(text.parse().unwrap());
        assert!(covers("10.255.0.1") && covers("fd00::5"));
        assert!(!covers("11.0.0.1") && !covers("fd00::6") && !covers("127.0.0.1"));
        assert!(!AllowList::default().has_nets());
    }

    #[test]
    fn what_is_not_clear_is_no_entry() {
        for entry in [
            "http://a",
            "a/b",
            "user@host",
            "user:pass@host",
            "host:",
            "host:0",
            "host:65536",
            "host:+80",
            "0x7f.1",
            "2130706433",
            "127.1:80",
            "10.0.0.0/33",
            "10.0.0.0/",
            "::/129",
            "a b",
            "a?b",
            "a#b",
            ".",
            "*",
            "fd00::5:80:80:80:80:80:80",
        ] {
            let found = format!("ok.internal,{entry}").parse::<AllowList>();
            assert_eq!(found, Err(AllowListError::Entry(2)), "{entry}");
        }
        assert_eq!("10.0.0.1/8".parse::<AllowList>(), Err(AllowListError::Network(1)));
        assert!("0.0.0.0/0,::/0,10.0.0.1/32".parse::<AllowList>().is_ok());
        let many = vec!["a"; ENTRIES_MAX + 1].join(",");
        assert_eq!(many.parse::<AllowList>(), Err(AllowListError::TooMany));
    }
}
