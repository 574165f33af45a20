//! Reads commits from git's object folder, loose and packed.
//!
//! Only the data that leads from a commit to its parent is read. The files are untrusted: every
//! length is checked against a limit before use, and nothing in an object folder is opened through
//! a symbolic link. A folder may name other object folders (`info/alternates`) at any location. A
//! few of them are followed, and only commits are looked up in them by name. Digests are not
//! verified: a user who can write the folder can write any history, so a digest would prove
//! nothing.

use super::{plain, within};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit as inflate;
use rustix::fs::{Dir, Mode, OFlags, fstat, openat};
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Maximum size of a commit in bytes; it also limits its packed form.
const OBJECT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of object folders: the repository's own and its alternates.
const FOLDERS_MAX: usize = 8;
/// Maximum depth of alternates, as in git.
const ALTERNATES_DEPTH_MAX: usize = 5;
/// Maximum size of a list of alternates, in bytes.
const ALTERNATES_BYTES_MAX: u64 = 16 * 1024;
/// Maximum number of packs, in all folders together.
const PACKS_MAX: usize = 256;
/// Maximum number of files inspected in a pack folder.
const PACK_FILES_MAX: usize = 4_096;
/// Maximum length of a delta chain.
const DELTAS_MAX: usize = 64;
/// Bytes of a pack read for one object; the next size is tried if one is too small.
const READ_BYTES: [usize; 3] = [4 * 1024, 64 * 1024, OBJECT_BYTES_MAX];
/// First bytes of a pack index of version 2.
const INDEX_MAGIC: [u8; 8] = [0xFF, b't', b'O', b'c', 0, 0, 0, 2];
/// Offset of the names in a pack index: after its head and 256 counts.
const NAMES_AT: u64 = 8 + 256 * 4;

const COMMIT: u8 = 1;
const TAG: u8 = 4;
const OFFSET_DELTA: u8 = 6;
const NAMED_DELTA: u8 = 7;

/// Maximum bytes that one lookup may read, inflate and assemble: enough for tens of thousands of
/// typical commits.
const WORK_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The objects of one repository.
pub(super) struct Objects {
    /// Identifies the object folder, as long as it exists.
    place: String,
    /// Remaining work of the current lookup, in bytes.
    left: Cell<usize>,
    /// Folders with loose objects.
    folders: Vec<OwnedFd>,
    packs: Vec<Pack>,
}

struct Pack {
    index: File,
    index_bytes: u64,
    pack: File,
    pack_bytes: u64,
}

