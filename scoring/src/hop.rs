//! How far away an author is, in steps of acquaintance.
//!
//! Separate from `trust`: distance is what peers claim about the way records took, trust is what
//! this node found out itself. A hop is local and never part of a record, since everyone's differs.

/// Steps from this node: 0 itself and its person's other nodes, 1 a paired peer or a fellow member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop(pub u8);

impl Hop {
    /// This node and its person's other nodes.
    pub const OWN: Hop = Hop(0);
    /// A paired peer, connected or not, and any member of a shared workspace.
    pub const NEAR: Hop = Hop(1);
    /// Beyond this an author's distance counts as unknown.
    pub const MAX: Hop = Hop(3);
}

/// What an author is to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// This node, or another node of the same person.
    Own,
    /// A paired peer.
    Paired,
    /// A member of a shared workspace, however its records arrived.
    Member,
    /// Known only through others.
    Other,
}

/// The distance of an author, or `None` where it is unknown.
///
/// `claims` are the latest distances that paired, unblocked peers state for the author. Whatever
/// they claim, an author that is neither paired nor a member is at least two steps away: a relay
/// cannot make a stranger its own neighbour's equal.
#[must_use]
pub fn hop(relation: Relation, claims: &[u8], hop_max: Hop) -> Option<Hop> {
    let hop = match relation {
        Relation::Own => Hop::OWN,
        Relation::Paired | Relation::Member => Hop::NEAR,
        Relation::Other => Hop(claims.iter().min()?.saturating_add(1).max(Hop::NEAR.0 + 1)),
    };
    (hop <= hop_max).then_some(hop)
}

#[cfg(test)]
mod tests {
    use super::{Hop, Relation, hop};

    #[test]
    fn distance_is_one_more_than_the_nearest_claim_and_never_less_than_two() {
        for (relation, claims, expect) in [
            (Relation::Own, &[3][..], Some(0)),
            (Relation::Paired, &[], Some(1)),
            (Relation::Member, &[9], Some(1)),
            (Relation::Other, &[1], Some(2)),
            (Relation::Other, &[0], Some(2)),
            (Relation::Other, &[7, 2], Some(3)),
            (Relation::Other, &[3], None),
            (Relation::Other, &[255], None),
            (Relation::Other, &[], None),
        ] {
            let given = hop(relation, claims, Hop::MAX);
            assert_eq!(given, expect.map(Hop), "{relation:?} with claims {claims:?}");
        }
    }
}
