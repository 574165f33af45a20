//! The commits of a range, such as `main..HEAD`, read from git's object folder.
//!
//! Only commits are read, no trees and no files. The walk visits commits by date, the newest first,
//! as git does, and ends when every open commit is an ancestor of the range's base.

use super::objects::{Objects, is_name};
use super::repository_identity::Repository;
use std::collections::{BTreeMap, BTreeSet};

/// Most commits of a range.
pub const COMMITS_IN_RANGE_MAX: usize = 10_000;
/// Most commits that are read for one range.
const COMMITS_READ_MAX: usize = 100_000;
/// Commits that are visited after the last one of the range, because the clocks of authors differ.
const SLOP: usize = 64;
/// Folders below `refs` in which a short name is looked up, in the order of git.
const REFERENCES: [&str; 4] = ["refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
/// Most tags that lead to one commit.
const TAGS_MAX: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The name in hex.
    pub name: String,
    /// The names of the parents; a merge has several.
    pub parents: Vec<String>,
    /// The author as `Name <address>`.
    pub author: String,
    /// The time of the commit in seconds since 1970.
    pub seconds: i64,
    /// The message, with `\n` at the end of each line.
    pub message: String,
}

/// Why a range could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A side of the range names no commit.
    #[error("`{0}` names no commit of this repository.")]
    Unknown(String),
    /// An object is missing or cannot be read.
    #[error("Commit {0} cannot be read; the clone may be shallow or damaged.")]
    Unreadable(String),
    /// The range or its history is too long.
    #[error("The range has more than {COMMITS_IN_RANGE_MAX} commits, or its history is too long.")]
    TooLong,
    /// The repository stores its references in another way.
    #[error("The references of this repository are stored as `{0}`, which klnode cannot read.")]
    References(String),
}

impl Commit {
    /// The first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// The message after the subject and the empty lines that follow it.
    pub fn body(&self) -> &str {
        let rest = self.message.split_once('\n').map_or("", |(_, rest)| rest);
        rest.trim_start_matches('\n')
    }

    /// Reads the bytes of a commit object.
    fn parse(name: &str, bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, message) = text.split_once("\n\n").unwrap_or((text.trim_end(), ""));
        let mut commit = Self { name: name.to_owned(), ..Self::default() };
        commit.message = message.replace("\r\n", "\n");
        for line in head.lines() {
            if let Some(parent) = line.strip_prefix("parent ").filter(|name| is_name(name)) {
                commit.parents.push(parent.to_owned());
            } else if let Some(author) = line.strip_prefix("author ") {
                let end = author.rfind('>').map_or(author.len(), |at| at + 1);
                commit.author = author[..end].to_owned();
            } else if let Some(committer) = line.strip_prefix("committer ") {
                let time = committer.rsplit(' ').nth(1)?;
                commit.seconds = time.parse().ok()?;
            }
        }
        head.starts_with("tree ").then_some(commit)
    }
}

/// A walk over the history.
struct HistoryWalk<'a> {
    objects: &'a Objects,
    /// Commits at which a shallow clone ends.
    shallow: BTreeSet<String>,
    read: BTreeMap<String, Commit>,
}

impl HistoryWalk<'_> {
    fn commit(&mut self, name: &str) -> Result<Commit, RangeError> {
        if let Some(known) = self.read.get(name) {
            return Ok(known.clone());
        }
        if self.read.len() >= COMMITS_READ_MAX {
            return Err(RangeError::TooLong);
        }
        let unreadable = || match self.objects.is_spent() {
            true => RangeError::TooLong,
            false => RangeError::Unreadable(name.to_owned()),
        };
        let bytes = self.objects.commit(name).ok_or_else(unreadable)?;
        let mut commit = Commit::parse(name, &bytes).ok_or_else(unreadable)?;
        if self.shallow.contains(name) {
            commit.parents.clear();
        }
        self.read.insert(name.to_owned(), commit.clone());
        Ok(commit)
    }

    /// The commits that `tip` reaches and `base` does not, the newest first.
    fn range(&mut self, base: Option<&str>, tip: &str) -> Result<Vec<Commit>, RangeError> {
        let mut open: BTreeSet<(i64, String)> = BTreeSet::new();
        // Whether the base reaches a commit.
        let mut excluded: BTreeMap<String, bool> = BTreeMap::new();
        let mut found: Vec<String> = Vec::new();
        for (name, is_excluded) in [(Some(tip), false), (base, true)] {
            let Some(name) = name else { continue };
            open.insert((self.commit(name)?.seconds, name.to_owned()));
            *excluded.entry(name.to_owned()).or_default() |= is_excluded;
        }
        let mut left = SLOP;
        while let Some((_, name)) = open.pop_last() {
            let is_excluded = excluded.get(&name).copied().unwrap_or_default();
            let is_wanted =
                |(_, name): &(i64, String)| !excluded.get(name).copied().unwrap_or_default();
            if is_excluded && !open.iter().any(is_wanted) {
                left = left.saturating_sub(1);
                if left == 0 {
                    break;
                }
            }
            if !is_excluded {
                found.push(name.clone());
                if found.len() > COMMITS_READ_MAX {
                    return Err(RangeError::TooLong);
                }
            }
            for parent in self.commit(&name)?.parents {
                let known = excluded.get(&parent).copied();
                if known.is_none() || (is_excluded && known == Some(false)) {
                    excluded.insert(parent.clone(), is_excluded);
                    // A commit that turns out to be excluded is visited again, for its parents.
                    open.insert((self.commit(&parent)?.seconds, parent));
                }
            }
        }
        let is_in = |name: &String| !excluded.get(name).copied().unwrap_or_default();
        let mut seen = BTreeSet::new();
        let found: Vec<Commit> = found
            .into_iter()
            .filter(|name| is_in(name) && seen.insert(name.clone()))
            .filter_map(|name| self.read.get(&name).cloned())
            .collect();
        match found.len() > COMMITS_IN_RANGE_MAX {
            true => Err(RangeError::TooLong),
            false => Ok(found),
        }
    }
}

