//! Tests of splitting and of excerpts.

use super::{Passages, split};

const GUIDE: &str = "# Pool\n\nThe pool is shared. It starts empty.\n\n## Limits\n\n- 20 \
    connections\n- 5 waiting\n  clients\n\n```\npool.max = 20\n\npool.wait = 5\n```\n\n## Timeouts\n\n\
    A client waits, e.g. in a queue. After 30 seconds it fails.\n";

fn parts(text: &str) -> Vec<&str> {
    split(text).into_iter().map(|one| &text[one.range]).collect()
}

/// The excerpt of a text for a question of these words, all with the same weight.
fn excerpt(text: &str, words: &[&str], characters_max: usize) -> String {
    let score = |pairs: &[(&str, &str)]| {
        let of = |part: &str| words.iter().filter(|word| part.contains(**word)).count() as f64;
        pairs.iter().map(|(heading, part)| of(part) + of(heading) / 2.0).collect()
    };
    Passages::new(text, score).excerpt(text, characters_max)
}

#[test]
fn sentences_items_blocks_and_headings_are_passages() {
    assert_eq!(
        parts(GUIDE),
        [
            "# Pool",
            "The pool is shared.",
            "It starts empty.",
            "## Limits",
            "- 20 connections",
            "- 5 waiting\n  clients",
            "```\npool.max = 20\n\npool.wait = 5\n```",
            "## Timeouts",
            "A client waits, e.g. in a queue.",
            "After 30 seconds it fails.",
        ]
    );
    assert_eq!(parts(""), Vec::<&str>::new());
    assert_eq!(parts(" \n \n"), Vec::<&str>::new());
    assert_eq!(parts("```\nnever closed"), ["```\nnever closed"]);
    assert_eq!(parts("| a | b |\n| c | d |"), ["| a | b |", "| c | d |"]);
    assert_eq!(parts("#no heading\n1) one\n2) two"), ["#no heading", "1) one", "2) two"]);
}

#[test]
fn a_long_passage_is_split_at_words_without_loss() {
    let words: Vec<String> = (0..500).map(|number| format!("word{number}")).collect();
    let text = words.join(" ");
    let parts = parts(&text);
    assert!(parts.len() > 5 && parts.iter().all(|part| part.len() <= 400));
    assert_eq!(parts.join(" "), text);
    let unbroken = "ü".repeat(1_000);
    assert_eq!(super::split(&unbroken).iter().map(|one| one.range.len()).sum::<usize>(), 2_000);
}

#[test]
fn an_excerpt_shows_the_best_passage_below_its_heading() {
    let end = "## Timeouts\n\nA client waits, e.g. in a queue. After 30 seconds it fails.";
    assert_eq!(excerpt(GUIDE, &["seconds", "fails"], 75), format!("…{end}"));
    assert_eq!(
        excerpt(GUIDE, &["seconds", "fails"], 40),
        "## Timeouts\n…After 30 seconds it fails."
    );
    assert_eq!(excerpt(GUIDE, &["clients"], 36), "## Limits\n…- 5 waiting\n  clients…");
    // A word in a heading counts for the passages below it.
    assert_eq!(excerpt(GUIDE, &["Timeouts", "30"], 40), "## Timeouts\n…After 30 seconds it fails.");
}

#[test]
fn an_excerpt_without_a_match_is_the_beginning_of_the_text() {
    assert_eq!(excerpt(GUIDE, &["nothing"], 30), "# Pool\n\nThe pool is shared.…");
    assert_eq!(excerpt(GUIDE, &["seconds"], 1_000), GUIDE);
    assert_eq!(excerpt("", &["seconds"], 10), "");
    assert_eq!(excerpt("# Heading alone", &["x"], 5), "# Hea…");
}

#[test]
fn excerpts_stay_within_the_length_limit() {
    let texts = [GUIDE.repeat(40), "ü".repeat(5_000), "a. B ".repeat(2_000), "# x\n".repeat(3_000)];
    for text in &texts {
        for characters_max in [1, 20, 200, 1_600] {
            let shown = excerpt(text, &["fails", "B"], characters_max);
            let count = shown.chars().count();
            // A heading and two ellipses may come on top when there is hardly any room.
            assert!(count <= characters_max + 84, "{count} of {characters_max}");
        }
    }
}
