//! Confidence in an entry: a Beta posterior over the weighted, decayed observations of all authors.
//!
//! The influence of other authors is bounded, so that a thousand invented identities weigh no more
//! than the peer that delivers their records, and a single liar no more than its own weight allows.
//! Separate from `decay` (time) and `trust` (author weights), whose results are inputs here. The
//! result is never stored: the same cells give another confidence on another day or on another
//! node.

use std::collections::BTreeMap;

use crate::clamp_to_unit::unit;
use crate::decay::{self, DecayInputs};
use crate::posterior::{LOWER_QUANTILE, Posterior};
use klnode_crdt::entry_view::AuthorCounts;
use klnode_crdt::gcounter::{CountedAmount, Thousandths};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Day;

/// Prior evidence from an import counts as at most this many observations of an entry.
pub const IMPORTED_MASS_MAX: f64 = 2.0;

/// Parameters of confidence; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// α of an entry without observations.
    pub prior_alpha: f64,
    /// β of an entry without observations.
    pub prior_beta: f64,
    /// Lower bound for α and β, for any configured prior.
    pub floor: f64,
    /// The mass of one member is at most this value times the member's weight.
    pub member_mass_max: f64,
    /// The mass that one paired peer delivers from non-members is at most this value times the
    /// peer's weight.
    pub peer_mass_max: f64,
    /// Upper bound for the mass of all non-members together; the default equals the weight of the
    /// prior.
    pub non_members_mass_max: f64,
    /// Probability mass of Beta(α, β) below the lower bound of an entry.
    pub lower_quantile: f64,
    /// Parameters by which observations decay.
    pub decay: decay::Params,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            prior_alpha: 5.0,
            prior_beta: 5.0,
            floor: 1.0,
            member_mass_max: 20.0,
            peer_mass_max: 20.0,
            non_members_mass_max: 10.0,
            lower_quantile: LOWER_QUANTILE,
            decay: decay::Params::default(),
        }
    }
}

/// Observations that one author counted on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// UTC day on which the author dates the observations.
    pub day: Day,
    /// Successes counted on that day.
    pub successes: Thousandths,
    /// Failures counted on that day.
    pub failures: Thousandths,
}

/// Converts the counts of one author, as a view shows them on day `today`, into dated cells.
#[must_use]
pub fn cells(counts: &AuthorCounts, today: Day) -> Vec<Cell> {
    let cell = |counted: &CountedAmount, successes: Thousandths, failures: Thousandths| Cell {
        day: Day(today.0.saturating_sub(counted.age_days)),
        successes,
        failures,
    };
    let none = Thousandths(0);
    let successes = counts.successes.iter().map(|counted| cell(counted, counted.amount, none));
    let failures = counts.failures.iter().map(|counted| cell(counted, none, counted.amount));
    successes.chain(failures).collect()
}

/// Relation of an author to this node and to the workspace of the entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AuthorRelation {
    /// This node, or another node of the same person: weight 1, without an upper bound.
    Own,
    /// A member of the entry's workspace.
    Member {
        /// Author weight as computed by [`trust::weight`](crate::trust::weight).
        weight: f64,
    },
    /// Any other author.
    NonMember {
        /// Author weight, in [0, 1].
        weight: f64,
        /// Paired peer through which the author's records reach this node, or the author itself if
        /// it is paired. For a member of another workspace, the peer that is responsible for it
        /// there.
        via: AuthorId,
        /// Weight of the peer in `via`; it bounds the mass of the whole group.
        via_weight: f64,
    },
}

impl AuthorRelation {
    /// Weight of the author's observations, in [0, 1].
    #[must_use]
    pub fn weight(&self) -> f64 {
        match *self {
            AuthorRelation::Own => 1.0,
            AuthorRelation::Member { weight } | AuthorRelation::NonMember { weight, .. } => {
                unit(weight)
            }
        }
    }
}

/// One author with all its observations of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Author<'a> {
    /// Id of the author.
    pub id: AuthorId,
    /// Relation of the author to this node and the workspace.
    pub standing: AuthorRelation,
    /// The author's cells, without those that a reset covers.
    pub cells: &'a [Cell],
}

/// Upper bound that reduced a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContributionBound {
    /// Bound on the mass of one member.
    Member,
    /// Bound on the mass of all records that this paired peer delivers from non-members.
    Peer(AuthorId),
    /// Bound on the mass of all non-members together.
    NonMembers,
}

/// Share of one author in an entry's confidence, after weighting, decay and bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// Id of the author.
    pub author: AuthorId,
    /// Relation of the author to this node and the workspace.
    pub standing: AuthorRelation,
    /// Amount added to α.
    pub alpha: f64,
    /// Amount added to β.
    pub beta: f64,
    /// Weighted, decayed mass before any bound.
    pub mass_offered: f64,
    /// Bounds that reduced the contribution, in the order in which they were applied.
    pub bounds: Vec<ContributionBound>,
}

