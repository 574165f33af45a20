//! Validates the value of a match: a secret rather than a placeholder, a name or a digest.
//!
//! Each check reads a bounded part of the text before it accepts, and extends a value only after
//! that, so that the scan stays linear.

use super::rule_definition::ValueCheck;
use super::string_shape::{
    classes, entropy_bits, is_code, is_placeholder, is_slug, is_technical, is_token_filler,
    is_uuid, is_varied,
};
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD};
use std::ops::Range;

/// Maximum length of a JWT header; a longer one is something else.
const JWT_HEADER_BYTES_MAX: usize = 4096;

/// Number of base64 bytes after the first line from which a PEM block is more than a mention of
/// one.
const PEM_BODY_BYTES_MIN: usize = 12;

/// Maximum number of header lines before the body of a PEM block.
const PEM_HEADER_LINES_MAX: usize = 4;

/// Number of bytes after the matched part of a token that are examined before it is accepted.
const SEEN_BYTES_MAX: usize = 128;

/// Words before `token` or `secret` that make it harmless.
const HARMLESS_OWNERS: [&str; 16] = [
    "page",
    "next",
    "csrf",
    "xsrf",
    "cursor",
    "continuation",
    "sync",
    "resume",
    "cancel",
    "public",
    "idempotency",
    "cache",
    "fencing",
    "sort",
    "partition",
    "scroll",
];

/// A match whose value has not been validated yet.
pub(super) struct MatchCandidate<'a> {
    pub(super) text: &'a [u8],
    /// Start of the match.
    pub(super) at: usize,
    /// Byte range of the value.
    pub(super) value: Range<usize>,
}

/// Byte range of the complete value if `check` accepts it.
pub(super) fn passes(check: ValueCheck, candidate: &MatchCandidate<'_>) -> Option<Range<usize>> {
    let MatchCandidate { text, value, .. } = candidate;
    let bytes = text.get(value.clone())?;
    match check {
        ValueCheck::Any => Some(value.clone()),
        ValueCheck::Token => {
            is_token(seen(text, value)?).then(|| extended(text, value, is_token_byte))
        }
        ValueCheck::Opaque => {
            is_opaque(seen(text, value)?).then(|| extended(text, value, is_token_byte))
        }
        ValueCheck::Jwt => jwt(text, value.start),
        ValueCheck::Pem => pem(text, value),
        ValueCheck::Basic => is_basic(bytes).then(|| value.clone()),
        ValueCheck::UrlPassword => is_url_password(candidate, bytes).then(|| value.clone()),
        ValueCheck::Assigned => {
            is_assigned_secret(candidate, bytes).then(|| extended(text, value, is_value_byte))
        }
        ValueCheck::ProsePassword => {
            is_prose_password(bytes).then(|| extended(text, value, is_value_byte))
        }
        ValueCheck::ProseToken => {
            let bytes = trimmed(bytes);
            let begins_with_uuid = bytes.get(..36).is_some_and(is_uuid);
            let passes = is_opaque(bytes) && !is_technical(bytes) && !begins_with_uuid;
            passes.then(|| extended(text, value, is_value_byte))
        }
    }
}

/// The examined part of a token, which may be longer than its matched part.
fn seen<'a>(text: &'a [u8], value: &Range<usize>) -> Option<&'a [u8]> {
    let rest = text[value.end..].iter().take(SEEN_BYTES_MAX).take_while(|byte| is_token_byte(byte));
    text.get(value.start..value.end + rest.count())
}

fn extended(text: &[u8], value: &Range<usize>, belongs: fn(&u8) -> bool) -> Range<usize> {
    let rest = text[value.end..].iter().take_while(|byte| belongs(byte)).count();
    value.start..value.end + rest
}

fn is_token_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=')
}

