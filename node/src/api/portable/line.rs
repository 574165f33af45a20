//! One line of an exported or imported file: JSONL, version 1.
//!
//! A line says what an entry says, for people and other programs, and brings the signed records
//! that say it, for a node. A line without records is plain: whoever imports it is its author. The
//! fields have the same names in both, so that an exported line without its records is a plain one.

use crate::api::places::predicates;
use crate::api::translate;
use crate::api::types::NewEntry;
use crate::engine::{self, Marks};
use crate::query::{self, Identity};
use crate::store::rows::OverlayRow;
use data_encoding::BASE64;
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::key::Signature;
use klnode_crdt::kind::{self, Kind};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::time::WallTime;
use klnode_crdt::view::{State, View};
use klnode_crdt::writer::Claim;
use serde::{Deserialize, Serialize};

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// What the first line of an exported file says it is.
pub const FORMAT: &str = "export";
/// The longest line, in bytes. An entry with more records than fit goes on in further lines.
pub const LINE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Lines in one request: they are committed together.
pub const LINES_MAX: usize = 500;
/// Bytes of lines in one request, unless a single line has more.
pub const LINES_BYTES_MAX: usize = 1024 * 1024;
/// The source format of plain lines, part of the ids of what is imported from them.
pub const PLAIN: &str = "jsonl";

/// The first line of an exported file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Always [`FORMAT`].
    pub klnode: String,
    /// Of the format.
    pub version: u32,
    /// Who exported it.
    pub node: String,
    /// Entries that follow, forgotten ones included.
    pub entries: u64,
}

/// A repository, and the predicates of the line that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineRepository {
    /// `root:HEX` for each root commit, then `remote:HOST/PATH`; one of the two may be missing.
    pub repository: String,
    /// Which predicates; all of the line unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<String>,
}

/// What one line says. Only `title` and `content` are needed in a plain one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Line {
    /// The entry's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Which further line of the same entry this is, from 2 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// Its citation code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `retracted`, `parked`, `forgotten` or `damaged`, if it is not live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What a plain line is called where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// One line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The knowledge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Semantic, procedural or episodic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Where it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// One sentence for short answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The finer type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// Positive, negative or neutral.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
    /// Ephemeral, stable or permanent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay_class: Option<String>,
    /// The thread it is scoped to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What a spike came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// That it comes from a failed piece of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_work: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Places in a checkout that it speaks of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<String>,
    /// How to check that it still holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verify_steps: Vec<String>,
    /// What must hold for it to be valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The repositories in which anchors and `depends_on` were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<LineRepository>,
    /// What other systems call it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external_keys: Vec<String>,
    /// Evidence, each as KIND:REF.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Where it was written, each as KIND:REF; counts less than evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Edges to other entries, each as RELATION:ID.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Whether it was put away.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// What was observed. The records of an exported line say it; of a plain line it becomes prior
    /// evidence here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The operator's marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Overlay>,
    /// What was signed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<SignedRecord>,
}

/// Observations of all authors, unweighted, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observed {
    /// It helped.
    pub successes: u64,
    /// It misled.
    pub failures: u64,
    /// It was found again independently.
    pub confirmations: u64,
}

/// The operator's marks on an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overlay {
    /// Ranked up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Not shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub muted: bool,
    /// Held to be wrong.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalidated: bool,
    /// The note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// That the node which takes them back has set them itself: a hash that it alone can make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

impl Overlay {
    /// The marks of a row; nothing if there are none.
    pub fn of(row: OverlayRow) -> Option<Self> {
        let OverlayRow { is_pinned, is_muted, is_invalidated, note, .. } = row;
        let (pinned, muted, invalidated) = (is_pinned, is_muted, is_invalidated);
        let overlay = Self { pinned, muted, invalidated, note, proof: None };
        Some(overlay).filter(|overlay| *overlay != Self::default())
    }

    /// As they are set. What was let in there may not be here: its operator decides.
    pub fn to_marks(&self) -> Marks {
        let on = |mark: bool| mark.then_some(true);
        Marks {
            pinned: on(self.pinned),
            muted: on(self.muted),
            invalidated: on(self.invalidated),
            note: self.note.clone(),
        }
    }
}

/// A record, verbatim, in base 64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedRecord {
    /// The header's bytes.
    pub header: String,
    /// The author's signature over them.
    pub signature: String,
    /// The payload's bytes, unless it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

impl SignedRecord {
    /// A record as it stands in a line.
    pub fn of(record: &Record) -> Self {
        let RawRecord { header, signature, payload } = record.to_raw();
        Self {
            header: BASE64.encode(&header),
            signature: BASE64.encode(signature.as_bytes()),
            payload: payload.map(|payload| BASE64.encode(&payload)),
        }
    }

