//! `klnode workspace`: shared workspaces, their members and their checkouts.

use super::api_path::{escape, part};
use super::sanitize::printable;
use super::{Reply, VerbError, anchors, read_limited, timestamp};
use hyper::Method;
use klnode_api_types::joins::{OfferDecision, OfferDecisionResult, WorkspaceOffer};
use klnode_api_types::peers::{
    NewWorkspace, Peer, PeerDecision, PeerDecisionRequest, RemovedMember, Workspace,
    WorkspaceUpdate, Workspaces,
};
use klnode_api_types::{MapCheckoutRequest, MappedCheckout};
use klnode_client::Client;
use klnode_text::plural::{counted, entries};
use std::fmt::Write;
use std::path::PathBuf;

/// The most bytes of a settings file, which has a few lines.
const SETTINGS_BYTES_MAX: usize = 64 * 1024;

/// The action on workspaces.
#[derive(Debug, clap::Subcommand)]
pub enum WorkspaceVerb {
    /// Create a workspace that this node owns.
    ///
    /// Example: klnode workspace new team
    New(OneWorkspace),
    /// List workspaces, and mark the one that new entries go to.
    ///
    /// Example: klnode workspace list
    List,
    /// Write new entries to a workspace, except in a checkout that is mapped to another.
    ///
    /// Example: klnode workspace use team
    Use(OneWorkspace),
    /// Show a workspace: members, settings and mapped checkouts.
    ///
    /// Example: klnode workspace show team
    Show(OneWorkspace),
    /// Map a checkout to a workspace, so that entries written there go to it.
    ///
    /// The mapping includes all worktrees and clones of the same repository. A fork is another
    /// repository; run the command there as well.
    ///
    /// Example: klnode workspace map team
    Map(Map),
    /// Remove the mapping of a checkout.
    ///
    /// Example: klnode workspace unmap team --checkout ~/src/shop
    Unmap(Unmap),
    /// Show the members; owner and admins may add a paired peer or remove a member.
    ///
    /// An added peer gets an offer, and becomes a member when its operator accepts it. The records of
    /// a removed member that this node holds still count; all later ones are refused by every node
    /// that has heard of the removal. `--reinstate` takes a removal back.
    ///
    /// Example: klnode workspace members team --add alice
    Members(Members),
    /// Accept membership in a workspace that a peer offers.
    ///
    /// Example: klnode workspace accept team --from alice
    Accept(OneOffer),
    /// Decline membership in a workspace that a peer offers.
    ///
    /// Example: klnode workspace decline team
    Decline(OneOffer),
    /// Set the settings of a workspace from a TOML file; only owner and admins may.
    ///
    /// The file may have a table `[weights]` with any of semantic, thompson, freshness, status,
    /// thread and cooccurrence, each from 0 to 0.5. Missing weights stay as configured; all six
    /// must add up to 1. The other machines of the owner are admins.
    ///
    /// Example: klnode workspace settings team weights.toml
    Settings(Settings),
}

/// The workspace that a verb is about.
#[derive(Debug, clap::Args)]
pub struct OneWorkspace {
    /// The name of the workspace.
    pub name: String,
}

/// A checkout and a workspace.
#[derive(Debug, clap::Args)]
pub struct Map {
    /// The workspace's name.
    pub name: String,
    /// A folder in the checkout [default: the current folder].
    #[arg(long, value_name = "PATH")]
    pub checkout: Option<PathBuf>,
    /// Also send the identity of the repository, its root commits and its remote, to all members,
    /// whose nodes suggest the mapping. Only owner and admins may.
    #[arg(long)]
    pub offer: bool,
}

/// A checkout and the workspace whose mapping to remove.
#[derive(Debug, clap::Args)]
pub struct Unmap {
    /// The workspace's name.
    pub name: String,
    /// A folder in the checkout [default: the current folder].
    #[arg(long, value_name = "PATH")]
    pub checkout: Option<PathBuf>,
    /// Also withdraw the identity of the repository from all members. Only owner and admins may.
    #[arg(long)]
    pub offer: bool,
}

/// The change of the members.
#[derive(Debug, clap::Args)]
pub struct Members {
    /// The workspace's name.
    pub name: String,
    /// Offer this paired peer membership, by name or key.
    #[arg(long, value_name = "PEER", conflicts_with = "remove")]
    pub add: Option<String>,
    /// Remove this member, or withdraw the offer to it, by name or key.
    #[arg(long, value_name = "MEMBER")]
    pub remove: Option<String>,
    /// With --remove: keep the members that only the removed admin lists.
    #[arg(long, requires = "remove", conflicts_with = "drop_members")]
    pub keep_members: bool,
    /// With --remove: also remove the members that only the removed admin lists.
    #[arg(long, requires = "remove")]
    pub drop_members: bool,
    /// With --remove: also end the pairing with the removed node.
    #[arg(long, requires = "remove")]
    pub unpair: bool,
    /// Take back this node's removal of a member, by name or key.
    #[arg(long, value_name = "MEMBER", conflicts_with_all = ["add", "remove"])]
    pub reinstate: Option<String>,
}

