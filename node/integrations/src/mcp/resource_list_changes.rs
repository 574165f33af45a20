//! Notifies clients when the list of resources changes. The list is checked after calls, not
//! watched in between, so an idle session costs nothing.

use rmcp::service::{Peer, RoleServer, SubscriptionSink};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two checks, unless the node came or went.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of subscriptions per session.
const FOLLOWERS_MAX: usize = 16;

/// The resources last listed, and the subscribers to changes.
#[derive(Default)]
pub(super) struct ListChanges {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listed: Option<ShownResources>,
    followers: BTreeMap<u64, SubscriptionSink>,
    next: u64,
}

/// The resources a client was shown.
struct ShownResources {
    /// Names of the workspaces; `None` if no node answered.
    workspaces: Option<Vec<String>>,
    looked: Instant,
}

impl ListChanges {
    /// Records the list that a client was shown.
    pub(super) fn note_listed(&self, workspaces: Option<Vec<String>>) {
        self.with(|state| {
            state.listed = Some(ShownResources { workspaces, looked: Instant::now() });
        });
    }

    /// True if the list should be checked after a call. `is_node_there` says whether the call
    /// reached a node.
    pub(super) fn is_check_due(&self, is_node_there: bool) -> bool {
        self.with(|state| {
            let Some(listed) = &mut state.listed else { return false };
            let is_due = listed.workspaces.is_some() != is_node_there
                || listed.looked.elapsed() >= CHECK_INTERVAL;
            if is_due {
                listed.looked = Instant::now();
            }
            is_due
        })
    }

    /// Records the current list and returns whether it differs from the listed one.
    pub(super) fn note_seen(&self, workspaces: Option<Vec<String>>) -> bool {
        self.with(|state| {
            let Some(listed) = &mut state.listed else { return false };
            let is_new = listed.workspaces != workspaces;
            listed.workspaces = workspaces;
            is_new
        })
    }

    /// Notifies the client and every subscriber.
    pub(super) async fn tell(&self, peer: Option<Peer<RoleServer>>) {
        // A failed notification means that the client has disconnected.
        if let Some(peer) = peer {
            let _ = peer.notify_resource_list_changed().await;
        }
        let followers = self.with(|state| state.followers.values().cloned().collect::<Vec<_>>());
        for follower in followers {
            let _ = follower.notify_resource_list_changed().await;
        }
    }

    /// Subscribes until the returned guard is dropped. `None` if there are too many subscribers.
    pub(super) fn follow(self: &Arc<Self>, sink: SubscriptionSink) -> Option<Subscription> {
        self.with(|state| {
            if state.followers.len() >= FOLLOWERS_MAX {
                return None;
            }
            state.next += 1;
            state.followers.insert(state.next, sink);
            Some(Subscription { changes: self.clone(), number: state.next })
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // No code panics while holding the lock; if it did, the state would still be valid.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A subscription; dropping it unsubscribes.
pub(super) struct Subscription {
    changes: Arc<ListChanges>,
    number: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.changes.with(|state| state.followers.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_checked_when_a_node_comes_or_goes() {
        let changes = ListChanges::default();
        assert!(!changes.is_check_due(true), "no client has listed anything");
        changes.note_listed(None);
        assert!(!changes.is_check_due(false));
        assert!(changes.is_check_due(true), "there was no node");
        assert!(changes.note_seen(Some(vec!["main".into()])));
        assert!(!changes.is_check_due(true));
        assert!(!changes.note_seen(Some(vec!["main".into()])));
        assert!(changes.note_seen(Some(vec!["main".into(), "team".into()])));
        assert!(changes.is_check_due(false), "the node is gone");
    }
}
