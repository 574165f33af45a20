//! `klnode knowledge reflect`: runs maintenance and reports duplicates, contradictions and proposed
//! links.
//!
//! A link is proposed between entries that are often served together and have none. Nothing is
//! linked by itself: each proposal has the command that states it.

use super::api_path::entry_path;
use super::maintain;
use super::{ProgressSink, Reply, VerbError};
use klnode_api_types::{EntryIdentity, EntryLinks, JournalItem, MaintenanceStatus};
use klnode_client::Client;
use serde::Serialize;
use std::fmt::Write;

/// The services of maintenance that find the parts of the report.
const SERVICES: [&str; 3] = ["duplicates", "contradictions", "pairs"];

/// The report.
#[derive(Serialize)]
struct Reflection {
    /// Duplicates that were merged, and that can be separated again.
    merged: Vec<JournalItem>,
    /// Pairs that may be duplicates.
    duplicates: Vec<JournalItem>,
    contradictions: Vec<JournalItem>,
    links: Vec<ProposedLink>,
}

/// A link between two entries that are often served together.
#[derive(Serialize)]
struct ProposedLink {
    from: EntryIdentity,
    to: EntryIdentity,
    /// The command that states the link.
    command: String,
}

pub(super) async fn run(
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Reply, VerbError> {
    for service in SERVICES {
        let service = Some(service.to_owned());
        let args = maintain::Args { verb: None, service, dry_run: false, all: false };
        args.run(client, &mut *progress).await?;
    }
    let status: MaintenanceStatus = client.get("/v1/maintenance").await?;
    let mut links = Vec::new();
    for cluster in status.clusters {
        links.extend(proposed(client, &cluster.entries).await?);
    }
    let mut merged = status.changes;
    merged.retain(|change| change.stage == "made");
    let (duplicates, contradictions) = (status.proposals, status.contradictions);
    let report = Reflection { merged, duplicates, contradictions, links };
    let text = report.text();
    Ok(Reply::new(&report, text))
}

/// Links from the first entry of a cluster to those that it is not linked with.
async fn proposed(
    client: &Client,
    cluster: &[EntryIdentity],
) -> Result<Vec<ProposedLink>, VerbError> {
    let Some((first, others)) = cluster.split_first() else { return Ok(Vec::new()) };
    let known: EntryLinks = client.get(&entry_path(&first.id, "/links?depth=1")?).await?;
    let is_linked = |other: &EntryIdentity| known.entries.iter().any(|one| one.id == other.id);
    let link = |to: &EntryIdentity| ProposedLink {
        from: first.clone(),
        to: to.clone(),
        command: format!("klnode edit {} --link related:{}", first.code, to.code),
    };
    Ok(others.iter().filter(|other| !is_linked(other)).map(link).collect())
}

impl Reflection {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, count, way) in [
            ("merged duplicates", self.merged.len(), "klnode maintain list changes"),
            ("proposed duplicates", self.duplicates.len(), "klnode maintain list proposals"),
            ("contradictions", self.contradictions.len(), "klnode maintain list contradictions"),
        ] {
            let _ = writeln!(text, "{count:>6} {name}  (`{way}`)");
        }
        let _ = writeln!(text, "{:>6} proposed links", self.links.len());
        for link in &self.links {
            let _ = writeln!(text, "       {}", link.command);
        }
        text
    }
}