impl Members {
    fn changes(&self) -> bool {
        self.add.is_some() || self.remove.is_some() || self.reinstate.is_some()
    }

    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        if !self.changes() {
            let one: Workspace = client.get(&path(&self.name)?).await?;
            let text = members(&one);
            return Ok(Reply::new(&one, text));
        }
        let before: Workspace = client.get(&path(&self.name)?).await?;
        let keep_members = (self.keep_members || self.drop_members).then_some(self.keep_members);
        let Self { name, add, remove, reinstate, unpair, .. } = self;
        let change =
            WorkspaceUpdate { add, remove, keep_members, reinstate, ..WorkspaceUpdate::default() };
        let one = change_one(client, &name, &change).await?;
        let mut text = members(&one);
        let is_new = |key: &str| !before.removed.iter().any(|known| known.key == key);
        for gone in one.removed.iter().filter(|gone| is_new(&gone.key)) {
            text.push_str(&removal(&one, gone));
            if unpair {
                let decide = PeerDecisionRequest { decision: PeerDecision::Remove, code: None };
                let path = format!("/v1/peers/{}/decision", gone.key);
                let _: Peer = client.send_json(Method::POST, &path, &decide).await?;
                let _ = writeln!(text, "The pairing with {} has ended.", printable(&gone.name));
            } else {
                let _ = writeln!(
                    text,
                    "The two nodes stay paired; `klnode peer remove {}` ends that.",
                    &gone.key[..8]
                );
            }
        }
        Ok(Reply::new(&one, text))
    }
}

/// The effect and the limits of a new removal.
fn removal(one: &Workspace, gone: &RemovedMember) -> String {
    let name = printable(&gone.name);
    let mut text = format!(
        "{name} was removed. {}; later ones are refused.\n",
        counted(gone.records, "record of it still counts", "records of it still count")
    );
    text.push_str(
        "Members learn of it when they next connect. A node that has not heard of it accepts the \
         removed node's records until then, and drops them afterwards. What the removed node has \
         received stays with it.\n",
    );
    for member in &one.members {
        if let Some(at) = member.compared_at {
            let (name, at) = (printable(&member.name), timestamp::moment(at));
            let _ = writeln!(text, "Last compared with {name}: {at}.");
        }
    }
    text
}

/// Membership that a peer offers.
#[derive(Debug, clap::Args)]
pub struct OneOffer {
    /// The name of the workspace in the offer.
    pub name: String,
    /// The peer that offers it; needed if several peers offer this name.
    #[arg(long, value_name = "PEER")]
    pub from: Option<String>,
}

impl OneOffer {
    async fn run(self, client: &Client, accept: bool) -> Result<Reply, VerbError> {
        let decide = OfferDecision { workspace: self.name, from: self.from, accept };
        let path = "/v1/offers/decision";
        let decided: OfferDecisionResult = client.send_json(Method::POST, path, &decide).await?;
        let (name, peer) = (printable(&decided.workspace), printable(&decided.peer_name));
        let text = match decided.accepted {
            true => format!("{name}  this node is now a member, by an offer of {peer}\n"),
            false => format!("{name}  the offer of {peer} was declined\n"),
        };
        Ok(Reply::new(&decided, text))
    }
}

/// The settings of a workspace.
#[derive(Debug, clap::Args)]
pub struct Settings {
    /// The workspace's name.
    pub name: String,
    /// The file with the settings, in TOML.
    pub file: PathBuf,
}

