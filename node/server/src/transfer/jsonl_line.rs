//! One line of an exported or imported file: JSONL, version 1.
//!
//! A line contains the text of an entry, for people and other programs, and its signed records, for
//! a node. A line without records is plain: the importing node becomes its author. The fields have
//! the same names in both, so an exported line without its records is a plain line.

use crate::convert::entries;
use crate::exported_marks::ExportedMarks;
use crate::new_entry_defaults::predicates;
use data_encoding::BASE64;
use klnode_api_types::{ImportedSource, NewEntry};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::{self, EntryType};
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::Signature;
use klnode_crdt::time::WallTime;
use klnode_git::RepositoryIdentity;
use serde::{Deserialize, Serialize};

/// The source format of plain lines, part of the ids of entries that are imported from them.
pub const PLAIN: &str = "jsonl";

/// A repository and the predicates of the line that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineRepository {
    /// `root:HEX` for each root commit, then `remote:HOST/PATH`; one of the two may be missing.
    pub repository: String,
    /// The predicates. Default: all predicates of the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<String>,
}

/// One line. A plain line needs only `title` and `content`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonlLine {
    /// The entry's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The number of a further line of the same entry, from 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// The entry's citation code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `retracted`, `parked`, `forgotten` or `damaged`; absent for a live entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The key of a plain line in its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The place of a plain line in a file of another tool on this machine. It is kept on this node
    /// and exported nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The title, one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The entry type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `semantic`, `procedural` or `episodic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The workspace: `main`, `local` or an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// One sentence for short answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// A finer division of the entry type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// `positive`, `negative` or `neutral`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
    /// `ephemeral`, `stable` or `permanent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay_class: Option<String>,
    /// The thread to which the entry is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The result of a spike: `confirmed`, `rejected`, `partial` or `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Set if the entry comes from failed work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_work: Option<String>,
    /// Tags; `/` separates levels, as in `auth/jwt`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Places in a checkout that the entry is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<String>,
    /// Steps that check whether the entry still holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verify_steps: Vec<String>,
    /// Predicates that must hold for the entry to be valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The repositories in which anchors and `depends_on` were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<LineRepository>,
    /// The entry's keys in other systems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external_keys: Vec<String>,
    /// Evidence, each item as KIND:REF.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Citations that only record where the entry was written, each as KIND:REF. They count less
    /// than evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Links to other entries, each as RELATION:ID.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// True if the entry is archived.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Observation counts. For an exported line the records contain them; for a plain line they
    /// become prior evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<ExportedCounts>,
    /// The words of the file of another tool that the entry comes from. For a plain line, its format
    /// is part of the entry's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ImportedSource>,
    /// The operator's marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<ExportedMarks>,
    /// The signed records; empty in a plain line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<SignedRecord>,
}

/// Observations of all authors, unweighted, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExportedCounts {
    /// The entry helped.
    pub successes: u64,
    /// The entry misled.
    pub failures: u64,
    /// The entry was confirmed independently.
    pub confirmations: u64,
}

/// A record, verbatim, in base 64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedRecord {
    /// The bytes of the header.
    pub header: String,
    /// The author's signature over the header.
    pub signature: String,
    /// The bytes of the payload; absent if it was retracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

impl SignedRecord {
    /// Encodes a record.
    pub fn of(record: &Record) -> Self {
        let RawRecord { header, signature, payload } = record.to_raw();
        Self {
            header: BASE64.encode(&header),
            signature: BASE64.encode(signature.as_bytes()),
            payload: payload.map(|payload| BASE64.encode(&payload)),
        }
    }

    /// Decodes the record and verifies its signature.
    pub fn verify(&self) -> Result<Record, String> {
        let bytes = |name: &str, text: &str| {
            BASE64
                .decode(text.as_bytes())
                .map_err(|error| format!("{name} is not base 64: {error}"))
        };
        let signature = bytes("signature", &self.signature)?;
        let signature: [u8; 64] =
            signature.try_into().map_err(|_| "signature does not have 64 bytes".to_owned())?;
        let payload = self.payload.as_deref().map(|text| bytes("payload", text)).transpose()?;
        let header = bytes("header", &self.header)?;
        let raw = RawRecord { header, signature: Signature::from_bytes(signature), payload };
        Record::verify(&raw).map_err(|refusal| refusal.to_string())
    }
}

impl JsonlLine {
    /// The line of an entry that cannot be read.
    pub fn damaged(entry: EntryId) -> Self {
        let (id, code) = (Some(entry.to_string()), Some(entry_type::code_digits(entry)));
        Self { id, code, state: Some("damaged".to_owned()), ..Self::default() }
    }

