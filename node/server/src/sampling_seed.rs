//! The seed of the random samples that rank an answer: one per task or session.
//!
//! The seed is a keyed hash of the root task, else of the session, else of the user and the day, so
//! the same question in the same scope gets the same order. The key is derived from the node's own
//! key and never leaves the node: a peer that knew the seed could choose entry ids with high
//! samples.

use super::caller::Caller;
use klnode_crdt::ids::TaskId;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::Day;
use klnode_engine::CHAIN_TASKS_MAX;
use klnode_store::{Error, Snapshot};
use zeroize::Zeroizing;

/// The context of the key derivation.
const CONTEXT: &str = "klnode v1 samples of confidence";

/// The key for a node's seeds.
pub struct SampleKey(Zeroizing<[u8; 32]>);

/// The scope of a question. Questions in one scope share their samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one per question, passed by reference")]
pub(super) enum SampleScope {
    /// In this root task or one below it.
    Task(TaskId),
    /// Outside tasks: by the caller's session, else by user and day.
    Outside(Caller, Day),
}

impl SampleKey {
    /// Derives the key from a node's key.
    pub fn of(node: &SecretKey) -> Self {
        Self(Zeroizing::new(blake3::derive_key(CONTEXT, &node.to_bytes()[..])))
    }

    /// The seed for a scope.
    pub(super) fn seed(&self, scope: &SampleScope) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        match scope {
            SampleScope::Task(root) => hasher.update(b"task").update(root.as_bytes()),
            SampleScope::Outside(Caller { session: Some(session), .. }, _) => {
                hasher.update(b"session").update(session.as_str().as_bytes())
            }
            SampleScope::Outside(Caller { uid: Some(uid), .. }, day) => {
                hasher.update(b"user").update(&uid.to_le_bytes()).update(&day.0.to_le_bytes())
            }
            SampleScope::Outside(_, day) => {
                hasher.update(b"unknown user").update(&day.0.to_le_bytes())
            }
        };
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(bytes)
    }
}

/// The root of a task's chain of parents.
pub(super) fn root_task(snapshot: &Snapshot, task: TaskId) -> Result<TaskId, Error> {
    let mut root = task;
    for _ in 0..CHAIN_TASKS_MAX {
        match snapshot.task(root)?.and_then(|row| row.parent) {
            Some(parent) => root = parent,
            None => break,
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_home::CallerLabel;

    fn caller(uid: Option<u32>, session: Option<&str>) -> Caller {
        Caller { uid, session: session.and_then(CallerLabel::parse), ..Caller::default() }
    }

    #[test]
    fn a_seed_depends_on_task_else_session_else_user_and_day() {
        let key = SampleKey::of(&SecretKey::from_bytes(&[1; 32]));
        let outside =
            |uid, session, day| key.seed(&SampleScope::Outside(caller(uid, session), Day(day)));
        let task = |byte| key.seed(&SampleScope::Task(TaskId::from_bytes([byte; 16])));
        assert_eq!(task(1), task(1));
        assert_ne!(task(1), task(2));
        assert_eq!(outside(Some(1), Some("a"), 1), outside(Some(2), Some("a"), 2));
        assert_ne!(outside(Some(1), Some("a"), 1), outside(Some(1), Some("b"), 1));
        assert_eq!(outside(Some(1), None, 1), outside(Some(1), None, 1));
        assert_ne!(outside(Some(1), None, 1), outside(Some(2), None, 1));
        assert_ne!(outside(Some(1), None, 1), outside(Some(1), None, 2));
        assert_ne!(outside(Some(0), None, 1), outside(None, None, 1));
        let other = SampleKey::of(&SecretKey::from_bytes(&[2; 32]));
        let of_task = SampleScope::Task(TaskId::from_bytes([1; 16]));
        assert_ne!(key.seed(&of_task), other.seed(&of_task));
    }
}
