//! The local API of a running node, through the Rust client.
//!
//! `cargo run -p klnode-examples --bin client -- ~/.local/share/klnode/klnode.sock`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use klnode_client::Client;
use klnode_examples::{client, run};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let socket = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: client SOCKET")?;
    // The node logs served and written entries under this client name and session.
    let node = Client::new(&socket).named("rust-example", Some("example-1"));
    for line in run(client::work(&node))? {
        println!("{line}");
    }
    Ok(())
}
