//! Authenticates callers over TCP by a bearer token, and rejects requests made by web pages.
//!
//! Programs of every user and every web page can reach a local port. The token keeps other users
//! out. A web page that makes a browser send a request is recognised by its `Host` and `Origin`
//! headers.

use axum::http::{HeaderMap, HeaderName, header};
use klnode_api_types::{ErrorDetail, ErrorKind};
use std::net::IpAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The bearer token for callers over TCP.
#[derive(Clone)]
pub struct BearerToken(Arc<Zeroizing<String>>);

impl BearerToken {
    pub fn new(secret: Zeroizing<String>) -> Self {
        Self(Arc::new(secret))
    }

    /// Compares in constant time, so the duration tells nothing about a guess.
    fn is_shown(&self, shown: &str) -> bool {
        let (kept, shown) = (self.0.as_bytes(), shown.as_bytes());
        let differing = kept.iter().zip(shown).fold(0, |all, (one, other)| all | (one ^ other));
        kept.len() == shown.len() && std::hint::black_box(differing) == 0
    }
}

/// Accepts a request that comes from this machine and carries the token. Without a token every
/// request is refused.
pub fn authenticate(headers: &HeaderMap, token: Option<&BearerToken>) -> Result<(), ErrorDetail> {
    comes_from_here(headers)?;
    let shown = bearer(header_text(headers, header::AUTHORIZATION).unwrap_or_default());
    match token {
        Some(token) if token.is_shown(shown) => Ok(()),
        _ => Err(not_shown()),
    }
}

/// The value of a header, if it is valid text.
pub fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The bearer token in an `Authorization` header; the scheme is case-insensitive.
fn bearer(shown: &str) -> &str {
    match shown.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("Bearer") => rest.trim(),
        _ => "",
    }
}

fn not_shown() -> ErrorDetail {
    let message = "The request does not carry this node's token.";
    let hint =
        "Send `Authorization: Bearer` with the contents of the file `token` in the node's home.";
    ErrorDetail::new(ErrorKind::Unauthorised, message, Some(hint))
}

/// Rejects requests made by web pages. A page whose own name resolves to this machine (DNS
/// rebinding) is recognised by `Host`; a page that addresses the port directly is recognised by
/// `Origin`.
fn comes_from_here(headers: &HeaderMap) -> Result<(), ErrorDetail> {
    let host = header_text(headers, header::HOST).unwrap_or_default();
    if !is_local(host) {
        let message = format!("The request was rejected: `{host}` is not a name of this machine.");
        let hint = "Use the host 127.0.0.1, [::1], localhost or klnode.";
        return Err(ErrorDetail::new(ErrorKind::Refused, message, Some(hint)));
    }
    match headers.get(header::ORIGIN) {
        None => Ok(()),
        Some(origin) if origin.as_bytes() == format!("http://{host}").as_bytes() => Ok(()),
        Some(_) => {
            let message = "The request was rejected: it comes from a web page of another origin.";
            Err(ErrorDetail::new(ErrorKind::Refused, message, None))
        }
    }
}

/// True if a host, with or without a port, always means this machine, regardless of name
/// resolution.
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
    fn only_loopback_names_are_local() {
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
    fn only_the_bearer_scheme_is_accepted_in_any_case() {
        for right in ["Bearer abcd", "bearer abcd", "BEARER  abcd "] {
            assert_eq!(bearer(right), "abcd", "{right}");
        }
        for wrong in ["", "abcd", "Bearer", "Bearerabcd", "Basic abcd", " Bearer abcd"] {
            assert_eq!(bearer(wrong), "", "{wrong}");
        }
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        let token = BearerToken::new(Zeroizing::new("abcd".into()));
        assert!(token.is_shown("abcd"));
        for wrong in ["", "abc", "abce", "abcde", "ABCD"] {
            assert!(!token.is_shown(wrong), "{wrong}");
        }
    }
}
