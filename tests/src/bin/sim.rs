//! Runs simulated networks of whole nodes, one seed after another, and stops at the first
//! violation.
//!
//! `cargo run --release -p klnode-tests --bin sim -- --seeds 1000` runs a range of seeds on all
//! cores, counts every fault that fired, shrinks a failing plan to few steps, and prints the
//! command that replays it. `--help` lists the options.

#![expect(clippy::print_stdout, reason = "a program for people")]

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use klnode_tests::schedule::{Plan, Report, Size, UNSWEPT_SEEDS, Violation, run, shrink};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Simulated networks of whole nodes: operations, faults, and the invariants that must hold in the
/// end.
#[derive(Parser, Debug)]
#[command(after_help = "Example:\n  sim --seeds 1000 --from 0\n  sim --seed 17 --keep 0-3,12")]
struct Arguments {
    /// Number of seeds to run.
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// First seed of the range.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Smaller plans: 60 operations and 15 faults instead of 200 and 50.
    #[arg(long)]
    small: bool,
    /// Runs only this seed and prints its events.
    #[arg(long)]
    seed: Option<u64>,
    /// Runs only these steps of that seed, such as `0-3,12`.
    #[arg(long, requires = "seed")]
    keep: Option<String>,
    /// Runs every n-th seed twice and requires the same trace.
    #[arg(long, default_value_t = 100)]
    twice: u64,
    /// Reports the failing plan as it is, without shrinking it.
    #[arg(long)]
    no_shrink: bool,
    /// Number of threads.
    #[arg(long)]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let size = if arguments.small { Size::SMALL } else { Size::FULL };
    match arguments.seed {
        Some(seed) => replay(seed, size, arguments.keep.as_deref()),
        None => search(&arguments, size),
    }
}

fn replay(seed: u64, size: Size, keep: Option<&str>) -> ExitCode {
    let mut plan = Plan::draw(seed, size);
    if let Some(keep) = keep {
        let Some(kept) = numbers(keep) else {
            println!("`{keep}` is no list of steps. Write it as 0-3,12.");
            return ExitCode::from(2);
        };
        let steps = kept.iter().filter_map(|at| plan.steps.get(*at).copied());
        plan.steps = steps.collect();
    }
    println!("seed {seed}: {} nodes", plan.nodes);
    for (at, step) in plan.steps.iter().enumerate() {
        println!("{at:4} {step:?}");
    }
    match run(&plan) {
        Ok(report) => {
            println!("all is well: {report:?}");
            ExitCode::SUCCESS
        }
        Err(Violation { what }) => {
            println!("violated: {what}");
            ExitCode::FAILURE
        }
    }
}

fn numbers(list: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(all)
}

/// Totals over all runs.
#[derive(Default)]
struct Sum {
    runs: u64,
    twice: u64,
    reports: Vec<Report>,
    unswept: Vec<(u64, String)>,
}

fn search(arguments: &Arguments, size: Size) -> ExitCode {
    let bar = ProgressBar::new(arguments.seeds);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} seeds, {eta} left");
    bar.set_style(style.expect("a template that reads"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(cores);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (sum, failed) = (Mutex::new(Sum::default()), Mutex::new(None));
    // A panic is reported as a finding, so the hook stays silent.
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.seeds {
                        break;
                    }
                    let plan = Plan::draw(arguments.from + number, size);
                    let is_twice = number.is_multiple_of(arguments.twice.max(1));
                    match once_or_twice(&plan, is_twice) {
                        Ok(report) => {
                            let mut sum =
                                sum.lock().expect("no thread panics while it holds the lock");
                            sum.runs += 1;
                            sum.twice += u64::from(is_twice);
                            let what = report.unswept.clone();
                            sum.unswept.extend(what.map(|what| (plan.seed, what)));
                            sum.reports.push(report);
                        }
                        Err(violation) => {
                            stop.store(true, Ordering::Relaxed);
                            *failed.lock().expect("no thread panics while it holds the lock") =
                                Some((plan, violation));
                        }
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let sum = sum.into_inner().expect("no thread panicked while it held the lock");
    show(&sum);
    let is_too_often = sum.unswept.len() as u64 > 1 + sum.runs / UNSWEPT_SEEDS;
    match failed.into_inner().expect("no thread panicked while it held the lock") {
        None if is_too_often => {
            println!(
                "\ntoo many seeds depend on a sweep: nodes do not release all records in time"
            );
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
        Some((plan, violation)) if arguments.no_shrink => {
            println!("\nseed {}: {}", plan.seed, violation.what);
            ExitCode::FAILURE
        }
        Some((plan, violation)) => tell(&plan, violation, arguments.small),
    }
}

fn once_or_twice(plan: &Plan, is_twice: bool) -> Result<Report, Violation> {
    let report = run(plan)?;
    if is_twice && run(plan)?.trace != report.trace {
        return Err(Violation { what: "the same seed gave another trace".into() });
    }
    Ok(report)
}

fn show(sum: &Sum) {
    let total = |of: fn(&Report) -> u64| sum.reports.iter().map(of).sum::<u64>();
    println!("{} seeds, {} of them twice", sum.runs, sum.twice);
    let counts: [(&str, u64); 18] = [
        ("operations acknowledged", total(|one| one.acknowledged)),
        ("messages delivered", total(|one| one.network.delivered)),
        ("  lost", total(|one| one.network.lost + one.network.cut + one.network.down)),
        ("  repeated", total(|one| one.network.duplicated)),
        ("  overtaken", total(|one| one.network.reordered)),
        ("partitions", total(|one| one.network.parted)),
        ("crashes", total(|one| one.network.crashed)),
        ("power cuts in mid-write", total(|one| one.power_cuts)),
        ("disks that failed for a while", total(|one| one.failing_disks)),
        ("old copies put back", total(|one| one.restores)),
        ("programs of another version", total(|one| one.replaced)),
        ("records of a later format", total(|one| one.written_ahead)),
        ("clocks that jumped", total(|one| one.network.jumped)),
        ("clocks that stopped", total(|one| one.network.frozen)),
        ("changes of mind", total(|one| one.changes_of_mind)),
        ("rests until equal, in all", total(|one| one.rests)),
        ("  at most", sum.reports.iter().map(|one| one.rests).max().unwrap_or(0)),
        ("  after a sweep", sum.unswept.len() as u64),
    ];
    for (name, count) in counts {
        println!("{name:30} {count:>12}");
    }
    for (seed, what) in &sum.unswept {
        println!("seed {seed} waited for a sweep: {what}");
    }
}

fn tell(plan: &Plan, violation: Violation, is_small: bool) -> ExitCode {
    println!("\nseed {}: {}", plan.seed, violation.what);
    println!("looking for the least plan that goes wrong…");
    let (least, found) = shrink(plan, violation, |_| {});
    let mut kept = Vec::new();
    let mut from = 0;
    for step in &least.steps {
        let at = from + plan.steps[from..].iter().position(|one| one == step).unwrap_or(0);
        kept.push(at.to_string());
        from = at + 1;
    }
    println!("{} of {} steps: {}", least.steps.len(), plan.steps.len(), found.what);
    for step in &least.steps {
        println!("  {step:?}");
    }
    let size = if is_small { " --small" } else { "" };
    println!(
        "\nto see it again:\n  cargo run --release -p klnode-tests --bin sim -- --seed {}{size} \
         --keep {}",
        plan.seed,
        kept.join(",")
    );
    ExitCode::FAILURE
}
