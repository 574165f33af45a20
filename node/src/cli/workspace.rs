//! `klnode workspace`: shared workspaces and who belongs to them.

use super::harmless::printable;
use super::read::{escape, part};
use super::{Reply, VerbError, anchors, bounded};
use crate::api::Client;
use crate::api::types::joins::{DecideOffer, DecidedOffer, WorkspaceOffer};
use crate::api::types::peers::{ChangeWorkspace, NewWorkspace, Workspace, Workspaces};
use crate::api::types::{MapCheckout, MappedCheckout};
use crate::query::count::{counted, entries};
use hyper::Method;
use std::fmt::Write;
use std::path::PathBuf;

/// Settings are a few lines; more is a mistake.
const SETTINGS_BYTES_MAX: usize = 64 * 1024;

/// What to do about workspaces.
#[derive(Debug, clap::Subcommand)]
pub enum WorkspaceVerb {
    /// Make one that this node owns.
    ///
    /// Example: klnode workspace new team
    New(OneWorkspace),
    /// List them, and say where new entries go.
    ///
    /// Example: klnode workspace list
    List,
    /// Have new entries go to one, unless they are written in a checkout that is mapped to another.
    ///
    /// Example: klnode workspace use team
    Use(OneWorkspace),
    /// Show one: its members, its settings and the checkouts that are mapped to it.
    ///
    /// Example: klnode workspace show team
    Show(OneWorkspace),
    /// Have what is written in a checkout go to one.
    ///
    /// All worktrees and clones of the same repository are mapped with it, wherever they lie; a fork
    /// is another repository, and is mapped by typing this there.
    ///
    /// Example: klnode workspace map team
    Map(Map),
    /// Map a checkout no longer.
    ///
    /// Example: klnode workspace unmap team --checkout ~/src/shop
    Unmap(Unmap),
    /// Show who belongs to one; its owner and admins may add a paired peer or take a member out.
    ///
    /// A peer that is added gets an offer, and is a member once its operator accepts it.
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
    /// Set the settings of one from a TOML file; its owner and admins may.
    ///
    /// The file may have a table `[weights]` with any of semantic, thompson, freshness, status,
    /// thread and cooccurrence, each from 0 to 0.5. What is left out stays as configured; all six
    /// together are 1. The owner's own other machines are its admins.
    ///
    /// Example: klnode workspace settings team weights.toml
    Settings(Settings),
}

/// One workspace.
#[derive(Debug, clap::Args)]
pub struct OneWorkspace {
    /// Its name.
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
    /// Also tell all members which repository it is: its root commits and its remote. Their nodes
    /// offer it to them. Owner and admins may.
    #[arg(long)]
    pub offer: bool,
}

/// A checkout and the workspace it is to be mapped to no longer.
#[derive(Debug, clap::Args)]
pub struct Unmap {
    /// The workspace's name.
    pub name: String,
    /// A folder in the checkout [default: the current folder].
    #[arg(long, value_name = "PATH")]
    pub checkout: Option<PathBuf>,
    /// Also take back what told all members which repository it is. Owner and admins may.
    #[arg(long)]
    pub offer: bool,
}

/// Who belongs to a workspace.
#[derive(Debug, clap::Args)]
pub struct Members {
    /// The workspace's name.
    pub name: String,
    /// Offer this paired peer membership, by name or key.
    #[arg(long, value_name = "PEER", conflicts_with = "remove")]
    pub add: Option<String>,
    /// Take this member out, or take back what was offered to it, by name or key.
    #[arg(long, value_name = "MEMBER")]
    pub remove: Option<String>,
}

/// Membership that a peer offers.
#[derive(Debug, clap::Args)]
pub struct OneOffer {
    /// The workspace, as the offer calls it.
    pub name: String,
    /// The peer that offers it; needed where several offer one of this name.
    #[arg(long, value_name = "PEER")]
    pub from: Option<String>,
}

impl OneOffer {
    async fn run(self, client: &Client, accept: bool) -> Result<Reply, VerbError> {
        let decide = DecideOffer { workspace: self.name, from: self.from, accept };
        let path = "/v1/offers/decision";
        let decided: DecidedOffer = client.send_json(Method::POST, path, &decide).await?;
        let (name, peer) = (printable(&decided.workspace), printable(&decided.peer_name));
        let text = match decided.accepted {
            true => format!("{name}  this node is a member now, as {peer} offered\n"),
            false => format!("{name}  the offer of {peer} is declined\n"),
        };
        Ok(Reply::new(&decided, text))
    }
}

/// The settings of a workspace.
#[derive(Debug, clap::Args)]
pub struct Settings {
    /// The workspace's name.
    pub name: String,
    /// The file.
    pub file: PathBuf,
}