impl Contribution {
    fn of(author: &Author<'_>, ageing: DecayInputs, params: &Params) -> Contribution {
        let (mut alpha, mut beta) = (0.0, 0.0);
        for cell in author.cells {
            let share = author.standing.weight() * decay::weight(cell.day, ageing, &params.decay);
            alpha += share * cell.successes.observations();
            beta += share * cell.failures.observations();
        }
        let standing = author.standing;
        let mass_offered = alpha + beta;
        Contribution { author: author.id, standing, alpha, beta, mass_offered, bounds: Vec::new() }
    }

    /// Amount added to α + β.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.alpha + self.beta
    }
}

/// Confidence in an entry, with the contribution of each author.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidence {
    /// Prior plus all contributions.
    pub posterior: Posterior,
    /// Prior plus the contributions of this node and its person's other nodes.
    pub own: Posterior,
    /// α + β − prior: the evidence expressed as a number of observations made today.
    pub effective_observations: f64,
    /// One contribution per author, in the order given.
    pub contributions: Vec<Contribution>,
    /// Amounts that prior evidence from an import added to α and β; `None` if none was added.
    pub imported: Option<(f64, f64)>,
}

impl Confidence {
    /// Adds prior evidence from an import to the posterior, decayed and bounded. `own` does not
    /// change: observations of another system prove nothing on this node.
    #[must_use]
    pub fn with_imported(self, cell: &Cell, ageing: DecayInputs, params: &Params) -> Confidence {
        let (successes, failures) = (cell.successes.observations(), cell.failures.observations());
        let bound = IMPORTED_MASS_MAX / (successes + failures).max(IMPORTED_MASS_MAX);
        let share = bound * decay::weight(cell.day, ageing, &params.decay);
        let (alpha, beta) = (share * successes, share * failures);
        let posterior =
            Posterior::new(self.posterior.alpha() + alpha, self.posterior.beta() + beta);
        Confidence {
            posterior,
            effective_observations: self.effective_observations + alpha + beta,
            imported: Some((alpha, beta)),
            ..self
        }
    }
}

/// Computes the confidence in an entry from the cells of all its authors.
#[must_use]
pub fn confidence(authors: &[Author<'_>], ageing: DecayInputs, params: &Params) -> Confidence {
    let mut contributions: Vec<Contribution> =
        authors.iter().map(|author| Contribution::of(author, ageing, params)).collect();
    bound_members(&mut contributions, params);
    bound_peers(&mut contributions, params);
    bound_non_members(&mut contributions, params);

    let (posterior, mass) = posterior(contributions.iter(), params);
    let own = contributions.iter().filter(|one| one.standing == AuthorRelation::Own);
    let (own, _) = self::posterior(own, params);
    Confidence { posterior, own, effective_observations: mass, contributions, imported: None }
}

/// Posterior of the given contributions, and their total mass.
fn posterior<'a>(
    contributions: impl Iterator<Item = &'a Contribution>,
    params: &Params,
) -> (Posterior, f64) {
    let (alpha, beta) =
        contributions.fold((0.0, 0.0), |sum, one| (sum.0 + one.alpha, sum.1 + one.beta));
    let posterior = Posterior::new(
        (params.prior_alpha + alpha).max(params.floor),
        (params.prior_beta + beta).max(params.floor),
    );
    (posterior, alpha + beta)
}

fn bound_members(contributions: &mut [Contribution], params: &Params) {
    for one in contributions {
        if let AuthorRelation::Member { weight } = one.standing {
            let mass_max = unit(weight) * params.member_mass_max;
            scale([one], mass_max, ContributionBound::Member);
        }
    }
}

fn bound_peers(contributions: &mut [Contribution], params: &Params) {
    let mut by_peer: BTreeMap<AuthorId, (f64, Vec<&mut Contribution>)> = BTreeMap::new();
    for one in contributions {
        if let AuthorRelation::NonMember { via, via_weight, .. } = one.standing {
            let (weight, group) = by_peer.entry(via).or_insert((1.0, Vec::new()));
            *weight = weight.min(unit(via_weight));
            group.push(one);
        }
    }
    for (peer, (weight, group)) in by_peer {
        scale(group, weight * params.peer_mass_max, ContributionBound::Peer(peer));
    }
}

fn bound_non_members(contributions: &mut [Contribution], params: &Params) {
    let group: Vec<&mut Contribution> = contributions
        .iter_mut()
        .filter(|one| matches!(one.standing, AuthorRelation::NonMember { .. }))
        .collect();
    scale(group, params.non_members_mass_max, ContributionBound::NonMembers);
}

/// Scales a group down to `mass_max` in total; each contribution keeps its ratio α : β.
fn scale<'a, G>(group: G, mass_max: f64, bound: ContributionBound)
where
    G: IntoIterator<Item = &'a mut Contribution>,
{
    let group: Vec<&mut Contribution> = group.into_iter().collect();
    let mass: f64 = group.iter().map(|one| one.mass()).sum();
    if mass <= mass_max {
        return;
    }
    for one in group {
        one.alpha *= mass_max / mass;
        one.beta *= mass_max / mass;
        one.bounds.push(bound);
    }
}

#[cfg(test)]
mod tests;
