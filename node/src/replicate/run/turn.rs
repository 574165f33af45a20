//! Whose turn it is. Peers, whoever calls and the clock are asked first in turn, so that a peer that
//! never stops talking keeps neither the operator nor the clock waiting.

use super::Call;
use crate::store::rows::Seq;
use klnode_federation::net;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// What there is to do.
pub(super) enum Next {
    Event(net::Event),
    Call(Call),
    Tick,
    /// The network has ended, and nobody told it to.
    Lost,
    Stop,
}

/// Peers, callers and the clock.
const KINDS: usize = 3;

/// What is waited for beside peers.
pub(super) struct Others {
    inbox: mpsc::Receiver<Call>,
    head: watch::Receiver<Seq>,
    stopped: oneshot::Receiver<()>,
    turn: usize,
}

impl Others {
    pub(super) fn new(
        inbox: mpsc::Receiver<Call>,
        head: watch::Receiver<Seq>,
        stopped: oneshot::Receiver<()>,
    ) -> Self {
        Self { inbox, head, stopped, turn: 0 }
    }

    /// Waits for the next thing to do: an event, a call, a commit, or that so much time has passed.
    pub(super) async fn next(
        &mut self,
        event: impl Future<Output = Option<net::Event>>,
        wait: Duration,
    ) -> Next {
        let Self { inbox, head, stopped, turn } = self;
        *turn = (*turn + 1) % KINDS;
        let first = *turn;
        let mut event = pin!(async { event.await.map_or(Next::Lost, Next::Event) });
        let mut call = pin!(async { inbox.recv().await.map_or(Next::Stop, Next::Call) });
        let mut tick = pin!(tick(head, wait));
        poll_fn(|cx| {
            if Pin::new(&mut *stopped).poll(cx).is_ready() {
                return Poll::Ready(Next::Stop);
            }
            for kind in 0..KINDS {
                let polled = match (first + kind) % KINDS {
                    0 => event.as_mut().poll(cx),
                    1 => call.as_mut().poll(cx),
                    _ => tick.as_mut().poll(cx),
                };
                if polled.is_ready() {
                    return polled;
                }
            }
            Poll::Pending
        })
        .await
    }
}

async fn tick(head: &mut watch::Receiver<Seq>, wait: Duration) -> Next {
    tokio::select! {
        biased;
        changed = head.changed() => changed.map_or(Next::Stop, |()| Next::Tick),
        // A sleep takes a moment, however short it is to be.
        () = std::future::ready(()), if wait.is_zero() => Next::Tick,
        () = tokio::time::sleep(wait) => Next::Tick,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn kind(next: &Next) -> &'static str {
        match next {
            Next::Event(_) => "event",
            Next::Call(_) => "call",
            Next::Tick => "tick",
            Next::Lost => "lost",
            Next::Stop => "stop",
        }
    }

    /// What comes of these, one after another, while so many calls wait.
    fn kinds(calls: usize, waits: &[Duration], event: Option<&net::Event>) -> Vec<&'static str> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (to_inbox, inbox) = mpsc::channel::<Call>(calls.max(1));
        let (_commit, head) = watch::channel(Seq(0));
        let (_stop, stopped) = oneshot::channel();
        for _ in 0..calls {
            let call: Call = Box::new(|_| ());
            assert!(to_inbox.try_send(call).is_ok());
        }
        let mut others = Others::new(inbox, head, stopped);
        let next = |wait: &Duration| {
            let event = std::future::ready(event.cloned());
            kind(&runtime.block_on(others.next(event, *wait)))
        };
        waits.iter().map(next).collect()
    }

    #[test]
    fn a_peer_that_never_stops_talking_keeps_neither_callers_nor_the_clock_waiting() {
        let talk = net::Event::ListeningEnded { address: "/ip4/127.0.0.1/tcp/1".into() };
        let due = kinds(9, &[Duration::ZERO; 6], Some(&talk));
        assert_eq!(due, ["call", "tick", "event", "call", "tick", "event"]);
        let not_due = kinds(1, &[LONG; 4], Some(&talk));
        assert_eq!(not_due, ["call", "event", "event", "event"]);
    }

    #[test]
    fn a_network_that_ends_by_itself_is_not_taken_for_a_stop() {
        assert_eq!(kinds(0, &[LONG], None), ["lost"]);
    }
}
