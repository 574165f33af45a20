//! Per-row facts of the vector index, with which a query skips most unwanted entries before it
//! reads their vectors.
//!
//! A [`Filter`] may admit an entry that does not match (hashes collide, and tags share bits): the
//! caller checks the entry itself afterwards. Except for excluded threads it never rejects a
//! matching entry. Facts are stored, so the hashes here are part of the file format.

use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::WorkspaceId;

/// Number of bits that one tag sets in a signature.
const TAG_BITS: u32 = 2;

/// The facts of an entry that filters use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RowFacts {
    /// A hash of the workspace.
    pub(super) workspace: u32,
    /// A hash of the thread; 0 for an entry without a thread.
    pub(super) thread: u32,
    /// The letter of the entry type; 0 if unknown.
    pub(super) kind: u8,
    /// The code of the memory.
    pub(super) memory: u8,
    /// A hash of the sub-type, or of the empty text if there is none; 0 if unknown, as in rows
    /// written before sub-types were indexed.
    pub(super) sub_type: u8,
    /// The signature of the tags.
    pub(super) tags: TagSignature,
}

impl RowFacts {
    /// The facts of an entry. An empty thread means none.
    pub fn new<'t>(
        workspace: WorkspaceId,
        thread: &str,
        kind: Option<EntryType>,
        memory: Memory,
        tags: impl IntoIterator<Item = &'t str>,
    ) -> Self {
        Self {
            workspace: workspace_hash(workspace),
            thread: thread_hash(thread),
            kind: kind.map_or(0, letter),
            memory: memory.code(),
            sub_type: 0,
            tags: TagSignature::of_entry(tags),
        }
    }

    /// The same facts with this sub-type; the empty text means none.
    #[must_use]
    pub fn of_sub_type(mut self, name: &str) -> Self {
        self.sub_type = sub_type_hash(name);
        self
    }
}

/// A Bloom filter of tags in 128 bits: two bits for each tag, and two for each of its ancestors.
///
/// It ignores case, so that the caller may compare with or without case afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TagSignature(pub(super) u128);

impl TagSignature {
    /// The signature of an entry with these tags: `auth/jwt` also matches a filter for `auth`.
    pub fn of_entry<'t>(tags: impl IntoIterator<Item = &'t str>) -> Self {
        let mut bits = 0;
        for tag in tags {
            let ancestors = tag.match_indices('/').map(|(at, _)| &tag[..at]);
            for name in ancestors.chain([tag]) {
                bits |= tag_bits(name);
            }
        }
        Self(bits)
    }

    /// The bits that an entry must have to match all of these tags.
    pub fn required<'t>(tags: impl IntoIterator<Item = &'t str>) -> Self {
        Self(tags.into_iter().fold(0, |bits, tag| bits | tag_bits(tag)))
    }

    fn holds(self, required: Self) -> bool {
        self.0 & required.0 == required.0
    }
}

/// The entries that a query asks for; by default all.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RowFilter {
    workspaces: Option<Vec<u32>>,
    threads: Option<Vec<u32>>,
    threads_excluded: Vec<u32>,
    kinds: Option<u128>,
    sub_types: Option<Vec<u8>>,
    memories: Option<u128>,
    tags: TagSignature,
}

impl RowFilter {
    /// Admits every entry.
    pub fn all() -> Self {
        Self::default()
    }

    /// Restricts to these workspaces.
    #[must_use]
    pub fn workspaces(mut self, of: impl IntoIterator<Item = WorkspaceId>) -> Self {
        self.workspaces = Some(of.into_iter().map(workspace_hash).collect());
        self
    }

