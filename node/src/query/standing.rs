//! What an author is to this node: how far away, how far trusted, and what its word weighs.
//!
//! Found out anew from every snapshot, since a peer may be blocked or convicted at any moment. Only
//! quantiles and outcomes are kept from one answer to the next. An exact quantile is dear, and says
//! the same until something new is observed or a day has passed. Outcomes are many, and the number of
//! the newest tells whether they are those of the snapshot that is read.

use super::Reading;
use super::names::name_of;
use crate::store::Error;
use crate::store::peers::rows::{OutcomeRow, PeerRow};
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::Day;
use klnode_scoring::confidence;
use klnode_scoring::hop::{self, Hop, Relation};
use klnode_scoring::outcome::Verdict;
use klnode_scoring::posterior::Posterior;
use klnode_scoring::trust::{self, Observed, Reason, Trust, Weight};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Quantiles that are kept of each kind, and authors of whom outcomes are; when there are more, all are
/// found again.
const KEPT_MAX: usize = 4_096;
/// Outcomes that are kept of all authors together, less than 200 bytes each; when there are more, all
/// are read again.
const OUTCOMES_KEPT_MAX: usize = 50_000;

/// What an author is to this node, with what led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Who.
    pub author: AuthorId,
    /// What it is called here: `you`, a peer's name, or the beginning of its key.
    pub name: String,
    /// What it is to this node.
    pub relation: Relation,
    /// How far away it is; none if nobody near knows.
    pub hop: Option<Hop>,
    /// Through whom an author is known that is not paired: the nearest peer that tells of it; of a
    /// fellow member, who answers for it where it is none.
    pub via: Option<Via>,
    /// How far it is trusted, in [0, 1]; 1 for this node and the same person's others.
    pub trust: f64,
    /// What that rests on; none for this node and the same person's others.
    pub evidence: Option<Trust>,
    /// What its word weighs, and why.
    pub weight: Weight,
    /// Trust and weight without the operator's vouch: for gates, and for what an author may bring about
    /// for others.
    pub earned: Earned,
}

/// Trust and weight that an author's own texts have earned here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Earned {
    /// How far it is trusted, in [0, 1].
    pub trust: f64,
    /// What its word weighs, in [0, 1].
    pub weight: f64,
}

/// The paired peer through which an author is known, or whose workspace lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Via {
    /// Which.
    pub peer: AuthorId,
    /// What it is called here.
    pub name: String,
    /// How far from it the author is, as it says.
    pub claim: u8,
    /// What the peer's own word weighs.
    pub weight: f64,
}

impl Standing {
    /// Whether it is this node, or another of the same person.
    pub fn is_own(&self) -> bool {
        self.relation == Relation::Own
    }

    /// Why it weighs what it weighs, in one line.
    pub fn why(&self) -> String {
        let mut why = match (self.relation, &self.via) {
            (Relation::Own, _) => return "yours: full weight".to_owned(),
            (Relation::Paired, _) => "a paired peer".to_owned(),
            (Relation::Member, _) => "a fellow member".to_owned(),
            (Relation::Other, Some(via)) => format!("known through {}", via.name),
            (Relation::Other, None) => "known through nobody paired".to_owned(),
        };
        if let Some(hop) = self.hop {
            let _ = write!(why, ", {}", hops(hop));
        }
        if let Some(evidence) = &self.evidence {
            let (alpha, beta) = (evidence.all.alpha(), evidence.all.beta());
            let _ = write!(why, "; trust {:.2} from Beta({alpha:.1}, {beta:.1})", self.trust);
        }
        let value = self.weight.value;
        let _ = match self.weight.reason {
            Reason::Own => Ok(()),
            Reason::Discounted => write!(why, "; weight {value:.2}: trust, less for each hop"),
            Reason::Capped => write!(why, "; weight {value:.2}, the most anyone else has"),
            Reason::TooFar => write!(why, "; weight 0: too far away, or nobody knows how far"),
            Reason::Blocked => write!(why, "; weight 0: it is blocked"),
            Reason::Equivocating => {
                write!(why, "; weight 0: it signed two different things as one")
            }
        };
        why
    }
}

/// A distance in words.
pub fn hops(hop: Hop) -> String {
    if hop == Hop::NEAR { "1 hop".to_owned() } else { format!("{} hops", hop.0) }
}

