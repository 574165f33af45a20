//! A text as the keyword index sees it: lower-case words, names of code whole as well as split.
//!
//! One function for entries and for queries, because a word that is cut differently on the two
//! sides is never found. `maxRetries`, `max_retries` and `max-retries` are all `maxretry`, `max` and
//! `retry`; `src/api/mod.rs:42` is the whole path, `mod.rs`, and each word. Endings of English are
//! folded lightly, and no word is left out for being common: how rare a word is says enough. Separate
//! from the embedder's tokenizer, which must repeat what its table was trained with. What each rule
//! is worth was measured: `docs/retrieval.md`.

/// Longer words are cut here, in bytes: what tells two words of this length apart comes before.
pub const WORD_BYTES_MAX: usize = 96;
/// Words beyond this many in one text are not looked at.
pub const WORDS_MAX: usize = 8192;
/// A name of more words, joined by hyphens, is a sentence and not a name.
const HYPHENATED_WORDS_MAX: usize = 3;
/// A longer run of joints is decoration.
const JOINT_BYTES_MAX: usize = 2;

/// The words of a text in their order, each as often as it stands there.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| found.push(word.to_owned()));
    found
}

/// Shows `visit` every word of a text, without making a string for each.
pub fn each_word(text: &str, visit: impl FnMut(&str)) {
    let mut cutter = Cutter { visit, left: WORDS_MAX, lower: String::new() };
    let mut rest = text;
    while cutter.left > 0 {
        let Some(start) = word_start(rest) else { return };
        let (word, name) = first_name(&rest[start..]);
        if word == name {
            cutter.word(word);
        } else {
            cutter.name(name);
        }
        rest = &rest[start + name.len()..];
    }
}

/// Shows `visit` every name of a text as it is written: each word with all that is joined to it.
pub fn each_name(text: &str, mut visit: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(start) = word_start(rest) {
        let (_, name) = first_name(&rest[start..]);
        visit(name);
        rest = &rest[start + name.len()..];
    }
}

/// Whether a text is of scripts that put spaces between words.
pub fn is_spaced(text: &str) -> bool {
    text.is_ascii() || !text.contains(is_unspaced)
}

/// The word that `text` starts with, and the name: that word with all that is joined to it.
fn first_name(text: &str) -> (&str, &str) {
    let first = word_end(text);
    let mut end = first;
    loop {
        let rest = &text[end..];
        let joint = rest.bytes().take_while(|byte| is_joint(*byte)).count();
        let goes_on = rest[joint..].chars().next().is_some_and(is_letter);
        if joint == 0 || joint > JOINT_BYTES_MAX || !goes_on {
            return (&text[..first], &text[..end]);
        }
        end += joint + word_end(&rest[joint..]);
    }
}

fn word_start(text: &str) -> Option<usize> {
    // Bytes are quicker to pass over than characters.
    let may_start = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let start = text.bytes().position(may_start)?;
    text[start..].find(is_letter).map(|further| start + further)
}

fn word_end(text: &str) -> usize {
    let plain = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    let rest = &text[plain..];
    plain + rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len())
}

/// What joins the words of one name: `a::b`, `a.b`, `a/b`, `a-b`, `a:42`, `a->b`.
fn is_joint(byte: u8) -> bool {
    matches!(byte, b':' | b'.' | b'/' | b'-' | b'\\' | b'>')
}

fn is_letter(letter: char) -> bool {
    if letter.is_ascii() {
        letter.is_ascii_alphanumeric() || letter == '_'
    } else {
        letter.is_alphanumeric() || is_accent(letter)
    }
}

/// An accent that follows its letter.
fn is_accent(letter: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&letter)
}

/// Of a script that puts no spaces between words: Han, Hiragana and Katakana.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

struct Cutter<V> {
    visit: V,
    left: usize,
    /// The last word shown, kept for its room.
    lower: String,
}

impl<V: FnMut(&str)> Cutter<V> {
    /// A name whole, then its words.
    fn name(&mut self, name: &str) {
        let words = || name.split(|letter| !is_letter(letter)).filter(|word| !word.is_empty());
        let whole = without_line(name);
        if whole.bytes().any(|byte| byte != b'-' && is_joint(byte)) {
            self.show(whole);
            // A file is asked for by its name, whatever folder it is in.
            if let Some((_, file)) = whole.rsplit_once('/')
                && file.contains('.')
            {
                self.show(file);
            }
        } else if words().count() <= HYPHENATED_WORDS_MAX {
            self.show_joined(name);
        }
        words().for_each(|word| self.word(word));
    }

