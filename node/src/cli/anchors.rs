//! `klnode anchors`: whether what entries depend on still holds in a checkout.

use super::harmless::printable;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::{AnchorsCheck, AnchorsChecked, FlaggedAtom};
use crate::query::GitCheckout;
use hyper::Method;
use klnode_scoring::predicate::{Checkout, Params, Predicate, Unreadable};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What to do about what entries depend on.
#[derive(Debug, clap::Subcommand)]
pub enum AnchorsVerb {
    /// Check every anchor and `depends_on` that was written in this repository. Ends with 1 if one is
    /// broken.
    ///
    /// Clones, worktrees and forks count as the same repository. Predicates of other repositories, and
    /// those without a recorded one, are skipped and counted. Files are read and never shown; unknown
    /// predicates are listed and break nothing.
    ///
    /// Example: klnode anchors check --workspace team
    Check(Check),
    /// Print the predicate that holds for as long as a file, or some of its lines, stays as it is.
    ///
    /// Example: klnode anchors hash src/lib.rs#10-24
    Hash(Hash),
}

/// What to check, and where.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// A git checkout, or a folder in one [default: the current folder].
    pub path: Option<PathBuf>,
    /// Only entries of this workspace.
    #[arg(long)]
    pub workspace: Option<String>,
}

/// Of what to take the digest.
#[derive(Debug, clap::Args)]
pub struct Hash {
    /// A file that git tracks, and behind `#` a line or the first and the last.
    #[arg(value_name = "FILE[#LINES]")]
    pub place: String,
}

/// What `anchors hash` prints, for scripts.
#[derive(Serialize)]
struct Hashed {
    predicate: String,
}

impl AnchorsVerb {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::Check(check) => check.run(client).await,
            Self::Hash(hash) => hash.run(),
        }
    }
}

impl Hash {
    fn run(self) -> Result<Reply, VerbError> {
        let wrong = |why: String| VerbError::Input(format!("hash {}: {why}", self.place));
        let whole = Path::new(&self.place);
        let (file, lines) = match self.place.rsplit_once('#') {
            // It is a part of the name.
            Some(_) if whole.exists() => (whole, None),
            Some((file, lines)) => {
                let lines = numbers(lines).ok_or_else(|| {
                    wrong("behind # stands a line, as in #10, or two, as in #10-24".to_owned())
                })?;
                (Path::new(file), Some(lines))
            }
            None => (whole, None),
        };
        // The folders may be links. The file itself may not: no look follows one.
        let name = file.file_name().ok_or_else(|| wrong("it names no file".to_owned()))?;
        let folder = Path::new(".").join(file.parent().unwrap_or(Path::new("")));
        let folder = std::fs::canonicalize(folder).map_err(|error| wrong(error.to_string()))?;
        let checkout =
            GitCheckout::open(&folder).map_err(|error| VerbError::Input(error.to_string()))?;
        let found = folder.join(name);
        let path = found.strip_prefix(checkout.path()).ok().and_then(Path::to_str);
        let path = path.ok_or_else(|| wrong("its name is not UTF-8".to_owned()))?;
        let content = checkout.read(path, Params::default().file_bytes_max);
        let content = content.map_err(|why| wrong(unreadable(why).to_owned()))?;
        let predicate = Predicate::of_content(path, lines, &content, |it| checkout.digest(it));
        let predicate = predicate.ok_or_else(|| {
            wrong("it has no such lines, or a name that no predicate can have".to_owned())
        })?;
        let predicate = predicate.to_string();
        let text = format!("{predicate}\n");
        Ok(Reply::new(&Hashed { predicate }, text))
    }
}

/// One line, or the first and the last of several.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn unreadable(why: Unreadable) -> &'static str {
    match why {
        Unreadable::Missing => "it is not there",
        Unreadable::TooLarge => "it has more than 1 MiB, which no look reads",
        Unreadable::NotAFile => "it is no plain file that git tracks",
        Unreadable::Failed => "it cannot be read",
    }
}

impl Check {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let path = self.path.unwrap_or_else(|| PathBuf::from("."));
        let checkout = std::fs::canonicalize(&path)
            .map_err(|error| VerbError::Input(format!("look at {}: {error}", path.display())))?;
        let checkout = checkout.into_os_string().into_string().map_err(|path| {
            VerbError::Input(format!("look at {}: its name is not UTF-8", path.display()))
        })?;
        let mut ask = AnchorsCheck { checkout, workspace: self.workspace, after: None };
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
        Ok(if all.broken.is_empty() { reply } else { reply.ending(1) })
    }
}

async fn page(client: &Client, ask: &AnchorsCheck) -> Result<AnchorsChecked, VerbError> {
    Ok(client.send_json(Method::POST, "/v1/anchors/check", ask).await?)
}

/// What to say of conditions that nobody can check, as a typo in one makes it; nothing if all can be.
pub(super) fn unchecked(depends_on: &[String]) -> String {
    let is_words = |text: &&String| Predicate::read(text).is_err();
    let words = depends_on.iter().filter(is_words).map(|text| {
        format!(
            "Kept as words, not checked: {}; what is checked begins with path:, text:, hash: or \
             dep:.\n",
            printable(text)
        )
    });
    words.collect()
}

/// What to say of predicates that were written where no repository could be recorded with them.
pub(super) fn unanchored(is_unanchored: bool, code: &str) -> String {
    match is_unanchored {
        false => String::new(),
        true => format!(
            "Its predicates are checked nowhere: this folder is in no git repository with a commit or \
             a remote. Type `klnode edit {code}` with --anchor or --depends-on in the repository.\n"
        ),
    }
}

/// The root of the checkout that a verb is typed in, for the node to look at.
pub(super) fn here() -> Option<String> {
    let root = GitCheckout::root_of(&std::fs::canonicalize(Path::new(".")).ok()?)?;
    root.into_os_string().into_string().ok()
}

fn text(checked: &AnchorsChecked) -> String {
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

/// How many predicates were skipped, and why.
fn skipped(checked: &AnchorsChecked) -> String {
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
            "Skipped: {unrecorded} {has} no recorded repository; `klnode edit CODE --anchor \
             PREDICATE` (or --depends-on), typed in the repository, records it."
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
    fn what_is_broken_comes_first_in_columns_and_a_sentence_ends_it() {
        let checked = AnchorsChecked {
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
             Skipped: 1 predicate has no recorded repository; `klnode edit CODE --anchor PREDICATE` \
             (or --depends-on), typed in the repository, records it.\n"
        );
    }
}
