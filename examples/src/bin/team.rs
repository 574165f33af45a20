//! A team: a hub and three workstations, one of which keeps to itself what it tags `draft`.
//!
//! `cargo run -p klnode-examples --bin team`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use klnode::engine::Command;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::WorkspaceId;
use klnode_crdt::writer::Claim;
use klnode_examples::Node;
use std::error::Error;

/// What the workspace is called everywhere.
const NAME: &str = "team";

async fn workspace(node: &Node) -> Result<WorkspaceId, Box<dyn Error>> {
    let found = node.peers.call(|core| core.society().map(|society| society.workspace(NAME)));
    found.await??.ok_or_else(|| "the workspace is not known here".into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = Node::start("hub")?;
    let [ada, ben, cleo] = [Node::start("ada")?, Node::start("ben")?, Node::start("cleo")?];
    for one in [&ada, &ben, &cleo] {
        hub.pair(one, Some(NAME)).await?;
    }
    let team = workspace(&ada).await?;

    let hub_key = hub.author;
    let denied = ada.peers.call(move |core| {
        let society = core.society()?;
        let row = society.peers.get(&hub_key).cloned().unwrap_or_default();
        let mut filter = core.examiner().egress(&row, &society);
        filter.tags_deny.insert("draft".into());
        core.set_filters(hub_key, Some(filter), None)
    });
    denied.await??;

    let shared = ada.learn(team, "Retry the billing gateway with backoff").await?;
    for (name, node) in [("hub", &hub), ("ben", &ben), ("cleo", &cleo)] {
        node.has(shared).await?;
        println!("{name} has what ada shared.");
    }
    let draft = ada.learn(WorkspaceId::MAIN, "An idea that is not ripe").await?;
    let claims = vec![Claim::Add(TextSet::TAGS, "draft".into())];
    ada.engine.submit(Command::Claim { entry: draft, claims }).await?;
    let last = ben.learn(team, "Integration tests need a seeded clock").await?;
    cleo.has(last).await?;
    println!("cleo has what ben shared, by way of the hub.");
    println!("cleo has heard of ada's draft: {}.", cleo.holds(draft)?);
    Ok(())
}