    /// Verifies it.
    pub fn verify(&self) -> Result<Record, String> {
        let bytes = |name: &str, text: &str| {
            BASE64
                .decode(text.as_bytes())
                .map_err(|error| format!("{name} is not base 64: {error}"))
        };
        let signature = bytes("signature", &self.signature)?;
        let signature: [u8; 64] =
            signature.try_into().map_err(|_| "signature has not 64 bytes".to_owned())?;
        let payload = self.payload.as_deref().map(|text| bytes("payload", text)).transpose()?;
        let header = bytes("header", &self.header)?;
        let raw = RawRecord { header, signature: Signature::from_bytes(signature), payload };
        Record::verify(&raw).map_err(|refusal| refusal.to_string())
    }
}

/// How entries relate, by name.
pub(crate) const RELATIONS: [(Relation, &str); 4] = [
    (Relation::DERIVED_FROM, "derived_from"),
    (Relation::SUPERSEDES, "supersedes"),
    (Relation::SAME_AS, "same_as"),
    (Relation::RELATED, "related"),
];

/// What the line of an entry says that could not be read: nothing else of it is there.
pub const DAMAGED: &str = r#""state":"damaged""#;
/// What the line of a forgotten entry says.
pub const FORGOTTEN: &str = r#""state":"forgotten""#;
/// What a further line of an entry says.
pub const FURTHER: &str = r#","part":"#;

impl Line {
    /// What is left of an entry that cannot be read.
    pub fn damaged(entry: EntryId) -> Self {
        let (id, code) = (Some(entry.to_string()), Some(kind::code_digits(entry)));
        Self { id, code, state: Some("damaged".to_owned()), ..Self::default() }
    }

