//! Questions about the folder: who can read it, what was left in it, whether there is room.

use super::Finding;
use crate::query::shell;
use crate::store::{Layout, ROOM_BYTES_MIN, free_bytes};
use klnode_crdt::person::LockedKey;
use rustix::fs::{Access, access};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Everything about the folder that can be seen without opening the store.
pub fn home(layout: &Layout) -> Vec<Finding> {
    let folder = match folder(layout) {
        Ok(folder) => folder,
        Err(barred) => return vec![barred],
    };
    let mut findings = vec![
        owned("home", layout.home(), &folder),
        key(layout),
        person(layout),
        room(layout),
        leftovers(layout),
    ];
    if let Ok(store) = fs::metadata(layout.store_file()) {
        findings.push(owned("store file", &layout.store_file(), &store));
    }
    findings
}

/// Whether there is a folder that this user can look into. In any other whatever is there would be
/// taken for missing.
pub fn is_open(layout: &Layout) -> bool {
    folder(layout).is_ok()
}

/// The folder; or the one thing that can be said of it.
fn folder(layout: &Layout) -> Result<Metadata, Finding> {
    let (path, name) = (layout.home(), layout.home().display());
    let fail = |says: String, way_out: String| Err(Finding::fail("home", says, way_out));
    let folder = match fs::metadata(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let way_out = "`klnode` makes one; is --home right?";
            return fail(format!("there is no home at {name}"), way_out.into());
        }
        Err(error) => {
            let way_out = "see who owns the folders above it; is --home right?";
            return fail(format!("{name} cannot be looked at: {error}"), way_out.into());
        }
    };
    if !folder.is_dir() {
        return fail(format!("{name} is a file"), "name a folder with --home".into());
    }
    if folder.uid() != rustix::process::geteuid().as_raw() {
        let way_out = "ask as that user, or name a home of your own with --home";
        return fail(format!("{name} belongs to another user"), way_out.into());
    }
    match access(path, Access::READ_OK | Access::EXEC_OK) {
        Ok(()) => Ok(folder),
        Err(error) => fail(
            format!("{name} cannot be read: {error}"),
            format!("chmod 700 {}", shell::path(path)),
        ),
    }
}

/// Whether the node can write there, and nobody else.
fn owned(check: &str, path: &Path, metadata: &Metadata) -> Finding {
    match access(path, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => closed(check, path, metadata),
        Err(error) => {
            let says = format!("{} cannot be written: {error}", path.display());
            Finding::fail(check, says, "a node cannot start before it can; see who owns it")
        }
    }
}

fn closed(check: &str, path: &Path, metadata: &Metadata) -> Finding {
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Finding::ok(check, format!("{} is open to you alone", path.display()));
    }
    let wanted = if metadata.is_dir() { "700" } else { "600" };
    let says = format!("others can get at {} (mode {mode:o})", path.display());
    Finding::fail(check, says, format!("chmod {wanted} {}", shell::path(path)))
}

/// The command that closes the node's key to others, where others can get at it: anyone who reads the
/// key can sign as this node.
pub fn close_key_command(layout: &Layout) -> Option<String> {
    let path = layout.key_file();
    let mode = fs::metadata(&path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| format!("chmod 600 {}", shell::path(&path)))
}

fn key(layout: &Layout) -> Finding {
    let path = layout.key_file();
    let restore = "put the file back from a backup: a new key would be another author";
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() != 32 => {
            let says = format!("{} is not 32 bytes long", path.display());
            Finding::fail("key", says, restore)
        }
        Ok(metadata) => closed("key", &path, &metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match layout.store_file().exists() {
                true => Finding::fail("key", format!("{} is missing", path.display()), restore),
                false => Finding::ok("key", "there is none yet; the first start draws it"),
            }
        }
        Err(error) => Finding::fail("key", format!("{}: {error}", path.display()), restore),
    }
}

