//! Parses git's index file into the list of tracked paths.
//!
//! The format is git's `index-format`, versions 2 to 4. The file is untrusted input, so every
//! length in it is checked, and an inconsistent index is rejected entirely.

use std::collections::BTreeSet;

/// Maximum number of entries.
const ENTRIES_MAX: u32 = 1_000_000;
/// Maximum length of one path in bytes.
const PATH_BYTES_MAX: usize = 4096;
/// Maximum length of all paths together in bytes; version 4 compresses them.
const PATHS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Possible digest lengths in bytes: SHA-1 and SHA-256.
const DIGEST_BYTES: [usize; 2] = [20, 32];
/// Bytes of an entry before the digest: times, numbers and the mode.
const STAT_BYTES: usize = 40;
/// Mode of a folder entry, which stands for everything a sparse index leaves out.
const MODE_FOLDER: u32 = 0o040_000;

/// The tracked paths of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackedPaths {
    /// The paths in byte order.
    pub(super) paths: Vec<String>,
    /// Paths that a sparse checkout may omit from the working tree.
    pub(super) sparse: BTreeSet<String>,
}

/// Why an index could not be parsed. The texts are clauses that callers put after a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The lengths in the file are inconsistent, or the version is unknown.
    #[error("it is damaged or has an unknown version")]
    Damaged,
    /// The index has too many entries or too long paths.
    #[error("it is too large")]
    TooLarge,
    /// The index lists only some of the tracked files.
    #[error("it is split or sparse, so it does not list every tracked file")]
    Partial,
}

/// Parses the bytes of an index.
pub(super) fn read(bytes: &[u8]) -> Result<TrackedPaths, IndexError> {
    // An index does not state its digest length; only the right one leads exactly to its end.
    let [short, long] = DIGEST_BYTES;
    match parse(bytes, short) {
        Err(IndexError::Damaged) => parse(bytes, long),
        read => read,
    }
}

fn parse(bytes: &[u8], digest_bytes: usize) -> Result<TrackedPaths, IndexError> {
    let mut rest = UnreadBytes { bytes };
    if rest.take(4)? != b"DIRC" {
        return Err(IndexError::Damaged);
    }
    let (version, count) = (rest.number()?, rest.number()?);
    if !(2..=4).contains(&version) {
        return Err(IndexError::Damaged);
    }
    if count > ENTRIES_MAX {
        return Err(IndexError::TooLarge);
    }
    let (mut tracked, mut path) = (TrackedPaths::default(), Vec::new());
    let (mut is_partial, mut paths_bytes) = (false, 0_usize);
    for _ in 0..count {
        let entry = entry(&mut rest, version, digest_bytes, &mut path)?;
        is_partial |= entry.mode == MODE_FOLDER;
        paths_bytes = paths_bytes.saturating_add(path.len());
        if paths_bytes > PATHS_BYTES_MAX {
            return Err(IndexError::TooLarge);
        }
        if entry.stage == 0 {
            tracked.add(&path, entry.is_sparse);
        }
    }
    is_partial |= ends_partial(&mut rest, digest_bytes)?;
    if is_partial {
        return Err(IndexError::Partial);
    }
    // Git writes the paths in order, and lookups rely on the order.
    tracked.paths.sort_unstable();
    tracked.paths.dedup();
    Ok(tracked)
}

impl TrackedPaths {
    /// Adds a path that a predicate may name. Other paths are never opened.
    fn add(&mut self, path: &[u8], is_sparse: bool) {
        let Ok(path) = std::str::from_utf8(path) else { return };
        let is_name =
            |name: &str| !matches!(name, "" | "." | "..") && !name.eq_ignore_ascii_case(".git");
        if !path.split('/').all(is_name) {
            return;
        }
        if is_sparse {
            self.sparse.insert(path.to_owned());
        }
        self.paths.push(path.to_owned());
    }
}

/// The fields of an entry that are kept besides its path.
struct IndexEntry {
    mode: u32,
    stage: u16,
    is_sparse: bool,
}

