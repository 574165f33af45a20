//! Renders a briefing as text and counts its tokens. All text by authors is quoted, so that it
//! cannot end its line or pass for a line of the node.

use super::{
    AssessedEntry, BriefedEntry, Briefing, FoundInsight, HitCaveat, Section, TaskId, TaskRow,
};
use klnode_crdt::register::Register;
use klnode_scoring::briefing::FIRST_LINE;
use klnode_text::unicode::is_seen;
use std::collections::BTreeSet;
use std::fmt::Write;

const INSIGHTS_TITLE: &str = "Insights";
const TASKS_TITLE: &str = "Open tasks";
/// Maximum number of insights that a briefing shows.
const INSIGHTS_MAX: usize = 5;
/// Divisor of the token budget: insights take at most this part of it, one third.
const INSIGHTS_PART: u32 = 3;
/// Tokens reserved for the line that counts omitted entries.
const LEFT_OUT_TOKENS: u32 = 16;
/// Maximum number of characters of a task's goal that are shown.
const GOAL_CHARACTERS_MAX: usize = 100;

/// The size of a text in tokens.
pub(super) fn tokens(text: &str) -> u32 {
    u32::try_from(klnode_embed::count_tokens(text)).unwrap_or(u32::MAX)
}

/// Upper bound of the tokens for everything except entries and tasks.
pub(super) fn frame_tokens(headings: &BTreeSet<Section>) -> u32 {
    let headings: u32 = headings.iter().map(|section| tokens(section.title())).sum();
    tokens(FIRST_LINE) + headings + LEFT_OUT_TOKENS
}

/// Tokens of the task list with its heading.
pub(super) fn tasks_tokens(open: &[(TaskId, TaskRow)]) -> u32 {
    if open.is_empty() {
        return 0;
    }
    let lines: u32 = open.iter().map(|(name, row)| tokens(&task(*name, row))).sum();
    tokens(TASKS_TITLE) + lines
}

/// The insights that fit into their part of the budget, the most severe first.
pub(super) fn fitting_insights(mut found: Vec<FoundInsight>, tokens_max: u32) -> Vec<FoundInsight> {
    found.truncate(INSIGHTS_MAX);
    while !found.is_empty() && insights_tokens(&found) > tokens_max / INSIGHTS_PART {
        found.pop();
    }
    found
}

/// Tokens of the insights with their heading.
pub(super) fn insights_tokens(found: &[FoundInsight]) -> u32 {
    if found.is_empty() {
        return 0;
    }
    let lines: u32 = found.iter().map(|one| tokens(&insight(one))).sum();
    tokens(INSIGHTS_TITLE) + lines
}

/// One insight as a line.
fn insight(found: &FoundInsight) -> String {
    let (id, insight) = (found.id(), &found.insight);
    let severity = insight.severity.name();
    plain(&format!("- [{severity}] {id}: {} {}", insight.text, insight.action))
}

/// One entry as a line.
pub(super) fn entry(
    found: &AssessedEntry,
    code: &str,
    line: &str,
    caveats: &[HitCaveat],
) -> String {
    let mut text = format!("- {code} {}", quoted(found.view.text(Register::TITLE).unwrap_or("")));
    if !line.is_empty() {
        let _ = write!(text, ": {}", quoted(line));
    }
    let confidence = &found.assessment.confidence;
    let _ = write!(
        text,
        " ({}, {:.2} from {:.1} observations, by {}",
        found.assessment.standing.status.name(),
        confidence.posterior.mean(),
        confidence.effective_observations,
        author(found),
    );
    // The author is named above, and a briefing shows no tags or citations.
    let is_left_out = |caveat: &&HitCaveat| {
        matches!(caveat, HitCaveat::Foreign { .. } | HitCaveat::OfOthers { .. })
    };
    for caveat in caveats.iter().filter(|caveat| !is_left_out(caveat)) {
        let _ = write!(text, "; {}", plain(&caveat.to_string()));
    }
    text.push(')');
    text
}

fn author(found: &AssessedEntry) -> String {
    let Some(by) = found.author.as_deref() else { return "an unknown author".to_owned() };
    if by.is_own() {
        return plain(&by.name);
    }
    let distance =
        by.hop.map_or_else(|| "distance unknown".to_owned(), klnode_scoring::hop::Hop::in_words);
    format!("{}, {distance}, trust {:.2}", plain(&by.name), by.trust)
}

fn task(name: TaskId, row: &TaskRow) -> String {
    let goal: String = row.goal.chars().take(GOAL_CHARACTERS_MAX).collect();
    format!("- {name} {} (by {})", quoted(&goal), quoted(&row.agent))
}

/// The whole text and its size in tokens.
pub(super) fn text(briefing: &Briefing) -> (String, u32) {
    let mut lines = vec![FIRST_LINE.to_owned()];
    if !briefing.insights.is_empty() {
        lines.push(INSIGHTS_TITLE.to_owned());
        lines.extend(briefing.insights.iter().map(insight));
    }
    for section in &briefing.sections {
        lines.push(section.section.title().to_owned());
        let line = |one: &BriefedEntry| entry(&one.found, &one.code, &one.line, &one.caveats);
        lines.extend(section.entries.iter().map(line));
    }
    if !briefing.tasks.is_empty() {
        lines.push(TASKS_TITLE.to_owned());
        lines.extend(briefing.tasks.iter().map(|(name, row)| task(*name, row)));
    }
    if lines.len() == 1 {
        lines.push("Nothing stands out.".to_owned());
    }
    if briefing.left_out > 0 {
        lines.push(format!("Left out for lack of space: {}.", briefing.left_out));
    }
    let cost = lines.iter().map(|line| tokens(line)).sum();
    (lines.join("\n") + "\n", cost)
}

/// A text in quotation marks, on one line.
fn quoted(text: &str) -> String {
    format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text on one line, without characters that move the cursor, end the line or change the writing
/// direction.
fn plain(text: &str) -> String {
    text.chars().map(|c| if is_seen(c) && c != '\t' { c } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_stays_on_its_line_and_in_its_quotes() {
        for (text, expect) in [
            ("plain", "\"plain\""),
            ("two\nlines", "\"two lines\""),
            ("a \"quote\" and \\", "\"a \\\"quote\\\" and \\\\\""),
            ("turned \u{202E}round", "\"turned  round\""),
            ("\u{1b}[2Jcleared", "\" [2Jcleared\""),
        ] {
            assert_eq!(quoted(text), expect);
        }
    }

    #[test]
    fn the_frame_has_room_for_the_omission_line() {
        assert_eq!(FIRST_LINE.lines().count(), 1);
        assert!(tokens("Left out for lack of space: 99999.") <= LEFT_OUT_TOKENS);
        let all: BTreeSet<Section> = Section::ALL.into();
        assert!(frame_tokens(&all) < 100, "the smallest budget must have room for a title");
    }
}
