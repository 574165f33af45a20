//! `klnode completions` and `klnode man`: help that lives in the shell.

use super::{Cli, Reply, VerbError};
use clap::CommandFactory;
use clap_complete::Shell;

/// Which shell.
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// bash, zsh, fish, elvish or powershell.
    pub shell: Shell,
}

impl Completions {
    /// The script to load.
    pub fn script(&self) -> Reply {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "klnode", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        Reply::new(&script, script.clone())
    }
}

/// The man page: the program, then each verb.
pub fn man() -> Result<Reply, VerbError> {
    let failed = |error: std::io::Error| VerbError::Input(format!("write the man page: {error}"));
    let mut page = Vec::new();
    let command = Cli::command();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(failed)?;
    for verb in command.get_subcommands() {
        let name: &'static str = format!("klnode-{}", verb.get_name()).leak();
        let verb = verb.clone().name(name);
        clap_mangen::Man::new(verb).render(&mut page).map_err(failed)?;
    }
    let page = String::from_utf8_lossy(&page).into_owned();
    Ok(Reply::new(&page, page.clone()))
}
