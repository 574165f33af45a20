//! The client processes that have connected to this node since its start, each with the time of its
//! first connection.
//!
//! The registry is in memory only: after a restart, no client counts as connected before the
//! entries that were served earlier. The start time of a process is no substitute because it proves
//! no connection.

use super::caller::Caller;
use super::client_process_lookup::{self, IdentifiedClients, Process};
use super::process_tree;
use klnode_crdt::time::WallTime;
use klnode_store::client_process::{ClientId, ClientProcess, Lineage};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Maximum number of client processes. Above it, the one seen longest ago is evicted; it counts as
/// new when it connects again.
const CLIENTS_MAX: usize = 4_096;

/// The client processes that have connected.
#[derive(Debug, Default)]
pub(super) struct Clients {
    seen: Mutex<BTreeMap<ClientId, ConnectionTimes>>,
}

/// When callers below a client process connected, first and last.
#[derive(Clone, Copy, Debug)]
struct ConnectionTimes {
    first: WallTime,
    last: WallTime,
}

impl Clients {
    /// Finds the client process above a caller and records its connection.
    pub(super) fn identify(&self, caller: &Caller, accepted: WallTime) -> ClientProcess {
        let (Some(pid), Some(uid)) = (caller.pid, caller.uid) else {
            return ClientProcess::Unknown;
        };
        let Some(boot_id) = process_tree::boot_id() else { return ClientProcess::Unknown };
        match process_tree::read(pid, uid) {
            Some(ancestry) => {
                self.known(client_process_lookup::find(&ancestry), &boot_id, accepted)
            }
            None => ClientProcess::Unknown,
        }
    }

    fn known(&self, found: IdentifiedClients, boot_id: &str, accepted: WallTime) -> ClientProcess {
        let processes = match found {
            IdentifiedClients::Clients(processes) => processes,
            IdentifiedClients::Terminal => return ClientProcess::Terminal,
            IdentifiedClients::Nothing => return ClientProcess::Unknown,
        };
        let id = |process: &Process| ClientId::new(boot_id, process.pid, process.started_ticks);
        let ids: Vec<ClientId> = processes.iter().map(id).collect();
        let connected = self.note(&ids, accepted);
        let lineage = connected.and_then(|since| Lineage::new(&ids, since));
        lineage.map_or(ClientProcess::Unknown, ClientProcess::Known)
    }

    /// Records that a caller below these processes has connected. Returns the first connection of a
    /// caller below the nearest of them.
    fn note(&self, ids: &[ClientId], now: WallTime) -> Option<WallTime> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            let known = seen.entry(*id).or_insert(ConnectionTimes { first: now, last: now });
            known.last = known.last.max(now);
        }
        let nearest = ids.first().and_then(|id| seen.get(id)).map(|known| known.first);
        while seen.len() > CLIENTS_MAX {
            let oldest = seen.iter().min_by_key(|(id, known)| (known.last, **id));
            let Some(oldest) = oldest.map(|(id, _)| *id) else { break };
            seen.remove(&oldest);
        }
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32) -> Process {
        Process { pid, started_ticks: 1, ..Process::default() }
    }

    fn at(millis: u64) -> WallTime {
        WallTime::from_millis(millis)
    }

    /// The first connection below the nearest of these processes.
    fn connected(clients: &Clients, pids: &[u32], now: u64) -> u64 {
        let found = IdentifiedClients::Clients(pids.iter().map(|pid| process(*pid)).collect());
        match clients.known(found, "boot", at(now)) {
            ClientProcess::Known(lineage) => lineage.connected.as_millis(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_client_is_known_since_the_first_connection_of_any_caller_below_it() {
        let clients = Clients::default();
        assert_eq!(connected(&clients, &[7], 10), 10);
        assert_eq!(connected(&clients, &[8, 9], 20), 20);
        assert_eq!(connected(&clients, &[9], 30), 20, "first connected through a process below it");
        assert_eq!(connected(&clients, &[7], 40), 10);
    }

    #[test]
    fn the_client_seen_longest_ago_is_evicted_first() {
        let clients = Clients::default();
        for pid in 0..u32::try_from(CLIENTS_MAX).unwrap() {
            connected(&clients, &[pid], 10 + u64::from(pid));
        }
        connected(&clients, &[0], 9_000);
        connected(&clients, &[10_000], 9_001);
        assert_eq!(connected(&clients, &[0], 9_002), 10);
        assert_eq!(connected(&clients, &[1], 9_003), 9_003, "it was evicted");
    }

    #[test]
    fn only_known_clients_are_recorded() {
        let clients = Clients::default();
        assert_eq!(
            clients.known(IdentifiedClients::Terminal, "boot", at(1)),
            ClientProcess::Terminal
        );
        assert_eq!(
            clients.known(IdentifiedClients::Nothing, "boot", at(1)),
            ClientProcess::Unknown
        );
        let unknown = clients.identify(&Caller::default(), at(1));
        assert_eq!(unknown, ClientProcess::Unknown, "a caller over TCP");
        assert!(clients.seen.lock().unwrap().is_empty());
    }
}
