//! Words of a command line, as a shell reads them back.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A word of a shell's command line.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A path as a shell reads it back. What is no text cannot stand in a line: the shell makes it.
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
    fn a_shell_reads_each_word_as_it_was() {
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
