//! What an entry that others will have names, although it should not leave the house; and what their
//! nodes may not show it for.
//!
//! Flags are for its writer. They keep nothing back and change no judgement; what this person alone
//! has (`local`, `main`, what is in a thread) and what others wrote has none.

use super::places::remotes_of;
use super::{Found, Reading, border};
use crate::store::Error;
use klnode_crdt::claims::TextSet;
use klnode_crdt::lww::Register;
use klnode_crdt::view::{State, View};
use klnode_scoring::scan::share::Border;

/// The topic of what the scan says. The text then names the severity and the rule, and nothing that
/// stands in the field.
pub const SCANNED: &str = "scan";
/// Flags of one entry that are told.
const FLAGS_MAX: usize = 32;
/// Registers that others read.
const REGISTERS: [(Register, &str); 3] =
    [(Register::TITLE, "title"), (Register::CONTENT, "content"), (Register::SUMMARY, "summary")];
/// Sets that they read.
const SETS: [TextSet; 4] =
    [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS, TextSet::DEPENDS_ON];

/// Something to look at before others have an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareFlag {
    /// In which field.
    pub field: &'static str,
    /// What it is about.
    pub topic: &'static str,
    /// What it says there.
    pub text: String,
}

impl Reading<'_> {
    /// What to look at before others have an entry, field by field.
    pub fn share_flags(&self, found: &Found) -> Result<Vec<ShareFlag>, Error> {
        let view = &found.view;
        let workspace = view.origin.as_ref().map(|origin| origin.workspace());
        let Some(workspace) = workspace.filter(|id| !id.is_personal()) else {
            return Ok(Vec::new());
        };
        let is_private = view.text(Register::THREAD).is_some_and(|thread| !thread.is_empty());
        if found.is_foreign() || is_private || view.state != State::Live {
            return Ok(Vec::new());
        }
        let doubts = border::doubts(texts(view)).map(|(field, rule)| {
            let text = format!("{}: {}", rule.severity.name(), rule.name);
            ShareFlag { field, topic: SCANNED, text }
        });
        let mut flags: Vec<ShareFlag> = doubts.collect();
        let own = remotes_of(self.snapshot, &self.society, workspace)?;
        let border = self.reader.border();
        for (field, text) in texts(view) {
            flags.extend(border.flags_beside(text, &own).into_iter().map(|flag| ShareFlag {
                field,
                topic: flag.topic.name(),
                text: text[flag.span].to_owned(),
            }));
        }
        flags.truncate(FLAGS_MAX);
        Ok(flags)
    }
}

impl super::Reader {
    /// Compiled when it is first needed.
    fn border(&self) -> &Border {
        self.border.get_or_init(|| {
            let names = self.numbers.organisation_names.iter();
            Border::new(&names.map(String::as_str).collect::<Vec<_>>(), &[])
        })
    }
}

/// Every text of an entry that others read, by field.
fn texts(view: &View) -> impl Iterator<Item = (&'static str, &str)> {
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