impl Objects {
    /// Opens the objects below git's common folder; `None` if they cannot be listed.
    pub(super) fn open(common: &OwnedFd) -> Option<Self> {
        let own = within(common, "objects", OFlags::DIRECTORY).ok()?;
        let place = fstat(&own).map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino)).ok()?;
        let left = Cell::new(WORK_BYTES_MAX);
        let mut objects = Self { place, left, folders: vec![], packs: vec![] };
        let mut known = BTreeSet::new();
        let mut next = VecDeque::from([(own, 0)]);
        while let Some((folder, depth)) = next.pop_front() {
            let stat = fstat(&folder).ok()?;
            if objects.folders.len() >= FOLDERS_MAX || !known.insert((stat.st_dev, stat.st_ino)) {
                continue;
            }
            if let Ok(pack) = within(&folder, "pack", OFlags::DIRECTORY) {
                let opened = open_packs(&pack, &mut objects.packs);
                // An unreadable alternate does not affect the repository's own objects.
                opened.or((depth > 0).then_some(()))?;
            }
            if depth < ALTERNATES_DEPTH_MAX {
                next.extend(alternates(&folder).into_iter().map(|other| (other, depth + 1)));
            }
            objects.folders.push(folder);
        }
        Some(objects)
    }

    /// A cache key for a commit in this repository. It includes the folder, because names are not
    /// verified and any folder may hold any content under a name.
    pub(super) fn here(&self, commit: &str) -> String {
        format!("{}/{commit}", self.place)
    }

    /// True if the lookup has used up its work limit.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    fn spend(&self, bytes: usize) -> Option<()> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or(0));
        left.map(|_| ())
    }

    /// The first parent of a commit, by its name in hex: `Some(None)` for a root, `None` if the
    /// commit is missing or not a commit.
    pub(super) fn first_parent(&self, name: &str) -> Option<Option<String>> {
        let commit = self.commit(name)?;
        let text = commit.strip_prefix(b"tree ")?;
        let line = text.split(|byte| *byte == b'\n').nth(1)?;
        let Some(parent) = line.strip_prefix(b"parent ") else { return Some(None) };
        let parent = std::str::from_utf8(parent).ok()?;
        is_name(parent).then(|| Some(parent.to_owned()))
    }

    /// The bytes of a commit or of a tag, by its name in hex.
    pub(super) fn commit(&self, name: &str) -> Option<Vec<u8>> {
        self.loose(name).or_else(|| self.packed(name))
    }

    /// The object that a tag names; `None` if the name is not that of a tag.
    pub(super) fn tagged(&self, name: &str) -> Option<String> {
        let tag = self.commit(name)?;
        let line = tag.strip_prefix(b"object ")?.split(|byte| *byte == b'\n').next()?;
        let name = std::str::from_utf8(line).ok()?;
        is_name(name).then(|| name.to_owned())
    }

    /// Reads a loose commit or tag.
    fn loose(&self, name: &str) -> Option<Vec<u8>> {
        let path = format!("{}/{}", name.get(..2)?, name.get(2..)?);
        let mut folders = self.folders.iter();
        let packed = folders.find_map(|folder| file(folder, &path, OBJECT_BYTES_MAX as u64))?;
        let whole = inflate(&packed, OBJECT_BYTES_MAX).ok()?;
        self.spend(packed.len() + whole.len())?;
        let end = whole.iter().position(|byte| *byte == 0)?;
        let is_wanted = whole.starts_with(b"commit ") || whole.starts_with(b"tag ");
        is_wanted.then(|| whole[end + 1..].to_vec())
    }

    /// Reads a packed commit or tag.
    fn packed(&self, name: &str) -> Option<Vec<u8>> {
        let name = data_encoding::HEXLOWER.decode(name.as_bytes()).ok()?;
        let (pack, at) = self.find(&name)?;
        self.object(pack, at, name.len(), DELTAS_MAX)
    }

    fn find(&self, name: &[u8]) -> Option<(&Pack, u64)> {
        self.packs.iter().find_map(|pack| Some((pack, pack.offset_of(name)?)))
    }

    /// Reads the object at an offset in a pack, if it is a commit, a tag or a delta that leads to one.
    fn object(&self, pack: &Pack, at: u64, name_bytes: usize, deltas: usize) -> Option<Vec<u8>> {
        let deltas = deltas.checked_sub(1)?;
        let mut head = [0; 64];
        let read = pack.read_at(&mut head, at)?;
        let head = &head[..read];
        let (kind, size, mut used) = kind_and_size(head)?;
        let base = match kind {
            COMMIT | TAG => None,
            OFFSET_DELTA => {
                let (back, more) = distance(head.get(used..)?)?;
                used += more;
                let base = at.checked_sub(back).filter(|base| *base < at)?;
                Some(self.object(pack, base, name_bytes, deltas)?)
            }
            NAMED_DELTA => {
                let name = head.get(used..used.checked_add(name_bytes)?)?;
                used += name_bytes;
                let (pack, base) = self.find(name)?;
                Some(self.object(pack, base, name_bytes, deltas)?)
            }
            _ => return None,
        };
        let (data, read) = pack.inflate_at(at.checked_add(used as u64)?, size)?;
        self.spend(read + data.len())?;
        let Some(base) = base else { return Some(data) };
        let whole = apply_delta(&base, &data)?;
        self.spend(whole.len())?;
        Some(whole)
    }
}