impl WorkspaceVerb {
    pub(super) fn needs_person(&self) -> bool {
        match self {
            Self::List | Self::Use(_) | Self::Show(_) => false,
            Self::Members(members) => members.add.is_some() || members.remove.is_some(),
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
                let text = format!("{name}  made; `klnode invite {name}` lets somebody in\n");
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
            Self::Members(Members { name, add, remove }) => {
                let one = match (add, remove) {
                    (None, None) => client.get(&path(&name)?).await?,
                    (add, remove) => {
                        let change = ChangeWorkspace { add, remove, ..ChangeWorkspace::default() };
                        change_one(client, &name, &change).await?
                    }
                };
                let text = members(&one);
                Ok(Reply::new(&one, text))
            }
            Self::Settings(Settings { name, file }) => {
                let settings = bounded::file(&file, SETTINGS_BYTES_MAX).map_err(|error| {
                    VerbError::Input(format!("read {}: {error}", file.display()))
                })?;
                // Nothing would be no word; a comment is one, and sets nothing.
                let is_empty = settings.trim().is_empty();
                let settings = Some(if is_empty { "# none\n".to_owned() } else { settings });
                let change = ChangeWorkspace { settings, ..ChangeWorkspace::default() };
                let one = change_one(client, &name, &change).await?;
                let text = format!("{}  settings set\n", one.name);
                Ok(Reply::new(&one, text))
            }
        }
    }
}

/// Whether a checkout is to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mapping {
    Made,
    Ended,
}

impl Map {
    async fn run(self, client: &Client, mapping: Mapping) -> Result<Reply, VerbError> {
        let folder = self.checkout.unwrap_or_else(|| PathBuf::from("."));
        let checkout = std::fs::canonicalize(&folder)
            .map_err(|error| VerbError::Input(format!("look at {}: {error}", folder.display())))?;
        let checkout = checkout.into_os_string().into_string().map_err(|path| {
            VerbError::Input(format!("look at {}: its name is not UTF-8", path.display()))
        })?;
        let remove = mapping == Mapping::Ended;
        if self.offer {
            let path = Some(checkout.clone());
            let change = match mapping {
                Mapping::Made => ChangeWorkspace { offer_checkout: path, ..<_>::default() },
                Mapping::Ended => ChangeWorkspace { withdraw_checkout: path, ..<_>::default() },
            };
            change_one(client, &self.name, &change).await?;
        }
        let ask = MapCheckout { checkout, remove };
        let path = format!("{}/checkouts", path(&self.name)?);
        let one: Workspace = client.send_json(Method::POST, &path, &ask).await?;
        let text = match mapping {
            Mapping::Made => format!("{}  what is written in this checkout goes here\n", one.name),
            Mapping::Ended => format!("{}  this checkout is mapped here no longer\n", one.name),
        };
        Ok(Reply::new(&one, text))
    }
}

async fn change_one(
    client: &Client,
    name: &str,
    change: &ChangeWorkspace,
) -> Result<Workspace, VerbError> {
    Ok(client.send_json(Method::PATCH, &path(name)?, change).await?)
}

fn path(name: &str) -> Result<String, VerbError> {
    let wanted = "its name is wanted; `klnode workspace list` shows those that are known";
    Ok(format!("/v1/workspaces/{}", part(name, "a workspace", wanted)?))
}

/// Where the verb is typed, for the node to say what that is mapped to.
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
        text.push_str(if one.damaged { "  (damaged: see `klnode doctor`)\n" } else { "\n" });
        text
    };
    let mut text: String = all.iter().map(line).collect();
    if all.iter().all(|one| one.members.is_empty()) {
        text.push_str("None is shared. `klnode workspace new NAME` makes one that can be.\n");
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
    if one.members.is_empty() {
        text.push_str("Nobody is known to belong to it.\n");
    }
    text
}

/// Which repository a checkout is of, in a line.
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
        text.push_str("here          what is written in this checkout goes here\n");
    }
    if one.damaged {
        text.push_str("damaged       a record of who belongs to it; see `klnode doctor`\n");
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
    use crate::api::types::peers::Member;

    fn one(name: &str, current: bool) -> Workspace {
        Workspace {
            id: "00".repeat(16),
            name: name.into(),
            current,
            here: false,
            owner: None,
            members: Vec::new(),
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
    fn a_list_says_where_entries_go_from_here_and_from_elsewhere() {
        let main = one("main", true);
        let alone = list(std::slice::from_ref(&main));
        assert_eq!(
            alone,
            "main  1 entry  (new entries go here)\n\
             None is shared. `klnode workspace new NAME` makes one that can be.\n"
        );
        let key = "01".repeat(32);
        let members = vec![Member { key, name: "you".into(), role: "owner".into() }];
        let team = Workspace { here: true, entries: 2, members, ..one("team", false) };
        assert_eq!(
            list(&[main, team]),
            "main  1 entry  (other new entries go here)\n\
             team  2 entries, 1 member  (this checkout's entries go here)\n"
        );
    }
}
