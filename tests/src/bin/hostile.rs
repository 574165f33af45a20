//! A peer that means harm, to try a node of one's own with.
//!
//! `cargo run -p klnode-tests --bin hostile -- TICKET` joins the node that wrote the ticket (`klnode
//! invite NAME`) and does to it what `--attack` says, for a few seconds. Nothing but that node is
//! reached.

#![expect(clippy::print_stdout, reason = "a program for people")]

use clap::Parser;
use klnode_federation::proto::ticket::Ticket;
use klnode_tests::hostile::{Attack, End, attack};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Joins a node by a ticket and misbehaves.
#[derive(Parser, Debug)]
#[command(after_help = "Example:\n  hostile --attack bombs --seconds 10 \"$(klnode invite team)\"")]
struct Arguments {
    /// What `klnode invite NAME` printed. A ticket is good once, so one attack needs one.
    ticket: String,
    /// What to do: garbage, bombs, forgeries, pages, compares, probes, replay, flood, receipts or
    /// strays.
    #[arg(long, default_value = "garbage")]
    attack: String,
    /// For how long.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The same seed sends the same bytes; if none is given, the clock's.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Some(what) = Attack::ALL.into_iter().find(|one| one.name() == arguments.attack) else {
        let names: Vec<&str> = Attack::ALL.into_iter().map(Attack::name).collect();
        println!("`{}` is no attack. These are: {}.", arguments.attack, names.join(", "));
        return ExitCode::from(2);
    };
    let ticket: Ticket = match arguments.ticket.parse() {
        Ok(ticket) => ticket,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(2);
        }
    };
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let seed = arguments.seed.unwrap_or(clock as u64);
    match attack(&ticket, what, seed, &[], End::After(Duration::from_secs(arguments.seconds))) {
        Ok(outcome) => {
            println!("{} with seed {seed}: {outcome:?}", what.name());
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
