//! How an honest author writes: from what it holds and what it wants to say to a signed record.
//!
//! The first record after a start opens a fresh slot that includes, and names, all the author's
//! older slots on that entry and facet; later ones count up in it. Own values are carried along
//! verbatim, nothing is stamped anew. Pure: keys, boot and stamps come in as arguments.

use crate::claims::{Citation, Claims, Link, TextSet};
use crate::entry::Entry;
use crate::gcounter::Thousandths;
use crate::gset::{GSet, Presence, Word};
use crate::header::Facet;
use crate::holding::Holding;
use crate::ids::{AuthorId, Boot, Digest, EntryId, MarkId};
use crate::key::SecretKey;
use crate::lattice::Lattice;
use crate::limits::{LIVE_SLOTS_MAX, SET_ELEMENTS_MAX};
use crate::lww::{Lww, Register, Value};
use crate::origin::Origin;
use crate::payload::Payload;
use crate::record::{Absence, Position, Record, Refusal, at_most};
use crate::retraction::Marks;
use crate::tally::{Observation, Tally};
use crate::time::{Day, Hlc};
use crate::tombstone::Tombstone;
use crate::version::{Place, Version};
use std::collections::BTreeSet;

/// One thing an author claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Puts a text into a register, over all values held.
    Set(Register, String),
    /// Adds a text to a set.
    Add(TextSet, String),
    /// Takes back a text this author added.
    Withdraw(TextSet, String),
    /// Brings evidence.
    Cite(Citation),
    /// Draws an edge.
    Link(Link),
    /// Takes back an edge this author drew.
    Unlink(Link),
    /// Wants the entry archived, or not any more.
    Archive(Presence),
}

/// An author at work on one entry.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// Signs.
    pub key: &'a SecretKey,
    /// The process start that writes.
    pub boot: Boot,
    /// About which entry.
    pub entry: EntryId,
    /// The author's own live records on it.
    pub own: &'a Holding,
}

