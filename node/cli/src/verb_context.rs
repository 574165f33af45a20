//! The environment of a verb of the running node.

use super::{Editor, OutputReader, ProgressSink};
use std::path::Path;

/// Asks the person at the terminal a yes-or-no question; `None` without a terminal.
pub type ConfirmPrompt<'a> = Option<&'a mut dyn FnMut(&str) -> bool>;

/// Terminal, prompt, editor and progress of a verb.
pub struct VerbContext<'a> {
    /// The reader of standard output.
    pub terminal: OutputReader,
    /// The prompt; `None` without a terminal.
    pub ask: ConfirmPrompt<'a>,
    /// The operator's editor; `None` without a terminal and without a setting.
    pub editor: Option<Editor<'a>>,
    /// The program with the flags that find the node, for commands in messages.
    pub program: String,
    /// The home whose socket the client uses.
    pub home: &'a Path,
    /// Receives the progress of the verb.
    pub progress: &'a mut dyn ProgressSink,
}
