//! The operator's editor: its command, and how it is started.

use super::terminal_prompt::is_attended;
use klnode_cli::Global;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// The editor at a terminal if neither `VISUAL` nor `EDITOR` is set.
const DEFAULT: &str = "vi";

/// The command that starts the editor; `None` without a setting and without a terminal.
pub(super) fn command(global: &Global) -> Option<OsString> {
    let set = |name: &str| std::env::var_os(name).filter(|command| !command.is_empty());
    let default = || is_attended(global).then(|| DEFAULT.into());
    set("VISUAL").or_else(|| set("EDITOR")).or_else(default)
}

/// Opens a file, waits until the editor ends, and returns whether it ended with success. The shell
/// splits the command into words, as it does for git: `code --wait` is a command and a flag.
pub(super) fn open(command: &OsStr, file: &Path) -> io::Result<bool> {
    // With a handler, Ctrl-C in the editor does not end this process.
    let _interrupts = signal(SignalKind::interrupt())?;
    let mut line = command.to_owned();
    line.push(" \"$@\"");
    let status = Command::new("sh").arg("-c").arg(line).arg(command).arg(file).status()?;
    Ok(status.success())
}
