//! Addresses and identities as text, and what they have to look like.
//!
//! A node's key is its name on the network: a libp2p peer id of the "identity" kind holds the
//! ed25519 key itself, so an author and a peer id are the same 32 bytes in two spellings. A peer id
//! that is only a hash of a key, or holds another kind of key, names nobody here and is refused.
//! An address is `/ip4`, `/ip6`, `/dns`, `/dns4` or `/dns6`, then `/tcp`, then perhaps `/p2p`:
//! nothing else is ever dialled. Nothing here resolves or dials.

use klnode_crdt::ids::AuthorId;
use libp2p::PeerId;
use libp2p::multiaddr::{Multiaddr, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What stands before the key in a peer id: an identity hash of 36 bytes, which are a protobuf
/// message with the key type 1 (ed25519) and 32 bytes of key.
const PEER_ID_PREFIX: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

/// Why a text is no address of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is not a multiaddr at all.
    #[error("read {address:?} as a multiaddr: {reason}")]
    NoMultiaddr {
        /// The text.
        address: String,
        /// What the parser says.
        reason: String,
    },
    /// It is a multiaddr of another transport.
    #[error(
        "use {address}: it is not /ip4, /ip6, /dns, /dns4 or /dns6 followed by /tcp and perhaps /p2p"
    )]
    OtherTransport {
        /// The address.
        address: String,
    },
    /// It is neither a multiaddr nor a host and a port.
    #[error("read {address:?} as an address: write host:port, [v6]:port or a multiaddr")]
    NoTarget {
        /// The text.
        address: String,
    },
    /// Its peer id is not an ed25519 key.
    #[error("use {address}: its peer id does not hold an ed25519 key")]
    OtherKey {
        /// The address.
        address: String,
    },
}

/// The author whose key a peer id (as text, `12D3Koo…`) holds; none if it holds no ed25519 key.
pub fn author_of(peer_id: &str) -> Option<AuthorId> {
    peer_id.parse().ok().and_then(|peer| author(&peer))
}

/// An author's key as a peer id, in text: what stands after `/p2p/` in its addresses.
pub fn peer_id_text(author: AuthorId) -> String {
    peer_id(&author).to_base58()
}

/// Reads an address: whom it must lead to, if it says so, and the address without that part.
pub fn parse_address(text: &str) -> Result<(Option<AuthorId>, String), AddressError> {
    let (author, address) = parse(text)?;
    Ok((author, address.to_string()))
}

/// Reads what an operator types to name a node: a multiaddr, or `host:port`, where an IPv6 address
/// stands in brackets. Returns whom it must lead to, if it says so, and the multiaddr without that part.
pub fn parse_target(text: &str) -> Result<(Option<AuthorId>, String), AddressError> {
    let text = text.trim();
    if text.starts_with('/') {
        return parse_address(text);
    }
    let no_target = || AddressError::NoTarget { address: text.to_owned() };
    let (host, port) = text.rsplit_once(':').ok_or_else(no_target)?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(no_target)?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_name = |host: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        !host.is_empty() && host.len() <= 253 && host.chars().all(fits)
    };
    let address = match (bracketed, host.parse::<Ipv4Addr>()) {
        (Some(inner), _) => {
            let ip: Ipv6Addr = inner.parse().map_err(|_| no_target())?;
            format!("/ip6/{ip}/tcp/{port}")
        }
        (None, Ok(ip)) => format!("/ip4/{ip}/tcp/{port}"),
        (None, Err(_)) if is_name(host) => format!("/dns/{host}/tcp/{port}"),
        (None, Err(_)) => return Err(no_target()),
    };
    parse_address(&address)
}

/// The place on the network that an address is at, for rate limits: an IPv4 host or an IPv6 /64.
pub fn source_of(address: &str) -> Option<IpAddr> {
    source(&address.parse().ok()?)
}

