//! Removals: the records by which the owner or an admin ends the membership of a key.
//!
//! A removal is a statement about one workspace and one key. It carries the **cut**: the digests of
//! the key's records that the remover holds. "Before the removal" means "in the cut", because
//! clocks and counters are written by the removed key itself and can lie. While a removal stands,
//! a node accepts no record of the key outside the cut.
//!
//! A removal is an entry of its own, not a part of the charter, because it is also sent to the
//! removed node, which must not learn of later changes to the charter. The digests fill as many
//! **pages** as they need: each page is an entry whose id follows from the workspace, the key and
//! the page number. Page 0 also holds the statement that the key is removed; its author can
//! withdraw the statement, which does not shrink the cut.
//!
//! Several authors may remove the same key. Their claims are on the same pages, and their cuts
//! unite. [`crate::workspace_charter`] decides which authors count.

use crate::claims::TextSet;
use crate::entry::Entry;
use crate::ids::{AuthorId, Digest};
use crate::limits::{ELEMENT_BYTES_MAX, SET_ELEMENTS_MAX};
use crate::record_builder::ClaimEdit;
use crate::removal_page_origin::{PAGES_MAX, RemovalPage};
use std::collections::{BTreeMap, BTreeSet};

/// Length of a digest in hex.
const DIGEST_CHARS: usize = 2 * Digest::LEN;
/// Number of digests in one element of the set: the limit on its bytes.
const ELEMENT_DIGESTS: usize = ELEMENT_BYTES_MAX / DIGEST_CHARS;
/// Number of digests that one author can put on a page.
pub const PAGE_DIGESTS_MAX: usize = SET_ELEMENTS_MAX * ELEMENT_DIGESTS;
/// Maximum number of digests in the cut of one author.
pub const CUT_DIGESTS_MAX: usize = PAGES_MAX as usize * PAGE_DIGESTS_MAX;

/// The removed keys of a workspace, each with the authors who state its removal. These authors need
/// not be allowed to remove the key: the charter decides which statements stand.
pub type RemovalStatements = BTreeMap<AuthorId, BTreeSet<AuthorId>>;

impl RemovalPage {
    /// The claim that states the removal, for page 0.
    pub fn statement(self) -> ClaimEdit {
        ClaimEdit::Add(TextSet::REMOVED, self.member.to_string())
    }

    /// The claim that withdraws the statement.
    pub fn withdrawal(self) -> ClaimEdit {
        ClaimEdit::Withdraw(TextSet::REMOVED, self.member.to_string())
    }

    /// The authors whose statement of the removal stands, read from page 0.
    pub fn stated_by(self, held: &Entry) -> BTreeSet<AuthorId> {
        let member = self.member.to_string();
        let states =
            |by: &AuthorId| elements(held, *by, TextSet::REMOVED).any(|one| *one == member);
        held.claims.keys().copied().filter(states).collect()
    }
}

/// The digests that these authors put on a page.
pub fn digests<'a>(
    held: &'a Entry,
    by: impl IntoIterator<Item = AuthorId> + 'a,
) -> impl Iterator<Item = Digest> + 'a {
    let texts = by.into_iter().flat_map(|author| elements(held, author, TextSet::CUT));
    texts.flat_map(|text| {
        let chunks = (0..text.len()).step_by(DIGEST_CHARS);
        chunks.filter_map(|at| Digest::from_hex(text.get(at..at + DIGEST_CHARS)?))
    })
}

/// The number of further digests that an author can put on a page.
pub fn room(held: &Entry, by: AuthorId) -> usize {
    let set = held.claims.get(&by).and_then(|claims| claims.texts.get(&TextSet::CUT));
    (SET_ELEMENTS_MAX - set.map_or(0, |set| set.len().min(SET_ELEMENTS_MAX))) * ELEMENT_DIGESTS
}

/// The claims that put digests on a page with enough room.
pub fn cut_claims(digests: &[Digest]) -> Vec<ClaimEdit> {
    let element = |chunk: &[Digest]| chunk.iter().map(Digest::to_string).collect::<String>();
    let elements = digests.chunks(ELEMENT_DIGESTS).map(element);
    elements.map(|text| ClaimEdit::Add(TextSet::CUT, text)).collect()
}

