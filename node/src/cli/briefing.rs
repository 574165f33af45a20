//! `klnode briefing`: what of a workspace matters now.

use super::read::escape;
use super::{Reply, VerbError, anchors};
use crate::api::Client;
use crate::api::types::Briefing;

/// Of what, and how much.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The workspace [default: that of the checkout, else the one set by `workspace use`].
    pub workspace: Option<String>,
    /// Tokens that it may take [default: 600].
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
    /// Your thread: its entries come first.
    #[arg(long)]
    pub thread: Option<String>,
}

impl Args {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let given = [
            ("workspace", self.workspace),
            ("budget_tokens", self.budget.map(|tokens| tokens.to_string())),
            ("thread", self.thread),
            ("checkout", anchors::here()),
        ];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={}", escape(&value))));
        let query: Vec<String> = given.collect();
        let told: Briefing = client.get(&format!("/v1/briefing?{}", query.join("&"))).await?;
        let text = match told.sections.is_empty() && told.left_out == 0 {
            true => format!(
                "Nothing stands out in `{}`: nothing is verified, contested, stale or new there, \
                 and no task is open. `klnode search` asks for something in particular.\n",
                told.workspace
            ),
            false => told.text.clone(),
        };
        Ok(Reply::new(&told, text))
    }
}
