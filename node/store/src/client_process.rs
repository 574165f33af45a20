//! The client process of a caller, and the time since which the node has known it.
//!
//! Separate from the caller's user and process id because it is derived from the process tree and
//! decides how a confirmation counts. Other modules determine it; this one only stores it.

use klnode_crdt::time::WallTime;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteArray;

/// Most client processes stored per caller, from the nearest to the farthest ancestor.
pub const LINEAGE_MAX: usize = 8;

/// A process of this machine, as a hash of boot id, process id and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(ByteArray<16>);

impl ClientId {
    /// The process with this id and start time, in clock ticks since the boot named by `boot_id`.
    pub fn new(boot_id: &str, pid: u32, started_ticks: u64) -> Self {
        let text = format!("{boot_id} {pid} {started_ticks}");
        let hash = blake3::derive_key("klnode client process v1", text.as_bytes());
        Self(ByteArray::new(std::array::from_fn(|at| hash[at])))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The client that a caller belongs to, by its place in the process tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientProcess {
    /// Unknown: the caller uses TCP, relays for others, or its ancestors cannot be read.
    #[default]
    Unknown,
    /// A client such as a coding agent. All callers below it count as one.
    Known(Lineage),
    /// No client: a person typed the command in a terminal and reads the answer there.
    Terminal,
}

/// The client processes above a caller, and the time since which the node has known the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lineage {
    ids: [Option<ClientId>; LINEAGE_MAX],
    /// When a caller below the nearest process first connected to this node since the node's start.
    pub connected: WallTime,
}

impl Lineage {
    /// The lineage of these processes, nearest first; `None` if there are none or too many.
    pub fn new(processes: &[ClientId], connected: WallTime) -> Option<Self> {
        if processes.is_empty() || processes.len() > LINEAGE_MAX {
            return None;
        }
        let ids = std::array::from_fn(|at| processes.get(at).copied());
        Some(Self { ids, connected })
    }

    /// The process nearest to the caller.
    pub fn nearest(&self) -> Option<ClientId> {
        self.ids[0]
    }

    /// All processes, nearest first.
    pub fn processes(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.ids.iter().flatten().copied()
    }
}

/// The attributes of a caller that decide how its statement counts, stored with the statement.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpeakerRow {
    /// The operating-system user; unknown over TCP.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    /// The client processes above the caller, nearest first; empty if unknown.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    clients: Vec<ClientId>,
    /// The time since which the node has known the nearest process.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    connected: Option<WallTime>,
    /// Whether a person typed the command in a terminal.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    is_typed: bool,
}

impl SpeakerRow {
    /// A caller of this user, below this client process.
    pub(super) fn new(uid: Option<u32>, client_process: ClientProcess) -> Self {
        let row = Self { uid, ..Self::default() };
        match client_process {
            ClientProcess::Unknown => row,
            ClientProcess::Terminal => Self { is_typed: true, ..row },
            ClientProcess::Known(lineage) => {
                let clients = lineage.processes().collect();
                Self { clients, connected: Some(lineage.connected), ..row }
            }
        }
    }

    pub fn user(&self) -> Option<u32> {
        self.uid
    }

    pub fn client_process(&self) -> ClientProcess {
        if self.is_typed {
            return ClientProcess::Terminal;
        }
        let lineage = self.connected.and_then(|since| Lineage::new(&self.clients, since));
        lineage.map_or(ClientProcess::Unknown, ClientProcess::Known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_by_boot_id_pid_and_start_time() {
        let id = ClientId::new("boot", 7, 100);
        assert_eq!(id, ClientId::new("boot", 7, 100));
        for other in [("boot", 8, 100), ("boot", 7, 101), ("other", 7, 100)] {
            assert_ne!(id, ClientId::new(other.0, other.1, other.2), "{other:?}");
        }
    }

    #[test]
    fn a_lineage_has_one_to_eight_processes() {
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
    fn a_speaker_row_keeps_user_and_client_process() {
        let lineage = Lineage::new(&[ClientId::new("boot", 7, 1)], WallTime::from_millis(5));
        let known = ClientProcess::Known(lineage.unwrap());
        for client_process in [ClientProcess::Unknown, ClientProcess::Terminal, known] {
            let row = SpeakerRow::new(Some(7), client_process);
            assert_eq!((row.user(), row.client_process()), (Some(7), client_process));
        }
    }
}