    /// Restricts to these threads. The empty text stands for entries without a thread.
    #[must_use]
    pub fn threads<'t>(mut self, of: impl IntoIterator<Item = &'t str>) -> Self {
        self.threads = Some(of.into_iter().map(thread_hash).collect());
        self
    }

    /// Excludes these threads. Entries of another thread with the same hash are excluded too.
    #[must_use]
    pub fn threads_excluded<'t>(mut self, of: impl IntoIterator<Item = &'t str>) -> Self {
        self.threads_excluded = of.into_iter().map(thread_hash).collect();
        self
    }

    /// Restricts to these entry types.
    #[must_use]
    pub fn kinds(mut self, of: impl IntoIterator<Item = EntryType>) -> Self {
        self.kinds = Some(of.into_iter().fold(0, |bits, kind| bits | bit(letter(kind))));
        self
    }

    /// Restricts to these sub-types.
    #[must_use]
    pub fn sub_types<'t>(mut self, of: impl IntoIterator<Item = &'t str>) -> Self {
        self.sub_types = Some(of.into_iter().map(sub_type_hash).collect());
        self
    }

    /// Restricts to these memories.
    #[must_use]
    pub fn memories(mut self, of: impl IntoIterator<Item = Memory>) -> Self {
        self.memories = Some(of.into_iter().fold(0, |bits, memory| bits | bit(memory.code())));
        self
    }

    /// Restricts to entries with each of these tags, or a tag below it.
    #[must_use]
    pub fn tags<'t>(mut self, all: impl IntoIterator<Item = &'t str>) -> Self {
        self.tags = TagSignature::required(all);
        self
    }

    /// True if every entry is admitted, so that no facts need to be read.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// True if an entry with these facts may match.
    pub fn admits(&self, facts: &RowFacts) -> bool {
        let within =
            |set: &Option<Vec<u32>>, one| set.as_ref().is_none_or(|set| set.contains(&one));
        let has_type = |of: &Vec<u8>| facts.sub_type == 0 || of.contains(&facts.sub_type);
        facts.tags.holds(self.tags)
            && self.kinds.is_none_or(|kinds| kinds & bit(facts.kind) != 0)
            && self.sub_types.as_ref().is_none_or(has_type)
            && self.memories.is_none_or(|memories| memories & bit(facts.memory) != 0)
            && within(&self.workspaces, facts.workspace)
            && within(&self.threads, facts.thread)
            && !self.threads_excluded.contains(&facts.thread)
    }
}

/// The letter of the type's citation code, which is stable when types are added or reordered.
fn letter(kind: EntryType) -> u8 {
    let row = EntryType::ALL.iter().find(|row| row.0 == kind).expect("every type has a row");
    u8::try_from(row.2).expect("the letters of citation codes are ASCII")
}

/// The bit of a code; 0, which means unknown, has no bit and is in no set.
fn bit(number: u8) -> u128 {
    if number == 0 { 0 } else { 1_u128.checked_shl(number.into()).unwrap_or(0) }
}

fn workspace_hash(workspace: WorkspaceId) -> u32 {
    short(mixed(fnv(workspace.as_bytes().iter().copied())))
}

fn thread_hash(thread: &str) -> u32 {
    // Zero means no thread, so no thread may hash to it.
    if thread.is_empty() { 0 } else { short(mixed(fnv(thread.bytes()))).max(1) }
}

fn sub_type_hash(name: &str) -> u8 {
    // Zero means unknown, so no name may hash to it.
    mixed(fnv(name.bytes())).to_be_bytes()[0].max(1)
}

fn tag_bits(tag: &str) -> u128 {
    let lower = tag.chars().flat_map(char::to_lowercase);
    let mut bytes = [0; 4];
    let hash = lower.fold(FNV_START, |hash, character| {
        character.encode_utf8(&mut bytes).bytes().fold(hash, fnv_step)
    });
    // Seven bits select one of 128 positions.
    let hash = mixed(hash);
    (0..TAG_BITS).fold(0, |bits, take| bits | 1 << (hash >> (7 * take) & 127))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv_step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// FNV-1a: stable, and fast on short names.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(FNV_START, fnv_step)
}

