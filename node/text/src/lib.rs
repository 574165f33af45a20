//! Text functions without any state: Unicode classes, plurals, and quoting for a shell.

pub mod plural;
pub mod shell_quote;
pub mod truncate;
pub mod unicode;
