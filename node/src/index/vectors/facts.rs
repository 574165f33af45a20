//! What a row of the vector index says about its entry, so that most entries a query does not want
//! are skipped before their vector is looked at.
//!
//! A [`Filter`] may let an entry pass that does not fit (hashes collide, and tags share bits): the
//! caller looks at the entry itself afterwards. It never holds back one that fits. Facts are
//! stored, so the hashes here are part of the file's format.

use klnode_crdt::ids::WorkspaceId;
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;

/// How many bits of a signature one tag sets.
const TAG_BITS: u32 = 2;

/// What is known of an entry besides its vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Facts {
    /// A hash of its workspace.
    pub(super) workspace: u32,
    /// A hash of the thread it is scoped to; 0 for the whole workspace.
    pub(super) thread: u32,
    /// The letter of its type; 0 if its type is unknown.
    pub(super) kind: u8,
    /// The number of its memory.
    pub(super) memory: u8,
    /// A hash of its sub-type, or of the empty text if it has none; 0 where that is not known, as in
    /// rows that were written before sub-types were.
    pub(super) sub_type: u8,
    /// What it is tagged with.
    pub(super) tags: TagSignature,
}

impl Facts {
    /// The facts of an entry. An empty thread is the whole workspace.
    pub fn new<'t>(
        workspace: WorkspaceId,
        thread: &str,
        kind: Option<Kind>,
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

    /// The same of an entry of this sub-type; the empty text is none.
    #[must_use]
    pub fn of_sub_type(mut self, name: &str) -> Self {
        self.sub_type = sub_type_hash(name);
        self
    }
}

/// A set of tags in 128 bits: two for each tag, and two for each of its ancestors.
///
/// Upper and lower case are one, so that a stricter comparison and a laxer one both come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TagSignature(pub(super) u128);

impl TagSignature {
    /// What an entry with these tags has: `auth/jwt` makes it findable by `auth` as well.
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

    /// What an entry must have to be tagged with all of these, or with something below each.
    pub fn required<'t>(tags: impl IntoIterator<Item = &'t str>) -> Self {
        Self(tags.into_iter().fold(0, |bits, tag| bits | tag_bits(tag)))
    }

    fn holds(self, required: Self) -> bool {
        self.0 & required.0 == required.0
    }
}

/// Which entries a query wants. The default wants all.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Filter {
    workspaces: Option<Vec<u32>>,
    threads: Option<Vec<u32>>,
    threads_excluded: Vec<u32>,
    kinds: Option<u128>,
    sub_types: Option<Vec<u8>>,
    memories: Option<u128>,
    tags: TagSignature,
}

impl Filter {
    /// Wants every entry.
    pub fn all() -> Self {
        Self::default()
    }

    /// Wants entries of these workspaces.
    #[must_use]
    pub fn workspaces(mut self, of: impl IntoIterator<Item = WorkspaceId>) -> Self {
        self.workspaces = Some(of.into_iter().map(workspace_hash).collect());
        self
    }