fn elements(held: &Entry, by: AuthorId, set: TextSet) -> impl Iterator<Item = &String> {
    let texts = held.claims.get(&by).and_then(|claims| claims.texts.get(&set));
    texts.into_iter().flat_map(|texts| texts.present())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_origin::{Memory, Origin};
    use crate::ids::{Boot, WorkspaceId};
    use crate::lattice::Lattice;
    use crate::live_records::LiveRecords;
    use crate::record_builder::RecordBuilder;
    use crate::removal_page_origin::FORMAT;
    use crate::signing_key::SecretKey;
    use crate::time::Hlc;

    const WORKSPACE: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes(&[seed; 32])
    }

    fn page(number: u16) -> RemovalPage {
        RemovalPage { workspace: WORKSPACE, member: key(9).author(), number }
    }

    fn numbered(numbers: std::ops::Range<u64>) -> Vec<Digest> {
        let of = |number: u64| {
            let mut bytes = [0; Digest::LEN];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            Digest::from_bytes(bytes)
        };
        numbers.map(of).collect()
    }

    fn write(held: &mut Entry, by: u8, claims: &[ClaimEdit]) {
        let (key, own) = (key(by), LiveRecords::default());
        let builder = RecordBuilder { key: &key, boot: Boot(1), entry: page(0).entry(), own: &own };
        let origin = Some(page(0).origin());
        let record = builder.claim(held, origin, claims, Hlc::from_bits(1 << 20)).unwrap();
        held.join(record.to_entry());
    }

    #[test]
    fn an_origin_names_one_page() {
        assert_eq!(RemovalPage::of(&page(3).origin()), Some(page(3)));
        let with_key = |key: &str| {
            let (format, key) = (FORMAT.to_owned(), key.to_owned());
            Origin::Imported { workspace: WORKSPACE, memory: Memory::Episodic, format, key }
        };
        let member = key(9).author();
        for bad in
            ["", "x 1", &format!("{member}"), &format!("{member} 64"), &format!("{member} 01")]
        {
            assert_eq!(RemovalPage::of(&with_key(bad)), None, "{bad}");
        }
        assert_ne!(page(0).entry(), page(1).entry());
    }

    #[test]
    fn a_page_holds_the_digests_of_each_author() {
        let mut held = Entry::default();
        let many = numbered(0..PAGE_DIGESTS_MAX as u64);
        write(&mut held, 1, &cut_claims(&many));
        write(&mut held, 2, &cut_claims(&numbered(5..8)));
        let read = |by: u8| digests(&held, [key(by).author()]).collect::<BTreeSet<_>>();
        assert_eq!(read(1), many.into_iter().collect());
        assert_eq!(read(2), numbered(5..8).into_iter().collect());
        assert_eq!(read(3), BTreeSet::new());
        assert_eq!(room(&held, key(1).author()), 0);
        assert_eq!(room(&held, key(2).author()), PAGE_DIGESTS_MAX - ELEMENT_DIGESTS);
    }

    #[test]
    fn only_the_author_withdraws_a_statement_and_the_cut_stays() {
        let mut held = Entry::default();
        let cut = numbered(1..3);
        write(&mut held, 1, &[cut_claims(&cut), vec![page(0).statement()]].concat());
        assert_eq!(page(0).stated_by(&held), [key(1).author()].into());
        write(&mut held, 2, &[page(0).withdrawal()]);
        assert_eq!(page(0).stated_by(&held), [key(1).author()].into());
        let own = held.clone();
        let claims = own.claims[&key(1).author()].clone();
        assert!(claims.texts.contains_key(&TextSet::REMOVED));
        let (signer, records) = (key(1), LiveRecords::default());
        let builder =
            RecordBuilder { key: &signer, boot: Boot(2), entry: page(0).entry(), own: &records };
        let later = Hlc::from_bits(2 << 20);
        let origin = Some(page(0).origin());
        held.join(builder.claim(&own, origin, &[page(0).withdrawal()], later).unwrap().to_entry());
        assert_eq!(page(0).stated_by(&held), BTreeSet::new());
        assert_eq!(digests(&held, [key(1).author()]).collect::<Vec<_>>(), cut);
    }
}
