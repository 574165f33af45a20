//! `klnode connect` on this machine: the folders of the user's settings, and the prompt.

use super::home::Home;
use super::terminal_prompt::{self, is_attended};
use super::{ProgramError, runtime, start_hint};
use klnode_cli::connect::{Args, ConnectContext};
use klnode_cli::{Global, Reply, VerbError};
use klnode_client::Client;
use klnode_config::Config;
use klnode_git::GitCheckout;
use klnode_integrations::client_config::Program;
use klnode_integrations::client_config::clients::{ConfigScope, Folders, System};
use std::path::{Path, PathBuf};

pub(super) fn connect(
    args: Args,
    home: &Home,
    config: &Config,
    global: &Global,
) -> Result<Reply, ProgramError> {
    let scope = if args.project { project()? } else { user()? };
    let client = Client::new(&home.socket(config));
    let mut answers = || {
        let status = runtime()
            .map(|runtime| runtime.block_on(client.get::<serde_json::Value>("/v1/status")).is_ok());
        status.unwrap_or(false)
    };
    let mut ask = terminal_prompt::ask;
    let context = ConnectContext {
        program: program(home, global)?,
        start: start_hint::of(global),
        scope,
        ask: if is_attended(global) { Some(&mut ask) } else { None },
        answers: &mut answers,
    };
    Ok(args.run(context)?)
}

fn user() -> Result<ConfigScope, ProgramError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = |name: &str| variable(name).map(PathBuf::from);
    let home = folder("HOME").or_else(|| folder("USERPROFILE")).ok_or_else(|| {
        VerbError::Input("Cannot find the settings of clients: HOME is not set.".to_owned())
    })?;
    let (config, data) = (folder("XDG_CONFIG_HOME"), folder("APPDATA"));
    Ok(ConfigScope::User(Folders::new(System::here(), home, config, data)))
}

/// The root of the checkout, or the current folder outside a checkout.
fn project() -> Result<ConfigScope, ProgramError> {
    let here = std::env::current_dir()
        .map_err(|source| ProgramError::System { what: "find the current folder", source })?;
    Ok(ConfigScope::Project(GitCheckout::root_of(&here).unwrap_or(here)))
}

/// The command line with which other programs start this one: with its home if that is not the
/// default.
pub(super) fn program(home: &Home, global: &Global) -> Result<Program, ProgramError> {
    let system = |source| ProgramError::System { what: "find the path of this program", source };
    let absolute = |path: &Path| std::path::absolute(path).map_err(system);
    let path = std::env::current_exe().map_err(system)?;
    Ok(Program {
        path,
        home: home.explicit_path().map_err(system)?,
        config: global.config.as_deref().map(absolute).transpose()?,
    })
}
