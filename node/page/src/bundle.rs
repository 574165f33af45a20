//! The files of the page, built from `page/` and embedded, so that a build of the node needs no
//! Node.js and the page loads nothing from elsewhere.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

const FILES: [(&str, &str, &[u8]); 4] = [
    ("/", "text/html; charset=utf-8", include_bytes!("../../../page/dist/index.html")),
    ("/page.js", "text/javascript; charset=utf-8", include_bytes!("../../../page/dist/page.js")),
    ("/page.css", "text/css; charset=utf-8", include_bytes!("../../../page/dist/page.css")),
    ("/icon.svg", "image/svg+xml", include_bytes!("../../../page/dist/icon.svg")),
];

/// The file at a path of the page; `None` if there is none.
pub fn file_response(path: &str) -> Option<Response> {
    let (_, kind, bytes) = FILES.iter().find(|(name, ..)| *name == path)?;
    let mut response = Response::new(Body::from(*bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_bundle_are_served() {
        assert!(file_response("/").is_some());
        assert!(file_response("/page.js").is_some());
        for wrong in ["", "/index.html", "/page.js/", "//page.js", "/../page.js"] {
            assert!(file_response(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_document_has_no_inline_script_and_no_style() {
        let (_, _, document) = FILES[0];
        let document = std::str::from_utf8(document).unwrap();
        assert!(!document.contains("<style"), "{document}");
        assert!(document.matches("<script").all(|_| document.contains("src=\"/page.js\"")));
    }
}
