//! Joins by address that are under way: of other nodes (`answering`) and of this one (`asking`). All of
//! it is in memory, so a restart ends every attempt.

use super::{Joined, PairError};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::sas::{Attempts, Initiator, Settings, Want};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Attempts of this node that are kept at once, those that are over included.
pub(super) const OUTGOING_MAX: usize = 32;

/// A question for the decision is kept open for at most this long.
const HELD_MS_MAX: u64 = 20_000;

/// Which side began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Another node asks to join this one.
    Theirs,
    /// This node asks to join another.
    Ours,
}

/// How far an attempt is.
#[derive(Clone, Debug)]
pub enum JoinState {
    /// The operators decide.
    Waiting,
    /// Paired.
    Joined(Joined),
    /// Over without a pairing.
    Failed(PairError),
}

/// An attempt to join by address, as operators see it.
#[derive(Clone, Debug)]
pub struct Join {
    /// The other node.
    pub peer: AuthorId,
    /// The name that it gives itself.
    pub name: String,
    /// Where it can be reached.
    pub addresses: Vec<String>,
    /// Who began.
    pub side: Side,
    /// What is asked for.
    pub want: Want,
    /// The digits.
    pub code: Option<String>,
    /// When the attempt ends by itself.
    pub expires: WallTime,
    /// True if the operator here has typed the digits.
    pub is_confirmed: bool,
    /// True if the other side says that its operator has.
    pub is_confirmed_there: bool,
    /// How far it is.
    pub state: JoinState,
    /// Its place in the order of requests to this node; 0 for this node's own.
    pub number: u64,
}

impl Join {
    /// True while operators can decide.
    pub fn is_open(&self) -> bool {
        matches!(self.state, JoinState::Waiting)
    }
}

/// The caller that began an attempt, until the digits are known.
pub(super) type Reply = oneshot::Sender<Result<Joined, PairError>>;

/// An attempt whose node is being dialled.
pub(super) struct Seeking {
    pub(super) want: Want,
    /// The address, without a peer id.
    pub(super) place: String,
    pub(super) reply: Reply,
}

/// An attempt of this node.
pub(super) struct Outgoing {
    pub(super) machine: Initiator,
    pub(super) name: String,
    /// The address at which the node was found, without a peer id.
    pub(super) place: String,
    pub(super) expires_ms: u64,
    pub(super) reply: Option<Reply>,
    /// The digits, once they are fixed.
    pub(super) code: Option<String>,
    /// The question that is unanswered.
    pub(super) in_flight: Option<u64>,
    /// When the decision was last asked for.
    pub(super) polled_ms: u64,
    pub(super) state: JoinState,
}

/// All of them.
pub(in crate::replicate) struct Joins {
    pub(super) attempts: Attempts,
    /// Questions for the decision that are kept open: the exchange, and since when.
    pub(super) held: BTreeMap<AuthorId, (u64, u64)>,
    pub(super) held_ms_max: u64,
    /// By the text that was dialled.
    pub(super) seeking: BTreeMap<String, Seeking>,
    pub(super) outgoing: BTreeMap<AuthorId, Outgoing>,
    /// This node's questions that wait for an answer.
    pub(super) asked: BTreeMap<u64, AuthorId>,
    pub(super) lifetime_ms: u64,
    /// The number of the newest request to this node.
    newest: u64,
    requests: watch::Sender<u64>,
}

impl Joins {
    pub(in crate::replicate) fn new(
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

    /// Notes a new request.
    pub(super) fn note_request(&mut self, number: u64) {
        self.newest = self.newest.max(number);
    }

    /// Wakes event streams if there is a new request. Called once the request can be seen.
    pub(in crate::replicate) fn announce(&self) {
        if *self.requests.borrow() != self.newest {
            self.requests.send_replace(self.newest);
        }
    }

    /// What there is to see, at a moment in milliseconds and by the clock.
    pub(in crate::replicate) fn look(&self, at: u64, now: WallTime) -> Vec<Join> {
        let expires = |ms: u64| now.plus(Duration::from_millis(ms.saturating_sub(at)));
        let theirs = self.attempts.all_open().map(|(peer, row)| Join {
            peer,
            name: row.card.name.clone(),
            addresses: row.card.addresses.clone(),
            side: Side::Theirs,
            want: row.want.clone(),
            code: row.code.map(|code| code.to_string()),
            expires: expires(row.expires_ms),
            is_confirmed: row.is_confirmed,
            is_confirmed_there: row.is_confirmed_there,
            state: JoinState::Waiting,
            number: row.number,
        });
        let ours = self.outgoing.iter().map(|(peer, one)| Join {
            peer: *peer,
            name: one.name.clone(),
            addresses: vec![one.place.clone()],
            side: Side::Ours,
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