/// The bytes of a regular file below a folder, up to a limit.
pub(super) fn file(folder: &OwnedFd, path: &str, bytes_max: u64) -> Option<Vec<u8>> {
    let file = File::from(within(folder, path, OFlags::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The alternate object folders of a folder, as far as they exist. A relative path starts at the
/// folder itself.
fn alternates(folder: &OwnedFd) -> Vec<OwnedFd> {
    let listed = file(folder, "info/alternates", ALTERNATES_BYTES_MAX).unwrap_or_default();
    let lines = listed.split(|byte| *byte == b'\n');
    let names = lines.filter(|line| !matches!(line.first(), None | Some(b'#' | b'"')));
    let flags = plain() | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = names.filter_map(|name| openat(folder, name, flags, Mode::empty()).ok());
    opened.take(FOLDERS_MAX).collect()
}

/// Opens every pack of a folder that has an index; `None` if there are too many.
fn open_packs(folder: &OwnedFd, packs: &mut Vec<Pack>) -> Option<()> {
    for (count, file) in Dir::read_from(folder).ok()?.enumerate() {
        if count >= PACK_FILES_MAX || packs.len() > PACKS_MAX {
            return None;
        }
        let file = file.ok()?;
        let Ok(name) = file.file_name().to_str() else { continue };
        let Some(stem) = name.strip_suffix(".idx") else { continue };
        let open = |name: &str| -> Option<(File, u64)> {
            let file = File::from(within(folder, name, OFlags::empty()).ok()?);
            let metadata = file.metadata().ok()?;
            metadata.is_file().then_some((file, metadata.len()))
        };
        let Some((index, index_bytes)) = open(name) else { continue };
        let Some((pack, pack_bytes)) = open(&format!("{stem}.pack")) else { continue };
        packs.push(Pack { index, index_bytes, pack, pack_bytes });
    }
    Some(())
}

impl Pack {
    fn word(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.index.read_exact_at(&mut bytes, at).ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    /// Offset of an object in the pack. The index is searched on disk, regardless of its size.
    fn offset_of(&self, name: &[u8]) -> Option<u64> {
        let mut magic = [0; 8];
        self.index.read_exact_at(&mut magic, 0).ok()?;
        let width = name.len() as u64;
        let count = u64::from(self.word(NAMES_AT - 4)?);
        let least = NAMES_AT.checked_add(count.checked_mul(width + 8)?)?;
        if magic != INDEX_MAGIC || self.index_bytes < least {
            return None;
        }
        let first = u64::from(*name.first()?);
        let mut low = match first {
            0 => 0,
            first => u64::from(self.word(8 + (first - 1) * 4)?),
        };
        let mut high = u64::from(self.word(8 + first * 4)?).min(count);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut found = vec![0; name.len()];
            self.index.read_exact_at(&mut found, NAMES_AT + middle * width).ok()?;
            match found.as_slice().cmp(name) {
                std::cmp::Ordering::Equal => return self.offset_at(middle, count, width),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn offset_at(&self, place: u64, count: u64, width: u64) -> Option<u64> {
        let offsets = NAMES_AT + count * (width + 4);
        let short = self.word(offsets + place * 4)?;
        if short & 0x8000_0000 == 0 {
            return Some(u64::from(short));
        }
        let mut bytes = [0; 8];
        let at = offsets + count * 4 + u64::from(short & 0x7FFF_FFFF) * 8;
        self.index.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_be_bytes(bytes))
    }

    /// Reads bytes of the pack into the buffer, as many as exist.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> Option<usize> {
        let left = usize::try_from(self.pack_bytes.checked_sub(at)?).unwrap_or(usize::MAX);
        let count = bytes.len().min(left);
        self.pack.read_exact_at(&mut bytes[..count], at).ok()?;
        Some(count)
    }

    /// Inflates the data at an offset, given its size. Also returns the number of bytes read.
    fn inflate_at(&self, at: u64, size: usize) -> Option<(Vec<u8>, usize)> {
        for count in READ_BYTES {
            let mut packed = vec![0; count];
            let read = self.read_at(&mut packed, at)?;
            if let Ok(whole) = inflate(&packed[..read], size) {
                return (whole.len() == size).then_some((whole, read));
            }
            if read < count {
                break;
            }
        }
        None
    }
}

/// Type and size at the head of a packed object, and the length of the head.
fn kind_and_size(head: &[u8]) -> Option<(u8, usize, usize)> {
    let first = *head.first()?;
    let (kind, mut size) = ((first >> 4) & 7, usize::from(first & 15));
    let (mut used, mut shift, mut last) = (1, 4, first);
    while last & 0x80 != 0 {
        last = *head.get(used)?;
        size |= usize::from(last & 0x7F) << shift;
        (used, shift) = (used + 1, shift + 7);
        if size > OBJECT_BYTES_MAX || shift > 32 {
            return None;
        }
    }
    Some((kind, size, used))
}

/// Distance back to a delta's base, and its encoded length.
fn distance(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut last = *bytes.first()?;
    let (mut value, mut used) = (u64::from(last & 0x7F), 1);
    while last & 0x80 != 0 {
        last = *bytes.get(used)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(last & 0x7F))?;
        used += 1;
    }
    Some((value, used))
}

/// Applies a delta to its base.
fn apply_delta(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut rest = delta;
    let base_bytes = length(&mut rest)?;
    let whole_bytes = length(&mut rest)?;
    if base_bytes != base.len() || whole_bytes > OBJECT_BYTES_MAX {
        return None;
    }
    let mut whole = Vec::with_capacity(whole_bytes);
    while let Some((&code, after)) = rest.split_first() {
        rest = after;
        let part = if code & 0x80 == 0 {
            let (part, after) = rest.split_at_checked(usize::from(code))?;
            rest = after;
            // Code 0 is reserved by git.
            (code != 0).then_some(part)?
        } else {
            let (from, count) = copied_range(code, &mut rest)?;
            base.get(from..from.checked_add(count)?)?
        };
        whole.extend_from_slice(part);
        if whole.len() > whole_bytes {
            return None;
        }
    }
    (whole.len() == whole_bytes).then_some(whole)
}

/// The range of the base that an instruction copies.
fn copied_range(code: u8, rest: &mut &[u8]) -> Option<(usize, usize)> {
    let mut number = |bits: std::ops::Range<u8>| {
        let first = bits.start;
        let mut value = 0_usize;
        for bit in bits {
            if code & (1 << bit) != 0 {
                let (byte, after) = rest.split_first()?;
                value |= usize::from(*byte) << (8 * (bit - first));
                *rest = after;
            }
        }
        Some(value)
    };
    let from = number(0..4)?;
    let count = number(4..7)?;
    Some((from, if count == 0 { 0x1_0000 } else { count }))
}

/// A variable-length number in groups of seven bits, lowest first.
fn length(rest: &mut &[u8]) -> Option<usize> {
    let (mut value, mut shift) = (0_usize, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        if shift > 28 {
            return None;
        }
    }
}

/// True if a text is an object name: SHA-1 or SHA-256 in hex.
pub(super) fn is_name(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    matches!(text.len(), 40 | 64) && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_copies_and_inserts_and_checks_lengths() {
        let base = b"tree 1\nparent 2\n";
        // From 16 to 10 bytes: the first seven of the base, then three new ones.
        let delta = [16, 10, 0x90, 7, 3, b'a', b'b', b'c'];
        assert_eq!(apply_delta(base, &delta).unwrap(), b"tree 1\nabc");
        for end in 0..delta.len() {
            assert_eq!(apply_delta(base, &delta[..end]), None, "{end}");
        }
        assert_eq!(apply_delta(b"shorter", &delta), None);
        assert_eq!(apply_delta(base, &[16, 3, 0x91, 15, 3]), None, "beyond the base");
        assert_eq!(apply_delta(base, &[16, 0, 0]), None, "a reserved code");
        assert_eq!(apply_delta(base, &[16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), None, "a huge length");
    }

    #[test]
    fn object_heads_and_distances_are_bounded() {
        assert_eq!(kind_and_size(&[0x1A]), Some((COMMIT, 10, 1)));
        assert_eq!(kind_and_size(&[0x9A, 0x01]), Some((COMMIT, 26, 2)));
        assert_eq!(kind_and_size(&[0x9A]), None);
        assert_eq!(kind_and_size(&[0xFF; 20]), None, "no commit is so large");
        assert_eq!(distance(&[0x7F]), Some((127, 1)));
        assert_eq!(distance(&[0x80, 0x00]), Some((128, 2)));
        assert_eq!(distance(&[0xFF; 20]), None);
    }

    #[test]
    fn an_object_name_is_hex_of_a_known_length() {
        assert!(is_name(&"0a".repeat(20)) && is_name(&"0a".repeat(32)));
        assert!(!is_name(&"0A".repeat(20)) && !is_name("0a") && !is_name(&"zz".repeat(20)));
    }
}
