//! What peers tell of their releases before anything of the entry is here.
//!
//! A page may end between such a word and the record that it is about, and what is offered may be
//! refused: both sides would compare something else if it were not noted. But a word costs nothing, and
//! anyone can make up names of entries, so of one peer so many are kept.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::rows;
use super::super::tables::{META, META_FORETOLD, RELEASES, key, part, span};
use super::rows::ReleaseRow;
use klnode_crdt::digest::{Context, Fields};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use redb::ReadableTable;

/// So many are kept of one peer. Beyond that a release shows by what the peer brings.
const FORETOLD_MAX: u64 = 10_000;

/// When there are so many they are gone through, after so long at the earliest, in milliseconds: others
/// may have brought the entries meanwhile.
const RECOUNT_MS: u64 = 3_600_000;

/// What one peer has foretold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Foretold {
    rows: u64,
    /// When they were last gone through, in milliseconds.
    recounted: u64,
}

impl Batch {
    /// Keeps what a peer says of its release of an entry, if there is room.
    pub(super) fn foretell(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
        now: WallTime,
    ) -> Result<(), Error> {
        let before = self.foretold(peer)?;
        let (mut told, at) = (before, now.as_millis());
        if told.rows >= FORETOLD_MAX && at.abs_diff(told.recounted) >= RECOUNT_MS {
            told = Foretold { rows: self.still_foretold(peer)?, recounted: at };
        }
        if told.rows < FORETOLD_MAX {
            told.rows += 1;
            self.put_release(peer, entry, ReleaseRow { is_foretold: true, ..row })?;
        }
        if told == before { Ok(()) } else { self.put_foretold(peer, told) }
    }

    /// Something of an entry is here that a peer has foretold.
    pub(super) fn fulfil(&self, peer: AuthorId) -> Result<(), Error> {
        let told = self.foretold(peer)?;
        self.put_foretold(peer, Foretold { rows: told.rows.saturating_sub(1), ..told })
    }

    /// Goes through what a peer has foretold: of how many entries there is still nothing.
    fn still_foretold(&self, peer: AuthorId) -> Result<u64, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let (mut here, mut left) = (Vec::new(), 0);
        let releases = self.transaction.open_table(RELEASES)?;
        for row in releases.range::<&[u8; 48]>(&first..=&last)? {
            let (at, row) = row?;
            let row = Error::unless_damaged(rows::decode::<ReleaseRow>("releases", row.value()))?;
            let Some(row) = row.filter(|row| row.is_foretold) else { continue };
            let entry = EntryId::from_bytes(part(at.value(), 32));
            match self.holds_any_of(entry)? {
                true => here.push((entry, row)),
                false => left += 1,
            }
        }
        drop(releases);
        for (entry, row) in here {
            self.put_release(peer, entry, ReleaseRow { is_foretold: false, ..row })?;
        }
        Ok(left)
    }

    fn foretold(&self, peer: AuthorId) -> Result<Foretold, Error> {
        let meta = self.transaction.open_table(META)?;
        let row = meta.get(&foretold_name(peer))?;
        Ok(row.and_then(|row| foretold_in(row.value())).unwrap_or_default())
    }

    fn put_foretold(&self, peer: AuthorId, told: Foretold) -> Result<(), Error> {
        let row: [u8; 16] = key(&[&told.rows.to_be_bytes(), &told.recounted.to_be_bytes()]);
        self.put_meta(foretold_name(peer), &row)
    }
}

fn foretold_in(row: &[u8]) -> Option<Foretold> {
    let number = |from: usize| u64::from_be_bytes(part(row, from));
    (row.len() == 16).then(|| Foretold { rows: number(0), recounted: number(8) })
}

/// The name under which is counted what a peer has foretold.
fn foretold_name(peer: AuthorId) -> [u8; 8] {
    let hash = Fields::new(Context::Slot).field(peer.as_bytes()).finish_short();
    key(&[&[META_FORETOLD], &hash[..7]])
}
