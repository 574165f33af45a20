//! The reading side of one node of the replay: its index, its reader and its maintenance.

use super::experiment_arms::{Arm, HitOrder, Practice};
use crate::cluster::Cluster;
use crate::test_engine::START;
use klnode_config::Config;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId};
use klnode_crdt::time::WallTime;
use klnode_engine::{AnchorResults, Command};
use klnode_index::vectors;
use klnode_query::maintenance::{self, Maintenance};
use klnode_query::{
    Audience, Cancel, HitCaveat, Reader, ScoringParams, SearchAnswer, SearchHit, SearchQuery,
};
use klnode_scoring::rank::signals::AnchorState;
use klnode_scoring::relevance::answer_grade::Grade;
use klnode_scoring::status::Status;
use klnode_scoring::thompson::Sampling;
use klnode_store::maintenance_journal::Service;
use klnode_store::row_types::{AnswerCost, HitCost, Seq, ServedRow};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::watch;

/// Entries in one answer.
const HITS_MAX: usize = 5;
/// Tokens of one answer.
const TOKENS_MAX: u32 = 500;
/// Relevant entries among which a baseline chooses.
const BASELINE_HITS: usize = 40;
/// Time limit for the index to follow a day.
const INDEX_TIME_MAX: Duration = Duration::from_secs(120);

/// A hit as an agent sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) entry: EntryId,
    pub(super) tokens: u32,
    /// The shown confidence; `None` from a baseline, which has none.
    pub(super) confidence: Option<f64>,
    /// A warning says that an anchor is broken, that another entry replaces this one or that it
    /// failed lately.
    pub(super) has_warning: bool,
    pub(super) author: Option<AuthorId>,
    pub(super) text: Digest,
}

/// An answer as an agent sees it, and the commands with which the node records it.
pub(super) struct Given {
    pub(super) offers: Vec<Offer>,
    pub(super) records: Vec<Command>,
}

/// Reader, index and maintenance of one node.
pub(super) struct Desk {
    reader: Arc<Reader>,
    maintenance: Maintenance,
    running: Option<klnode_index::Running>,
    head: watch::Sender<Seq>,
    membership: watch::Sender<u64>,
    /// How often an entry was used on this node.
    pub(super) uses: BTreeMap<EntryId, u32>,
    _folder: TempDir,
}

/// The index must not hold back a claim because its clock stands still.
fn after_the_replay() -> WallTime {
    START.plus(Duration::from_secs(3_650 * 86_400))
}

