//! Flags contents of an entry that should not be shared outside, and findings for which other nodes
//! may exclude it. Decides whether an entry is held until the operator releases it.
//!
//! Entries that only the owner has (`local`, `main`, entries in a thread) and entries by other
//! authors have no flags. A finding of the scan informs the author and holds nothing; a flag of the
//! disclosure rules holds the entry, unless `scan.disclosure` is `warn`.

use super::author_standing::AuthorStanding;
use super::caller_workspace::remotes_of;
use super::{AssessedEntry, ReadContext, content_scan};
use klnode_config::units::DisclosureRule;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_scoring::content_scan::disclosure::{Border, SCAN_TOPIC};
use klnode_store::Error;
use klnode_store::peers::row_types::ReleaseState;
use klnode_store::row_types::MarksRow;
use std::collections::BTreeSet;

/// Maximum number of flags of one entry that are listed.
const FLAGS_MAX: usize = 32;
/// Maximum number of flags that one decision of the operator releases.
pub const RELEASED_FLAGS_MAX: usize = 256;
/// Registers that recipients can read.
const REGISTERS: [(Register, &str); 3] =
    [(Register::TITLE, "title"), (Register::CONTENT, "content"), (Register::SUMMARY, "summary")];
/// Sets that recipients can read.
const SETS: [TextSet; 4] =
    [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS, TextSet::DEPENDS_ON];

/// A part of an entry to review before sharing it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShareFlag {
    /// The field of the entry that contains the flagged text.
    pub field: &'static str,
    /// The category of the flag, such as a host name, or `scan` for a finding of the content scan.
    pub topic: &'static str,
    /// The flagged text, or severity and rule for `scan`.
    pub text: String,
}

impl ShareFlag {
    /// The number under which the store keeps that the operator released this passage. The field
    /// does not count: a passage that is released in the title may also be in the content.
    pub fn number(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.topic.as_bytes()).update(&[0]).update(self.text.as_bytes());
        let mut number = [0; 8];
        number.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_be_bytes(number)
    }
}

