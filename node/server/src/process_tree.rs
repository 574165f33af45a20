//! Reads a process and its ancestors from `/proc`; `client_identity` interprets them.
//!
//! The result is `None`, never a partial ancestry, on systems without `/proc`, in another process
//! namespace, and where `/proc` hides the processes of other users.

use super::client_process_lookup::{Ancestry, Process};
use std::fs;

/// Maximum number of processes in an ancestry that is read; a longer ancestry counts as unreadable.
const ANCESTORS_MAX: usize = 64;
/// Attempts if a process ends while its ancestry is read.
const ATTEMPTS_MAX: usize = 3;

/// The id of the current boot. Process ids and start times repeat only after the next boot.
pub(super) fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// A process of a user and all its ancestors; `None` if one of them cannot be read.
pub(super) fn read(pid: u32, uid: u32) -> Option<Ancestry> {
    (0..ATTEMPTS_MAX).find_map(|_| attempt(pid)).filter(|ancestry| {
        // The id may have been reused by a process of another user since the connection.
        ancestry.processes.first().is_some_and(|caller| caller.uid == uid)
    })
}

fn attempt(pid: u32) -> Option<Ancestry> {
    let (caller, mut parent) = process(pid)?;
    let mut processes = vec![caller];
    while parent != 0 {
        if processes.len() >= ANCESTORS_MAX {
            return None;
        }
        let (above, next) = process(parent)?;
        let child = processes.last()?;
        // Another process may have got the parent's id in the meantime. If the child still has the
        // same parent, the parent is the right process.
        let (again, parent_again) = process(child.pid)?;
        if again.started_ticks != child.started_ticks || parent_again != parent {
            return None;
        }
        processes.push(above);
        parent = next;
    }
    let output = fs::read_link(format!("/proc/{pid}/fd/1")).ok();
    let is_terminal = |path: &str| path.starts_with("/dev/pts/") || path.starts_with("/dev/tty");
    let prints_to_terminal = output.and_then(|path| path.to_str().map(is_terminal));
    Some(Ancestry { processes, prints_to_terminal: prints_to_terminal.unwrap_or(false) })
}

/// One process and the id of its parent.
fn process(pid: u32) -> Option<(Process, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let (name, parent, started_ticks) = parse_stat(&stat)?;
    let uid = parse_uid(&status)?;
    Some((Process { pid, name: name.to_owned(), uid, started_ticks }, parent))
}

/// Name, parent and start time. The name is in parentheses and may itself contain parentheses.
fn parse_stat(stat: &str) -> Option<(&str, u32, u64)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(") ")?;
    // In the file, the state is field 3, the parent field 4 and the start time field 22.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let started_ticks = fields.get(19)?.parse().ok()?;
    Some((name, parent, started_ticks))
}

/// The real user id.
fn parse_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4242 (tmux: ser) (1)) S 1 4242 4242 0 -1 4194560 925 0 0 0 3 4 0 0 20 0 1 \
                        0 1234567 8000 900 18446744073709551615 0 0";

    #[test]
    fn a_process_name_may_contain_parentheses_and_spaces() {
        assert_eq!(parse_stat(STAT), Some(("tmux: ser) (1)", 1, 1_234_567)));
        assert_eq!(parse_stat("4242 (sh) S"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn the_real_user_id_is_read() {
        let status = "Name:\tsh\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t7\t7\t7\t7\n";
        assert_eq!(parse_uid(status), Some(1_000));
        assert_eq!(parse_uid("Name:\tsh\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_read_with_its_parent_and_only_for_its_user() {
        let own = rustix::process::getuid().as_raw();
        let ancestry = read(std::process::id(), own).expect("this process can be read");
        assert_eq!(ancestry.processes[0].pid, std::process::id());
        assert_eq!(ancestry.processes[1].pid, std::os::unix::process::parent_id());
        assert!(ancestry.processes[1].started_ticks <= ancestry.processes[0].started_ticks);
        assert!(read(std::process::id(), own.wrapping_add(1)).is_none());
        assert!(boot_id().is_some_and(|id| id.len() == 36));
    }
}
