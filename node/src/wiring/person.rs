//! Asks the person for a passphrase: on the terminal, whatever standard input is, or in a file that
//! they name.
//!
//! Never from the environment, which every program that runs as the same user can read.

use super::Failure;
use super::home::{Home, entropy};
use crate::cli::person::{self, Occasion, PersonVerb, Surroundings};
use crate::cli::{Global, Reply, VerbError};
use klnode_crdt::key::SecretKey;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use zeroize::Zeroizing;

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
        let text = std::fs::read_to_string(file).map(Zeroizing::new);
        let text = text.map_err(|error| {
            VerbError::Input(format!("read the passphrase from {}: {error}", file.display()))
        })?;
        return Ok(Zeroizing::new(line(&text).to_owned()));
    }
    let mut terminal = Terminal::open().map_err(|_| VerbError::NobodyToAsk)?;
    let failed = |error: io::Error| VerbError::Failed(format!("ask for the passphrase: {error}"));
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

/// The terminal of this process.
struct Terminal(File);

impl Terminal {
    fn open() -> io::Result<Self> {
        Ok(Self(OpenOptions::new().read(true).write(true).open("/dev/tty")?))
    }

    /// Asks, and does not show what is typed.
    fn ask(&mut self, question: &str) -> io::Result<Zeroizing<String>> {
        let quiet = Quiet::on(&self.0)?;
        (&self.0).write_all(question.as_bytes())?;
        let mut typed = Zeroizing::new(String::new());
        let read = BufReader::new(&self.0).read_line(&mut typed);
        drop(quiet);
        // The end of the line was not shown either.
        (&self.0).write_all(b"\n")?;
        match read? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(Zeroizing::new(line(&typed).to_owned())),
        }
    }
}

/// A terminal that shows nothing, until this goes.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn on(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
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
}