    /// The line of a view, without records.
    pub fn of(entry: EntryId, view: &EntryView) -> Self {
        // A withdrawn text is stored as an empty one.
        let text =
            |register| view.text(register).filter(|text| !text.is_empty()).map(str::to_owned);
        let set = |set| view.texts.get(&set).map_or(Vec::new(), |of| of.keys().cloned().collect());
        let cited = |is_context: bool| {
            let citations = view.citations.keys().filter(|of| of.is_context == is_context);
            citations.map(|of| format!("{}:{}", of.evidence_type, of.evidence_ref)).collect()
        };
        let state = match view.state {
            State::Live => None,
            State::Parked => Some("parked"),
            State::Retracted => Some("retracted"),
            State::Forgotten => Some("forgotten"),
        };
        let link = |link: &Link| {
            let name = link.relation.name()?;
            Some(format!("{name}:{}", link.to))
        };
        Self {
            id: Some(entry.to_string()),
            code: Some(klnode_query::code(entry, view)),
            state: state.map(str::to_owned),
            title: text(Register::TITLE),
            content: text(Register::CONTENT),
            kind: text(Register::TYPE),
            memory: view.origin.as_ref().map(|origin| origin.memory().to_string()),
            workspace: view.origin.as_ref().map(|origin| entries::workspace(origin.workspace())),
            summary: text(Register::SUMMARY),
            sub_type: text(Register::SUB_TYPE),
            polarity: text(Register::POLARITY),
            decay_class: text(Register::DECAY_CLASS),
            thread: text(Register::THREAD),
            outcome: text(Register::OUTCOME),
            failed_work: text(Register::FAILED_WORK),
            tags: set(TextSet::TAGS),
            anchors: set(TextSet::ANCHORS),
            verify_steps: set(TextSet::VERIFY_STEPS),
            depends_on: set(TextSet::DEPENDS_ON),
            repositories: repositories(view),
            external_keys: set(TextSet::EXTERNAL_KEYS),
            evidence: cited(false),
            context: cited(true),
            links: view.links.keys().filter_map(link).collect(),
            archived: view.archived.is_some(),
            observed: observed(view),
            ..Self::default()
        }
    }

    /// Parses a line; an error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        // serde would accept an array as the fields in their order.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err("not a JSON object".to_owned());
        }
        let error = match serde_json::from_slice(bytes) {
            Ok(line) => return Ok(line),
            Err(error) => error,
        };
        let Ok(fields) = serde_json::from_slice::<serde_json::Map<_, _>>(bytes) else {
            return Err(format!("not a JSON object: {}", in_column(&error)));
        };
        // All fields are optional, so the field that does not parse alone is the wrong one.
        let reads = |field: &(String, serde_json::Value)| {
            let alone = serde_json::Map::from_iter([field.clone()]);
            serde_json::from_value::<Self>(alone.into())
        };
        for field in fields {
            match reads(&field) {
                Err(_) if !is_field(&field.0) => {
                    return Err(format!("{}: unknown field", field.0));
                }
                Err(error) => return Err(format!("{}: {error}", field.0)),
                Ok(_) => {}
            }
        }
        Err(in_column(&error))
    }

    /// The key of a plain line in its source: its `key` or `id`, else a digest of its text. Every
    /// node that imports the same file thus gets the same entries.
    pub fn source_key(&self) -> String {
        let given = self.key.clone().or_else(|| self.id.clone());
        given.unwrap_or_else(|| {
            let mut hasher = blake3::Hasher::new_derive_key("klnode v1 import key");
            for text in [&self.title, &self.content] {
                let bytes = text.as_deref().unwrap_or_default().as_bytes();
                hasher.update(&(bytes.len() as u64).to_be_bytes()).update(bytes);
            }
            hasher.finalize().to_hex().to_string()
        })
    }

    /// The words of another tool's file; `None` for a line of klnode itself.
    pub fn foreign_source(&self) -> Option<&ImportedSource> {
        self.source.as_ref().filter(|source| source.format != "klnode")
    }

    /// Drops links by which the entry duplicates or supersedes another: a line without records may
    /// not claim that.
    pub fn leave_places(&mut self) {
        let places = [Relation::SAME_AS, Relation::SUPERSEDES];
        self.links.retain(|link| !parse_link(link).is_ok_and(|of| places.contains(&of.relation)));
    }

    /// The observations of a plain line as prior evidence. Confirmations are dropped: prior
    /// evidence confirms nothing.
    pub fn prior_evidence(&self) -> Option<klnode_engine::PriorEvidence> {
        let ExportedCounts { successes, failures, .. } = self.observed?;
        let (successes, failures) = (Thousandths(successes), Thousandths(failures));
        let prior = klnode_engine::PriorEvidence { successes, failures };
        Some(prior).filter(|prior| *prior != klnode_engine::PriorEvidence::default())
    }

    /// The entry that a plain line becomes. An entry without evidence cites `context`, which names
    /// the line.
    pub fn into_entry(
        self,
        cited_by: AuthorId,
        now: WallTime,
        context: &str,
    ) -> Result<klnode_engine::NewEntry, String> {
        let cited_by = cited_by.to_string();
        let failed_work = self.failed_work.map(|text| (Register::FAILED_WORK, text));
        let (links, external_keys) = (self.links, self.external_keys);
        let repositories = self.repositories;
        let new = NewEntry {
            title: self.title.ok_or("title: missing")?,
            content: self.content.ok_or("content: missing")?,
            kind: self.kind,
            memory: self.memory,
            workspace: self.workspace,
            summary: self.summary,
            sub_type: self.sub_type,
            polarity: self.polarity,
            decay_class: self.decay_class,
            outcome: self.outcome,
            thread: self.thread,
            tags: self.tags,
            evidence: self.evidence,
            source: None,
            anchors: self.anchors,
            verify_steps: self.verify_steps,
            depends_on: self.depends_on,
            task: None,
            checkout: None,
        };
        let mut new =
            entries::new_entry(new, &cited_by, now).map_err(|error| error.message().to_owned())?;
        new.registers.extend(failed_work);
        new.claims
            .extend(external_keys.into_iter().map(|k| ClaimEdit::Add(TextSet::EXTERNAL_KEYS, k)));
        for LineRepository { repository, predicates: of } in repositories {
            let identity: RepositoryIdentity = repository.parse().map_err(|()| {
                format!(
                    "repositories: `{repository}` is not a repository; write it as root:HEX, \
                     remote:HOST/PATH, or both"
                )
            })?;
            let said = predicates(&new.claims);
            let meant = said.filter(|text| of.is_empty() || of.iter().any(|one| one == text));
            let elements = klnode_query::bind(&identity, meant);
            new.claims.extend(elements.into_iter().map(klnode_query::recorded));
        }
        for link in links {
            new.claims.push(ClaimEdit::Link(parse_link(&link)?));
        }
        new.claims.extend(self.archived.then_some(ClaimEdit::Archive(Presence::Present)));
        let lacks_evidence = new.citations.is_empty() && self.context.is_empty();
        // Norms never get a default citation.
        let cites_itself = new.memory != Memory::Episodic && new.kind != EntryType::Norm;
        let itself = (lacks_evidence && cites_itself).then(|| format!("file:{context}"));
        for text in self.context.iter().chain(&itself) {
            let (evidence_type, evidence_ref) = text
                .split_once(':')
                .ok_or("context: write it as KIND:REF, such as file:notes.md")?;
            new.citations.push(Citation {
                evidence_type: evidence_type.into(),
                evidence_ref: evidence_ref.into(),
                cited_by: cited_by.clone(),
                cited_at: now,
                is_context: true,
            });
        }
        Ok(new)
    }
}

