//! The change of a file between two imports, as an edit of its entry.
//!
//! Three versions decide: the file at the last import, the file now, and the entry now. A field that
//! only the file changed follows the file; a field that only people changed here stays. A field that
//! both changed is a conflict. The version of the last import is kept as digests, so that no text is
//! stored twice. Pure: the caller reads and writes.

use klnode_api_types::transfer::KeptSide;
use klnode_crdt::claims::{Citation, Claims, TextSet};
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::NewEntry;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a digest of one value.
const DIGEST_BYTES: usize = 8;
/// The field of the archived state.
const ARCHIVED: &str = "archived";
/// The field of the evidence.
const EVIDENCE: &str = "evidence";
/// Registers that a file can clear. The others keep their value if the file states none.
const CLEARED: [Register; 2] = [Register::SUMMARY, Register::OUTCOME];

/// Digests of the values of a file, by field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct FieldDigests(BTreeMap<String, BTreeSet<String>>);

/// The fields of an entry in a file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileFields {
    registers: BTreeMap<Register, String>,
    elements: BTreeMap<TextSet, BTreeSet<String>>,
    citations: Vec<Citation>,
    is_archived: bool,
}

/// The result of comparing the three versions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileEdit {
    /// The file states nothing new.
    Unchanged,
    /// The entry follows the file with these claims.
    Edit(Vec<ClaimEdit>),
    /// These fields were changed in the file and here, differently.
    Conflict(Vec<&'static str>),
}

impl FieldDigests {
    /// The texts of an entry, as if a file had stated them.
    pub(super) fn of_texts(view: &EntryView) -> Self {
        let texts = view.registers.iter().map(|(at, shown)| (*at, shown.value.text.clone()));
        FileFields { registers: texts.collect(), ..FileFields::default() }.digests()
    }

    /// True if the file stated this text.
    pub(super) fn had_text(&self, title: &str, content: &str) -> bool {
        let has = |at: Register, text: &str| self.has(&register_field(at), text);
        has(Register::TITLE, title) && has(Register::CONTENT, content)
    }

    fn has(&self, field: &str, value: &str) -> bool {
        self.0.get(field).is_some_and(|of| of.contains(&digest(value)))
    }

    /// True if the field had this text, or none and the text is empty.
    fn had(&self, field: &str, text: &str) -> bool {
        self.has(field, text) || (text.is_empty() && !self.0.contains_key(field))
    }
}

impl FileFields {
    /// The fields of the entry that a line becomes.
    pub(super) fn of(new: &NewEntry) -> Self {
        let mut fields = Self::default();
        fields.registers.extend(new.registers.iter().cloned());
        let texts = [
            (Register::TITLE, new.title.as_str()),
            (Register::CONTENT, new.content.as_str()),
            (Register::TYPE, new.kind.name()),
        ];
        fields.registers.extend(texts.map(|(at, text)| (at, text.to_owned())));
        for claim in &new.claims {
            match claim {
                ClaimEdit::Add(set, text) => {
                    fields.elements.entry(*set).or_default().insert(text.clone());
                }
                ClaimEdit::Archive(presence) => {
                    fields.is_archived = *presence == Presence::Present;
                }
                _ => {}
            }
        }
        // The place of the entry in its file moves with every line above it.
        fields.citations = new.citations.iter().filter(|of| !of.is_context).cloned().collect();
        fields
    }

    /// The digests of the fields.
    pub(super) fn digests(&self) -> FieldDigests {
        let mut digests = BTreeMap::<String, BTreeSet<String>>::new();
        let mut put = |field: String, value: &str| {
            digests.entry(field).or_default().insert(digest(value));
        };
        for (at, text) in &self.registers {
            put(register_field(*at), text);
        }
        for (set, texts) in &self.elements {
            texts.iter().for_each(|text| put(set_field(*set), text));
        }
        for citation in &self.citations {
            put(EVIDENCE.into(), &evidence(citation));
        }
        if self.is_archived {
            put(ARCHIVED.into(), ARCHIVED);
        }
        FieldDigests(digests)
    }

    /// The change since `base`, the file at the last import. `own` are this node's claims, which
    /// alone can be withdrawn.
    pub(super) fn since(
        &self,
        base: &FieldDigests,
        (view, own): (&EntryView, &Claims),
        kept: Option<KeptSide>,
    ) -> FileEdit {
        let (mut claims, mut conflicts) = (Vec::new(), Vec::new());
        for (at, name) in Register::KNOWN {
            let cleared = Some("").filter(|_| CLEARED.contains(&at));
            let Some(text) = self.registers.get(&at).map(String::as_str).or(cleared) else {
                continue;
            };
            let (field, shown) = (register_field(at), view.text(at).unwrap_or_default());
            if text == shown || base.had(&field, text) {
                continue;
            }
            let has_rivals = view.registers.get(&at).is_some_and(|of| !of.rivals.is_empty());
            let is_edited_here = has_rivals || !base.had(&field, shown);
            match kept {
                Some(KeptSide::Entry) if is_edited_here => {}
                None if is_edited_here => conflicts.push(name),
                _ => claims.push(ClaimEdit::Set(at, text.to_owned())),
            }
        }
        if !conflicts.is_empty() {
            return FileEdit::Conflict(conflicts);
        }
        claims.extend(self.elements_since(base, view, own));
        let held = || view.citations.keys().filter(|of| !of.is_context).map(evidence);
        let is_new = |of: &&Citation| {
            let text = evidence(of);
            !base.has(EVIDENCE, &text) && !held().any(|held| held == text)
        };
        claims.extend(self.citations.iter().filter(is_new).cloned().map(ClaimEdit::Cite));
        let was_archived = base.has(ARCHIVED, ARCHIVED);
        match (was_archived, self.is_archived, view.archived.is_some()) {
            (false, true, false) => claims.push(ClaimEdit::Archive(Presence::Present)),
            (true, false, true) => claims.push(ClaimEdit::Archive(Presence::Withdrawn)),
            _ => {}
        }
        if claims.is_empty() { FileEdit::Unchanged } else { FileEdit::Edit(claims) }
    }

    fn elements_since(
        &self,
        base: &FieldDigests,
        view: &EntryView,
        own: &Claims,
    ) -> Vec<ClaimEdit> {
        let mut claims = Vec::new();
        for (set, texts) in &self.elements {
            let shown = view.texts.get(set);
            let is_new = |text: &&String| {
                !base.has(&set_field(*set), text)
                    && !shown.is_some_and(|shown| shown.contains_key(*text))
            };
            claims.extend(texts.iter().filter(is_new).map(|of| ClaimEdit::Add(*set, of.clone())));
        }
        for (set, said) in &own.texts {
            let stated = self.elements.get(set);
            let is_gone = |text: &&String| {
                base.has(&set_field(*set), text)
                    && !stated.is_some_and(|stated| stated.contains(*text))
            };
            let gone = said.present().filter(is_gone);
            claims.extend(gone.map(|text| ClaimEdit::Withdraw(*set, text.clone())));
        }
        claims
    }
}

fn register_field(at: Register) -> String {
    at.name().unwrap_or_default().to_owned()
}

fn set_field(set: TextSet) -> String {
    // The repositories of predicates are no set that readers see.
    set.name().unwrap_or("repositories").to_owned()
}

fn evidence(of: &Citation) -> String {
    format!("{}:{}", of.evidence_type, of.evidence_ref)
}

fn digest(value: &str) -> String {
    let hash = blake3::derive_key("klnode v1 imported field", value.as_bytes());
    data_encoding::HEXLOWER.encode(&hash[..DIGEST_BYTES])
}
