//! Replays a team with each mechanism of klnode switched off, and prints the table of
//! `docs/internals/proof.md`.
//!
//! `cargo run -p klnode-tests --bin replay -- --seeds 20` runs every arm on twenty seeds, several at
//! a time; `--history` does so in this repository's git history. `--out` appends each run to a file,
//! and `--table` joins such files to one report.

#![expect(clippy::print_stdout, reason = "a program for people")]

use clap::Parser;
use klnode_tests::team::{Arm, Params, Run, history_arms, replay, replay_history, report};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Replays of a team of five nodes, two of them careless and one hostile.
#[derive(Parser, Debug)]
#[command(
    after_help = "Example:\n  replay --seeds 20 --out runs.jsonl\n  replay --table runs.jsonl"
)]
struct Arguments {
    /// Number of seeds for each arm.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// The size of the gate: fewer days and facts.
    #[arg(long)]
    small: bool,
    /// Simulated days, from 1 to 90, instead of the default (60, or 20 with --small).
    #[arg(long, conflicts_with = "history", value_parser = clap::value_parser!(u32).range(1..=90))]
    days: Option<u32>,
    /// Only arms whose name contains this text; may be given several times.
    #[arg(long)]
    arm: Vec<String>,
    /// Adds an arm with this setting, as KEY=VALUE; may be given several times.
    #[arg(long)]
    set: Vec<String>,
    /// Name of the added arm.
    #[arg(long, default_value = "tuned")]
    name: String,
    /// Number of replays at a time.
    #[arg(long)]
    threads: Option<usize>,
    /// Appends each run to this file, as a line of JSON.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replays this repository's git history instead of the simulated world.
    #[arg(long)]
    history: bool,
    /// Prints the report of these files, without a replay.
    #[arg(long, num_args = 1..)]
    table: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runs =
        if arguments.table.is_empty() { run_all(&arguments) } else { read(&arguments.table) };
    match runs {
        Ok(runs) => {
            print!("{}", report(&runs, Arm::defaults().name));
            ExitCode::SUCCESS
        }
        Err(Failure::NoHistory(reason)) => {
            println!("Skipped: {reason}");
            ExitCode::SUCCESS
        }
        Err(Failure::Wrong(error)) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Why there is no report.
enum Failure {
    /// The checkout has no history to replay.
    NoHistory(String),
    /// An argument or a file is wrong.
    Wrong(String),
}

impl From<String> for Failure {
    fn from(error: String) -> Self {
        Failure::Wrong(error)
    }
}

fn read(files: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        runs.extend(text.lines().filter_map(Run::read));
    }
    Ok(runs)
}

/// The chosen arms, and the one of the settings.
fn arms(arguments: &Arguments) -> Result<Vec<Arm>, String> {
    let is_chosen = |arm: &Arm| {
        arguments.arm.is_empty()
            || arguments.arm.iter().any(|part| arm.name.contains(part.as_str()))
    };
    let all = if arguments.history { history_arms() } else { Arm::all() };
    let mut arms: Vec<Arm> = all.into_iter().filter(is_chosen).collect();
    if !arguments.set.is_empty() {
        let mut settings = Vec::new();
        for setting in &arguments.set {
            let parts = setting.split_once('=');
            let (key, value) = parts.ok_or_else(|| format!("`{setting}` is not KEY=VALUE."))?;
            settings.push((leaked(key), leaked(value)));
        }
        arms.push(Arm::tuned(leaked(&arguments.name), settings));
    }
    Ok(arms)
}

/// The few texts of the command line live as long as the program.
fn leaked(text: &str) -> &'static str {
    String::leak(text.to_owned())
}

/// Runs every arm on every seed, all arms of a seed before the next seed.
fn run_all(arguments: &Arguments) -> Result<Vec<Run>, Failure> {
    let mut params = if arguments.small { Params::SMALL } else { Params::FULL };
    params.days = arguments.days.unwrap_or(params.days);
    let arms = arms(arguments)?;
    let run_one = |arm: &Arm, seed: u64| match arguments.history {
        true => replay_history(seed, arm).map(|counts| Run::of_history(arm.name, seed, &counts)),
        false => Ok(Run::new(arm.name, seed, &replay(seed, &params, arm))),
    };
    let seeds = arguments.from..arguments.from + arguments.seeds;
    let jobs: Vec<(usize, u64)> =
        seeds.flat_map(|seed| (0..arms.len()).map(move |arm| (arm, seed))).collect();
    let file = match &arguments.out {
        None => None,
        Some(path) => {
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
            Some(opened.map_err(|error| format!("{}: {error}", path.display()))?)
        }
    };
    let (next, done) = (AtomicUsize::new(0), Mutex::new((Vec::new(), file)));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(cores) {
            scope.spawn(|| {
                while let Some((arm, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = run_one(&arms[*arm], *seed);
                    let mut done = done.lock().expect("no thread panics while it holds the lock");
                    if run.is_err() {
                        // Without a history every other job would fail as well.
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    if let (Ok(run), Some(file)) = (&run, &mut done.1) {
                        writeln!(file, "{}", run.line()).expect("the file can be written");
                    }
                    done.0.push(run);
                }
            });
        }
    });
    let (runs, _) = done.into_inner().expect("no thread panicked while it held the lock");
    let mut runs = runs.into_iter().collect::<Result<Vec<Run>, String>>();
    if let Ok(runs) = &mut runs {
        // The order of the arms, however fast each was.
        runs.sort_by_key(|run| (arms.iter().position(|arm| arm.name == run.arm), run.seed));
    }
    runs.map_err(Failure::NoHistory)
}
