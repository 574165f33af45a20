//! An entry as a reader sees it at a moment.
//!
//! What is shown comes from entitled authors; what others claim is listed as proposals and changes
//! nothing. Counters of all authors are handed on, unweighted: weighing is a judgement, and
//! judgements are not made here.

use crate::claims::{Citation, Claims, Link, TextSet};
use crate::dates::Dates;
use crate::digest::{Context, Fields};
use crate::entry::Entry;
use crate::gcounter::Counted;
use crate::gset::{GSet, Presence, Word};
use crate::ids::{AuthorId, Digest};
use crate::kind::Kind;
use crate::limits::VIEW_ELEMENTS_MAX;
use crate::lww::{Lww, Register, Shown, Value};
use crate::origin::Origin;
use crate::tally::Tally;
use crate::time::{Day, Hlc, WallTime};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Whose word is shown, for one reader and one workspace. The creator's always is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entitlement {
    /// The reader's node and the same person's others.
    pub mine: BTreeSet<AuthorId>,
    /// Members of the entry's workspace.
    pub members: BTreeSet<AuthorId>,
}

impl Entitlement {
    /// Whether the author's word is shown.
    pub fn includes(&self, author: AuthorId, origin: &Origin) -> bool {
        origin.creator() == Some(author)
            || self.mine.contains(&author)
            || self.members.contains(&author)
    }
}

/// What there is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A text is shown.
    Live,
    /// No origin is held: counted, not shown, not passed on.
    Parked,
    /// Nobody entitled says anything any more that could be read.
    Retracted,
    /// Only a tombstone is left.
    Forgotten,
}

/// A claim by someone whose word is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// By whom.
    pub author: AuthorId,
    /// For which register.
    pub register: Register,
    /// The text.
    pub text: String,
    /// When, by its author's clock.
    pub stamp: Hlc,
}

/// An element that someone whose word is not shown says belongs to a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedElement {
    /// By whom.
    pub author: AuthorId,
    /// To which set.
    pub set: TextSet,
    /// The element.
    pub text: String,
    /// When, by its author's clock.
    pub stamp: Hlc,
}

/// What one author has counted, as far as it counts today.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Successes.
    pub successes: Vec<Counted>,
    /// Failures.
    pub failures: Vec<Counted>,
    /// Independent confirmations.
    pub confirmations: Vec<Counted>,
}

impl Counts {
    /// What is still known by its day: all but folded totals.
    #[must_use]
    pub fn dated(&self) -> Self {
        let dated = |of: &[Counted]| of.iter().filter(|one| !one.is_folded).copied().collect();
        Self {
            successes: dated(&self.successes),
            failures: dated(&self.failures),
            confirmations: dated(&self.confirmations),
        }
    }
}

/// An entry, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What there is to see.
    pub state: State,
    /// Who created it, where, as what.
    pub origin: Option<Origin>,
    /// The shown value of each register, with its rivals.
    pub registers: BTreeMap<Register, Shown>,
    /// Sets of texts: each element with the authors who say it.
    pub texts: BTreeMap<TextSet, BTreeMap<String, BTreeSet<AuthorId>>>,
    /// Evidence, with the authors who bring it.
    pub citations: BTreeMap<Citation, BTreeSet<AuthorId>>,
    /// Edges, with the authors who draw them.
    pub links: BTreeMap<Link, BTreeSet<AuthorId>>,
    /// Since when the reader has it archived: whichever of *mine* said so.
    pub archived: Option<Hlc>,
    /// Texts by authors who are not entitled.
    pub proposals: Vec<Proposal>,
    /// Counters by author.
    pub counts: BTreeMap<AuthorId, Counts>,
    /// When it was created and last changed; none where nobody entitled says anything.
    pub dates: Option<Dates>,
    /// When the view next changes without anything arriving.
    pub next_change: Option<WallTime>,
}

/// What is read as the entry's text. A title instructs its reader as well as a content does.
const TEXTS: [Register; 3] = [Register::CONTENT, Register::TITLE, Register::SUMMARY];

impl View {
    /// The shown text of a register.
    pub fn text(&self, register: Register) -> Option<&str> {
        self.registers.get(&register).map(|shown| shown.value.text.as_str())
    }

