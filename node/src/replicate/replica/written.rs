//! What peers bring about, on its way to the writer. What cannot be written has not happened: the peer is
//! to ask again, and what this side did is done again.

use super::{RETRY_MS, Replica, Writer};
use crate::engine::PeerAct;
use crate::store::Error;
use klnode_crdt::time::WallTime;
use klnode_federation::proto::message::Answer;
use klnode_federation::proto::{Input, Output};
use std::collections::VecDeque;

impl<W: Writer> Replica<W> {
    /// Writes something down; what follows is put to the outputs, of which the next may be the answer to
    /// whoever asked for it.
    pub(super) fn write_down(
        &mut self,
        act: PeerAct,
        outputs: &mut VecDeque<Output>,
        now: WallTime,
        at: u64,
    ) -> Result<(), Error> {
        let is_news = matches!(act, PeerAct::Received(..));
        let (is_asked, undone) = match &act {
            PeerAct::Received(..) | PeerAct::Restart(_) => (true, None),
            PeerAct::Reread(peer) => (false, Some(Input::NotReread(*peer))),
            PeerAct::Told(peer, _) => (false, Some(Input::NotTold(*peer))),
            _ => (false, None),
        };
        if let Err(rejection) = self.note(vec![act]) {
            tracing::warn!(%rejection, "what a peer brought about could not be written");
            match (undone, rejection.is_damage()) {
                // A damaged row stays damaged until somebody mends it: peers are read and answered all
                // the same.
                (None | Some(Input::NotReread(_)), true) => {}
                (None, false) if is_asked => put_off(outputs),
                (None, false) => {}
                (Some(undone), _) => {
                    let view = self.view(now)?;
                    outputs.extend(self.machine.handle(undone, &view, at));
                }
            }
        }
        if is_news {
            // Whoever brought the tombstone hears that more have erased the entry.
            let view = self.view(now)?;
            for peer in view.society.peers.keys() {
                outputs.extend(self.machine.handle(Input::Queued(*peer), &view, at));
            }
        }
        Ok(())
    }
}

/// Has whoever is answered next ask again: what the answer held does not go out.
fn put_off(outputs: &mut VecDeque<Output>) {
    if let Some(Output::Answer(_, frame)) = outputs.front_mut() {
        *frame = Answer::Later(RETRY_MS as u32).encode();
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
    fn an_answer_that_is_put_off_has_served_nothing() {
        let answer = |exchange| Output::Answer(exchange, vec![1]);
        let served = |records| Output::Served(AuthorId::default(), records);
        let mut outputs = VecDeque::from([answer(1), served(3), answer(2), served(5)]);
        put_off(&mut outputs);
        let later = Answer::Later(RETRY_MS as u32).encode();
        assert!(matches!(&outputs[0], Output::Answer(1, frame) if *frame == later));
        assert!(matches!(&outputs[1], Output::Answer(2, frame) if *frame == [1]));
        assert!(matches!(outputs[2], Output::Served(_, 5)), "{outputs:?}");
        assert_eq!(outputs.len(), 3);
    }
}
