//! Builds signed records for a local author.
//!
//! A [`RecordBuilder`] takes the author's live records and a change, and returns the next record. The
//! first record of a boot opens a fresh slot. It includes the content of all older slots of the
//! author on that entry and facet, and lists them as absorbed. Later records of the boot increase
//! the counter of that slot. Existing values are copied byte for byte with their old stamps.
//!
//! The writer is pure: the caller passes in key, boot and stamp, and stores the record.

use crate::claims::{Citation, Claims, Link, TextSet};
use crate::entry::Entry;
use crate::entry_origin::Origin;
use crate::gcounter::Thousandths;
use crate::header::Facet;
use crate::ids::{AuthorId, Boot, Digest, EntryId, RetractionId};
use crate::lattice::Lattice;
use crate::limits::{LIVE_SLOTS_MAX, SET_ELEMENTS_MAX};
use crate::live_records::LiveRecords;
use crate::lww_set::{ElementState, LwwSet, Presence};
use crate::payload::Payload;
use crate::record::{Absence, Position, Record};
use crate::record_error::{RecordError, at_most};
use crate::register::{MvRegister, Register, RegisterValue};
use crate::retraction::RetractionSet;
use crate::signing_key::SecretKey;
use crate::tally::{Observation, Tally};
use crate::time::{Day, Hlc};
use crate::tombstone::Tombstone;
use crate::version_vector::{Slot, VersionVector};
use std::collections::BTreeSet;

/// One change to an author's claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimEdit {
    /// Sets a register. The new value replaces all held values, of all authors.
    Set(Register, String),
    /// Adds an element to a set.
    Add(TextSet, String),
    /// Withdraws an element that this author added.
    Withdraw(TextSet, String),
    /// Adds a citation.
    Cite(Citation),
    /// Adds a link to another entry.
    Link(Link),
    /// Withdraws a link that this author added.
    Unlink(Link),
    /// Archives (`Present`) or unarchives (`Withdrawn`) the entry.
    Archive(Presence),
}

/// Builds records of one author on one entry.
#[derive(Clone, Copy, Debug)]
pub struct RecordBuilder<'a> {
    /// The author's key, which signs the records.
    pub key: &'a SecretKey,
    /// The current process start.
    pub boot: Boot,
    /// The entry that the records are about.
    pub entry: EntryId,
    /// The author's own live records on the entry.
    pub own: &'a LiveRecords,
}

