//! Which calls of a simulated disk fail, and how.
//!
//! A plan is asked once for each call, in order, and knows nothing of the bytes: what a failing
//! call leaves behind is the disk's part.

use std::io;

/// How a call fails on a disk whose machine lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// ENOSPC (`io::ErrorKind::StorageFull`); nothing happened.
    NoSpace,
    /// EIO; nothing happened. A sync that fails so leaves its writes for the next sync.
    Io,
    /// Half of the bytes of a write are written, then EIO. Other calls fail as with `Io`.
    ShortWrite,
    /// A sync fails with EIO and the system forgets what it should have written: reads go on
    /// seeing it, and no later sync writes it. Linux does this to pages that could not be written
    /// back. Other calls fail as with `Io`.
    LostSync,
}

impl Fault {
    /// All of them, for tests that try each.
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

/// The calls that are to fail, by their number (the first call is number 1).
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

    /// How `call` is to fail, if it is.
    pub(super) fn fault_of(&self, call: u64) -> Option<Fault> {
        let once = self.once.iter().find(|(planned, _)| *planned == call).map(|(_, fault)| *fault);
        let every = self
            .every
            .filter(|every| call > every.after && (call - every.after).is_multiple_of(every.period))
            .map(|every| every.fault);
        once.or(every)
    }
}
