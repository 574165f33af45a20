//! The standing of an author on this node: distance, trust, and the weight of its claims.
//!
//! It is recomputed from every snapshot, because a peer may be blocked or caught equivocating at
//! any time. Only quantiles and outcomes are cached between answers. An exact quantile is expensive
//! and changes only with a new observation or a new day. Outcomes are many, and the number of the
//! newest one shows whether the cached ones match the snapshot.

use super::ReadContext;
use super::author_names::name_of;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::Day;
use klnode_scoring::confidence;
use klnode_scoring::credit::TaskVerdict;
use klnode_scoring::hop::{self, AuthorKind, Hop};
use klnode_scoring::posterior::Posterior;
use klnode_scoring::trust::{self, TextObservation, Trust, Weight, WeightReason};
use klnode_store::Error;
use klnode_store::peers::row_types::{OutcomeRow, PeerRow};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Capacity of each quantile cache, and number of authors in the outcome cache; a full cache is
/// cleared.
const KEPT_MAX: usize = 4_096;
/// Capacity of the outcome cache over all authors, in rows of less than 200 bytes; a full cache is
/// cleared.
const OUTCOMES_KEPT_MAX: usize = 50_000;

/// The standing of an author on this node, with its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorStanding {
    pub author: AuthorId,
    /// The display name: `you`, a peer's name, or the first digits of its key.
    pub name: String,
    /// How the author is related to this node.
    pub relation: AuthorKind,
    /// The distance in hops; `None` if no paired peer reports one.
    pub hop: Option<Hop>,
    /// For an author that is not paired: the nearest peer that reports it. For a fellow member: the
    /// author who answers for it outside shared workspaces.
    pub via: Option<AuthorReferrer>,
    /// The trust in the author, in [0, 1]; 1 for the owner's nodes.
    pub trust: f64,
    /// The evidence behind the trust; `None` for the owner's nodes.
    pub evidence: Option<Trust>,
    /// The weight of the author's claims and observations, and the reason for that weight.
    pub weight: Weight,
    /// Trust and weight without the operator's vouch: used by gates, and for effects that an author
    /// has on other authors.
    pub earned: EarnedTrust,
}

/// Trust and weight that an author's own texts have earned on this node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarnedTrust {
    /// The trust, in [0, 1].
    pub trust: f64,
    /// The weight of the author's claims, in [0, 1].
    pub weight: f64,
    /// The outcomes on this node in which the author's texts helped, after fading.
    pub successes: f64,
}

/// The paired peer that reports an author, or the author whose workspace lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorReferrer {
    pub peer: AuthorId,
    /// The display name of the peer.
    pub name: String,
    /// The distance from the peer to the author, as the peer claims.
    pub claim: u8,
    /// The weight of the peer's own claims.
    pub weight: f64,
}

impl AuthorStanding {
    /// True for this node and the owner's other nodes.
    pub fn is_own(&self) -> bool {
        self.relation == AuthorKind::Own
    }

    /// The reason for the weight, in one line.
    pub fn why(&self) -> String {
        let mut why = match (self.relation, &self.via) {
            (AuthorKind::Own, _) => return "yours: full weight".to_owned(),
            (AuthorKind::Paired, _) => "a paired peer".to_owned(),
            (AuthorKind::Member, _) => "a fellow member".to_owned(),
            (AuthorKind::Other, Some(via)) => format!("known through {}", via.name),
            (AuthorKind::Other, None) => "not known through a paired peer".to_owned(),
        };
        if let Some(hop) = self.hop {
            let _ = write!(why, ", {}", hop.in_words());
        }
        if let Some(evidence) = &self.evidence {
            let (alpha, beta) = (evidence.all.alpha(), evidence.all.beta());
            let _ = write!(why, "; trust {:.2} from Beta({alpha:.1}, {beta:.1})", self.trust);
        }
        let value = self.weight.value;
        let _ = match self.weight.reason {
            WeightReason::Own => Ok(()),
            WeightReason::Discounted => {
                write!(why, "; weight {value:.2}: trust, less for each hop")
            }
            WeightReason::Capped => {
                write!(why, "; weight {value:.2}, the maximum for another author")
            }
            WeightReason::TooFar => {
                write!(why, "; weight 0: too far away, or at an unknown distance")
            }
            WeightReason::Blocked => write!(why, "; weight 0: it is blocked"),
            WeightReason::Equivocating => {
                write!(why, "; weight 0: it signed two different versions of one record")
            }
        };
        why
    }
}

