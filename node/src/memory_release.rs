//! Returns memory to the operating system after many records were written, as by an import.
//!
//! The writes leave three kinds of memory behind: the page cache of the store, full of pages that
//! later commits replaced; the buffers of the keyword index, which the index releases itself; and
//! free memory that the allocator keeps between allocations in use. Without this module a node
//! would keep all of it until its next start.

use klnode_engine::Handle;
use klnode_index::{Index, State};
use klnode_store::row_types::Seq;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Number of records from which a release pays: it empties the page cache, and the next queries
/// read their pages from the file again.
const RECORDS_MIN: u64 = 500;
/// A release waits until no record has been written for this long.
const QUIET_TIME: Duration = Duration::from_secs(5);
/// The pause before a retry while a reader holds the store.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// Releases memory after each burst of writes, until the node stops.
pub(super) async fn follow(engine: Handle, index: Index) {
    let mut head = engine.head();
    let mut released = *head.borrow();
    let mut state = index.watch();
    while wait_for_end_of_burst(&mut head, &mut state, released).await.is_some() {
        if !engine.release_cache().await {
            sleep(RETRY_TIME).await;
            continue;
        }
        released = *head.borrow();
        // It walks through all free memory, which takes milliseconds.
        let _ = tokio::task::spawn_blocking(trim_allocator).await;
    }
}

/// Waits until enough records were written since the last release, no further ones arrive, and the
/// index has processed all of them. `None` means that the node stops.
async fn wait_for_end_of_burst(
    head: &mut watch::Receiver<Seq>,
    state: &mut watch::Receiver<State>,
    released: Seq,
) -> Option<()> {
    loop {
        head.wait_for(|newest| is_worthwhile(released, *newest)).await.ok()?;
        let newest = *head.borrow_and_update();
        state.wait_for(|state| is_idle(state, newest)).await.ok()?;
        match timeout(QUIET_TIME, head.changed()).await {
            Ok(changed) => changed.ok()?,
            Err(_) => return Some(()),
        }
    }
}

fn is_worthwhile(released: Seq, newest: Seq) -> bool {
    newest.0.saturating_sub(released.0) >= RECORDS_MIN
}

/// True if the index has processed the feed up to `newest` and has no background work left, or if a
/// fault stops it, for example an unreachable embedder.
fn is_idle(state: &State, newest: Seq) -> bool {
    let has_all = state.keyword >= newest && state.vectors.is_some_and(|seq| seq >= newest);
    has_all && state.rebuild.is_none() && state.is_settled || state.fault.is_some()
}

/// Makes the allocator return its free memory to the operating system. glibc keeps freed memory in
/// the arena of the thread that allocated it, below the first allocation that is still in use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a call of the C library without pointers or preconditions")]
fn trim_allocator() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: the function takes a number of bytes to keep, locks each arena while it works, and
    // touches only memory that is not allocated.
    unsafe { malloc_trim(0) };
}

/// Other allocators return free memory themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim_allocator() {}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_index::entry_vectors::RebuildProgress;

    #[test]
    fn a_few_records_do_not_cause_a_release() {
        assert!(!is_worthwhile(Seq(7), Seq(7)));
        assert!(!is_worthwhile(Seq(7), Seq(6 + RECORDS_MIN)));
        assert!(is_worthwhile(Seq(7), Seq(7 + RECORDS_MIN)));
    }

    #[test]
    fn a_release_waits_for_the_index() {
        let (at, before) = (Seq(9), Seq(8));
        let idle = State { keyword: at, vectors: Some(at), is_settled: true, ..State::default() };
        let rebuild = Some(RebuildProgress { done: 1, total: 2 });
        for (state, expect) in [
            (idle.clone(), true),
            (State { keyword: before, ..idle.clone() }, false),
            (State { vectors: Some(before), ..idle.clone() }, false),
            (State { vectors: None, ..idle.clone() }, false),
            (State { vectors: None, fault: Some("away".into()), ..idle.clone() }, true),
            (State { rebuild, ..idle.clone() }, false),
            (State { is_settled: false, ..idle.clone() }, false),
        ] {
            assert_eq!(is_idle(&state, at), expect, "{state:?}");
        }
    }
}
