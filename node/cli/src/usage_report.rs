//! `klnode status usage`: cost and benefit of answers, as a table and a chart; or the serving log.

use super::api_path::escape;
use super::sanitize::printable;
use super::{OutputReader, Reply, VerbError, serving_log};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use klnode_api_types::{Usage, UsageDay, UsageGroup, UsageNumbers};
use klnode_client::Client;
use std::fmt::Write;

/// Columns of a pipe, and of a terminal of unknown width.
const COLUMNS_DEFAULT: usize = 80;
/// The most rows of the chart; with more days, several share a row.
const CHART_ROWS_MAX: usize = 14;
/// The most characters of a name in a wide terminal, and in a narrow one.
const NAME_CHARACTERS_MAX: usize = 32;
const NAME_CHARACTERS_MIN: usize = 12;
/// Columns of the numbers next to a name.
const NUMBERS_COLUMNS: usize = 63;

const DIM: Style = Style::new().dimmed();
const BAR: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));

/// A report of `klnode status`.
#[derive(Debug, clap::Subcommand)]
pub enum StatusReport {
    /// Show cost and benefit of answers, or the serving log (--log).
    ///
    /// Example: klnode status usage --since 30d --by author
    Usage(Args),
}

/// The span and grouping of the report, or the part of the serving log.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Days or weeks up to now, as in 7d or 4w; 400d are kept [default: 7d].
    #[arg(long, value_name = "SPAN")]
    pub since: Option<String>,
    /// Group by the caller, by the author of the served entries, or by the peer that sent them.
    #[arg(long, value_enum, default_value_t = UsageRows::Caller)]
    pub by: UsageRows,
    /// Print the serving log instead, newest first; with an entry, only answers that contain it.
    #[arg(long, value_name = "ENTRY", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["since", "by"])]
    pub log: Option<String>,
    /// With --log: the most answers to print, from 1 to 1000 [default: 20].
    #[arg(short = 'n', long, value_name = "N", requires = "log")]
    pub limit: Option<usize>,
    /// The width of the terminal, if it is known.
    #[arg(skip)]
    pub columns: Option<usize>,
}

/// The rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UsageRows {
    /// The caller of the node.
    Caller,
    /// The author of the served entries.
    Author,
    /// The peer that sent the served entries.
    Peer,
}

impl Args {
    pub(super) async fn run(
        self,
        client: &Client,
        terminal: OutputReader,
    ) -> Result<Reply, VerbError> {
        if let Some(entry) = self.log {
            let entry = Some(entry.as_str()).filter(|entry| !entry.is_empty());
            return serving_log::run(entry, self.limit, client).await;
        }
        let since = self.since.as_deref().map(|since| format!("?since={}", escape(since)));
        let usage: Usage = client.get(&format!("/v1/usage{}", since.unwrap_or_default())).await?;
        let columns = self.columns.unwrap_or(COLUMNS_DEFAULT);
        let text = text(&usage, self.by, terminal, columns);
        Ok(Reply::styled(&usage, text))
    }
}

fn text(usage: &Usage, by: UsageRows, terminal: OutputReader, columns: usize) -> String {
    if usage.total == UsageNumbers::default() {
        return format!(
            "No questions since {}. `klnode status usage --since 30d` covers a longer time.\n",
            usage.since
        );
    }
    let (title, rows) = match by {
        UsageRows::Caller => ("CALLER", &usage.callers),
        UsageRows::Author => ("AUTHOR", &usage.authors),
        UsageRows::Peer => ("PEER", &usage.peers),
    };
    let mut text = String::new();
    put_table(&mut text, title, rows, &usage.total, columns);
    text.push('\n');
    put_chart(&mut text, &usage.days, terminal, columns);
    text
}

fn put_table(
    text: &mut String,
    title: &str,
    rows: &[UsageGroup],
    total: &UsageNumbers,
    columns: usize,
) {
    let room = columns.saturating_sub(NUMBERS_COLUMNS);
    let room = room.clamp(NAME_CHARACTERS_MIN, NAME_CHARACTERS_MAX);
    let name = |row: &UsageGroup| -> String { fitting(&row.name, room) };
    let widest = rows.iter().map(|row| name(row).chars().count()).max().unwrap_or_default();
    let width = widest.max(title.len()).max("all".len());
    let _ = writeln!(
        text,
        "{title:<width$}  {:>7}  {:>8}  {:>6}  {:>6}  {:>7}  {:>7}  {:>8}",
        "ANSWERS", "TOKENS", "HITS", "USED", "HARMFUL", "NOTHING", "MS"
    );
    let mut line = |name: &str, used: &UsageNumbers| {
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
    // Rows of authors and peers do not add up to the total: an answer has hits of several.
    line("all", total);
    // No columns for these: the table is as wide as it may be.
    let extra = [("Spikes avoided", total.avoided), ("Dismissed", total.dismissed)];
    for (what, count) in extra.into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(text, "{what}: {count}");
    }
}

