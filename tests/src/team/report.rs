//! The report of an experiment: every arm with its figures, the difference from klnode's defaults,
//! and the goals.
//!
//! A run is one line of JSON, so that runs of several programs can be joined to one report.

use super::bootstrap_intervals::Estimate;
use super::confidence_calibration::Reliability;
use super::experiment_arms::Arm;
use super::figures::{CALIBRATION, Counts, FIGURES, Figure, HARM, RIGHT};
use super::history_replay::{HISTORY_FIGURES, HistoryCounts};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Right answers of klnode, as a multiple of plain hybrid search's.
const RIGHT_GOAL: f64 = 1.1;
/// Harm of klnode, as a multiple of plain hybrid search's.
const HARM_GOAL: f64 = 0.5;
const CALIBRATION_GOAL: f64 = 0.05;
const STALE_GOAL: f64 = 0.02;

/// The world that an arm is replayed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Facts with a ground truth.
    Simulated,
    /// The history of this repository.
    History,
}

impl World {
    fn figures(self) -> &'static [Figure] {
        match self {
            World::Simulated => &FIGURES,
            World::History => &HISTORY_FIGURES,
        }
    }
}

/// The figures of one arm on one seed.
#[derive(Clone, Debug)]
pub struct Run {
    pub world: World,
    /// Name of the arm.
    pub arm: String,
    pub seed: u64,
    /// The figures; NaN where the arm has none.
    pub figures: Vec<f64>,
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
            "reliability": counts.reliability.rows(),
        });
        let (world, figures) = (World::Simulated, counts.figures());
        Self { world, arm: arm.to_owned(), seed, figures, rest }
    }

    /// The run of an arm on the history.
    pub fn of_history(arm: &str, seed: u64, counts: &HistoryCounts) -> Self {
        let rest = json!({
            "questions": counts.questions,
            "lessons": counts.lessons,
            "hits": counts.hits,
        });
        let (world, figures) = (World::History, counts.figures());
        Self { world, arm: arm.to_owned(), seed, figures, rest }
    }

    /// The run as one line.
    pub fn line(&self) -> String {
        let figures: Vec<Option<f64>> =
            self.figures.iter().map(|one| Some(*one).filter(|one| one.is_finite())).collect();
        let line = json!({
            "arm": self.arm, "seed": self.seed, "figures": figures, "rest": self.rest,
            "is_history": self.world == World::History,
        });
        line.to_string()
    }

    /// Reads a line; `None` if it is no run.
    pub fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let world = match value["is_history"].as_bool() {
            Some(true) => World::History,
            _ => World::Simulated,
        };
        let figures = value["figures"].as_array()?.iter();
        let figures: Vec<f64> = figures.map(|one| one.as_f64().unwrap_or(f64::NAN)).collect();
        let (arm, seed) = (value["arm"].as_str()?.to_owned(), value["seed"].as_u64()?);
        let is_whole = figures.len() == world.figures().len();
        is_whole.then(|| Self { world, arm, seed, figures, rest: value["rest"].clone() })
    }

    fn reliability(&self) -> Reliability {
        let rows = self.rest["reliability"].as_array().map_or(&[][..], Vec::as_slice);
        let rows = rows.iter().filter_map(|row| {
            Some((row.get(0)?.as_u64()?, row.get(1)?.as_f64()?, row.get(2)?.as_f64()?))
        });
        Reliability::of_rows(&rows.collect::<Vec<_>>())
    }
}

/// The runs of one world, by arm and seed.
struct Experiment<'a> {
    world: World,
    /// In the order of their first runs.
    arms: Vec<&'a str>,
    runs: BTreeMap<(&'a str, u64), (&'a Run, Reliability)>,
}

impl<'a> Experiment<'a> {
    fn of(runs: &'a [Run], world: World) -> Self {
        let (mut arms, mut found): (Vec<&str>, _) = (Vec::new(), BTreeMap::new());
        for run in runs.iter().filter(|run| run.world == world) {
            if !arms.contains(&run.arm.as_str()) {
                arms.push(&run.arm);
            }
            found.insert((run.arm.as_str(), run.seed), (run, run.reliability()));
        }
        Self { world, arms, runs: found }
    }

    /// The seeds on which all these arms have a figure.
    fn seeds(&self, arms: &[&str], figure: usize) -> Vec<u64> {
        let has = |arm: &&str, seed: u64| {
            self.runs.get(&(*arm, seed)).is_some_and(|(run, _)| run.figures[figure].is_finite())
        };
        let first = self.runs.keys().filter(|(arm, _)| arms.first() == Some(arm));
        let seeds = first.map(|(_, seed)| *seed);
        seeds.filter(|seed| arms.iter().all(|arm| has(arm, *seed))).collect()
    }

