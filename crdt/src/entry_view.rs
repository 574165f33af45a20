//! The view: an entry as one reader sees it at one moment.
//!
//! A view shows the claims of entitled authors. Claims of other authors are listed as proposals and
//! have no effect. The view passes on the counters of all authors without weights: weighting is a
//! judgement, and this crate makes no judgements.

use crate::claims::{Citation, Claims, Link, TextSet};
use crate::digest::{Context, FieldHasher};
use crate::entry::Entry;
use crate::entry_dates::Dates;
use crate::entry_origin::Origin;
use crate::entry_type::EntryType;
use crate::gcounter::CountedAmount;
use crate::ids::{AuthorId, Digest};
use crate::limits::VIEW_ELEMENTS_MAX;
use crate::lww_set::{ElementState, LwwSet, Presence};
use crate::register::{MvRegister, Register, RegisterValue, ShownValue};
use crate::tally::Tally;
use crate::time::{Day, Hlc, WallTime};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The authors whose claims a reader sees, for one workspace. The creator of an entry is always
/// entitled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entitlement {
    /// The reader's node and the other nodes of the same person.
    pub mine: BTreeSet<AuthorId>,
    /// The members of the entry's workspace.
    pub members: BTreeSet<AuthorId>,
}

impl Entitlement {
    /// True if the reader sees this author's claims on an entry with this origin: the author is one
    /// of `mine` or `members`, or created the entry according to its origin.
    pub fn includes(&self, author: AuthorId, origin: &Origin) -> bool {
        origin.creator() == Some(author)
            || self.mine.contains(&author)
            || self.members.contains(&author)
    }
}

/// Visibility of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At least one of title, content and summary is shown.
    Live,
    /// The origin is unknown. The entry is neither shown nor forwarded; its counters are available.
    Parked,
    /// No entitled author has a title, content or summary that is not retracted.
    Retracted,
    /// The entry was deleted; only its tombstone is left.
    Forgotten,
}

/// A register value of an author who is not entitled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The author of the proposal.
    pub author: AuthorId,
    /// The register whose shown value the proposal would change.
    pub register: Register,
    /// The proposed text.
    pub text: String,
    /// Time of writing, by the author's clock.
    pub stamp: Hlc,
}

/// A set element of an author who is not entitled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedElement {
    /// The author of the proposal.
    pub author: AuthorId,
    /// The set to which the proposal would add the element.
    pub set: TextSet,
    /// The proposed element.
    pub text: String,
    /// Time of writing, by the author's clock.
    pub stamp: Hlc,
}

/// The counters of one author, as they count today.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AuthorCounts {
    /// Successes that the author observed: the amounts of daily cells and folded totals.
    pub successes: Vec<CountedAmount>,
    /// Failures that the author observed: the amounts of daily cells and folded totals.
    pub failures: Vec<CountedAmount>,
    /// Independent confirmations: the amounts of daily cells and folded totals.
    pub confirmations: Vec<CountedAmount>,
}

impl AuthorCounts {
    /// The cells with a known day, without folded totals.
    #[must_use]
    pub fn dated(&self) -> Self {
        let dated =
            |of: &[CountedAmount]| of.iter().filter(|one| !one.is_folded).copied().collect();
        Self {
            successes: dated(&self.successes),
            failures: dated(&self.failures),
            confirmations: dated(&self.confirmations),
        }
    }
}

/// An entry as one reader sees it at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryView {
    /// Whether the entry is shown to this reader, and the reason if it is not.
    pub state: State,
    /// Creator, workspace and memory; `None` while this node does not hold the origin.
    pub origin: Option<Origin>,
    /// The shown value of each register, with concurrent values as rivals.
    pub registers: BTreeMap<Register, ShownValue>,
    /// The merged text of a playbook. It is shown instead of the content register. The reader of the
    /// store sets it, because this crate does not merge edits.
    pub document: Option<String>,
    /// The elements of each set, each with the authors who added it.
    pub texts: BTreeMap<TextSet, BTreeMap<String, BTreeSet<AuthorId>>>,
    /// Citations, each with the authors who added it.
    pub citations: BTreeMap<Citation, BTreeSet<AuthorId>>,
    /// Links, each with the authors who added it.
    pub links: BTreeMap<Link, BTreeSet<AuthorId>>,
    /// Time since which the entry is archived for this reader, by claims of the reader's own nodes
    /// (*mine*).
    pub archived: Option<Hlc>,
    /// Register values of authors who are not entitled.
    pub proposals: Vec<Proposal>,
    /// The counters of each author, entitled or not.
    pub counts: BTreeMap<AuthorId, AuthorCounts>,
    /// Times of creation and last change; `None` if no entitled author claims anything.
    pub dates: Option<Dates>,
    /// The earliest time at which the view may change even if no record arrives.
    pub next_change: Option<WallTime>,
}

