//! A neutral entry as a line for the node, and back.

use klnode_formats::{FileFormat, ImportKey, NeutralEntry, Observed, Source, SourceLink, millis};
use klnode_git::{Repository, RepositoryIdentity, Roots};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The field of `extra` with the id of an entry that klnode wrote.
const KLNODE_ID: &str = "klnode_id";
/// Longest key; the node has the same limit.
const KEY_BYTES_MAX: usize = 1_024;
/// Longest place; the node has the same limit.
const PLACE_BYTES_MAX: usize = 4_096;
/// Milliseconds in a second.
const MILLIS_PER_SECOND: u64 = 1_000;
/// Thousandths of an observation.
const THOUSANDTHS: f64 = 1_000.0;

/// The repository that a corpus lies in.
#[derive(Default)]
pub(in super::super) struct CorpusIdentity {
    /// The repository, if the corpus lies in one with a commit.
    repository: Option<RepositoryIdentity>,
    /// The folder of the corpus in the repository, with a slash at the end; empty for its root.
    below: String,
    /// The beginning of the places of all files of the repository, else of the corpus.
    scope: String,
}

impl CorpusIdentity {
    /// Finds the repository of a folder.
    pub(super) fn of(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let scope = format!("dir:{}/", folder.display());
        let Ok(repository) = Repository::open(&folder) else {
            return Self { scope, ..Self::default() };
        };
        let root = repository.path().to_owned();
        let below = folder.strip_prefix(&root).ok().map(|path| path.to_string_lossy().into_owned());
        let below = below.filter(|path| !path.is_empty()).map(|path| format!("{path}/"));
        let identity = repository.identity(&Roots::default());
        let root = identity.roots().first().map(|root| format!("root:{root} "));
        match root {
            Some(scope) => {
                Self { repository: Some(identity), below: below.unwrap_or_default(), scope }
            }
            None => Self { scope, ..Self::default() },
        }
    }

    /// The beginning of the places of all files that links of the corpus can lead to.
    pub(super) fn scope(&self) -> &str {
        &self.scope
    }

    /// The beginning of the places of a file or folder of the corpus; of all of it for an empty path.
    pub(super) fn place_of(&self, path: &str) -> String {
        format!("{}{}{path}", self.scope, self.below)
    }

    /// The place of an entry in its file. A changed file finds its entry by it, on this machine.
    pub(super) fn place(&self, entry: &NeutralEntry) -> Option<String> {
        let path = entry.source.path.as_deref()?;
        let within = match &entry.key {
            ImportKey::External(id) => id.clone(),
            ImportKey::Place { within, .. } => within.clone(),
            // Without a name, a changed text is another entry.
            ImportKey::Text => {
                klnode_formats::digest(&format!("{}\n{}", entry.title, entry.content))
            }
        };
        Some(shortened(format!("{}#{within}", self.place_of(path)), PLACE_BYTES_MAX))
    }

    /// The key of an entry: its id, else its place in the repository. Without either, the node uses a
    /// digest of the text.
    fn key(&self, key: &ImportKey) -> Option<String> {
        let key = match (key, &self.repository) {
            (ImportKey::External(id), _) => id.clone(),
            (ImportKey::Place { path, within }, Some(_)) => {
                format!("{}#{within}", self.place_of(path))
            }
            _ => return None,
        };
        Some(shortened(key, KEY_BYTES_MAX))
    }
}

/// At most so many bytes of a key. The start stays readable, and a digest tells long keys apart.
fn shortened(key: String, bytes_max: usize) -> String {
    if key.len() <= bytes_max {
        return key;
    }
    let digest = klnode_formats::digest(&key);
    let mut end = bytes_max - digest.len() - 1;
    while !key.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}~{digest}", &key[..end])
}

