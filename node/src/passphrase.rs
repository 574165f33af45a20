//! Reads the passphrase of the person's key: from the terminal, even if standard input is
//! redirected, or from a file that the operator names.
//!
//! The environment is never used, because every program of the same user can read it.

use super::ProgramError;
use super::home::{Home, entropy};
use klnode_cli::person_key::{self, PersonContext, PromptPurpose};
use klnode_cli::{Global, Reply, VerbError, read_limited};
use klnode_crdt::signing_key::SecretKey;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

/// The most bytes of a passphrase file, which holds one line.
const PASSPHRASE_BYTES_MAX: usize = 64 * 1024;
/// The exit code of a shell for a process that SIGTERM ended.
const TERMINATED: i32 = 143;

/// Runs `klnode identity new`.
pub(super) fn create(home: &Home, global: &Global) -> Result<Reply, ProgramError> {
    home.prepare()?;
    with(home, global, person_key::create)
}

/// Runs `klnode identity show`.
pub(super) fn show(home: &Home, global: &Global) -> Result<Reply, ProgramError> {
    with(home, global, person_key::show)
}

/// Opens the person's key; `None` if the home has none.
pub(super) fn key(home: &Home, global: &Global) -> Result<Option<SecretKey>, ProgramError> {
    with(home, global, person_key::unlock)
}

fn with<T>(
    home: &Home,
    global: &Global,
    work: impl FnOnce(&PersonContext<'_>) -> Result<T, VerbError>,
) -> Result<T, ProgramError> {
    let passphrase = |occasion| passphrase(global, occasion);
    Ok(work(&PersonContext { layout: home.layout(), passphrase: &passphrase, entropy })?)
}

fn passphrase(global: &Global, occasion: PromptPurpose) -> Result<Zeroizing<String>, VerbError> {
    if let Some(file) = &global.passphrase_file {
        let text = read_limited::file(file, PASSPHRASE_BYTES_MAX).map(Zeroizing::new);
        let text = text.map_err(|error| {
            VerbError::Input(format!(
                "Cannot read the passphrase from {}: {error}.",
                file.display()
            ))
        })?;
        return Ok(Zeroizing::new(line(&text).to_owned()));
    }
    let mut terminal = ProcessTerminal::open().map_err(|_| VerbError::NoTerminal)?;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::Interrupted => VerbError::Interrupted("No passphrase was given.".into()),
        _ => VerbError::Failed(format!("Cannot ask for the passphrase: {error}.")),
    };
    match occasion {
        PromptPurpose::Unlock => terminal.ask("Passphrase of the person's key: ").map_err(failed),
        PromptPurpose::Lock => {
            let first = terminal.ask("A passphrase for the person's key: ").map_err(failed)?;
            let second = terminal.ask("Repeat the passphrase: ").map_err(failed)?;
            if *first != *second {
                let message = "The two passphrases differ. No key was created.";
                return Err(VerbError::Input(message.into()));
            }
            Ok(first)
        }
    }
}

/// A line without its line break.
fn line(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Reads one line. A byte of `interrupts` ends it with [`io::ErrorKind::Interrupted`].
fn typed(from: impl Read, interrupts: &[u8]) -> io::Result<Zeroizing<String>> {
    let mut typed = Zeroizing::new(Vec::new());
    for byte in BufReader::new(from).bytes() {
        let byte = byte?;
        if interrupts.contains(&byte) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        typed.push(byte);
        if byte == b'\n' {
            break;
        }
    }
    if typed.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let text = std::str::from_utf8(&typed).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Zeroizing::new(line(text).to_owned()))
}

/// The terminal of this process.
struct ProcessTerminal(File);

impl ProcessTerminal {
    fn open() -> io::Result<Self> {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        restore_on_terminate(terminal.try_clone()?)?;
        Ok(Self(terminal))
    }

    /// Asks a question and reads the answer without echo.
    fn ask(&mut self, question: &str) -> io::Result<Zeroizing<String>> {
        let quiet = EchoGuard::on(&self.0)?;
        (&self.0).write_all(question.as_bytes())?;
        let read = typed(&self.0, &quiet.interrupts());
        drop(quiet);
        // The line break was not echoed either.
        (&self.0).write_all(b"\n")?;
        read
    }
}

/// Restores the echo of the terminal on SIGTERM, which would end the process without running drops.
fn restore_on_terminate(terminal: File) -> io::Result<()> {
    let before = tcgetattr(&terminal)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut terminate = runtime.block_on(async { signal(SignalKind::terminate()) })?;
    std::thread::spawn(move || {
        runtime.block_on(terminate.recv());
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
        std::process::exit(TERMINATED);
    });
    Ok(())
}

/// A terminal without echo, until this is dropped.
struct EchoGuard<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> EchoGuard<'a> {
    /// Turns off echo and signals. Keys such as Ctrl-C are read as bytes, and Ctrl-C ends the line,
    /// so that the terminal can be restored first.
    fn on(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VEOL] = before.special_codes[SpecialCodeIndex::VINTR];
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }

    /// The bytes of the interrupt, quit and suspend keys that the terminal has.
    fn interrupts(&self) -> Vec<u8> {
        let keys = [SpecialCodeIndex::VINTR, SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP];
        let codes = keys.map(|key| self.before.special_codes[key]);
        codes.into_iter().filter(|code| *code != 0).collect()
    }
}

impl Drop for EchoGuard<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_is_the_line_without_its_line_break() {
        for (text, passphrase) in [("a b \n", "a b "), ("a\r\n", "a"), ("a", "a"), ("a\n\n", "a\n")]
        {
            assert_eq!(line(text), passphrase);
        }
    }

    #[test]
    fn an_interrupt_key_ends_the_prompt_and_is_in_no_passphrase() {
        let read = |bytes: &[u8]| typed(bytes, &[3, 26]).map_err(|error| error.kind());
        assert_eq!(read(b"open sesame\nmore").unwrap().as_str(), "open sesame");
        assert_eq!(read(b"open\x03").unwrap_err(), io::ErrorKind::Interrupted);
        assert_eq!(read(b"open\x1a sesame\n").unwrap_err(), io::ErrorKind::Interrupted);
        assert_eq!(read(b"").unwrap_err(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_quiet_terminal_reads_ctrl_c_and_is_restored_on_drop() {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
        let modes = || tcgetattr(&terminal).unwrap();
        let shown = LocalModes::ECHO | LocalModes::ISIG;
        assert!(modes().local_modes.contains(shown));
        let quiet = EchoGuard::on(&terminal).unwrap();
        assert!(!modes().local_modes.intersects(shown));
        assert_eq!(modes().special_codes[SpecialCodeIndex::VEOL], 3);
        assert_eq!(quiet.interrupts(), [3, 28, 26]);
        drop(quiet);
        assert!(modes().local_modes.contains(shown));
        assert_ne!(modes().special_codes[SpecialCodeIndex::VEOL], 3);
    }
}
