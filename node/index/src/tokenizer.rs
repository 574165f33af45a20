//! The tokenizer of the keyword index: lower-case words, and identifiers both whole and split.
//!
//! Entries and queries use the same function, because a word that is split differently on the two
//! sides is never found. `maxRetries`, `max_retries` and `max-retries` all give `maxretry`, `max`
//! and `retry`; `src/api/mod.rs:42` gives the whole path, `mod.rs`, and each word. English endings
//! are folded lightly. Every word is indexed; `function_words` names those that carry no weight in
//! a question. The embedder has another tokenizer, which must match the training of its table.
//! `docs/internals/retrieval.md` has measurements of each rule.

/// Maximum length of a word in bytes; the rest is cut, because words of this length differ before
/// it.
pub const WORD_BYTES_MAX: usize = 96;
/// Maximum number of words of one text; further words are ignored.
pub const WORDS_MAX: usize = 8192;
/// Maximum number of words in a hyphenated name; a longer one is a sentence.
const HYPHENATED_WORDS_MAX: usize = 3;
/// Maximum length of a separator inside a name, in bytes; a longer run is decoration.
const JOINT_BYTES_MAX: usize = 2;

/// The words of a text in order, with repetitions.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| found.push(word.to_owned()));
    found
}

/// Calls `visit` with every word of a text, without allocating a string for each.
pub fn each_word(text: &str, visit: impl FnMut(&str)) {
    let mut splitter = WordSplitter { visit, left: WORDS_MAX, lower: String::new() };
    let mut rest = text;
    while splitter.left > 0 {
        let Some(start) = word_start(rest) else { return };
        let (word, name) = first_name(&rest[start..]);
        if word == name {
            splitter.word(word);
        } else {
            splitter.name(name);
        }
        rest = &rest[start + name.len()..];
    }
}

/// Calls `visit` with every name of a text as written: each word with the words joined to it.
pub fn each_name(text: &str, mut visit: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(start) = word_start(rest) {
        let (_, name) = first_name(&rest[start..]);
        visit(name);
        rest = &rest[start + name.len()..];
    }
}

/// True if a text has only scripts with spaces between words.
pub fn is_spaced(text: &str) -> bool {
    text.is_ascii() || !text.contains(is_unspaced)
}

/// The first word of `text`, and the first name: that word with the words joined to it.
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
    // Scanning bytes is faster than scanning characters.
    let may_start = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let start = text.bytes().position(may_start)?;
    text[start..].find(is_letter).map(|further| start + further)
}

fn word_end(text: &str) -> usize {
    let plain = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    let rest = &text[plain..];
    plain + rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len())
}

/// Separators inside a name: `a::b`, `a.b`, `a/b`, `a-b`, `a:42`, `a->b`.
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

/// A combining accent, which follows its letter.
fn is_accent(letter: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&letter)
}

/// A letter of a script without spaces between words: Han, Hiragana and Katakana.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

struct WordSplitter<V> {
    visit: V,
    left: usize,
    /// The last word emitted; kept to reuse its buffer.
    lower: String,
}

impl<V: FnMut(&str)> WordSplitter<V> {
    /// Emits a name as a whole, then its words.
    fn name(&mut self, name: &str) {
        let words = || name.split(|letter| !is_letter(letter)).filter(|word| !word.is_empty());
        let whole = without_line(name);
        if whole.bytes().any(|byte| byte != b'-' && is_joint(byte)) {
            self.emit(whole);
            // Emit the file name too, because questions often omit the folder.
            if let Some((_, file)) = whole.rsplit_once('/')
                && file.contains('.')
            {
                self.emit(file);
            }
        } else if words().count() <= HYPHENATED_WORDS_MAX {
            self.emit_joined(name);
        }
        words().for_each(|word| self.word(word));
    }

