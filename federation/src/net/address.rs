//! Parses and formats addresses and peer ids.
//!
//! A node's key is its name on the network: a libp2p peer id of the "identity" kind contains the
//! ed25519 key itself, so an author and a peer id are the same 32 bytes in two notations. A peer id
//! that is only a hash of a key, or contains another type of key, is refused. An address is `/ip4`,
//! `/ip6`, `/dns`, `/dns4` or `/dns6`, then `/tcp`, then optionally `/p2p`; no other address is
//! ever dialled. This module neither resolves nor dials.

use klnode_crdt::ids::AuthorId;
use libp2p::PeerId;
use libp2p::multiaddr::{Multiaddr, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes before the key in a peer id: an identity hash of 36 bytes, which are a protobuf message
/// with key type 1 (ed25519) and 32 key bytes.
const PEER_ID_PREFIX: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

/// Why a text is not a node's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not a multiaddr.
    #[error("{address:?} is not a multiaddr: {reason}.")]
    NoMultiaddr {
        /// The text that was parsed.
        address: String,
        /// The parser's message.
        reason: String,
    },
    /// The multiaddr uses a transport other than TCP.
    #[error(
        "{address} is not supported. Use /ip4, /ip6, /dns, /dns4 or /dns6, then /tcp, then \
         optionally /p2p."
    )]
    OtherTransport {
        /// The multiaddr as it was given.
        address: String,
    },
    /// The text is neither a multiaddr nor a host and a port.
    #[error("{address:?} is not an address. Write host:port, [v6]:port or a multiaddr.")]
    NoTarget {
        /// The text that was parsed.
        address: String,
    },
    /// The peer id does not contain an ed25519 key.
    #[error("{address} cannot be used: its peer id does not contain an ed25519 key.")]
    OtherKey {
        /// The multiaddr as it was given.
        address: String,
    },
}

/// The author whose key a textual peer id (`12D3Koo…`) contains; `None` without an ed25519 key.
pub fn author_of(peer_id: &str) -> Option<AuthorId> {
    peer_id.parse().ok().and_then(|peer| author(&peer))
}

/// An author's key as a textual peer id, as it follows `/p2p/` in an address.
pub fn peer_id_text(author: AuthorId) -> String {
    peer_id(&author).to_base58()
}

/// Parses a multiaddr. Returns the peer that must answer there, if the address names one, and the
/// address without its `/p2p` part.
pub fn parse_address(text: &str) -> Result<(Option<AuthorId>, String), AddressError> {
    let (author, address) = parse(text)?;
    Ok((author, address.to_string()))
}

/// Parses a node's address as an operator types it: a multiaddr or `host:port`, with an IPv6
/// address in brackets. Returns the peer that must answer there, if the address names one, and the
/// multiaddr without its `/p2p` part.
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

/// The network an address belongs to, for rate limits: an IPv4 host or an IPv6 /64.
pub fn source_of(address: &str) -> Option<IpAddr> {
    source(&address.parse().ok()?)
}

/// [`parse_address`] for callers that need a [`Multiaddr`].
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

/// True if an address is a host and a TCP port, with no further parts.
fn is_plain_tcp(address: &Multiaddr) -> bool {
    use Protocol::{Dns, Dns4, Dns6, Ip4, Ip6, Tcp};
    let mut parts = address.iter();
    matches!(parts.next(), Some(Ip4(_) | Ip6(_) | Dns(_) | Dns4(_) | Dns6(_)))
        && matches!(parts.next(), Some(Tcp(_)))
        && parts.next().is_none()
}

/// The TCP port of an address, or 0 without one.
pub(super) fn port(address: &Multiaddr) -> u16 {
    let port = address.iter().find_map(|part| match part {
        Protocol::Tcp(port) => Some(port),
        _ => None,
    });
    port.unwrap_or_default()
}

/// The network an address belongs to: an IPv4 host, or an IPv6 /64, all of whose addresses one host
/// may use.
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

/// The key in a peer id; `None` if it contains no ed25519 key.
pub(super) fn author(peer: &PeerId) -> Option<AuthorId> {
    AuthorId::from_slice(peer.to_bytes().strip_prefix(&PEER_ID_PREFIX)?)
}

/// The peer id that contains an author's key.
pub(super) fn peer_id(author: &AuthorId) -> PeerId {
    let bytes = [PEER_ID_PREFIX.as_slice(), author.as_bytes()].concat();
    PeerId::from_bytes(&bytes).expect("an identity hash holds up to 42 bytes")
}

/// The address followed by the peer id, as it is shown to others.
pub(super) fn full(address: &Multiaddr, author: &AuthorId) -> String {
    bare(address.clone()).with(Protocol::P2p(peer_id(author))).to_string()
}

/// The address without a trailing peer id.
pub(super) fn bare(mut address: Multiaddr) -> Multiaddr {
    if matches!(address.iter().last(), Some(Protocol::P2p(_))) {
        address.pop();
    }
    address
}

/// True if an address that a peer announced is worth dialling: numeric, routable, and a loopback
/// address only if the peer is on this machine.
pub(super) fn is_worth_learning(address: &Multiaddr, seen_at: &Multiaddr) -> bool {
    let is_loopback = |address: &Multiaddr| match address.iter().next() {
        Some(Protocol::Ip4(ip)) => ip.is_loopback(),
        Some(Protocol::Ip6(ip)) => ip.is_loopback(),
        _ => false,
    };
    let leads_somewhere = match address.iter().next() {
        Some(Protocol::Ip4(ip)) => !ip.is_unspecified() && !ip.is_link_local(),
        // A link-local address needs a zone, which differs between machines.
        Some(Protocol::Ip6(ip)) => !ip.is_unspecified() && !ip.is_unicast_link_local(),
        _ => false,
    };
    is_plain_tcp(address) && leads_somewhere && (!is_loopback(address) || is_loopback(seen_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::signing_key::SecretKey;

    #[test]
    fn author_and_peer_id_hold_the_same_key() {
        let key = SecretKey::from_bytes(&[7; 32]);
        let text = peer_id_text(key.author());
        let pair = libp2p::identity::Keypair::ed25519_from_bytes(*key.to_bytes()).unwrap();
        assert_eq!(text, pair.public().to_peer_id().to_base58());
        assert_eq!(author_of(&text), Some(key.author()));
    }

    #[test]
    fn a_peer_id_without_an_ed25519_key_is_refused() {
        // A hash of a key, an identity hash of another length, and a text that is no peer id.
        assert_eq!(author_of("QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"), None);
        let secp256k1 = [&[0x00, 0x25, 0x08, 0x02, 0x12, 0x21][..], &[2; 33]].concat();
        assert_eq!(author(&PeerId::from_bytes(&secp256k1).unwrap()), None);
        assert_eq!(author_of("no peer id"), None);
    }

    #[test]
    fn an_address_parses_with_and_without_a_peer_id() {
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
    fn other_transports_and_key_types_are_refused() {
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
    fn a_remote_peer_cannot_announce_loopback_addresses() {
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