impl ReadContext<'_> {
    /// The standing of an author, cached for this reading.
    pub fn standing(&self, author: AuthorId) -> Result<Arc<AuthorStanding>, Error> {
        match self.standings.get(author) {
            Some(known) => Ok(known),
            None => Ok(self.standings.keep(author, self.find_standing(author)?)),
        }
    }

    fn find_standing(&self, author: AuthorId) -> Result<AuthorStanding, Error> {
        let name = name_of(&self.membership, author);
        if self.membership.mine.contains(&author) {
            let weight = Weight { value: 1.0, reason: WeightReason::Own };
            let (relation, hop) = (AuthorKind::Own, Some(Hop::OWN));
            let (via, trust, evidence) = (None, 1.0, None);
            let earned = EarnedTrust { trust, weight: weight.value, successes: 0.0 };
            return Ok(AuthorStanding {
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
            AuthorKind::Other => self.claims(author)?,
            _ => Vec::new(),
        };
        let distances: Vec<u8> = claims.iter().map(|via| via.claim).collect();
        let hop = hop::hop(relation, &distances, self.reader.numbers.trust.hop_max);
        let (evidence, weight, earned) = self.weigh(author, hop)?;
        let via = match relation {
            AuthorKind::Member => self.responsible_author(author)?,
            _ => nearest(claims),
        };
        let (trust, evidence) = (evidence.value, Some(evidence));
        Ok(AuthorStanding { author, name, relation, hop, via, trust, evidence, weight, earned })
    }

    /// The day of the operator's vouch for an author; `None` if there is none or the author
    /// equivocated.
    pub(super) fn vouch(&self, author: AuthorId) -> Result<Option<Day>, Error> {
        let vouch = self.membership.peers.get(&author).and_then(PeerRow::standing_vouch);
        match vouch {
            Some(_) if self.snapshot.equivocation(author)?.is_some() => Ok(None),
            vouch => Ok(vouch),
        }
    }

    /// The trust in another author and the weight of its claims at a distance: with the operator's
    /// vouch, and as earned.
    fn weigh(
        &self,
        author: AuthorId,
        hop: Option<Hop>,
    ) -> Result<(Trust, Weight, EarnedTrust), Error> {
        let vouch = self.vouch(author)?;
        let earned = self.trust(author, None)?;
        let evidence = if vouch.is_some() { self.trust(author, vouch)? } else { earned };
        let is_blocked = self.membership.peers.get(&author).is_some_and(|row| row.is_blocked);
        let standing = if is_blocked {
            trust::TrustStanding::Blocked
        } else if self.snapshot.equivocation(author)?.is_some() {
            trust::TrustStanding::Equivocating
        } else {
            hop.map_or(trust::TrustStanding::Unknown, trust::TrustStanding::At)
        };
        let weigh = |trust: f64| trust::weight(trust, standing, &self.reader.numbers.trust);
        let weight = weigh(evidence.value);
        let successes = earned.all.alpha() - self.reader.numbers.trust.prior_alpha;
        let earned =
            EarnedTrust { trust: earned.value, weight: weigh(earned.value).value, successes };
        Ok((evidence, weight, earned))
    }

    fn relation(&self, author: AuthorId) -> AuthorKind {
        if self.membership.is_approved(author) {
            AuthorKind::Paired
        } else if self.membership.is_fellow(author) {
            AuthorKind::Member
        } else {
            AuthorKind::Other
        }
    }

    /// The distances of an author that paired, unblocked peers report.
    fn claims(&self, author: AuthorId) -> Result<Vec<AuthorReferrer>, Error> {
        let mut claims = Vec::new();
        for (peer, claim) in self.snapshot.distances(author)? {
            let is_blocked = self.membership.peers.get(&peer).is_some_and(|row| row.is_blocked);
            if is_blocked || !self.membership.is_approved(peer) {
                continue;
            }
            let of = self.standing(peer)?;
            // The operator vouches for the peer, not for the authors that the peer reports.
            claims.push(AuthorReferrer {
                peer,
                name: of.name.clone(),
                claim,
                weight: of.earned.weight,
            });
        }
        Ok(claims)
    }

    /// The author who answers for a fellow member outside shared workspaces: the owner of the
    /// workspace that lists it, since a workspace owner can list any number of keys. In a workspace
    /// of this node's owner it is an admin; if this node's owner alone lists members, each member
    /// answers for itself.
    fn responsible_author(&self, author: AuthorId) -> Result<Option<AuthorReferrer>, Error> {
        let mine = &self.membership.mine;
        let mut listers = Vec::new();
        for shared in self.membership.workspaces.values() {
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
                // An author who lists members is a member itself, so it is near.
                let (_, _, earned) = self.weigh(peer, Some(Hop::NEAR))?;
                let (name, claim) = (name_of(&self.membership, peer), Hop::NEAR.0);
                listers.push(AuthorReferrer { peer, name, claim, weight: earned.weight });
            }
        }
        Ok(nearest(listers))
    }

    /// How an author's observations of an entry of `workspace` are weighted.
    pub(super) fn confidence_standing(
        &self,
        author: AuthorId,
        workspace: Option<WorkspaceId>,
    ) -> Result<confidence::AuthorRelation, Error> {
        let of = self.standing(author)?;
        let weight = of.weight.value;
        if of.is_own() {
            return Ok(confidence::AuthorRelation::Own);
        }
        if workspace.is_some_and(|id| self.is_fellow_in(author, id)) {
            return Ok(confidence::AuthorRelation::Member { weight });
        }
        Ok(match &of.via {
            Some(via) => confidence::AuthorRelation::NonMember {
                weight,
                via: via.peer,
                via_weight: via.weight,
            },
            // Paired, or listed by this node's owner alone: it answers for itself.
            None => {
                confidence::AuthorRelation::NonMember { weight, via: author, via_weight: weight }
            }
        })
    }

    /// True if an author's text counts as a member's in a workspace of this node's owner. Texts of a
    /// removed member still do, its observations do not.
    pub(super) fn is_text_of_fellow(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let membership = &self.membership;
        membership.counts_as_member(author, workspace)
            && membership.mine.iter().any(|own| membership.is_member(*own, workspace))
    }

    /// True if an author and this node's owner are members of the same workspace.
    pub fn is_fellow_in(&self, author: AuthorId, workspace: WorkspaceId) -> bool {
        let membership = &self.membership;
        membership.is_member(author, workspace)
            && membership.mine.iter().any(|own| membership.is_member(*own, workspace))
    }

    /// The outcomes on this node of tasks that used an author's texts.
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

    /// Whether an author's texts have misled so often on this node that an author without outcomes is
    /// trusted more.
    pub(super) fn has_misled(&self, author: AuthorId) -> Result<bool, Error> {
        let standing = self.standing(author)?;
        Ok(!standing.is_own() && standing.trust < self.trust_by(None, None)?.value)
    }

    fn trust(&self, author: AuthorId, vouch: Option<Day>) -> Result<Trust, Error> {
        let newest = self.snapshot.last_outcome(author)?;
        self.trust_by(newest.map(|newest| (author, newest)), vouch)
    }

    /// The trust in an author, given the number of its newest outcome; `None` is any author without
    /// outcomes.
    fn trust_by(
        &self,
        tested: Option<(AuthorId, u64)>,
        vouch: Option<Day>,
    ) -> Result<Trust, Error> {
        let (newest, today) = (tested.map(|(_, newest)| newest), self.now.day());
        let of = (tested.map(|(author, _)| author), vouch);
        if let Some((at, day, known)) = self.reader.kept.trusts().get(&of)
            && (*at, *day) == (newest, today)
        {
            return Ok(*known);
        }
        let observed = match tested {
            Some((author, _)) => observed(&self.outcomes(author)?),
            None => Vec::new(),
        };
        let found = trust::trust_vouched(&observed, vouch, today, &self.reader.numbers.trust);
        insert_bounded(&mut self.reader.kept.trusts(), of, (newest, today, found));
        Ok(found)
    }
}

