//! A team: a hub and three workstations, one of which does not share entries with the tag `draft`.
//!
//! `cargo run -p klnode-examples --bin team`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use klnode_crdt::ids::WorkspaceId;
use klnode_examples::{Node, run};
use std::error::Error;

/// Name of the workspace on every node.
const NAME: &str = "team";

async fn workspace(node: &Node) -> Result<WorkspaceId, Box<dyn Error>> {
    let found =
        node.peers.call(|core| core.membership().map(|membership| membership.workspace(NAME)));
    found.await??.ok_or_else(|| "The workspace is not known on this node.".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let hub = Node::start("hub")?;
    let [ada, ben, cleo] = [Node::start("ada")?, Node::start("ben")?, Node::start("cleo")?];
    run(work(&hub, [&ada, &ben, &cleo]))
}

async fn work(hub: &Node, [ada, ben, cleo]: [&Node; 3]) -> Result<(), Box<dyn Error>> {
    for one in [ada, ben, cleo] {
        hub.pair(one, Some(NAME)).await?;
    }
    let team = workspace(ada).await?;

    let hub_key = hub.author;
    let denied = ada.peers.call(move |core| {
        let membership = core.membership()?;
        let row = membership.peers.get(&hub_key).cloned().unwrap_or_default();
        let mut filter = core.policy().egress(&row, &membership);
        filter.tags_deny.insert("draft".into());
        core.set_filters(hub_key, Some(filter), None)
    });
    denied.await??;

    let shared = ada.learn(team, "Retry the billing gateway with backoff", &[]).await?;
    for (name, node) in [("hub", hub), ("ben", ben), ("cleo", cleo)] {
        node.has(shared).await?;
        println!("{name} has the entry that ada shared.");
    }
    let draft = ada.learn(team, "An idea that is not ripe", &["draft"]).await?;
    let last = ben.learn(team, "Integration tests need a seeded clock", &[]).await?;
    cleo.has(last).await?;
    println!("cleo has the entry that ben shared, by way of the hub.");
    println!("cleo has ada's draft: {}.", cleo.holds(draft)?);
    Ok(())
}
