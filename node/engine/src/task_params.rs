//! Parameters of tasks, of the credit that their ends give, and of the form of entries.
//!
//! Separate from `tasks`, because confirmations, findings and the archive rule use them too.

use klnode_scoring::{confidence, credit, lone_finding};
use std::collections::BTreeSet;
use std::time::Duration;

/// Parameters of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskParams {
    /// How much credit or blame an outcome gives to the entries of the task.
    pub outcome: credit::Params,
    /// Time after its beginning at which an unfinished task expires.
    pub expires_after: Duration,
    /// Number of root tasks that serve an entry without any supporting evidence before the entry is
    /// archived.
    pub archive_after: u32,
    /// Outside tasks, this many successes and this many failures of one entry count per caller and
    /// day.
    pub outside_per_day_max: u32,
    /// An entry served to a user primes that user's indistinguishable callers for this long.
    pub user_primed_for: Duration,
    /// How α is computed for the bonus of a success after a decline.
    pub confidence: confidence::Params,
    /// Conditions under which the finding of a single agent becomes an entry.
    pub lone: lone_finding::Params,
    /// Names of agents whose tasks succeed only after a search.
    pub search_required: BTreeSet<String>,
    /// Names of workspaces in which every entry must have the strict form.
    pub strict_workspaces: BTreeSet<String>,
}

impl Default for TaskParams {
    fn default() -> Self {
        Self {
            outcome: credit::Params::default(),
            expires_after: Duration::from_secs(7 * 24 * 3_600),
            archive_after: 10,
            outside_per_day_max: 1,
            user_primed_for: Duration::from_secs(3_600),
            confidence: confidence::Params::default(),
            lone: lone_finding::Params::default(),
            search_required: BTreeSet::new(),
            strict_workspaces: BTreeSet::new(),
        }
    }
}