/// The line of an entry.
pub(in super::super) fn of_entry(entry: &NeutralEntry, identity: &CorpusIdentity) -> Value {
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            line.insert(name.to_owned(), value);
        }
    };
    let source = &entry.source;
    put("title", json!(entry.title));
    put("content", json!(entry.content));
    put("type", json!(entry.kind));
    put("memory", json!(entry.memory));
    put("summary", json!(entry.summary));
    put("sub_type", json!(entry.sub_type));
    put("polarity", json!(entry.polarity));
    put("decay_class", json!(entry.decay_class));
    put("outcome", json!(entry.outcome));
    put("tags", json!(entry.tags));
    put("anchors", json!(entry.anchors));
    put("verify_steps", json!(entry.verify_steps));
    put("depends_on", json!(entry.depends_on));
    put("evidence", json!(entry.evidence));
    put("key", json!(identity.key(&entry.key)));
    put("place", json!(identity.place(entry)));
    put("id", source.extra.get(KLNODE_ID).cloned().unwrap_or_default());
    if entry.is_archived {
        put("archived", json!(true));
    }
    if let Some(id) =
        source.id.as_ref().filter(|id| **id != entry.title && id.len() <= KEY_BYTES_MAX)
    {
        put("external_keys", json!([id]));
    }
    let has_predicates = !entry.anchors.is_empty() || !entry.depends_on.is_empty();
    if let Some(repository) = identity.repository.as_ref().filter(|_| has_predicates) {
        put("repositories", json!([{"repository": repository.to_string()}]));
    }
    if let Some(Observed { successes, failures }) = entry.observed {
        let amount = |of: f64| Value::from((of.clamp(0.0, 1e6) * THOUSANDTHS).round() as u64);
        put("observed", json!({"successes": amount(successes), "failures": amount(failures)}));
    }
    if let (Some(path), Some(at)) = (&source.path, source.line) {
        put("context", json!([format!("file:{path}#{at}")]));
    }
    let mut words = json!(source);
    let dates = [&source.created, &source.updated, &source.confirmed];
    let newest = dates.into_iter().flatten().filter_map(|date| millis(date)).max();
    if let (Some(newest), Some(words)) = (newest, words.as_object_mut()) {
        words.insert("newest".into(), json!(newest));
    }
    put("source", words);
    Value::Object(line)
}

/// The fields of an exported line that files of other tools hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct ExportedLine {
    id: Option<String>,
    pub(super) state: Option<String>,
    title: Option<String>,
    content: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    memory: Option<String>,
    summary: Option<String>,
    sub_type: Option<String>,
    polarity: Option<String>,
    decay_class: Option<String>,
    outcome: Option<String>,
    tags: Vec<String>,
    anchors: Vec<String>,
    verify_steps: Vec<String>,
    depends_on: Vec<String>,
    evidence: Vec<String>,
    links: Vec<String>,
    archived: bool,
    observed: Option<LineCounts>,
    source: Option<Source>,
}

/// Observations of an exported line, in thousandths.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct LineCounts {
    successes: u64,
    failures: u64,
}

impl ExportedLine {
    /// The neutral entry; `None` for a line without text, such as that of a charter.
    pub(in super::super) fn into_entry(self) -> Option<NeutralEntry> {
        let mut source = self.source.unwrap_or_default();
        if source.format == FileFormat::Klnode.name() {
            for date in [&mut source.created, &mut source.updated, &mut source.confirmed] {
                *date = date.take().map(|date| klnode_formats::day(&date).unwrap_or(date));
            }
            for at in source.citations.iter_mut().filter_map(|of| of.cited_at.as_mut()) {
                let seconds = millis(at).map(|at| (at / MILLIS_PER_SECOND).to_string());
                *at = seconds.unwrap_or_else(|| at.clone());
            }
            source.id.clone_from(&self.id);
        }
        let links = self.links.iter().map(|link| {
            let (relation, target) = link.split_once(':').unwrap_or(("", link));
            let (relation, target) = (relation.to_owned(), target.to_owned());
            SourceLink { relation, target, ..SourceLink::default() }
        });
        let links = links.collect();
        Some(NeutralEntry {
            title: self.title?,
            content: self.content?,
            kind: self.kind,
            sub_type: self.sub_type,
            summary: self.summary,
            polarity: self.polarity,
            decay_class: self.decay_class,
            outcome: self.outcome,
            memory: self.memory,
            tags: self.tags,
            anchors: self.anchors,
            verify_steps: self.verify_steps,
            depends_on: self.depends_on,
            evidence: self.evidence,
            is_archived: self.archived,
            observed: self.observed.map(|LineCounts { successes, failures }| Observed {
                successes: successes as f64 / THOUSANDTHS,
                failures: failures as f64 / THOUSANDTHS,
            }),
            key: ImportKey::Text,
            klnode_id: self.id,
            links,
            written_path: None,
            source,
        })
    }
}