impl Reading<'_> {
    /// What an author is to this node.
    pub fn standing(&self, author: AuthorId) -> Result<Arc<Standing>, Error> {
        match self.standings.get(author) {
            Some(known) => Ok(known),
            None => Ok(self.standings.keep(author, self.find_standing(author)?)),
        }
    }

    fn find_standing(&self, author: AuthorId) -> Result<Standing, Error> {
        let name = name_of(&self.society, author);
        if self.society.mine.contains(&author) {
            let weight = Weight { value: 1.0, reason: Reason::Own };
            let (relation, hop) = (Relation::Own, Some(Hop::OWN));
            let (via, trust, evidence) = (None, 1.0, None);
            let earned = Earned { trust, weight: weight.value };
            return Ok(Standing {
                author,
                name,
                relation,
                hop,
                via,
                trust,
                evidence,
                weight,
                earned,
            });
        }
        let relation = self.relation(author);
        let claims = match relation {
            Relation::Other => self.claims(author)?,
            _ => Vec::new(),
        };
        let distances: Vec<u8> = claims.iter().map(|via| via.claim).collect();
        let hop = hop::hop(relation, &distances, self.reader.numbers.trust.hop_max);
        let (evidence, weight, earned) = self.weigh(author, hop)?;
        let via = match relation {
            Relation::Member => self.lister(author)?,
            _ => nearest(claims),
        };
        let (trust, evidence) = (evidence.value, Some(evidence));
        Ok(Standing { author, name, relation, hop, via, trust, evidence, weight, earned })
    }

    /// The day of the operator's vouch for an author, where it stands.
    pub(super) fn vouch(&self, author: AuthorId) -> Result<Option<Day>, Error> {
        let vouch = self.society.peers.get(&author).and_then(PeerRow::standing_vouch);
        match vouch {
            Some(_) if self.snapshot.equivocation(author)?.is_some() => Ok(None),
            vouch => Ok(vouch),
        }
    }

    /// How far another author is trusted, and what their word weighs at a distance: with the operator's
    /// vouch, and as far as it is earned.
    fn weigh(&self, author: AuthorId, hop: Option<Hop>) -> Result<(Trust, Weight, Earned), Error> {
        let vouch = self.vouch(author)?;
        let earned = self.trust(author, None)?;
        let evidence = if vouch.is_some() { self.trust(author, vouch)? } else { earned };
        let is_blocked = self.society.peers.get(&author).is_some_and(|row| row.is_blocked);
        let standing = if is_blocked {
            trust::Standing::Blocked
        } else if self.snapshot.equivocation(author)?.is_some() {
            trust::Standing::Equivocating
        } else {
            hop.map_or(trust::Standing::Unknown, trust::Standing::At)
        };
        let weigh = |trust: f64| trust::weight(trust, standing, &self.reader.numbers.trust);
        let weight = weigh(evidence.value);
        let earned = Earned { trust: earned.value, weight: weigh(earned.value).value };
        Ok((evidence, weight, earned))
    }

    fn relation(&self, author: AuthorId) -> Relation {
        if self.society.is_approved(author) {
            Relation::Paired
        } else if self.society.is_fellow(author) {
            Relation::Member
        } else {
            Relation::Other
        }
    }

    /// What paired, unblocked peers say of the distance of an author.
    fn claims(&self, author: AuthorId) -> Result<Vec<Via>, Error> {
        let mut claims = Vec::new();
        for (peer, claim) in self.snapshot.distances(author)? {
            let is_blocked = self.society.peers.get(&peer).is_some_and(|row| row.is_blocked);
            if is_blocked || !self.society.is_approved(peer) {
                continue;
            }
            let of = self.standing(peer)?;
            // The operator vouches for a peer, not for everyone whom the peer tells of.
            claims.push(Via { peer, name: of.name.clone(), claim, weight: of.earned.weight });
        }
        Ok(claims)
    }

    /// Who answers for a fellow member where it is none: the owner of the workspace that lists it,
    /// since whoever owns one can list as many keys as they like. In a workspace of this person's
    /// it is an admin; where this person alone lists members, each answers for itself.
    fn lister(&self, author: AuthorId) -> Result<Option<Via>, Error> {
        let mine = &self.society.mine;
        let mut listers = Vec::new();
        for shared in self.society.workspaces.values() {
            let charter = &shared.charter;
            let is_shared = mine.iter().any(|own| charter.members.contains(own));
            if !is_shared || !charter.members.contains(&author) {
                continue;
            }
            let owner = charter.owner.map(|(owner, _)| owner).filter(|owner| !mine.contains(owner));
            let speakers: Vec<AuthorId> = match owner {
                Some(owner) => vec![owner],
                None => charter.admins.difference(mine).copied().collect(),
            };
            if speakers.is_empty() {
                return Ok(None);
            }
            for peer in speakers {
                // Whoever lists members is one: it is near.
                let (_, _, earned) = self.weigh(peer, Some(Hop::NEAR))?;
                let (name, claim) = (name_of(&self.society, peer), Hop::NEAR.0);
                listers.push(Via { peer, name, claim, weight: earned.weight });
            }
        }
        Ok(nearest(listers))
    }

    /// What an author's observations of an entry of `workspace` count as.
    pub(super) fn voice(
        &self,
        author: AuthorId,
        workspace: Option<WorkspaceId>,
    ) -> Result<confidence::Standing, Error> {
        let of = self.standing(author)?;
        let weight = of.weight.value;
        if of.is_own() {
            return Ok(confidence::Standing::Own);
        }
        if workspace.is_some_and(|id| self.is_fellow_in(author, id)) {
            return Ok(confidence::Standing::Member { weight });
        }
        Ok(match &of.via {
            Some(via) => {
                confidence::Standing::NonMember { weight, via: via.peer, via_weight: via.weight }
            }
            // Paired, or listed by this person alone: it answers for itself.
            None => confidence::Standing::NonMember { weight, via: author, via_weight: weight },
        })
    }

    /// Whether an author belongs to a workspace that this node belongs to as well.
    pub(crate) fn is_fellow_in(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let society = &self.society;
        society.is_member(author, workspace)
            && society.mine.iter().any(|own| society.is_member(*own, workspace))
    }

    /// What the texts of an author led to here.
    pub(super) fn outcomes(&self, author: AuthorId) -> Result<Arc<Vec<OutcomeRow>>, Error> {
        if let Some(known) = self.outcomes.get(author) {
            return Ok(known);
        }
        let read = || self.snapshot.outcomes(author);
        let found = match self.snapshot.last_outcome(author)? {
            Some(newest) => self.reader.kept.outcomes(author, newest, read)?,
            None => Arc::default(),
        };
        Ok(self.outcomes.keep(author, found))
    }

    fn trust(&self, author: AuthorId, vouch: Option<Day>) -> Result<Trust, Error> {
        let (newest, today) = (self.snapshot.last_outcome(author)?, self.now.day());
        // Strangers have no history: one quantile serves them all.
        let of = (newest.map(|_| author), vouch);
        if let Some((at, day, known)) = self.reader.kept.trusts().get(&of)
            && (*at, *day) == (newest, today)
        {
            return Ok(*known);
        }
        let observed = observed(&self.outcomes(author)?);
        let found = trust::trust_vouched(&observed, vouch, today, &self.reader.numbers.trust);
        keep(&mut self.reader.kept.trusts(), of, (newest, today, found));
        Ok(found)
    }
}