/// The registers that make up the entry's text. The title and the summary count, too: an agent
/// follows instructions in a title as well as in the content.
const TEXTS: [Register; 3] = [Register::CONTENT, Register::TITLE, Register::SUMMARY];

impl EntryView {
    /// The shown text of a register.
    pub fn text(&self, register: Register) -> Option<&str> {
        match (&self.document, register) {
            (Some(text), Register::CONTENT) => Some(text),
            _ => self.registers.get(&register).map(|shown| shown.value.text.as_str()),
        }
    }

    /// Shows the merged text of a playbook, which was last changed at `updated`.
    #[must_use]
    pub fn with_document(mut self, text: String, updated: WallTime) -> Self {
        self.document = Some(text);
        if let Some(dates) = &mut self.dates {
            dates.updated = dates.updated.max(updated);
        }
        self
    }

    /// The type of the entry; `None` if it has none or this version does not know it.
    pub fn kind(&self) -> Option<EntryType> {
        self.text(Register::TYPE).and_then(EntryType::parse)
    }

    /// The authors of the shown content, title and summary, in this order.
    pub fn text_authors(&self) -> impl Iterator<Item = AuthorId> + '_ {
        TEXTS.into_iter().filter_map(|of| self.registers.get(&of)).map(|shown| shown.value.author)
    }

    /// The author who is responsible for the shown text: the first author of content, title or
    /// summary that is not in `mine`, else the author of the content. If no text is shown, the
    /// creator.
    pub fn author(&self, mine: &BTreeSet<AuthorId>) -> Option<AuthorId> {
        let other = self.text_authors().find(|author| !mine.contains(author));
        let creator = || self.origin.as_ref().and_then(Origin::creator);
        other.or_else(|| self.text_authors().next()).or_else(creator)
    }

    /// True if content, title or summary replaced an earlier value.
    pub fn is_text_edited(&self) -> bool {
        let mut shown = TEXTS.into_iter().filter_map(|of| self.registers.get(&of));
        shown.any(|shown| !shown.value.replaces.is_empty())
    }

    /// A digest of the shown text. It changes whenever the value or the author of content, title or
    /// summary changes.
    pub fn text_digest(&self) -> Digest {
        let shown = TEXTS.map(|register| self.registers.get(&register).map(|shown| shown.digest));
        let bytes = |digest: &Option<Digest>| digest.map_or([0; 32], |digest| *digest.as_bytes());
        let shown = shown.iter().map(bytes);
        shown.fold(FieldHasher::new(Context::Text), |fields, digest| fields.field(&digest)).finish()
    }

    /// The latest day on which content, title or summary was written, by its author's clock.
    pub fn text_day(&self) -> Option<Day> {
        let of = |register| self.registers.get(&register).map(|shown| shown.value.stamp);
        TEXTS.into_iter().filter_map(of).max().map(|stamp| stamp.wall().day())
    }
}

impl Entry {
    /// Computes the view at `now` for a reader with this entitlement.
    pub fn view(&self, now: WallTime, entitlement: &Entitlement) -> EntryView {
        let mut view = self.blank_view(now);
        let Some(origin) = self.origin.as_ref() else { return view };
        let standing = self.claims.iter().map(|(author, claims)| {
            let standing = match self.marks.get(author) {
                Some(marks) => Cow::Owned(claims.clone().without_suppressed(marks)),
                None => Cow::Borrowed(claims),
            };
            (*author, standing)
        });
        let (entitled, others): (Vec<_>, Vec<_>) =
            standing.partition(|(author, _)| entitlement.includes(*author, origin));

        view.proposals = others.iter().flat_map(|(_, claims)| proposals(claims)).collect();
        view.registers = shown_registers(&entitled, now);
        view.dates = Dates::of(origin, entitled.iter().map(|(_, claims)| &**claims), now);
        let sets: BTreeSet<TextSet> =
            entitled.iter().flat_map(|(_, claims)| claims.texts.keys().copied()).collect();
        for set in sets {
            let by_author = entitled.iter().filter_map(|(a, c)| Some((*a, c.texts.get(&set)?)));
            view.texts.insert(set, united(by_author));
        }
        view.citations = united(entitled.iter().map(|(a, claims)| (*a, &claims.citations)));
        view.links = united(entitled.iter().map(|(a, claims)| (*a, &claims.links)));
        let mine = entitled.iter().filter(|(author, _)| entitlement.mine.contains(author));
        let words: Vec<&ElementState> = mine.filter_map(|(_, by)| by.archival.as_ref()).collect();
        view.archived = archived(&words, now);
        let has_text = TEXTS.iter().any(|register| view.registers.contains_key(register));
        view.state = if has_text { State::Live } else { State::Retracted };
        view
    }