impl WorkspaceVerb {
    pub(super) fn needs_person(&self) -> bool {
        match self {
            Self::List | Self::Use(_) | Self::Show(_) => false,
            Self::Members(members) => members.changes(),
            Self::Accept(_) | Self::Decline(_) => true,
            Self::Map(map) => map.offer,
            Self::Unmap(unmap) => unmap.offer,
            Self::New(_) | Self::Settings(_) => true,
        }
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::New(OneWorkspace { name }) => {
                let new = NewWorkspace { name };
                let made: Workspace =
                    client.send_json(Method::POST, "/v1/workspaces", &new).await?;
                let name = &made.name;
                let text =
                    format!("{name}  created; `klnode peer invite {name}` invites a member\n");
                Ok(Reply::new(&made, text))
            }
            Self::List => {
                let all: Workspaces = client.get(&format!("/v1/workspaces{}", checkout())).await?;
                let text = list(&all.workspaces) + &offers(&all.offers);
                Ok(Reply::new(&all, text))
            }
            Self::Use(OneWorkspace { name }) => {
                let path = format!("{}/use", path(&name)?);
                let one: Workspace = client.send_json(Method::POST, &path, &()).await?;
                let text = format!("{}  new entries go here\n", one.name);
                Ok(Reply::new(&one, text))
            }
            Self::Show(OneWorkspace { name }) => {
                let one: Workspace = client.get(&(path(&name)? + &checkout())).await?;
                let text = whole(&one);
                Ok(Reply::new(&one, text))
            }
            Self::Map(map) => map.run(client, Mapping::Made).await,
            Self::Unmap(Unmap { name, checkout, offer }) => {
                Map { name, checkout, offer }.run(client, Mapping::Ended).await
            }
            Self::Accept(offer) => offer.run(client, true).await,
            Self::Decline(offer) => offer.run(client, false).await,
            Self::Members(members) => members.run(client).await,
            Self::Settings(Settings { name, file }) => {
                let settings = read_limited::file(&file, SETTINGS_BYTES_MAX).map_err(|error| {
                    VerbError::Input(format!("Cannot read {}: {error}.", file.display()))
                })?;
                // An empty text would mean no change; a comment clears the settings.
                let is_empty = settings.trim().is_empty();
                let settings = Some(if is_empty { "# none\n".to_owned() } else { settings });
                let change = WorkspaceUpdate { settings, ..WorkspaceUpdate::default() };
                let one = change_one(client, &name, &change).await?;
                let text = format!("{}  settings set\n", one.name);
                Ok(Reply::new(&one, text))
            }
        }
    }
}

/// Whether to create or to remove a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mapping {
    Made,
    Ended,
}

impl Map {
    async fn run(self, client: &Client, mapping: Mapping) -> Result<Reply, VerbError> {
        let folder = self.checkout.unwrap_or_else(|| PathBuf::from("."));
        let checkout = std::fs::canonicalize(&folder).map_err(|error| {
            VerbError::Input(format!("Cannot open {}: {error}.", folder.display()))
        })?;
        let checkout = checkout.into_os_string().into_string().map_err(|path| {
            VerbError::Input(format!("Cannot map {}: its name is not UTF-8.", path.display()))
        })?;
        let remove = mapping == Mapping::Ended;
        if self.offer {
            let path = Some(checkout.clone());
            let change = match mapping {
                Mapping::Made => WorkspaceUpdate { offer_checkout: path, ..<_>::default() },
                Mapping::Ended => WorkspaceUpdate { withdraw_checkout: path, ..<_>::default() },
            };
            change_one(client, &self.name, &change).await?;
        }
        let ask = MapCheckoutRequest { checkout, remove };
        let path = format!("{}/checkouts", path(&self.name)?);
        let one: Workspace = client.send_json(Method::POST, &path, &ask).await?;
        let text = match mapping {
            Mapping::Made => format!("{}  entries written in this checkout go here\n", one.name),
            Mapping::Ended => format!("{}  this checkout is no longer mapped here\n", one.name),
        };
        Ok(Reply::new(&one, text))
    }
}

async fn change_one(
    client: &Client,
    name: &str,
    change: &WorkspaceUpdate,
) -> Result<Workspace, VerbError> {
    Ok(client.send_json(Method::PATCH, &path(name)?, change).await?)
}

fn path(name: &str) -> Result<String, VerbError> {
    let wanted = "give its name; `klnode workspace list` lists all";
    Ok(format!("/v1/workspaces/{}", part(name, "a workspace", wanted)?))
}

/// The query with the current checkout, for which the node looks up the mapping.
fn checkout() -> String {
    let here = anchors::here();
    here.map(|here| format!("?checkout={}", escape(&here))).unwrap_or_default()
}