    /// A word whole, then the parts that its humps, digits and underscores cut it into.
    fn word(&mut self, word: &str) {
        if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return self.show(word);
        }
        if !word.is_ascii() && word.contains(is_unspaced) {
            return self.pairs(word);
        }
        let mut parts = Parts(word);
        match (parts.next(), parts.0) {
            (Some(only), "") => self.show(only),
            _ => {
                self.show_joined(word);
                Parts(word).for_each(|part| self.show(part));
            }
        }
    }

    /// Every two neighbouring letters: without spaces, no one knows where a word ends.
    fn pairs(&mut self, text: &str) {
        let mut starts = text.char_indices().map(|(at, _)| at).skip(1).peekable();
        let mut first = 0;
        while let Some(second) = starts.next() {
            let end = starts.peek().copied().unwrap_or(text.len());
            self.show(&text[first..end]);
            first = second;
        }
        if first == 0 {
            self.show(text);
        }
    }

    fn show(&mut self, word: &str) {
        self.lower.clear();
        push_lower(&mut self.lower, word);
        self.show_lower();
    }

    /// A name without what joins it, so that all ways to write it are one word.
    fn show_joined(&mut self, name: &str) {
        self.lower.clear();
        for part in name.split(['-', '_']) {
            push_lower(&mut self.lower, part);
        }
        self.show_lower();
    }

    fn show_lower(&mut self) {
        if !self.lower.is_empty() && self.left > 0 {
            self.left -= 1;
            fold_ending(&mut self.lower);
            (self.visit)(&self.lower);
        }
    }
}

/// Adds `word` in lower case and without accents of their own, as far as there is room.
fn push_lower(lower: &mut String, word: &str) {
    if word.is_ascii() && lower.len() + word.len() <= WORD_BYTES_MAX {
        let start = lower.len();
        lower.push_str(word);
        lower[start..].make_ascii_lowercase();
        return;
    }
    let letters = word.chars().filter(|letter| !is_accent(*letter)).flat_map(char::to_lowercase);
    for letter in letters {
        if lower.len() + letter.len_utf8() > WORD_BYTES_MAX {
            return;
        }
        lower.push(letter);
    }
}

/// A path without the line and column after it: those change with every edit.
fn without_line(mut name: &str) -> &str {
    loop {
        let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        match bare.strip_suffix(':') {
            Some(path) if bare.len() < name.len() && !path.ends_with(':') => name = path,
            _ => return name,
        }
    }
}

/// Folds plural, -ing, -ed and a silent e, for words of at least four English letters.
///
/// No dictionary: what matters is that `parse`, `parses`, `parsed` and `parsing` become one, and
/// that names stay apart. A heavier stemmer measured no better.
fn fold_ending(word: &mut String) {
    const LETTERS_MIN: usize = 4;
    let may_fold = matches!(word.as_bytes().last(), Some(b's' | b'g' | b'd' | b'e'));
    if !may_fold || word.len() < LETTERS_MIN || !word.bytes().all(|byte| byte.is_ascii_lowercase())
    {
        return;
    }
    if word.ends_with("ies") && word.len() > LETTERS_MIN {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["sses", "shes", "ches", "xes"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 1);
    }
    for ending in ["ing", "ed"] {
        let Some(stem) = word.strip_suffix(ending).map(str::len) else { continue };
        if stem >= 3 && word[..stem].bytes().any(is_vowel) {
            word.truncate(stem);
            undouble(word);
            break;
        }
    }
    if word.ends_with('e') && word.len() >= LETTERS_MIN {
        word.truncate(word.len() - 1);
    }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// `stopp` is `stop`; but `call`, `miss` and `buzz` are doubled by themselves.
fn undouble(word: &mut String) {
    if let [.., before, last] = word.as_bytes()
        && before == last
        && !matches!(last, b'l' | b's' | b'z')
    {
        word.truncate(word.len() - 1);
    }
}

/// The parts of a word: `HTTPServer2` is `HTTP`, `Server` and `2`.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let word = self.0.trim_start_matches('_');
        let mut letters = word.char_indices().peekable();
        let (_, mut last) = letters.next()?;
        let mut end = word.len();
        while let Some((at, letter)) = letters.next() {
            let next = letters.peek().map(|(_, next)| *next);
            if ends_between(last, letter, next) {
                end = at;
                break;
            }
            last = letter;
        }
        let (part, rest) = word.split_at(end);
        self.0 = rest.trim_start_matches('_');
        Some(part)
    }
}

