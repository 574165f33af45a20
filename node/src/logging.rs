//! The log on standard error, with secrets redacted.
//!
//! klnode logs no text of an entry. Errors of libraries and messages of peers are beyond its
//! control, so every line is scanned, and a text that looks like a secret is redacted before it is
//! written.

use klnode_cli::Global;
use klnode_config::Config;
use klnode_config::units::LogFormat;
use klnode_scoring::content_scan::redact_secrets;
use std::io::{self, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// Starts the log at the level of flags or configuration.
pub(super) fn start(config: &Config, global: &Global) {
    let level = global.log.as_deref().unwrap_or(config.log.level.as_str());
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(level)));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        // Otherwise it reports its own errors on standard error, and panics if that fails.
        .log_internal_errors(false)
        .with_writer(|| RedactingWriter(io::stderr()));
    match config.log.format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// The filter for a level. At info, libraries log warnings only, since their routine messages do
/// not help the operator of a node.
fn directives(level: &str) -> &str {
    match level {
        "info" => "warn,klnode=info",
        level => level,
    }
}

/// Writes lines with secrets redacted. Each call has a whole line. A line that cannot be written is
/// lost: a full disk or a closed terminal must not stop the node.
struct RedactingWriter<W>(W);

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let _ = self.0.write_all(redact_secrets(&text).as_bytes());
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
    fn only_secrets_are_redacted_from_a_line() {
        let key = ["AKIA", "QX5R", "7TLM", "2WZP", "4VNH"].concat();
        let mut log = RedactingWriter(Vec::new());
        log.write_all(format!("WARN cannot store {key} here\n").as_bytes()).unwrap();
        log.write_all(b"INFO started home=/home/k\n").unwrap();
        let written = String::from_utf8(log.0).unwrap();
        assert_eq!(
            written,
            "WARN cannot store [redacted: aws-access-key-id] here\nINFO started home=/home/k\n"
        );
    }

    #[test]
    fn libraries_only_warn_at_info() {
        assert_eq!(directives("info"), "warn,klnode=info");
        for level in ["off", "warn", "debug", "klnode=debug"] {
            assert_eq!(directives(level), level);
        }
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost_without_an_error() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut log = RedactingWriter(full);
        log.write_all(b"INFO started\n").unwrap();
        log.flush().unwrap();
    }
}
