//! `klnode usage`: what answers cost and what they were good for, as a table and a chart.

use super::harmless::printable;
use super::read::escape;
use super::{Reply, Terminal, VerbError};
use crate::api::Client;
use crate::api::types::{Usage, UsageBy, UsageDay, Used};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use std::fmt::Write;

/// Columns of a terminal that does not say how many it has, and of a pipe.
const COLUMNS_DEFAULT: usize = 80;
/// Rows of the chart; more days share one.
const CHART_ROWS_MAX: usize = 14;
/// Characters of a name that are shown where there is room, and where there is little.
const NAME_CHARACTERS_MAX: usize = 32;
const NAME_CHARACTERS_MIN: usize = 12;
/// Columns that the numbers beside a name take.
const NUMBERS_COLUMNS: usize = 63;

const DIM: Style = Style::new().dimmed();
const BAR: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));

/// Of when, and by whom.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Days or weeks up to now, as in 7d or 4w; 400d are kept [default: 7d].
    #[arg(long, value_name = "SPAN")]
    pub since: Option<String>,
    /// By who asked, by who wrote what was served, or by the peer that brought it.
    #[arg(long, value_enum, default_value_t = By::Caller)]
    pub by: By,
    /// How wide the terminal is, if there is one that says so.
    #[arg(skip)]
    pub columns: Option<usize>,
}

/// By whom it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Who asked.
    Caller,
    /// Who wrote what was served.
    Author,
    /// The peer that brought it.
    Peer,
}

impl Args {
    pub(super) async fn run(self, client: &Client, terminal: Terminal) -> Result<Reply, VerbError> {
        let since = self.since.as_deref().map(|since| format!("?since={}", escape(since)));
        let usage: Usage = client.get(&format!("/v1/usage{}", since.unwrap_or_default())).await?;
        let columns = self.columns.unwrap_or(COLUMNS_DEFAULT);
        let text = text(&usage, self.by, terminal, columns);
        Ok(Reply::styled(&usage, text))
    }
}

fn text(usage: &Usage, by: By, terminal: Terminal, columns: usize) -> String {
    if usage.total == Used::default() {
        return format!(
            "Nothing was asked since {}. `klnode search` asks; `klnode usage --since 30d` looks \
             further back.\n",
            usage.since
        );
    }
    let (title, rows) = match by {
        By::Caller => ("CALLER", &usage.callers),
        By::Author => ("AUTHOR", &usage.authors),
        By::Peer => ("PEER", &usage.peers),
    };
    let mut text = String::new();
    put_table(&mut text, title, rows, &usage.total, columns);
    text.push('\n');
    put_chart(&mut text, &usage.days, terminal, columns);
    text
}

fn put_table(text: &mut String, title: &str, rows: &[UsageBy], total: &Used, columns: usize) {
    let room = columns.saturating_sub(NUMBERS_COLUMNS);
    let room = room.clamp(NAME_CHARACTERS_MIN, NAME_CHARACTERS_MAX);
    let name = |row: &UsageBy| -> String { fitting(&row.name, room) };
    let widest = rows.iter().map(|row| name(row).chars().count()).max().unwrap_or_default();
    let width = widest.max(title.len()).max("all".len());
    let _ = writeln!(
        text,
        "{title:<width$}  {:>7}  {:>8}  {:>6}  {:>6}  {:>7}  {:>7}  {:>8}",
        "ANSWERS", "TOKENS", "HITS", "USED", "HARMFUL", "NOTHING", "MS"
    );
    let mut line = |name: &str, used: &Used| {
        let _ = writeln!(
            text,
            "{name:<width$}  {:>7}  {:>8}  {:>6}  {:>6}  {:>7}  {:>7}  {:>8}",
            used.answers,
            used.tokens,
            used.hits,
            used.used,
            used.harmful,
            used.abstentions,
            used.millis
        );
    };
    for row in rows {
        line(&name(row), &row.used);
    }
    // Of authors and peers the rows do not add up to all: an answer has hits of several.
    line("all", total);
    // No columns: there are as many already as fit.
    let said = [("Spikes avoided", total.avoided), ("Dismissed", total.dismissed)];
    for (what, count) in said.into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(text, "{what}: {count}");
    }
}

