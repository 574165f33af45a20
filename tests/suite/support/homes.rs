//! Homes on disk: written from an in-memory node, and searched for bytes.

use klnode_crdt::ids::EntryId;
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::{Command, MarkChange, SourceKey};
use klnode_tests::test_engine::{Node, Seeded, exchange, lesson};
use std::path::{Path, PathBuf};

/// Writes a home with the store of an in-memory node and its key.
pub(crate) fn settle(home: &Path, node: Node, key_seed: u8) {
    std::fs::create_dir_all(home).unwrap();
    std::fs::write(home.join("node.key"), [key_seed; 32]).unwrap();
    let disk = node.medium.disk();
    drop(node);
    std::fs::write(home.join("store.redb"), disk.bytes()).unwrap();
    for name in ["node.key", "store.redb"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(home.join(name), mode).unwrap();
    }
}

/// History of a node and a peer: entries of both, edited, observed, archived, marked, retracted,
/// forgotten, over several starts and a clone.
pub(crate) fn lived(seed: u64) -> Node {
    let mut random = Seeded(seed);
    let (mut home, mut peer) = (Node::start(1, seed), Node::start(2, seed + 1));
    let mut entries: Vec<EntryId> = Vec::new();
    for turn in 0..4 + random.below(30) {
        let title = format!("entry {turn} of {seed}, \u{1F980} \"quoted\"\n");
        let node = if random.below(3) == 0 { &mut peer } else { &mut home };
        if entries.is_empty() || random.below(4) == 0 {
            let mut new = lesson(title.trim_end());
            if random.below(3) == 0 {
                let key = format!("row {turn}");
                new.source = Some(SourceKey { format: "jsonl".into(), key });
            }
            if let Ok(klnode_engine::Receipt::Created(entry)) =
                node.run(Command::Create(Box::new(new)))
            {
                entries.push(entry);
            }
            continue;
        }
        let entry = entries[random.below(entries.len() as u64) as usize];
        // Some of these commands are refused, as in real use.
        let _ = match random.below(9) {
            0 => node.run(Command::Forget { entry }),
            1 => node.run(Command::Retract { entry }),
            2 => {
                let claims = vec![ClaimEdit::Archive(Presence::Present)];
                node.run(Command::Claim { entry, claims })
            }
            3 => {
                let note = Some(format!("note {turn}"));
                let marks = MarkChange { pinned: Some(true), note, ..MarkChange::default() };
                node.run(Command::Mark { entry, marks })
            }
            4 => {
                exchange(&mut home, &mut peer);
                continue;
            }
            5 => {
                home = home.restart(seed * 100 + turn);
                continue;
            }
            6 => {
                let mut clone = home.clone_home(seed * 1_000 + turn);
                let title = klnode_crdt::register::Register::TITLE;
                let claims = vec![ClaimEdit::Set(title, format!("by a clone {turn}"))];
                let _ = clone.run(Command::Claim { entry, claims });
                exchange(&mut home, &mut clone);
                continue;
            }
            7 => {
                let of = klnode_crdt::tally::Observation::Success;
                let amount = klnode_crdt::gcounter::Thousandths::ONE;
                node.run(Command::Observe { entry, of, amount })
            }
            _ => {
                let content = klnode_crdt::register::Register::CONTENT;
                let claims = vec![ClaimEdit::Set(content, format!("edited {turn}"))];
                node.run(Command::Claim { entry, claims })
            }
        };
    }
    exchange(&mut home, &mut peer);
    home
}

/// Every file of a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for item in std::fs::read_dir(folder).unwrap() {
        let item = item.unwrap();
        let kind = item.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&item.path()));
        } else if kind.is_file() {
            found.push(item.path());
        }
    }
    found
}

/// The first file of a folder that contains these bytes.
pub(crate) fn lies_in(folder: &Path, bytes: &[u8]) -> Option<PathBuf> {
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            if let Some(found) = lies_in(&path, bytes) {
                return Some(found);
            }
        } else if path.is_file() {
            let content = std::fs::read(&path).unwrap();
            if content.windows(bytes.len()).any(|window| window == bytes) {
                return Some(path);
            }
        }
    }
    None
}
