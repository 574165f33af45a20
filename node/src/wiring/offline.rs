//! Verbs that need no running node: they look at files, or put them in place.

use super::home::{Home, HomeError, entropy};
use super::node::{now, open_store};
use super::progress::Bar;
use super::serve::guarded;
use super::{Failure, runtime};
use crate::api::Client;
use crate::cli::identity::IdentityVerb;
use crate::cli::restore::Surroundings;
use crate::cli::{self, Ask, Global, Reply, VerbError};
use crate::store::backup::{BackupError, RestoreError};
use klnode_config::{Config, Layered};
use klnode_crdt::ids::Boot;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

pub(super) fn verify(file: &Path) -> Result<Reply, Failure> {
    Ok(quietly(|bar| cli::backup::verify(file, now(), bar))?)
}

pub(super) fn restore(
    args: cli::restore::Args,
    home: &Home,
    global: &Global,
) -> Result<Reply, Failure> {
    home.prepare()?;
    let mut bits = [0; 8];
    entropy(&mut bits);
    let mut ask = ask;
    let around = Surroundings {
        layout: home.layout(),
        boot: Boot(u64::from_be_bytes(bits)),
        now: now(),
        claim: &mut || claim(home, "restore into"),
        ask: if is_attended(global) { Some(&mut ask) } else { None },
    };
    Ok(quietly(|bar| args.run(around, bar))?)
}

pub(super) fn identity(
    verb: &IdentityVerb,
    home: &Home,
    config: &Config,
    global: &Global,
) -> Result<Reply, Failure> {
    let IdentityVerb::Adopt(adopt) = verb;
    let path = home.layout().store_file();
    if !path.exists() {
        let says = format!("adopt a key: there is no store at {}", path.display());
        return Err(VerbError::Failed(says).into());
    }
    home.prepare()?;
    let _claimed = claim(home, "adopt a key in")?;
    let store = guarded(home, || open_store(home, config))?;
    let before = store.snapshot()?.author()?;
    let found = home.key_in_place()?.map(|key| key.author());
    let mut ask = ask;
    let asked: Ask<'_> = if is_attended(global) { Some(&mut ask) } else { None };
    adopt.confirm((before, found), asked)?;
    let now = home.key()?.author();
    store.hand_over(now)?;
    Ok(cli::identity::adopted(before, now))
}

/// Looks at everything. What is wrong with the configuration is one of the answers.
pub(super) fn doctor(
    home: &Home,
    known: &Layered,
    wrong: Option<&Failure>,
) -> Result<Reply, Failure> {
    let socket = home.socket(known.config());
    let client = Client::new(&socket);
    let mut bar = Bar::default();
    let asked = runtime()?.block_on(cli::doctor::ask(&client, &mut bar))?;
    drop(bar);
    let mut findings = match asked {
        Some(findings) => findings,
        None => quietly(|bar| cli::doctor::look(&home.layout(), &socket, now(), bar))?,
    };
    // What is wrong with the home itself was said.
    if !matches!(wrong, Some(Failure::Home(_))) {
        let set = wrong.map_or(Ok(known), |wrong| Err(wrong.to_string()));
        findings.push(cli::doctor::settings(set));
    }
    Ok(cli::doctor::reply(&findings))
}

pub(super) fn service(
    args: &cli::service::Args,
    home: &Home,
    global: &Global,
) -> Result<Reply, Failure> {
    let program = super::connect::program(home, global)?;
    Ok(cli::service::show(args, &program)?)
}

/// Claims a home on which no node may run meanwhile.
fn claim(home: &Home, what: &str) -> Result<File, VerbError> {
    home.claim().map_err(|error| match error {
        HomeError::Claimed { path } => {
            VerbError::Running(format!("{what} {}: a node is running on it", path.display()))
        }
        other => VerbError::Failed(other.to_string()),
    })
}

/// Whether somebody sits in front of a terminal, and can be asked. Who wants JSON is a program.
pub(super) fn is_attended(global: &Global) -> bool {
    !global.json && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal of somebody who can be asked.
pub(super) fn ask(question: &str) -> bool {
    let mut stderr = io::stderr().lock();
    let asked = stderr.write_all(prompt(question).as_bytes()).and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.is_ok()
        && io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// A question as it is printed: it may name what others wrote, as a diff of their file does.
fn prompt(question: &str) -> String {
    format!("{} [y/N] ", cli::harmless(question))
}

/// Runs something that may meet damaged files: redb panics on some, which is caught where it
/// happens and told as damage. What is not caught there goes on as it would have.
fn quietly<T>(work: impl FnOnce(&mut Bar) -> Result<T, VerbError>) -> Result<T, VerbError> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let done = catch_unwind(AssertUnwindSafe(|| work(&mut Bar::default())));
    std::panic::set_hook(hook);
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// The exit code and the way out, for the one table of them. A file that is none, or no backup, is a
/// mistake of whoever named it.
pub(super) fn backup_way_out(error: &BackupError) -> (u8, Option<&'static str>) {
    match error {
        BackupError::Damaged { .. } => (1, Some("take an older one")),
        BackupError::Newer { .. } => (1, Some("upgrade klnode")),
        BackupError::NotOne { .. } => (2, Some("`klnode backup FILE` makes one")),
        BackupError::Exists { .. } => (2, Some("--force replaces it")),
        BackupError::Foreign { .. } | BackupError::NotAFile { .. } => {
            (2, Some("choose another name"))
        }
        BackupError::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) =>
        {
            (2, None)
        }
        BackupError::Io { .. } | BackupError::Store(_) => (1, None),
    }
}

/// The same of what is put in place.
pub(super) fn restore_way_out(error: &RestoreError) -> (u8, Option<&'static str>) {
    let hint = match error {
        RestoreError::Backup(error) => return backup_way_out(error),
        RestoreError::Running { .. } => Some("stop it first"),
        RestoreError::AnotherNode { .. } => Some(
            "name another --home; or --as-this-node takes its entries as another author's; or \
             export there and import here, which joins both; or, if node.key is damaged, move it \
             away, and the backup's key takes its place",
        ),
        RestoreError::NoKey { .. } => Some(
            "put node.key into the home first; or --as-this-node takes its entries as another \
             author's",
        ),
        RestoreError::BadKey { .. } => Some("move it away, and the backup's key takes its place"),
        RestoreError::Newer(_) => Some("upgrade klnode"),
        RestoreError::Io { .. } | RestoreError::Store(_) => None,
    };
    (1, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_question_moves_the_cursor_or_turns_a_line_around() {
        let shown = prompt("+ a\u{202e}b\u{1b}[2J\nChange 1 file?");
        assert_eq!(shown, "+ a\u{FFFD}b\u{FFFD}[2J\nChange 1 file? [y/N] ");
    }
}