/// Spreads the last bytes of an FNV hash over all bits.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

    fn facts(thread: &str, kind: Option<EntryType>, tags: &[&str]) -> RowFacts {
        RowFacts::new(TEAM, thread, kind, Memory::Semantic, tags.iter().copied())
    }

    #[test]
    fn a_filter_admits_matching_entries_only() {
        let entry = facts("fix-login", Some(EntryType::Lesson), &["auth/jwt", "Rust"]);
        let wide = facts("", None, &[]);
        let (unknown, none) = (wide, wide.of_sub_type(""));
        let bug = facts("", Some(EntryType::Experience), &[]).of_sub_type("bug");
        let (yes, no): (Vec<RowFilter>, Vec<RowFilter>) = (
            vec![
                RowFilter::all(),
                RowFilter::all().workspaces([WorkspaceId::MAIN, TEAM]),
                RowFilter::all().threads(["fix-login"]),
                RowFilter::all().kinds([EntryType::Skill, EntryType::Lesson]),
                RowFilter::all().memories([Memory::Semantic]),
                RowFilter::all().tags(["auth"]),
                RowFilter::all().tags(["auth/jwt", "rust"]),
            ],
            vec![
                RowFilter::all().workspaces([WorkspaceId::MAIN]),
                RowFilter::all().workspaces([]),
                RowFilter::all().threads(["", "other"]),
                RowFilter::all().kinds([EntryType::Skill]),
                RowFilter::all().memories([Memory::Episodic, Memory::Procedural]),
                RowFilter::all().tags(["auth/oauth"]),
                RowFilter::all().tags(["auth", "python"]),
            ],
        );
        for filter in &yes {
            assert!(filter.admits(&entry), "{filter:?}");
        }
        for filter in &no {
            assert!(!filter.admits(&entry), "{filter:?}");
        }
        assert!(RowFilter::all().threads(["", "other"]).admits(&wide));
        assert!(RowFilter::all().threads_excluded(["other"]).admits(&wide));
        assert!(!RowFilter::all().threads_excluded(["other"]).admits(&facts("other", None, &[])));
        assert!(!RowFilter::all().kinds(EntryType::ALL.map(|row| row.0)).admits(&wide));
        assert!(RowFilter::all().sub_types(["risk", "bug"]).admits(&bug));
        assert!(!RowFilter::all().sub_types(["decision"]).admits(&bug));
        assert!(!RowFilter::all().sub_types(["bug"]).admits(&none));
        assert!(
            RowFilter::all().sub_types(["bug"]).admits(&unknown),
            "the sub-type of an old row is unknown"
        );
    }

    #[test]
    fn a_tag_filter_admits_the_entry_and_its_ancestors() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(tags: Vec<String>) -> bool {
            let facts = facts("", None, &tags.iter().map(String::as_str).collect::<Vec<_>>());
            tags.iter().all(|tag| {
                let upwards = tag.match_indices('/').map(|(at, _)| &tag[..at]);
                upwards.chain([tag.as_str()]).all(|name| {
                    let upper = name.to_uppercase();
                    // Compare by character: lower-casing a whole text handles the final sigma
                    // differently.
                    let lower = |text: &str| -> String {
                        text.chars().flat_map(char::to_lowercase).collect()
                    };
                    let same = lower(&upper) == lower(name);
                    RowFilter::all().tags([name]).admits(&facts)
                        && (!same || RowFilter::all().tags([upper.as_str()]).admits(&facts))
                })
            })
        }
        quickcheck(law as fn(Vec<String>) -> bool);
        assert!(law(vec!["auth/jwt/keys".into(), "a//b/".into(), "/".into(), "É/Ü".into()]));
    }

    #[test]
    fn most_other_tags_are_rejected() {
        let entry = facts("", None, &["auth/jwt", "rust", "http/client/retry"]);
        let names: Vec<String> = (0..1000).map(|at| format!("area/{at}")).collect();
        let admitted = names
            .iter()
            .filter(|name| RowFilter::all().tags([name.as_str()]).admits(&entry))
            .count();
        assert!(admitted < 30, "{admitted} of 1000");
    }

    #[test]
    fn the_stored_hashes_match_version_one() {
        let entry = facts("fix-login", Some(EntryType::Lesson), &["auth/jwt"]);
        assert_eq!((entry.kind, entry.memory), (b'L', 1));
        let of_sub_type = [entry, entry.of_sub_type(""), entry.of_sub_type("bug")];
        assert_eq!(of_sub_type.map(|facts| facts.sub_type), [0, 0xec, 0xd7]);
        assert_eq!(entry.workspace, 0x91c9_4ad5);
        assert_eq!(entry.thread, 0x5063_98b9);
        assert_eq!(entry.tags.0, 0x0008_0000_0000_0000_0004_0040_0400_0000);
    }
}
