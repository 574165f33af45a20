//! `klnode peer invite`: creates a ticket with which another node can join.

use super::timestamp::moment;
use super::{ConfirmPrompt, Reply, VerbError};
use hyper::Method;
use klnode_api_types::peers::{InviteRequest, IssuedTicket, Workspace, Workspaces};
use klnode_client::Client;
use klnode_text::plural::entries;

/// The node to invite.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("whom").required(true).args(["mine", "workspace"])))]
pub struct InviteArgs {
    /// Another machine of yours: it gets every workspace except `local`.
    #[arg(long)]
    pub mine: bool,
    /// A member of this workspace, which is created if it does not exist.
    pub workspace: Option<String>,
    /// Do not ask whether the new member may see existing entries.
    #[arg(long)]
    pub yes: bool,
    /// Admit the node only after you have compared the code and run `klnode peer approve`.
    #[arg(long)]
    pub confirm: bool,
}

impl InviteArgs {
    pub(super) async fn run(
        self,
        client: &Client,
        ask: ConfirmPrompt<'_>,
    ) -> Result<Reply, VerbError> {
        // The node refuses an invitation to a personal workspace, so there is no need to ask.
        let shared = self.workspace.as_deref().filter(|name| !["main", "local"].contains(name));
        if let (Some(name), false) = (shared, self.yes) {
            let all: Workspaces = client.get("/v1/workspaces").await?;
            let held = all.workspaces.iter().find(|one| one.name == name && !is_others(one));
            if let Some(held) = held.map(|one| one.entries).filter(|held| *held > 0) {
                let seen =
                    format!("The new member would see the existing {} of `{name}`.", entries(held));
                let Some(ask) = ask else { return Err(VerbError::NeedsConfirmation(seen)) };
                if !ask(&format!("{seen} Invite?")) {
                    return Err(VerbError::Declined("No ticket was created."));
                }
            }
        }
        let invite =
            InviteRequest { mine: self.mine, workspace: self.workspace, confirm: self.confirm };
        let invited: IssuedTicket =
            client.send_json(Method::POST, "/v1/invitations", &invite).await?;
        let whom = match &invited.workspace {
            None => "another machine of yours".to_owned(),
            Some(name) => format!("a member of `{name}`"),
        };
        let mut notes = format!(
            "A ticket for {whom}. It works once, until {} UTC. Run there: klnode peer join \
             TICKET\n",
            moment(invited.expires),
        );
        if invited.is_unprotected {
            notes.push_str(
                "Any program that runs as you can create tickets. Run `klnode identity new` to \
                 create a key that only you can use.\n",
            );
        }
        // Standard output has only the ticket, so that it can be piped.
        let text = format!("{}\n", invited.ticket);
        Ok(Reply::new(&invited, text).with_notes(notes))
    }
}

/// Whether this node is a plain member of a workspace. A plain member may not invite, and the node
/// refuses without a question.
fn is_others(workspace: &Workspace) -> bool {
    workspace.members.iter().any(|one| one.name == "you" && one.role == "member")
}
