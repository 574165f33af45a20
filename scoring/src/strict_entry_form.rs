//! The strict form of an entry: a general statement in a few sentences, with places to look at and
//! steps to check it. A workspace may ask for it.
//!
//! Separate from `finding_validation`: a finding always has places and steps, but may name the very
//! line it was found in, which says little about other code.

use crate::finding_validation::{DraftProblem, SENTENCES_MAX, VERIFY_STEPS_MAX, sentences};

/// Characters around a word that are no part of it.
const AROUND: [char; 14] = ['`', '\'', '"', '(', ')', '[', ']', '<', '>', ',', ';', '.', '!', '?'];
/// Minimum length of a hexadecimal word that counts as a commit.
const COMMIT_DIGITS_MIN: usize = 7;

/// Checks the form of an entry: its first paragraph, and the numbers of its anchors and steps.
///
/// # Errors
/// The first missing part.
pub fn check(content: &str, anchors: usize, steps: usize) -> Result<(), DraftProblem> {
    let problem = |field, problem: String| Err(DraftProblem { field, problem });
    let description = content.trim().split("\n\n").next().unwrap_or_default();
    let count = sentences(description).len();
    if !(1..=SENTENCES_MAX).contains(&count) {
        let reason = format!(
            "begins with {count} sentences; this workspace allows 1 to {SENTENCES_MAX} in the first \
             paragraph"
        );
        return problem("content", reason);
    }
    if let Some(detail) = detail(description) {
        let reason = format!(
            "names `{detail}` in its first paragraph; this workspace wants a general statement there, \
             and the place among the anchors or the evidence"
        );
        return problem("content", reason);
    }
    if anchors == 0 {
        return problem("anchors", "are missing; this workspace wants at least one".to_owned());
    }
    if !(1..=VERIFY_STEPS_MAX).contains(&steps) {
        let reason = format!("steps are {steps}; this workspace wants 1 to {VERIFY_STEPS_MAX}");
        return problem("verify", reason);
    }
    Ok(())
}

/// The first word that ties a statement to one place, commit, host or issue.
fn detail(text: &str) -> Option<&str> {
    let mut last = "";
    for word in text.split_whitespace() {
        let word = word.trim_matches(AROUND);
        if is_file(word) || is_commit(word) || is_issue(word) || is_address(word) {
            return Some(word);
        }
        let is_number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '-');
        if is_number && matches!(last.to_lowercase().as_str(), "line" | "lines") {
            return Some(word);
        }
        last = word;
    }
    None
}

/// A file in a folder, or a file with a line number. A pattern such as `middleware/*.go` is general.
fn is_file(word: &str) -> bool {
    let (path, line) = word.split_once(':').unwrap_or((word, ""));
    let name = path.rsplit('/').next().unwrap_or_default();
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && extension.len() <= 5 && extension.chars().all(char::is_alphanumeric)
    });
    let has_line = line.starts_with(|c: char| c.is_ascii_digit());
    let is_pattern = path.contains('*');
    let is_home = path.starts_with("~/");
    !is_pattern && (has_extension && (path.contains('/') || has_line) || is_home)
}

fn is_commit(word: &str) -> bool {
    let is_hex = word.len() >= COMMIT_DIGITS_MIN && word.chars().all(|c| c.is_ascii_hexdigit());
    let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    is_hex && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

fn is_issue(word: &str) -> bool {
    let digits = word.strip_prefix('#').unwrap_or_default();
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

fn is_address(word: &str) -> bool {
    word.contains("://")
        || word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::check;

    fn field(content: &str, anchors: usize, steps: usize) -> Option<&'static str> {
        check(content, anchors, steps).err().map(|problem| problem.field)
    }

    #[test]
    fn an_entry_has_a_few_sentences_a_place_and_a_step() {
        let good =
            "Auth middleware often swallows cancellation. Check ctx.Err() after upstream calls.";
        for (anchors, steps, expect) in
            [(1, 1, None), (0, 1, Some("anchors")), (1, 0, Some("verify")), (1, 4, Some("verify"))]
        {
            assert_eq!(field(good, anchors, steps), expect);
        }
        assert_eq!(field("One. Two. Three. Four.", 1, 1), Some("content"));
        assert_eq!(field("One. Two.\n\nMore. And more. And more. And more.", 1, 1), None);
    }

    #[test]
    fn a_statement_about_one_place_is_not_general() {
        for detail in [
            "middleware/auth.go has a bug",
            "`auth.go:47` has a bug",
            "There is a bug at line 47",
            "Commit 1a2b3c4 broke it",
            "See #123 for the bug",
            "It fails at https://host.example/x",
            "Ask ann@example.org about it",
            "It lies in ~/notes",
        ] {
            let told = check(detail, 1, 1).map_err(|problem| problem.problem);
            assert!(told.is_err_and(|told| told.starts_with("names `")), "{detail}");
        }
        for general in [
            "Check for ctx.Err() in middleware/*.go after upstream calls",
            "A default of 1234567 rows is too many",
            "Read and/or write v1.2 files",
            "Use I/O in batches of 100",
        ] {
            assert_eq!(field(general, 1, 1), None, "{general}");
        }
    }
}