/// Outcomes as trust is computed from.
pub(super) fn observed(outcomes: &[OutcomeRow]) -> Vec<Observed> {
    let verdict = |is_success| if is_success { Verdict::Success } else { Verdict::Failure };
    let of = |row: &OutcomeRow| Observed { day: row.day, verdict: verdict(row.is_success) };
    outcomes.iter().filter(|row| row.is_telling()).map(of).collect()
}

/// The peer with the least claim. Whatever is claimed below one counts as one, and among equals the
/// peer that weighs most: no peer can take another's acquaintances down with itself.
fn nearest(claims: Vec<Via>) -> Option<Via> {
    claims.into_iter().min_by(|one, two| {
        let by_claim = one.claim.max(Hop::NEAR.0).cmp(&two.claim.max(Hop::NEAR.0));
        by_claim.then(two.weight.total_cmp(&one.weight)).then(one.peer.cmp(&two.peer))
    })
}

/// By author, none for all who have no history, and by the day of the operator's vouch.
type KeptTrusts = BTreeMap<(Option<AuthorId>, Option<Day>), (Option<u64>, Day, Trust)>;
type KeptBounds = BTreeMap<(u64, u64), f64>;
/// By author, with the number of the newest.
type KeptOutcomes = BTreeMap<AuthorId, (u64, Arc<Vec<OutcomeRow>>)>;

