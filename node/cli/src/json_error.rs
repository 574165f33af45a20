//! The JSON form of an error: one line, in the shape of the API's errors.

use super::sanitize::harmless_json;
use serde::Serialize;

#[derive(Serialize)]
struct ErrorEnvelope<'a, K> {
    error: JsonErrorDetail<'a, K>,
}

#[derive(Serialize)]
struct JsonErrorDetail<'a, K> {
    kind: K,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// Formats an error as one line of JSON.
pub fn line(kind: impl Serialize, message: &str, hint: Option<&str>) -> String {
    let failure = ErrorEnvelope { error: JsonErrorDetail { kind, message, hint } };
    // Strings always serialise.
    harmless_json(serde_json::to_string(&failure).unwrap_or_default()) + "\n"
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn an_error_takes_one_line() {
        let told = line("invalid", "cannot read \"a\nb\u{9b}\"", Some("try again"));
        assert_eq!(
            told,
            "{\"error\":{\"kind\":\"invalid\",\"message\":\"cannot read \\\"a\\nb\\u009b\\\"\",\
             \"hint\":\"try again\"}}\n"
        );
        let bare = line("failed", "cannot start", None);
        assert_eq!(bare, "{\"error\":{\"kind\":\"failed\",\"message\":\"cannot start\"}}\n");
    }
}
