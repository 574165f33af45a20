//! Checks of the home folder: permissions, key, leftover files, free disk space and socket.

use super::CheckResult;
use klnode_crdt::encrypted_key::LockedKey;
use klnode_home::Layout;
use klnode_store::{ROOM_BYTES_MIN, free_bytes};
use klnode_text::shell_quote;
use rustix::fs::{Access, access};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// All checks of the folder that do not open the store.
pub fn home(layout: &Layout) -> Vec<CheckResult> {
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

/// True if the home is a folder that this user can read. In any other folder the checks would
/// report everything as missing.
pub fn is_open(layout: &Layout) -> bool {
    folder(layout).is_ok()
}

/// The folder's metadata, or the only check result that is possible without it.
fn folder(layout: &Layout) -> Result<Metadata, CheckResult> {
    let (path, name) = (layout.home(), layout.home().display());
    let fail = |says: String, way_out: String| Err(CheckResult::fail("home", says, way_out));
    let folder = match fs::metadata(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let way_out = "Run `klnode` to create one, or correct --home.";
            return fail(format!("There is no home at {name}."), way_out.into());
        }
        Err(error) => {
            let way_out = "Check the owner of the folders above it, or correct --home.";
            return fail(format!("{name} cannot be inspected: {error}."), way_out.into());
        }
    };
    if !folder.is_dir() {
        return fail(format!("{name} is a file."), "Name a folder with --home.".into());
    }
    if folder.uid() != rustix::process::geteuid().as_raw() {
        let way_out = "Run this as that user, or name your own home with --home.";
        return fail(format!("{name} belongs to another user."), way_out.into());
    }
    match access(path, Access::READ_OK | Access::EXEC_OK) {
        Ok(()) => Ok(folder),
        Err(error) => fail(
            format!("{name} cannot be read: {error}."),
            format!("chmod 700 {}", shell_quote::path(path)),
        ),
    }
}

/// Checks that the node can write a path and other users cannot access it.
fn owned(check: &str, path: &Path, metadata: &Metadata) -> CheckResult {
    match access(path, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => closed(check, path, metadata),
        Err(error) => {
            let says = format!("{} cannot be written: {error}.", path.display());
            CheckResult::fail(
                check,
                says,
                "Correct its owner or permissions; a node cannot start before.",
            )
        }
    }
}

fn closed(check: &str, path: &Path, metadata: &Metadata) -> CheckResult {
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return CheckResult::ok(check, format!("Only you can access {}.", path.display()));
    }
    let wanted = if metadata.is_dir() { "700" } else { "600" };
    let says = format!("Other users can access {} (mode {mode:o}).", path.display());
    CheckResult::fail(check, says, format!("chmod {wanted} {}", shell_quote::path(path)))
}

/// The command that makes the node's key private, if other users can read it. A user who reads the
/// key can sign as this node.
pub fn close_key_command(layout: &Layout) -> Option<String> {
    let path = layout.key_file();
    let mode = fs::metadata(&path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| format!("chmod 600 {}", shell_quote::path(&path)))
}

fn key(layout: &Layout) -> CheckResult {
    let path = layout.key_file();
    let restore = "Restore the file from a backup; a new key would be another author.";
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() != 32 => {
            let says = format!("{} is not 32 bytes long.", path.display());
            CheckResult::fail("key", says, restore)
        }
        Ok(metadata) => closed("key", &path, &metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match layout.store_file().exists() {
                true => {
                    CheckResult::fail("key", format!("{} is missing.", path.display()), restore)
                }
                false => CheckResult::ok("key", "There is none yet; the first start creates it."),
            }
        }
        Err(error) => CheckResult::fail(
            "key",
            format!("{} cannot be read: {error}.", path.display()),
            restore,
        ),
    }
}

