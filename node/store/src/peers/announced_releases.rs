//! Announced releases: statements of peers about releases of entries that this node does not hold
//! yet.
//!
//! A page may end between the statement and the record it concerns, and the record may be refused.
//! Without the statement the two sides would compare different sets. But statements cost nothing,
//! and anyone can make up entry ids, so their number per peer is limited.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::row_types;
use super::super::tables::{META, META_FORETOLD, RELEASES, key, part, span};
use super::row_types::ReleaseRow;
use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use redb::ReadableTable;

/// Most announced releases per peer. Above that, a release becomes known when the peer delivers a
/// record.
const ANNOUNCED_MAX: u64 = 10_000;

/// At the limit, the announced releases are recounted at most once in this time, in milliseconds,
/// because other peers may have delivered the entries meanwhile.
const RECOUNT_MS: u64 = 3_600_000;

/// The announced releases of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct AnnouncedReleases {
    rows: u64,
    /// Time of the last recount, in milliseconds.
    recounted: u64,
}

impl Batch {
    /// Stores a peer's statement about its release of an entry, if the limit allows it.
    pub(super) fn announce(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
        now: WallTime,
    ) -> Result<(), Error> {
        let before = self.announced(peer)?;
        let (mut count, at) = (before, now.as_millis());
        if count.rows >= ANNOUNCED_MAX && at.abs_diff(count.recounted) >= RECOUNT_MS {
            count = AnnouncedReleases { rows: self.recount_announced(peer)?, recounted: at };
        }
        if count.rows < ANNOUNCED_MAX {
            count.rows += 1;
            self.put_release(peer, entry, ReleaseRow { is_foretold: true, ..row })?;
        }
        if count == before { Ok(()) } else { self.put_announced(peer, count) }
    }

    /// Notes that a record of an announced entry has arrived.
    pub(super) fn fulfil_announcement(&self, peer: AuthorId) -> Result<(), Error> {
        let count = self.announced(peer)?;
        self.put_announced(peer, AnnouncedReleases { rows: count.rows.saturating_sub(1), ..count })
    }

    /// Recounts a peer's announced releases, and returns how many entries are still missing.
    fn recount_announced(&self, peer: AuthorId) -> Result<u64, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let (mut here, mut left) = (Vec::new(), 0);
        let releases = self.transaction.open_table(RELEASES)?;
        for row in releases.range::<&[u8; 48]>(&first..=&last)? {
            let (at, row) = row?;
            let row =
                Error::unless_damaged(row_types::decode::<ReleaseRow>("releases", row.value()))?;
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

    fn announced(&self, peer: AuthorId) -> Result<AnnouncedReleases, Error> {
        let meta = self.transaction.open_table(META)?;
        let row = meta.get(&announced_name(peer))?;
        Ok(row.and_then(|row| announced_from(row.value())).unwrap_or_default())
    }

    fn put_announced(&self, peer: AuthorId, count: AnnouncedReleases) -> Result<(), Error> {
        let row: [u8; 16] = key(&[&count.rows.to_be_bytes(), &count.recounted.to_be_bytes()]);
        self.put_meta(announced_name(peer), &row)
    }
}

fn announced_from(row: &[u8]) -> Option<AnnouncedReleases> {
    let number = |from: usize| u64::from_be_bytes(part(row, from));
    (row.len() == 16).then(|| AnnouncedReleases { rows: number(0), recounted: number(8) })
}

/// The meta name under which a peer's announced releases are counted.
fn announced_name(peer: AuthorId) -> [u8; 8] {
    let hash = FieldHasher::new(Context::Slot).field(peer.as_bytes()).finish_short();
    key(&[&[META_FORETOLD], &hash[..7]])
}
