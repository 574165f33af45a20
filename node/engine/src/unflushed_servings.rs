//! The log of reads that are not durable yet.
//!
//! The engine commits served entries without waiting for the disk, and skips the write altogether
//! when the disk refuses it, so that reads continue. In both cases this queue keeps the commands in
//! memory until they are durable. The reason: a confirmation counts less if this node served the
//! entry before, and a full disk in between must not raise its weight.

use super::command::Command;
use std::collections::VecDeque;

/// Capacity of the queue; the oldest command is dropped when it is full.
const UNFLUSHED_READS_MAX: usize = 4_096;

/// Commands that only log reads, made since the last durable commit, in order.
#[derive(Debug, Default)]
pub(super) struct UnflushedReads {
    commands: VecDeque<Command>,
    /// Whether the store that is open, or will be opened next, lacks these commands.
    is_missing: bool,
}

impl UnflushedReads {
    /// Queues a command that was not written.
    pub(super) fn defer(&mut self, command: Command) {
        self.keep(command);
        self.is_missing = true;
    }

    fn keep(&mut self, command: Command) {
        if self.commands.len() == UNFLUSHED_READS_MAX {
            self.commands.pop_front();
        }
        self.commands.push_back(command);
    }

    /// Marks the queue as missing from the store, which falls back to its last durable commit.
    pub(super) fn mark_missing(&mut self) {
        self.is_missing = true;
    }

    /// Whether the queued commands are missing from the store and have to be applied again.
    pub(super) fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Returns the commands to apply before any other.
    pub(super) fn missing(&self) -> Vec<Command> {
        if self.is_missing { self.commands.iter().cloned().collect() } else { Vec::new() }
    }

    /// Removes and returns the commands to apply. The caller tries them one by one and drops any
    /// that fails, because it would fail again.
    pub(super) fn take_missing(&mut self) -> Vec<Command> {
        match std::mem::take(&mut self.is_missing) {
            true => std::mem::take(&mut self.commands).into(),
            false => Vec::new(),
        }
    }

    /// Notes a commit of the missing commands followed by `commands`. A deferred commit is not
    /// durable, so its reads stay queued.
    pub(super) fn note_commit(&mut self, commands: &[Command], is_deferred: bool) {
        self.is_missing = false;
        if !is_deferred {
            self.commands.clear();
            return;
        }
        let reads = commands.iter().filter(|command| command.only_logs_reads());
        reads.for_each(|command| self.keep(command.clone()));
    }

    /// Notes that everything committed so far is durable.
    pub(super) fn note_durable(&mut self) {
        if !self.is_missing {
            self.commands.clear();
        }
    }
}