impl Writer<'_> {
    fn author(&self) -> AuthorId {
        self.key.author()
    }

    /// Claims something. `held` is the whole entry as held here: a text replaces every value of
    /// its register, whoever wrote it.
    pub fn claim(
        &self,
        held: &Entry,
        origin: Option<Origin>,
        claims: &[Claim],
        stamp: Hlc,
    ) -> Result<Record, Refusal> {
        let (mut said, marks) = self.standing();
        // One is left to take back what is said now.
        let (taken_back, max) = (marks.ids().len(), LIVE_SLOTS_MAX - 2);
        at_most("the entry", "retractions by one author", taken_back, max)?;
        for claim in claims {
            self.say(&mut said, held, marks.ids(), claim, stamp);
        }
        let payload = Payload::Claims { origin, claims: said.without_replaced() };
        self.seal(payload, stamp)
    }

    /// Whether the author has claimed anything that stands.
    pub fn has_claims(&self) -> bool {
        !self.standing().0.is_empty()
    }

    /// What the author has claimed and not taken back, and what it has taken back: also marks
    /// that are only known because a claim of another life comes after them.
    fn standing(&self) -> (Claims, Marks) {
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
        after: &BTreeSet<MarkId>,
        claim: &Claim,
        stamp: Hlc,
    ) {
        // An author's later word on one thing carries the greater stamp, whatever its clock says.
        let word = |before: Option<&Word>, presence| {
            let floor = before.map_or(stamp, |before| before.stamp.successor());
            Word { stamp: stamp.max(floor), presence, after: after.clone() }
        };
        match claim {
            Claim::Set(register, text) => {
                let value = Value {
                    text: text.clone(),
                    stamp,
                    author: self.author(),
                    replaces: self.replaced(said, held, *register),
                    after: after.clone(),
                };
                let own = said.registers.entry(*register).or_default();
                own.insert(self.entry, *register, value);
            }
            Claim::Add(set, text) => say_in(said.texts.entry(*set).or_default(), text, |before| {
                word(before, Presence::Present)
            }),
            Claim::Withdraw(set, text) => {
                say_in(said.texts.entry(*set).or_default(), text, |before| {
                    word(before, Presence::Withdrawn)
                });
            }
            Claim::Cite(citation) => {
                say_in(&mut said.citations, citation, |before| word(before, Presence::Present));
            }
            Claim::Link(link) => {
                say_in(&mut said.links, link, |before| word(before, Presence::Present));
            }
            Claim::Unlink(link) => {
                say_in(&mut said.links, link, |before| word(before, Presence::Withdrawn));
            }
            Claim::Archive(presence) => {
                // Of one person's nodes the newest word decides: a clock that is a little behind must
                // not lose to a word that is known here.
                let known = held.claims.values().filter_map(|by| by.archival.as_ref());
                let known = known.filter(|of| of.stamp.is_due(stamp.wall())).max();
                said.archival = Some(word(known.max(said.archival.as_ref()), *presence));
            }
        }
    }

    /// What a new value of a register replaces: own values first, then the creator's.
    fn replaced(&self, said: &Claims, held: &Entry, register: Register) -> BTreeSet<Digest> {
        let mut values: Lww = said.registers.get(&register).cloned().unwrap_or_default();
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

    /// Counts an observation.
    pub fn observe(
        &self,
        of: Observation,
        amount: Thousandths,
        day: Day,
        stamp: Hlc,
    ) -> Result<Record, Refusal> {
        let mut tally = self.tally();
        tally.drop_reset();
        tally.fold(self.boot, day);
        tally.counter_mut(of).add(self.boot, day, amount);
        self.seal(Payload::Tally(tally), stamp)
    }

    /// Declares void what this author has counted so far. The caller draws a new boot for what
    /// is counted from now on.
    pub fn reset(&self, stamp: Hlc) -> Result<Record, Refusal> {
        let mut tally = self.tally();
        tally.reset.join(tally.boots());
        tally.drop_reset();
        self.seal(Payload::Tally(tally), stamp)
    }

    /// Signs again, in a fresh slot, all the author has said in a facet: when an older record of
    /// its own would otherwise be covered for its age alone.
    pub fn carry_over(&self, facet: Facet, stamp: Hlc) -> Result<Record, Refusal> {
        let payload = match facet {
            Facet::Tally => Payload::Tally(self.tally()),
            Facet::Claims | Facet::Retraction | Facet::Tombstone => {
                let (claims, _) = self.standing();
                let origin = self.own.to_entry().origin;
                Payload::Claims { origin, claims: claims.without_replaced() }
            }
        };
        self.seal(payload, stamp)
    }

    /// Takes back all the author has claimed.
    pub fn retract(&self, origin: Option<Origin>, stamp: Hlc) -> Result<Record, Refusal> {
        let mark = Marks::id(self.entry, self.author(), self.boot, stamp);
        self.seal(Payload::Retraction { origin, mark }, stamp)
    }

    /// Forgets the entry.
    pub fn forget(&self, tombstone: Tombstone, stamp: Hlc) -> Result<Record, Refusal> {
        self.seal(Payload::Tombstone(tombstone), stamp)
    }

    fn tally(&self) -> Tally {
        self.own.to_entry().tallies.remove(&self.author()).unwrap_or_default()
    }

    fn seal(&self, payload: Payload, stamp: Hlc) -> Result<Record, Refusal> {
        let (place, counter, absorbs) = self.position(payload.facet());
        let at = Position { entry: self.entry, place, counter, stamp, absorbs };
        Record::seal(at, payload, self.key)
    }

    /// The next place: further on in the slot of this boot, or a fresh slot.
    fn position(&self, facet: Facet) -> (Place, u64, Vec<(Place, u64)>) {
        // What came stripped was never seen: it must not be claimed as included.
        let seen = |record: &&Record| record.absence() != Some(Absence::Stripped);
        let own: Vec<Version> = self.own.facet(facet).filter(seen).map(Record::version).collect();
        let newest = own.iter().filter(|version| version.place.boot == self.boot);
        if let Some(open) = newest.max_by_key(|version| (version.place, version.counter)) {
            let absorbs = open.absorbs.iter().map(|(place, counter)| (*place, *counter));
            return (open.place, open.counter + 1, absorbs.collect());
        }
        let (generation, absorbs) = Version::opening(own.iter());
        (Place { generation, boot: self.boot }, 1, absorbs.into_iter().collect())
    }
}

/// Says a word on an element that comes after the author's last word on it. At the limit of the
/// set the element that was withdrawn longest ago makes room.
fn say_in<E: Ord + Clone>(
    set: &mut GSet<E>,
    element: &E,
    word: impl FnOnce(Option<&Word>) -> Word,
) {
    let word = word(set.word(element));
    set.say(element.clone(), word);
    while set.len() > SET_ELEMENTS_MAX && set.drop_oldest_withdrawn() {}
}
