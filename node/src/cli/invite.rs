//! `klnode invite`: a ticket with which another node may join.

use super::read::part;
use super::when::moment;
use super::{Ask, Reply, VerbError};
use crate::api::Client;
use crate::api::types::peers::{Invite, Invited, Workspace, Workspaces};
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

/// The path of a peer.
pub(super) fn path(peer: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(peer, "a peer", "its name, or the beginning of its key is wanted")?;
    Ok(format!("/v1/peers/{name}{rest}"))
}
