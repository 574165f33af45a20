//! Whether what a client has listed still is: it is looked at after calls, and told when it is not.
//! Nothing is watched in between, so an idle session costs nothing.

use rmcp::service::{Peer, RoleServer, SubscriptionSink};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the list is looked at, while calls come and nothing else says that it changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// Clients that follow by subscription, in one session.
const FOLLOWERS_MAX: usize = 16;

/// What was listed, and who wants to know when it changes.
#[derive(Default)]
pub(super) struct Changes {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listed: Option<Listed>,
    followers: BTreeMap<u64, SubscriptionSink>,
    next: u64,
}

/// What was listed.
struct Listed {
    /// The workspaces; nothing where no node answered.
    workspaces: Option<Vec<String>>,
    looked: Instant,
}

impl Changes {
    /// Notes what a client was shown.
    pub(super) fn note_listed(&self, workspaces: Option<Vec<String>>) {
        self.with(|state| state.listed = Some(Listed { workspaces, looked: Instant::now() }));
    }

    /// Whether to look again, after a call that met a node or none.
    pub(super) fn is_look_due(&self, is_node_there: bool) -> bool {
        self.with(|state| {
            let Some(listed) = &mut state.listed else { return false };
            let is_due = listed.workspaces.is_some() != is_node_there
                || listed.looked.elapsed() >= LOOK_INTERVAL;
            if is_due {
                listed.looked = Instant::now();
            }
            is_due
        })
    }

    /// Notes what is there now; whether it is not what was listed.
    pub(super) fn note_seen(&self, workspaces: Option<Vec<String>>) -> bool {
        self.with(|state| {
            let Some(listed) = &mut state.listed else { return false };
            let is_new = listed.workspaces != workspaces;
            listed.workspaces = workspaces;
            is_new
        })
    }

    /// Tells everybody who wants to know.
    pub(super) async fn tell(&self, peer: Option<Peer<RoleServer>>) {
        // Who is gone needs no news.
        if let Some(peer) = peer {
            let _ = peer.notify_resource_list_changed().await;
        }
        let followers = self.with(|state| state.followers.values().cloned().collect::<Vec<_>>());
        for follower in followers {
            let _ = follower.notify_resource_list_changed().await;
        }
    }

    /// Follows until the place is given back; nothing where too many do.
    pub(super) fn follow(self: &Arc<Self>, sink: SubscriptionSink) -> Option<Place> {
        self.with(|state| {
            if state.followers.len() >= FOLLOWERS_MAX {
                return None;
            }
            state.next += 1;
            state.followers.insert(state.next, sink);
            Some(Place { changes: self.clone(), number: state.next })
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // Nothing panics while it is held; if something did, the state is still what it was.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A place among the followers.
pub(super) struct Place {
    changes: Arc<Changes>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.changes.with(|state| state.followers.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_looked_at_when_a_node_comes_or_goes_and_told_when_it_differs() {
        let changes = Changes::default();
        assert!(!changes.is_look_due(true), "nobody has listed anything");
        changes.note_listed(None);
        assert!(!changes.is_look_due(false));
        assert!(changes.is_look_due(true), "there was no node");
        assert!(changes.note_seen(Some(vec!["main".into()])));
        assert!(!changes.is_look_due(true));
        assert!(!changes.note_seen(Some(vec!["main".into()])));
        assert!(changes.note_seen(Some(vec!["main".into(), "team".into()])));
        assert!(changes.is_look_due(false), "the node is gone");
    }
}