    /// Wants entries scoped to these threads. The empty text stands for entries of no thread.
    #[must_use]
    pub fn threads<'t>(mut self, of: impl IntoIterator<Item = &'t str>) -> Self {
        self.threads = Some(of.into_iter().map(thread_hash).collect());
        self
    }

    /// Wants no entries of these threads. An entry of another thread with the same hash is lost, too.
    #[must_use]
    pub fn threads_excluded<'t>(mut self, of: impl IntoIterator<Item = &'t str>) -> Self {
        self.threads_excluded = of.into_iter().map(thread_hash).collect();
        self
    }

    /// Wants entries of these types.
    #[must_use]
    pub fn kinds(mut self, of: impl IntoIterator<Item = Kind>) -> Self {
        self.kinds = Some(of.into_iter().fold(0, |bits, kind| bits | bit(letter(kind))));
        self
    }

    /// Wants entries of these sub-types.
    #[must_use]
    pub fn sub_types<'t>(mut self, of: impl IntoIterator<Item = &'t str>) -> Self {
        self.sub_types = Some(of.into_iter().map(sub_type_hash).collect());
        self
    }

    /// Wants entries of these memories.
    #[must_use]
    pub fn memories(mut self, of: impl IntoIterator<Item = Memory>) -> Self {
        self.memories = Some(of.into_iter().fold(0, |bits, memory| bits | bit(memory.code())));
        self
    }

    /// Wants entries that have each of these tags, or one below it.
    #[must_use]
    pub fn tags<'t>(mut self, all: impl IntoIterator<Item = &'t str>) -> Self {
        self.tags = TagSignature::required(all);
        self
    }

    /// Whether it wants every entry: then no fact need be read.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an entry with these facts may be wanted. Never no for one that is.
    pub fn admits(&self, facts: &Facts) -> bool {
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

/// The letter of a type's citation code: it stays when types are added or reordered.
fn letter(kind: Kind) -> u8 {
    let row = Kind::ALL.iter().find(|row| row.0 == kind).expect("every type has a row");
    u8::try_from(row.2).expect("the letters of citation codes are ASCII")
}

/// Zero is no bit: what is unknown is in no set.
fn bit(number: u8) -> u128 {
    if number == 0 { 0 } else { 1_u128.checked_shl(number.into()).unwrap_or(0) }
}

fn workspace_hash(workspace: WorkspaceId) -> u32 {
    short(mixed(fnv(workspace.as_bytes().iter().copied())))
}

fn thread_hash(thread: &str) -> u32 {
    // Zero is the whole workspace, so no thread may hash to it.
    if thread.is_empty() { 0 } else { short(mixed(fnv(thread.bytes()))).max(1) }
}

fn sub_type_hash(name: &str) -> u8 {
    // Zero is what nobody knows, so no name may hash to it.
    mixed(fnv(name.bytes())).to_be_bytes()[0].max(1)
}

fn tag_bits(tag: &str) -> u128 {
    let lower = tag.chars().flat_map(char::to_lowercase);
    let mut bytes = [0; 4];
    let hash = lower.fold(FNV_START, |hash, character| {
        character.encode_utf8(&mut bytes).bytes().fold(hash, fnv_step)
    });
    // Seven bits name one of 128.
    let hash = mixed(hash);
    (0..TAG_BITS).fold(0, |bits, take| bits | 1 << (hash >> (7 * take) & 127))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv_step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// FNV-1a: fixed for good, and quick on short names.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(FNV_START, fnv_step)
}

/// FNV's last bytes reach only some of its bits; this spreads them over all.
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

    fn facts(thread: &str, kind: Option<Kind>, tags: &[&str]) -> Facts {
        Facts::new(TEAM, thread, kind, Memory::Semantic, tags.iter().copied())
    }

    #[test]
    fn a_filter_admits_what_fits_and_holds_back_the_rest() {
        let entry = facts("fix-login", Some(Kind::Lesson), &["auth/jwt", "Rust"]);
        let wide = facts("", None, &[]);
        let (unknown, none) = (wide, wide.of_sub_type(""));
        let bug = facts("", Some(Kind::Experience), &[]).of_sub_type("bug");
        let (yes, no): (Vec<Filter>, Vec<Filter>) = (
            vec![
                Filter::all(),
                Filter::all().workspaces([WorkspaceId::MAIN, TEAM]),
                Filter::all().threads(["fix-login"]),
                Filter::all().kinds([Kind::Skill, Kind::Lesson]),
                Filter::all().memories([Memory::Semantic]),
                Filter::all().tags(["auth"]),
                Filter::all().tags(["auth/jwt", "rust"]),
            ],
            vec![
                Filter::all().workspaces([WorkspaceId::MAIN]),
                Filter::all().workspaces([]),
                Filter::all().threads(["", "other"]),
                Filter::all().kinds([Kind::Skill]),
                Filter::all().memories([Memory::Episodic, Memory::Procedural]),
                Filter::all().tags(["auth/oauth"]),
                Filter::all().tags(["auth", "python"]),
            ],
        );
        for filter in &yes {
            assert!(filter.admits(&entry), "{filter:?}");
        }
        for filter in &no {
            assert!(!filter.admits(&entry), "{filter:?}");
        }
        assert!(Filter::all().threads(["", "other"]).admits(&wide));
        assert!(Filter::all().threads_excluded(["other"]).admits(&wide));
        assert!(!Filter::all().threads_excluded(["other"]).admits(&facts("other", None, &[])));
        assert!(!Filter::all().kinds(Kind::ALL.map(|row| row.0)).admits(&wide));
        assert!(Filter::all().sub_types(["risk", "bug"]).admits(&bug));
        assert!(!Filter::all().sub_types(["decision"]).admits(&bug));
        assert!(!Filter::all().sub_types(["bug"]).admits(&none));
        assert!(Filter::all().sub_types(["bug"]).admits(&unknown), "of an old row nobody knows");
    }

    #[test]
    fn an_entry_is_never_held_back_from_its_own_tags_and_their_ancestors() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(tags: Vec<String>) -> bool {
            let facts = facts("", None, &tags.iter().map(String::as_str).collect::<Vec<_>>());
            tags.iter().all(|tag| {
                let upwards = tag.match_indices('/').map(|(at, _)| &tag[..at]);
                upwards.chain([tag.as_str()]).all(|name| {
                    let upper = name.to_uppercase();
                    // By characters: a whole text's lower case knows a final sigma.
                    let lower = |text: &str| -> String {
                        text.chars().flat_map(char::to_lowercase).collect()
                    };
                    let same = lower(&upper) == lower(name);
                    Filter::all().tags([name]).admits(&facts)
                        && (!same || Filter::all().tags([upper.as_str()]).admits(&facts))
                })
            })
        }
        quickcheck(law as fn(Vec<String>) -> bool);
        assert!(law(vec!["auth/jwt/keys".into(), "a//b/".into(), "/".into(), "É/Ü".into()]));
    }

    #[test]
    fn most_other_tags_are_held_back() {
        let entry = facts("", None, &["auth/jwt", "rust", "http/client/retry"]);
        let names: Vec<String> = (0..1000).map(|at| format!("area/{at}")).collect();
        let admitted =
            names.iter().filter(|name| Filter::all().tags([name.as_str()]).admits(&entry)).count();
        assert!(admitted < 30, "{admitted} of 1000");
    }

    #[test]
    fn the_stored_hashes_are_those_of_version_one() {
        let entry = facts("fix-login", Some(Kind::Lesson), &["auth/jwt"]);
        assert_eq!((entry.kind, entry.memory), (b'L', 1));
        let of_sub_type = [entry, entry.of_sub_type(""), entry.of_sub_type("bug")];
        assert_eq!(of_sub_type.map(|facts| facts.sub_type), [0, 0xec, 0xd7]);
        assert_eq!(entry.workspace, 0x91c9_4ad5);
        assert_eq!(entry.thread, 0x5063_98b9);
        assert_eq!(entry.tags.0, 0x0008_0000_0000_0000_0004_0040_0400_0000);
    }
}
