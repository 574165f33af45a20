//! What `klnode connect` needs of the machine: where the user's settings lie, and who answers.

use super::home::Home;
use super::{Failure, offline, runtime, start_command};
use crate::api::Client;
use crate::cli::connect::{Args, Surroundings};
use crate::cli::{Global, Reply, VerbError};
use crate::query::GitCheckout;
use crate::surface::connect::Program;
use crate::surface::connect::clients::{Folders, Scope, System};
use klnode_config::Config;
use std::path::{Path, PathBuf};

pub(super) fn connect(
    args: Args,
    home: &Home,
    config: &Config,
    global: &Global,
) -> Result<Reply, Failure> {
    let scope = if args.project { project()? } else { user()? };
    let client = Client::new(&home.socket(config));
    let mut answers = || {
        let asked = runtime()
            .map(|runtime| runtime.block_on(client.get::<serde_json::Value>("/v1/status")).is_ok());
        asked.unwrap_or(false)
    };
    let mut ask = offline::ask;
    let around = Surroundings {
        program: program(home, global)?,
        start: start_command::of(global),
        scope,
        ask: if offline::is_attended(global) { Some(&mut ask) } else { None },
        answers: &mut answers,
    };
    Ok(args.run(around)?)
}

fn user() -> Result<Scope, Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = |name: &str| variable(name).map(PathBuf::from);
    let home = folder("HOME").or_else(|| folder("USERPROFILE")).ok_or_else(|| {
        VerbError::Input("find the clients' settings: HOME is not set".to_owned())
    })?;
    let (config, data) = (folder("XDG_CONFIG_HOME"), folder("APPDATA"));
    Ok(Scope::User(Folders::new(System::here(), home, config, data)))
}

/// The root of the checkout, or the folder itself.
fn project() -> Result<Scope, Failure> {
    let here = std::env::current_dir()
        .map_err(|source| Failure::System { what: "find the current folder", source })?;
    Ok(Scope::Project(GitCheckout::root_of(&here).unwrap_or(here)))
}

/// This program, as others are to call it: with its home where that is not the usual one.
pub(super) fn program(home: &Home, global: &Global) -> Result<Program, Failure> {
    let system = |source| Failure::System { what: "find where this program is", source };
    let absolute = |path: &Path| std::path::absolute(path).map_err(system);
    let path = std::env::current_exe().map_err(system)?;
    Ok(Program {
        path,
        home: home.unusual().map_err(system)?,
        config: global.config.as_deref().map(absolute).transpose()?,
    })
}
