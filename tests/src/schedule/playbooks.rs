//! Playbooks in a schedule: nodes write and edit them, and in the end equal nodes show equal texts.

use super::final_checks::cuts_in;
use super::run::{Runner, for_team};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::EntryId;
use klnode_document::change_hash::ChangeHash;
use klnode_engine::{Command, DocumentCommand, NewEntry, Receipt, open_document};

/// Most playbooks of one run; further steps edit these.
const PLAYBOOKS_MAX: usize = 2;

impl Runner {
    /// Writes a playbook, or adds a line to one that the node holds.
    pub(super) fn write(&mut self, at: usize, pick: usize) {
        let line = format!("line {} by {at}\n", self.oracle.number);
        let is_new = self.playbooks.len() < PLAYBOOKS_MAX && pick.is_multiple_of(3);
        if self.playbooks.is_empty() || is_new {
            let new = NewEntry {
                kind: EntryType::Playbook,
                memory: Memory::Procedural,
                content: String::new(),
                ..for_team(self.team, "playbook of run")
            };
            let command = DocumentCommand::Create { new: Box::new(new), text: line };
            if let Ok(Receipt::Created(entry)) = self.nodes.run(at, Command::Document(command)) {
                self.report.acknowledged += 1;
                self.playbooks.push(entry);
            }
            return;
        }
        let entry = self.playbooks[pick % self.playbooks.len()];
        let Some(row) = self.nodes.snapshot(at).document(entry).expect("readable") else { return };
        let mut lines: Vec<&str> = row.text.split_inclusive('\n').collect();
        let place = pick % (lines.len() + 1);
        match pick % 5 {
            0 if lines.len() > 1 => drop(lines.remove(place.min(lines.len() - 1))),
            _ => lines.insert(place, &line),
        }
        let base = row.heads.iter().map(|head| ChangeHash::from_bytes(**head)).collect();
        let command = DocumentCommand::Edit { entry, base, text: lines.concat() };
        let is_done = self.nodes.run(at, Command::Document(command)).is_ok();
        self.report.acknowledged += u64::from(is_done);
    }

    /// Checks that nodes with the same edits and the same members show the same text, and that a
    /// reader merges the edits like the writer.
    pub(super) fn check_playbooks(&mut self) -> Result<(), String> {
        for entry in self.playbooks.clone() {
            let nodes = 0..self.nodes.count();
            let shown: Vec<_> = nodes.map(|at| self.shown_playbook(at, entry)).collect();
            for (one, of_one) in shown.iter().enumerate() {
                let of_one = of_one.as_ref().map_err(Clone::clone)?;
                for (two, of_two) in shown.iter().enumerate().skip(one + 1) {
                    let of_two = of_two.as_ref().map_err(Clone::clone)?;
                    let is_equal = of_one.0 == of_two.0 && of_one.1 == of_two.1;
                    if is_equal && of_one.2 != of_two.2 {
                        return Err(format!(
                            "{one} and {two} hold the same edits of {entry} and show different \
                             texts: {:?} and {:?}",
                            of_one.2, of_two.2
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The edits of a playbook at a node, the charter that decides about them, and the text.
    fn shown_playbook(&mut self, at: usize, entry: EntryId) -> Result<PlaybookState, String> {
        let snapshot = self.nodes.snapshot(at);
        let membership = self.nodes.membership(at);
        let mut digests: Vec<String> = snapshot
            .edits(entry)
            .expect("readable")
            .iter()
            .map(|record| record.digest().to_string())
            .collect();
        digests.sort_unstable();
        let shared = membership.workspaces.get(&self.team);
        let place = snapshot.view_row(entry).expect("readable").and_then(|row| row.workspace);
        let cuts = cuts_in(&mut self.nodes, at, self.team);
        let charter = shared.map(|shared| {
            format!("{place:?} {:?} {:?} {cuts:?}", shared.charter.members, shared.charter.removed)
        });
        let row = snapshot.document(entry).expect("readable").unwrap_or_default();
        let read = open_document(&snapshot, &membership, entry).expect("readable");
        if !digests.is_empty() && read.text() != row.text {
            let (read, stored) = (read.text(), row.text);
            return Err(format!("{at} stores {stored:?} for {entry}, and its edits give {read:?}"));
        }
        Ok((digests, charter, row.text))
    }
}

/// Digests of the edits, the charter and its cuts, and the text.
type PlaybookState = (Vec<String>, Option<String>, String);
