//! `klnode feedback`: an observation, a confirmation, or a reset of the counts of an entry.

use super::api_path::{entry_path, escape};
use super::{Reply, VerbError};
use clap::ArgGroup;
use hyper::Method;
use klnode_api_types::{
    ConfirmationResult, EntryIdentity, NewObservation, ObservationResult, Outcome,
};
use klnode_client::Client;

/// An entry, and the report on it.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("report").required(true).args(
    ["success", "failure", "helpful", "harmful", "confirm", "reset"]
)))]
pub struct Feedback {
    /// The entry: id, code or unambiguous prefix of the code.
    pub entry: String,
    /// You followed it and it worked.
    #[arg(long)]
    pub success: bool,
    /// You followed it and it did not work.
    #[arg(long)]
    pub failure: bool,
    /// It helped; counts as a success.
    #[arg(long)]
    pub helpful: bool,
    /// It did harm; counts as a failure.
    #[arg(long)]
    pub harmful: bool,
    /// It still holds.
    #[arg(long)]
    pub confirm: bool,
    /// Discard the counts of this node, for an entry that many observations left undecided. The
    /// node refuses it for any other entry and prints the numbers.
    #[arg(long)]
    pub reset: bool,
    /// The task you used it in, where it counts once. Outside a task it counts once a day.
    #[arg(long, conflicts_with = "reset")]
    pub task: Option<String>,
    /// With --confirm: you know it from elsewhere, so count it separately in any case.
    #[arg(long, requires = "confirm")]
    pub primed: bool,
    /// With --confirm: confirm as the person behind this node. This asks for the passphrase, and
    /// counts as evidence once a day.
    #[arg(long, requires = "confirm", conflicts_with_all = ["task", "primed"])]
    pub as_person: bool,
}

impl Feedback {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        if self.confirm {
            return self.confirm(client).await;
        }
        if self.reset {
            return self.reset(client).await;
        }
        let is_success = self.success || self.helpful;
        let outcome = if is_success { Outcome::Success } else { Outcome::Failure };
        let path = entry_path(&self.entry, "/observations")?;
        let observe = NewObservation { outcome, task: self.task };
        let observed: ObservationResult = client.send_json(Method::POST, &path, &observe).await?;
        let counted = if is_success { "success" } else { "failure" };
        let text = match &observed.reason {
            Some(reason) => format!("{}  {reason}\n", observed.code),
            None => format!("{}  counted as a {counted}\n", observed.code),
        };
        Ok(Reply::new(&observed, text))
    }

    async fn confirm(self, client: &Client) -> Result<Reply, VerbError> {
        let task = self.task.map(|task| format!("&task={}", escape(&task))).unwrap_or_default();
        let rest = match self.as_person {
            true => "/confirm/person".to_owned(),
            false => format!("/confirm?primed={}{task}", self.primed),
        };
        let path = entry_path(&self.entry, &rest)?;
        let confirmed: ConfirmationResult = client.send_json(Method::POST, &path, &()).await?;
        let ConfirmationResult { code, class, reason, .. } = &confirmed;
        let text = format!("{code}  recorded as {class}: {reason}\n");
        Ok(Reply::new(&confirmed, text))
    }

    async fn reset(self, client: &Client) -> Result<Reply, VerbError> {
        let path = entry_path(&self.entry, "/reset")?;
        let named: EntryIdentity = client.send_json(Method::POST, &path, &()).await?;
        let text = format!("{}  the counts of this node were reset\n", named.code);
        Ok(Reply::new(&named, text))
    }
}
