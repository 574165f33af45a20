//! Distance of an author from this node, in pairing steps.
//!
//! Separate from `trust`: the distance follows from claims of peers about the route of records,
//! trust from this node's own experience. A hop count is local and never part of a record, since it
//! differs on every node.

/// Hop count: 0 is this node and its person's other nodes, 1 a paired peer or a fellow member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop(pub u8);

impl Hop {
    /// Hop count of this node and its person's other nodes.
    pub const OWN: Hop = Hop(0);
    /// Hop count of a paired peer, connected or not, and of any member of a shared workspace.
    pub const NEAR: Hop = Hop(1);
    /// Authors further away than this count as being at an unknown distance.
    pub const MAX: Hop = Hop(3);

    /// The distance in words, such as `2 hops`.
    #[must_use]
    pub fn in_words(self) -> String {
        if self == Self::NEAR { "1 hop".to_owned() } else { format!("{} hops", self.0) }
    }
}

/// Relation of an author to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorKind {
    /// This node, or another node of the same person.
    Own,
    /// A paired peer.
    Paired,
    /// A member of a shared workspace, regardless of the route of its records.
    Member,
    /// An author known only through other peers.
    Other,
}

/// Computes the hop count of an author; `None` if it is unknown or beyond `hop_max`.
///
/// `claims` are the latest distances that paired, unblocked peers state for the author. An author
/// that is neither paired nor a member is at least two hops away regardless of the claims: a relay
/// cannot place a stranger at the distance of a paired peer.
#[must_use]
pub fn hop(relation: AuthorKind, claims: &[u8], hop_max: Hop) -> Option<Hop> {
    let hop = match relation {
        AuthorKind::Own => Hop::OWN,
        AuthorKind::Paired | AuthorKind::Member => Hop::NEAR,
        AuthorKind::Other => Hop(claims.iter().min()?.saturating_add(1).max(Hop::NEAR.0 + 1)),
    };
    (hop <= hop_max).then_some(hop)
}

#[cfg(test)]
mod tests {
    use super::{AuthorKind, Hop, hop};

    #[test]
    fn the_hop_count_is_the_lowest_claim_plus_one_and_at_least_two() {
        for (relation, claims, expect) in [
            (AuthorKind::Own, &[3][..], Some(0)),
            (AuthorKind::Paired, &[], Some(1)),
            (AuthorKind::Member, &[9], Some(1)),
            (AuthorKind::Other, &[1], Some(2)),
            (AuthorKind::Other, &[0], Some(2)),
            (AuthorKind::Other, &[7, 2], Some(3)),
            (AuthorKind::Other, &[3], None),
            (AuthorKind::Other, &[255], None),
            (AuthorKind::Other, &[], None),
        ] {
            let given = hop(relation, claims, Hop::MAX);
            assert_eq!(given, expect.map(Hop), "{relation:?} with claims {claims:?}");
        }
    }
}
