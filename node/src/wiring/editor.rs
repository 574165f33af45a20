//! The operator's editor: which one it is, and how it is started. What is edited is not known here.

use super::offline::is_attended;
use crate::cli::Global;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// The editor where neither `VISUAL` nor `EDITOR` is set and a person sits in front of a terminal.
const DEFAULT: &str = "vi";

/// The command that starts the editor; none where nothing is set and no terminal is attended.
pub(super) fn command(global: &Global) -> Option<OsString> {
    let set = |name: &str| std::env::var_os(name).filter(|command| !command.is_empty());
    let default = || is_attended(global).then(|| DEFAULT.into());
    set("VISUAL").or_else(|| set("EDITOR")).or_else(default)
}

/// Opens a file and waits until the editor ends; whether it ended with success. The shell splits the
/// command into words, as it does for git: `code --wait` is a command and a flag.
pub(super) fn open(command: &OsStr, file: &Path) -> io::Result<bool> {
    // Ctrl-C in the editor is for the editor: with a handler it does not end this process.
    let _interrupts = signal(SignalKind::interrupt())?;
    let mut line = command.to_owned();
    line.push(" \"$@\"");
    let status = Command::new("sh").arg("-c").arg(line).arg(command).arg(file).status()?;
    Ok(status.success())
}
