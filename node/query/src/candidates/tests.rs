//! Tests of a crowd of close vectors: entries that the gate excludes, or that have another
//! sub-type, take no place of others; and keyword search answers if the question has no vector.

use super::*;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::register::Register;
use klnode_embed::{EmbedError, Embedder};
use klnode_engine::testing::{NOW, lesson};
use klnode_engine::{self, Command, NewEntry, Receipt};
use klnode_index::{self, Wakes};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const QUESTION: &str = "zanzibar throttling";
/// More than an engine returns at first, and more than after the first increase.
const CROWD: usize = 5 * FOUND_MAX;
/// Entries with a word of the question: enough to fill all places that are checked by keywords
/// alone.
const WORDED: usize = OPEN_MIN + 10;

/// A model that places some words very close to the question.
#[derive(Debug)]
struct Aimed;

impl Aimed {
    const DIMS: usize = 8;

    /// A vector with this cosine to the question's.
    fn near(cosine: f32, aside: usize) -> Vec<f32> {
        let mut vector = vec![0.0; Self::DIMS];
        vector[0] = cosine;
        vector[1 + aside % (Self::DIMS - 1)] = (1.0 - cosine * cosine).sqrt();
        vector
    }
}

impl Embedder for Aimed {
    fn identity(&self) -> &'static str {
        "aimed"
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        Ok(Self::DIMS)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let of = |text: &&str| {
            let cosine = match (text.contains("lighthouse"), text.contains("harbour")) {
                (true, _) => 0.99,
                (_, true) => 0.8,
                _ => 0.0,
            };
            Self::near(cosine, text.len())
        };
        Ok(texts.iter().map(of).collect())
    }

    fn embed_query(&self, _text: &str) -> Result<Vec<f32>, EmbedError> {
        Ok(Self::near(1.0, 0))
    }
}

/// A model that is unreachable when a question comes.
#[derive(Debug)]
struct Away;

impl Embedder for Away {
    fn identity(&self) -> &'static str {
        "away"
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        Aimed.dims()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Aimed.embed(texts)
    }

    fn embed_query(&self, _text: &str) -> Result<Vec<f32>, EmbedError> {
        Err(EmbedError::Unreachable { server: "nowhere".into(), why: "connection refused".into() })
    }
}

/// A store with an index that has processed all records.
struct Filled {
    running: klnode_index::Running,
    writer: klnode_engine::Engine,
    _wakes: (watch::Sender<Seq>, watch::Sender<u64>),
    _folder: tempfile::TempDir,
}

impl Filled {
    fn with(titles: &[String], model: Arc<dyn Embedder>) -> (Self, Vec<EntryId>) {
        Self::of(titles.iter().map(|title| lesson(title)).collect(), model)
    }

    fn of(entries: Vec<NewEntry>, model: Arc<dyn Embedder>) -> (Self, Vec<EntryId>) {
        let mut writer = klnode_engine::testing::engine();
        let create = |new: NewEntry| Command::Create(Box::new(new));
        let commands: Vec<Command> = entries.into_iter().map(create).collect();
        let made = writer.step(&commands, NOW).into_iter().map(|receipt| match receipt {
            Ok(Receipt::Created(entry)) => entry,
            other => panic!("{other:?}"),
        });
        let made = made.collect();
        let folder = tempfile::tempdir().unwrap();
        let setup = klnode_index::Setup {
            folder: folder.path().to_owned(),
            model,
            passages: None,
            limits: vectors::Limits { hnsw_entries_min: 200_000, hnsw_dead_fraction_max: 0.1 },
            own: writer.author(),
            now: || NOW,
        };
        let (head_of, head) = watch::channel(writer.head());
        let (membership_of, membership) = watch::channel(0);
        let wakes = Wakes { head, membership };
        let running = klnode_index::start(setup, writer.store().clone(), wakes).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let state = running.index().state();
            let is_there = running.index().meaning().is_some();
            if is_there && state.keyword == writer.head() && state.vectors == Some(writer.head()) {
                break;
            }
            assert!(Instant::now() < deadline, "the index must catch up: {state:?}");
            std::thread::yield_now();
        }
        let filled = Self { running, writer, _wakes: (head_of, membership_of), _folder: folder };
        (filled, made)
    }

    fn ask(&self, engine: SearchEngine, is_shut: GateFilter<'_>) -> Vec<EntryId> {
        self.answer(&SearchQuery { engine, ..SearchQuery::new(QUESTION, 5) }, is_shut)
    }

    fn answer(&self, question: &SearchQuery, is_shut: GateFilter<'_>) -> Vec<EntryId> {
        let snapshot = self.writer.store().snapshot().unwrap();
        let membership = Membership::read(&snapshot, self.writer.author(), NOW).unwrap();
        let from = (&snapshot, &membership);
        let asked = (question, &OnceLock::new());
        let found = find(&self.running.index(), from, asked, NOW, is_shut).unwrap();
        found.best_first.iter().map(|candidate| candidate.entry).collect()
    }
}

