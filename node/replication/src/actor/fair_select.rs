//! Selects the next input of the actor. Network events, calls and the clock take turns at being
//! polled first, so a peer that sends without pause delays neither the operator nor the clock.

use super::ActorCall;
use klnode_federation::net;
use klnode_store::row_types::Seq;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// The next input.
pub(super) enum ActorInput {
    Event(net::Event),
    Call(ActorCall),
    Tick,
    /// The network ended although the actor had not stopped it.
    Lost,
    Stop,
}

/// The number of sources: events, calls and the clock.
const KINDS: usize = 3;

/// The sources other than the network.
pub(super) struct OtherInputs {
    inbox: mpsc::Receiver<ActorCall>,
    head: watch::Receiver<Seq>,
    stopped: oneshot::Receiver<()>,
    turn: usize,
}

impl OtherInputs {
    pub(super) fn new(
        inbox: mpsc::Receiver<ActorCall>,
        head: watch::Receiver<Seq>,
        stopped: oneshot::Receiver<()>,
    ) -> Self {
        Self { inbox, head, stopped, turn: 0 }
    }

    /// Waits for the next event, call or commit, or until `wait` has passed.
    pub(super) async fn next(
        &mut self,
        event: impl Future<Output = Option<net::Event>>,
        wait: Duration,
    ) -> ActorInput {
        let Self { inbox, head, stopped, turn } = self;
        *turn = (*turn + 1) % KINDS;
        let first = *turn;
        let mut event = pin!(async { event.await.map_or(ActorInput::Lost, ActorInput::Event) });
        let mut call =
            pin!(async { inbox.recv().await.map_or(ActorInput::Stop, ActorInput::Call) });
        let mut tick = pin!(tick(head, wait));
        poll_fn(|cx| {
            if Pin::new(&mut *stopped).poll(cx).is_ready() {
                return Poll::Ready(ActorInput::Stop);
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

async fn tick(head: &mut watch::Receiver<Seq>, wait: Duration) -> ActorInput {
    tokio::select! {
        biased;
        changed = head.changed() => changed.map_or(ActorInput::Stop, |()| ActorInput::Tick),
        // Even a sleep of zero takes time.
        () = std::future::ready(()), if wait.is_zero() => ActorInput::Tick,
        () = tokio::time::sleep(wait) => ActorInput::Tick,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn kind(next: &ActorInput) -> &'static str {
        match next {
            ActorInput::Event(_) => "event",
            ActorInput::Call(_) => "call",
            ActorInput::Tick => "tick",
            ActorInput::Lost => "lost",
            ActorInput::Stop => "stop",
        }
    }

    /// The inputs selected for these waits, one after another, with this number of queued calls.
    fn kinds(calls: usize, waits: &[Duration], event: Option<&net::Event>) -> Vec<&'static str> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (to_inbox, inbox) = mpsc::channel::<ActorCall>(calls.max(1));
        let (_commit, head) = watch::channel(Seq(0));
        let (_stop, stopped) = oneshot::channel();
        for _ in 0..calls {
            let call: ActorCall = Box::new(|_| ());
            assert!(to_inbox.try_send(call).is_ok());
        }
        let mut others = OtherInputs::new(inbox, head, stopped);
        let next = |wait: &Duration| {
            let event = std::future::ready(event.cloned());
            kind(&runtime.block_on(others.next(event, *wait)))
        };
        waits.iter().map(next).collect()
    }

    #[test]
    fn a_flood_of_events_delays_neither_calls_nor_ticks() {
        let talk = net::Event::ListeningEnded { address: "/ip4/127.0.0.1/tcp/1".into() };
        let due = kinds(9, &[Duration::ZERO; 6], Some(&talk));
        assert_eq!(due, ["call", "tick", "event", "call", "tick", "event"]);
        let not_due = kinds(1, &[LONG; 4], Some(&talk));
        assert_eq!(not_due, ["call", "event", "event", "event"]);
    }

    #[test]
    fn an_unexpected_end_of_the_network_is_not_a_stop() {
        assert_eq!(kinds(0, &[LONG], None), ["lost"]);
    }
}
