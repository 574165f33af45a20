//! A crowd by meaning alone: what is surely shut out, or of another sub-type, takes no place that the
//! nearest have; and what answers where the question has no vector.

use super::*;
use crate::engine::testing::{NOW, lesson};
use crate::engine::{self, Command, NewEntry, Receipt};
use crate::index::embed::{EmbedError, Embedder};
use crate::index::{self, Wakes};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// What is asked.
const QUESTION: &str = "zanzibar throttling";
/// More than an engine names at first, and more than it names after the first step.
const CROWD: usize = 5 * FOUND_MAX;
/// So many hold a word of the question: words alone fill all places that are looked after.
const WORDED: usize = OPEN_MIN + 10;

/// A model that takes some words for the very thing that is asked.
#[derive(Debug)]
struct Aimed;

impl Aimed {
    const DIMS: usize = 8;

    /// A vector of this cosine with the question's.
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

/// A model that is away when a question comes.
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
        Err(EmbedError::Unreachable { server: "nowhere".into(), why: "nobody answers".into() })
    }
}

/// A store with an index on it that has taken in everything.
struct Filled {
    running: index::Running,
    writer: engine::Engine,
    _wakes: (watch::Sender<Seq>, watch::Sender<u64>),
    _folder: tempfile::TempDir,
}

impl Filled {
    fn with(titles: &[String], model: Arc<dyn Embedder>) -> (Self, Vec<EntryId>) {
        Self::of(titles.iter().map(|title| lesson(title)).collect(), model)
    }

    fn of(entries: Vec<NewEntry>, model: Arc<dyn Embedder>) -> (Self, Vec<EntryId>) {
        let mut writer = engine::testing::engine();
        let create = |new: NewEntry| Command::Create(Box::new(new));
        let commands: Vec<Command> = entries.into_iter().map(create).collect();
        let made = writer.step(&commands, NOW).into_iter().map(|receipt| match receipt {
            Ok(Receipt::Created(entry)) => entry,
            other => panic!("{other:?}"),
        });
        let made = made.collect();
        let folder = tempfile::tempdir().unwrap();
        let setup = index::Setup {
            folder: folder.path().to_owned(),
            model,
            limits: vectors::Limits { hnsw_entries_min: 200_000, hnsw_dead_fraction_max: 0.1 },
            own: writer.author(),
            now: || NOW,
        };
        let (head_of, head) = watch::channel(writer.head());
        let (society_of, society) = watch::channel(0);
        let wakes = Wakes { head, society };
        let running = index::start(setup, writer.store().clone(), wakes).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let state = running.index().state();
            let is_there = running.index().meaning().is_some();
            if is_there && state.keyword == writer.head() && state.vectors == Some(writer.head()) {
                break;
            }
            assert!(Instant::now() < deadline, "the index does not catch up: {state:?}");
            std::thread::yield_now();
        }
        let filled = Self { running, writer, _wakes: (head_of, society_of), _folder: folder };
        (filled, made)
    }

    fn ask(&self, engine: Engine, is_shut: IsShut<'_>) -> Vec<EntryId> {
        self.answer(&Question { engine, ..Question::new(QUESTION, 5) }, is_shut)
    }

    fn answer(&self, question: &Question, is_shut: IsShut<'_>) -> Vec<EntryId> {
        let snapshot = self.writer.store().snapshot().unwrap();
        let society = Society::read(&snapshot, self.writer.author(), NOW).unwrap();
        let from = (&snapshot, &society);
        let found = find(&self.running.index(), from, question, NOW, is_shut).unwrap();
        found.best_first.iter().map(|candidate| candidate.entry).collect()
    }
}

#[test]
fn texts_that_are_shut_out_and_mean_what_is_asked_take_no_place_of_one_that_means_it_less() {
    let crowd = (0..CROWD).map(|number| format!("lighthouse {}", "x".repeat(1 + number % 50)));
    let worded = (0..WORDED).map(|number| format!("zanzibar report {number}"));
    let titles = ["harbour master".to_owned()].into_iter().chain(worded).chain(crowd);
    let (filled, made) = Filled::with(&titles.collect::<Vec<_>>(), Arc::new(Aimed));
    let victim = made[0];
    let worded: BTreeSet<EntryId> = made[1..=WORDED].iter().copied().collect();
    let crowd: BTreeSet<EntryId> = made[1 + WORDED..].iter().copied().collect();
    let is_open = |_: EntryId| Ok(false);
    let is_shut = |entry: EntryId| Ok(crowd.contains(&entry));

    // Words find those that hold one, as many as are looked after, and not the victim.
    let by_words = filled.ask(Engine::Keyword, &is_shut);
    assert_eq!(by_words.iter().copied().collect::<BTreeSet<_>>(), worded);
    // Where the crowd may answer it does: the victim is not even named.
    let all = filled.ask(Engine::Hybrid, &is_open);
    assert!(!all.contains(&victim) && all.iter().any(|entry| crowd.contains(entry)));
    // Where it is shut out, more is asked for, until what means it less is there as well.
    for engine in [Engine::Hybrid, Engine::Vectors] {
        let gated = filled.ask(engine, &is_shut);
        assert!(gated.contains(&victim), "{engine:?}");
        let first: Vec<&EntryId> = gated.iter().take(OPEN_MIN).collect();
        assert_eq!(first.len(), OPEN_MIN);
        assert!(!first.into_iter().any(|entry| crowd.contains(entry)), "{engine:?}");
    }
    filled.running.stop();
}

#[test]
fn a_sub_type_is_found_by_meaning_behind_a_crowd_that_is_nearer_and_of_another() {
    let bug = NewEntry {
        kind: Kind::Experience,
        registers: vec![(Register::SUB_TYPE, "bug".to_owned())],
        ..lesson("harbour master")
    };
    let crowd = (0..2 * FOUND_MAX).map(|number| lesson(&format!("lighthouse {number}")));
    let (filled, made) = Filled::of([bug].into_iter().chain(crowd).collect(), Arc::new(Aimed));
    let filter = Filter { sub_types: vec!["bug"], ..Filter::default() };
    for engine in [Engine::Hybrid, Engine::Vectors] {
        let question = Question { engine, filter: filter.clone(), ..Question::new(QUESTION, 5) };
        assert_eq!(filled.answer(&question, &|_| Ok(false)), [made[0]], "{engine:?}");
        assert!(!filled.ask(engine, &|_| Ok(false)).contains(&made[0]), "{engine:?}");
    }
    filled.running.stop();
}

#[test]
fn where_the_question_has_no_vector_words_answer_whichever_engine_was_asked_for() {
    let titles = ["zanzibar report", "harbour master"].map(str::to_owned);
    let (filled, made) = Filled::with(&titles, Arc::new(Away));
    let is_open = |_: EntryId| Ok(false);
    for engine in [Engine::Vectors, Engine::Equal, Engine::Hybrid, Engine::Keyword] {
        assert_eq!(filled.ask(engine, &is_open), [made[0]], "{engine:?}");
    }
    filled.running.stop();
}