/// Quantiles that were computed before, and outcomes that were read.
#[derive(Debug)]
pub(super) struct Kept {
    lower_quantile: f64,
    trusts: Mutex<KeptTrusts>,
    bounds: Mutex<KeptBounds>,
    outcomes: Mutex<KeptOutcomes>,
}

impl Kept {
    /// Nothing yet; lower bounds will be this quantile.
    pub(super) fn new(lower_quantile: f64) -> Self {
        let (trusts, bounds, outcomes) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { lower_quantile, trusts, bounds, outcomes }
    }

    fn trusts(&self) -> MutexGuard<'_, KeptTrusts> {
        self.trusts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lower bound of a posterior.
    pub(super) fn lower_bound(&self, of: &Posterior) -> f64 {
        let at = (of.alpha().to_bits(), of.beta().to_bits());
        let kept = || self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(&at) {
            return *known;
        }
        // Computed without the lock: others need not wait for it.
        let found = of.quantile(self.lower_quantile);
        keep(&mut kept(), at, found);
        found
    }

    /// What the texts of an author led to where `newest` is the number of the last outcome: as it was
    /// read before, or else read now.
    fn outcomes(
        &self,
        author: AuthorId,
        newest: u64,
        read: impl FnOnce() -> Result<Vec<OutcomeRow>, Error>,
    ) -> Result<Arc<Vec<OutcomeRow>>, Error> {
        let lock = || self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        // A snapshot may be older than what was read last: no other number will do.
        if let Some((at, known)) = lock().get(&author)
            && *at == newest
        {
            return Ok(Arc::clone(known));
        }
        // Read without the lock: others need not wait for it.
        let found = Arc::new(read()?);
        let mut kept = lock();
        kept.remove(&author);
        let held: usize = kept.values().map(|(_, rows)| rows.len()).sum();
        if held + found.len() > OUTCOMES_KEPT_MAX {
            kept.clear();
        }
        keep(&mut kept, author, (newest, Arc::clone(&found)));
        Ok(found)
    }
}