/// Parses one entry. On entry `path` is the previous entry's path; on return it is this one's.
fn entry(
    rest: &mut UnreadBytes<'_>,
    version: u32,
    digest_bytes: usize,
    path: &mut Vec<u8>,
) -> Result<IndexEntry, IndexError> {
    let left = rest.bytes.len();
    let stat = rest.take(STAT_BYTES)?;
    let mode = u32::from_be_bytes([stat[24], stat[25], stat[26], stat[27]]);
    rest.take(digest_bytes)?;
    let flags = rest.short()?;
    let is_extended = flags & 0x4000 != 0;
    if is_extended && version == 2 {
        return Err(IndexError::Damaged);
    }
    let more = if is_extended { rest.short()? } else { 0 };
    // In version 4 a path shares a prefix with the previous one; the entry says how many bytes to
    // drop.
    let kept = match version {
        4 => path.len().checked_sub(rest.offset()?).ok_or(IndexError::Damaged)?,
        _ => 0,
    };
    path.truncate(kept);
    path.extend_from_slice(rest.until_zero()?);
    let length = usize::from(flags & 0x0FFF);
    if path.is_empty() || path.len() > PATH_BYTES_MAX || length != path.len().min(0x0FFF) {
        return Err(IndexError::Damaged);
    }
    if version != 4 {
        // Entries are padded with zeros to a multiple of eight bytes.
        let taken = left - rest.bytes.len();
        rest.take(taken.next_multiple_of(8) - taken)?;
    }
    Ok(IndexEntry { mode, stage: (flags >> 12) & 3, is_sparse: more & 0x4000 != 0 })
}

/// Skips the extensions before the final digest. Returns true if one says that entries are stored
/// elsewhere.
fn ends_partial(rest: &mut UnreadBytes<'_>, digest_bytes: usize) -> Result<bool, IndexError> {
    let mut is_partial = false;
    while rest.bytes.len() > digest_bytes {
        let name = rest.take(4)?;
        let length = usize::try_from(rest.number()?).map_err(|_| IndexError::Damaged)?;
        let body = rest.take(length)?;
        let is_linked = body.iter().take(digest_bytes).any(|byte| *byte != 0);
        is_partial |= name == b"sdir" || (name == b"link" && is_linked);
    }
    if rest.bytes.len() == digest_bytes { Ok(is_partial) } else { Err(IndexError::Damaged) }
}

/// The unread rest of the file.
struct UnreadBytes<'b> {
    bytes: &'b [u8],
}