/// Draws a bar with the tokens of each day; with too many days, several share a bar.
fn put_chart(text: &mut String, days: &[UsageDay], terminal: OutputReader, columns: usize) {
    let per_row = days.len().div_ceil(CHART_ROWS_MAX).max(1);
    // Chunk from the newest day back, so that the last row is complete.
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
    let mark = if terminal == OutputReader::Person { '█' } else { '#' };
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

/// A name without control characters, cut to `room` characters.
fn fitting(text: &str, room: usize) -> String {
    printable(text).chars().take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tokens: u64) -> UsageNumbers {
        UsageNumbers { answers: 1, tokens, hits: 2, ..UsageNumbers::default() }
    }

    fn usage(tokens: &[u64]) -> Usage {
        let day = |(at, tokens): (usize, &u64)| UsageDay {
            day: format!("2026-11-{:02}", at + 1),
            used: UsageNumbers { tokens: *tokens, ..UsageNumbers::default() },
        };
        let is_any = tokens.iter().any(|one| *one > 0);
        let by = UsageGroup { name: "claude-code".into(), key: None, used: used(90) };
        Usage {
            as_of: 0,
            since: "2026-11-01".into(),
            total: if is_any { used(90) } else { UsageNumbers::default() },
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
    fn no_questions_is_a_sentence() {
        let text = text(&usage(&[0, 0]), UsageRows::Caller, OutputReader::Pipe, 80);
        assert!(text.starts_with("No questions since 2026-11-01."), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn the_chart_keeps_to_the_width_and_a_pipe_gets_plain_signs() {
        let usage = usage(&[0, 45, 90]);
        let piped = plain(&text(&usage, UsageRows::Caller, OutputReader::Pipe, 40));
        let lines: Vec<&str> = piped.lines().collect();
        assert!(lines[0].starts_with("CALLER       ANSWERS"), "{piped}");
        assert!(lines[1].starts_with("claude-code        1        90       2"), "{piped}");
        assert_eq!(lines[4], "Tokens a day");
        assert_eq!(lines[5], "2026-11-01   0");
        assert_eq!(lines[6], format!("2026-11-02  45  {}", "#".repeat(12)));
        assert_eq!(lines[7], format!("2026-11-03  90  {}", "#".repeat(24)));
        let shown = plain(&text(&usage, UsageRows::Caller, OutputReader::Person, 40));
        assert!(shown.ends_with(&format!("{}\n", "█".repeat(24))), "{shown}");
    }

    #[test]
    fn avoided_and_dismissed_counts_follow_the_table_if_not_zero() {
        let mut usage = usage(&[90]);
        let extra = |usage: &Usage| -> Vec<String> {
            let text = plain(&text(usage, UsageRows::Caller, OutputReader::Pipe, 80));
            text.lines().skip(3).take_while(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        assert_eq!(extra(&usage), [""; 0]);
        usage.total.dismissed = 1;
        assert_eq!(extra(&usage), ["Dismissed: 1"]);
        usage.total.avoided = 2;
        assert_eq!(extra(&usage), ["Spikes avoided: 2", "Dismissed: 1"]);
    }

    #[test]
    fn a_long_name_is_cut_so_that_the_table_keeps_to_the_width() {
        let mut usage = usage(&[90]);
        usage.callers[0].name = "an-agent-with-a-very-long-name-indeed".into();
        let widest = |columns| {
            let text = plain(&text(&usage, UsageRows::Caller, OutputReader::Pipe, columns));
            text.lines().map(|line| line.chars().count()).max().unwrap()
        };
        assert_eq!([widest(80), widest(200)], [80, 95]);
    }

    #[test]
    fn many_days_share_rows_without_loss() {
        let mut many = usage(&[1; 30]);
        many.days[29].used.tokens = 5;
        let text = plain(&text(&many, UsageRows::Author, OutputReader::Pipe, 80));
        let chart: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Tok")).collect();
        assert_eq!(chart[0], "Tokens, 3 days a row");
        assert_eq!(chart.len(), 11);
        assert!(chart[10].starts_with("2026-11-28  7  "), "{text}");
    }
}
