//! A hostile peer for testing a node of one's own.
//!
//! `cargo run -p klnode-tests --bin attack -- TICKET` joins the node that wrote the ticket
//! (`klnode peer invite NAME`) and runs the attack named by `--attack` against it for a few seconds. It
//! contacts only that node.

#![expect(clippy::print_stdout, reason = "a program for people")]

use clap::Parser;
use klnode_federation::proto::ticket::Ticket;
use klnode_tests::hostile_peer::{Attack, End, attack};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Joins a node by a ticket and misbehaves.
#[derive(Parser, Debug)]
#[command(
    after_help = "Example:\n  attack --attack bombs --seconds 10 \"$(klnode peer invite team)\""
)]
struct Arguments {
    /// The ticket that `klnode peer invite NAME` printed. A ticket is valid once, so each attack needs
    /// one.
    ticket: String,
    /// The attack: garbage, bombs, forgeries, pages, compares, probes, replay, flood, receipts or
    /// strays.
    #[arg(long, default_value = "garbage")]
    attack: String,
    /// Duration of the attack in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Seed of the attack: the same seed sends the same bytes. Defaults to the clock.
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
