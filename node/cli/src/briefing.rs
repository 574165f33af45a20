//! `klnode briefing`: a summary of a workspace.

use super::api_path::escape;
use super::{Reply, VerbError, anchors};
use klnode_api_types::Briefing;
use klnode_client::Client;

/// The workspace and the length of the summary.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The workspace [default: the one mapped to the checkout, else the one set by `workspace
    /// use`].
    pub workspace: Option<String>,
    /// The most tokens [default: 600].
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
    /// Your thread, whose entries come first.
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
        let briefing: Briefing = client.get(&format!("/v1/briefing?{}", query.join("&"))).await?;
        let text = match briefing.sections.is_empty() && briefing.left_out == 0 {
            true => format!(
                "Workspace `{}` has no verified, contradicted, stale or new entries, and no open \
                 task. Run `klnode search` to ask about a topic.\n",
                briefing.workspace
            ),
            false => briefing.text.clone(),
        };
        Ok(Reply::new(&briefing, text))
    }
}