fn keep<K: Ord, V>(kept: &mut BTreeMap<K, V>, at: K, value: V) {
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(at, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{NOW, engine};
    use crate::query::{Numbers, Reader};
    use crate::store::{Durability, Snapshot};
    use klnode_config::Config;
    use klnode_crdt::ids::{Digest, EntryId};
    use std::cell::Cell;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn via(peer: u8, claim: u8, weight: f64) -> Via {
        Via { peer: author(peer), name: format!("peer {peer}"), claim, weight }
    }

    #[test]
    fn an_author_is_known_through_the_nearest_peer_and_of_equals_the_weightiest() {
        for (claims, expect) in [
            (vec![], None),
            (vec![via(1, 3, 0.5), via(2, 2, 0.1)], Some(2)),
            (vec![via(1, 2, 0.1), via(2, 2, 0.5)], Some(2)),
            // A claim of nothing at all does not come before that of a neighbour.
            (vec![via(1, 0, 0.0), via(2, 1, 0.5)], Some(2)),
            (vec![via(2, 1, 0.5), via(1, 1, 0.5)], Some(1)),
        ] {
            let given = nearest(claims.clone()).map(|via| via.peer);
            assert_eq!(given, expect.map(author), "{claims:?}");
        }
    }

    #[test]
    fn a_kept_quantile_is_the_one_that_would_be_computed() {
        let (kept, posterior) = (Kept::new(0.1), Posterior::new(7.0, 3.0));
        assert_eq!(kept.lower_bound(&posterior), posterior.lower_bound());
        assert_eq!(kept.lower_bound(&posterior), posterior.lower_bound());
        assert_eq!(Kept::new(0.3).lower_bound(&posterior), posterior.quantile(0.3));
        for alpha in 0..=KEPT_MAX {
            keep(&mut kept.bounds.lock().unwrap(), (alpha as u64, 0), 0.5);
        }
        assert!(kept.bounds.lock().unwrap().len() <= KEPT_MAX);
    }

    /// That a text of an entry helped.
    fn outcome(entry: u8, text: u8) -> OutcomeRow {
        OutcomeRow {
            day: NOW.day(),
            is_success: true,
            entry: EntryId::from_bytes([entry; 16]),
            task: None,
            text: Some(Digest::from_bytes([text; 32])),
            is_joint: false,
        }
    }

    #[test]
    fn outcomes_are_read_once_for_all_answers_until_one_is_added_or_becomes_another() {
        let (engine, peer) = (engine(), author(9));
        let put = |row: &OutcomeRow| {
            let batch = engine.store().batch(Durability::Durable).unwrap();
            batch.put_outcome(peer, row).unwrap();
            batch.commit().unwrap();
            engine.store().snapshot().unwrap()
        };
        let reader = Reader::new(engine.author(), Numbers::new(&Config::default()));
        let outcomes = |of: &Snapshot| reader.at(of, NOW).unwrap().outcomes(peer).unwrap();
        let nothing = engine.store().snapshot().unwrap();
        assert!(outcomes(&nothing).is_empty());
        put(&outcome(1, 1));
        let two = put(&outcome(2, 1));
        let read = outcomes(&two);
        assert_eq!(*read, [outcome(1, 1), outcome(2, 1)]);
        let same = put(&outcome(2, 1));
        assert!(Arc::ptr_eq(&read, &outcomes(&same)), "they are those that were read before");
        let replaced = put(&outcome(1, 2));
        assert_eq!(*outcomes(&replaced), [outcome(1, 2), outcome(2, 1)]);
        let newest_replaced = put(&outcome(2, 2));
        assert_eq!(*outcomes(&newest_replaced), [outcome(1, 2), outcome(2, 2)]);
        let three = put(&outcome(3, 1));
        assert_eq!(*outcomes(&three), [outcome(1, 2), outcome(2, 2), outcome(3, 1)]);
        assert_eq!(outcomes(&two), read, "whoever still reads what was, reads what was");
        assert!(outcomes(&nothing).is_empty());
    }

    #[test]
    fn outcomes_are_kept_as_they_were_read_and_no_more_than_have_room() {
        let (kept, reads) = (Kept::new(0.1), Cell::new(0));
        let reads_after = |by: u8, newest: u64, rows: usize| {
            let read = || {
                reads.set(reads.get() + 1);
                Ok(vec![outcome(1, 1); rows])
            };
            assert_eq!(kept.outcomes(author(by), newest, read).unwrap().len(), rows);
            reads.get()
        };
        assert_eq!(reads_after(1, 7, 1), 1);
        assert_eq!(reads_after(1, 7, 1), 1);
        assert_eq!(reads_after(1, 6, 2), 2, "an older snapshot has others");
        assert_eq!(reads_after(1, 7, 1), 3);
        assert_eq!(reads_after(2, 0, OUTCOMES_KEPT_MAX), 4);
        assert_eq!(reads_after(2, 0, OUTCOMES_KEPT_MAX), 4);
        assert_eq!(reads_after(1, 7, 1), 5, "there was no room for both");
        assert_eq!(reads_after(1, 7, 1), 5);
        assert_eq!(kept.outcomes.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_standing_says_why() {
        let evidence = trust::trust(&[], Day(0), &trust::Params::default());
        let weight = Weight { value: 0.049, reason: Reason::Discounted };
        let of = Standing {
            author: author(9),
            name: "09090909".into(),
            relation: Relation::Other,
            hop: Some(Hop(2)),
            via: Some(via(2, 1, 0.07)),
            trust: evidence.value,
            evidence: Some(evidence),
            weight,
            earned: Earned { trust: evidence.value, weight: weight.value },
        };
        assert_eq!(
            of.why(),
            "known through peer 2, 2 hops; trust 0.10 from Beta(1.0, 1.0); weight 0.05: trust, \
             less for each hop"
        );
        let blocked = Weight { value: 0.0, reason: Reason::Blocked };
        assert!(Standing { weight: blocked, ..of }.why().ends_with("weight 0: it is blocked"));
    }
}
