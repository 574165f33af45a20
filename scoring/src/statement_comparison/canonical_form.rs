//! Canonical form in which two texts are compared for equality.

use unicode_normalization::UnicodeNormalization as _;

/// Final punctuation that does not change the meaning of a text.
const FINAL: [char; 8] = ['.', '!', '?', ',', ';', ':', '…', '。'];

/// Converts a text to Unicode NFC, collapses white space and removes final punctuation. Case,
/// symbols and numbers stay as they are.
#[must_use]
pub fn canonical(text: &str) -> String {
    let mut canonical = String::with_capacity(text.len());
    let composed: String = text.nfc().collect();
    for word in composed.split_whitespace() {
        if !canonical.is_empty() {
            canonical.push(' ');
        }
        canonical.push_str(word);
    }
    let end = canonical.trim_end_matches(|one: char| FINAL.contains(&one) || one == ' ').len();
    canonical.truncate(end);
    canonical
}
