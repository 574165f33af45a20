//! Paths of files that a text names, and those of them that do not exist in a checkout.
//!
//! The text is prose, so only words that look like a path count: with a folder and an extension, as
//! in `src/auth/token.rs:47`. Separate from `anchor_check`, which evaluates what the author wrote as
//! a predicate.

use klnode_git::CallerCheckout;
use klnode_scoring::predicate::{self, Params, Predicate, PredicateOutcome};
use std::collections::BTreeSet;

/// Maximum number of paths of one text that are looked up.
const PATHS_MAX: usize = 32;
/// Maximum length of a file extension in characters; a longer one is no path.
const EXTENSION_CHARACTERS_MAX: usize = 5;

/// The paths that a text names and that no tracked file of the checkout has.
pub(super) fn missing(text: &str, checkout: &CallerCheckout) -> Vec<String> {
    let Some(files) = checkout.files() else { return Vec::new() };
    let paths = paths(text).into_iter();
    let known =
        paths.filter_map(|path| Some((Predicate::read(&format!("path:{path}")).ok()?, path)));
    let (predicates, paths): (Vec<Predicate>, Vec<String>) = known.unzip();
    let outcomes = predicate::evaluate_all(&predicates, files, &Params::default());
    let is_missing =
        |outcome: &PredicateOutcome| matches!(outcome, PredicateOutcome::Broken { .. });
    let missing = paths.into_iter().zip(outcomes).filter(|(_, outcome)| is_missing(outcome));
    missing.map(|(path, _)| path).collect()
}

/// The words of a text that are relative paths.
fn paths(text: &str) -> BTreeSet<String> {
    let is_between = |c: char| c.is_whitespace() || "`'\"()[]{}<>,;|*=".contains(c);
    let words = text.split(is_between).filter(|word| !word.contains("://"));
    let paths = words.filter_map(|word| {
        // A line number follows a colon, and a full stop may end the sentence.
        let path = word.split([':', '#']).next()?.trim_end_matches(['.', '!', '?']);
        is_path(path).then(|| path.strip_prefix("./").unwrap_or(path).to_owned())
    });
    paths.take(PATHS_MAX).collect()
}

fn is_path(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/+@".contains(c);
    let Some((folder, file)) = word.rsplit_once('/') else { return false };
    let Some((stem, extension)) = file.rsplit_once('.') else { return false };
    let is_extension = (1..=EXTENSION_CHARACTERS_MAX).contains(&extension.len())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
        && extension.chars().any(|c| c.is_ascii_alphabetic());
    // A host name with a path, as in `example.org/a.html`, has a dot in its first part.
    let first = folder.trim_start_matches("./").split('/').next().unwrap_or_default();
    let is_host = first.trim_start_matches('.').contains('.');
    let is_relative = !word.starts_with('/') && !word.split('/').any(|part| part == "..");
    word.chars().all(is_plain) && is_relative && !is_host && !stem.is_empty() && is_extension
}

#[cfg(test)]
mod tests {
    use super::paths;

    #[test]
    fn only_relative_paths_with_a_folder_and_an_extension_count() {
        let text = "See src/auth/token.rs:47-52, `lib/a.py` and (./web/app.tsx). Also \
            .github/ci.yml, but not token.rs, and/or, 1/2.5, /etc/passwd.conf, ../up/x.rs, \
            https://example.org/a/b.html, example.org/a.html, read/write, v1.2/3 or a/*.rs.";
        let found: Vec<String> = paths(text).into_iter().collect();
        assert_eq!(found, [".github/ci.yml", "lib/a.py", "src/auth/token.rs", "web/app.tsx"]);
    }
}