/// Converts outcomes to the input of the trust computation.
pub(super) fn observed(outcomes: &[OutcomeRow]) -> Vec<TextObservation> {
    let verdict = |is_success| if is_success { TaskVerdict::Success } else { TaskVerdict::Failure };
    let of = |row: &OutcomeRow| TextObservation { day: row.day, verdict: verdict(row.is_success) };
    outcomes.iter().filter(|row| row.is_telling()).map(of).collect()
}

/// The peer that claims the smallest distance. Distances below one count as one, and on a tie the
/// peer with the highest weight wins: a peer must not lower the standing of authors that another
/// peer reports.
fn nearest(claims: Vec<AuthorReferrer>) -> Option<AuthorReferrer> {
    claims.into_iter().min_by(|one, two| {
        let by_claim = one.claim.max(Hop::NEAR.0).cmp(&two.claim.max(Hop::NEAR.0));
        by_claim.then(two.weight.total_cmp(&one.weight)).then(one.peer.cmp(&two.peer))
    })
}

/// By author (`None` for all authors without outcomes) and by the day of the operator's vouch; the
/// value holds the number of the newest outcome and the day of the computation.
type TrustCache = BTreeMap<(Option<AuthorId>, Option<Day>), (Option<u64>, Day, Trust)>;
type BoundCache = BTreeMap<(u64, u64), f64>;
/// By author, with the number of the newest outcome.
type OutcomeCache = BTreeMap<AuthorId, (u64, Arc<Vec<OutcomeRow>>)>;

