//! Quotes words and paths for a POSIX shell.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Quotes one word so that a shell reads it back unchanged.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Quotes a path for a shell. A path that is not UTF-8 becomes a `printf` call that produces its
/// bytes.
pub fn path(path: &Path) -> String {
    if let Some(text) = path.to_str() {
        return word(text);
    }
    let escaped = |byte: &u8| match byte {
        b'/' | b'.' | b'_' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
            char::from(*byte).to_string()
        }
        _ => format!("\\0{byte:03o}"),
    };
    let bytes: String = path.as_os_str().as_bytes().iter().map(escaped).collect();
    format!("\"$(printf %b '{bytes}')\"")
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn words_are_quoted_only_if_needed() {
        for (text, expect) in [
            ("/srv/klnode", "/srv/klnode"),
            ("", "''"),
            ("/a b/it's", r"'/a b/it'\''s'"),
            ("log.level=\"warn\"", "'log.level=\"warn\"'"),
        ] {
            assert_eq!(word(text), expect);
        }
    }
}