    /// Its type, if it has one that is known here.
    pub fn kind(&self) -> Option<Kind> {
        self.text(Register::TYPE).and_then(Kind::parse)
    }

    /// Who wrote the text that is shown: content, title and summary, in this order.
    pub fn text_authors(&self) -> impl Iterator<Item = AuthorId> + '_ {
        TEXTS.into_iter().filter_map(|of| self.registers.get(&of)).map(|shown| shown.value.author)
    }

    /// Who answers for the text that is shown: whoever wrote the content, unless that is one of
    /// `mine` and somebody else wrote the title or the summary. Where there is no text, the creator.
    pub fn author(&self, mine: &BTreeSet<AuthorId>) -> Option<AuthorId> {
        let other = self.text_authors().find(|author| !mine.contains(author));
        let creator = || self.origin.as_ref().and_then(Origin::creator);
        other.or_else(|| self.text_authors().next()).or_else(creator)
    }

    /// Whether the text that is shown took the place of another.
    pub fn is_text_edited(&self) -> bool {
        let mut shown = TEXTS.into_iter().filter_map(|of| self.registers.get(&of));
        shown.any(|shown| !shown.value.replaces.is_empty())
    }

    /// Names the text that is shown: another one as soon as title, content or summary is another,
    /// or is somebody else's.
    pub fn text_digest(&self) -> Digest {
        let shown = TEXTS.map(|register| self.registers.get(&register).map(|shown| shown.digest));
        let bytes = |digest: &Option<Digest>| digest.map_or([0; 32], |digest| *digest.as_bytes());
        let shown = shown.iter().map(bytes);
        shown.fold(Fields::new(Context::Text), |fields, digest| fields.field(&digest)).finish()
    }

    /// When the text that is shown was written, by its authors' clocks.
    pub fn text_day(&self) -> Option<Day> {
        let of = |register| self.registers.get(&register).map(|shown| shown.value.stamp);
        TEXTS.into_iter().filter_map(of).max().map(|stamp| stamp.wall().day())
    }
}

impl Entry {
    /// Reads the entry at `now`, for a reader with this entitlement.
    pub fn view(&self, now: WallTime, entitlement: &Entitlement) -> View {
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
        let words: Vec<&Word> = mine.filter_map(|(_, by)| by.archival.as_ref()).collect();
        view.archived = archived(&words, now);
        let has_text = TEXTS.iter().any(|register| view.registers.contains_key(register));
        view.state = if has_text { State::Live } else { State::Retracted };
        view
    }

    /// Names what an author says as content, title and summary, and has not taken back.
    pub fn texts_by(&self, author: AuthorId) -> BTreeSet<Digest> {
        let Some(claims) = self.claims.get(&author) else { return BTreeSet::new() };
        let marks = self.marks.get(&author);
        let stands = |value: &Value| marks.is_none_or(|marks| !marks.suppress(&value.after));
        let values = TEXTS.iter().filter_map(|register| claims.registers.get(register));
        let values = values.flat_map(Lww::iter).filter(|(_, value)| stands(value));
        values.map(|(digest, _)| *digest).collect()
    }

