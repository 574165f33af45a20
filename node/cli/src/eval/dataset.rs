//! A labelled set: entries, and queries with the entries that answer them.

use crate::VerbError;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The most bytes of a set, which is held in memory.
const SET_BYTES_MAX: usize = 256 * 1024 * 1024;

/// An entry of a set.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Entry {
    /// The id that queries refer to.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) content: String,
    #[serde(default)]
    pub(super) tags: Vec<String>,
}

/// A query of a set.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Query {
    pub(super) query: String,
    /// The entries that answer it: ids of the set, or names of entries of the running node.
    #[serde(default)]
    pub(super) relevant: Vec<String>,
    /// A label for a query without a right answer, such as `near-topic` or `off-topic`.
    #[serde(default)]
    pub(super) none: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum DatasetLine {
    Query(Query),
    Entry(Entry),
}

/// A parsed set.
#[derive(Clone, Debug, Default)]
pub struct Set {
    pub(super) entries: Vec<Entry>,
    pub(super) queries: Vec<Query>,
}

impl Set {
    /// Reads a set, and checks that its queries refer to entries in it.
    pub fn read(path: &Path) -> Result<Self, VerbError> {
        let text = super::super::add::read(path, SET_BYTES_MAX)?;
        let mut set = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line: DatasetLine = serde_json::from_str(line).map_err(|_| {
                let at = format!("{}, line {}", path.display(), number + 1);
                VerbError::Input(format!(
                    "Cannot read {at}: it is neither an entry {{\"id\",\"title\",\"content\"}} \
                     nor a query {{\"query\",\"relevant\"}}."
                ))
            })?;
            match line {
                DatasetLine::Query(query) => set.queries.push(query),
                DatasetLine::Entry(entry) => set.entries.push(entry),
            }
        }
        set.check(path)?;
        Ok(set)
    }

    fn check(&self, path: &Path) -> Result<(), VerbError> {
        let bad = |problem: String| {
            Err(VerbError::Input(format!("Cannot use {}: {problem}.", path.display())))
        };
        if self.queries.is_empty() {
            return bad("it has no queries".into());
        }
        let ids: BTreeSet<&str> = self.entries.iter().map(|entry| entry.id.as_str()).collect();
        if ids.len() < self.entries.len() {
            return bad("two of its entries have the same id".into());
        }
        for query in &self.queries {
            let unknown = query.relevant.iter().find(|id| !ids.contains(id.as_str()));
            match unknown {
                Some(id) if !ids.is_empty() => {
                    return bad(format!("query `{}` names `{id}`, which is no entry", query.query));
                }
                _ => {}
            }
            if query.relevant.is_empty() != query.none.is_some() {
                return bad(format!("query `{}` needs either `relevant` or `none`", query.query));
            }
        }
        Ok(())
    }

    /// Whether the set contains entries.
    pub fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }
}
