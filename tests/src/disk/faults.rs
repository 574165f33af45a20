//! Fault plan of a simulated disk: which calls fail, and how.
//!
//! The disk asks the plan once for each call, in order. The plan does not see the bytes: the disk
//! implements the effect of a failing call.

use std::io;

/// How a call fails on a disk whose machine keeps running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// ENOSPC (`io::ErrorKind::StorageFull`); the call has no effect.
    NoSpace,
    /// The call fails with EIO and has no effect. After a failed sync, its writes stay pending for
    /// the next sync.
    Io,
    /// Half of the bytes of a write are written, then EIO. Other calls fail as with `Io`.
    ShortWrite,
    /// A sync fails with EIO and its writes are dropped: reads still see them, and no later sync
    /// writes them. Linux does this to pages that could not be written back. Other calls fail as
    /// with `Io`.
    LostSync,
}

impl Fault {
    /// All variants, for tests that try each.
    pub const ALL: [Fault; 4] = [Fault::NoSpace, Fault::Io, Fault::ShortWrite, Fault::LostSync];

    pub(super) fn error(self) -> io::Error {
        const EIO: i32 = 5;
        match self {
            Fault::NoSpace => {
                io::Error::new(io::ErrorKind::StorageFull, "no room on the simulated disk")
            }
            Fault::Io | Fault::ShortWrite | Fault::LostSync => io::Error::from_raw_os_error(EIO),
        }
    }
}

/// Calls that are to fail, by their number (the first call is number 1).
#[derive(Clone, Default)]
pub(super) struct Plan {
    once: Vec<(u64, Fault)>,
    every: Option<Every>,
}

#[derive(Clone, Copy)]
struct Every {
    after: u64,
    period: u64,
    fault: Fault,
}

impl Plan {
    pub(super) fn once(&mut self, call: u64, fault: Fault) {
        self.once.push((call, fault));
    }

    pub(super) fn every(&mut self, after: u64, period: u64, fault: Fault) {
        self.every = Some(Every { after, period, fault });
    }

    /// The planned fault of a call, if there is one.
    pub(super) fn fault_of(&self, call: u64) -> Option<Fault> {
        let once = self.once.iter().find(|(planned, _)| *planned == call).map(|(_, fault)| *fault);
        let every = self
            .every
            .filter(|every| call > every.after && (call - every.after).is_multiple_of(every.period))
            .map(|every| every.fault);
        once.or(every)
    }
}