/// Caches of computed quantiles and of outcomes.
#[derive(Debug)]
pub(super) struct StandingCache {
    lower_quantile: f64,
    trusts: Mutex<TrustCache>,
    bounds: Mutex<BoundCache>,
    outcomes: Mutex<OutcomeCache>,
}

impl StandingCache {
    /// Empty caches; lower bounds are this quantile.
    pub(super) fn new(lower_quantile: f64) -> Self {
        let (trusts, bounds, outcomes) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { lower_quantile, trusts, bounds, outcomes }
    }

    fn trusts(&self) -> MutexGuard<'_, TrustCache> {
        self.trusts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lower bound of a posterior.
    pub(super) fn lower_bound(&self, of: &Posterior) -> f64 {
        let at = (of.alpha().to_bits(), of.beta().to_bits());
        let kept = || self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(&at) {
            return *known;
        }
        // Compute without holding the lock, so that other threads do not wait.
        let found = of.quantile(self.lower_quantile);
        insert_bounded(&mut kept(), at, found);
        found
    }

    /// The outcomes of an author, cached if the newest has the number `newest`, otherwise read.
    fn outcomes(
        &self,
        author: AuthorId,
        newest: u64,
        read: impl FnOnce() -> Result<Vec<OutcomeRow>, Error>,
    ) -> Result<Arc<Vec<OutcomeRow>>, Error> {
        let lock = || self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        // A snapshot may be older than the cached rows: only the same number matches.
        if let Some((at, known)) = lock().get(&author)
            && *at == newest
        {
            return Ok(Arc::clone(known));
        }
        // Read without holding the lock, so that other threads do not wait.
        let found = Arc::new(read()?);
        let mut kept = lock();
        kept.remove(&author);
        let held: usize = kept.values().map(|(_, rows)| rows.len()).sum();
        if held + found.len() > OUTCOMES_KEPT_MAX {
            kept.clear();
        }
        insert_bounded(&mut kept, author, (newest, Arc::clone(&found)));
        Ok(found)
    }
}