impl RecordBuilder<'_> {
    fn author(&self) -> AuthorId {
        self.key.author()
    }

    /// Applies changes to the author's claims. `held` is the whole entry with the claims of all
    /// authors: a new register value replaces the values of all of them.
    pub fn claim(
        &self,
        held: &Entry,
        origin: Option<Origin>,
        claims: &[ClaimEdit],
        stamp: Hlc,
    ) -> Result<Record, RecordError> {
        let (mut said, marks) = self.standing();
        // Keep one retraction in reserve, so that the author can still retract the new claims.
        let (taken_back, max) = (marks.ids().len(), LIVE_SLOTS_MAX - 2);
        at_most("the entry", "retractions by one author", taken_back, max)?;
        for claim in claims {
            self.say(&mut said, held, marks.ids(), claim, stamp);
        }
        let payload = Payload::Claims { origin, claims: said.without_replaced() };
        self.seal(payload, stamp)
    }

    /// True if the author has claims that are not retracted.
    pub fn has_claims(&self) -> bool {
        !self.standing().0.is_empty()
    }

    /// The author's claims that are not retracted, and its retractions. The latter include marks
    /// that are known only because a claim of a clone lists them in `after`.
    fn standing(&self) -> (Claims, RetractionSet) {
        let own = self.own.to_entry();
        let said = own.claims.get(&self.author()).cloned().unwrap_or_default();
        let mut marks = own.marks.get(&self.author()).cloned().unwrap_or_default();
        marks.join(said.marks());
        (said.without_suppressed(&marks), marks)
    }

    fn say(
        &self,
        said: &mut Claims,
        held: &Entry,
        after: &BTreeSet<RetractionId>,
        claim: &ClaimEdit,
        stamp: Hlc,
    ) {
        // A later operation of the author on the same element gets a greater stamp, even if the
        // clock went backwards.
        let word = |before: Option<&ElementState>, presence| {
            let floor = before.map_or(stamp, |before| before.stamp.successor());
            ElementState { stamp: stamp.max(floor), presence, after: after.clone() }
        };
        match claim {
            ClaimEdit::Set(register, text) => {
                let value = RegisterValue {
                    text: text.clone(),
                    stamp,
                    author: self.author(),
                    replaces: self.replaced(said, held, *register),
                    after: after.clone(),
                };
                let own = said.registers.entry(*register).or_default();
                own.insert(self.entry, *register, value);
            }
            ClaimEdit::Add(set, text) => {
                say_in(said.texts.entry(*set).or_default(), text, |before| {
                    word(before, Presence::Present)
                });
            }
            ClaimEdit::Withdraw(set, text) => {
                say_in(said.texts.entry(*set).or_default(), text, |before| {
                    word(before, Presence::Withdrawn)
                });
            }
            ClaimEdit::Cite(citation) => {
                say_in(&mut said.citations, citation, |before| word(before, Presence::Present));
            }
            ClaimEdit::Link(link) => {
                say_in(&mut said.links, link, |before| word(before, Presence::Present));
            }
            ClaimEdit::Unlink(link) => {
                say_in(&mut said.links, link, |before| word(before, Presence::Withdrawn));
            }
            ClaimEdit::Archive(presence) => {
                // The latest operation of all nodes of a person wins, so use a greater stamp than
                // any due operation known here, even if this clock is slightly behind.
                let known = held.claims.values().filter_map(|by| by.archival.as_ref());
                let known = known.filter(|of| of.stamp.is_due(stamp.wall())).max();
                said.archival = Some(word(known.max(said.archival.as_ref()), *presence));
            }
        }
    }

    /// The digests that a new value of a register replaces. Over the limit, the author's own values
    /// come first, then the creator's.
    fn replaced(&self, said: &Claims, held: &Entry, register: Register) -> BTreeSet<Digest> {
        let mut values: MvRegister = said.registers.get(&register).cloned().unwrap_or_default();
        for others in held.claims.values().filter_map(|by| by.registers.get(&register)) {
            values.join(others.clone());
        }
        let creator = held.origin.as_ref().and_then(Origin::creator);
        values.all_replaced(|author| match author {
            author if author == self.author() => 0,
            author if Some(author) == creator => 1,
            _ => 2,
        })
    }

    /// Adds an observation to the author's tally.
    pub fn observe(
        &self,
        of: Observation,
        amount: Thousandths,
        day: Day,
        stamp: Hlc,
    ) -> Result<Record, RecordError> {
        let mut tally = self.tally();
        tally.drop_reset();
        tally.fold(self.boot, day);
        tally.counter_mut(of).add(self.boot, day, amount);
        self.seal(Payload::Tally(tally), stamp)
    }

    /// Makes everything void that this author has counted so far. The caller must draw a new boot
    /// before it counts again.
    pub fn reset(&self, stamp: Hlc) -> Result<Record, RecordError> {
        let mut tally = self.tally();
        tally.reset.join(tally.boots());
        tally.drop_reset();
        self.seal(Payload::Tally(tally), stamp)
    }

    /// Signs the author's whole state in a facet again, so that a newer record of its own does not
    /// cover an older one by age alone. The caller draws a new boot first, which makes this record
    /// open a fresh slot.
    pub fn carry_over(&self, facet: Facet, stamp: Hlc) -> Result<Record, RecordError> {
        let payload = match facet {
            Facet::Tally => Payload::Tally(self.tally()),
            Facet::Claims | Facet::Edit | Facet::Retraction | Facet::Tombstone => {
                let (claims, _) = self.standing();
                let origin = self.own.to_entry().origin;
                Payload::Claims { origin, claims: claims.without_replaced() }
            }
        };
        self.seal(payload, stamp)
    }

    /// Retracts all claims of the author.
    pub fn retract(&self, origin: Option<Origin>, stamp: Hlc) -> Result<Record, RecordError> {
        let mark = RetractionSet::id(self.entry, self.author(), self.boot, stamp);
        self.seal(Payload::Retraction { origin, mark }, stamp)
    }

    /// Deletes the entry with a tombstone.
    pub fn forget(&self, tombstone: Tombstone, stamp: Hlc) -> Result<Record, RecordError> {
        self.seal(Payload::Tombstone(tombstone), stamp)
    }

    fn tally(&self) -> Tally {
        self.own.to_entry().tallies.remove(&self.author()).unwrap_or_default()
    }

    fn seal(&self, payload: Payload, stamp: Hlc) -> Result<Record, RecordError> {
        let (place, counter, absorbs) = self.position(payload.facet());
        let at = Position { entry: self.entry, place, counter, stamp, absorbs };
        Record::seal(at, payload, self.key)
    }

    /// The slot, counter and absorbed slots of the next record: the next counter in the slot of
    /// this boot, or a fresh slot.
    fn position(&self, facet: Facet) -> (Slot, u64, Vec<(Slot, u64)>) {
        // The payload of a stripped record was never seen here, so the new record must not list it.
        let seen = |record: &&Record| record.absence() != Some(Absence::Stripped);
        let own: Vec<VersionVector> =
            self.own.facet(facet).filter(seen).map(Record::version).collect();
        let newest = own.iter().filter(|version| version.place.boot == self.boot);
        if let Some(open) = newest.max_by_key(|version| (version.place, version.counter)) {
            let absorbs = open.absorbs.iter().map(|(place, counter)| (*place, *counter));
            return (open.place, open.counter + 1, absorbs.collect());
        }
        let (generation, absorbs) = VersionVector::opening(own.iter());
        (Slot { generation, boot: self.boot }, 1, absorbs.into_iter().collect())
    }
}

/// Records an operation on an element, based on the author's previous one. Over the size limit,
/// drops the elements with the oldest withdrawals.
fn say_in<E: Ord + Clone>(
    set: &mut LwwSet<E>,
    element: &E,
    word: impl FnOnce(Option<&ElementState>) -> ElementState,
) {
    let word = word(set.word(element));
    set.say(element.clone(), word);
    while set.len() > SET_ELEMENTS_MAX && set.drop_oldest_withdrawn() {}
}
