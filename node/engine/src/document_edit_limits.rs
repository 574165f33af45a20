//! The limits on the stored edits of one author in one document.
//!
//! Two copies of a home may use a number twice, and a key may sign any number of edits, so a node
//! keeps a bounded number of them. Which ones must not depend on the order of arrival, and must not
//! be in the hands of the author alone: by signing further edits it could otherwise erase earlier
//! ones everywhere, with the work that others built on them.

use super::edit_entitlement::EditEntitlement;
use klnode_crdt::ids::{AuthorId, Digest};
use klnode_crdt::limits::EDIT_COPIES_MAX;
use klnode_document::change_hash::ChangeHash;
use klnode_document::limits::AuthorQuota;
use klnode_store::documents::EditName;
use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of one author's edits in a document, apart from those in a cut, and again of those that
/// other authors' edits depend on. Beyond it, the edits with the greatest numbers are dropped, so that
/// the rest does not depend on the order of arrival. It is above the quota of the document, so no edit
/// is dropped that would count.
pub(super) const MEMBER_BYTES_MAX: u64 = 2 * AuthorQuota::FORMAT.bytes_max;

/// The inputs that decide which edits of an author are dropped.
pub(super) struct EditLimits {
    pub(super) author: AuthorId,
    /// The cuts: an edit in one is never dropped.
    pub(super) entitlement: EditEntitlement,
    /// The records of changes on which entitled changes of other authors depend. They have a limit of
    /// their own. A change in several records is kept in the first.
    pub(super) needed: BTreeMap<Digest, ChangeHash>,
}

impl EditLimits {
    /// The digests of the edits beyond the limits. `names` are ordered by number, then digest.
    pub(super) fn excess(&self, names: &[EditName]) -> BTreeSet<Digest> {
        let mut excess = BTreeSet::new();
        let (mut needed_bytes, mut other_bytes) = (0, 0);
        let (mut changes, mut copies) = (BTreeSet::new(), BTreeMap::<u32, usize>::new());
        for name in names {
            if self.entitlement.is_in_cut(self.author, name.digest) {
                continue;
            }
            let bytes = match self.needed.get(&name.digest) {
                Some(change) if changes.insert(*change) => &mut needed_bytes,
                _ => {
                    let count = copies.entry(name.number).or_default();
                    *count += 1;
                    if *count > EDIT_COPIES_MAX {
                        excess.insert(name.digest);
                        continue;
                    }
                    &mut other_bytes
                }
            };
            *bytes += u64::from(name.bytes);
            if *bytes > MEMBER_BYTES_MAX {
                excess.insert(name.digest);
            }
        }
        excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_store::peers::Cut;
    use std::sync::Arc;

    const AUTHOR: AuthorId = AuthorId::from_bytes([1; 32]);

    fn name(number: u32, digest: u8, bytes: u64) -> EditName {
        let digest = Digest::from_bytes([digest; 32]);
        EditName { author: AUTHOR, number, digest, bytes: u32::try_from(bytes).unwrap() }
    }

    fn limits(cut: &[u8], needed: &[(u8, u8)]) -> EditLimits {
        let digests = cut.iter().map(|byte| Digest::from_bytes([*byte; 32])).collect();
        let cuts = [(AUTHOR, Arc::new(Cut { is_out: true, digests }))].into();
        let needed = needed.iter().map(|(digest, change)| {
            (Digest::from_bytes([*digest; 32]), ChangeHash::from_bytes([*change; 32]))
        });
        EditLimits {
            author: AUTHOR,
            entitlement: EditEntitlement::Members(BTreeSet::new(), cuts),
            needed: needed.collect(),
        }
    }

    fn excess(limits: &EditLimits, names: &[EditName]) -> Vec<u8> {
        limits.excess(names).into_iter().map(|digest| digest.as_bytes()[0]).collect()
    }

    #[test]
    fn copies_of_a_number_drop_neither_edits_in_a_cut_nor_needed_ones() {
        let names: Vec<EditName> = (1..=6).map(|digest| name(1, digest, 100)).collect();
        assert_eq!(EDIT_COPIES_MAX, 4);
        assert_eq!(excess(&limits(&[], &[]), &names), [5, 6]);
        assert_eq!(excess(&limits(&[6], &[]), &names), [5]);
        assert_eq!(excess(&limits(&[6], &[(5, 9)]), &names), [0_u8; 0]);
        assert_eq!(excess(&limits(&[1, 6], &[]), &names), [0_u8; 0]);
    }

    #[test]
    fn a_needed_change_is_kept_in_one_record() {
        let names: Vec<EditName> = (1..=7).map(|digest| name(1, digest, 100)).collect();
        assert_eq!(excess(&limits(&[], &[(6, 9), (7, 9)]), &names), [5, 7]);
    }

    #[test]
    fn the_bytes_of_an_author_are_limited_apart_from_cut_and_needed_edits() {
        let names: Vec<EditName> =
            (1..=5).map(|at| name(u32::from(at), at, MEMBER_BYTES_MAX / 2)).collect();
        assert_eq!(excess(&limits(&[], &[]), &names), [3, 4, 5]);
        assert_eq!(excess(&limits(&[3], &[]), &names), [4, 5]);
        assert_eq!(excess(&limits(&[3], &[(5, 9)]), &names), [4]);
        let needed: Vec<(u8, u8)> = (1..=5).map(|at| (at, at)).collect();
        assert_eq!(
            excess(&limits(&[], &needed), &names),
            [3, 4, 5],
            "needed edits are limited, too"
        );
    }
}