/// As [`parse_address`], for use in here.
pub(super) fn parse(text: &str) -> Result<(Option<AuthorId>, Multiaddr), AddressError> {
    let mut address: Multiaddr = text.trim().parse().map_err(|e: libp2p::multiaddr::Error| {
        AddressError::NoMultiaddr { address: text.to_owned(), reason: e.to_string() }
    })?;
    let peer = match address.iter().last() {
        Some(Protocol::P2p(peer)) => {
            address.pop();
            let other = || AddressError::OtherKey { address: text.to_owned() };
            Some(author(&peer).ok_or_else(other)?)
        }
        _ => None,
    };
    if is_plain_tcp(&address) {
        Ok((peer, address))
    } else {
        Err(AddressError::OtherTransport { address: text.to_owned() })
    }
}

/// Whether an address is a host and a TCP port, and nothing else.
fn is_plain_tcp(address: &Multiaddr) -> bool {
    use Protocol::{Dns, Dns4, Dns6, Ip4, Ip6, Tcp};
    let mut parts = address.iter();
    matches!(parts.next(), Some(Ip4(_) | Ip6(_) | Dns(_) | Dns4(_) | Dns6(_)))
        && matches!(parts.next(), Some(Tcp(_)))
        && parts.next().is_none()
}

/// The port of an address, 0 if it has none.
pub(super) fn port(address: &Multiaddr) -> u16 {
    let port = address.iter().find_map(|part| match part {
        Protocol::Tcp(port) => Some(port),
        _ => None,
    });
    port.unwrap_or_default()
}

/// The place on the network that an address is at: a host of IPv4, or a network of IPv6 (/64), all of
/// whose addresses a single host may use.
pub(super) fn source(address: &Multiaddr) -> Option<IpAddr> {
    address.iter().find_map(|part| match part {
        Protocol::Ip4(ip) => Some(IpAddr::V4(ip)),
        Protocol::Ip6(ip) => match ip.to_canonical() {
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Some(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
            }
            v4 => Some(v4),
        },
        _ => None,
    })
}

/// The key that a peer id holds.
pub(super) fn author(peer: &PeerId) -> Option<AuthorId> {
    AuthorId::from_slice(peer.to_bytes().strip_prefix(&PEER_ID_PREFIX)?)
}

/// The peer id that holds a key.
pub(super) fn peer_id(author: &AuthorId) -> PeerId {
    let bytes = [PEER_ID_PREFIX.as_slice(), author.as_bytes()].concat();
    PeerId::from_bytes(&bytes).expect("36 bytes are few enough for an identity hash")
}

/// The address with its peer id at the end, as it is told to others.
pub(super) fn full(address: &Multiaddr, author: &AuthorId) -> String {
    bare(address.clone()).with(Protocol::P2p(peer_id(author))).to_string()
}

/// The address without a peer id at its end.
pub(super) fn bare(mut address: Multiaddr) -> Multiaddr {
    if matches!(address.iter().last(), Some(Protocol::P2p(_))) {
        address.pop();
    }
    address
}

