//! Finds the entries that a text names: codes in a prompt and lines of a briefing.

use super::session_entries::{GivenEntry, GivenForm, SessionContent};
use klnode_api_types::search::KnownEntry;
use klnode_scoring::briefing::FIRST_LINE;
use serde_json::Value;

/// At most this many codes of one prompt are looked up.
const CODES_MAX: usize = 3;
/// Number of characters after the letter and the dash of a code.
const CODE_DIGITS: std::ops::RangeInclusive<usize> = 4..=8;

/// Words of a prompt that look like the code of an entry, such as `L-7F3KQ2MX`.
pub(super) fn codes_in(prompt: &str) -> Vec<String> {
    let mut codes: Vec<String> = Vec::new();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    for word in prompt.split(|c: char| !is_part(c)) {
        let Some((letter, digits)) = word.split_once('-') else { continue };
        let is_letter = letter.len() == 1 && letter.bytes().all(|c| c.is_ascii_uppercase());
        let is_digit = |c: u8| matches!(c, b'A'..=b'Z' | b'2'..=b'7');
        let is_code = is_letter && CODE_DIGITS.contains(&digits.len());
        if is_code && digits.bytes().all(is_digit) && !codes.iter().any(|known| known == word) {
            codes.push(word.to_owned());
        }
        if codes.len() == CODES_MAX {
            break;
        }
    }
    codes
}

/// The text of a briefing for this session, and the entries in it. The first line is dropped,
/// because the quotation frame replaces it. Lines of entries that the session already received
/// unchanged are dropped too. The text is empty if no entry remains, even if the briefing has other
/// lines.
pub(super) fn new_lines(
    briefing: &Value,
    remembered: &SessionContent,
) -> (String, Vec<GivenEntry>) {
    let text = briefing["text"].as_str().unwrap_or_default();
    let text = text.strip_prefix(FIRST_LINE).unwrap_or(text).trim_start_matches('\n');
    let sections = || briefing["sections"].as_array().into_iter().flatten();
    let (mut given, mut known) = (Vec::new(), Vec::new());
    for entry in sections().flat_map(|section| section["entries"].as_array().into_iter().flatten())
    {
        let [code, id, version] =
            ["code", "id", "version"].map(|name| entry[name].as_str().unwrap_or_default());
        if version.is_empty() {
            continue;
        }
        if remembered.has(id, version) {
            known.push(code);
        } else {
            let entry = KnownEntry { id: id.to_owned(), version: version.to_owned() };
            given.push(GivenEntry { entry, form: GivenForm::Line });
        }
    }
    if known.is_empty() {
        return (text.to_owned(), given);
    }
    if given.is_empty() {
        return (String::new(), given);
    }
    let is_known = |line: &str| {
        let code = line.strip_prefix("- ").and_then(|line| line.split(' ').next());
        code.is_some_and(|code| known.contains(&code))
    };
    let titles: Vec<&str> = sections().filter_map(|section| section["title"].as_str()).collect();
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !is_known(line)) {
        // Drop a heading whose entries were all dropped.
        if titles.contains(&line) && kept.last().is_some_and(|last| titles.contains(last)) {
            kept.pop();
        }
        kept.push(line);
    }
    if kept.last().is_some_and(|last| titles.contains(last)) {
        kept.pop();
    }
    (kept.join("\n"), given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::session_entries::SessionEntries;
    use klnode_home::Layout;
    use serde_json::json;
    use std::time::SystemTime;

    #[test]
    fn only_words_shaped_like_codes_are_codes() {
        let codes = codes_in("does L-7F3KQ2MX (or N-ABCD) hold? UTF-8, a-bcde, L-7F3KQ2MX, X-1234");
        assert_eq!(codes, ["L-7F3KQ2MX", "N-ABCD"]);
        assert_eq!(codes_in("L-AAAA L-BBBB L-CCCC L-DDDD").len(), CODES_MAX);
        assert!(codes_in("l-7f3k, LL-7F3K, L-7F3KQ2MXAA, L-7F").is_empty());
    }

    #[test]
    fn a_briefing_omits_entries_the_session_already_has() {
        let home = tempfile::tempdir().unwrap();
        let memory = SessionEntries::new(&Layout::new(home.path()), "s", None);
        let entry = |code: &str, id: &str| json!({ "code": code, "id": id, "version": "ab" });
        let briefing = json!({
            "text": format!("{FIRST_LINE}\nVerified\n- L-AA \"one\"\nStale\n- L-BB \"two\"\n"),
            "sections": [
                { "title": "Verified", "entries": [entry("L-AA", "0a")] },
                { "title": "Stale", "entries": [entry("L-BB", "0b")] },
            ],
        });
        let now = SystemTime::now();
        let (text, given) = new_lines(&briefing, &memory.read(now));
        assert_eq!(text, "Verified\n- L-AA \"one\"\nStale\n- L-BB \"two\"\n");
        memory.add(&given[..1], now);
        let (text, given) = new_lines(&briefing, &memory.read(now));
        assert_eq!((text.as_str(), given.len()), ("Stale\n- L-BB \"two\"", 1));
        memory.add(&given, now);
        assert_eq!(new_lines(&briefing, &memory.read(now)), (String::new(), Vec::new()));
        let other = json!({ "text": "Fresh: use the new queue.", "task": "01" });
        assert_eq!(new_lines(&other, &memory.read(now)).0, "Fresh: use the new queue.");
    }
}
