//! Writes the outputs of the protocol. If a write fails, the peer is asked to retry, and the
//! protocol is told to undo its own step.

use super::{EngineWriter, RETRY_MS, Replica};
use klnode_crdt::time::WallTime;
use klnode_engine::PeerCommand;
use klnode_federation::proto::message::SyncResponse;
use klnode_federation::proto::{Output, ProtocolInput};
use klnode_store::Error;
use std::collections::VecDeque;

impl<W: EngineWriter> Replica<W> {
    /// Writes one change. Follow-up outputs are appended; the next output may be the response to
    /// the peer that caused the change.
    pub(super) fn write_act(
        &mut self,
        act: PeerCommand,
        outputs: &mut VecDeque<Output>,
        now: WallTime,
        at: u64,
    ) -> Result<(), Error> {
        let is_news = matches!(act, PeerCommand::Received(..));
        let (is_asked, undone) = match &act {
            PeerCommand::Received(..) | PeerCommand::Restart(_) => (true, None),
            PeerCommand::Reread(peer) => (false, Some(ProtocolInput::NotReread(*peer))),
            PeerCommand::Told(peer, _) => (false, Some(ProtocolInput::NotTold(*peer))),
            _ => (false, None),
        };
        if let Err(rejection) = self.note(vec![act]) {
            tracing::warn!(%rejection, "A change caused by a peer was not written");
            match (undone, rejection.is_damage()) {
                // A damaged row stays damaged until it is repaired, so the protocol continues
                // without it.
                (None | Some(ProtocolInput::NotReread(_)), true) => {}
                (None, false) if is_asked => defer_response(outputs),
                (None, false) => {}
                (Some(undone), _) => {
                    let view = self.view(now)?;
                    outputs.extend(self.machine.handle(undone, &view, at));
                }
            }
        }
        if is_news {
            // The peer that sent the tombstone learns that more nodes have erased the entry.
            let view = self.view(now)?;
            for peer in view.membership.peers.keys() {
                outputs.extend(self.machine.handle(ProtocolInput::Queued(*peer), &view, at));
            }
        }
        Ok(())
    }
}

/// Replaces the next response by `Later`, so that the peer retries; its original content is not
/// sent.
fn defer_response(outputs: &mut VecDeque<Output>) {
    if let Some(Output::Answer(_, frame)) = outputs.front_mut() {
        *frame = SyncResponse::Later(RETRY_MS as u32).encode();
        if matches!(outputs.get(1), Some(Output::Served(..))) {
            outputs.remove(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::ids::AuthorId;

    #[test]
    fn a_deferred_response_does_not_count_as_served() {
        let answer = |exchange| Output::Answer(exchange, vec![1]);
        let served = |records| Output::Served(AuthorId::default(), records);
        let mut outputs = VecDeque::from([answer(1), served(3), answer(2), served(5)]);
        defer_response(&mut outputs);
        let later = SyncResponse::Later(RETRY_MS as u32).encode();
        assert!(matches!(&outputs[0], Output::Answer(1, frame) if *frame == later));
        assert!(matches!(&outputs[1], Output::Answer(2, frame) if *frame == [1]));
        assert!(matches!(outputs[2], Output::Served(_, 5)), "{outputs:?}");
        assert_eq!(outputs.len(), 3);
    }
}
