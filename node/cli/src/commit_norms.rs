//! `klnode check --norms RANGE`: tests the commits of a range against the commit norms of the node.
//!
//! A norm states its rules in lines of its content that begin with `Check:`; see
//! [`klnode_scoring::git_commit_rule`]. Nothing is run, and only commits are read. A broken norm of this
//! node fails the check; a norm of another author only warns. A merge commit has no message of its
//! own, so no rule applies to it.

use super::api_path::escape;
use super::sanitize::printable;
use super::{Reply, VerbError};
use klnode_api_types::{Entry, EntryPage};
use klnode_client::Client;
use klnode_git::{Commit, Repository};
use klnode_scoring::git_commit_rule::{CommitRule, CommitText};
use klnode_text::plural::counted;
use klnode_text::truncate::truncate;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The most violations that are listed; `--json` has them all.
const LISTED_MAX: usize = 50;
/// Digits of a commit name in a table.
const NAME_DIGITS: usize = 10;
/// The most characters of a subject in a table.
const SUBJECT_CHARACTERS_MAX: usize = 60;
/// Statuses of norms that no longer apply.
const ENDED: [&str; 3] = ["archived", "retracted", "rejected"];

/// The JSON form of the check.
#[derive(Serialize)]
struct NormsReport<'a> {
    range: &'a str,
    passed: bool,
    /// Commits that were tested.
    commits: usize,
    /// Merge commits, which no rule applies to.
    merges: usize,
    blocking: usize,
    warnings: usize,
    norms: Vec<TestedNorm>,
    violations: Vec<NormViolation>,
}

/// A norm, and the rules that it states.
#[derive(Serialize)]
struct TestedNorm {
    id: String,
    code: String,
    title: String,
    /// Whether a commit that breaks it fails the check.
    blocks: bool,
    /// Empty for a norm that states no rule that can be tested.
    rules: Vec<String>,
    #[serde(skip)]
    parsed: Vec<CommitRule>,
}

/// A commit that breaks a rule.
#[derive(Serialize)]
struct NormViolation {
    commit: String,
    subject: String,
    norm: String,
    code: String,
    rule: String,
    why: String,
    blocks: bool,
}

/// Tests the commits of a range.
pub(super) async fn run(
    range: &str,
    folder: &Path,
    workspace: Option<&str>,
    client: &Client,
) -> Result<Reply, VerbError> {
    let wrong = |error: &dyn std::fmt::Display| VerbError::Input(error.to_string());
    let repository = Repository::open(folder).map_err(|error| wrong(&error))?;
    let commits = repository.commits(range).map_err(|error| {
        let hint = "A side is a branch, a tag, HEAD or a whole commit name, as in main..HEAD.";
        VerbError::Input(format!("{error} {hint}"))
    })?;
    let norms = norms(workspace, client).await?;
    let (merges, commits): (Vec<Commit>, Vec<Commit>) =
        commits.into_iter().partition(|commit| commit.parents.len() > 1);
    let mut violations: Vec<NormViolation> = Vec::new();
    for commit in &commits {
        violations.extend(norms.iter().flat_map(|norm| norm.violations(commit)));
    }
    let blocking = violations.iter().filter(|one| one.blocks).count();
    let report = NormsReport {
        range,
        passed: blocking == 0,
        commits: commits.len(),
        merges: merges.len(),
        blocking,
        warnings: violations.len() - blocking,
        norms,
        violations,
    };
    let text = report.text();
    let reply = Reply::new(&report, text).keyed("norms");
    Ok(if report.passed { reply } else { reply.with_exit_code(1) })
}

/// The commit norms of the node that still apply.
async fn norms(workspace: Option<&str>, client: &Client) -> Result<Vec<TestedNorm>, VerbError> {
    let mut path = "/v1/entries?type=norm&sub_type=commit&memory=procedural&limit=1000".to_owned();
    if let Some(workspace) = workspace {
        let _ = write!(path, "&workspace={}", escape(workspace));
    }
    let mut page: EntryPage = client.get(&path).await?;
    let mut found = Vec::new();
    loop {
        let current = page.entries.iter().filter(|entry| !ENDED.contains(&entry.status.as_str()));
        // A text that the node does not trust sets no rule.
        for entry in current
            .filter(|entry| !matches!(entry.gate.as_str(), "shut" | "held") && !entry.invalidated)
        {
            found.push(TestedNorm::of(entry)?);
        }
        let Some(after) = page.next.take() else { return Ok(found) };
        page = client.get(&format!("{path}&after={after}")).await?;
    }
}

impl TestedNorm {
    fn of(entry: &Entry) -> Result<Self, VerbError> {
        let parsed = match CommitRule::read(&entry.content) {
            Ok(rules) => rules,
            // Another author's mistake must not stop the check.
            Err(_) if entry.foreign => Vec::new(),
            Err(error) => {
                let (words, reason) = (printable(&error.words), error.reason);
                return Err(VerbError::Input(format!(
                    "Cannot check norm {}: its rule `{words}` is unreadable: {reason}. Correct it \
                     with `klnode edit {}`.",
                    entry.code, entry.code
                )));
            }
        };
        Ok(Self {
            id: entry.id.clone(),
            code: entry.code.clone(),
            title: entry.title.clone(),
            blocks: !entry.foreign,
            rules: parsed.iter().map(ToString::to_string).collect(),
            parsed,
        })
    }

    fn violations<'a>(&'a self, commit: &'a Commit) -> impl Iterator<Item = NormViolation> + 'a {
        let text =
            CommitText { subject: commit.subject(), body: commit.body(), author: &commit.author };
        self.parsed.iter().filter_map(move |rule| {
            Some(NormViolation {
                why: rule.violation(&text)?,
                commit: commit.name.clone(),
                subject: commit.subject().to_owned(),
                norm: self.id.clone(),
                code: self.code.clone(),
                rule: rule.to_string(),
                blocks: self.blocks,
            })
        })
    }
}

impl NormsReport<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut last = "";
        for one in self.violations.iter().take(LISTED_MAX) {
            if last != one.commit {
                last = &one.commit;
                let name = one.commit.get(..NAME_DIGITS).unwrap_or(&one.commit);
                let subject = printable(&truncate(&one.subject, SUBJECT_CHARACTERS_MAX));
                let _ = writeln!(text, "{name}  {subject}");
            }
            let word = if one.blocks { "blocks" } else { "warns" };
            let _ = writeln!(text, "{:12}{word}: {} ({})", "", printable(&one.why), one.code);
        }
        if self.violations.len() > LISTED_MAX {
            let more = self.violations.len() - LISTED_MAX;
            let _ = writeln!(text, "{more} more; use --json to see all.");
        }
        let testable = self.norms.iter().filter(|norm| !norm.rules.is_empty()).count();
        if testable == 0 {
            text.push_str(
                "No commit norm states a rule. Write one in its content, such as `Check: subject \
                 has at most 72 characters`.\n",
            );
        }
        let word = if self.passed { "passed" } else { "failed" };
        let commits = counted(self.commits as u64, "commit", "commits");
        let norms = counted(testable as u64, "norm", "norms");
        let _ = writeln!(
            text,
            "norms  {word}: {commits} tested against {norms}, {} block, {} warn",
            self.blocking, self.warnings
        );
        text
    }
}
