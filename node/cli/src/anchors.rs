//! `klnode check anchors`: whether the anchors and predicates of entries still hold in a checkout.
//!
//! Predicates that were written in another repository are skipped and counted; clones, worktrees
//! and forks count as the same repository. File contents are read but never shown. A predicate that
//! cannot be evaluated is listed and fails nothing.

use super::sanitize::printable;
use super::{Reply, VerbError};
use hyper::Method;
use klnode_api_types::{AnchorsCheckPage, AnchorsCheckRequest, FlaggedAtom};
use klnode_client::Client;
use klnode_git::GitCheckout;
use klnode_scoring::predicate::Predicate;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The checkout to check, and the workspace to limit the check to.
pub(super) struct Check {
    /// A git checkout, or a folder in one.
    pub(super) path: PathBuf,
    pub(super) workspace: Option<String>,
}

impl Check {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let path = self.path;
        let wrong = |path: &Path, why: &str| {
            VerbError::Input(format!("Cannot check anchors in {}: {why}.", path.display()))
        };
        let checkout =
            std::fs::canonicalize(&path).map_err(|error| wrong(&path, &error.to_string()))?;
        let checkout = checkout
            .into_os_string()
            .into_string()
            .map_err(|path| wrong(Path::new(&path), "its name is not UTF-8"))?;
        let mut ask = AnchorsCheckRequest { checkout, workspace: self.workspace, after: None };
        let mut all = page(client, &ask).await?;
        while let Some(next) = all.next.take() {
            ask.after = Some(next);
            let more = page(client, &ask).await?;
            all.entries += more.entries;
            all.predicates += more.predicates;
            all.broken.extend(more.broken);
            all.unknown.extend(more.unknown);
            all.skipped_elsewhere += more.skipped_elsewhere;
            all.skipped_unrecorded += more.skipped_unrecorded;
            all.next = more.next;
        }
        let reply = Reply::new(&all, text(&all));
        Ok(if all.broken.is_empty() { reply } else { reply.with_exit_code(1) })
    }
}

async fn page(client: &Client, ask: &AnchorsCheckRequest) -> Result<AnchorsCheckPage, VerbError> {
    Ok(client.send_json(Method::POST, "/v1/anchors/check", ask).await?)
}

/// A note on conditions that no check understands, as after a typo; empty if all are predicates.
pub(super) fn unchecked_note(depends_on: &[String]) -> String {
    let is_words = |text: &&String| Predicate::read(text).is_err();
    let words = depends_on.iter().filter(is_words).map(|text| {
        format!(
            "Kept as words, not checked: {}. A predicate begins with path:, text:, hash: or \
             dep:.\n",
            printable(text)
        )
    });
    words.collect()
}

/// A note on predicates that were written outside a repository, where no identity could be
/// recorded.
pub(super) fn unanchored_note(is_unanchored: bool, code: &str) -> String {
    match is_unanchored {
        false => String::new(),
        true => format!(
            "No checkout can check its predicates: this folder is in no git repository with a \
             commit or a remote. Run `klnode edit {code}` with --anchor or --depends-on in the \
             repository.\n"
        ),
    }
}

/// The root of the checkout around the current folder, for the node to check predicates in.
pub(super) fn here() -> Option<String> {
    checkout_root(Path::new("."))
}

/// The root of the checkout around a folder; `None` outside a checkout or if the path is not UTF-8.
pub(super) fn checkout_root(folder: &Path) -> Option<String> {
    let root = GitCheckout::root_of(&std::fs::canonicalize(folder).ok()?)?;
    root.into_os_string().into_string().ok()
}

fn text(checked: &AnchorsCheckPage) -> String {
    let mut text = String::new();
    for (name, flagged) in [("BROKEN", &checked.broken), ("UNKNOWN", &checked.unknown)] {
        if !flagged.is_empty() {
            put_table(&mut text, name, flagged);
        }
    }
    let _ = writeln!(
        text,
        "Checked in {}: entries {}, predicates {}, broken {}, unknown {}.",
        printable(&checked.root),
        checked.entries,
        checked.predicates,
        checked.broken.len(),
        checked.unknown.len(),
    );
    text + &skipped(checked)
}

/// Lines with the number of skipped predicates for each reason.
fn skipped(checked: &AnchorsCheckPage) -> String {
    let (elsewhere, unrecorded) = (checked.skipped_elsewhere, checked.skipped_unrecorded);
    let mut text = String::new();
    if elsewhere > 0 {
        let were = if elsewhere == 1 { "predicate was" } else { "predicates were" };
        let _ = writeln!(text, "Skipped: {elsewhere} {were} written in another repository.");
    }
    if unrecorded > 0 {
        let has = if unrecorded == 1 { "predicate has" } else { "predicates have" };
        let _ = writeln!(
            text,
            "Skipped: {unrecorded} {has} no recorded repository. Run `klnode edit CODE --anchor \
             PREDICATE` (or --depends-on) in the repository to record it."
        );
    }
    text
}

fn put_table(text: &mut String, name: &str, flagged: &[FlaggedAtom]) {
    let codes = flagged.iter().map(|one| one.code.len()).max().unwrap_or_default();
    let atoms = flagged.iter().map(|one| one.atom.chars().count()).max().unwrap_or_default();
    let (codes, atoms) = (codes.max("ENTRY".len()), atoms.max(name.len()));
    let _ = writeln!(text, "{:<codes$}  {name:<atoms$}  REASON", "ENTRY");
    for one in flagged {
        let atom = printable(&one.atom);
        let _ = writeln!(text, "{:<codes$}  {atom:<atoms$}  {}", one.code, one.reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(atom: &str, reason: &str) -> FlaggedAtom {
        FlaggedAtom {
            id: "ab".repeat(16),
            code: "L-7F3KQ2MX".into(),
            title: "Told".into(),
            atom: atom.into(),
            reason: reason.into(),
        }
    }

    #[test]
    fn broken_predicates_are_listed_before_unknown_ones_and_a_summary() {
        let checked = AnchorsCheckPage {
            root: "/src/shop".into(),
            entries: 3,
            predicates: 4,
            broken: vec![flagged("path:a", "git tracks no such file")],
            unknown: vec![flagged("text:b\u{1b}~\"x\"", "a file is too large")],
            skipped_elsewhere: 2,
            skipped_unrecorded: 1,
            next: None,
        };
        assert_eq!(
            text(&checked),
            "ENTRY       BROKEN  REASON\n\
             L-7F3KQ2MX  path:a  git tracks no such file\n\
             ENTRY       UNKNOWN      REASON\n\
             L-7F3KQ2MX  text:b\u{FFFD}~\"x\"  a file is too large\n\
             Checked in /src/shop: entries 3, predicates 4, broken 1, unknown 1.\n\
             Skipped: 2 predicates were written in another repository.\n\
             Skipped: 1 predicate has no recorded repository. Run `klnode edit CODE --anchor \
             PREDICATE` (or --depends-on) in the repository to record it.\n"
        );
    }
}
