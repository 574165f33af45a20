//! How good retrieval is on the labelled sets: ranking with intervals, and when nothing is right.
//!
//! `cargo bench -p klnode-tests --bench retrieval [-- test]` measures the `dev` sets, or the `test`
//! sets, which nothing may be tuned on. The keyword index stands here in memory with the formula of
//! the real one; words, rarity, relevance and thresholds are those of the node. Figures and what
//! follows from them: `docs/retrieval.md`.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use klnode::index::embed::{Embedder, StaticEmbedder};
use klnode::index::shares::Shares;
use klnode::index::spelling::{
    NEIGHBOUR_WEIGHT, NEIGHBOURS_MAX, is_one_slip_apart, may_be_misspelt,
};
use klnode::index::words::words;
use klnode_scoring::relevance::{
    Asked, Calibration, Engines, Match, PRIOR_DOCUMENTS, answer_min, ceiling, idf, prior_holding,
    relevance,
};

const SETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../node/model/sets");
const TOP: usize = 10;
/// How many candidates each engine gives.
const PER_ENGINE: usize = 50;
const RESAMPLES: usize = 2000;
const SEED: u64 = 0x5eed_1234_abcd_0001;
const STORE_SIZES: [usize; 6] = [3, 5, 10, 30, 100, 200];
/// Words that a hasty question leaves out.
const DROPPED: [&str; 44] = [
    "a", "an", "the", "of", "to", "in", "is", "are", "for", "and", "or", "it", "this", "that",
    "with", "as", "on", "by", "be", "from", "at", "how", "do", "does", "i", "my", "what", "why",
    "when", "where", "can", "if", "not", "you", "your", "we", "was", "has", "have", "will",
    "which", "its", "use", "using",
];

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` passes nothing and only wants to build.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let split = if arguments.iter().any(|argument| argument == "test") { "test" } else { "dev" };
    let lab = Lab {
        embedder: StaticEmbedder::built_in().expect("the built-in table is whole"),
        shares: Shares::built_in().expect("the built-in table is whole"),
    };
    let names = ["packages", "rust", "python", "errors"];
    let sets: Vec<Set> = names.iter().filter_map(|name| Set::read(name, split)).collect();
    for (variant, alter) in [
        ("as they are", None),
        ("short", Some(shorten as fn(&str) -> String)),
        ("misspelt", Some(misspell)),
    ] {
        println!("\n# Questions {variant}");
        for set in &sets {
            report(&lab, set, alter);
        }
    }
    println!("\n# Stores of other sizes, all sets: answered / abstained elsewhere / off-topic");
    for size in STORE_SIZES {
        of_size(&lab, &sets, size);
    }
}

struct Lab {
    embedder: StaticEmbedder,
    shares: Shares,
}

/// What a question of a set has as its answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Answerable,
    Near,
    Off,
}

struct Question {
    text: String,
    relevant: BTreeSet<usize>,
    kind: Kind,
}

struct Set {
    name: String,
    texts: Vec<String>,
    questions: Vec<Question>,
}

impl Set {
    fn read(name: &str, split: &str) -> Option<Set> {
        let lines =
            std::fs::read_to_string(Path::new(SETS).join(format!("{name}.{split}.jsonl"))).ok()?;
        let mut set = Set { name: name.to_owned(), texts: Vec::new(), questions: Vec::new() };
        let mut rows = HashMap::new();
        for line in lines.lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            if row["id"].is_string() {
                rows.insert(text("id"), set.texts.len());
                set.texts.push(indexed(&text("title"), &text("content")));
                continue;
            }
            let relevant = row["relevant"].as_array().into_iter().flatten();
            set.questions.push(Question {
                text: text("query"),
                relevant: relevant.filter_map(|id| rows.get(id.as_str()?).copied()).collect(),
                kind: match row["none"].as_str() {
                    Some("near-topic") => Kind::Near,
                    Some(_) => Kind::Off,
                    None => Kind::Answerable,
                },
            });
        }
        Some(set)
    }
}

/// What both engines read of an entry: the title counts twice.
fn indexed(title: &str, content: &str) -> String {
    format!("{title}. {title}. {content}")
}

/// The two to four longest words, in their order: what is typed in haste.
fn shorten(question: &str) -> String {
    let bare = |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned();
    let kept: Vec<String> = question
        .split_whitespace()
        .map(bare)
        .filter(|word| !word.is_empty() && !DROPPED.contains(&word.to_lowercase().as_str()))
        .collect();
    let mut longest: Vec<usize> = (0..kept.len()).collect();
    longest.sort_by_key(|&at| (std::cmp::Reverse(kept[at].chars().count()), at));
    longest.truncate(2 + question.len() % 3);
    longest.sort_unstable();
    longest.iter().map(|&at| kept[at].as_str()).collect::<Vec<_>>().join(" ")
}

/// One slip in the middle of the longest plain word: swapped, left out or doubled.
fn misspell(question: &str) -> String {
    let plain = |word: &&str| word.len() > 5 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let Some(word) = question.split(' ').filter(plain).max_by_key(|word| word.len()) else {
        return question.to_owned();
    };
    let (mut letters, middle) = (word.as_bytes().to_vec(), word.len() / 2);
    match question.len() % 3 {
        0 => letters.swap(middle, middle - 1),
        1 => drop(letters.remove(middle)),
        _ => letters.insert(middle, letters[middle]),
    }
    question.replacen(word, &String::from_utf8_lossy(&letters), 1)
}

/// Both indexes over some texts.
struct Store<'a> {
    lab: &'a Lab,
    embedder: StaticEmbedder,
    vectors: Vec<Vec<f32>>,
    /// Rows with counts, by word.
    postings: BTreeMap<String, Vec<(usize, u32)>>,
    lengths: Vec<f64>,
    length_mean: f64,
}

struct Found {
    cosines: Vec<f64>,
    keywords: Vec<f64>,
    relevance: Vec<f64>,
}

impl<'a> Store<'a> {
    fn new(lab: &'a Lab, texts: &[&str]) -> Store<'a> {
        let embedder = lab.embedder.with_weights(lab.embedder.weights_of(texts.iter().copied()));
        let mut postings: BTreeMap<String, Vec<(usize, u32)>> = BTreeMap::new();
        let mut lengths = Vec::new();
        for (row, text) in texts.iter().enumerate() {
            let words = words(text);
            lengths.push(in_one_byte(words.len()) as f64);
            for word in words {
                let rows = postings.entry(word).or_default();
                match rows.last_mut() {
                    Some((last, count)) if *last == row => *count += 1,
                    _ => rows.push((row, 1)),
                }
            }
        }
        let length_mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        let vectors = embedder.embed(texts);
        Store { lab, embedder, vectors, postings, lengths, length_mean }
    }

    fn search(&self, question: &str) -> Found {
        let asked_vector = &self.embedder.embed(&[question])[0];
        let dot = |vector: &Vec<f32>| {
            f64::from(vector.iter().zip(asked_vector).map(|(a, b)| a * b).sum::<f32>())
        };
        let cosines: Vec<f64> = self.vectors.iter().map(dot).collect();
        let mut keywords = vec![0.0; self.lengths.len()];
        let mut idfs = Vec::new();
        for word in words(question).into_iter().collect::<BTreeSet<String>>() {
            let holding = self.postings.get(&word).map_or(0, Vec::len) as u64;
            let documents = self.lengths.len() as u64 + PRIOR_DOCUMENTS;
            let idf = idf(documents, holding + prior_holding(self.lab.shares.of(&word)));
            idfs.push(idf);
            for (row, score) in self.scores_of(&word) {
                keywords[row] += idf * score;
            }
        }
        let asked = Asked { ceiling: ceiling(idfs), entries: self.lengths.len() as u64 };
        let of = |(cosine, bm25): (&f64, &f64)| {
            let found = Match { cosine: Some(*cosine), bm25: *bm25 };
            relevance(&found, &asked, &Calibration::BUILT_IN).value
        };
        let relevance = cosines.iter().zip(&keywords).map(of).collect();
        Found { cosines, keywords, relevance }
    }

    /// BM25 of one word in each row that holds it, or a neighbour of it where none does.
    fn scores_of(&self, word: &str) -> BTreeMap<usize, f64> {
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        let mut add = |rows: &[(usize, u32)], weight: f64| {
            for &(row, count) in rows {
                let count = f64::from(count);
                let norm = 1.2 * (0.25 + 0.75 * self.lengths[row] / self.length_mean);
                let best = scores.entry(row).or_default();
                *best = best.max(weight * count * 2.2 / (count + norm));
            }
        };
        if let Some(rows) = self.postings.get(word) {
            add(rows, 1.0);
        } else if may_be_misspelt(word) {
            let mut near: Vec<&Vec<(usize, u32)>> = self
                .postings
                .iter()
                .filter(|(other, _)| is_one_slip_apart(other, word))
                .map(|(_, rows)| rows)
                .collect();
            near.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
            near.iter().take(NEIGHBOURS_MAX).for_each(|rows| add(rows, NEIGHBOUR_WEIGHT));
        }
        scores
    }
}

/// A field's length as the real index keeps it: exact to 40, then ever coarser.
fn in_one_byte(length: usize) -> usize {
    const EXACT: usize = 40;
    const SHIFTED: usize = 24;
    if length < EXACT {
        return length;
    }
    let above = length - SHIFTED;
    let coarse = (usize::BITS - above.leading_zeros()).saturating_sub(4);
    ((above >> coarse) << coarse) + SHIFTED
}

/// Rows by score, best first.
fn order(scores: &[f64]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..scores.len()).collect();
    rows.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    rows
}

/// Recall@10, nDCG@10 and the reciprocal rank among the first hundred.
fn measures(rows: &[usize], relevant: &BTreeSet<usize>) -> [f64; 3] {
    let gain = |place: usize| 1.0 / ((place + 2) as f64).log2();
    let hits: Vec<usize> =
        (0..rows.len().min(100)).filter(|&place| relevant.contains(&rows[place])).collect();
    let ideal = relevant.len().min(TOP);
    let top = || hits.iter().copied().filter(|&place| place < TOP);
    [
        top().count() as f64 / ideal as f64,
        top().map(gain).sum::<f64>() / (0..ideal).map(gain).sum::<f64>(),
        hits.first().map_or(0.0, |&place| 1.0 / (place + 1) as f64),
    ]
}

/// Each query's scores from its lowest to its highest, as 0 to 1.
fn min_max(scores: &[f64]) -> Vec<f64> {
    let low = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter().map(|score| (score - low) / (high - low).max(1e-9)).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// The mean of paired differences and its 95 % interval by resampling.
fn interval(differences: &[f64]) -> (f64, f64, f64) {
    let mean = |sum: f64| sum / differences.len() as f64;
    let mut random = Random(SEED);
    let mut draw = || differences[random.below(differences.len())];
    let mut means: Vec<f64> =
        (0..RESAMPLES).map(|_| mean((0..differences.len()).map(|_| draw()).sum())).collect();
    means.sort_by(f64::total_cmp);
    (mean(differences.iter().sum()), means[RESAMPLES / 40], means[RESAMPLES - RESAMPLES / 40 - 1])
}

fn report(lab: &Lab, set: &Set, alter: Option<fn(&str) -> String>) {
    let texts: Vec<&str> = set.texts.iter().map(String::as_str).collect();
    let store = Store::new(lab, &texts);
    let names = ["BM25", "vectors", "equal", "hybrid"];
    let mut measured: [Vec<[f64; 3]>; 4] = Default::default();
    let mut best: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    for question in &set.questions {
        let found =
            store.search(&alter.map_or(question.text.clone(), |alter| alter(&question.text)));
        let nearest = found.relevance.iter().copied().fold(0.0, f64::max);
        best.entry(question.kind).or_default().push(nearest);
        if question.kind != Kind::Answerable {
            continue;
        }
        let (by_words, by_vectors) = (order(&found.keywords), order(&found.cosines));
        let both = min_max(&found.keywords).into_iter().zip(min_max(&found.cosines));
        let equal: Vec<f64> = both.map(|(a, b)| a + b).collect();
        let candidates: BTreeSet<usize> = by_words
            .iter()
            .take(PER_ENGINE)
            .chain(by_vectors.iter().take(PER_ENGINE))
            .copied()
            .collect();
        let mut fused = order(&found.relevance);
        fused.retain(|row| candidates.contains(row));
        for (at, rows) in [by_words, by_vectors, order(&equal), fused].iter().enumerate() {
            measured[at].push(measures(rows, &question.relevant));
        }
    }
    println!("\n## {}: {} entries, {} queries", set.name, texts.len(), measured[0].len());
    for (name, rows) in names.iter().zip(&measured) {
        let mean = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64;
        println!("| {name} | {:.3} / {:.3} / {:.3} |", mean(0), mean(1), mean(2));
    }
    for (name, rows) in names.iter().zip(&measured).take(3) {
        let told: Vec<String> = (0..3)
            .map(|at| {
                let pairs = measured[3].iter().zip(rows);
                let (mean, low, high) =
                    interval(&pairs.map(|(a, b)| a[at] - b[at]).collect::<Vec<_>>());
                format!("{mean:+.3} [{low:+.3}, {high:+.3}]")
            })
            .collect();
        println!("hybrid less {name}: {}", told.join(", "));
    }
    let least = answer_min(texts.len() as u64, Engines::Both, &Calibration::BUILT_IN);
    for more in [-0.10, -0.05, 0.0, 0.05, 0.10, 0.15] {
        let below = |kind: Kind| share_below(best.get(&kind), least + more);
        let answered = 1.0 - below(Kind::Answerable);
        println!(
            "at {:.3}: answered {answered:.3}, near-topic abstained {:.3}, off-topic {:.3}",
            least + more,
            below(Kind::Near),
            below(Kind::Off)
        );
    }
}

fn share_below(values: Option<&Vec<f64>>, least: f64) -> f64 {
    let values = values.map_or(&[][..], Vec::as_slice);
    values.iter().filter(|value| **value < least).count() as f64 / values.len().max(1) as f64
}

/// Many small stores drawn from each set: what is asked is in the store, elsewhere, or off-topic.
fn of_size(lab: &Lab, sets: &[Set], size: usize) {
    let mut random = Random(SEED);
    let least = answer_min(size as u64, Engines::Both, &Calibration::BUILT_IN);
    for (variant, alter) in [("as they are", None), ("short", Some(shorten as fn(&str) -> String))]
    {
        let (mut here, mut elsewhere, mut off) = (Vec::new(), Vec::new(), Vec::new());
        for set in sets {
            for _ in 0..(600 / size).clamp(6, 40) {
                let mut rows: Vec<usize> = (0..set.texts.len()).collect();
                for at in 0..size {
                    let other = at + random.below(rows.len() - at);
                    rows.swap(at, other);
                }
                rows.truncate(size);
                let texts: Vec<&str> = rows.iter().map(|&row| set.texts[row].as_str()).collect();
                let store = Store::new(lab, &texts);
                for question in &set.questions {
                    let is_here = rows.iter().any(|row| question.relevant.contains(row));
                    // All that can be answered; of the rest a sample is enough.
                    if !is_here && random.below(20) > 0 {
                        continue;
                    }
                    let text = alter.map_or(question.text.clone(), |alter| alter(&question.text));
                    let best = store.search(&text).relevance.into_iter().fold(0.0, f64::max);
                    match (is_here, question.kind) {
                        (true, _) => here.push(best),
                        (_, Kind::Off) => off.push(best),
                        _ => elsewhere.push(best),
                    }
                }
            }
        }
        println!(
            "{size} entries, {variant}, at {least:.3}: {:.3} / {:.3} / {:.3}",
            1.0 - share_below(Some(&here), least),
            share_below(Some(&elsewhere), least),
            share_below(Some(&off), least)
        );
    }
}
