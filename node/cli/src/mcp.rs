//! `klnode mcp`: an MCP server for coding agents, which is a client of the node.

use super::{VerbError, anchors};
use klnode_integrations::mcp::http::{BearerToken, HttpError, McpListener, PATH};
use klnode_integrations::mcp::node_client::NodeClient;
use klnode_integrations::mcp::{Settings, stdio};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// The transport of the server.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start a node if none runs, as `mcp.start_node` does. The node outlives the server.
    #[arg(long)]
    pub start: bool,
    /// Serve HTTP on a loopback address instead of standard input. Clients need the token in the
    /// home.
    ///
    /// Example: klnode mcp --http 127.0.0.1:7701
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
}

/// The environment of the server.
pub struct McpContext {
    /// The client of the node.
    pub node: NodeClient,
    /// Fills a buffer with random bytes.
    pub entropy: fn(&mut [u8]),
}

impl McpContext {
    fn settings(self) -> Settings {
        Settings { node: Arc::new(self.node), checkout: anchors::here(), entropy: self.entropy }
    }
}

/// Serves standard input and output until the client closes them.
pub async fn on_stdio(context: McpContext) -> Result<(), VerbError> {
    let served = stdio(&context.settings()).await;
    served.map_err(|error| VerbError::Failed(error.to_string()))
}

/// Prints the address and the path of the token file, then serves HTTP until the process ends.
pub async fn on_http(
    context: McpContext,
    address: SocketAddr,
    (token, token_file): (BearerToken, &Path),
    say: impl FnOnce(&str),
) -> Result<(), VerbError> {
    let bound = McpListener::bind(address).await.map_err(|error| match error {
        HttpError::NotLoopback(_) => VerbError::Input(error.to_string()),
        HttpError::Port { .. } => VerbError::Failed(error.to_string()),
    })?;
    say(&format!(
        "MCP is served on http://{}{PATH}\n  token  {}\nClients send it as `Authorization: \
         Bearer`. Stop with Ctrl-C.\n",
        bound.address(),
        token_file.display(),
    ));
    bound.serve(&context.settings(), token).await;
    Ok(())
}
