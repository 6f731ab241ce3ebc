//! What kind of address an address is. Pure.
//!
//! IPv6 is judged the other way round from IPv4: almost nothing of it is assigned, so only what is global is let through.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far an address reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everywhere.
    Public,
    /// This machine or the operator's own network: loopback, private, shared, unique local.
    Internal,
    /// Nothing that a call has any business with: link-local and metadata, multicast, unassigned, in documents only, or another
    /// address in disguise.
    Never,
}

/// An IPv4 network: its first address and the bits that all its addresses share.
type Net4 = ([u8; 4], u32);

/// The operator's own.
const INTERNAL_4: [Net4; 5] = [
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
];

/// Never called. The two single addresses answer as metadata services in clouds of Alibaba and Azure.
const NEVER_4: [Net4; 12] = [
    ([0, 0, 0, 0], 8),
    ([100, 100, 100, 200], 32),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Inside the global space of IPv6, and yet not to be called: protocol assignments with Teredo, documentation, 6to4.
const NEVER_6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The metadata service of Amazon's cloud, in the middle of the unique local addresses.
const METADATA_6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// How far `address` reaches.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_4(address),
        IpAddr::V6(address) => reach_6(address),
    }
}

fn reach_4(address: Ipv4Addr) -> Reach {
    let within = |nets: &[Net4]| {
        nets.iter()
            .any(|(first, bits)| shares(address.into(), Ipv4Addr::from(*first).into(), *bits))
    };
    if within(&NEVER_4) {
        Reach::Never
    } else if within(&INTERNAL_4) {
        Reach::Internal
    } else {
        Reach::Public
    }
}

fn reach_6(address: Ipv6Addr) -> Reach {
    let within = |first: Ipv6Addr, bits| shares(address.into(), first.into(), bits);
    let unique_local = within(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7);
    if address == Ipv6Addr::LOCALHOST || (unique_local && address != METADATA_6) {
        Reach::Internal
    } else if within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3)
        && !NEVER_6.iter().any(|(first, bits)| within(*first, *bits))
    {
        Reach::Public
    } else {
        Reach::Never
    }
}

/// Whether two addresses of one family share their first `bits`. Of two families they never do.
pub(crate) fn shares(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let differing = one.to_bits() ^ other.to_bits();
            differing.leading_zeros() >= bits
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let differing = one.to_bits() ^ other.to_bits();
            differing.leading_zeros() >= bits
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: Reach, addresses: &str) {
        for text in addresses.split_whitespace() {
            assert_eq!(reach(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn every_kind_of_address_is_told_from_the_public_ones() {
        check(
            Reach::Public,
            "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
             128.0.0.0 172.15.255.255 172.32.0.0 192.0.1.0 198.17.255.255 198.20.0.0 \
             223.255.255.255 2606:4700:4700::1111 2a00::1 2001:200::1",
        );
        check(
            Reach::Internal,
            "10.0.0.0 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 \
             172.16.0.1 172.31.255.255 192.168.1.1 ::1 fc00::1 fd12:3456::1 fdff:ffff::1",
        );
        check(
            Reach::Never,
            "0.0.0.0 0.1.2.3 100.100.100.200 168.63.129.16 169.254.169.254 169.254.0.1 \
             192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 \
             203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: \
             ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 \
             2001::1 2001:0:7f00:1:: 2001:2::1 2001:10::1 2001:db8::1 2002:7f00:1:: 3fff::1 \
             4000::1 5f00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1",
        );
    }

    #[test]
    fn networks_have_their_edges_where_their_bits_say() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(shares(address("10.1.2.3"), address("10.1.0.0"), 16));
        assert!(!shares(address("10.2.0.0"), address("10.1.0.0"), 16));
        assert!(shares(address("10.1.2.3"), address("10.1.2.3"), 32));
        assert!(shares(address("8.8.8.8"), address("10.1.2.3"), 0));
        assert!(shares(address("fd00::1"), address("fd00::2"), 126));
        assert!(!shares(address("::ffff:10.1.2.3"), address("10.1.2.3"), 8));
    }
}