/// Whether a part ends between `last` and `letter`, which `next` follows.
fn ends_between(last: char, letter: char, next: Option<char>) -> bool {
    letter == '_'
        || last.is_numeric() != letter.is_numeric()
        || (last.is_lowercase() && letter.is_uppercase())
        || (last.is_uppercase() && letter.is_uppercase() && next.is_some_and(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    use super::{WORD_BYTES_MAX, WORDS_MAX, each_name, words};

    fn check(text: &str, expect: &str) {
        assert_eq!(words(text).join(" "), expect, "{text}");
    }

    #[test]
    fn names_of_code_are_words_whole_and_split() {
        for (text, expect) in [
            ("", ""),
            ("  \u{1f980} -- ... _ __ ", ""),
            ("A plain text.", "a plain text"),
            ("ctx.Err()", "ctx.err ctx err"),
            ("std::io::Error", "std::io::error std io error"),
            ("self->next", "self->next self next"),
            ("src/api/mod.rs:42:7", "src/api/mod.rs mod.rs src api mod rs 42 7"),
            ("error[E0308]: type", "error e0308 e 0308 typ"),
            ("ECONNREFUSED", "econnrefus"),
            ("0x80070005", "0x80070005 0 x 80070005"),
            ("--no-verify", "noverify no verify"),
            ("tokio 1.54.0,", "tokio 1.54.0 1 54 0"),
            ("HTTPServer2", "httpserver2 http server 2"),
            ("__init__", "init"),
            ("a-b-c-d", "a b c d"),
            ("wait....what", "wait what"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn the_words_of_its_names_are_those_of_a_text() {
        for text in ["", "ctx.Err() at src/api/mod.rs:42:7, --no-verify", "a - b.", "wait....what"]
        {
            let mut of_names = Vec::new();
            each_name(text, |name| of_names.extend(words(name)));
            assert_eq!(of_names, words(text), "{text}");
        }
    }

    #[test]
    fn all_ways_to_write_a_name_are_one_word() {
        for text in ["maxRetries", "max_retries", "max-retries", "MAX_RETRIES", "MaxRetries"] {
            check(text, "maxretry max retry");
        }
    }

    #[test]
    fn endings_of_english_are_folded() {
        for (text, expect) in [
            ("parse parses parsed parsing", "pars pars pars pars"),
            ("query queries boxes classes", "query query box class"),
            ("stop stopped stopping call calling", "stop stop stop call call"),
            ("status this bus less red ring sing", "status this bus less red ring sing"),
            ("utf8s E2Es Größes", "utf8s utf 8 s e2es e 2 es größes"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn other_scripts_are_words_too() {
        for (text, expect) in [
            ("Straße ÄRGER", "straße ärger"),
            ("re\u{301}sume\u{301}", "resum"),
            ("Привет, мир", "привет мир"),
            ("接続が切れた x", "接続 続が が切 切れ れた x"),
            ("語", "語"),
            ("हिन्दी", "हिन दी"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn a_word_and_a_text_have_their_limits() {
        let long = "ß".repeat(WORD_BYTES_MAX);
        assert_eq!(words(&long), ["ß".repeat(WORD_BYTES_MAX / 2)]);
        assert_eq!(words(&"x".repeat(WORD_BYTES_MAX + 1)), ["x".repeat(WORD_BYTES_MAX)]);
        assert_eq!(words(&"a ".repeat(WORDS_MAX + 1)).len(), WORDS_MAX);
        // One name of a million words: neither deep nor quadratic.
        assert_eq!(words(&"a:1".repeat(1_000_000)).len(), WORDS_MAX);
    }

    #[test]
    fn every_character_can_stand_anywhere() {
        for letter in (0..=0x10_ffff).filter_map(char::from_u32) {
            for word in words(&format!("a{letter}B-{letter}.9{letter}")) {
                assert!(!word.is_empty() && word.len() <= WORD_BYTES_MAX, "{letter:?}: {word:?}");
            }
        }
    }
}
