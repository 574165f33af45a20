//! What was read and is not durable yet.
//!
//! What was served is committed without waiting for the disk, and where the disk says no it is not
//! written at all: reading goes on. Either way it is known here until it is durable. A confirmation is
//! worth less where the entry was served before, and the disk that filled up in between must not make it
//! worth more.

use super::command::Command;
use std::collections::VecDeque;

/// So many are known; of more the oldest go.
const OWED_MAX: usize = 4_096;

/// Commands that only note what was read, since the last durable commit, in order.
#[derive(Debug, Default)]
pub(super) struct Owed {
    commands: VecDeque<Command>,
    /// The store that is open, or will be next, does not have them.
    is_due: bool,
}

impl Owed {
    /// Keeps one that is not written.
    pub(super) fn put_off(&mut self, command: Command) {
        self.keep(command);
        self.is_due = true;
    }

    fn keep(&mut self, command: Command) {
        if self.commands.len() == OWED_MAX {
            self.commands.pop_front();
        }
        self.commands.push_back(command);
    }

    /// The store falls back to its last durable commit.
    pub(super) fn fall_due(&mut self) {
        self.is_due = true;
    }

    /// Whether it has fallen back, and nothing was committed since.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// What is to be applied before anything else.
    pub(super) fn due(&self) -> Vec<Command> {
        if self.is_due { self.commands.iter().cloned().collect() } else { Vec::new() }
    }

    /// The same, to be tried one by one: what fails then is let go, or it would fail again.
    pub(super) fn take_due(&mut self) -> Vec<Command> {
        match std::mem::take(&mut self.is_due) {
            true => std::mem::take(&mut self.commands).into(),
            false => Vec::new(),
        }
    }

    /// What is due was committed, and then these; durably, unless the commit was deferred.
    pub(super) fn committed(&mut self, commands: &[Command], is_deferred: bool) {
        self.is_due = false;
        if !is_deferred {
            self.commands.clear();
            return;
        }
        let of_reading = commands.iter().filter(|command| command.is_of_reading());
        of_reading.for_each(|command| self.keep(command.clone()));
    }

    /// All that was committed is durable now.
    pub(super) fn become_durable(&mut self) {
        if !self.is_due {
            self.commands.clear();
        }
    }
}