    /// Digests of the author's content, title and summary values that are not retracted.
    pub fn texts_by(&self, author: AuthorId) -> BTreeSet<Digest> {
        let Some(claims) = self.claims.get(&author) else { return BTreeSet::new() };
        let marks = self.marks.get(&author);
        let stands =
            |value: &RegisterValue| marks.is_none_or(|marks| !marks.suppress(&value.after));
        let values = TEXTS.iter().filter_map(|register| claims.registers.get(register));
        let values = values.flat_map(MvRegister::iter).filter(|(_, value)| stands(value));
        values.map(|(digest, _)| *digest).collect()
    }

    /// Set elements of authors who are not entitled, except those that the view shows already.
    pub fn proposed_elements(
        &self,
        view: &EntryView,
        entitlement: &Entitlement,
    ) -> Vec<ProposedElement> {
        let Some(origin) = self.origin.as_ref() else { return Vec::new() };
        let mut proposed = Vec::new();
        let others = self.claims.iter().filter(|(by, _)| !entitlement.includes(**by, origin));
        for (author, claims) in others {
            let claims = match self.marks.get(author) {
                Some(marks) => Cow::Owned(claims.clone().without_suppressed(marks)),
                None => Cow::Borrowed(claims),
            };
            for (set, elements) in &claims.texts {
                let is_said =
                    |text: &str| view.texts.get(set).is_some_and(|shown| shown.contains_key(text));
                let present = elements
                    .iter()
                    .filter(|(text, word)| word.presence == Presence::Present && !is_said(text));
                proposed.extend(present.map(|(text, word)| ProposedElement {
                    author: *author,
                    set: *set,
                    text: text.clone(),
                    stamp: word.stamp,
                }));
            }
        }
        proposed
    }

    /// The part of the view that is the same for all readers.
    fn blank_view(&self, now: WallTime) -> EntryView {
        let (today, state) = (
            now.day(),
            match (&self.tombstone, &self.origin) {
                (Some(_), _) => State::Forgotten,
                (None, None) => State::Parked,
                (None, Some(_)) => State::Retracted,
            },
        );
        let count = |tally: &Tally| AuthorCounts {
            successes: tally.successes.counted(today, &tally.reset),
            failures: tally.failures.counted(today, &tally.reset),
            confirmations: tally.confirmations.counted(today, &tally.reset),
        };
        EntryView {
            state,
            origin: self.origin.clone(),
            registers: BTreeMap::new(),
            document: None,
            texts: BTreeMap::new(),
            citations: BTreeMap::new(),
            links: BTreeMap::new(),
            archived: None,
            proposals: Vec::new(),
            counts: self.tallies.iter().map(|(author, tally)| (*author, count(tally))).collect(),
            dates: None,
            next_change: self.next_change(now),
        }
    }

    /// The next time at which a stamp becomes due or a future counter cell starts to count.
    fn next_change(&self, now: WallTime) -> Option<WallTime> {
        let values = self.claims.values().flat_map(|claims| claims.registers.values());
        let values = values.flat_map(MvRegister::iter).map(|(_, value)| value.stamp);
        let archival = self.claims.values().filter_map(|claims| claims.archival.as_ref());
        let stamps = values.chain(archival.map(|word| word.stamp));
        let due = stamps.filter(|stamp| !stamp.is_due(now)).map(Hlc::due_at);
        let counters = self
            .tallies
            .values()
            .flat_map(|tally| [&tally.successes, &tally.failures, &tally.confirmations]);
        let days = counters.filter_map(|counter| counter.next_day(now.day())).map(Day::start);
        due.chain(days).min()
    }
}

