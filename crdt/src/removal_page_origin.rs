//! The pages of a removal, as their origins name them.
//!
//! Separate from the removal itself, because a tombstone must recognize a page without reading it.

use crate::charter_origin;
use crate::entry_origin::{Memory, Origin};
use crate::ids::{AuthorId, EntryId, WorkspaceId};

/// The source format in the origin of a page.
pub const FORMAT: &str = "klnode/removal";
/// Maximum number of pages of one removal.
pub const PAGES_MAX: u16 = 64;

/// A page of a removal, as its origin names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemovalPage {
    /// The workspace that the key is removed from.
    pub workspace: WorkspaceId,
    /// The removed key.
    pub member: AuthorId,
    /// Number of the page, below [`PAGES_MAX`].
    pub number: u16,
}

impl RemovalPage {
    /// The origin of the page.
    pub fn origin(self) -> Origin {
        let (format, key) = (FORMAT.to_owned(), format!("{} {}", self.member, self.number));
        Origin::Imported { workspace: self.workspace, memory: Memory::Episodic, format, key }
    }

    /// The entry id of the page.
    pub fn entry(self) -> EntryId {
        self.origin().id()
    }

    /// The page that an origin names; `None` for every other entry.
    pub fn of(origin: &Origin) -> Option<Self> {
        let Origin::Imported { workspace, memory: Memory::Episodic, format, key } = origin else {
            return None;
        };
        let (member, number) = key.split_once(' ').filter(|_| format == FORMAT)?;
        let member = AuthorId::from_hex(member)?;
        let number = number.parse().ok().filter(|number| *number < PAGES_MAX)?;
        let page = Self { workspace: *workspace, member, number };
        // Only one spelling of a key is a page.
        (page.origin() == *origin).then_some(page)
    }
}

/// True for entries that klnode keeps for itself: charters and pages of removals.
pub fn is_internal(origin: &Origin) -> bool {
    RemovalPage::of(origin).is_some() || charter_origin::origin(origin.workspace()) == *origin
}
