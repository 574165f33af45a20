//! Addresses of the node: multiaddrs for peers, a Unix socket and a loopback port for local
//! clients.
//!
//! These types check only the syntax. They never resolve a name and never open a file or a port;
//! only the operating system knows whether an address can be bound.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Value;

use super::InvalidValue;

/// A multiaddr to listen on, such as `/ip4/0.0.0.0/tcp/0`: an IP address, a port, and optional
/// further parts of the transport.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct ListenAddress(String);

impl ListenAddress {
    const BYTES_MAX: usize = 256;

    /// The multiaddr as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_well_formed(text: &str) -> bool {
        let mut parts = text.split('/');
        let (Some(""), Some(family), Some(address)) = (parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let address_fits = match family {
            "ip4" => address.parse::<Ipv4Addr>().is_ok(),
            "ip6" => address.parse::<Ipv6Addr>().is_ok(),
            _ => false,
        };
        let transport_fits = matches!(parts.next(), Some("tcp" | "udp"));
        let port_fits = parts.next().is_some_and(|port| port.parse::<u16>().is_ok());
        let rest_fits =
            parts.all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic()));
        text.len() <= Self::BYTES_MAX && address_fits && transport_fits && port_fits && rest_fits
    }
}

impl TryFrom<Value> for ListenAddress {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let text = value.as_str().unwrap_or_default();
        if Self::is_well_formed(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidValue::new("a multiaddr such as \"/ip4/0.0.0.0/tcp/0\""))
        }
    }
}

/// A multiaddr at which peers reach a node: `/ip4`, `/ip6`, `/dns`, `/dns4` or `/dns6`, then
/// `/tcp`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct PeerAddress(String);

impl PeerAddress {
    const BYTES_MAX: usize = 256;

    /// The multiaddr as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_well_formed(text: &str) -> bool {
        let parts: Vec<&str> = text.split('/').collect();
        let ["", family, host, "tcp", port] = parts.as_slice() else { return false };
        let is_name = |host: &str| {
            !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
        };
        let host_fits = match *family {
            "ip4" => host.parse::<Ipv4Addr>().is_ok_and(|ip| !ip.is_unspecified()),
            "ip6" => host.parse::<Ipv6Addr>().is_ok_and(|ip| !ip.is_unspecified()),
            "dns" | "dns4" | "dns6" => is_name(host),
            _ => false,
        };
        let port_fits = port.parse::<u16>().is_ok_and(|port| port > 0);
        text.len() <= Self::BYTES_MAX && host_fits && port_fits
    }
}

impl TryFrom<Value> for PeerAddress {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let text = value.as_str().unwrap_or_default();
        if Self::is_well_formed(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidValue::new("a multiaddr such as \"/dns4/hub.example.org/tcp/4600\""))
        }
    }
}

/// TCP access for local clients: "off", or a loopback address with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum LocalTcp {
    /// No TCP port for local clients.
    Off,
    /// Clients with the token may connect to this loopback address.
    At(SocketAddr),
}

impl TryFrom<Value> for LocalTcp {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let text = value.as_str().unwrap_or_default();
        if text == "off" {
            return Ok(Self::Off);
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Self::At(address)),
            _ => Err(InvalidValue::new("\"off\" or a loopback address such as \"127.0.0.1:7700\"")),
        }
    }
}

/// The path of the Unix socket: a file name in the node's home, or an absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct SocketPath(PathBuf);

impl SocketPath {
    /// Maximum length of the path in bytes. Linux allows 108, macOS 104.
    const BYTES_MAX: usize = 100;

    /// The path of the socket for a node with this home.
    #[must_use]
    pub fn in_home(&self, home: &Path) -> PathBuf {
        // Joining an absolute path yields the absolute path.
        home.join(&self.0)
    }
}

impl TryFrom<Value> for SocketPath {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let text = value.as_str().unwrap_or_default();
        let is_file_name = !text.contains('/') && !matches!(text, "" | "." | "..");
        let is_absolute = text.starts_with('/') && !text.ends_with('/');
        let fits = text.len() <= Self::BYTES_MAX && !text.chars().any(char::is_control);
        if (is_file_name || is_absolute) && fits {
            Ok(Self(PathBuf::from(text)))
        } else {
            Err(InvalidValue::new(
                "a file name such as \"klnode.sock\" or an absolute path, at most 100 bytes long",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::String(text.into())
    }

    #[test]
    fn a_listen_address_has_an_ip_address_and_a_port() {
        for right in ["/ip4/0.0.0.0/tcp/0", "/ip6/::/tcp/4001", "/ip4/10.0.0.1/udp/9/quic-v1"] {
            assert_eq!(ListenAddress::try_from(text(right)).unwrap().as_str(), right);
        }
        let wrong = [
            "",
            "/",
            "0.0.0.0:4001",
            "/ip4/0.0.0.0",
            "/ip4/0.0.0.0/tcp/65536",
            "/ip4/300.0.0.1/tcp/0",
            "/ip4/::1/tcp/0",
            "/ip4/0.0.0.0/tcp/0/",
            "/dns/example.org/tcp/1",
        ];
        for wrong in wrong {
            assert!(ListenAddress::try_from(text(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_for_others_has_a_name_or_an_ip_address_and_a_port() {
        for right in ["/dns4/hub.example.org/tcp/4600", "/ip4/10.0.0.1/tcp/1", "/ip6/::1/tcp/1"] {
            assert_eq!(PeerAddress::try_from(text(right)).unwrap().as_str(), right);
        }
        let wrong = [
            "",
            "hub.example.org:4600",
            "/dns4//tcp/4600",
            "/dns4/hub example/tcp/4600",
            "/ip4/0.0.0.0/tcp/4600",
            "/ip4/10.0.0.1/tcp/0",
            "/ip4/10.0.0.1/udp/1",
            "/ip4/10.0.0.1/tcp/1/p2p/x",
        ];
        for wrong in wrong {
            assert!(PeerAddress::try_from(text(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn local_tcp_is_off_or_on_loopback() {
        assert_eq!(LocalTcp::try_from(text("off")), Ok(LocalTcp::Off));
        let address = "[::1]:7700".parse().unwrap();
        assert_eq!(LocalTcp::try_from(text("[::1]:7700")), Ok(LocalTcp::At(address)));
        for wrong in ["0.0.0.0:7700", "192.168.0.2:7700", "7700", "localhost:7700", ""] {
            assert!(LocalTcp::try_from(text(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_socket_lies_in_the_home_unless_its_path_is_absolute() {
        let home = Path::new("/home/ada/.klnode");
        let socket = SocketPath::try_from(text("klnode.sock")).unwrap();
        assert_eq!(socket.in_home(home), home.join("klnode.sock"));
        let socket = SocketPath::try_from(text("/run/klnode.sock")).unwrap();
        assert_eq!(socket.in_home(home), Path::new("/run/klnode.sock"));
    }

    #[test]
    fn a_socket_path_does_not_leave_the_home_by_a_relative_way() {
        for wrong in ["", ".", "..", "../klnode.sock", "a/b", "/run/", &"x".repeat(101)] {
            assert!(SocketPath::try_from(text(wrong)).is_err(), "{wrong}");
        }
    }
}