/// The repositories of a view's predicates.
fn repositories(view: &EntryView) -> Vec<LineRepository> {
    let sets = [TextSet::ANCHORS, TextSet::DEPENDS_ON];
    let texts = sets.iter().filter_map(|set| view.texts.get(set)).flat_map(|of| of.keys());
    let bindings = klnode_query::Bindings::of(view);
    let grouped = bindings.by_repository(texts.map(String::as_str)).into_iter();
    let line = |(identity, predicates): (&RepositoryIdentity, Vec<&str>)| LineRepository {
        repository: identity.to_string(),
        predicates: predicates.into_iter().map(str::to_owned).collect(),
    };
    grouped.map(line).collect()
}

fn observed(view: &EntryView) -> Option<ExportedCounts> {
    let mut observed = ExportedCounts::default();
    let total =
        |of: &[klnode_crdt::gcounter::CountedAmount]| of.iter().map(|c| c.amount.0).sum::<u64>();
    for counts in view.counts.values() {
        observed.successes += total(&counts.successes);
        observed.failures += total(&counts.failures);
        observed.confirmations += total(&counts.confirmations);
    }
    Some(observed).filter(|observed| *observed != ExportedCounts::default())
}

/// The problem with its column. The caller adds the number of the line in the file.
fn in_column(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    match text.strip_suffix(&format!(" at line {} column {column}", error.line())) {
        Some(what) => format!("{what}, in column {column}"),
        None => text,
    }
}

/// True if a line may have a field of this name: only an unknown field fails with this message.
fn is_field(name: &str) -> bool {
    let alone = serde_json::Map::from_iter([(name.to_owned(), serde_json::Value::Null)]);
    let read = serde_json::from_value::<JsonlLine>(alone.into());
    read.err().is_none_or(|error| !error.to_string().starts_with("unknown field"))
}

fn parse_link(text: &str) -> Result<Link, String> {
    let link = text.split_once(':').and_then(|(relation, to)| {
        let relation = Relation::parse(relation)?;
        Some(Link { relation, to: EntryId::from_hex(to)? })
    });
    link.ok_or_else(|| {
        let known = Relation::KNOWN.map(|(_, name)| name).join(", ");
        format!("links: `{text}` is not RELATION:ID with one of {known}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_errors_name_the_column_and_not_the_line() {
        let problem = |line: &str| JsonlLine::parse(line.as_bytes()).unwrap_err();
        for line in ["[]", " [\"id\"]", "nonsense", "5", "\"text\""] {
            assert_eq!(problem(line), "not a JSON object", "{line}");
        }
        let broken = problem(r#"{"title": nonsense}"#);
        assert!(broken.starts_with("not a JSON object: expected ident, in column "), "{broken}");
        let duplicate = problem(r#"{"title": "a", "title": "b"}"#);
        assert!(duplicate.starts_with("duplicate field `title`, in column "), "{duplicate}");
        assert!(JsonlLine::parse(b" {}").is_ok());
    }
}