impl<'b> UnreadBytes<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], IndexError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(IndexError::Damaged)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, IndexError> {
        Ok(self.take(1)?[0])
    }

    fn short(&mut self) -> Result<u16, IndexError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn number(&mut self) -> Result<u32, IndexError> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads up to a zero byte and consumes it.
    fn until_zero(&mut self) -> Result<&'b [u8], IndexError> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or(IndexError::Damaged)?;
        let taken = self.take(end)?;
        self.take(1)?;
        Ok(taken)
    }

    /// A variable-length number in groups of seven bits, in git's offset encoding.
    fn offset(&mut self) -> Result<usize, IndexError> {
        let mut byte = self.byte()?;
        let mut value = usize::from(byte & 0x7F);
        while byte & 0x80 != 0 {
            if value > PATH_BYTES_MAX {
                return Err(IndexError::Damaged);
            }
            byte = self.byte()?;
            value = ((value + 1) << 7) + usize::from(byte & 0x7F);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of an entry before its path.
    fn head(mode: u32, flags: u16, digest_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; STAT_BYTES];
        bytes[24..28].copy_from_slice(&mode.to_be_bytes());
        bytes.extend(vec![0xAB; digest_bytes]);
        bytes.extend(flags.to_be_bytes());
        bytes
    }

    fn index(version: u32, entries: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
        let count = u32::try_from(entries.len()).unwrap();
        let header = [b"DIRC".as_slice(), &version.to_be_bytes(), &count.to_be_bytes()].concat();
        [header, entries.concat(), end.to_vec()].concat()
    }

    /// An entry of version 2, or of version 3 with extended flags.
    fn plain(path: &str, flags: u16, more: Option<u16>, digest_bytes: usize) -> Vec<u8> {
        let extended = if more.is_some() { 0x4000 } else { 0 };
        let length = u16::try_from(path.len()).unwrap();
        let mut bytes = head(0o100_644, flags | extended | length, digest_bytes);
        bytes.extend(more.into_iter().flat_map(u16::to_be_bytes));
        bytes.extend(path.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    /// An entry of version 4: drops this many bytes of the previous path and appends a suffix.
    fn packed(length: u16, dropped: &[u8], suffix: &str) -> Vec<u8> {
        [&head(0o100_644, length, 20)[..], dropped, suffix.as_bytes(), &[0]].concat()
    }

    #[test]
    fn versions_two_and_three_parse_with_either_digest() {
        for digest_bytes in DIGEST_BYTES {
            let of = |path, more| plain(path, 0, more, digest_bytes);
            let entries = [of("a", None), of("b/c.rs", Some(0x4000)), of("b/dd.rs", None)];
            let read = read(&index(3, &entries, &vec![7; digest_bytes])).unwrap();
            assert_eq!(read.paths, ["a", "b/c.rs", "b/dd.rs"]);
            assert_eq!(read.sparse.into_iter().collect::<Vec<_>>(), ["b/c.rs"]);
        }
        assert_eq!(read(&index(2, &[], &[0; 20])), Ok(TrackedPaths::default()));
    }

    #[test]
    fn version_four_paths_share_prefixes() {
        let entries = [
            packed(10, &[0], "src/lib.rs"),
            packed(11, &[6], "main.rs"),
            packed(8, &[11], "test/a.c"),
        ];
        let read = read(&index(4, &entries, &[0; 20])).unwrap();
        assert_eq!(read.paths, ["src/lib.rs", "src/main.rs", "test/a.c"]);
        // 128 in two bytes.
        let long = "x".repeat(130);
        let entries = [packed(130, &[0], &long), packed(3, &[0x80, 0x00], "y")];
        let read = super::read(&index(4, &entries, &[0; 20])).unwrap();
        assert_eq!(read.paths, [long.as_str(), "xxy"]);
    }

    #[test]
    fn conflicts_and_unsafe_paths_are_skipped() {
        let of = |path| plain(path, 0, None, 20);
        let paths =
            ["../up", "/root", ".git/config", "a/.GIT/x", "a//b", "a/./b", "a/../b", "kept"];
        let mut entries: Vec<Vec<u8>> = paths.into_iter().map(of).collect();
        entries.push(plain("merging", 0x2000, None, 20));
        assert_eq!(read(&index(2, &entries, &[0; 20])).unwrap().paths, ["kept"]);
    }

    #[test]
    fn an_inconsistent_or_partial_index_is_rejected() {
        let entries = [plain("a", 0, None, 20), plain("b", 0, None, 20)];
        let whole = index(2, &entries, &[0; 20]);
        assert!(read(&whole).is_ok());
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end}");
        }
        assert_eq!(read(&[whole.as_slice(), &[0]].concat()), Err(IndexError::Damaged));
        assert_eq!(read(&index(5, &entries, &[0; 20])), Err(IndexError::Damaged));
        let many = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
        assert_eq!(read(&many), Err(IndexError::TooLarge));
        let extension = |name: &[u8], body: &[u8]| {
            let length = u32::try_from(body.len()).unwrap().to_be_bytes();
            [name, &length, body, &[0; 20]].concat()
        };
        let ends = |end: &[u8]| read(&index(2, &entries, end)).map(|read| read.paths.len());
        assert_eq!(ends(&extension(b"TREE", &[1; 9])), Ok(2));
        assert_eq!(ends(&extension(b"link", &[0; 20])), Ok(2));
        assert_eq!(ends(&extension(b"link", &[1; 20])), Err(IndexError::Partial));
        assert_eq!(ends(&extension(b"sdir", &[])), Err(IndexError::Partial));
        let folder = [head(MODE_FOLDER, 2, 20), b"a/\0\0\0\0\0\0\0\0".to_vec()].concat();
        assert_eq!(read(&index(2, &[folder], &[0; 20])), Err(IndexError::Partial));
    }
}