/// Tokens by day, a bar for each; where there are too many days, several share one.
fn put_chart(text: &mut String, days: &[UsageDay], terminal: Terminal, columns: usize) {
    let per_row = days.len().div_ceil(CHART_ROWS_MAX).max(1);
    // From the newest back, so that the last row is a whole one.
    let mut rows: Vec<(&str, u64)> = days
        .rchunks(per_row)
        .filter_map(|days| Some((days.first()?.day.as_str(), days)))
        .map(|(first, days)| (first, days.iter().map(|day| day.used.tokens).sum()))
        .collect();
    rows.reverse();
    let unit = match per_row {
        1 => "Tokens a day".to_owned(),
        days => format!("Tokens, {days} days a row"),
    };
    let _ = writeln!(text, "{DIM}{unit}{DIM:#}");
    let most = rows.iter().map(|(_, tokens)| *tokens).max().unwrap_or_default().max(1);
    let digits = most.to_string().len();
    let room = columns.saturating_sub("2026-11-15".len() + digits + 4).clamp(8, 60);
    let mark = if terminal == Terminal::Person { '█' } else { '#' };
    for (day, tokens) in rows {
        let length = usize::try_from(tokens.saturating_mul(room as u64).div_ceil(most));
        let bar = mark.to_string().repeat(length.unwrap_or(room).min(room));
        let _ = if bar.is_empty() {
            writeln!(text, "{day}  {tokens:>digits$}")
        } else {
            writeln!(text, "{day}  {tokens:>digits$}  {BAR}{bar}{BAR:#}")
        };
    }
}

/// A name on one line, as far as there is room: nothing in it moves a cursor.
fn fitting(text: &str, room: usize) -> String {
    printable(text).chars().take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tokens: u64) -> Used {
        Used { answers: 1, tokens, hits: 2, ..Used::default() }
    }

    fn usage(tokens: &[u64]) -> Usage {
        let day = |(at, tokens): (usize, &u64)| UsageDay {
            day: format!("2026-11-{:02}", at + 1),
            used: Used { tokens: *tokens, ..Used::default() },
        };
        let is_any = tokens.iter().any(|one| *one > 0);
        let by = UsageBy { name: "claude-code".into(), key: None, used: used(90) };
        Usage {
            as_of: 0,
            since: "2026-11-01".into(),
            total: if is_any { used(90) } else { Used::default() },
            days: tokens.iter().enumerate().map(day).collect(),
            callers: vec![by],
            authors: Vec::new(),
            peers: Vec::new(),
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn nothing_asked_is_a_sentence() {
        let text = text(&usage(&[0, 0]), By::Caller, Terminal::Pipe, 80);
        assert!(text.starts_with("Nothing was asked since 2026-11-01."), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn the_chart_keeps_to_the_width_and_a_pipe_gets_plain_signs() {
        let usage = usage(&[0, 45, 90]);
        let piped = plain(&text(&usage, By::Caller, Terminal::Pipe, 40));
        let lines: Vec<&str> = piped.lines().collect();
        assert!(lines[0].starts_with("CALLER       ANSWERS"), "{piped}");
        assert!(lines[1].starts_with("claude-code        1        90       2"), "{piped}");
        assert_eq!(lines[4], "Tokens a day");
        assert_eq!(lines[5], "2026-11-01   0");
        assert_eq!(lines[6], format!("2026-11-02  45  {}", "#".repeat(12)));
        assert_eq!(lines[7], format!("2026-11-03  90  {}", "#".repeat(24)));
        let shown = plain(&text(&usage, By::Caller, Terminal::Person, 40));
        assert!(shown.ends_with(&format!("{}\n", "█".repeat(24))), "{shown}");
    }

    #[test]
    fn what_was_avoided_and_dismissed_is_told_below_the_table_if_anything_was() {
        let mut usage = usage(&[90]);
        let told = |usage: &Usage| -> Vec<String> {
            let text = plain(&text(usage, By::Caller, Terminal::Pipe, 80));
            text.lines().skip(3).take_while(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        assert_eq!(told(&usage), [""; 0]);
        usage.total.dismissed = 1;
        assert_eq!(told(&usage), ["Dismissed: 1"]);
        usage.total.avoided = 2;
        assert_eq!(told(&usage), ["Spikes avoided: 2", "Dismissed: 1"]);
    }

    #[test]
    fn a_long_name_is_cut_so_that_the_table_keeps_to_the_width() {
        let mut usage = usage(&[90]);
        usage.callers[0].name = "an-agent-with-a-very-long-name-indeed".into();
        let widest = |columns| {
            let text = plain(&text(&usage, By::Caller, Terminal::Pipe, columns));
            text.lines().map(|line| line.chars().count()).max().unwrap()
        };
        assert_eq!([widest(80), widest(200)], [80, 95]);
    }

    #[test]
    fn many_days_share_rows_and_nothing_is_lost() {
        let mut many = usage(&[1; 30]);
        many.days[29].used.tokens = 5;
        let text = plain(&text(&many, By::Author, Terminal::Pipe, 80));
        let chart: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Tok")).collect();
        assert_eq!(chart[0], "Tokens, 3 days a row");
        assert_eq!(chart.len(), 11);
        assert!(chart[10].starts_with("2026-11-28  7  "), "{text}");
    }
}
