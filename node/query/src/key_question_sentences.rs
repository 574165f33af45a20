//! Chooses the sentences of a long question that tell most about what is asked.
//!
//! The transformer's time grows with the length of a question, and a pasted log hides the question
//! from it. This module is pure; the caller scores the sentences by the words of its store. Keyword
//! search needs no such choice: it sees all words.

use super::passages::sentence_ends;
use klnode_embed::count_tokens;
use std::borrow::Cow;
use std::cmp::Reverse;

/// About the largest number of tokens that are chosen. A shorter question is used as it is.
const TOKENS_MAX: usize = 48;
/// A longer sentence is cut; a line without sentences may be as long as a file.
const SENTENCE_BYTES_MAX: usize = 240;
/// Added to every score, so that a question mark counts even among words that no entry has.
const SCORE_BASE: f64 = 1.0;
/// The factors of a sentence that asks, and of the first and the last sentence.
const QUESTION_FACTOR: f64 = 2.0;
const EDGE_FACTOR: f64 = 1.5;

/// The most telling sentences of a question, in their order; the whole question if it is short.
pub(super) fn telling_part<'t>(text: &'t str, score: &dyn Fn(&str) -> f64) -> Cow<'t, str> {
    // A token has at least one byte.
    if text.len() <= TOKENS_MAX || count_tokens(text) <= TOKENS_MAX {
        return text.into();
    }
    let sentences = sentences(text);
    let last = sentences.len().saturating_sub(1);
    let of = |(at, sentence): (usize, &&str)| {
        let asks = if sentence.ends_with(['?', '？']) { QUESTION_FACTOR } else { 1.0 };
        let edge = if at == 0 || at == last { EDGE_FACTOR } else { 1.0 };
        (SCORE_BASE + score(sentence)) * asks * edge
    };
    let scores: Vec<f64> = sentences.iter().enumerate().map(of).collect();
    let mut best: Vec<usize> = (0..sentences.len()).collect();
    best.sort_by(|one, two| scores[*two].total_cmp(&scores[*one]).then(one.cmp(two)));
    let (mut chosen, mut left) = (Vec::new(), TOKENS_MAX);
    for at in best {
        let tokens = count_tokens(sentences[at]);
        if tokens <= left || chosen.is_empty() {
            left = left.saturating_sub(tokens);
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    let chosen: Vec<&str> = chosen.into_iter().map(|at| sentences[at]).collect();
    chosen.join("\n").into()
}

/// The sentences of a text without repetitions, each line by itself.
fn sentences(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        for end in sentence_ends(line).into_iter().chain([line.len()]) {
            let sentence = line[start..end].trim();
            let sentence = &sentence[..sentence.floor_char_boundary(SENTENCE_BYTES_MAX)];
            if !sentence.is_empty() {
                found.push(sentence);
            }
            start = end;
        }
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|at| (found[*at], Reverse(*at)));
    // Of equal lines the last stays, because the end of a prompt is nearer to the question.
    order.dedup_by_key(|at| found[*at]);
    order.sort_unstable();
    order.into_iter().map(|at| found[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A score by the number of these words in a sentence.
    fn by_words<'w>(words: &'w [&str]) -> impl Fn(&str) -> f64 + 'w {
        |sentence| 5.0 * words.iter().filter(|word| sentence.contains(**word)).count() as f64
    }

    fn log(lines: usize) -> String {
        let line = |at: usize| {
            format!("2026-11-19T01:{at:02}:07Z INFO worker-{at} took job {at}f3a9 from the queue\n")
        };
        (0..lines).map(line).collect()
    }

    #[test]
    fn a_short_question_is_used_as_it_is() {
        for text in ["", "how do I rotate the signing keys?", &"é".repeat(20)] {
            assert_eq!(telling_part(text, &|_| 0.0), text);
        }
    }

    #[test]
    fn a_question_in_a_pasted_log_is_chosen() {
        let question = "Why do the signing keys expire before they rotate?";
        let text = format!("{}{question}\n{}", log(30), log(30));
        for words in [&["keys", "rotate", "queue"][..], &[]] {
            let score = by_words(words);
            let part = telling_part(&text, &score);
            assert!(part.contains(question), "{part}");
            assert!(count_tokens(&part) <= TOKENS_MAX, "{part}");
        }
    }

    #[test]
    fn the_first_and_the_last_sentence_are_preferred() {
        let text = format!("The nightly import fails. {}\nLook at the lock.", log(40));
        let part = telling_part(&text, &|_| 0.0);
        assert!(part.contains("The nightly import fails."), "{part}");
        assert!(part.contains("Look at the lock."), "{part}");
    }

    #[test]
    fn a_line_without_sentences_is_cut() {
        let part = telling_part(&"ab".repeat(9_000), &|_| 0.0).into_owned();
        assert_eq!(part.len(), SENTENCE_BYTES_MAX);
    }
}