    /// A figure of an arm over some seeds: the error of all hits for the calibration, else the mean.
    fn figure(&self, arm: &str, figure: usize, seeds: &[u64]) -> f64 {
        let runs = seeds.iter().map(|seed| &self.runs[&(arm, *seed)]);
        if self.world == World::Simulated && figure == CALIBRATION {
            return Reliability::pooled(runs.map(|(_, reliability)| reliability)).error();
        }
        runs.map(|(run, _)| run.figures[figure]).sum::<f64>() / seeds.len() as f64
    }

    /// A bootstrap over the seeds that these arms have in common.
    fn estimate(
        &self,
        arms: &[&str],
        figure: usize,
        statistic: impl Fn(&[u64]) -> f64,
    ) -> Option<Estimate> {
        let seeds = self.seeds(arms, figure);
        Estimate::of_statistic(seeds.len(), |drawn| {
            statistic(&drawn.iter().map(|at| seeds[*at]).collect::<Vec<u64>>())
        })
    }

    fn value(&self, arm: &str, figure: usize) -> Option<Estimate> {
        self.estimate(&[arm], figure, |seeds| self.figure(arm, figure, seeds))
    }

    /// The figure of an arm minus that of another, seed by seed.
    fn difference(&self, arm: &str, from: &str, figure: usize) -> Option<Estimate> {
        self.estimate(&[arm, from], figure, |seeds| {
            self.figure(arm, figure, seeds) - self.figure(from, figure, seeds)
        })
    }

    /// The figure of an arm as a multiple of that of another, seed by seed.
    fn ratio(&self, arm: &str, of: &str, figure: usize) -> Option<Estimate> {
        self.estimate(&[arm, of], figure, |seeds| {
            self.figure(arm, figure, seeds) / self.figure(of, figure, seeds)
        })
    }

    /// The first row has the values of the reference arm, all others the difference from it on the
    /// same seeds. Bold: the interval excludes 0.
    fn table(&self, reference: &str) -> String {
        let figures = self.world.figures();
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        let mut out = format!("| arm | seeds | {} |\n", names.join(" | "));
        let _ = writeln!(out, "|---|---|{}", "---|".repeat(figures.len()));
        for arm in &self.arms {
            let seeds = self.seeds(&[arm, reference], RIGHT).len();
            let _ = write!(out, "| {arm} | {seeds} |");
            for (at, figure) in figures.iter().enumerate() {
                let value = || Some(valued(self.value(arm, at)?, figure.digits));
                let cell = match *arm == reference {
                    true => value(),
                    false => match self.difference(arm, reference, at) {
                        Some(of) => Some(differing(of, figure.digits)),
                        None => value(),
                    },
                };
                let _ = write!(out, " {} |", cell.unwrap_or_else(|| "–".into()));
            }
            out.push('\n');
        }
        out
    }

    /// The goals that the runs allow to judge, each with its figure.
    fn goals(&self, reference: &str) -> String {
        let mut out = String::from("| goal | figure | met |\n|---|---|---|\n");
        let mut row = |goal: String, figure: String, is_met: bool| {
            let _ = writeln!(out, "| {goal} | {figure} | {} |", if is_met { "yes" } else { "no" });
        };
        if self.world == World::History {
            for at in [3, 4] {
                let Some(of) = self.value(reference, at) else { continue };
                let goal = format!("{} below {STALE_GOAL}", HISTORY_FIGURES[at].name);
                row(goal, valued(of, 3), of.mean < STALE_GOAL);
            }
            return out;
        }
        let plain = Arm::plain().name;
        if let Some(of) = self.ratio(reference, plain, RIGHT) {
            let goal = format!("right answers at least {RIGHT_GOAL} of {plain}");
            row(goal, valued(of, 2), of.mean >= RIGHT_GOAL);
        }
        if let Some(of) = self.ratio(reference, plain, HARM) {
            row(
                format!("harm at most {HARM_GOAL} of {plain}"),
                valued(of, 2),
                of.mean <= HARM_GOAL,
            );
        }
        if let Some(of) = self.value(reference, CALIBRATION) {
            let goal = format!("calibration error at most {CALIBRATION_GOAL}");
            row(goal, valued(of, 3), of.mean <= CALIBRATION_GOAL);
        }
        for (at, figure) in FIGURES.iter().enumerate() {
            let change = self.difference(reference, Arm::SILENT, at);
            let Some((change, own)) = change.zip(self.value(reference, at)) else { continue };
            let (digits, half) = (figure.digits, own.half_width());
            row(
                format!("the hostile node changes {} by at most its interval", figure.name),
                format!("{:+.digits$}, interval ±{half:.digits$}", change.mean),
                change.mean.abs() <= half,
            );
        }
        out
    }
}

