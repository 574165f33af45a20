//! Rules that a norm states about commits, in lines that begin with `Check:`.
//!
//! A line names a part of the commit and a test, such as `Check: subject has at most 72 characters`.
//! The language has no expressions and runs nothing, so two nodes that hold the same norm and read
//! the same commit agree. A quoted text may contain `*` for any characters in `matches`.

use std::fmt;

/// The beginning of a line with a rule.
const PREFIX: &str = "check:";
/// Most rules of one norm.
pub const COMMIT_RULES_MAX: usize = 16;

/// The texts of a commit that rules are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitText<'a> {
    /// The first line of the message.
    pub subject: &'a str,
    /// The message after the subject.
    pub body: &'a str,
    /// The author as `Name <address>`.
    pub author: &'a str,
}

/// The part of a commit that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitPart {
    /// The first line of the message.
    Subject,
    /// The message after the subject.
    Body,
    /// Each line of the message on its own.
    EachLine,
    /// Subject and body.
    Message,
    /// The author of the commit.
    Author,
}

/// Makes the test of a rule from its quoted words.
type TestOf = fn(Vec<String>) -> CommitTest;

/// The test of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CommitTest {
    LengthMax(usize),
    NotEmpty,
    BeginsWith(Vec<String>),
    EndsWith(Vec<String>),
    Contains(Vec<String>),
    Matches(Vec<String>),
}

/// One rule about commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRule {
    part: CommitPart,
    test: CommitTest,
    is_negated: bool,
    /// The rule as the norm states it, without `Check:`.
    words: String,
}

/// A line that begins with `Check:` and is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRuleError {
    /// The line without `Check:`.
    pub words: String,
    /// The reason, as a clause.
    pub reason: &'static str,
}

impl CommitPart {
    const ALL: [(&'static str, Self); 5] = [
        ("subject", Self::Subject),
        ("body", Self::Body),
        ("each line", Self::EachLine),
        ("message", Self::Message),
        ("author", Self::Author),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, part)| *part == self).map_or("", |(name, _)| name)
    }

    /// The texts that a test of this part reads.
    fn texts(self, commit: &CommitText<'_>) -> Vec<String> {
        match self {
            Self::Subject => vec![commit.subject.to_owned()],
            Self::Body => vec![commit.body.trim_end().to_owned()],
            Self::Author => vec![commit.author.to_owned()],
            Self::Message => {
                vec![format!("{}\n\n{}", commit.subject, commit.body).trim_end().to_owned()]
            }
            Self::EachLine => {
                let lines = std::iter::once(commit.subject).chain(commit.body.lines());
                lines.map(str::to_owned).collect()
            }
        }
    }
}

impl fmt::Display for CommitRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl CommitRule {
    /// The rules of a norm's text, line by line.
    ///
    /// # Errors
    /// If a line begins with `Check:` and is no rule, or there are too many.
    pub fn read(text: &str) -> Result<Vec<Self>, CommitRuleError> {
        let mut rules = Vec::new();
        for line in text.lines() {
            let line = line.trim().trim_start_matches(['-', '*', '>']).trim_start();
            let is_rule =
                line.get(..PREFIX.len()).is_some_and(|of| of.eq_ignore_ascii_case(PREFIX));
            let words = line.get(PREFIX.len()..).filter(|_| is_rule).map(str::trim);
            let Some(words) = words else { continue };
            let failed = |reason| CommitRuleError { words: words.to_owned(), reason };
            if rules.len() == COMMIT_RULES_MAX {
                return Err(failed("a norm has at most 16 rules"));
            }
            rules.push(Self::parse(words).map_err(failed)?);
        }
        Ok(rules)
    }

    fn parse(words: &str) -> Result<Self, &'static str> {
        let part = |(name, part): &(&str, CommitPart)| {
            let rest = words.strip_prefix(name)?.strip_prefix(' ')?;
            Some((*part, rest.trim()))
        };
        let found = CommitPart::ALL.iter().find_map(part);
        let (part, test) =
            found.ok_or("it must begin with subject, body, each line, message or author")?;
        let rule = |test, is_negated| Self { part, test, is_negated, words: words.to_owned() };
        if let Some(rest) = test.strip_prefix("has at most ") {
            let count = rest.strip_suffix(" characters").and_then(|count| count.parse().ok());
            let count = count.ok_or("`has at most` needs a number and the word characters")?;
            return Ok(rule(CommitTest::LengthMax(count), false));
        }
        match test {
            "is not empty" => return Ok(rule(CommitTest::NotEmpty, false)),
            "is empty" => return Ok(rule(CommitTest::NotEmpty, true)),
            _ => {}
        }
        let tests: [(&str, &str, TestOf); 4] = [
            ("begins with ", "does not begin with ", CommitTest::BeginsWith),
            ("ends with ", "does not end with ", CommitTest::EndsWith),
            ("contains ", "does not contain ", CommitTest::Contains),
            ("matches ", "does not match ", CommitTest::Matches),
        ];
        for (yes, no, make) in tests {
            if let Some(rest) = test.strip_prefix(yes) {
                return Ok(rule(make(quoted(rest)?), false));
            }
            if let Some(rest) = test.strip_prefix(no) {
                return Ok(rule(make(quoted(rest)?), true));
            }
        }
        Err("its test must be `has at most N characters`, `is empty`, `begins with`, `ends with`, \
             `contains` or `matches`, or one with not")
    }

    /// The reason why a commit breaks the rule, as a clause; `None` if it keeps it.
    pub fn violation(&self, commit: &CommitText<'_>) -> Option<String> {
        let texts = self.part.texts(commit);
        let broken = texts.iter().find(|text| self.test.holds(text) == self.is_negated)?;
        let part = self.part.name();
        Some(match &self.test {
            CommitTest::LengthMax(max) => {
                let count = broken.chars().count();
                format!("{part} has {count} characters; at most {max} are allowed")
            }
            CommitTest::NotEmpty if self.is_negated => format!("{part} is not empty"),
            CommitTest::NotEmpty => format!("{part} is empty"),
            CommitTest::BeginsWith(of) => self.because("begin with", of),
            CommitTest::EndsWith(of) => self.because("end with", of),
            CommitTest::Contains(of) => self.because("contain", of),
            CommitTest::Matches(of) => self.because("match", of),
        })
    }

    fn because(&self, verb: &str, of: &[String]) -> String {
        let part = self.part.name();
        let of: Vec<String> = of.iter().map(|text| format!("\"{text}\"")).collect();
        let of = of.join(" or ");
        match self.is_negated {
            true => format!("{part} must not {verb} {of}"),
            false => format!("{part} must {verb} {of}"),
        }
    }
}