fn insert_bounded<K: Ord, V>(kept: &mut BTreeMap<K, V>, at: K, value: V) {
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(at, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, ScoringParams};
    use klnode_config::Config;
    use klnode_crdt::ids::{Digest, EntryId};
    use klnode_engine::testing::{NOW, engine};
    use klnode_store::{Durability, Snapshot};
    use std::cell::Cell;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn via(peer: u8, claim: u8, weight: f64) -> AuthorReferrer {
        AuthorReferrer { peer: author(peer), name: format!("peer {peer}"), claim, weight }
    }

    #[test]
    fn the_nearest_peer_with_the_highest_weight_reports_an_author() {
        for (claims, expect) in [
            (vec![], None),
            (vec![via(1, 3, 0.5), via(2, 2, 0.1)], Some(2)),
            (vec![via(1, 2, 0.1), via(2, 2, 0.5)], Some(2)),
            // A claimed distance of zero does not win over that of a neighbour.
            (vec![via(1, 0, 0.0), via(2, 1, 0.5)], Some(2)),
            (vec![via(2, 1, 0.5), via(1, 1, 0.5)], Some(1)),
        ] {
            let given = nearest(claims.clone()).map(|via| via.peer);
            assert_eq!(given, expect.map(author), "{claims:?}");
        }
    }

    #[test]
    fn a_cached_quantile_equals_the_computed_one() {
        let (kept, posterior) = (StandingCache::new(0.1), Posterior::new(7.0, 3.0));
        assert_eq!(kept.lower_bound(&posterior), posterior.lower_bound());
        assert_eq!(kept.lower_bound(&posterior), posterior.lower_bound());
        assert_eq!(StandingCache::new(0.3).lower_bound(&posterior), posterior.quantile(0.3));
        for alpha in 0..=KEPT_MAX {
            insert_bounded(&mut kept.bounds.lock().unwrap(), (alpha as u64, 0), 0.5);
        }
        assert!(kept.bounds.lock().unwrap().len() <= KEPT_MAX);
    }

    /// An outcome: a text of an entry helped.
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
    fn outcomes_are_cached_until_one_is_added_or_replaced() {
        let (engine, peer) = (engine(), author(9));
        let put = |row: &OutcomeRow| {
            let batch = engine.store().batch(Durability::Durable).unwrap();
            batch.put_outcome(peer, row).unwrap();
            batch.commit().unwrap();
            engine.store().snapshot().unwrap()
        };
        let reader = Reader::new(engine.author(), ScoringParams::new(&Config::default()));
        let outcomes = |of: &Snapshot| reader.at(of, NOW).unwrap().outcomes(peer).unwrap();
        let nothing = engine.store().snapshot().unwrap();
        assert!(outcomes(&nothing).is_empty());
        put(&outcome(1, 1));
        let two = put(&outcome(2, 1));
        let read = outcomes(&two);
        assert_eq!(*read, [outcome(1, 1), outcome(2, 1)]);
        let same = put(&outcome(2, 1));
        assert!(Arc::ptr_eq(&read, &outcomes(&same)), "the cached rows are reused");
        let replaced = put(&outcome(1, 2));
        assert_eq!(*outcomes(&replaced), [outcome(1, 2), outcome(2, 1)]);
        let newest_replaced = put(&outcome(2, 2));
        assert_eq!(*outcomes(&newest_replaced), [outcome(1, 2), outcome(2, 2)]);
        let three = put(&outcome(3, 1));
        assert_eq!(*outcomes(&three), [outcome(1, 2), outcome(2, 2), outcome(3, 1)]);
        assert_eq!(outcomes(&two), read, "an older snapshot gives the older rows");
        assert!(outcomes(&nothing).is_empty());
    }

    #[test]
    fn the_outcome_cache_is_bounded() {
        let (kept, reads) = (StandingCache::new(0.1), Cell::new(0));
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
        assert_eq!(reads_after(1, 7, 1), 5, "there is no room for both");
        assert_eq!(reads_after(1, 7, 1), 5);
        assert_eq!(kept.outcomes.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_standing_explains_its_weight() {
        let evidence = trust::trust(&[], Day(0), &trust::Params::default());
        let weight = Weight { value: 0.049, reason: WeightReason::Discounted };
        let of = AuthorStanding {
            author: author(9),
            name: "09090909".into(),
            relation: AuthorKind::Other,
            hop: Some(Hop(2)),
            via: Some(via(2, 1, 0.07)),
            trust: evidence.value,
            evidence: Some(evidence),
            weight,
            earned: EarnedTrust { trust: evidence.value, weight: weight.value, successes: 0.0 },
        };
        assert_eq!(
            of.why(),
            "known through peer 2, 2 hops; trust 0.10 from Beta(1.0, 1.0); weight 0.05: trust, \
             less for each hop"
        );
        let blocked = Weight { value: 0.0, reason: WeightReason::Blocked };
        assert!(
            AuthorStanding { weight: blocked, ..of }.why().ends_with("weight 0: it is blocked")
        );
    }
}