    /// What a view shows, without records.
    pub fn of(entry: EntryId, view: &View) -> Self {
        // What was taken away is not there.
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
            let (_, name) = RELATIONS.iter().find(|(relation, _)| *relation == link.relation)?;
            Some(format!("{name}:{}", link.to))
        };
        Self {
            id: Some(entry.to_string()),
            code: Some(query::code(entry, view)),
            state: state.map(str::to_owned),
            title: text(Register::TITLE),
            content: text(Register::CONTENT),
            kind: text(Register::TYPE),
            memory: view.origin.as_ref().map(|origin| origin.memory().to_string()),
            workspace: view.origin.as_ref().map(|origin| translate::workspace(origin.workspace())),
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

    /// Reads a line; an error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        // A list of values would be taken for the fields in their order.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err("is no JSON object".to_owned());
        }
        let error = match serde_json::from_slice(bytes) {
            Ok(line) => return Ok(line),
            Err(error) => error,
        };
        let Ok(fields) = serde_json::from_slice::<serde_json::Map<_, _>>(bytes) else {
            return Err(format!("is no JSON object: {}", in_column(&error)));
        };
        // All fields are optional: the one that does not read alone is the one that is wrong.
        let reads = |field: &(String, serde_json::Value)| {
            let alone = serde_json::Map::from_iter([field.clone()]);
            serde_json::from_value::<Self>(alone.into())
        };
        for field in fields {
            match reads(&field) {
                Err(_) if !is_field(&field.0) => {
                    return Err(format!("{}: there is no such field", field.0));
                }
                Err(error) => return Err(format!("{}: {error}", field.0)),
                Ok(_) => {}
            }
        }
        Err(in_column(&error))
    }

    /// What a plain line is called where it comes from: its key or id, else a digest of its text,
    /// so that whoever imports the same file gets the same entries.
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

    /// Leaves out that the entry is the same as another, or takes its place: a line without records
    /// does not say that.
    pub fn leave_places(&mut self) {
        let places = [Relation::SAME_AS, Relation::SUPERSEDES];
        self.links.retain(|link| !parse_link(link).is_ok_and(|of| places.contains(&of.relation)));
    }

    /// What a plain line says was observed elsewhere. Confirmations are none here: prior evidence
    /// confirms nothing.
    pub fn prior_evidence(&self) -> Option<engine::PriorEvidence> {
        let Observed { successes, failures, .. } = self.observed?;
        let (successes, failures) = (Thousandths(successes), Thousandths(failures));
        let prior = engine::PriorEvidence { successes, failures };
        Some(prior).filter(|prior| *prior != engine::PriorEvidence::default())
    }

    /// The entry that a plain line stands for. What has no evidence cites `context`: the line.
    pub fn into_entry(
        self,
        cited_by: AuthorId,
        now: WallTime,
        context: &str,
    ) -> Result<engine::NewEntry, String> {
        let cited_by = cited_by.to_string();
        let failed_work = self.failed_work.map(|text| (Register::FAILED_WORK, text));
        let (links, external_keys) = (self.links, self.external_keys);
        let repositories = self.repositories;
        let new = NewEntry {
            title: self.title.ok_or("title: it is missing")?,
            content: self.content.ok_or("content: it is missing")?,
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
        let mut new = translate::new_entry(new, &cited_by, now)
            .map_err(|error| error.message().to_owned())?;
        new.registers.extend(failed_work);
        new.claims.extend(external_keys.into_iter().map(|k| Claim::Add(TextSet::EXTERNAL_KEYS, k)));
        for LineRepository { repository, predicates: of } in repositories {
            let identity: Identity = repository.parse().map_err(|()| {
                format!(
                    "repositories: `{repository}` is no repository; write it as root:HEX, \
                     remote:HOST/PATH, or both"
                )
            })?;
            let said = predicates(&new.claims);
            let meant = said.filter(|text| of.is_empty() || of.iter().any(|one| one == text));
            let elements = query::bind(&identity, meant);
            new.claims.extend(elements.into_iter().map(query::recorded));
        }
        for link in links {
            new.claims.push(Claim::Link(parse_link(&link)?));
        }
        new.claims.extend(self.archived.then_some(Claim::Archive(Presence::Present)));
        let lacks_evidence = new.citations.is_empty() && self.context.is_empty();
        // Norms take no evidence but what they were given.
        let cites_itself = new.memory != Memory::Episodic && new.kind != Kind::Norm;
        let itself = (lacks_evidence && cites_itself).then(|| format!("file:{context}"));
        for text in self.context.iter().chain(&itself) {
            let (evidence_type, evidence_ref) =
                text.split_once(':').ok_or("context: write it as KIND:REF, as in file:notes.md")?;
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
fn repositories(view: &View) -> Vec<LineRepository> {
    let sets = [TextSet::ANCHORS, TextSet::DEPENDS_ON];
    let texts = sets.iter().filter_map(|set| view.texts.get(set)).flat_map(|of| of.keys());
    let bindings = query::Bindings::of(view);
    let grouped = bindings.by_repository(texts.map(String::as_str)).into_iter();
    let line = |(identity, predicates): (&Identity, Vec<&str>)| LineRepository {
        repository: identity.to_string(),
        predicates: predicates.into_iter().map(str::to_owned).collect(),
    };
    grouped.map(line).collect()
}

fn observed(view: &View) -> Option<Observed> {
    let mut observed = Observed::default();
    let total = |of: &[klnode_crdt::gcounter::Counted]| of.iter().map(|c| c.amount.0).sum::<u64>();
    for counts in view.counts.values() {
        observed.successes += total(&counts.successes);
        observed.failures += total(&counts.failures);
        observed.confirmations += total(&counts.confirmations);
    }
    Some(observed).filter(|observed| *observed != Observed::default())
}

/// What is wrong with a line, and where in it. Which line it is says whoever knows the file.
fn in_column(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    match text.strip_suffix(&format!(" at line {} column {column}", error.line())) {
        Some(what) => format!("{what}, in column {column}"),
        None => text,
    }
}

/// Whether a line may have a field of that name: any value but one of the wrong type tells.
fn is_field(name: &str) -> bool {
    let alone = serde_json::Map::from_iter([(name.to_owned(), serde_json::Value::Null)]);
    let read = serde_json::from_value::<Line>(alone.into());
    read.err().is_none_or(|error| !error.to_string().starts_with("unknown field"))
}

fn parse_link(text: &str) -> Result<Link, String> {
    let link = text.split_once(':').and_then(|(relation, to)| {
        let (relation, _) = RELATIONS.iter().find(|(_, name)| *name == relation)?;
        Some(Link { relation: *relation, to: EntryId::from_hex(to)? })
    });
    link.ok_or_else(|| {
        let known = RELATIONS.map(|(_, name)| name).join(", ");
        format!("links: `{text}` is not RELATION:ID with one of {known}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_told_so_and_the_number_of_its_line_is_left_to_others() {
        let told = |line: &str| Line::parse(line.as_bytes()).unwrap_err();
        for line in ["[]", " [\"id\"]", "nonsense", "5", "\"text\""] {
            assert_eq!(told(line), "is no JSON object", "{line}");
        }
        let broken = told(r#"{"title": nonsense}"#);
        assert!(broken.starts_with("is no JSON object: expected ident, in column "), "{broken}");
        let twice = told(r#"{"title": "a", "title": "b"}"#);
        assert!(twice.starts_with("duplicate field `title`, in column "), "{twice}");
        assert!(Line::parse(b" {}").is_ok());
    }
}
