//! `klnode mcp`: a server for coding agents, beside the node.

use super::{VerbError, anchors};
use crate::api::Token;
use crate::surface::mcp::http::{Bound, HttpError, PATH};
use crate::surface::mcp::node::Node;
use crate::surface::mcp::{Settings, stdio};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// How to speak.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start a node where none runs, as `mcp.start_node` does; it goes on when this ends.
    #[arg(long)]
    pub start: bool,
    /// Speak over HTTP on a loopback address, not on standard input: clients need the token in the
    /// node's home.
    ///
    /// Example: klnode mcp --http 127.0.0.1:7701
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
}

/// What the server needs of its surroundings.
pub struct Surroundings {
    /// The way to the node.
    pub node: Node,
    /// Fills with random bytes.
    pub entropy: fn(&mut [u8]),
}

impl Surroundings {
    fn settings(self) -> Settings {
        Settings { node: Arc::new(self.node), checkout: anchors::here(), entropy: self.entropy }
    }
}

/// Speaks on standard input and output until the client closes them.
pub async fn on_stdio(around: Surroundings) -> Result<(), VerbError> {
    let spoken = stdio(&around.settings()).await;
    spoken.map_err(|error| VerbError::Failed(error.to_string()))
}

/// Speaks over HTTP for ever; says first where, and where the token is.
pub async fn on_http(
    around: Surroundings,
    address: SocketAddr,
    (token, token_file): (Token, &Path),
    say: impl FnOnce(&str),
) -> Result<(), VerbError> {
    let bound = Bound::bind(address).await.map_err(|error| match error {
        HttpError::NotLoopback(_) => VerbError::Input(error.to_string()),
        HttpError::Port { .. } => VerbError::Failed(error.to_string()),
    })?;
    say(&format!(
        "MCP is served on http://{}{PATH}\n  token  {}\nSend it as `Authorization: Bearer`; stop \
         with Ctrl-C.\n",
        bound.address(),
        token_file.display(),
    ));
    bound.serve(&around.settings(), token).await;
    Ok(())
}