fn person(layout: &Layout) -> CheckResult {
    let path = layout.person_file();
    let restore = "Restore the file from a copy. Removing it and restarting the node \
                   opens the node to every program that runs as you.";
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let says = "The node is unprotected: no person's key guards the operator's verbs.";
            let way_out = "Run `klnode identity new`, or run only trusted programs as this user.";
            return CheckResult::warn("person", says, way_out);
        }
        Err(error) => {
            return CheckResult::fail(
                "person",
                format!("{} cannot be read: {error}.", path.display()),
                restore,
            );
        }
    };
    let read = fs::read(&path).map_err(|error| error.to_string());
    match read.and_then(|bytes| LockedKey::decode(&bytes).map_err(|error| error.to_string())) {
        Err(error) => {
            let says = format!("{}: {error}", path.display());
            CheckResult::fail("person", says, restore)
        }
        Ok(_) if metadata.permissions().mode() & 0o077 != 0 => closed("person", &path, &metadata),
        Ok(_) => CheckResult::ok("person", "The operator's verbs need the person's key."),
    }
}

fn room(layout: &Layout) -> CheckResult {
    let store = fs::metadata(layout.store_file()).map_or(0, |store| store.len());
    let free = match free_bytes(layout.home()) {
        Ok(free) => free,
        Err(error) => {
            let says = format!("The free disk space is unknown: {error}.");
            return CheckResult::warn("room", says, "Check it with `df`.");
        }
    };
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let says = format!("{} MiB are free; the store takes {} MiB.", mib(free), mib(store));
    match free {
        free if free < ROOM_BYTES_MIN => {
            CheckResult::fail("room", says, "Free space on this disk.")
        }
        // A copy of the store is needed to continue after a disk fault and to remove forgotten
        // entries from the file.
        free if free < store.saturating_add(ROOM_BYTES_MIN) => {
            CheckResult::warn("room", says, "Free space for a copy of the store.")
        }
        _ => CheckResult::ok("room", says),
    }
}

fn leftovers(layout: &Layout) -> CheckResult {
    let is_partial = |name: &str| name.ends_with(".part");
    let parts = fs::read_dir(layout.home()).into_iter().flatten().flatten();
    let parts = parts.filter(|file| file.file_name().to_str().is_some_and(is_partial));
    let parts: Vec<_> = parts.map(|file| file.path()).collect();
    let left = layout.unfinished_files().into_iter().filter(|path| path.exists()).chain(parts);
    let left: Vec<_> = left.collect();
    if left.is_empty() {
        return CheckResult::ok("leftovers", "There are no leftover files.");
    }
    let shown: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    let says = format!("An interrupted operation left {}.", shown.join(", "));
    let words: Vec<String> = left.iter().map(|path| shell_quote::path(path)).collect();
    CheckResult::warn("leftovers", says, format!("Stop the node, then run: rm {}", words.join(" ")))
}

/// Checks the socket of a home on which no node answers.
pub fn socket(path: &Path) -> CheckResult {
    let shut = |error: io::Error| {
        let says = format!("{} cannot be reached: {error}.", path.display());
        CheckResult::fail("socket", says, "Check its owner and the folders above it.")
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return shut(error),
        Err(_) => return CheckResult::ok("socket", "No node is running."),
    };
    if !metadata.file_type().is_socket() {
        let says = format!("{} is not a socket.", path.display());
        return CheckResult::fail(
            "socket",
            says,
            "Move it away, or set api.socket to another path.",
        );
    }
    match UnixStream::connect(path) {
        Ok(_) => CheckResult::fail(
            "socket",
            format!("A process listens on {} and does not answer.", path.display()),
            "Find the process with `lsof` or `ss -xlp`.",
        ),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => shut(error),
        Err(_) => CheckResult::warn(
            "socket",
            format!("A killed node left {} behind.", path.display()),
            "Nothing to do; the next start removes it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_commands_quote_paths_with_spaces() {
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
        assert_eq!(
            way_out("leftovers"),
            format!("Stop the node, then run: rm '{}'", part.display())
        );
        assert_eq!(way_out("home"), format!("chmod 700 '{}'", layout.home().display()));
    }
}
