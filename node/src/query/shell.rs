//! Words of a command line, as a shell reads them back.

/// A word of a shell's command line.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
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
