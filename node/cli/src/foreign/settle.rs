//! The work after all lines of a corpus are sent: entries whose part of a file is gone, and links
//! between entries.
//!
//! The node knows neither the files nor their links, so it lists the places of the entries that it
//! imported, and the command line compares.

use super::super::api_path::{entry_path, escape};
use super::super::export_stream::receive;
use super::super::{ProgressSink, VerbError};
use super::line::CorpusIdentity;
use hyper::Method;
use klnode_api_types::ChangeResult;
use klnode_api_types::export_file::LINES_MAX;
use klnode_api_types::transfer::{ImportLinks, ImportLinksResult, ImportedEntry, LinkedImport};
use klnode_client::Client;
use klnode_formats::{LinkIndex, LinkTarget, SourceCorpus, relation};
use serde::Serialize;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

/// Files with problems that are remembered. With more, no entry counts as gone.
const PROBLEM_FILES_MAX: usize = 10_000;

/// The parts of the files that a corpus has now.
#[derive(Debug, Default)]
pub(super) struct SeenParts {
    /// Hashes of the places.
    places: HashSet<u64>,
    /// Files of which a part cannot be read: their entries are not gone.
    problem_files: HashSet<String>,
    /// True if a file has a link.
    pub(super) has_links: bool,
}

impl SeenParts {
    /// Notes places, by their hashes.
    pub(super) fn see(&mut self, places: &[u64]) {
        self.places.extend(places);
    }

    /// Notes a part that cannot be read.
    pub(super) fn see_problem(&mut self, file: &str) {
        if self.problem_files.len() <= PROBLEM_FILES_MAX {
            self.problem_files.insert(file.to_owned());
        }
    }

    /// True if the corpus no longer has the part of an entry that it had before.
    fn lacks(&self, corpus: &SourceCorpus, identity: &CorpusIdentity, of: &ImportedEntry) -> bool {
        let path = of.source.path.as_deref().unwrap_or_default();
        let begin = match corpus.is_one_file {
            true => format!("{}#", identity.place_of(&corpus.files[0].path)),
            false => identity.place_of(""),
        };
        of.source.format == corpus.format.name()
            && of.place.starts_with(&begin)
            && !self.places.contains(&place_hash(&of.place))
            && self.problem_files.len() <= PROBLEM_FILES_MAX
            && !self.problem_files.contains(path)
    }
}

/// The hash by which a place is remembered.
pub(super) fn place_hash(place: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    place.hash(&mut hasher);
    hasher.finish()
}

/// An entry whose part of a file is gone.
#[derive(Clone, Debug, Serialize)]
pub(super) struct GoneEntry {
    pub(super) id: String,
    pub(super) code: String,
    pub(super) title: String,
    pub(super) file: String,
}

/// The result of the work.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Settled {
    /// Entries whose part of a file is gone.
    pub(super) gone: Vec<GoneEntry>,
    /// Of these, the entries that were retracted.
    pub(super) retracted: u64,
    /// Links of the files that lead to an entry.
    pub(super) links: u64,
    /// Links of the files that stay words.
    pub(super) unresolved_links: u64,
}

