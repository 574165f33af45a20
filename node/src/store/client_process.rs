//! The client process behind a caller: which one it is, and since when the node has known it.
//!
//! Separate from the caller's user and process id because it is derived from the process tree and
//! decides what a confirmation is worth. How it is found is not known here.

use super::rows::CallerRow;
use klnode_crdt::time::WallTime;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteArray;

/// Client processes of one caller that are kept, from the nearest to the farthest ancestor.
pub const LINEAGE_MAX: usize = 8;

/// One process of this machine: a hash of boot id, process id and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(ByteArray<16>);

impl ClientId {
    /// The process that had this id and start time, in clock ticks, since the machine was booted.
    pub fn new(boot_id: &str, pid: u32, started_ticks: u64) -> Self {
        let text = format!("{boot_id} {pid} {started_ticks}");
        let hash = blake3::derive_key("klnode client process v1", text.as_bytes());
        Self(ByteArray::new(std::array::from_fn(|at| hash[at])))
    }

    /// The hash.
    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// What stands behind a caller in the process tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientProcess {
    /// Not known: the caller came over TCP, relays for others, or its ancestry cannot be read.
    #[default]
    Unknown,
    /// A client, such as a coding agent: all callers below it are one.
    Known(Lineage),
    /// None: a person typed the command in a terminal and reads the answer there.
    Terminal,
}

/// The client processes above a caller, and since when the node has known the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lineage {
    ids: [Option<ClientId>; LINEAGE_MAX],
    /// When a caller below the nearest one was first connected to this node since its start.
    pub connected: WallTime,
}

impl Lineage {
    /// The lineage of these processes, nearest first; none if there is no process, or too many.
    pub fn new(processes: &[ClientId], connected: WallTime) -> Option<Self> {
        if processes.is_empty() || processes.len() > LINEAGE_MAX {
            return None;
        }
        let ids = std::array::from_fn(|at| processes.get(at).copied());
        Some(Self { ids, connected })
    }

    /// The process nearest to the caller.
    pub(crate) fn nearest(&self) -> Option<ClientId> {
        self.ids[0]
    }

    /// All of them, nearest first.
    pub(crate) fn processes(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.ids.iter().flatten().copied()
    }
}

/// A caller as far as it decides what a word of theirs is worth, kept with that word.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpeakerRow {
    /// The user; unknown for one that came over TCP.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    /// The client processes above the caller, nearest first; none if they are not known.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    clients: Vec<ClientId>,
    /// Since when the node knew the nearest of them.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    connected: Option<WallTime>,
    /// A person typed the command in a terminal.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    is_typed: bool,
}

impl SpeakerRow {
    /// The user, where it is known.
    pub(crate) fn user(&self) -> Option<u32> {
        self.uid
    }

    /// What stands behind the caller.
    pub(crate) fn client_process(&self) -> ClientProcess {
        if self.is_typed {
            return ClientProcess::Terminal;
        }
        let lineage = self.connected.and_then(|since| Lineage::new(&self.clients, since));
        lineage.map_or(ClientProcess::Unknown, ClientProcess::Known)
    }
}

impl From<&CallerRow> for SpeakerRow {
    fn from(caller: &CallerRow) -> Self {
        let row = Self { uid: caller.uid, ..Self::default() };
        match caller.client_process {
            ClientProcess::Unknown => row,
            ClientProcess::Terminal => Self { is_typed: true, ..row },
            ClientProcess::Known(lineage) => {
                let clients = lineage.processes().collect();
                Self { clients, connected: Some(lineage.connected), ..row }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_others_by_boot_id_and_start_time() {
        let id = ClientId::new("boot", 7, 100);
        assert_eq!(id, ClientId::new("boot", 7, 100));
        for other in [("boot", 8, 100), ("boot", 7, 101), ("other", 7, 100)] {
            assert_ne!(id, ClientId::new(other.0, other.1, other.2), "{other:?}");
        }
    }

    #[test]
    fn a_lineage_has_at_least_one_process_and_no_more_than_fit() {
        let of = |count: u32| -> Vec<ClientId> {
            (0..count).map(|pid| ClientId::new("boot", pid, 1)).collect()
        };
        let since = WallTime::from_millis(5);
        assert!(Lineage::new(&of(0), since).is_none());
        assert!(Lineage::new(&of(9), since).is_none());
        let full = Lineage::new(&of(8), since).unwrap();
        assert_eq!(full.processes().collect::<Vec<_>>(), of(8));
        assert_eq!(full.nearest(), Some(of(1)[0]));
    }

    #[test]
    fn a_speaker_reads_back_as_the_caller_it_was() {
        let lineage = Lineage::new(&[ClientId::new("boot", 7, 1)], WallTime::from_millis(5));
        let known = ClientProcess::Known(lineage.unwrap());
        for client_process in [ClientProcess::Unknown, ClientProcess::Terminal, known] {
            let caller = CallerRow { uid: Some(7), client_process, ..CallerRow::default() };
            let row = SpeakerRow::from(&caller);
            assert_eq!((row.user(), row.client_process()), (Some(7), client_process));
        }
    }
}