impl Repository {
    /// The commits of a range, the newest first: `BASE..TIP` (either side may be missing and then is
    /// `HEAD`), or the one commit that a name without `..` names. A side is a branch, a tag, `HEAD`
    /// or a whole commit name, with `^` or `~N` after it to go back to first parents.
    ///
    /// # Errors
    /// If a side names no commit, an object is missing, or the range is too long.
    pub fn commits(&self, range: &str) -> Result<Vec<Commit>, RangeError> {
        if let Some(storage) = self.unread_refs() {
            return Err(RangeError::References(storage.to_owned()));
        }
        let unknown = || RangeError::Unknown(range.to_owned());
        let objects = self.objects().ok_or_else(unknown)?;
        let shallow = self.shallow().lines().map(str::to_owned).collect();
        let mut walk = HistoryWalk { objects: &objects, shallow, read: BTreeMap::new() };
        let Some((base, tip)) = range.split_once("..") else {
            let name = self.side(range, &mut walk)?;
            return Ok(vec![walk.commit(&name)?]);
        };
        let side = |of: &str| if of.is_empty() { "HEAD".to_owned() } else { of.to_owned() };
        let base = self.side(&side(base), &mut walk)?;
        let tip = self.side(&side(tip), &mut walk)?;
        walk.range(Some(&base), &tip)
    }

    /// The commit that one side of a range names.
    fn side(&self, given: &str, walk: &mut HistoryWalk<'_>) -> Result<String, RangeError> {
        let unknown = || RangeError::Unknown(given.to_owned());
        let end = given.find(['^', '~']).unwrap_or(given.len());
        let (name, mut steps) = given.split_at(end);
        let mut at = self.named(name, walk.objects).ok_or_else(unknown)?;
        while !steps.is_empty() {
            let (sign, rest) = steps.split_at(1);
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (number, rest) = rest.split_at(digits);
            let count: usize = match (sign, number) {
                ("^" | "~", "") => 1,
                ("~", number) => number.parse().map_err(|_| unknown())?,
                _ => return Err(unknown()),
            };
            for _ in 0..count {
                let commit = walk.commit(&at)?;
                at = commit.parents.into_iter().next().ok_or_else(unknown)?;
            }
            steps = rest;
        }
        Ok(at)
    }

    /// The commit that a name without steps names.
    fn named(&self, name: &str, objects: &Objects) -> Option<String> {
        let is_safe =
            !name.is_empty() && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_safe {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let mut at = match name {
            "HEAD" | "@" => self.head()?,
            _ if is_name(&lower) => lower,
            _ => {
                let mut folders = REFERENCES.iter();
                folders.find_map(|folder| self.resolve(&format!("{folder}{name}")))?
            }
        };
        for _ in 0..TAGS_MAX {
            match objects.tagged(&at) {
                Some(next) => at = next,
                None => return Some(at),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_object_is_read_with_its_parts() {
        let name = "a".repeat(40);
        let bytes = format!(
            "tree {name}\nparent {p}\nauthor A B <a@b> 1700000000 +0100\ncommitter C <c@d> 1700000060 +0100\n\nsubject\n\nbody one\nbody two\n",
            p = "b".repeat(40)
        );
        let commit = Commit::parse(&name, bytes.as_bytes()).expect("a commit");
        assert_eq!(commit.parents, ["b".repeat(40)]);
        assert_eq!((commit.author.as_str(), commit.seconds), ("A B <a@b>", 1_700_000_060));
        assert_eq!((commit.subject(), commit.body()), ("subject", "body one\nbody two\n"));
        let bare =
            Commit::parse(&name, format!("tree {name}\ncommitter C <c@d> 1 +0000\n\n").as_bytes());
        assert_eq!(bare.map(|of| of.subject().to_owned()), Some(String::new()));
        assert_eq!(Commit::parse(&name, b"blob"), None);
    }
}