    /// Elements of sets by authors who are not entitled, as far as nobody entitled says them too.
    pub fn proposed_elements(
        &self,
        view: &View,
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

    /// Everything that does not depend on who reads.
    fn blank_view(&self, now: WallTime) -> View {
        let (today, state) = (
            now.day(),
            match (&self.tombstone, &self.origin) {
                (Some(_), _) => State::Forgotten,
                (None, None) => State::Parked,
                (None, Some(_)) => State::Retracted,
            },
        );
        let count = |tally: &Tally| Counts {
            successes: tally.successes.counted(today, &tally.reset),
            failures: tally.failures.counted(today, &tally.reset),
            confirmations: tally.confirmations.counted(today, &tally.reset),
        };
        View {
            state,
            origin: self.origin.clone(),
            registers: BTreeMap::new(),
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

    /// When a value or a word becomes due, or a counter cell starts to count.
    fn next_change(&self, now: WallTime) -> Option<WallTime> {
        let values = self.claims.values().flat_map(|claims| claims.registers.values());
        let values = values.flat_map(Lww::iter).map(|(_, value)| value.stamp);
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
) -> BTreeMap<Register, Shown> {
    let mut united: BTreeMap<Register, Vec<_>> = BTreeMap::new();
    for (register, values) in entitled.iter().flat_map(|(_, claims)| &claims.registers) {
        united.entry(*register).or_default().extend(values.iter());
    }
    let shown = united.into_iter().map(|(register, values)| (register, Lww::shown_of(values, now)));
    shown.filter_map(|(register, shown)| Some((register, shown?))).collect()
}

/// Since when an entry is archived, by what one person's nodes say of it: the newest word decides, and at
/// equal stamps the withdrawal. A word that is not yet due says nothing while a due one exists.
fn archived(words: &[&Word], now: WallTime) -> Option<Hlc> {
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

/// The present elements of several authors' sets; over the limit, those with the newest word.
fn united<'a, E: Ord + Clone + 'a>(
    sets: impl Iterator<Item = (AuthorId, &'a GSet<E>)>,
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
    use crate::holding::Holding;
    use crate::ids::{Boot, Nonce, WorkspaceId};
    use crate::key::SecretKey;
    use crate::lattice::Lattice;
    use crate::origin::Memory;
    use crate::writer::{Claim, Writer};

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes(&[seed; 32])
    }

    fn origin() -> Origin {
        let (stamp, nonce) = (Hlc::from_bits(1), Nonce::default());
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        Origin::Created { creator: key(1).author(), stamp, nonce, workspace, memory }
    }

    fn says(held: &mut Entry, by: u8, register: Register, text: &str) {
        let (key, own) = (key(by), Holding::default());
        let writer =
            Writer { key: &key, boot: Boot(u64::from(by)), entry: origin().id(), own: &own };
        let claims = [Claim::Set(register, text.to_owned())];
        let stamp = Hlc::new(WallTime::from_millis(1_000), u16::from(by));
        let origin = (by == 1).then(origin);
        let record = writer.claim(held, origin, &claims, stamp).unwrap();
        held.join(record.to_entry());
    }

    #[test]
    fn whoever_rewrites_a_title_or_summary_answers_for_the_text() {
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
    fn what_has_neither_title_nor_content_nor_summary_is_not_shown() {
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
    fn what_an_author_says_is_named_anew_when_a_text_is_another() {
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
    fn what_a_stranger_adds_to_a_set_is_proposed_until_somebody_entitled_says_it() {
        let [own, other] = [1, 2].map(|seed| key(seed).author());
        let entitled = Entitlement { mine: [own].into(), members: BTreeSet::new() };
        let mut held = Entry::default();
        says(&mut held, 1, Register::CONTENT, "text");
        let mut tag = |by: u8| {
            let (key, own) = (key(by), Holding::default());
            let boot = Boot(10 + u64::from(by));
            let writer = Writer { key: &key, boot, entry: origin().id(), own: &own };
            let claims = [Claim::Add(TextSet::TAGS, "auth".to_owned())];
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
    fn of_one_persons_words_on_the_archive_the_newest_that_is_due_decides() {
        const LATER: u64 = 10_000_000;
        let (yes, no) = (Presence::Present, Presence::Withdrawn);
        let at = |ms: u64| Hlc::new(WallTime::from_millis(ms), 0);
        let word = |ms, presence| Word { stamp: at(ms), presence, after: BTreeSet::new() };
        for (words, since) in [
            (Vec::new(), None),
            (vec![word(20, yes), word(10, yes)], Some(10)),
            (vec![word(10, yes), word(20, no)], None),
            (vec![word(20, no), word(30, yes), word(10, yes)], Some(30)),
            (vec![word(20, yes), word(20, no)], None),
            (vec![word(LATER, yes), word(20, no)], None),
            (vec![word(LATER, yes)], Some(LATER)),
        ] {
            let words: Vec<&Word> = words.iter().collect();
            assert_eq!(archived(&words, WallTime::from_millis(1_000)), since.map(at), "{words:?}");
        }
    }

    #[test]
    fn what_is_no_text_leaves_its_name_alone() {
        let mut held = Entry::default();
        says(&mut held, 1, Register::CONTENT, "text");
        let (now, all) = (WallTime::from_millis(2_000), Entitlement::default());
        let before = held.view(now, &all).text_digest();
        says(&mut held, 1, Register::THREAD, "fix-login");
        assert_eq!(held.view(now, &all).text_digest(), before);
    }
}
