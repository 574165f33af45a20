//! Joins in progress: by ticket (`joiner`), and by address those of other nodes (`join_responder`)
//! and those of this node (`join_requester`). They are in memory only, so a restart ends all
//! attempts. The actor holds them; `pairing` advances them.

use super::pair_error::PairError;
use klnode_crdt::ids::{AuthorId, Nonce};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::sas::{Attempts, Initiator, RequestedRole, Settings};
use klnode_federation::proto::ticket::{JoinOffer, Ticket};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Maximum number of attempts of this node that are kept, finished ones included.
pub(super) const OUTGOING_MAX: usize = 32;

/// Longest time for which a poll for the decision is held open, in milliseconds.
const HELD_MS_MAX: u64 = 20_000;

/// The outcome of a join, or its state while an operator still has to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinResult {
    /// The node that is paired, or whose decision is pending.
    pub peer: AuthorId,
    /// The name that the node chose for itself.
    pub name: String,
    /// The relation granted to this node; `None` while the operator there decides.
    pub offer: Option<JoinOffer>,
    /// Six digits that both operators compare.
    pub code: Option<String>,
    /// True if the operator of the other node still has to confirm.
    pub is_waiting: bool,
}

/// The side that began a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinDirection {
    /// Another node asks to join this one.
    Theirs,
    /// This node asks to join another.
    Ours,
}

/// How far an attempt to pair with another node by address has come.
#[derive(Clone, Debug)]
pub enum JoinState {
    /// The operators have not decided yet.
    Waiting,
    /// The nodes are paired.
    Joined(JoinResult),
    /// The attempt ended without a pairing.
    Failed(PairError),
}

/// An attempt to join by address, for display.
#[derive(Clone, Debug)]
pub struct JoinAttempt {
    /// The other node.
    pub peer: AuthorId,
    /// The name that the other node gives itself.
    pub name: String,
    /// The addresses of the other node.
    pub addresses: Vec<String>,
    /// The side that began the attempt.
    pub side: JoinDirection,
    /// The relation that the joining node asks for.
    pub want: RequestedRole,
    /// The six digits that both operators compare, once they are known.
    pub code: Option<String>,
    /// The wall-clock time at which the attempt expires.
    pub expires: WallTime,
    /// True if the operator of this node has typed the digits.
    pub is_confirmed: bool,
    /// True if the other node says that its operator has typed the digits.
    pub is_confirmed_there: bool,
    /// How far the attempt has come.
    pub state: JoinState,
    /// The number of the request to this node, in order of arrival; 0 for this node's own attempts.
    pub number: u64,
}

impl JoinAttempt {
    /// True while the operators can still decide about the attempt.
    pub fn is_open(&self) -> bool {
        matches!(self.state, JoinState::Waiting)
    }
}

/// The caller that began an attempt. By address, it is answered when the digits are known.
pub(super) type JoinReply = oneshot::Sender<Result<JoinResult, PairError>>;

/// A join by ticket in progress.
pub(super) struct TicketJoin {
    pub(super) peer: AuthorId,
    pub(super) ticket: (Ticket, Nonce),
    /// The addresses that were dialled.
    pub(super) places: Vec<String>,
    pub(super) reply: JoinReply,
}

/// An attempt whose node is being dialled.
pub(super) struct DialAttempt {
    pub(super) want: RequestedRole,
    /// The address, without a peer id.
    pub(super) place: String,
    pub(super) reply: JoinReply,
}

/// An attempt of this node.
pub(super) struct OutgoingJoin {
    pub(super) machine: Initiator,
    pub(super) name: String,
    /// The address at which the node was found, without a peer id.
    pub(super) place: String,
    pub(super) expires_ms: u64,
    pub(super) reply: Option<JoinReply>,
    /// The six digits that both operators compare, once the exchange has fixed them.
    pub(super) code: Option<String>,
    /// The id of the unanswered request.
    pub(super) in_flight: Option<u64>,
    /// Monotonic time of the last poll for the decision, in milliseconds.
    pub(super) polled_ms: u64,
    pub(super) state: JoinState,
}

/// The joins by address of this node, those it asked for and those it was asked for.
pub(super) struct Joins {
    pub(super) attempts: Attempts,
    /// Polls for the decision that are held open: the exchange and its start.
    pub(super) held: BTreeMap<AuthorId, (u64, u64)>,
    pub(super) held_ms_max: u64,
    /// By the dialled text.
    pub(super) seeking: BTreeMap<String, DialAttempt>,
    pub(super) outgoing: BTreeMap<AuthorId, OutgoingJoin>,
    /// This node's requests that wait for a response.
    pub(super) asked: BTreeMap<u64, AuthorId>,
    pub(super) lifetime_ms: u64,
    /// The number of the newest request to this node.
    newest: u64,
    requests: watch::Sender<u64>,
}

impl Joins {
    pub(super) fn new(
        own: AuthorId,
        lifetime: Duration,
        request_timeout: Duration,
        requests: watch::Sender<u64>,
    ) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let lifetime_ms = ms(lifetime);
        Self {
            attempts: Attempts::new(own, Settings { lifetime_ms }),
            held: BTreeMap::new(),
            held_ms_max: HELD_MS_MAX.min(ms(request_timeout) / 2),
            seeking: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            asked: BTreeMap::new(),
            lifetime_ms,
            newest: 0,
            requests,
        }
    }

    pub(super) fn note_request(&mut self, number: u64) {
        self.newest = self.newest.max(number);
    }

    /// Wakes event streams if there is a new request. Called after the request is published.
    pub(super) fn announce(&self) {
        if *self.requests.borrow() != self.newest {
            self.requests.send_replace(self.newest);
        }
    }

    /// All attempts for display. `at` is the monotonic time of `now` in milliseconds.
    pub(super) fn list(&self, at: u64, now: WallTime) -> Vec<JoinAttempt> {
        let expires = |ms: u64| now.plus(Duration::from_millis(ms.saturating_sub(at)));
        let theirs = self.attempts.all_open().map(|(peer, row)| JoinAttempt {
            peer,
            name: row.card.name.clone(),
            addresses: row.card.addresses.clone(),
            side: JoinDirection::Theirs,
            want: row.want.clone(),
            code: row.code.map(|code| code.to_string()),
            expires: expires(row.expires_ms),
            is_confirmed: row.is_confirmed,
            is_confirmed_there: row.is_confirmed_there,
            state: JoinState::Waiting,
            number: row.number,
        });
        let ours = self.outgoing.iter().map(|(peer, one)| JoinAttempt {
            peer: *peer,
            name: one.name.clone(),
            addresses: vec![one.place.clone()],
            side: JoinDirection::Ours,
            want: one.machine.want().clone(),
            code: one.code.clone(),
            expires: expires(one.expires_ms),
            is_confirmed: one.machine.is_confirmed(),
            is_confirmed_there: one.machine.is_confirmed_there(),
            state: one.state.clone(),
            number: 0,
        });
        theirs.chain(ours).collect()
    }
}
