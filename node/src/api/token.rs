//! What a caller over TCP must show, and where it must come from.
//!
//! Any program of any user and any web page can reach a port of this machine. The token keeps the
//! former out; a page that tricks a browser into asking on its behalf is known by the names it asks
//! for and comes from.

use super::errors::{ApiError, Kind};
use super::exchange::header_text;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use std::net::IpAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The secret of callers over TCP.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<String>>);

impl Token {
    /// Takes over the secret.
    pub fn new(secret: Zeroizing<String>) -> Self {
        Self(Arc::new(secret))
    }

    /// Lets in who comes from this machine and shows the token.
    pub fn admits(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        comes_from_here(headers)?;
        let shown = header_text(headers, header::AUTHORIZATION).unwrap_or_default();
        if self.is_shown(bearer(shown)) {
            return Ok(());
        }
        Err(not_shown())
    }

    /// Whether a caller knows it. Takes as long for a good guess as for a bad one.
    fn is_shown(&self, shown: &str) -> bool {
        let (kept, shown) = (self.0.as_bytes(), shown.as_bytes());
        let differing = kept.iter().zip(shown).fold(0, |all, (one, other)| all | (one ^ other));
        kept.len() == shown.len() && std::hint::black_box(differing) == 0
    }
}

/// What is shown as a token. The name of the scheme may be written in any case.
fn bearer(shown: &str) -> &str {
    match shown.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("Bearer") => rest.trim(),
        _ => "",
    }
}

/// Which way a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Over the socket: the file system has let it in.
    Socket,
    /// Over TCP.
    Tcp,
}

/// Lets in what came over the socket, and over TCP what shows the token and comes from here.
pub(super) async fn guard(
    State(token): State<Option<Token>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if request.extensions().get::<Way>() != Some(&Way::Socket) {
        match token {
            Some(token) => token.admits(request.headers())?,
            None => {
                comes_from_here(request.headers())?;
                return Err(not_shown());
            }
        }
    }
    Ok(next.run(request).await)
}

fn not_shown() -> ApiError {
    let message = "serve the request: it does not show this node's token";
    let hint =
        "send `Authorization: Bearer` and what stands in the file `token` in the node's home";
    ApiError::new(Kind::Unauthorised, message, Some(hint))
}

/// A page that had a name of its own resolve to this machine asks for that name; one that sends a
/// browser here by address is named as the origin.
fn comes_from_here(headers: &HeaderMap) -> Result<(), ApiError> {
    let host = header_text(headers, header::HOST).unwrap_or_default();
    if !is_local(host) {
        let message = format!("serve the request: `{host}` is not a name of this machine");
        let hint = "ask for 127.0.0.1, [::1], localhost or klnode";
        return Err(ApiError::new(Kind::Refused, message, Some(hint)));
    }
    match headers.get(header::ORIGIN) {
        None => Ok(()),
        Some(origin) if origin.as_bytes() == format!("http://{host}").as_bytes() => Ok(()),
        Some(_) => {
            let message = "serve the request: a page from elsewhere has made it";
            Err(ApiError::new(Kind::Refused, message, None))
        }
    }
}

/// Whether a host, with or without a port, is this machine by whatever way a name is resolved.
fn is_local(host: &str) -> bool {
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || ["localhost", "klnode"].iter().any(|name| bare.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for right in ["127.0.0.1", "127.0.0.1:7700", "[::1]:7700", "LocalHost:1", "klnode"] {
            assert!(is_local(right), "{right}");
        }
        for wrong in
            ["", ":7700", "example.org", "127.0.0.1.example.org", "10.0.0.1", "[::2]", "localhost."]
        {
            assert!(!is_local(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_scheme_is_read_in_any_case_and_no_other_is() {
        for right in ["Bearer abcd", "bearer abcd", "BEARER  abcd "] {
            assert_eq!(bearer(right), "abcd", "{right}");
        }
        for wrong in ["", "abcd", "Bearer", "Bearerabcd", "Basic abcd", " Bearer abcd"] {
            assert_eq!(bearer(wrong), "", "{wrong}");
        }
    }

    #[test]
    fn only_the_whole_token_will_do() {
        let token = Token::new(Zeroizing::new("abcd".into()));
        assert!(token.is_shown("abcd"));
        for wrong in ["", "abc", "abce", "abcde", "ABCD"] {
            assert!(!token.is_shown(wrong), "{wrong}");
        }
    }
}
