//! Describes libp2p errors in one line for people.
//!
//! libp2p's errors are nested and repetitive. These functions return the innermost cause, which an
//! operator can act on. Each text is a clause without a full stop, because callers put it after a
//! colon.

use libp2p::TransportError;
use libp2p::request_response::OutboundFailure;
use libp2p::swarm::DialError;
use std::error::Error;

/// Why a dial failed.
pub(super) fn of_dial(error: &DialError) -> String {
    match error {
        DialError::LocalPeerId { .. } => "the address is this node's own".into(),
        DialError::NoAddresses => {
            "no address of the peer is known, or all are this node's own".into()
        }
        DialError::DialPeerConditionFalse(_) => "the peer is connected or being dialled".into(),
        DialError::Aborted => "the dial was aborted".into(),
        DialError::WrongPeerId { obtained, address } => {
            format!("another peer, {obtained}, answers at {address}")
        }
        DialError::Denied { cause } => innermost(cause),
        DialError::Transport(tried) => {
            let each = tried.iter().map(|(address, error)| match error {
                TransportError::MultiaddrNotSupported(_) => format!("{address}: not supported"),
                TransportError::Other(error) => format!("{address}: {}", innermost(error)),
            });
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

/// Why a request failed.
pub(super) fn of_request(error: &OutboundFailure) -> String {
    match error {
        OutboundFailure::DialFailure => "the peer is not connected".into(),
        OutboundFailure::Timeout => "the peer did not answer in time".into(),
        OutboundFailure::ConnectionClosed => "the connection was closed".into(),
        OutboundFailure::UnsupportedProtocols => {
            "the peer does not offer this protocol to this node".into()
        }
        OutboundFailure::Io(error) => match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "the peer closed the stream".into(),
            _ => innermost(error),
        },
    }
}

/// The message of the innermost cause.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
