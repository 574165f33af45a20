//! Validates a finding before it is stored: a few sentences, anchors to look at, and steps to
//! verify it.
//!
//! Evidence that can be checked separates knowledge from folklore, so a finding without it is
//! refused. `finding_resolution` decides what happens to valid findings.

use crate::predicate::Predicate;

/// Maximum number of sentences in a finding.
pub const SENTENCES_MAX: usize = 3;
/// Maximum length of a finding's text in bytes.
pub const TEXT_BYTES_MAX: usize = 2 * 1024;
/// Maximum number of anchors of a finding.
pub const ANCHORS_MAX: usize = 16;
/// Maximum number of verification steps.
pub const VERIFY_STEPS_MAX: usize = 3;
/// Maximum length of one verification step in bytes.
pub const STEP_BYTES_MAX: usize = 1024;

/// Highest severity, and highest confidence beside a severity, that are given as numbers.
pub const SCORE_MAX: f64 = 10.0;

/// Words after which a full stop does not end the sentence.
const ABBREVIATIONS: [&str; 6] = ["e.g", "i.e", "cf", "vs", "approx", "resp"];
/// Characters allowed between the end of a sentence and the space after it.
const CLOSING: [char; 7] = ['"', '\'', ')', ']', '`', '”', '’'];

/// Severity that the finder assigns to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// Worth knowing; needs no action.
    Info,
    /// A blemish without consequences.
    Low,
    /// Should be fixed.
    Medium,
    /// Must be fixed.
    High,
    /// Must be fixed at once.
    Critical,
}

impl FindingSeverity {
    /// All severities with their names, lowest first.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Info, "info"),
        (Self::Low, "low"),
        (Self::Medium, "medium"),
        (Self::High, "high"),
        (Self::Critical, "critical"),
    ];

    /// The severity of a number from 0 to 10; each begins at its [`score`](Self::score).
    #[must_use]
    pub fn of_score(score: f64) -> Self {
        let reached = Self::ALL.iter().rev().find(|(severity, _)| score >= severity.score());
        reached.map_or(Self::Info, |(severity, _)| *severity)
    }

    /// The lowest number of this severity, on a scale from 0 to 10.
    #[must_use]
    pub fn score(self) -> f64 {
        match self {
            Self::Info => 0.0,
            Self::Low => 1.0,
            Self::Medium => 4.0,
            Self::High => 7.0,
            Self::Critical => 9.0,
        }
    }

    /// Name used in the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(one, _)| *one == self);
        named.expect("every severity has a name").1
    }

    /// The severity with this name; `None` for an unknown name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(severity, _)| *severity)
    }
}

/// A finding that an agent wants to record.
#[derive(Clone, Copy, Debug)]
pub struct FindingDraft<'a> {
    /// Text of the finding, 1 to 3 sentences.
    pub text: &'a str,
    /// Name of a [`FindingSeverity`], or a number from 0 to 10.
    pub severity: &'a str,
    /// The finder's confidence: in [0, 1], or in [0, 10] if the severity is a number.
    pub confidence: f64,
    /// Predicates that say where the finding can be seen.
    pub anchors: &'a [String],
    /// Steps to check whether the finding still holds.
    pub verify: &'a [String],
}

/// Severity and confidence of a finding, whichever scale the finder used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeverityGrade {
    /// The severity in words, mapped from a number if the finder gave one.
    pub severity: FindingSeverity,
    /// The severity as a number from 0 to 10, if the finder gave one.
    pub score: Option<f64>,
    /// The finder's confidence, in [0, 1].
    pub confidence: f64,
}

/// Reason why a draft is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftProblem {
    /// Name of the invalid field.
    pub field: &'static str,
    /// Explanation with the limit, to be read after the field name.
    pub problem: String,
}

fn problem(field: &'static str, problem: impl Into<String>) -> DraftProblem {
    DraftProblem { field, problem: problem.into() }
}