#[test]
fn gated_near_matches_do_not_displace_weaker_matches() {
    let crowd = (0..CROWD).map(|number| format!("lighthouse {}", "x".repeat(1 + number % 50)));
    let worded = (0..WORDED).map(|number| format!("zanzibar report {number}"));
    let titles = ["harbour master".to_owned()].into_iter().chain(worded).chain(crowd);
    let (filled, made) = Filled::with(&titles.collect::<Vec<_>>(), Arc::new(Aimed));
    let victim = made[0];
    let worded: BTreeSet<EntryId> = made[1..=WORDED].iter().copied().collect();
    let crowd: BTreeSet<EntryId> = made[1 + WORDED..].iter().copied().collect();
    let is_open = |_: EntryId| Ok(false);
    let is_shut = |entry: EntryId| Ok(crowd.contains(&entry));

    // Keyword search finds the entries with a word of the question, and not the victim.
    let by_words = filled.ask(SearchEngine::Keyword, &is_shut);
    assert_eq!(by_words.iter().copied().collect::<BTreeSet<_>>(), worded);
    // If the crowd may answer, the victim is not among the candidates.
    let all = filled.ask(SearchEngine::Hybrid, &is_open);
    assert!(!all.contains(&victim) && all.iter().any(|entry| crowd.contains(entry)));
    // If the gate excludes the crowd, the engines are asked for more until the victim appears.
    for engine in [SearchEngine::Hybrid, SearchEngine::Vectors] {
        let gated = filled.ask(engine, &is_shut);
        assert!(gated.contains(&victim), "{engine:?}");
        let first: Vec<&EntryId> = gated.iter().take(OPEN_MIN).collect();
        assert_eq!(first.len(), OPEN_MIN);
        assert!(!first.into_iter().any(|entry| crowd.contains(entry)), "{engine:?}");
    }
    filled.running.stop();
}

#[test]
fn a_sub_type_filter_finds_an_entry_behind_a_nearer_crowd() {
    let bug = NewEntry {
        kind: EntryType::Experience,
        registers: vec![(Register::SUB_TYPE, "bug".to_owned())],
        ..lesson("harbour master")
    };
    let crowd = (0..2 * FOUND_MAX).map(|number| lesson(&format!("lighthouse {number}")));
    let (filled, made) = Filled::of([bug].into_iter().chain(crowd).collect(), Arc::new(Aimed));
    let filter = DocumentFilter { sub_types: vec!["bug"], ..DocumentFilter::default() };
    for engine in [SearchEngine::Hybrid, SearchEngine::Vectors] {
        let question =
            SearchQuery { engine, filter: filter.clone(), ..SearchQuery::new(QUESTION, 5) };
        assert_eq!(filled.answer(&question, &|_| Ok(false)), [made[0]], "{engine:?}");
        assert!(!filled.ask(engine, &|_| Ok(false)).contains(&made[0]), "{engine:?}");
    }
    filled.running.stop();
}

#[test]
fn keywords_answer_when_the_question_has_no_vector() {
    let titles = ["zanzibar report", "harbour master"].map(str::to_owned);
    let (filled, made) = Filled::with(&titles, Arc::new(Away));
    let is_open = |_: EntryId| Ok(false);
    for engine in
        [SearchEngine::Vectors, SearchEngine::Equal, SearchEngine::Hybrid, SearchEngine::Keyword]
    {
        assert_eq!(filled.ask(engine, &is_open), [made[0]], "{engine:?}");
    }
    filled.running.stop();
}

#[test]
fn an_entry_that_the_index_took_in_meanwhile_counts_once() {
    let titles = ["zanzibar report", "harbour master"].map(str::to_owned);
    let (filled, _) = Filled::with(&titles, Arc::new(Away));
    let snapshot = filled.writer.store().snapshot().unwrap();
    let membership = Membership::read(&snapshot, filled.writer.author(), NOW).unwrap();
    let (index, look) = (filled.running.index(), filled.running.index().words());
    // The position of the index is read before its words, so this tail is indexed already.
    let mut tail = UnindexedTail::read(&snapshot, Seq(0), &membership, NOW).unwrap();
    tail.mark_indexed(&look).unwrap();
    let counted: Vec<TermCounts> = tail.counted.values().cloned().collect();
    let with_tail = look.question(QUESTION, &counted, index.shares()).unwrap();
    let without = look.question(QUESTION, &[], index.shares()).unwrap();
    assert_eq!((counted.len(), with_tail.documents(), without.documents()), (2, 2, 2));
    assert_eq!(with_tail.ceiling(), without.ceiling());
    filled.running.stop();
}