fn list(all: &[Workspace]) -> String {
    let is_mapped = all.iter().any(|one| one.here);
    let line = |one: &Workspace| {
        let mut text = format!("{}  {}", one.name, entries(one.entries));
        for (count, noun) in [(one.members.len(), "member"), (one.checkouts.len(), "checkout")] {
            if count > 0 {
                let _ = write!(text, ", {}", counted(count as u64, noun, &format!("{noun}s")));
            }
        }
        text.push_str(match (one.here, one.current) {
            (true, true) => "  (new entries go here, this checkout's too)",
            (true, false) => "  (this checkout's entries go here)",
            (false, true) if is_mapped => "  (other new entries go here)",
            (false, true) => "  (new entries go here)",
            (false, false) => "",
        });
        if one.removed_here {
            text.push_str("  (this node was removed; nothing written here is shared)");
        }
        text.push_str(if one.damaged { "  (damaged: see `klnode check`)\n" } else { "\n" });
        text
    };
    let mut text: String = all.iter().map(line).collect();
    if all.iter().all(|one| one.members.is_empty()) {
        text.push_str("No workspace is shared. `klnode workspace new NAME` creates one.\n");
    }
    text
}

/// Membership that peers offer.
fn offers(offers: &[WorkspaceOffer]) -> String {
    let line = |offer: &WorkspaceOffer| {
        let (name, peer) = (printable(&offer.name), printable(&offer.peer_name));
        format!(
            "{name}  offered by {peer}: `klnode workspace accept {name}`, or `workspace decline`\n"
        )
    };
    offers.iter().map(line).collect()
}

fn members(one: &Workspace) -> String {
    let mut text = String::new();
    for member in one.members.iter().chain(&one.invited) {
        let _ = writeln!(text, "{:<7} {}  {}", member.role, &member.key[..8], member.name);
    }
    for gone in &one.removed {
        let by: Vec<String> = gone.by.iter().map(|by| printable(by)).collect();
        let (name, by) = (printable(&gone.name), by.join(", "));
        let records = counted(gone.records, "record counts", "records count");
        let _ = writeln!(text, "removed {}  {name}, by {by}; {records}", &gone.key[..8]);
    }
    if one.members.is_empty() {
        text.push_str("It has no members.\n");
    }
    text
}

/// The identity of the repository of a checkout, on one line.
fn repository(of: &MappedCheckout) -> String {
    let remote = of.remote.as_deref().map(printable);
    let roots = of.roots.iter().map(|root| format!("root {}", &root[..root.len().min(12)]));
    let folder = of.folder.as_deref().map(|folder| format!("mapped in {}", printable(folder)));
    remote.into_iter().chain(roots).chain(folder).collect::<Vec<_>>().join(", ")
}

fn whole(one: &Workspace) -> String {
    let mut text = format!("name          {}\nid            {}\n", one.name, one.id);
    let _ = writeln!(text, "entries       {}", one.entries);
    if one.current {
        text.push_str("current       new entries go here\n");
    }
    if one.here {
        text.push_str("here          entries written in this checkout go here\n");
    }
    if one.removed_here {
        text.push_str("removed       this node was removed; nothing written here is shared\n");
    }
    if one.damaged {
        text.push_str("damaged       a record of its membership; see `klnode check`\n");
    }
    for (name, checkouts) in [("checkout", &one.checkouts), ("offered", &one.offered)] {
        for checkout in checkouts {
            let _ = writeln!(text, "{name:<13} {}", repository(checkout));
        }
    }
    let weights = one.weights.iter().map(|(name, weight)| format!("{name} {weight}"));
    let weights = weights.collect::<Vec<_>>().join(", ");
    let _ = writeln!(text, "weights       {weights}\n              by {}", one.weights_from);
    text.push_str(&members(one));
    if let Some(settings) = &one.settings {
        let _ = write!(text, "\n{settings}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_api_types::peers::Member;

    fn one(name: &str, current: bool) -> Workspace {
        Workspace {
            id: "00".repeat(16),
            name: name.into(),
            current,
            here: false,
            owner: None,
            members: Vec::new(),
            removed: Vec::new(),
            removed_here: false,
            settings: None,
            weights: <_>::default(),
            weights_from: String::new(),
            entries: 1,
            damaged: false,
            checkouts: Vec::new(),
            offered: Vec::new(),
            invited: Vec::new(),
        }
    }

    #[test]
    fn a_list_marks_the_workspace_of_new_entries() {
        let main = one("main", true);
        let alone = list(std::slice::from_ref(&main));
        assert_eq!(
            alone,
            "main  1 entry  (new entries go here)\n\
             No workspace is shared. `klnode workspace new NAME` creates one.\n"
        );
        let key = "01".repeat(32);
        let (name, role) = ("you".into(), "owner".into());
        let members = vec![Member { key, name, role, compared_at: None }];
        let team = Workspace { here: true, entries: 2, members, ..one("team", false) };
        assert_eq!(
            list(&[main, team]),
            "main  1 entry  (other new entries go here)\n\
             team  2 entries, 1 member  (this checkout's entries go here)\n"
        );
    }
}
