//! What a finding must hold before it is kept: a few sentences, places to look at, steps to check it.
//!
//! Evidence that can be looked at is what separates knowledge from folklore, so there is no finding
//! without it. What becomes of findings is decided in `compounding`.

use crate::predicate::Predicate;

/// Sentences of one finding.
pub const SENTENCES_MAX: usize = 3;
/// Bytes of its text.
pub const TEXT_BYTES_MAX: usize = 2 * 1024;
/// Anchors of one finding.
pub const ANCHORS_MAX: usize = 16;
/// Steps to verify it by.
pub const VERIFY_STEPS_MAX: usize = 3;
/// Bytes of one step.
pub const STEP_BYTES_MAX: usize = 1024;

/// Ends of words that look like the end of a sentence.
const ABBREVIATIONS: [&str; 6] = ["e.g", "i.e", "cf", "vs", "approx", "resp"];
/// What may stand between the end of a sentence and the space after it.
const CLOSING: [char; 7] = ['"', '\'', ')', ']', '`', '”', '’'];

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// A blemish.
    Low,
    /// Should be mended.
    Medium,
    /// Must be mended.
    High,
    /// Must be mended at once.
    Critical,
}

impl Severity {
    /// All of them, the least first, with their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Info, "info"),
        (Self::Low, "low"),
        (Self::Medium, "medium"),
        (Self::High, "high"),
        (Self::Critical, "critical"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(one, _)| *one == self);
        named.expect("every severity has a name").1
    }

    /// From its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(severity, _)| *severity)
    }
}

/// A finding that somebody wants to record.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// What was found.
    pub text: &'a str,
    /// How grave it is, by name.
    pub severity: &'a str,
    /// How sure the finder is, in [0, 1].
    pub confidence: f64,
    /// Where it is seen: predicates.
    pub anchors: &'a [String],
    /// How to check that it still holds.
    pub verify: &'a [String],
}

/// What is wrong with a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which field.
    pub field: &'static str,
    /// What is wrong with it, and the limit.
    pub problem: String,
}

fn problem(field: &'static str, problem: impl Into<String>) -> Problem {
    Problem { field, problem: problem.into() }
}

/// Says what is wrong with a draft.
///
/// # Errors
/// The first field that is, with its limit.
pub fn check(draft: &Draft<'_>) -> Result<(), Problem> {
    text(draft.text)?;
    if Severity::parse(draft.severity).is_none() {
        let known: Vec<&str> = Severity::ALL.iter().map(|(_, name)| *name).collect();
        let told = format!("is `{}`; it must be one of {}", draft.severity, known.join(", "));
        return Err(problem("severity", told));
    }
    if !(0.0..=1.0).contains(&draft.confidence) {
        let told = format!("is {}; it must be from 0 to 1", draft.confidence);
        return Err(problem("confidence", told));
    }
    anchors(draft.anchors)?;
    steps(draft.verify)
}

fn text(text: &str) -> Result<(), Problem> {
    if text.len() > TEXT_BYTES_MAX {
        let told = format!("has {} bytes; {TEXT_BYTES_MAX} are allowed", text.len());
        return Err(problem("text", told));
    }
    match sentences(text).len() {
        0 => Err(problem("text", "is empty; say in 1 to 3 sentences what was found")),
        1..=SENTENCES_MAX => Ok(()),
        more => {
            Err(problem("text", format!("has {more} sentences; 1 to {SENTENCES_MAX} are allowed")))
        }
    }
}

fn anchors(anchors: &[String]) -> Result<(), Problem> {
    match anchors.len() {
        0 => {
            let told = "are missing; name at least one place where it is seen, as in \
                        text:src/auth.go~\"http.Do\"";
            return Err(problem("anchors", told));
        }
        1..=ANCHORS_MAX => {}
        more => {
            return Err(problem("anchors", format!("are {more}; 1 to {ANCHORS_MAX} are allowed")));
        }
    }
    for anchor in anchors {
        if let Err(error) = Predicate::parse(anchor) {
            return Err(problem("anchors", format!("hold `{anchor}`: cannot {error}")));
        }
    }
    Ok(())
}

fn steps(steps: &[String]) -> Result<(), Problem> {
    match steps.len() {
        0 => {
            let told = "steps are missing; say in 1 to 3 of them how to check that it still holds";
            return Err(problem("verify", told));
        }
        1..=VERIFY_STEPS_MAX => {}
        more => {
            let told = format!("steps are {more}; 1 to {VERIFY_STEPS_MAX} are allowed");
            return Err(problem("verify", told));
        }
    }
    for step in steps {
        if step.trim().is_empty() {
            return Err(problem("verify", "has an empty step"));
        }
        if step.len() > STEP_BYTES_MAX {
            let told = format!("has a step of {} bytes; {STEP_BYTES_MAX} are allowed", step.len());
            return Err(problem("verify", told));
        }
    }
    Ok(())
}

/// The sentences of a text, each without the space around it.
///
/// One ends at `.`, `!` or `?` before a space that no small letter follows, and at an empty line; so
/// `ctx.Err()`, `v1.2` and `e.g.` are inside of one.
#[must_use]
pub fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut begin) = (Vec::new(), 0);
    for (at, c) in text.char_indices() {
        if at < begin {
            continue;
        }
        if let Some(end) = end_of_sentence(text, at, c) {
            found.push(text[begin..end].trim());
            begin = end;
        }
    }
    found.push(text[begin..].trim());
    found.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    found
}

/// Where the sentence ends that this character ends, if it ends one.
fn end_of_sentence(text: &str, at: usize, c: char) -> Option<usize> {
    let rest = &text[at + c.len_utf8()..];
    if c == '\n' {
        let line = rest.split('\n').next().unwrap_or_default();
        let is_followed = rest.len() > line.len();
        return (line.trim().is_empty() && is_followed).then_some(at);
    }
    if !matches!(c, '.' | '!' | '?') {
        return None;
    }
    let after = rest.trim_start_matches(CLOSING);
    let end = text.len() - after.len();
    let mut next = after.chars();
    match next.next() {
        None => return Some(end),
        Some(space) if space.is_whitespace() => {}
        Some(_) => return None,
    }
    if next.find(|c| !c.is_whitespace()).is_some_and(char::is_lowercase) {
        return None;
    }
    let word = text[..at].rsplit(|c: char| c.is_whitespace() || c == '(').next();
    let word = word.unwrap_or_default().to_lowercase();
    (c != '.' || !ABBREVIATIONS.contains(&word.as_str())).then_some(end)
}

/// The first sentence of a text, at most so many characters of it, cut at a word.
#[must_use]
pub fn headline(text: &str, characters_max: usize) -> String {
    let first = sentences(text).first().copied().unwrap_or_default();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = first.trim_end_matches(['.', '!']);
    let Some((end, _)) = first.char_indices().nth(characters_max) else { return first.to_owned() };
    let end = first[..end].char_indices().next_back().map_or(0, |(last, _)| last);
    let whole = &first[..end];
    let cut = whole.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", whole[..cut].trim_end())
}

#[cfg(test)]
mod tests;
