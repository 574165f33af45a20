//! `klnode task outcomes`: outcomes of finished tasks, with their totals.

use super::api_path::escape;
use super::sanitize::printable;
use super::timestamp::moment;
use super::{Reply, VerbError};
use klnode_api_types::{FinishedOutcome, Outcome, OutcomeReport, OutcomeTotals};
use klnode_client::Client;
use klnode_text::plural::{counted, entries};
use std::fmt::Write;

/// The most characters of a goal or a strategy on one line.
const NAME_CHARACTERS_MAX: usize = 60;
const MILLIS_PER_MINUTE: f64 = 60_000.0;

/// The workspace and the period.
#[derive(Debug, clap::Args)]
pub struct Outcomes {
    /// Report the tasks of this workspace [default: the one set by `workspace use`].
    #[arg(long)]
    pub workspace: Option<String>,
    /// Days or weeks up to now, as in 7d or 4w [default: 7d].
    #[arg(long, value_name = "SPAN")]
    pub period: Option<String>,
}

impl Outcomes {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let given = [("workspace", self.workspace), ("period", self.period)];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={}", escape(&value))));
        let query: Vec<String> = given.collect();
        let report: OutcomeReport =
            client.get(&format!("/v1/outcomes?{}", query.join("&"))).await?;
        let text = text(&report);
        Ok(Reply::new(&report, text))
    }
}

fn text(report: &OutcomeReport) -> String {
    if report.outcomes.is_empty() {
        return format!(
            "No task finished in workspace `{}` within {}. `klnode task outcomes --period 30d` \
             covers a longer time.\n",
            printable(&report.workspace),
            report.period
        );
    }
    let mut text = format!(
        "{:<32}  {:<7}  {:>7}  {:>6}  {:>8}  {:>7}  {:>4}  {:>6}  {:>4}\n",
        "TASK", "OUTCOME", "QUALITY", "ROUNDS", "COST", "MINUTES", "MADE", "SERVED", "USED"
    );
    for outcome in &report.outcomes {
        put_outcome(&mut text, outcome);
    }
    if report.more {
        text.push_str("There are older outcomes; choose a shorter --period to see all of it.\n");
    }
    let _ = writeln!(text, "\nTotals of {}:", report.period);
    put_totals(&mut text, "all", &report.summary);
    for strategy in &report.strategies {
        put_totals(&mut text, &short(&strategy.strategy), &strategy.totals);
    }
    text
}

fn put_outcome(text: &mut String, of: &FinishedOutcome) {
    let outcome = match of.outcome {
        Outcome::Success => "success",
        Outcome::Failure => "failure",
    };
    let number = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    let _ = writeln!(
        text,
        "{:<32}  {outcome:<7}  {:>7.2}  {:>6}  {:>8}  {:>7.1}  {:>4}  {:>6}  {:>4}",
        of.task,
        of.quality,
        number(of.rounds.map(|rounds| rounds.to_string())),
        number(of.cost.map(|cost| format!("{cost:.2}"))),
        of.duration_millis as f64 / MILLIS_PER_MINUTE,
        of.made,
        of.served,
        of.used,
    );
    let strategy = of.strategy.as_deref().map(|name| format!(" ({})", short(name)));
    let _ = writeln!(
        text,
        "    {} UTC  {}: {}{}",
        moment(of.finished),
        printable(&of.agent),
        short(&of.goal),
        strategy.unwrap_or_default()
    );
}

fn put_totals(text: &mut String, name: &str, of: &OutcomeTotals) {
    let _ = writeln!(
        text,
        "  {name}: {}, {} succeeded, {} failed, mean quality {:.2}, cost {:.2}, {}, {} made, \
         {} served, {} used",
        counted(of.tasks, "task", "tasks"),
        of.succeeded,
        of.failed,
        of.quality.unwrap_or_default(),
        of.cost,
        counted(of.rounds, "round", "rounds"),
        entries(of.made),
        of.served,
        of.used
    );
}

fn short(name: &str) -> String {
    printable(name).chars().take(NAME_CHARACTERS_MAX).collect()
}