/// Validates a draft.
///
/// # Errors
/// The first invalid field, with its limit.
pub fn check(draft: &FindingDraft<'_>) -> Result<(), DraftProblem> {
    text(draft.text)?;
    grade(draft.severity, draft.confidence)?;
    anchors(draft.anchors)?;
    steps(draft.verify)
}

/// Reads severity and confidence. A number as severity puts both on a scale from 0 to 10.
///
/// # Errors
/// The first value that is off its scale.
pub fn grade(severity: &str, confidence: f64) -> Result<SeverityGrade, DraftProblem> {
    let (severity, score, confidence_max) = match FindingSeverity::parse(severity) {
        Some(severity) => (severity, None, 1.0),
        None => {
            let number = severity.trim().parse::<f64>().ok();
            let score = number.filter(|score| (0.0..=SCORE_MAX).contains(score));
            let Some(score) = score else {
                let known: Vec<&str> = FindingSeverity::ALL.iter().map(|(_, name)| *name).collect();
                let known = known.join(", ");
                let reason = format!(
                    "is `{severity}`; it must be one of {known}, or a number from 0 to {SCORE_MAX}"
                );
                return Err(problem("severity", reason));
            };
            (FindingSeverity::of_score(score), Some(score), SCORE_MAX)
        }
    };
    if !(0.0..=confidence_max).contains(&confidence) {
        let reason = format!("is {confidence}; it must be from 0 to {confidence_max}");
        return Err(problem("confidence", reason));
    }
    Ok(SeverityGrade { severity, score, confidence: confidence / confidence_max })
}

fn text(text: &str) -> Result<(), DraftProblem> {
    if text.len() > TEXT_BYTES_MAX {
        let reason = format!("has {} bytes; {TEXT_BYTES_MAX} are allowed", text.len());
        return Err(problem("text", reason));
    }
    match sentences(text).len() {
        0 => Err(problem("text", "is empty; say in 1 to 3 sentences what was found")),
        1..=SENTENCES_MAX => Ok(()),
        more => {
            Err(problem("text", format!("has {more} sentences; 1 to {SENTENCES_MAX} are allowed")))
        }
    }
}

fn anchors(anchors: &[String]) -> Result<(), DraftProblem> {
    match anchors.len() {
        0 => {
            let reason = "are missing; name at least one place where it is seen, as in \
                        text:src/auth.go~\"http.Do\"";
            return Err(problem("anchors", reason));
        }
        1..=ANCHORS_MAX => {}
        more => {
            return Err(problem("anchors", format!("are {more}; 1 to {ANCHORS_MAX} are allowed")));
        }
    }
    for anchor in anchors {
        if let Err(error) = Predicate::parse(anchor) {
            return Err(problem("anchors", format!("contain `{anchor}`. {error}")));
        }
    }
    Ok(())
}

fn steps(steps: &[String]) -> Result<(), DraftProblem> {
    match steps.len() {
        0 => {
            let reason =
                "steps are missing; say in 1 to 3 of them how to check that it still holds";
            return Err(problem("verify", reason));
        }
        1..=VERIFY_STEPS_MAX => {}
        more => {
            let reason = format!("steps are {more}; 1 to {VERIFY_STEPS_MAX} are allowed");
            return Err(problem("verify", reason));
        }
    }
    for step in steps {
        if step.trim().is_empty() {
            return Err(problem("verify", "has an empty step"));
        }
        if step.len() > STEP_BYTES_MAX {
            let reason =
                format!("has a step of {} bytes; {STEP_BYTES_MAX} are allowed", step.len());
            return Err(problem("verify", reason));
        }
    }
    Ok(())
}

/// Splits a text into sentences and trims each.
///
/// A sentence ends at `.`, `!` or `?` before a space that no lower-case letter follows, and at an
/// empty line; so `ctx.Err()`, `v1.2` and `e.g.` do not end one.
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

/// End of the sentence if the character `c` at `at` ends one; `None` otherwise.
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

/// The first sentence of a text, cut at a word boundary to at most `characters_max` characters.
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