fn is_value_byte(byte: &u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`')
}

fn is_base64url_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_base64_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is_token(bytes: &[u8]) -> bool {
    is_varied(bytes) && !is_slug(bytes) && !is_token_filler(bytes)
}

fn is_opaque(bytes: &[u8]) -> bool {
    let classes = classes(bytes);
    let mixed = classes.digits >= 2 && classes.letters >= 2;
    mixed && is_token(bytes) && !is_placeholder(bytes) && entropy_bits(bytes) >= 3.0
}

fn jwt(text: &[u8], start: usize) -> Option<Range<usize>> {
    let run = |from: usize| text[from..].iter().take_while(|byte| is_base64url_byte(byte)).count();
    let header_bytes = run(start);
    if header_bytes > JWT_HEADER_BYTES_MAX {
        return None;
    }
    let mut end = start + header_bytes;
    let header = BASE64URL_NOPAD.decode(&text[start..end]).ok()?;
    let header = std::str::from_utf8(&header).ok()?.trim();
    if !(header.starts_with('{') && header.ends_with('}') && header.contains("\"alg\"")) {
        return None;
    }
    for _ in 0..2 {
        if text.get(end) != Some(&b'.') {
            return None;
        }
        let part = run(end + 1);
        if part < 4 {
            return None;
        }
        end += 1 + part;
    }
    Some(start..end)
}

/// From the first line of a PEM block to its last, or to the end of the base64 data.
fn pem(text: &[u8], first_line: &Range<usize>) -> Option<Range<usize>> {
    let mut at = next_line(text, first_line.end)?;
    for _ in 0..PEM_HEADER_LINES_MAX {
        let line = text[at..].iter().take(100).take_while(|byte| **byte != b'\n').count();
        if !text[at..at + line].contains(&b':') {
            break;
        }
        at = next_line(text, at + line)?;
    }
    let body = text[at..].iter().take_while(|byte| is_base64_byte(byte)).count();
    if body < PEM_BODY_BYTES_MIN {
        return None;
    }
    let mut end = at + body;
    while let Some(next) = next_line(text, end) {
        let line = text[next..].iter().take_while(|byte| is_base64_byte(byte)).count();
        if line == 0 {
            let last = b"-----END";
            if text[next..].starts_with(last) {
                let line = text[next..].iter().take(80).take_while(|b| !b"\n\\\"'".contains(b));
                end = next + line.count();
            }
            break;
        }
        end = next + line;
    }
    Some(first_line.start..end)
}

/// Start of the next line of a PEM block: after a line break, real or escaped, and after the
/// characters that may precede a line in code or a quotation.
fn next_line(text: &[u8], at: usize) -> Option<usize> {
    let is_filler = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'"' | b'\'' | b'>' | b'#');
    let skip = |at: usize| at + text[at..].iter().take(16).take_while(|b| is_filler(b)).count();
    let mut at = skip(at);
    let mut breaks = 0;
    loop {
        let step = match text.get(at..)? {
            [b'\n', ..] => 1,
            [b'\\', b'n' | b'r', ..] => 2,
            [b'\\', b'\n', ..] => 2,
            [b'+', b' ' | b'\t', ..] => 1,
            _ => break,
        };
        breaks += usize::from(step == 2 || text[at] == b'\n');
        if breaks > 3 {
            return None;
        }
        at = skip(at + step);
    }
    (breaks > 0).then_some(at)
}

fn is_basic(bytes: &[u8]) -> bool {
    let decoded = BASE64.decode(bytes).or_else(|_| BASE64_NOPAD.decode(bytes));
    let Ok(decoded) = decoded else { return false };
    let mut parts = decoded.splitn(2, |byte| *byte == b':');
    let (user, password) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_text = decoded.iter().all(|byte| (b' '..=b'~').contains(byte));
    is_text && !user.is_empty() && password.len() >= 3 && !is_placeholder(password)
}

fn is_url_password(candidate: &MatchCandidate<'_>, password: &[u8]) -> bool {
    // The match begins with `://`, followed by the user name.
    let user = &candidate.text[candidate.at + 3..candidate.value.start - 1];
    let is_variable = password.iter().any(|byte| matches!(byte, b'$' | b'{' | b'%' | b'['));
    let is_variable = is_variable && !password.iter().any(u8::is_ascii_digit);
    user != password && !is_variable && !is_placeholder(password)
}

fn is_assigned_secret(candidate: &MatchCandidate<'_>, value: &[u8]) -> bool {
    let MatchCandidate { text, at, .. } = candidate;
    let value = if value.ends_with(b"!") { value } else { trimmed(value) };
    let is_quoted = matches!(text[candidate.value.start - 1], b'"' | b'\'' | b'`');
    let is_password = text[*at] | 0x20 == b'p' && text[at + 1] | 0x20 != b'r';
    let harmless = has_harmless_owner(text, *at) && !is_password;
    if harmless || is_placeholder(value) || is_uuid(value) || is_technical(value) {
        return false;
    }
    let classes = classes(value);
    let is_mixed =
        classes.letters >= 2 && (classes.digits >= 1 || (is_quoted && classes.marks >= 1));
    if !is_mixed || (!is_quoted && is_code(value)) {
        return false;
    }
    if is_password {
        let has_parts = value.iter().any(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/'));
        let length_min = if is_quoted { 6 } else { 7 };
        return value.len() >= length_min
            && !(has_parts && is_slug(value))
            && entropy_bits(value) >= 2.2;
    }
    let bits = entropy_bits(value);
    let (length_min, bits_min) = if is_quoted { (10, 2.8) } else { (14, 3.0) };
    // A single digit is enough only if the entropy is as high as that of random text.
    let is_random = classes.digits >= 2 && bits >= bits_min || bits >= 4.0;
    value.len() >= length_min && is_random && !is_slug(value)
}

fn has_harmless_owner(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(16)..at];
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = before.iter().rev().take_while(|byte| joins(byte)).count();
    let owner = before[before.len() - length..].to_ascii_lowercase();
    let has = |word: &str| owner.windows(word.len()).any(|part| part == word.as_bytes());
    HARMLESS_OWNERS.iter().any(|word| has(word))
}

fn is_prose_password(bytes: &[u8]) -> bool {
    let value = trimmed(bytes);
    let classes = classes(value);
    let has_parts = value.iter().any(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/' | b':'));
    value.len() >= 6
        && classes.letters >= 2
        && (classes.digits >= 1 || classes.marks >= 1)
        && !(has_parts && is_slug(value))
        && !is_code(value)
        && !is_technical(value)
        && !is_placeholder(value)
}

/// Removes trailing punctuation of a sentence or a bracket.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().rposition(|byte| !b".,;:)]}!?*".contains(byte));
    // A password may end in a mark, so only a short run of trailing marks is removed.
    match length {
        Some(last) if bytes.len() - last <= 3 => &bytes[..=last],
        _ => bytes,
    }
}
