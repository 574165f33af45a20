//! `klnode invite` and `join`: two nodes pair.

use super::harmless::printable;
use super::read::part;
use super::waiting::waiting;
use super::when::moment;
use super::{Ask, Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::types::peers::{Invite, Invited, Join, Joined, Workspace, Workspaces};
use crate::query::count::entries;
use hyper::Method;

/// Whom to invite.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("whom").required(true).args(["mine", "workspace"])))]
pub struct InviteArgs {
    /// Another machine of yours: it gets everything but the workspace `local`.
    #[arg(long)]
    pub mine: bool,
    /// A member of this workspace, which is made if there is none of that name.
    pub workspace: Option<String>,
    /// Do not ask whether existing entries may become visible.
    #[arg(long)]
    pub yes: bool,
    /// Let nobody in before you have compared the code and said `klnode peer approve`.
    #[arg(long)]
    pub confirm: bool,
}

impl InviteArgs {
    pub(super) async fn run(self, client: &Client, ask: Ask<'_>) -> Result<Reply, VerbError> {
        // Whoever means a personal one is not asked first: the node refuses it.
        let shared = self.workspace.as_deref().filter(|name| !["main", "local"].contains(name));
        if let (Some(name), false) = (shared, self.yes) {
            let all: Workspaces = client.get("/v1/workspaces").await?;
            let held = all.workspaces.iter().find(|one| one.name == name && !is_others(one));
            if let Some(held) = held.map(|one| one.entries).filter(|held| *held > 0) {
                let seen =
                    format!("{} that it has would become visible to whoever joins", entries(held));
                let Some(ask) = ask else {
                    let told = format!("invite into `{name}` without a yes: {seen}");
                    return Err(VerbError::Unsaid(told));
                };
                if !ask(&format!("{seen}. Invite into `{name}`?")) {
                    return Err(VerbError::Declined("Nobody was invited."));
                }
            }
        }
        let invite = Invite { mine: self.mine, workspace: self.workspace, confirm: self.confirm };
        let invited: Invited = client.send_json(Method::POST, "/v1/invitations", &invite).await?;
        let whom = match &invited.workspace {
            None => "another machine of yours".to_owned(),
            Some(name) => format!("a member of `{name}`"),
        };
        let mut notes = format!(
            "A ticket for {whom}, good once, until {} UTC. There: klnode join TICKET\n",
            moment(invited.expires),
        );
        if invited.is_unprotected {
            notes.push_str(
                "note: any program that runs as you may do this; `klnode person new` makes a key \
                 that only you can use\n",
            );
        }
        // The ticket alone on standard output, so that it can be kept or piped.
        let text = format!("{}\n", invited.ticket);
        Ok(Reply::new(&invited, text).noting(notes))
    }
}

/// Whether this node is a plain member of a workspace. Whoever is may not invite, and the node says so
/// without a question before it.
fn is_others(workspace: &Workspace) -> bool {
    workspace.members.iter().any(|one| one.name == "you" && one.role == "member")
}

/// Whom to join.
#[derive(Debug, clap::Args)]
pub struct JoinArgs {
    /// A ticket from `klnode invite`, or a multiaddr that ends in /p2p/….
    pub target: String,
    /// Do not ask, as with `invite`; so far nothing is asked here.
    #[arg(long)]
    pub yes: bool,
}

impl JoinArgs {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let what = asking(&self.target);
        let join = Join { target: self.target };
        let asked = client.send_json(Method::POST, "/v1/join", &join);
        let joined: Joined = waiting(&what, progress, asked).await?;
        Ok(Reply::new(&joined, told(&joined)))
    }
}

/// What joining came to.
fn told(joined: &Joined) -> String {
    let (name, key) = (printable(&joined.name), &joined.peer[..8]);
    let mut text = match (&joined.workspace, joined.mine, joined.waiting) {
        // A ticket leaves a code. Whoever was asked without one, and decides nothing, did so before.
        (None, mine, false) if joined.code.is_none() => {
            let what = if mine { ": another machine of yours" } else { "" };
            return format!("Paired with {name} already{what}; see `klnode peer show {key}`.\n");
        }
        (Some(workspace), ..) => format!("Joined {name}, as a member of `{workspace}`.\n"),
        (None, true, _) => format!("Joined {name}: another machine of yours.\n"),
        (None, false, _) => format!("Asked {name}, whose operator decides.\n"),
    };
    if let Some(code) = &joined.code {
        text.push_str(&format!(
            "Code {code}: `klnode peer list` there shows the same, or something is wrong.\n"
        ));
    }
    if joined.waiting {
        text.push_str(&format!(
            "Nothing is shared until they say `klnode peer approve`; see `klnode peer show \
             {key}`.\n"
        ));
    }
    text
}

/// Who is asked to pair: an address names its host in its second part, a ticket shows nothing.
fn asking(target: &str) -> String {
    let host = target.trim().strip_prefix('/').and_then(|address| address.split('/').nth(1));
    format!("asking {}", host.map_or_else(|| "the node that invited".to_owned(), printable))
}

/// The path of a peer.
pub(super) fn path(peer: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(peer, "a peer", "its name, or the beginning of its key is wanted")?;
    Ok(format!("/v1/peers/{name}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_is_named_by_its_host_where_there_is_one() {
        assert_eq!(asking(" /dns4/vm.example/tcp/4001/p2p/12D3"), "asking vm.example");
        assert_eq!(asking("/ip6/::1/tcp/4001/p2p/12D3"), "asking ::1");
        for target in ["klnode1abc", "/", "nowhere"] {
            assert_eq!(asking(target), "asking the node that invited");
        }
    }

    #[test]
    fn whoever_is_paired_already_is_not_said_to_be_asked() {
        let joined = |mine, code: Option<&str>, waiting| {
            let (peer, name, code) = ("ab".repeat(32), "vm".to_owned(), code.map(str::to_owned));
            told(&Joined { peer, name, mine, workspace: None, code, waiting })
        };
        let see = "see `klnode peer show abababab`.\n";
        assert_eq!(joined(false, None, false), format!("Paired with vm already; {see}"));
        let mine = format!("Paired with vm already: another machine of yours; {see}");
        assert_eq!(joined(true, None, false), mine);
        assert!(joined(false, None, true).starts_with("Asked vm, whose operator decides.\n"));
        let ticket = joined(true, Some("123 456"), false);
        assert!(ticket.starts_with("Joined vm: another machine of yours.\nCode 123"), "{ticket}");
    }
}
