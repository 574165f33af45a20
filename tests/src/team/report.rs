//! The table of an experiment: every arm with its figures, and the difference from klnode's defaults.
//!
//! A run is one line of JSON, so that runs of several programs can be joined to one table.

use super::figures::{Counts, FIGURE_NAMES, FIGURES};
use super::intervals::Estimate;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The figures of one arm on one seed.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the arm.
    pub arm: String,
    pub seed: u64,
    /// The figures; NaN where the arm has none.
    pub figures: [f64; FIGURES],
    /// Further counts, for the reader.
    pub rest: Value,
}

impl Run {
    /// The run of an arm with its counts.
    pub fn new(arm: &str, seed: u64, counts: &Counts) -> Self {
        let rest = json!({
            "questions": counts.questions,
            "lessons": counts.lessons,
            "hits": counts.hits,
            "races": counts.races,
            "trace": format!("{:016x}", counts.trace),
            "reliability": counts.reliability(),
        });
        Self { arm: arm.to_owned(), seed, figures: counts.figures(), rest }
    }

    /// The run as one line.
    pub fn line(&self) -> String {
        let figures: Vec<Option<f64>> =
            self.figures.iter().map(|one| Some(*one).filter(|one| one.is_finite())).collect();
        let line = json!({
            "arm": self.arm, "seed": self.seed, "figures": figures, "rest": self.rest,
        });
        line.to_string()
    }

    /// Reads a line; `None` if it is no run.
    pub fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let mut figures = [f64::NAN; FIGURES];
        for (to, from) in figures.iter_mut().zip(value["figures"].as_array()?) {
            *to = from.as_f64().unwrap_or(f64::NAN);
        }
        let (arm, seed) = (value["arm"].as_str()?.to_owned(), value["seed"].as_u64()?);
        Some(Self { arm, seed, figures, rest: value["rest"].clone() })
    }
}

/// The table of runs in Markdown: the first row has the values of the reference arm, all others the
/// difference from it on the same seeds. Bold: the interval excludes 0.
pub fn table(runs: &[Run], reference: &str) -> String {
    let mut arms: Vec<&str> = Vec::new();
    let mut found: BTreeMap<(&str, u64), &Run> = BTreeMap::new();
    for run in runs {
        if !arms.contains(&run.arm.as_str()) {
            arms.push(&run.arm);
        }
        found.insert((&run.arm, run.seed), run);
    }
    let seeds: Vec<u64> =
        found.keys().filter(|(arm, _)| *arm == reference).map(|(_, seed)| *seed).collect();
    let mut out = format!("| arm | seeds | {} |\n", FIGURE_NAMES.join(" | "));
    let _ = writeln!(out, "|---|---|{}", "---|".repeat(FIGURES));
    for arm in arms {
        let both: Vec<u64> =
            seeds.iter().copied().filter(|seed| found.contains_key(&(arm, *seed))).collect();
        let _ = write!(out, "| {arm} | {} |", both.len());
        for figure in 0..FIGURES {
            let values = |of: &str| -> Vec<f64> {
                both.iter().map(|seed| found[&(of, *seed)].figures[figure]).collect()
            };
            let cell = match arm == reference {
                true => Estimate::of(&values(arm)).map(|of| cell(of, figure, Form::Value)),
                false => {
                    let values = (values(arm), values(reference));
                    let of = Estimate::of_difference(&values.0, &values.1);
                    of.map(|of| cell(of, figure, Form::Difference))
                        .or_else(|| Estimate::of(&values.0).map(|of| cell(of, figure, Form::Value)))
                }
            };
            let _ = write!(out, " {} |", cell.unwrap_or_else(|| "–".into()));
        }
        out.push('\n');
    }
    out
}

/// Whether a cell has a value or a difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Value,
    Difference,
}

fn cell(of: Estimate, figure: usize, form: Form) -> String {
    // Tokens and days are large; all other figures are shares.
    let digits = if matches!(figure, 4 | 6) { 1 } else { 3 };
    let text = match form {
        Form::Value => format!("{:.digits$} [{:.digits$}, {:.digits$}]", of.mean, of.low, of.high),
        Form::Difference => {
            format!("{:+.digits$} [{:+.digits$}, {:+.digits$}]", of.mean, of.low, of.high)
        }
    };
    if form == Form::Difference && of.is_clear() { format!("**{text}**") } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Run, table};
    use crate::team::FIGURES;
    use serde_json::Value;

    #[test]
    fn a_table_shows_differences_on_common_seeds() {
        let run = |arm: &str, seed, right| {
            let mut figures = [f64::NAN; FIGURES];
            figures[0] = right;
            Run { arm: arm.into(), seed, figures, rest: Value::Null }
        };
        let runs = [run("a", 1, 0.5), run("a", 2, 0.7), run("b", 1, 0.4), run("b", 9, 0.0)];
        let lines: Vec<Run> = runs.iter().filter_map(|run| Run::read(&run.line())).collect();
        let table = table(&lines, "a");
        assert!(table.contains("| a | 2 | 0.600 [0.500, 0.700] | – |"), "{table}");
        assert!(table.contains("| b | 1 | **-0.100 [-0.100, -0.100]** | – |"), "{table}");
    }
}