/// The report of runs in Markdown: for each world a table and its goals, and the reliability.
pub fn report(runs: &[Run], reference: &str) -> String {
    let mut out = String::new();
    for world in [World::Simulated, World::History] {
        let experiment = Experiment::of(runs, world);
        if experiment.arms.is_empty() {
            continue;
        }
        out.push_str(&experiment.table(reference));
        if !experiment.arms.contains(&reference) {
            continue;
        }
        let _ = writeln!(out, "\n{}", experiment.goals(reference));
        if world == World::Simulated {
            let own = experiment.runs.iter().filter(|((arm, _), _)| *arm == reference);
            let pooled = Reliability::pooled(own.map(|(_, (_, reliability))| reliability));
            let rows = pooled.rows().into_iter().map(|(hits, shown, right)| {
                format!("shown {shown:.2}, right {right:.2} ({hits} hits)")
            });
            let rows: Vec<String> = rows.collect();
            let _ = writeln!(out, "Shown confidence against rightness: {}.\n", rows.join("; "));
        }
    }
    out
}

fn valued(of: Estimate, digits: usize) -> String {
    format!("{:.digits$} [{:.digits$}, {:.digits$}]", of.mean, of.low, of.high)
}

fn differing(of: Estimate, digits: usize) -> String {
    let text = format!("{:+.digits$} [{:+.digits$}, {:+.digits$}]", of.mean, of.low, of.high);
    if of.is_clear() { format!("**{text}**") } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Run, World, report};
    use crate::team::{Arm, FIGURES, HISTORY_FIGURES};
    use serde_json::{Value, json};

    fn run(arm: &str, seed: u64, figures: &[(usize, f64)]) -> Run {
        let mut all = vec![f64::NAN; FIGURES.len()];
        figures.iter().for_each(|(at, value)| all[*at] = *value);
        let world = World::Simulated;
        Run { world, arm: arm.into(), seed, figures: all, rest: Value::Null }
    }

    fn read(runs: &[Run]) -> Vec<Run> {
        runs.iter().filter_map(|run| Run::read(&run.line())).collect()
    }

    #[test]
    fn a_table_shows_differences_on_common_seeds() {
        let right = |arm: &str, seed, right| run(arm, seed, &[(0, right)]);
        let runs = [right("a", 1, 0.5), right("a", 2, 0.7), right("b", 1, 0.4), right("b", 9, 0.0)];
        let report = report(&read(&runs), "a");
        assert!(report.contains("| a | 2 | 0.600 [0.500, 0.700] | – |"), "{report}");
        assert!(report.contains("| b | 1 | **-0.100 [-0.100, -0.100]** | – |"), "{report}");
    }

    #[test]
    fn the_calibration_error_is_that_of_all_hits_together() {
        let runs = [(1, 1.0), (2, 0.0)].map(|(seed, right)| {
            let rest = json!({"reliability": [[10, 0.55, right]]});
            Run { rest, ..run("a", seed, &[(3, 0.5)]) }
        });
        let report = report(&read(&runs), "a");
        assert!(report.contains("calibration error at most 0.05 | 0.050 ["), "{report}");
        assert!(report.contains("shown 0.55, right 0.50 (20 hits)"), "{report}");
    }

    #[test]
    fn goals_are_judged_against_plain_search_and_against_a_silent_hostile_node() {
        let (klnode, plain) = (Arm::defaults().name, Arm::plain().name);
        let silent = Arm::all()[1].clone();
        assert!(!silent.without.is_empty() && silent.name == Arm::SILENT);
        let arms = [(klnode, 0.5, 0.2), (plain, 0.4, 0.3), (Arm::SILENT, 0.49, 0.1)];
        let runs = arms.map(|(arm, right, harm)| {
            [(1, 0.02), (2, -0.02)]
                .map(|(seed, by)| run(arm, seed, &[(0, right + by), (1, harm + by)]))
        });
        let report = report(&read(runs.as_flattened()), klnode);
        for (goal, is_met) in [
            ("right answers at least 1.1 of plain hybrid search", "yes"),
            ("harm at most 0.5 of plain hybrid search", "no"),
            ("the hostile node changes right answers per question by at most its interval", "yes"),
            ("the hostile node changes harm per question by at most its interval", "no"),
        ] {
            let row = report.lines().find(|line| line.contains(goal)).unwrap_or_default();
            assert!(row.ends_with(&format!("| {is_met} |")), "{goal}: {report}");
        }
    }

    #[test]
    fn runs_of_the_history_have_a_table_of_their_own() {
        let figures = vec![0.5, 0.9, 0.05, 0.11, 0.01, 4.5];
        assert_eq!(figures.len(), HISTORY_FIGURES.len());
        let world = World::History;
        let history = Run { world, arm: "a".into(), seed: 1, figures, rest: Value::Null };
        let report = report(&read(&[history, run("a", 1, &[(0, 0.5)])]), "a");
        assert_eq!(report.matches("| a | 1 |").count(), 2, "{report}");
        let warned = "| stale hits without a warning below 0.02 | 0.010 [0.010, 0.010] | yes |";
        assert!(report.contains(warned), "{report}");
        assert!(report.contains("| stale hits below 0.02 | 0.110 [0.110, 0.110] | no |"));
    }
}
