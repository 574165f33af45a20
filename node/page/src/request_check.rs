//! Checks of a browser's request, and the headers of every answer.
//!
//! Programs of other users and web pages of other origins can reach a local port. A page whose own
//! name resolves to this machine (DNS rebinding) sends another `Host`; a page that addresses the
//! port directly sends another `Origin`. Cookies would not be bound to the port, so the page has
//! none: the secret of a session travels in `Authorization` only.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use klnode_api_types::{ErrorDetail, ErrorKind};
use klnode_http::header_text;
use std::net::SocketAddr;

/// Set by browsers: how the origin of a request relates to its target.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Scripts, styles and data come from this listener only. `trusted-types` also forbids that a
/// script turns a text into markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Accepts a request that a document of this listener made, and the first load of that document.
pub fn check_request(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    address: SocketAddr,
) -> Result<(), ErrorDetail> {
    let host = address.to_string();
    if header_text(headers, header::HOST) != Some(host.as_str()) {
        return Err(refused("its `Host` is not the address of the page"));
    }
    let is_read = method == Method::GET;
    match headers.get(header::ORIGIN) {
        None if is_read => {}
        None => return Err(refused("it has no `Origin`")),
        Some(origin) if origin.as_bytes() == format!("http://{host}").as_bytes() => {}
        Some(_) => return Err(refused("it comes from a web page of another origin")),
    }
    // The document itself is opened from a file or a typed address, so its first load may be
    // cross-site. It contains no data.
    let is_document = is_read && path == "/";
    let site = header_text(headers, FETCH_SITE);
    match is_document || matches!(site, None | Some("same-origin" | "none")) {
        true => Ok(()),
        false => Err(refused("it comes from a web page of another site")),
    }
}

fn refused(why: &str) -> ErrorDetail {
    let message = format!("The request was rejected: {why}.");
    ErrorDetail::new(ErrorKind::Refused, message, Some("Open the page with `klnode ui`."))
}

/// Adds the headers that keep an answer in the page: no other origin may embed, read or store it.
pub fn protect(headers: &mut HeaderMap) {
    let fixed: [(HeaderName, &'static str); 7] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "127.0.0.1:4711";

    fn check(method: &Method, path: &str, given: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        check_request(method, path, &headers, HOST.parse().unwrap()).is_ok()
    }

    #[test]
    fn only_the_exact_host_is_accepted() {
        assert!(check(&Method::GET, "/", &[("host", HOST)]));
        for wrong in
            ["localhost:4711", "127.0.0.1", "127.0.0.1:80", "example.org", "[::1]:4711", ""]
        {
            assert!(!check(&Method::GET, "/", &[("host", wrong)]), "{wrong}");
        }
        assert!(!check(&Method::GET, "/", &[]));
    }

    #[test]
    fn a_write_needs_the_origin_of_the_page() {
        let own = ("origin", "http://127.0.0.1:4711");
        assert!(check(&Method::POST, "/v1/search", &[("host", HOST), own]));
        assert!(!check(&Method::POST, "/v1/search", &[("host", HOST)]));
        for wrong in
            ["null", "http://127.0.0.1:80", "https://127.0.0.1:4711", "http://localhost:4711"]
        {
            assert!(!check(&Method::POST, "/v1/search", &[("host", HOST), ("origin", wrong)]));
            assert!(!check(&Method::GET, "/v1/status", &[("host", HOST), ("origin", wrong)]));
        }
    }

    #[test]
    fn another_site_may_open_the_document_and_nothing_else() {
        let other = ("sec-fetch-site", "cross-site");
        assert!(check(&Method::GET, "/", &[("host", HOST), other]));
        assert!(!check(&Method::GET, "/v1/status", &[("host", HOST), other]));
        assert!(!check(
            &Method::GET,
            "/page.js",
            &[("host", HOST), ("sec-fetch-site", "same-site")]
        ));
        assert!(check(
            &Method::GET,
            "/page.js",
            &[("host", HOST), ("sec-fetch-site", "same-origin")]
        ));
    }
}
