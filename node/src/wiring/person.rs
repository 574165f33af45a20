//! Asks the person for a passphrase: on the terminal, whatever standard input is, or in a file that
//! they name.
//!
//! Never from the environment, which every program that runs as the same user can read.

use super::Failure;
use super::home::{Home, entropy};
use crate::cli::person::{self, Occasion, PersonVerb, Surroundings};
use crate::cli::{Global, Reply, VerbError, bounded};
use klnode_crdt::key::SecretKey;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

/// A passphrase is a line; more is a mistake.
const PASSPHRASE_BYTES_MAX: usize = 64 * 1024;
/// How a process ends that was told to, as a shell says it.
const TERMINATED: i32 = 143;

/// Carries out `klnode person`.
pub(super) fn run(verb: &PersonVerb, home: &Home, global: &Global) -> Result<Reply, Failure> {
    if matches!(verb, PersonVerb::New) {
        home.prepare()?;
    }
    with(home, global, |around| verb.run(around))
}

/// The person's key, opened; none where the home has none.
pub(super) fn key(home: &Home, global: &Global) -> Result<Option<SecretKey>, Failure> {
    with(home, global, person::unlock)
}

fn with<T>(
    home: &Home,
    global: &Global,
    work: impl FnOnce(&Surroundings<'_>) -> Result<T, VerbError>,
) -> Result<T, Failure> {
    let passphrase = |occasion| passphrase(global, occasion);
    Ok(work(&Surroundings { layout: home.layout(), passphrase: &passphrase, entropy })?)
}

fn passphrase(global: &Global, occasion: Occasion) -> Result<Zeroizing<String>, VerbError> {
    if let Some(file) = &global.passphrase_file {
        let text = bounded::file(file, PASSPHRASE_BYTES_MAX).map(Zeroizing::new);
        let text = text.map_err(|error| {
            VerbError::Input(format!("read the passphrase from {}: {error}", file.display()))
        })?;
        return Ok(Zeroizing::new(line(&text).to_owned()));
    }
    let mut terminal = Terminal::open().map_err(|_| VerbError::NobodyToAsk)?;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::Interrupted => VerbError::Interrupted("no passphrase was given".into()),
        _ => VerbError::Failed(format!("ask for the passphrase: {error}")),
    };
    match occasion {
        Occasion::Unlock => terminal.ask("Passphrase of the person's key: ").map_err(failed),
        Occasion::Lock => {
            let first = terminal.ask("A passphrase for the person's key: ").map_err(failed)?;
            let second = terminal.ask("The same again: ").map_err(failed)?;
            if *first != *second {
                let message = "use that passphrase: it was not the same twice";
                return Err(VerbError::Input(message.into()));
            }
            Ok(first)
        }
    }
}

/// A line without its end.
fn line(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// What is typed, without the end of its line. It is interrupted by any of these.
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
struct Terminal(File);

impl Terminal {
    fn open() -> io::Result<Self> {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        restore_when_told_to_end(terminal.try_clone()?)?;
        Ok(Self(terminal))
    }

    /// Asks, and does not show what is typed.
    fn ask(&mut self, question: &str) -> io::Result<Zeroizing<String>> {
        let quiet = Quiet::on(&self.0)?;
        (&self.0).write_all(question.as_bytes())?;
        let read = typed(&self.0, &quiet.interrupts());
        drop(quiet);
        // The end of the line was not shown either.
        (&self.0).write_all(b"\n")?;
        read
    }
}

/// Has the terminal show again what is typed before the process ends by the signal that tells it to:
/// that leaves no time to drop anything.
fn restore_when_told_to_end(terminal: File) -> io::Result<()> {
    let before = tcgetattr(&terminal)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut told = runtime.block_on(async { signal(SignalKind::terminate()) })?;
    std::thread::spawn(move || {
        runtime.block_on(told.recv());
        // Nothing is left to do for a terminal that has gone.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
        std::process::exit(TERMINATED);
    });
    Ok(())
}

/// A terminal that shows nothing, until this goes.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    /// Keys that would end or stop this process are read like others, and Ctrl-C ends the line: so the
    /// terminal can be restored.
    fn on(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VEOL] = before.special_codes[SpecialCodeIndex::VINTR];
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }

    /// What those keys are read as, as far as the terminal has them.
    fn interrupts(&self) -> Vec<u8> {
        let keys = [SpecialCodeIndex::VINTR, SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP];
        let codes = keys.map(|key| self.before.special_codes[key]);
        codes.into_iter().filter(|code| *code != 0).collect()
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // Nothing is left to do for a terminal that has gone.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_is_the_line_without_its_end() {
        for (text, passphrase) in [("a b \n", "a b "), ("a\r\n", "a"), ("a", "a"), ("a\n\n", "a\n")]
        {
            assert_eq!(line(text), passphrase);
        }
    }

    #[test]
    fn a_key_that_ends_programs_ends_the_question_and_is_in_no_passphrase() {
        let read = |bytes: &[u8]| typed(bytes, &[3, 26]).map_err(|error| error.kind());
        assert_eq!(read(b"open sesame\nmore").unwrap().as_str(), "open sesame");
        assert_eq!(read(b"open\x03").unwrap_err(), io::ErrorKind::Interrupted);
        assert_eq!(read(b"open\x1a sesame\n").unwrap_err(), io::ErrorKind::Interrupted);
        assert_eq!(read(b"").unwrap_err(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_quiet_terminal_reads_ctrl_c_itself_and_is_as_before_when_it_is_over() {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
        let modes = || tcgetattr(&terminal).unwrap();
        let shown = LocalModes::ECHO | LocalModes::ISIG;
        assert!(modes().local_modes.contains(shown));
        let quiet = Quiet::on(&terminal).unwrap();
        assert!(!modes().local_modes.intersects(shown));
        assert_eq!(modes().special_codes[SpecialCodeIndex::VEOL], 3);
        assert_eq!(quiet.interrupts(), [3, 28, 26]);
        drop(quiet);
        assert!(modes().local_modes.contains(shown));
        assert_ne!(modes().special_codes[SpecialCodeIndex::VEOL], 3);
    }
}