/// Compares the files with the entries of the node.
pub(super) async fn settle(
    corpus: &SourceCorpus,
    identity: &CorpusIdentity,
    (seen, is_dry_run): (&SeenParts, bool),
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Settled, VerbError> {
    let with_links = seen.has_links && !is_dry_run;
    let mut imported = fetch(identity.scope(), with_links, client, progress).await?;
    let is_gone = |of: &ImportedEntry| seen.lacks(corpus, identity, of);
    if !with_links && imported.iter().any(is_gone) {
        imported = fetch(identity.scope(), true, client, progress).await?;
    }
    let mut settled = Settled::default();
    let (gone, held): (Vec<_>, Vec<_>) = imported.into_iter().partition(|of| is_gone(of));
    if with_links {
        let files = Files::new(&held, identity);
        files.link(&mut settled, client, progress).await?;
    }
    let gone = gone.into_iter().filter(|of| !of.archived);
    settled.gone = gone
        .map(|of| {
            let ImportedEntry { id, code, title, source, .. } = of;
            GoneEntry { id, code, title, file: source.path.unwrap_or_default() }
        })
        .collect();
    Ok(settled)
}

/// Retracts the entries whose part of a file is gone.
pub(super) async fn retract(settled: &mut Settled, client: &Client) -> Result<(), VerbError> {
    for entry in &settled.gone {
        let path = entry_path(&entry.id, "/retract")?;
        let _: ChangeResult = client.send_json(Method::POST, &path, &()).await?;
        settled.retracted += 1;
    }
    Ok(())
}

async fn fetch(
    scope: &str,
    titles: bool,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Vec<ImportedEntry>, VerbError> {
    let path = format!("/v1/imported?place={}&titles={titles}", escape(scope));
    let (mut pending, mut entries) = (Vec::new(), Vec::new());
    receive(client, &path, "All entries were imported; their links are incomplete.", |bytes| {
        pending.extend_from_slice(bytes);
        let mut rest = 0;
        while let Some(end) = pending[rest..].iter().position(|byte| *byte == b'\n') {
            let line = serde_json::from_slice(&pending[rest..rest + end]).map_err(|error| {
                VerbError::Failed(format!("The node sent a line that is no entry: {error}."))
            })?;
            entries.push(line);
            rest += end + 1;
        }
        pending.drain(..rest);
        progress.tell("comparing", entries.len() as u64, None);
        Ok(())
    })
    .await?;
    Ok(entries)
}

/// The imported entries of a repository or folder, and the links between them.
struct Files<'a> {
    entries: &'a [ImportedEntry],
    scope: &'a str,
    /// The beginning of the places of the corpus.
    corpus: String,
    /// One index for each workspace: a link to an entry of another one would reveal it.
    indexes: BTreeMap<&'a str, LinkIndex>,
}

impl<'a> Files<'a> {
    fn new(entries: &'a [ImportedEntry], identity: &'a CorpusIdentity) -> Self {
        let (scope, corpus) = (identity.scope(), identity.place_of(""));
        let mut indexes = BTreeMap::<&str, LinkIndex>::new();
        for of in entries {
            indexes.entry(&of.workspace).or_default().add(LinkTarget {
                entry: &of.id,
                path: path_of(of, scope),
                line: of.source.line.unwrap_or_default(),
                title: &of.title,
                id: of.source.id.as_deref(),
            });
        }
        Self { entries, scope, corpus, indexes }
    }

    /// Makes the links of the files.
    async fn link(
        &self,
        settled: &mut Settled,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<(), VerbError> {
        let wanted = self.wanted(settled);
        let has_changed = |of: &&ImportedEntry| {
            let before: BTreeSet<&String> = of.links.iter().collect();
            wanted.get(of.id.as_str()).map_or(!before.is_empty(), |now| {
                now.len() != before.len() || now.iter().any(|link| !before.contains(link))
            })
        };
        let changed: Vec<LinkedImport> = self
            .entries
            .iter()
            .filter(has_changed)
            .map(|of| {
                let links = wanted.get(of.id.as_str()).cloned().unwrap_or_default();
                LinkedImport { id: of.id.clone(), links: links.into_iter().collect() }
            })
            .collect();
        for (at, entries) in changed.chunks(LINES_MAX).enumerate() {
            let body = ImportLinks { entries: entries.to_vec() };
            let _: ImportLinksResult =
                client.send_json(Method::POST, "/v1/import/links", &body).await?;
            let done = (at * LINES_MAX + entries.len()) as u64;
            progress.tell("linking", done, Some(changed.len() as u64));
        }
        Ok(())
    }

    /// The links of each entry, by its id. Those of the corpus are counted.
    fn wanted(&self, settled: &mut Settled) -> BTreeMap<String, BTreeSet<String>> {
        let mut wanted = BTreeMap::<String, BTreeSet<String>>::new();
        for of in self.entries {
            let Some(index) = self.indexes.get(of.workspace.as_str()) else { continue };
            let (path, is_counted) =
                (path_of(of, self.scope), u64::from(of.place.starts_with(&self.corpus)));
            for link in &of.source.links {
                let start = match link.from.as_str() {
                    "" => Some(of.id.as_str()),
                    from => index.resolve(path, from),
                };
                let Some((start, end)) = start.zip(index.resolve(path, &link.target)) else {
                    settled.unresolved_links += is_counted;
                    continue;
                };
                settled.links += is_counted;
                if start != end {
                    let link = format!("{}:{end}", relation(&link.relation));
                    wanted.entry(start.to_owned()).or_default().insert(link);
                }
            }
        }
        wanted
    }
}

/// The path of the file of an entry below the scope.
fn path_of<'a>(of: &'a ImportedEntry, scope: &str) -> &'a str {
    let place = of.place.strip_prefix(scope).unwrap_or(&of.place);
    let path = of.source.path.as_deref().unwrap_or_default();
    let end = place.find(&format!("{path}#")).map_or(place.len(), |at| at + path.len());
    &place[..end]
}
