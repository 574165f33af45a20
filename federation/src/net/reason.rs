//! Why something did not work, in a line for people.
//!
//! libp2p's errors are nested and repeat themselves; here each becomes its innermost cause, which
//! is what an operator can act on.

use libp2p::TransportError;
use libp2p::request_response::OutboundFailure;
use libp2p::swarm::DialError;
use std::error::Error;

/// Why a dial led to nobody.
pub(super) fn of_dial(error: &DialError) -> String {
    match error {
        DialError::LocalPeerId { .. } => "the address leads to this node itself".into(),
        DialError::NoAddresses => {
            "no address of it is known, or they are those of this node".into()
        }
        DialError::DialPeerConditionFalse(_) => "it is connected or being dialled".into(),
        DialError::Aborted => "the attempt was given up".into(),
        DialError::WrongPeerId { obtained, address } => {
            format!("{obtained} answers at {address}, who is somebody else")
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

/// Why a request has no answer.
pub(super) fn of_request(error: &OutboundFailure) -> String {
    match error {
        OutboundFailure::DialFailure => "the peer is not connected".into(),
        OutboundFailure::Timeout => "the peer did not answer in time".into(),
        OutboundFailure::ConnectionClosed => "the connection was closed".into(),
        OutboundFailure::UnsupportedProtocols => {
            "the peer does not offer this protocol to us".into()
        }
        OutboundFailure::Io(error) => match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "the peer ended the exchange".into(),
            _ => innermost(error),
        },
    }
}

/// The text of the cause that has no further cause.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