fn person(layout: &Layout) -> Finding {
    let path = layout.person_file();
    let restore = "put the file back from a copy; whoever removes it, and starts the node anew, \
                   opens it to every program that runs as you";
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let says = "the node is unprotected: no person's key guards the operator's verbs";
            let way_out = "`klnode person new`, or let only programs you trust run as this user";
            return Finding::warn("person", says, way_out);
        }
        Err(error) => {
            return Finding::fail("person", format!("{}: {error}", path.display()), restore);
        }
    };
    let read = fs::read(&path).map_err(|error| error.to_string());
    match read.and_then(|bytes| LockedKey::decode(&bytes).map_err(|error| error.to_string())) {
        Err(error) => {
            let says = format!("{}: cannot {error}", path.display());
            Finding::fail("person", says, restore)
        }
        Ok(_) if metadata.permissions().mode() & 0o077 != 0 => closed("person", &path, &metadata),
        Ok(_) => Finding::ok("person", "operator's verbs need the person's key"),
    }
}

fn room(layout: &Layout) -> Finding {
    let store = fs::metadata(layout.store_file()).map_or(0, |store| store.len());
    let free = match free_bytes(layout.home()) {
        Ok(free) => free,
        Err(error) => {
            let says = format!("the room left is not known: {error}");
            return Finding::warn("room", says, "look with `df`");
        }
    };
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let says = format!("{} MiB are left, the store takes {} MiB", mib(free), mib(store));
    match free {
        free if free < ROOM_BYTES_MIN => Finding::fail("room", says, "make room on this disk"),
        // After a disk fault the node goes on from a copy of the store, and by a copy what was
        // forgotten leaves the file.
        free if free < store.saturating_add(ROOM_BYTES_MIN) => {
            Finding::warn("room", says, "make room for a copy of the store")
        }
        _ => Finding::ok("room", says),
    }
}

fn leftovers(layout: &Layout) -> Finding {
    let is_part = |name: &str| name.ends_with(".part");
    let parts = fs::read_dir(layout.home()).into_iter().flatten().flatten();
    let parts = parts.filter(|file| file.file_name().to_str().is_some_and(is_part));
    let parts: Vec<_> = parts.map(|file| file.path()).collect();
    let left = layout.unfinished_files().into_iter().filter(|path| path.exists()).chain(parts);
    let left: Vec<_> = left.collect();
    if left.is_empty() {
        return Finding::ok("leftovers", "nothing interrupted left a file behind");
    }
    let shown: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    let says = format!("something interrupted left {}", shown.join(", "));
    let words: Vec<String> = left.iter().map(|path| shell::path(path)).collect();
    Finding::warn("leftovers", says, format!("stop the node, then rm {}", words.join(" ")))
}

/// The socket of a home on which no node answers.
pub fn socket(path: &Path) -> Finding {
    let shut = |error: io::Error| {
        let says = format!("{} cannot be reached: {error}", path.display());
        Finding::fail("socket", says, "see who owns it, and the folders above it")
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return shut(error),
        Err(_) => return Finding::ok("socket", "no node is running"),
    };
    if !metadata.file_type().is_socket() {
        let says = format!("{} is no socket", path.display());
        return Finding::fail("socket", says, "move it away, or set api.socket to another name");
    }
    match UnixStream::connect(path) {
        Ok(_) => Finding::fail(
            "socket",
            format!("somebody listens on {} and does not answer", path.display()),
            "see who: `lsof` or `ss -xlp`",
        ),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => shut(error),
        Err(_) => Finding::warn(
            "socket",
            format!("a node that was killed left {} behind", path.display()),
            "nothing to do: the next start removes it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_typed_names_a_home_with_a_space_as_a_shell_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path().join("my home"));
        fs::create_dir(layout.home()).unwrap();
        fs::set_permissions(layout.home(), PermissionsExt::from_mode(0o755)).unwrap();
        let part = layout.home().join("x.jsonl.77.part");
        fs::write(&part, "half").unwrap();
        let found = home(&layout);
        let way_out = |check: &str| {
            let of = found.iter().find(|one| one.check == check).unwrap();
            of.way_out.clone().unwrap()
        };
        assert_eq!(way_out("leftovers"), format!("stop the node, then rm '{}'", part.display()));
        assert_eq!(way_out("home"), format!("chmod 700 '{}'", layout.home().display()));
    }
}
