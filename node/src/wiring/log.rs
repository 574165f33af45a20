//! The log: what is written to standard error, and what never is.
//!
//! No line is meant to hold a text of an entry. Errors of libraries, and what peers send, are not
//! ours to promise for, so whatever still looks like a secret is taken out of a line before it is
//! written.

use crate::cli::Global;
use crate::query::redacted;
use klnode_config::Config;
use klnode_config::units::LogFormat;
use std::io::{self, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// Starts it, as verbose as flags and configuration say.
pub(super) fn start(config: &Config, global: &Global) {
    let level = global.log.as_deref().unwrap_or(config.log.level.as_str());
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(level)));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        // It would tell of them on standard error, and panic where that cannot be written.
        .log_internal_errors(false)
        .with_writer(|| Redacting(io::stderr()));
    match config.log.format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// What a level is to what klnode is built on: unless somebody looks closer, how it is doing says
/// nothing to whoever runs a node.
fn directives(level: &str) -> &str {
    match level {
        "info" => "warn,klnode=info",
        level => level,
    }
}

/// Writes lines without their secrets. A line comes in one piece. One that cannot be written is
/// lost: a full disk, or a terminal that has gone away, ends nobody's work.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let _ = self.0.write_all(redacted(&text).as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_loses_its_secrets_and_nothing_else() {
        let key = ["AKIA", "QX5R", "7TLM", "2WZP", "4VNH"].concat();
        let mut log = Redacting(Vec::new());
        log.write_all(format!("WARN cannot store {key} here\n").as_bytes()).unwrap();
        log.write_all(b"INFO started home=/home/k\n").unwrap();
        let written = String::from_utf8(log.0).unwrap();
        assert_eq!(
            written,
            "WARN cannot store [redacted: aws-access-key-id] here\nINFO started home=/home/k\n"
        );
    }

    #[test]
    fn libraries_only_warn_unless_somebody_looks_closer() {
        assert_eq!(directives("info"), "warn,klnode=info");
        for level in ["off", "warn", "debug", "klnode=debug"] {
            assert_eq!(directives(level), level);
        }
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost_and_no_error() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut log = Redacting(full);
        log.write_all(b"INFO started\n").unwrap();
        log.flush().unwrap();
    }
}
