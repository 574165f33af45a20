//! What went wrong, as programs read it: one line, in the shape of the API's errors.

use super::harmless::harmless_json;
use serde::Serialize;

#[derive(Serialize)]
struct Failure<'a, K> {
    error: Detail<'a, K>,
}

#[derive(Serialize)]
struct Detail<'a, K> {
    kind: K,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// The line.
pub fn line(kind: impl Serialize, message: &str, hint: Option<&str>) -> String {
    let failure = Failure { error: Detail { kind, message, hint } };
    // Texts become JSON whatever is in them.
    harmless_json(serde_json::to_string(&failure).unwrap_or_default()) + "\n"
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_failure_takes_one_line_whatever_it_repeats() {
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