impl CommitTest {
    fn holds(&self, text: &str) -> bool {
        match self {
            Self::LengthMax(max) => text.chars().count() <= *max,
            Self::NotEmpty => !text.trim().is_empty(),
            Self::BeginsWith(of) => of.iter().any(|of| text.starts_with(of.as_str())),
            Self::EndsWith(of) => of.iter().any(|of| text.ends_with(of.as_str())),
            Self::Contains(of) => of.iter().any(|of| text.contains(of.as_str())),
            Self::Matches(of) => of.iter().any(|of| matches(of, text)),
        }
    }
}

/// The quoted texts of a test, separated by ` or `.
fn quoted(text: &str) -> Result<Vec<String>, &'static str> {
    const WANTED: &str = "its text must stand in double quotes; several are joined with or";
    let mut found = Vec::new();
    let mut rest = text.trim();
    loop {
        let (of, after) =
            rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).ok_or(WANTED)?;
        if of.is_empty() {
            return Err(WANTED);
        }
        found.push(of.to_owned());
        rest = after.trim_start();
        if rest.is_empty() {
            return Ok(found);
        }
        rest = rest.strip_prefix("or ").ok_or(WANTED)?.trim_start();
    }
}

/// Whether a text is the pattern, in which `*` stands for any characters. The time is linear in the
/// text for each `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: CommitText<'_> = CommitText {
        subject: "store: Add a table",
        body: "It holds rows.\n\nSigned-off-by: Ana <ana@host>\n",
        author: "Ana <ana@host>",
    };

    fn why(rule: &str) -> Option<String> {
        let rules = CommitRule::read(&format!("Text.\n- Check: {rule}\n")).expect("a rule");
        assert_eq!(rules[0].to_string(), rule);
        rules[0].violation(&COMMIT)
    }

    #[test]
    fn each_test_holds_or_says_why_not() {
        for (rule, reason) in [
            ("subject has at most 18 characters", None),
            (
                "subject has at most 17 characters",
                Some("subject has 18 characters; at most 17 are allowed"),
            ),
            ("body is not empty", None),
            ("body is empty", Some("body is not empty")),
            ("subject begins with \"docs: \" or \"store: \"", None),
            ("subject begins with \"docs: \"", Some("subject must begin with \"docs: \"")),
            ("subject does not end with \".\"", None),
            ("subject does not end with \"table\"", Some("subject must not end with \"table\"")),
            ("message contains \"Signed-off-by: \"", None),
            ("message does not contain \"rows\"", Some("message must not contain \"rows\"")),
            ("subject matches \"*: *\"", None),
            ("subject matches \"*(*): *\"", Some("subject must match \"*(*): *\"")),
            ("author matches \"*@host>\"", None),
            ("each line has at most 30 characters", None),
            (
                "each line has at most 20 characters",
                Some("each line has 29 characters; at most 20 are allowed"),
            ),
        ] {
            assert_eq!(why(rule).as_deref(), reason, "{rule}");
        }
    }

    #[test]
    fn a_line_that_is_no_rule_is_an_error_and_other_lines_are_text() {
        assert_eq!(CommitRule::read("We check: nothing.\nchecked\n"), Ok(Vec::new()));
        for line in [
            "Check: title is short",
            "Check: subject",
            "Check: subject has at most many characters",
            "check: subject contains feat",
            "Check: subject contains \"\"",
            "Check: subject contains \"a\" and \"b\"",
            "Check: subject is nice",
        ] {
            assert!(CommitRule::read(line).is_err(), "{line}");
        }
        let many = "Check: body is empty\n".repeat(COMMIT_RULES_MAX + 1);
        assert!(CommitRule::read(&many).is_err());
        assert!(CommitRule::read(&many[21..]).is_ok());
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, holds) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "ab", false),
            ("*", "", true),
            ("abc", "abcd", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), holds, "{pattern} {text}");
        }
    }
}
