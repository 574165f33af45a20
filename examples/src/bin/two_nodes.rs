//! Two nodes of one person in one program, paired by a ticket: each receives the other's entries.
//!
//! `cargo run -p klnode-examples --bin two_nodes`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use klnode_crdt::ids::WorkspaceId;
use klnode_examples::{Node, run};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let (desk, laptop) = (Node::start("desk")?, Node::start("laptop")?);
    run(share(&desk, &laptop))
}

async fn share(desk: &Node, laptop: &Node) -> Result<(), Box<dyn Error>> {
    let before = desk.learn(WorkspaceId::MAIN, "Check ctx.Err() after upstream calls", &[]).await?;
    desk.pair(laptop, None).await?;
    laptop.has(before).await?;
    println!("The laptop has the desk's earlier entry.");
    let after = laptop.learn(WorkspaceId::MAIN, "Pin the toolchain in CI", &[]).await?;
    desk.has(after).await?;
    println!("The desk has the laptop's new entry.");
    let local = desk.learn(WorkspaceId::LOCAL, "Where my notes are", &[]).await?;
    let shared = desk.learn(WorkspaceId::MAIN, "Seed the clock in tests", &[]).await?;
    laptop.has(shared).await?;
    println!("The laptop has the desk's local entry: {}.", laptop.holds(local)?);
    Ok(())
}
