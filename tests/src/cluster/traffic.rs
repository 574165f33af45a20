//! What nodes say to each other, by kind.

use klnode_federation::proto::message::{Answer, Item};

/// How much was said of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Records, whole or by name, whatever became of them.
    pub records: u64,
    /// Comparisons that found something to mend, message by message.
    pub differences: u64,
}

impl Traffic {
    /// Counts an answer in.
    pub(super) fn count(&mut self, frame: &[u8]) {
        let is_record =
            |item: &&Item| matches!(item, Item::Named(..) | Item::Whole(..) | Item::First(..));
        match Answer::decode(frame) {
            Ok(Answer::Page(items, ..)) => {
                self.records += items.iter().filter(is_record).count() as u64;
            }
            Ok(Answer::Records(records)) => self.records += records.len() as u64,
            Ok(Answer::Compare(message)) => self.differences += u64::from(!message.is_empty()),
            _ => {}
        }
    }
}
