//! `klnode compound`: writes up a solved problem, as `klnode add --solved` does.

use super::add::Add;
use super::solved_problem::SolvedArgs;

/// The parts of a solved problem, as `klnode compound` takes them.
#[derive(Debug, clap::Args)]
pub struct CompoundArgs {
    /// What was seen, and where.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub problem: Option<String>,
    /// Why it happened.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub cause: Option<String>,
    /// The change that solved it.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub solution: Option<String>,
    /// How it is noticed earlier next time.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prevention: Option<String>,
    /// A place in the code, such as path:src/auth.go; may be given more than once.
    #[arg(long = "anchor", value_name = "PREDICATE")]
    pub anchors: Vec<String>,
    /// A step that checks whether the entry still holds.
    #[arg(long = "verify", value_name = "STEP")]
    pub verify_steps: Vec<String>,
    /// The title [default: the first sentence of the problem].
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    /// A tag; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Evidence, as KIND:REF; may be given more than once.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
    /// The workspace [default: as for `add`].
    #[arg(long)]
    pub workspace: Option<String>,
    /// The task it is written in, as `task begin` printed it.
    #[arg(long)]
    pub task: Option<String>,
}

impl CompoundArgs {
    /// The same command as `add --solved`.
    pub(super) fn add(self) -> Add {
        let Self { problem, cause, solution, prevention, .. } = self;
        Add {
            solved: SolvedArgs { solved: true, problem, cause, solution, prevention },
            anchors: self.anchors,
            verify_steps: self.verify_steps,
            title: self.title,
            tags: self.tags,
            evidence: self.evidence,
            workspace: self.workspace,
            task: self.task,
            ..Add::default()
        }
    }
}
