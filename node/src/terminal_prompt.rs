//! Yes-or-no questions to a person at the terminal.

use klnode_cli::Global;
use std::io::{self, IsTerminal, Write};

/// Whether a person at a terminal can be asked. A caller that wants JSON is a program.
pub(super) fn is_attended(global: &Global) -> bool {
    !global.json && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a yes-or-no question on the terminal.
pub(super) fn ask(question: &str) -> bool {
    let mut stderr = io::stderr().lock();
    let asked = stderr.write_all(prompt(question).as_bytes()).and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.is_ok()
        && io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// The text of a question without control characters, since it may quote text of peers.
fn prompt(question: &str) -> String {
    format!("{} [y/N] ", klnode_cli::harmless(question))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_contains_no_control_or_direction_characters() {
        let shown = prompt("+ a\u{202e}b\u{1b}[2J\nChange 1 file?");
        assert_eq!(shown, "+ a\u{FFFD}b\u{FFFD}[2J\nChange 1 file? [y/N] ");
    }
}