fn shown_registers(
    entitled: &[(AuthorId, Cow<'_, Claims>)],
    now: WallTime,
) -> BTreeMap<Register, ShownValue> {
    let mut united: BTreeMap<Register, Vec<_>> = BTreeMap::new();
    for (register, values) in entitled.iter().flat_map(|(_, claims)| &claims.registers) {
        united.entry(*register).or_default().extend(values.iter());
    }
    let shown =
        united.into_iter().map(|(register, values)| (register, MvRegister::shown_of(values, now)));
    shown.filter_map(|(register, shown)| Some((register, shown?))).collect()
}

/// Time since which the entry is archived, by the archive operations of one person's nodes. The
/// latest operation wins; between equal stamps unarchiving wins. Operations that are not yet due
/// are ignored while a due one exists.
fn archived(words: &[&ElementState], now: WallTime) -> Option<Hlc> {
    let any_due = words.iter().any(|word| word.stamp.is_due(now));
    let stamps = |of: Presence| {
        let said = words.iter().filter(move |word| word.presence == of).map(|word| word.stamp);
        said.filter(move |stamp| stamp.is_due(now) == any_due)
    };
    let restored = stamps(Presence::Withdrawn).max();
    stamps(Presence::Present).filter(|stamp| Some(*stamp) > restored).min()
}

fn proposals(claims: &Claims) -> impl Iterator<Item = Proposal> + '_ {
    claims.registers.iter().flat_map(|(register, values)| {
        values.iter().map(|(_, value)| Proposal {
            author: value.author,
            register: *register,
            text: value.text.clone(),
            stamp: value.stamp,
        })
    })
}

/// The union of several authors' sets; over [`VIEW_ELEMENTS_MAX`], the most recently written
/// elements.
fn united<'a, E: Ord + Clone + 'a>(
    sets: impl Iterator<Item = (AuthorId, &'a LwwSet<E>)>,
) -> BTreeMap<E, BTreeSet<AuthorId>> {
    let mut authors: BTreeMap<E, (Hlc, BTreeSet<AuthorId>)> = BTreeMap::new();
    for (author, set) in sets {
        for (element, word) in set.iter().filter(|(_, w)| w.presence == Presence::Present) {
            let (newest, by) = authors.entry(element.clone()).or_default();
            *newest = word.stamp.max(*newest);
            by.insert(author);
        }
    }
    let mut newest_first: Vec<_> = authors.into_iter().collect();
    newest_first.sort_by(|(a, (at, _)), (b, (bt, _))| bt.cmp(at).then_with(|| a.cmp(b)));
    newest_first.truncate(VIEW_ELEMENTS_MAX);
    newest_first.into_iter().map(|(element, (_, by))| (element, by)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_origin::Memory;
    use crate::ids::{Boot, Nonce, WorkspaceId};
    use crate::lattice::Lattice;
    use crate::live_records::LiveRecords;
    use crate::record_builder::{ClaimEdit, RecordBuilder};
    use crate::signing_key::SecretKey;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes(&[seed; 32])
    }

    fn origin() -> Origin {
        let (stamp, nonce) = (Hlc::from_bits(1), Nonce::default());
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        Origin::Created { creator: key(1).author(), stamp, nonce, workspace, memory }
    }

    fn says(held: &mut Entry, by: u8, register: Register, text: &str) {
        let (key, own) = (key(by), LiveRecords::default());
        let writer =
            RecordBuilder { key: &key, boot: Boot(u64::from(by)), entry: origin().id(), own: &own };
        let claims = [ClaimEdit::Set(register, text.to_owned())];
        let stamp = Hlc::new(WallTime::from_millis(1_000), u16::from(by));
        let origin = (by == 1).then(origin);
        let record = writer.claim(held, origin, &claims, stamp).unwrap();
        held.join(record.to_entry());
    }

    #[test]
    fn the_last_author_of_title_content_or_summary_is_the_author_of_the_text() {
        let [own, other] = [1, 2].map(|seed| key(seed).author());
        let mine: BTreeSet<AuthorId> = [own].into();
        let entitled = Entitlement { mine: mine.clone(), members: [other].into() };
        for register in [Register::CONTENT, Register::TITLE, Register::SUMMARY] {
            let mut held = Entry::default();
            for at in [Register::CONTENT, Register::TITLE] {
                says(&mut held, 1, at, "ours");
            }
            let now = WallTime::from_millis(2_000);
            let before = held.view(now, &entitled);
            assert_eq!(before.author(&mine), Some(own));
            says(&mut held, 2, register, "theirs");
            let after = held.view(now, &entitled);
            assert_eq!(after.author(&mine), Some(other), "{register:?}");
            assert_ne!(before.text_digest(), after.text_digest(), "{register:?}");
        }
    }

    #[test]
    fn an_entry_without_title_content_and_summary_is_retracted() {
        let (now, all) = (WallTime::from_millis(2_000), Entitlement::default());
        let mut held = Entry::default();
        says(&mut held, 1, Register::POLARITY, "negative");
        let view = held.view(now, &all);
        assert_eq!(view.state, State::Retracted);
        assert_eq!(view.author(&BTreeSet::new()), Some(key(1).author()), "its creator answers");
        says(&mut held, 1, Register::SUMMARY, "a summary");
        assert_eq!(held.view(now, &all).state, State::Live);
    }

    #[test]
    fn the_digest_of_an_authors_texts_changes_only_with_a_text() {
        let mut held = Entry::default();
        says(&mut held, 1, Register::CONTENT, "text");
        let (author, nobody) = (key(1).author(), key(2).author());
        let before = held.texts_by(author);
        says(&mut held, 1, Register::THREAD, "fix-login");
        assert_eq!(held.texts_by(author), before);
        says(&mut held, 1, Register::TITLE, "title");
        assert_ne!(held.texts_by(author), before);
        assert_eq!(held.texts_by(nobody), BTreeSet::new());
    }

    #[test]
    fn a_strangers_tag_is_a_proposal_until_an_entitled_author_adds_it() {
        let [own, other] = [1, 2].map(|seed| key(seed).author());
        let entitled = Entitlement { mine: [own].into(), members: BTreeSet::new() };
        let mut held = Entry::default();
        says(&mut held, 1, Register::CONTENT, "text");
        let mut tag = |by: u8| {
            let (key, own) = (key(by), LiveRecords::default());
            let boot = Boot(10 + u64::from(by));
            let writer = RecordBuilder { key: &key, boot, entry: origin().id(), own: &own };
            let claims = [ClaimEdit::Add(TextSet::TAGS, "auth".to_owned())];
            let stamp = Hlc::new(WallTime::from_millis(1_000), 9);
            let record = writer.claim(&held, None, &claims, stamp).unwrap();
            held.join(record.to_entry());
            let view = held.view(WallTime::from_millis(2_000), &entitled);
            held.proposed_elements(&view, &entitled)
        };
        let proposed = tag(2);
        let found: Vec<_> = proposed.iter().map(|one| (one.author, one.set, &*one.text)).collect();
        assert_eq!(found, [(other, TextSet::TAGS, "auth")]);
        assert_eq!(tag(1), []);
    }

    #[test]
    fn the_newest_archival_claim_that_is_not_in_the_future_decides() {
        const LATER: u64 = 10_000_000;
        let (yes, no) = (Presence::Present, Presence::Withdrawn);
        let at = |ms: u64| Hlc::new(WallTime::from_millis(ms), 0);
        let word = |ms, presence| ElementState { stamp: at(ms), presence, after: BTreeSet::new() };
        for (words, since) in [
            (Vec::new(), None),
            (vec![word(20, yes), word(10, yes)], Some(10)),
            (vec![word(10, yes), word(20, no)], None),
            (vec![word(20, no), word(30, yes), word(10, yes)], Some(30)),
            (vec![word(20, yes), word(20, no)], None),
            (vec![word(LATER, yes), word(20, no)], None),
            (vec![word(LATER, yes)], Some(LATER)),
        ] {
            let words: Vec<&ElementState> = words.iter().collect();
            assert_eq!(archived(&words, WallTime::from_millis(1_000)), since.map(at), "{words:?}");
        }
    }

    #[test]
    fn a_thread_does_not_change_the_digest_of_the_text() {
        let mut held = Entry::default();
        says(&mut held, 1, Register::CONTENT, "text");
        let (now, all) = (WallTime::from_millis(2_000), Entitlement::default());
        let before = held.view(now, &all).text_digest();
        says(&mut held, 1, Register::THREAD, "fix-login");
        assert_eq!(held.view(now, &all).text_digest(), before);
    }
}