    /// Emits a word as a whole, then the parts between case changes, digits and underscores.
    fn word(&mut self, word: &str) {
        if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return self.emit(word);
        }
        if !word.is_ascii() && word.contains(is_unspaced) {
            return self.pairs(word);
        }
        let mut parts = Parts(word);
        match (parts.next(), parts.0) {
            (Some(only), "") => self.emit(only),
            _ => {
                self.emit_joined(word);
                Parts(word).for_each(|part| self.emit(part));
            }
        }
    }

    /// Emits all pairs of neighbouring letters, because without spaces the word boundaries are
    /// unknown.
    fn pairs(&mut self, text: &str) {
        let mut starts = text.char_indices().map(|(at, _)| at).skip(1).peekable();
        let mut first = 0;
        while let Some(second) = starts.next() {
            let end = starts.peek().copied().unwrap_or(text.len());
            self.emit(&text[first..end]);
            first = second;
        }
        if first == 0 {
            self.emit(text);
        }
    }

    fn emit(&mut self, word: &str) {
        self.lower.clear();
        push_lower(&mut self.lower, word);
        self.emit_lower();
    }

    /// Emits a name without its separators, so that all spellings give one word.
    fn emit_joined(&mut self, name: &str) {
        self.lower.clear();
        for part in name.split(['-', '_']) {
            push_lower(&mut self.lower, part);
        }
        self.emit_lower();
    }

    fn emit_lower(&mut self) {
        if !self.lower.is_empty() && self.left > 0 {
            self.left -= 1;
            fold_ending(&mut self.lower);
            (self.visit)(&self.lower);
        }
    }
}

/// Appends `word` in lower case and without combining accents, up to the maximum length.
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

/// A path without line and column numbers, because those change with every edit.
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
/// There is no dictionary: it matters that `parse`, `parses`, `parsed` and `parsing` become one
/// word and that identifiers stay distinct. A heavier stemmer measured no better.
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

/// `stopp` becomes `stop`; `call`, `miss` and `buzz` keep their double letter.
fn undouble(word: &mut String) {
    if let [.., before, last] = word.as_bytes()
        && before == last
        && !matches!(last, b'l' | b's' | b'z')
    {
        word.truncate(word.len() - 1);
    }
}

/// The parts of a word: `HTTPServer2` gives `HTTP`, `Server` and `2`.
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

/// True if a part ends between `last` and `letter`, which `next` follows.
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
    fn identifiers_give_the_whole_and_their_parts() {
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
    fn each_name_covers_all_words_of_a_text() {
        for text in ["", "ctx.Err() at src/api/mod.rs:42:7, --no-verify", "a - b.", "wait....what"]
        {
            let mut of_names = Vec::new();
            each_name(text, |name| of_names.extend(words(name)));
            assert_eq!(of_names, words(text), "{text}");
        }
    }

    #[test]
    fn all_spellings_of_a_name_give_one_word() {
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
    fn other_scripts_are_tokenized() {
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
    fn words_and_texts_are_bounded() {
        let long = "ß".repeat(WORD_BYTES_MAX);
        assert_eq!(words(&long), ["ß".repeat(WORD_BYTES_MAX / 2)]);
        assert_eq!(words(&"x".repeat(WORD_BYTES_MAX + 1)), ["x".repeat(WORD_BYTES_MAX)]);
        assert_eq!(words(&"a ".repeat(WORDS_MAX + 1)).len(), WORDS_MAX);
        // One name of a million words must take neither deep recursion nor quadratic time.
        assert_eq!(words(&"a:1".repeat(1_000_000)).len(), WORDS_MAX);
    }

    #[test]
    fn every_character_is_accepted_anywhere() {
        for letter in (0..=0x10_ffff).filter_map(char::from_u32) {
            for word in words(&format!("a{letter}B-{letter}.9{letter}")) {
                assert!(!word.is_empty() && word.len() <= WORD_BYTES_MAX, "{letter:?}: {word:?}");
            }
        }
    }
}
