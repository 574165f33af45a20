//! `klnode workspace`: shared workspaces and who belongs to them.

use super::read::escape;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::peers::{ChangeWorkspace, NewWorkspace, Workspace, Workspaces};
use hyper::Method;
use std::fmt::Write;
use std::path::PathBuf;

/// What to do about workspaces.
#[derive(Debug, clap::Subcommand)]
pub enum WorkspaceVerb {
    /// Make one that this node owns.
    New(OneWorkspace),
    /// List them.
    List,
    /// Have new entries go to one.
    Use(OneWorkspace),
    /// Show one.
    Show(OneWorkspace),
    /// Show who belongs to one; its owner and admins may take somebody out.
    Members(Members),
    /// Set the settings of one from a TOML file; its owner and admins may.
    Settings(Settings),
}

/// One workspace.
#[derive(Debug, clap::Args)]
pub struct OneWorkspace {
    /// Its name.
    pub name: String,
}

/// Who belongs to a workspace.
#[derive(Debug, clap::Args)]
pub struct Members {
    /// The workspace's name.
    pub name: String,
    /// Take this member out, by name or key.
    #[arg(long, value_name = "MEMBER")]
    pub remove: Option<String>,
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
            Self::Members(members) => members.remove.is_some(),
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
                let all: Workspaces = client.get("/v1/workspaces").await?;
                let line = |one: &Workspace| {
                    let current = if one.current { "  (new entries go here)" } else { "" };
                    let members = match one.members.len() {
                        0 => String::new(),
                        count => format!(", {count} members"),
                    };
                    let damaged = if one.damaged { "  (damaged: see `klnode doctor`)" } else { "" };
                    format!("{}  {} entries{members}{current}{damaged}\n", one.name, one.entries)
                };
                let text: String = all.workspaces.iter().map(line).collect();
                Ok(Reply::new(&all, text))
            }
            Self::Use(OneWorkspace { name }) => {
                let path = format!("{}/use", path(&name));
                let one: Workspace = client.send_json(Method::POST, &path, &()).await?;
                let text = format!("{}  new entries go here\n", one.name);
                Ok(Reply::new(&one, text))
            }
            Self::Show(OneWorkspace { name }) => {
                let one: Workspace = client.get(&path(&name)).await?;
                let text = whole(&one);
                Ok(Reply::new(&one, text))
            }
            Self::Members(Members { name, remove }) => {
                let one = match remove {
                    None => client.get(&path(&name)).await?,
                    remove => {
                        let change = ChangeWorkspace { remove, ..ChangeWorkspace::default() };
                        change_one(client, &name, &change).await?
                    }
                };
                let text = members(&one);
                Ok(Reply::new(&one, text))
            }
            Self::Settings(Settings { name, file }) => {
                let settings = std::fs::read_to_string(&file).map_err(|error| {
                    VerbError::Input(format!("read {}: {error}", file.display()))
                })?;
                let settings = Some(settings);
                let change = ChangeWorkspace { settings, ..ChangeWorkspace::default() };
                let one = change_one(client, &name, &change).await?;
                let text = format!("{}  settings set\n", one.name);
                Ok(Reply::new(&one, text))
            }
        }
    }
}

async fn change_one(
    client: &Client,
    name: &str,
    change: &ChangeWorkspace,
) -> Result<Workspace, VerbError> {
    Ok(client.send_json(Method::PATCH, &path(name), change).await?)
}

fn path(name: &str) -> String {
    format!("/v1/workspaces/{}", escape(name))
}

fn members(one: &Workspace) -> String {
    let mut text = String::new();
    for member in &one.members {
        let _ = writeln!(text, "{:<7} {}  {}", member.role, &member.key[..8], member.name);
    }
    if one.members.is_empty() {
        text.push_str("Nobody is known to belong to it.\n");
    }
    text
}

fn whole(one: &Workspace) -> String {
    let mut text = format!("name          {}\nid            {}\n", one.name, one.id);
    let _ = writeln!(text, "entries       {}", one.entries);
    if one.current {
        text.push_str("current       new entries go here\n");
    }
    if one.damaged {
        text.push_str("damaged       a record of who belongs to it; see `klnode doctor`\n");
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
