//! How far an entry is believed: a Beta posterior over everyone's weighted, faded observations.
//!
//! What others say is bounded, so that a thousand invented identities weigh no more than the peer
//! that brings them, and a single liar no more than its own weight allows. Separate from `decay`
//! (time) and `trust` (whom to believe), whose answers it takes as given. It never stores a result:
//! the same cells read on another day, or by another node, are judged anew.

use std::collections::BTreeMap;

use crate::decay::{self, Ageing};
use crate::posterior::{LOWER_QUANTILE, Posterior};
use crate::unit::unit;
use klnode_crdt::gcounter::{Counted, Thousandths};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Day;
use klnode_crdt::view::Counts;

/// Prior evidence from an import counts as at most this many observations of an entry.
pub const IMPORTED_MASS_MAX: f64 = 2.0;

/// The numbers of confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// α of an entry nobody has observed.
    pub prior_alpha: f64,
    /// β of an entry nobody has observed.
    pub prior_beta: f64,
    /// Below this neither α nor β falls, whatever the priors are set to.
    pub floor: f64,
    /// A member's mass is at most this times its weight.
    pub member_mass_max: f64,
    /// What one paired peer brings from non-members is at most this times the peer's weight.
    pub peer_mass_max: f64,
    /// The mass of all non-members together: no more than the prior weighs.
    pub non_members_mass_max: f64,
    /// The share of Beta(α, β) that lies below an entry's lower bound.
    pub lower_quantile: f64,
    /// How observations fade.
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

/// What one author counted on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The UTC day the author dated it.
    pub day: Day,
    /// Success counted on that day.
    pub successes: Thousandths,
    /// Failure counted on that day.
    pub failures: Thousandths,
}

/// The cells behind what an author counted, as a view shows it on a day.
#[must_use]
pub fn cells(counts: &Counts, today: Day) -> Vec<Cell> {
    let cell = |counted: &Counted, successes: Thousandths, failures: Thousandths| Cell {
        day: Day(today.0.saturating_sub(counted.age_days)),
        successes,
        failures,
    };
    let none = Thousandths(0);
    let successes = counts.successes.iter().map(|counted| cell(counted, counted.amount, none));
    let failures = counts.failures.iter().map(|counted| cell(counted, none, counted.amount));
    successes.chain(failures).collect()
}

/// Who an author is to this node and to the workspace of the entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// This node, or another of the same person: weighs 1, without a bound.
    Own,
    /// A member of the entry's workspace.
    Member {
        /// The weight of the author, as [`trust::weight`](crate::trust::weight) gives it.
        weight: f64,
    },
    /// Anyone else.
    NonMember {
        /// The weight of the author.
        weight: f64,
        /// The paired peer through which the author's records reach this node; itself, if paired; of
        /// a member of another workspace, whoever answers for it there.
        via: AuthorId,
        /// The weight of that peer.
        via_weight: f64,
    },
}

impl Standing {
    /// The weight of the author's observations, in [0, 1].
    #[must_use]
    pub fn weight(&self) -> f64 {
        match *self {
            Standing::Own => 1.0,
            Standing::Member { weight } | Standing::NonMember { weight, .. } => unit(weight),
        }
    }
}

/// An author with everything it counted about one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Author<'a> {
    /// Who it is.
    pub id: AuthorId,
    /// What it is to this node.
    pub standing: Standing,
    /// What it counted, leaving out the cells that a reset covers.
    pub cells: &'a [Cell],
}

/// A bound that took something from a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// One member's mass.
    Member,
    /// The mass of all that this paired peer brings.
    Peer(AuthorId),
    /// The mass of all non-members together.
    NonMembers,
}

/// What one author adds to an entry's confidence, after weighing, fading and bounding.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// Who it is.
    pub author: AuthorId,
    /// What it is to this node.
    pub standing: Standing,
    /// What it adds to α.
    pub alpha: f64,
    /// What it adds to β.
    pub beta: f64,
    /// Its weighted, faded mass before any bound.
    pub mass_offered: f64,
    /// The bounds that scaled it down, in the order in which they did.
    pub bounds: Vec<Bound>,
}

impl Contribution {
    fn of(author: &Author<'_>, ageing: Ageing, params: &Params) -> Contribution {
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

    /// What it adds to α + β.
    #[must_use]
    pub fn mass(&self) -> f64 {
        self.alpha + self.beta
    }
}

/// How far an entry is believed, and through whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidence {
    /// Prior and all contributions.
    pub posterior: Posterior,
    /// Prior and the contributions of this node and its person's other nodes alone.
    pub own: Posterior,
    /// α + β − prior: how many observations of today the evidence is worth.
    pub effective_observations: f64,
    /// One per author, in the order given.
    pub contributions: Vec<Contribution>,
    /// What prior evidence from an import adds to α and to β, where it was added.
    pub imported: Option<(f64, f64)>,
}

impl Confidence {
    /// Adds prior evidence from an import to the posterior, faded and bounded. `own` stays as it is:
    /// what another system observed proves nothing here.
    #[must_use]
    pub fn with_imported(self, cell: &Cell, ageing: Ageing, params: &Params) -> Confidence {
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

/// The confidence in an entry from all its authors' cells.
#[must_use]
pub fn confidence(authors: &[Author<'_>], ageing: Ageing, params: &Params) -> Confidence {
    let mut contributions: Vec<Contribution> =
        authors.iter().map(|author| Contribution::of(author, ageing, params)).collect();
    bound_members(&mut contributions, params);
    bound_peers(&mut contributions, params);
    bound_non_members(&mut contributions, params);

    let (posterior, mass) = posterior(contributions.iter(), params);
    let own = contributions.iter().filter(|one| one.standing == Standing::Own);
    let (own, _) = self::posterior(own, params);
    Confidence { posterior, own, effective_observations: mass, contributions, imported: None }
}

/// The posterior of some contributions, and their mass.
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
        if let Standing::Member { weight } = one.standing {
            let mass_max = unit(weight) * params.member_mass_max;
            scale([one], mass_max, Bound::Member);
        }
    }
}

fn bound_peers(contributions: &mut [Contribution], params: &Params) {
    let mut by_peer: BTreeMap<AuthorId, (f64, Vec<&mut Contribution>)> = BTreeMap::new();
    for one in contributions {
        if let Standing::NonMember { via, via_weight, .. } = one.standing {
            let (weight, group) = by_peer.entry(via).or_insert((1.0, Vec::new()));
            *weight = weight.min(unit(via_weight));
            group.push(one);
        }
    }
    for (peer, (weight, group)) in by_peer {
        scale(group, weight * params.peer_mass_max, Bound::Peer(peer));
    }
}

fn bound_non_members(contributions: &mut [Contribution], params: &Params) {
    let group: Vec<&mut Contribution> = contributions
        .iter_mut()
        .filter(|one| matches!(one.standing, Standing::NonMember { .. }))
        .collect();
    scale(group, params.non_members_mass_max, Bound::NonMembers);
}

/// Scales a group down to `mass_max` together, each keeping its α : β.
fn scale<'a, G>(group: G, mass_max: f64, bound: Bound)
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
