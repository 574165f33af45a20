//! How much of an entry is shown in which form, and what that costs in tokens.
//!
//! Tokens are those of the built-in embedder's vocabulary. Language models cut texts differently,
//! by some fifteen parts in a hundred either way on prose and code: a budget is kept to that. What the
//! vocabulary does not know (hashes, emoji) costs a token for four bytes.

use super::Found;
use super::numbers::Numbers;
use crate::index::embed;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind;
use klnode_crdt::lww::Register;
use klnode_crdt::view::View;
use klnode_scoring::budget::Form;

/// What surrounds an entry's text in an answer: code, status, confidence.
const LABEL_TOKENS: u32 = 16;

/// Title and content.
pub(super) fn whole(view: &View) -> String {
    let text = |register| view.text(register).unwrap_or_default();
    format!("{}\n{}", text(Register::TITLE), text(Register::CONTENT))
}

/// One sentence: the summary, else the beginning of the content.
pub fn one_liner(view: &View, characters_max: usize) -> String {
    let text = view.text(Register::SUMMARY).or_else(|| view.text(Register::CONTENT));
    cut(text.unwrap_or_default().lines().next().unwrap_or_default(), characters_max)
}

/// The text of an entry in a form, beside its title.
pub fn body(view: &View, form: Form, numbers: &Numbers) -> String {
    let content = view.text(Register::CONTENT).unwrap_or_default();
    match form {
        Form::Line => String::new(),
        Form::Summary => one_liner(view, numbers.summary_characters_max),
        Form::Standard => cut(content, numbers.preview_characters_max),
        Form::Full => content.to_owned(),
    }
}

/// What an entry costs in a form.
pub(super) fn tokens(found: &Found, form: Form, numbers: &Numbers) -> u32 {
    let count = |text: &str| u32::try_from(embed::count_tokens(text)).unwrap_or(u32::MAX);
    let title = count(found.view.text(Register::TITLE).unwrap_or_default());
    let line = title.saturating_add(LABEL_TOKENS);
    line.saturating_add(count(&body(&found.view, form, numbers)))
}

/// The citation code; without a known type, its digits alone.
pub fn code(entry: EntryId, view: &View) -> String {
    let kind = view.kind();
    kind.map_or_else(|| kind::code_digits(entry), |kind| kind.code(entry))
}

/// At most so many characters, cut at a word, with a sign that something is missing.
fn cut(text: &str, characters_max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(characters_max) else { return text.to_owned() };
    let whole = &text[..end];
    let end = whole.rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", whole[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_text_is_cut_at_a_word_and_says_so() {
        for (text, max, expect) in [
            ("short", 10, "short"),
            ("exactly ten", 11, "exactly ten"),
            ("one two three", 9, "one two…"),
            ("äöü äöü äöü", 5, "äöü…"),
            ("unbreakable", 5, "unbre…"),
        ] {
            assert_eq!(cut(text, max), expect, "{text}");
        }
    }
}
