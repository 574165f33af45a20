//! What a verb of the running node finds beside what was typed.

use super::{Editor, Progress, Terminal};
use std::path::Path;

/// Asks the person in front of the terminal whether to go on; nothing where nobody can be asked.
pub type Ask<'a> = Option<&'a mut dyn FnMut(&str) -> bool>;

/// What is there beside what was typed.
pub struct Around<'a> {
    /// Who reads what is printed.
    pub terminal: Terminal,
    /// Who can be asked.
    pub ask: Ask<'a>,
    /// The operator's editor; none where no terminal is attended and no editor is set.
    pub editor: Option<Editor<'a>>,
    /// How this program is called, with what every verb needs to find the node: for lines to be typed
    /// next.
    pub program: String,
    /// The home by which the node was found.
    pub home: &'a Path,
    /// Hears how far something is.
    pub progress: &'a mut dyn Progress,
}
