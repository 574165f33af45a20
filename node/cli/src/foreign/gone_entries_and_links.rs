//! The work after all lines of a corpus are sent: entries whose part of a file is gone, and links
//! between entries.
//!
//! The node knows neither the files nor their links, so it lists the places of the entries that it
//! imported, and the command line compares.

use super::super::api_path::{entry_path, escape};
use super::super::export_stream::receive;
use super::super::{ProgressSink, VerbError};
use super::entry_line_conversion::CorpusIdentity;
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
        is_of(corpus, identity, of)
            && !self.places.contains(&place_hash(&of.place))
            && self.problem_files.len() <= PROBLEM_FILES_MAX
            && !self.problem_files.contains(path)
    }
}

/// True if an import of the corpus wrote an entry.
fn is_of(corpus: &SourceCorpus, identity: &CorpusIdentity, of: &ImportedEntry) -> bool {
    let begin = match corpus.is_one_file {
        true => format!("{}#", identity.place_of(&corpus.files[0].path)),
        false => identity.place_of(&corpus.part),
    };
    of.source.format == corpus.format.name() && of.place.starts_with(&begin)
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

/// Compares the files with the entries of the node. The list of entries is read as a stream, so that
/// a large corpus costs only its names.
pub(super) async fn settle(
    corpus: &SourceCorpus,
    identity: &CorpusIdentity,
    (seen, is_dry_run): (&SeenParts, bool),
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Settled, VerbError> {
    let with_links = seen.has_links && !is_dry_run;
    let (mut settled, mut gone) = (Settled::default(), BTreeMap::new());
    let mut links = FileLinks::new(identity);
    each(identity.scope(), with_links, client, progress, |of| {
        if seen.lacks(corpus, identity, &of) {
            gone.insert(of.id.clone(), of);
        } else if with_links {
            links.add(&of);
        }
    })
    .await?;
    if !with_links && !gone.is_empty() {
        // Codes and titles take longer, so they are read only if an entry is listed.
        each(identity.scope(), true, client, progress, |of| {
            if let Some(found) = gone.get_mut(&of.id) {
                *found = of;
            }
        })
        .await?;
    }
    if with_links {
        let mut changed = Vec::new();
        each(identity.scope(), false, client, progress, |of| {
            if !gone.contains_key(&of.id) {
                let counted = is_of(corpus, identity, &of).then_some(&mut settled);
                changed.extend(links.change(&of, counted));
            }
        })
        .await?;
        write_links(&changed, client, progress).await?;
    }
    let gone = gone.into_values().filter(|of| !of.archived && !of.code.is_empty());
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

/// Calls `take` for each entry that this node imported from places with this beginning.
async fn each(
    scope: &str,
    titles: bool,
    client: &Client,
    progress: &mut dyn ProgressSink,
    mut take: impl FnMut(ImportedEntry),
) -> Result<(), VerbError> {
    let path = format!("/v1/imported?place={}&titles={titles}", escape(scope));
    let (mut pending, mut count) = (Vec::new(), 0);
    receive(client, &path, "All entries were imported; their links are incomplete.", |bytes| {
        pending.extend_from_slice(bytes);
        let mut rest = 0;
        while let Some(end) = pending[rest..].iter().position(|byte| *byte == b'\n') {
            let line = serde_json::from_slice(&pending[rest..rest + end]).map_err(|error| {
                VerbError::Failed(format!("The node sent a line that is no entry: {error}."))
            })?;
            take(line);
            count += 1;
            rest += end + 1;
        }
        pending.drain(..rest);
        progress.tell("comparing", count, None);
        Ok(())
    })
    .await
}

/// Makes the changed links.
async fn write_links(
    changed: &[LinkedImport],
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<(), VerbError> {
    let mut done = 0;
    for entries in changed.chunks(LINES_MAX) {
        let body = ImportLinks { entries: entries.to_vec() };
        let _: ImportLinksResult =
            client.send_json(Method::POST, "/v1/import/links", &body).await?;
        done += entries.len() as u64;
        progress.tell("linking", done, Some(changed.len() as u64));
    }
    Ok(())
}

/// The names of all imported entries of a repository or folder, and the links between them.
struct FileLinks<'a> {
    identity: &'a CorpusIdentity,
    /// One index for each workspace: a link to an entry of another one would reveal it.
    indexes: BTreeMap<String, LinkIndex>,
    /// Links that one entry states of another: start, workspace, file, relation and target.
    relations: Vec<[String; 5]>,
    /// The same links, by the id of the entry at which they start.
    stated: Option<BTreeMap<String, BTreeSet<String>>>,
}

impl<'a> FileLinks<'a> {
    fn new(identity: &'a CorpusIdentity) -> Self {
        let (indexes, relations) = (BTreeMap::new(), Vec::new());
        Self { identity, indexes, relations, stated: None }
    }

    fn add(&mut self, of: &ImportedEntry) {
        let path = path_of(of, self.identity.scope());
        self.indexes.entry(of.workspace.clone()).or_default().add(LinkTarget {
            entry: &of.id,
            path,
            line: of.source.line.unwrap_or_default(),
            title: &of.title,
            id: of.source.id.as_deref(),
        });
        for link in of.source.links.iter().filter(|link| !link.from.is_empty()) {
            let (from, relation, target) = (&link.from, &link.relation, &link.target);
            let parts = [from.as_str(), &of.workspace, path, relation, target];
            self.relations.push(parts.map(str::to_owned));
        }
    }

    /// The links that an entry must have now, if its file states others than at the last import. The
    /// links of the corpus are counted.
    fn change(
        &mut self,
        of: &ImportedEntry,
        mut counted: Option<&mut Settled>,
    ) -> Option<LinkedImport> {
        let stated = self.stated.take().unwrap_or_else(|| self.between_others());
        let index = self.indexes.get(&of.workspace)?;
        let mut now = stated.get(&of.id).cloned().unwrap_or_default();
        self.stated = Some(stated);
        let path = path_of(of, self.identity.scope());
        for link in &of.source.links {
            let start = match link.from.as_str() {
                "" => Some(of.id.as_str()),
                from => index.resolve(path, from),
            };
            let Some((_, end)) = start.zip(index.resolve(path, &link.target)) else {
                if let Some(settled) = &mut counted {
                    settled.unresolved_links += 1;
                }
                continue;
            };
            if let Some(settled) = &mut counted {
                settled.links += 1;
            }
            if link.from.is_empty() && end != of.id {
                now.insert(format!("{}:{end}", relation(&link.relation)));
            }
        }
        let before: BTreeSet<String> = of.links.iter().cloned().collect();
        let links = now.iter().cloned().collect();
        (now != before).then(|| LinkedImport { id: of.id.clone(), links })
    }

    /// The links that entries state of others.
    fn between_others(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut stated = BTreeMap::<String, BTreeSet<String>>::new();
        for [from, workspace, path, word, target] in &self.relations {
            let Some(index) = self.indexes.get(workspace) else { continue };
            let ends = index.resolve(path, from).zip(index.resolve(path, target));
            if let Some((start, end)) = ends.filter(|(start, end)| start != end) {
                let link = format!("{}:{end}", relation(word));
                stated.entry(start.to_owned()).or_default().insert(link);
            }
        }
        stated
    }
}

/// The path of the file of an entry below the scope.
fn path_of<'a>(of: &'a ImportedEntry, scope: &str) -> &'a str {
    let place = of.place.strip_prefix(scope).unwrap_or(&of.place);
    let path = of.source.path.as_deref().unwrap_or_default();
    let end = place.find(&format!("{path}#")).map_or(place.len(), |at| at + path.len());
    &place[..end]
}