impl Desk {
    pub(super) fn start(cluster: &mut Cluster, at: usize, config: &Config) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (head, changes) = cluster.marks(at);
        let ((head, followed), (membership, seen)) =
            (watch::channel(head), watch::channel(changes));
        let own = cluster.author(at);
        let setup = klnode_index::Setup {
            folder: folder.path().join("index"),
            model: klnode_embed::open(klnode_embed::Settings::BuiltIn).expect("is compiled in"),
            passages: None,
            limits: vectors::Limits { hnsw_entries_min: 200_000, hnsw_dead_fraction_max: 0.1 },
            own,
            now: after_the_replay,
        };
        let wakes = klnode_index::Wakes { head: followed, membership: seen };
        let running = klnode_index::start(setup, cluster.store_of(at), wakes).expect("starts");
        let reader = Arc::new(Reader::new(own, ScoringParams::new(config)));
        let params =
            maintenance::Params { time_max: None, ..maintenance::Params::new(&config.maintenance) };
        let maintenance = Maintenance::new(reader.clone(), params);
        let (running, uses) = (Some(running), BTreeMap::new());
        Self { reader, maintenance, running, head, membership, uses, _folder: folder }
    }

    fn index(&self) -> klnode_index::Index {
        self.running.as_ref().expect("runs").index()
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Notifies the index of the node's commits.
    pub(super) fn follow(&self, cluster: &mut Cluster, at: usize) {
        let (head, changes) = cluster.marks(at);
        self.head.send_if_modified(|known| std::mem::replace(known, head) != head);
        self.membership.send_if_modified(|known| std::mem::replace(known, changes) != changes);
    }

    /// Waits until the index has processed everything that the node holds.
    pub(super) fn wait(&self, cluster: &mut Cluster, at: usize) {
        let (head, index) = (cluster.marks(at).0, self.index());
        let deadline = Instant::now() + INDEX_TIME_MAX;
        loop {
            let state = index.state();
            let is_through = state.keyword >= head && state.vectors >= Some(head);
            if is_through && state.rebuild.is_none() {
                return;
            }
            assert!(Instant::now() < deadline, "the index does not follow: {state:?}");
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Runs the maintenance services that are due; true if they wrote something.
    pub(super) fn maintain(&self, cluster: &mut Cluster, at: usize) -> bool {
        let before = cluster.marks(at).0;
        for service in Service::ALL {
            loop {
                let (snapshot, now) = (cluster.snapshot(at), cluster.now(at));
                if !self.maintenance.is_due(&snapshot, now, *service).expect("readable") {
                    break;
                }
                let held = snapshot.service(*service).expect("readable");
                let index = self.index();
                let pass = self.maintenance.pass(&index, &snapshot, now, *service, held);
                let pass = pass.expect("readable");
                drop(snapshot);
                if pass.row == held {
                    break;
                }
                cluster.run(at, Command::Maintenance(Box::new(pass.act))).expect("noted");
            }
        }
        cluster.marks(at).0 > before
    }

    fn search(&self, cluster: &mut Cluster, at: usize, question: &SearchQuery) -> SearchAnswer {
        let (snapshot, now) = (cluster.snapshot(at), cluster.now(at));
        let answer =
            self.reader.search(&self.index(), &snapshot, question, now, &Cancel::default());
        answer.expect("an answer")
    }

    /// Answers a question of an agent, in a task or unrecorded.
    pub(super) fn ask(
        &self,
        cluster: &mut Cluster,
        at: usize,
        (text, task): (&str, Option<TaskId>),
        (arm, checkout): (&Arm, &Path),
        age: &dyn Fn(EntryId) -> u64,
    ) -> Given {
        if arm.order != HitOrder::Judged {
            return self.ask_baseline(cluster, at, (text, task), arm.order, age);
        }
        let seed = task.map_or(0, |task| {
            let bytes = task.as_bytes();
            bytes.iter().fold(at as u64, |seed, byte| seed.wrapping_mul(257) ^ u64::from(*byte))
        });
        let is_sampled = arm.has(Practice::Sampling) && task.is_some();
        let question = SearchQuery {
            tokens_max: Some(TOKENS_MAX),
            audience: if arm.has(Practice::Gate) { Audience::Gated } else { Audience::All },
            sampling: if is_sampled { Sampling::Seeded(seed) } else { Sampling::Mean },
            checkout: arm.has(Practice::Anchors).then(|| checkout.to_owned()),
            ..SearchQuery::new(text, HITS_MAX)
        };
        let answer = self.search(cluster, at, &question);
        let hits: Vec<&SearchHit> = answer.hits.iter().take(HITS_MAX).collect();
        let offers: Vec<Offer> = hits.iter().map(|hit| judged(hit)).collect();
        let mut records = Vec::new();
        let mut looks = AnchorResults {
            is_counted: self.reader.numbers.are_looks_counted(),
            ..AnchorResults::default()
        };
        for hit in &hits {
            match hit.found.assessment.facts.predicates {
                AnchorState::Holds => looks.held.push(hit.found.entry),
                AnchorState::Broken => looks.broken.push(hit.found.entry),
                AnchorState::Unchecked | AnchorState::Nothing => {}
            }
        }
        if !looks.held.is_empty() || !looks.broken.is_empty() {
            records.push(Command::Looked(looks));
        }
        let row = ServedRow {
            is_weak: answer.is_weak,
            question: answer.sketch,
            first_title: answer.first_title,
            ..row(text, task, if answer.grade == Grade::Weak { &[] } else { &offers })
        };
        records.push(Command::Served(row));
        Given { offers, records }
    }

    /// The relevant entries in the order of a baseline, without gate, status or warning.
    fn ask_baseline(
        &self,
        cluster: &mut Cluster,
        at: usize,
        (text, task): (&str, Option<TaskId>),
        order: HitOrder,
        age: &dyn Fn(EntryId) -> u64,
    ) -> Given {
        let question = SearchQuery {
            also: vec![Status::Stale, Status::Archived, Status::Rejected],
            ..SearchQuery::new(text, BASELINE_HITS)
        };
        let answer = self.search(cluster, at, &question);
        let mut hits: Vec<&SearchHit> = answer.hits.iter().collect();
        hits.sort_by(|a, b| b.relevance.value.total_cmp(&a.relevance.value));
        let uses = |hit: &SearchHit| self.uses.get(&hit.found.entry).copied().unwrap_or(0);
        match order {
            HitOrder::Judged | HitOrder::Relevance => {}
            HitOrder::Newest => hits.sort_by_key(|hit| age(hit.found.entry)),
            HitOrder::MostUsed => hits.sort_by_key(|hit| std::cmp::Reverse(uses(hit))),
        }
        let (mut offers, mut left) = (Vec::new(), TOKENS_MAX);
        for hit in hits.into_iter().take(HITS_MAX) {
            if hit.tokens > left {
                break;
            }
            left -= hit.tokens;
            offers.push(Offer { confidence: None, has_warning: false, ..judged(hit) });
        }
        let records = vec![Command::Served(row(text, task, &offers))];
        Given { offers, records }
    }
}

fn judged(hit: &SearchHit) -> Offer {
    let is_warning = |caveat: &HitCaveat| {
        matches!(
            caveat,
            HitCaveat::Broken { .. } | HitCaveat::SupersededBy { .. } | HitCaveat::FailedLately
        )
    };
    Offer {
        entry: hit.found.entry,
        tokens: hit.tokens,
        confidence: Some(hit.found.assessment.confidence.posterior.mean()),
        has_warning: hit.caveats.iter().any(is_warning),
        author: hit.found.author.as_ref().map(|author| author.author),
        text: hit.found.view.text_digest(),
    }
}

fn row(text: &str, task: Option<TaskId>, offers: &[Offer]) -> ServedRow {
    let cost = |offer: &Offer| HitCost {
        author: offer.author,
        text: Some(offer.text),
        tokens: offer.tokens,
        is_stale: false,
    };
    ServedRow {
        caller: "agent".into(),
        task: task.map(|task| task.to_string()),
        query: text.chars().take(200).collect(),
        entries: offers.iter().map(|offer| offer.entry).collect(),
        cost: AnswerCost { hits: offers.iter().map(cost).collect(), millis: 1 },
        ..ServedRow::default()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}
