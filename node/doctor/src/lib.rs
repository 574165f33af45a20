//! Health checks of a home. Each check returns its result and, if something is wrong, a remedy.
//!
//! A running node runs these checks on itself; without one, the command line runs them on the
//! folder. The checks never repair anything.

mod home;
mod store;

pub use home::{close_key_command, home, is_open, socket};
pub use store::{store, store_file};

use klnode_api_types::health_check::CheckResult;