/// Whether a peer's word about its own address is worth a dial: a numeric address that can lead
/// somewhere, and this machine itself only where the peer is on it too.
pub(super) fn is_worth_learning(address: &Multiaddr, seen_at: &Multiaddr) -> bool {
    let is_loopback = |address: &Multiaddr| match address.iter().next() {
        Some(Protocol::Ip4(ip)) => ip.is_loopback(),
        Some(Protocol::Ip6(ip)) => ip.is_loopback(),
        _ => false,
    };
    let leads_somewhere = match address.iter().next() {
        Some(Protocol::Ip4(ip)) => !ip.is_unspecified() && !ip.is_link_local(),
        // A link-local address needs a zone, which is another one on each machine.
        Some(Protocol::Ip6(ip)) => !ip.is_unspecified() && !ip.is_unicast_link_local(),
        _ => false,
    };
    is_plain_tcp(address) && leads_somewhere && (!is_loopback(address) || is_loopback(seen_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::key::SecretKey;

    #[test]
    fn an_author_and_its_peer_id_are_the_same_key() {
        let key = SecretKey::from_bytes(&[7; 32]);
        let text = peer_id_text(key.author());
        let pair = libp2p::identity::Keypair::ed25519_from_bytes(*key.to_bytes()).unwrap();
        assert_eq!(text, pair.public().to_peer_id().to_base58());
        assert_eq!(author_of(&text), Some(key.author()));
    }

    #[test]
    fn a_peer_id_that_holds_no_ed25519_key_names_nobody() {
        // A hash of a key, an identity hash of another length, and no peer id.
        assert_eq!(author_of("QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"), None);
        let secp256k1 = [&[0x00, 0x25, 0x08, 0x02, 0x12, 0x21][..], &[2; 33]].concat();
        assert_eq!(author(&PeerId::from_bytes(&secp256k1).unwrap()), None);
        assert_eq!(author_of("nobody"), None);
    }

    #[test]
    fn an_address_reads_with_and_without_a_peer() {
        let author = SecretKey::from_bytes(&[7; 32]).author();
        for host in ["/ip4/127.0.0.1", "/ip6/::1", "/dns/a.b", "/dns4/a.b", "/dns6/a.b"] {
            let bare = format!("{host}/tcp/7700");
            assert_eq!(parse_address(&bare), Ok((None, bare.clone())));
            let whole = format!("{bare}/p2p/{}", peer_id_text(author));
            assert_eq!(parse_address(&whole), Ok((Some(author), bare.clone())));
            assert_eq!(full(&bare.parse().unwrap(), &author), whole);
        }
    }

    #[test]
    fn a_target_is_a_multiaddr_or_a_host_and_a_port() {
        for (text, expect) in [
            ("192.0.2.1:7700", "/ip4/192.0.2.1/tcp/7700"),
            ("[2001:db8::1]:7700", "/ip6/2001:db8::1/tcp/7700"),
            ("vm.example:7700", "/dns/vm.example/tcp/7700"),
            (" localhost:1 ", "/dns/localhost/tcp/1"),
            ("/dns4/vm.example/tcp/1", "/dns4/vm.example/tcp/1"),
        ] {
            assert_eq!(parse_target(text), Ok((None, expect.to_owned())), "{text}");
        }
        for text in
            ["", "vm", "vm:", "vm:0", "vm:99999", "2001:db8::1:1", "[vm]:1", "a b:1", "a/b:1"]
        {
            assert!(parse_target(text).is_err(), "{text}");
        }
    }

    #[test]
    fn other_transports_and_other_keys_are_no_addresses() {
        let transports = [
            "/ip4/1.2.3.4",
            "/ip4/1.2.3.4/udp/1/quic-v1",
            "/ip4/1.2.3.4/tcp/1/ws",
            "/dnsaddr/a.b",
            "/unix/tmp",
            "/memory/1",
            "",
        ];
        for address in transports {
            let read = parse_address(address);
            assert!(
                matches!(read, Err(AddressError::OtherTransport { .. })),
                "{address}: {read:?}"
            );
        }
        let hashed = "/ip4/1.2.3.4/tcp/1/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N";
        assert!(matches!(parse_address(hashed), Err(AddressError::OtherKey { .. })));
        assert!(matches!(parse_address("localhost:1"), Err(AddressError::NoMultiaddr { .. })));
    }

    #[test]
    fn a_peer_elsewhere_cannot_send_us_to_our_own_ports() {
        let read = |text: &str| text.parse::<Multiaddr>().unwrap();
        let (here, there) = (read("/ip4/127.0.0.1/tcp/5"), read("/ip4/10.0.0.2/tcp/5"));
        assert!(is_worth_learning(&here, &here));
        assert!(!is_worth_learning(&here, &there));
        assert!(is_worth_learning(&there, &there));
        for useless in ["/ip4/0.0.0.0/tcp/5", "/ip6/fe80::1/tcp/5", "/dns/a.b/tcp/5"] {
            assert!(!is_worth_learning(&read(useless), &here), "{useless}");
        }
    }
}