impl ReadContext<'_> {
    /// The flags of an entry, field by field.
    pub fn share_flags(&self, found: &AssessedEntry) -> Result<Vec<ShareFlag>, Error> {
        let Some(workspace) = shared_workspace(&found.view).filter(|_| !found.is_foreign()) else {
            return Ok(Vec::new());
        };
        let doubts = content_scan::doubts(texts(&found.view)).map(|(field, rule)| {
            let text = format!("{}: {}", rule.severity.name(), rule.name);
            ShareFlag { field, topic: SCAN_TOPIC, text }
        });
        let mut flags: Vec<ShareFlag> = doubts.collect();
        flags.extend(self.disclosures(workspace, texts(&found.view))?);
        flags.truncate(FLAGS_MAX);
        Ok(flags)
    }

    /// The passages of an entry that the disclosure rules flag and that the operator has not
    /// released.
    pub fn unreleased(&self, found: &AssessedEntry) -> Result<Vec<ShareFlag>, Error> {
        let Some(workspace) = shared_workspace(&found.view) else { return Ok(Vec::new()) };
        let mut flags = self.disclosures(workspace, texts(&found.view))?;
        flags.retain(|flag| !found.overlay.released.contains(&flag.number()));
        Ok(flags)
    }

    /// The passages of some texts that the disclosure rules flag for the members of a workspace.
    pub fn disclosures<'t>(
        &self,
        workspace: WorkspaceId,
        texts: impl Iterator<Item = (&'static str, &'t str)>,
    ) -> Result<Vec<ShareFlag>, Error> {
        let own = remotes_of(self.snapshot, &self.membership, workspace)?;
        let border = self.reader.border();
        let flags = texts.flat_map(|(field, text)| {
            border.flags_beside(text, &own).into_iter().map(move |flag| ShareFlag {
                field,
                topic: flag.topic.name(),
                text: text[flag.span].to_owned(),
            })
        });
        Ok(flags.collect())
    }

    /// True if the operator has to decide about an entry before peers and agents get it: this person
    /// wrote its text, its workspace has other members, and a passage is flagged and not released. An
    /// entry that another person's node already receives is not held, because that node keeps it.
    pub(super) fn is_held(
        &self,
        entry: EntryId,
        view: &EntryView,
        author: Option<&AuthorStanding>,
        overlay: &MarksRow,
    ) -> Result<bool, Error> {
        let is_own = author.is_some_and(AuthorStanding::is_own);
        let Some(workspace) = shared_workspace(view).filter(|_| is_own) else {
            return Ok(false);
        };
        if self.reader.numbers.disclosure == DisclosureRule::Warn || !self.has_others(workspace) {
            return Ok(false);
        }
        let has_any = |view: &EntryView| {
            texts(view).any(|(_, text)| !self.reader.border().flags(text).is_empty())
        };
        if !self.reader.disclosing.get(view, has_any) {
            return Ok(false);
        }
        let flags = self.disclosures(workspace, texts(view))?;
        let is_waiting = flags.iter().any(|flag| !overlay.released.contains(&flag.number()));
        Ok(is_waiting && !self.is_disclosed(entry)?)
    }

    /// True if a workspace has a member besides this person's nodes. A charter that cannot be read
    /// may have any member; a workspace without a charter here is shared with no peer.
    fn has_others(&self, workspace: WorkspaceId) -> bool {
        let mine = &self.membership.mine;
        self.membership.workspaces.get(&workspace).is_some_and(|shared| {
            shared.is_damaged || shared.charter.members.iter().any(|key| !mine.contains(key))
        })
    }

    /// True if another person's node receives the records of an entry.
    fn is_disclosed(&self, entry: EntryId) -> Result<bool, Error> {
        let others = self.membership.peers.keys();
        for peer in others.filter(|peer| !self.membership.mine.contains(peer)) {
            if self.snapshot.release(*peer, entry)?.out == ReleaseState::Open {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The flagged passages that an edit would add to an entry of this node, and that cannot be held:
    /// because `scan.disclosure` is `refuse`, or because a peer already receives the entry.
    pub fn disclosed_by_edit(
        &self,
        found: &AssessedEntry,
        edits: &[ClaimEdit],
    ) -> Result<Vec<ShareFlag>, Error> {
        let Some(workspace) = shared_workspace(&found.view).filter(|_| !found.is_foreign()) else {
            return Ok(Vec::new());
        };
        let is_holdable = match self.reader.numbers.disclosure {
            _ if !self.has_others(workspace) => true,
            DisclosureRule::Warn => true,
            DisclosureRule::Hold => !self.is_disclosed(found.entry)?,
            DisclosureRule::Refuse => false,
        };
        if is_holdable {
            return Ok(Vec::new());
        }
        let known: BTreeSet<u64> = self
            .disclosures(workspace, texts(&found.view))?
            .iter()
            .map(ShareFlag::number)
            .collect();
        let mut flags = self.disclosures(workspace, edits.iter().filter_map(edited_text))?;
        flags.retain(|flag| {
            let number = flag.number();
            !known.contains(&number) && !found.overlay.released.contains(&number)
        });
        flags.truncate(FLAGS_MAX);
        Ok(flags)
    }

    /// The flagged passages of a new entry that must be refused.
    pub fn disclosed_by_new<'t>(
        &self,
        workspace: WorkspaceId,
        is_private: bool,
        texts: impl Iterator<Item = (&'static str, &'t str)>,
    ) -> Result<Vec<ShareFlag>, Error> {
        let is_refused = self.reader.numbers.disclosure == DisclosureRule::Refuse;
        let is_shared = !workspace.is_personal() && !is_private && self.has_others(workspace);
        if !is_refused || !is_shared {
            return Ok(Vec::new());
        }
        let mut flags = self.disclosures(workspace, texts)?;
        flags.truncate(FLAGS_MAX);
        Ok(flags)
    }
}

impl super::Reader {
    /// The disclosure rules, compiled on first use.
    fn border(&self) -> &Border {
        self.border.get_or_init(|| {
            let names = self.numbers.organisation_names.iter();
            Border::new(&names.map(String::as_str).collect::<Vec<_>>(), &[])
        })
    }
}

/// The workspace of an entry whose text will be shared; `None` for an entry that stays with its
/// owner or in a thread.
fn shared_workspace(view: &EntryView) -> Option<WorkspaceId> {
    let workspace = view.origin.as_ref().map(|origin| origin.workspace());
    let workspace = workspace.filter(|id| !id.is_personal())?;
    let is_private = view.text(Register::THREAD).is_some_and(|thread| !thread.is_empty());
    (!is_private && view.state == State::Live).then_some(workspace)
}

/// The text that an edit adds, if recipients can read it.
pub fn edited_text(edit: &ClaimEdit) -> Option<(&'static str, &str)> {
    match edit {
        ClaimEdit::Set(register, text) => {
            let known = REGISTERS.iter().find(|(known, _)| known == register);
            known.map(|(_, field)| (*field, text.as_str()))
        }
        ClaimEdit::Add(set, text) if SETS.contains(set) => {
            Some((set.name().unwrap_or_default(), text))
        }
        ClaimEdit::Cite(citation) => Some(("evidence", &citation.evidence_ref)),
        _ => None,
    }
}

/// All texts of an entry that recipients can read, by field.
fn texts(view: &EntryView) -> impl Iterator<Item = (&'static str, &str)> {
    let registers = REGISTERS
        .into_iter()
        .filter_map(move |(register, field)| view.text(register).map(|text| (field, text)));
    let sets = SETS.into_iter().flat_map(move |set| {
        let texts = view.texts.get(&set).into_iter().flat_map(|texts| texts.keys());
        texts.map(move |text| (set.name().unwrap_or_default(), text.as_str()))
    });
    let evidence = view.citations.keys().map(|of| ("evidence", of.evidence_ref.as_str()));
    registers.chain(sets).chain(evidence)
}
