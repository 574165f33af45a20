//! Verbs that need no running node: they read files of the home, or replace them.

use super::home::{Home, HomeError};
use super::node::{now, open_store};
use super::progress_bar::TerminalProgress;
use super::serve::guarded;
use super::terminal_prompt::{ask, is_attended};
use super::{ProgramError, runtime};
use klnode_cli::check::{self, CheckPart};
use klnode_cli::home_and_store_check::DoctorReport;
use klnode_cli::identity::Adopt;
use klnode_cli::{self, ConfirmPrompt, Global, ProgressSink, Reply, VerbError};
use klnode_client::Client;
use klnode_config::{Config, Layered};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::signing_key::SecretKey;
use klnode_home::Layout;
use std::fs::File;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use zeroize::Zeroizing;

/// Runs `klnode identity adopt`.
pub(super) fn adopt(
    adopt: &Adopt,
    home: &Home,
    config: &Config,
    global: &Global,
) -> Result<Reply, ProgramError> {
    let path = home.layout().store_file();
    if !path.exists() {
        let message = format!("Cannot adopt a key: there is no store at {}.", path.display());
        return Err(VerbError::Failed(message).into());
    }
    home.prepare()?;
    let _claimed = claim(home)?;
    let store = guarded(home, || open_store(home, config))?;
    let before = store.snapshot()?.author()?;
    let found = home.key_in_place()?.map(|key| key.author());
    let mut ask = ask;
    let asked: ConfirmPrompt<'_> = if is_attended(global) { Some(&mut ask) } else { None };
    adopt.confirm((before, found), asked)?;
    let now = home.key()?.author();
    store.hand_over(now)?;
    Ok(klnode_cli::identity::adopted(before, now))
}

/// Examines home and store, and returns whether a node answered. An error in the settings, `wrong`,
/// is one of the findings.
pub(super) fn examine(
    args: &check::Args,
    home: &Home,
    known: &Layered,
    wrong: Option<&ProgramError>,
) -> Result<(Reply, bool), ProgramError> {
    let socket = home.socket(known.config());
    let client = Client::new(&socket);
    let mut bar = TerminalProgress::default();
    let asked = runtime()?.block_on(klnode_cli::home_and_store_check::ask(&client, &mut bar))?;
    drop(bar);
    let has_node = asked.is_some();
    let mut findings = match asked {
        Some(findings) => findings,
        None => quietly(|bar| look(args, (&home.layout(), &socket), bar))?,
    };
    // An unusable home is already among the findings.
    if !matches!(wrong, Some(ProgramError::Home(_))) {
        let set = wrong.map_or(Ok(known), |wrong| Err(wrong.to_string()));
        findings.push(klnode_cli::home_and_store_check::settings(set));
    }
    Ok((klnode_cli::home_and_store_check::reply(args, &findings), has_node))
}

/// Examines the home without a node, and its store if `args` has that part.
fn look(
    args: &check::Args,
    (layout, socket): (&Layout, &Path),
    bar: &mut TerminalProgress,
) -> Result<DoctorReport, VerbError> {
    let mut findings = DoctorReport { home: klnode_doctor::home(layout), store: Vec::new() };
    if !klnode_doctor::is_open(layout) {
        return Ok(findings);
    }
    findings.push(klnode_doctor::socket(socket));
    if args.has(CheckPart::Store) {
        let looked = klnode_doctor::store_file(layout, own(layout), now(), &mut |done, total| {
            bar.tell("examining", done, Some(total));
            ControlFlow::Continue(())
        });
        findings.store = looked.map_err(|error| VerbError::Failed(error.to_string()))?;
    }
    Ok(findings)
}

/// The author of a home, if its key can be read.
fn own(layout: &Layout) -> Option<AuthorId> {
    let bytes = Zeroizing::new(std::fs::read(layout.key_file()).ok()?);
    let bytes: &[u8; 32] = bytes.as_slice().try_into().ok()?;
    Some(SecretKey::from_bytes(bytes).author())
}

pub(super) fn service(
    args: &klnode_cli::service_unit::Args,
    home: &Home,
    global: &Global,
) -> Result<Reply, ProgramError> {
    let program = super::connect_clients::program(home, global)?;
    Ok(klnode_cli::service_unit::show(args, &program)?)
}

/// Locks a home, so that no node can start on it meanwhile.
pub(super) fn claim(home: &Home) -> Result<File, VerbError> {
    home.claim().map_err(|error| match error {
        HomeError::Claimed { path } => {
            VerbError::Running(format!("A node is running on the home {}.", path.display()))
        }
        other => VerbError::Failed(other.to_string()),
    })
}

/// Runs work on files that may be damaged, without the message of a panic. redb panics on some
/// damage; the callee catches that and reports it as damage. Any other panic continues.
pub(super) fn quietly<T>(work: impl FnOnce(&mut TerminalProgress) -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let done = catch_unwind(AssertUnwindSafe(|| work(&mut TerminalProgress::default())));
    std::panic::set_hook(hook);
    done.unwrap_or_else(|panic| resume_unwind(panic))
}
