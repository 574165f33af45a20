//! Compares the vectors to those of another runtime, and checks the model file and its licence.

use super::*;
use std::sync::LazyLock;

static TRANSFORMER: LazyLock<Transformer> = LazyLock::new(|| Transformer::load(1).unwrap());

/// Turns `\{hex}` back into the character with that code point.
fn unescape(text: &str) -> String {
    let mut parts = text.split("\\{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        out.push_str(rest);
    }
    out
}

fn golden() -> Vec<(String, Vec<f32>)> {
    let of = |line: &str| {
        let (text, vector) = line.split_once('\t').unwrap();
        (unescape(text), vector.split(' ').map(|value| value.parse().unwrap()).collect())
    };
    include_str!("../../model/golden/minilm.tsv").lines().map(of).collect()
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

#[test]
fn vectors_match_those_of_another_runtime() {
    let rows = golden();
    assert!(rows.len() >= 8);
    let texts: Vec<&str> = rows.iter().map(|(text, _)| text.as_str()).collect();
    let together = TRANSFORMER.embed(&texts).unwrap();
    for ((text, expected), found) in rows.iter().zip(&together) {
        assert!(dot(found, expected) >= 0.999, "{text:.60}: {}", dot(found, expected));
        assert!((dot(found, found) - 1.0).abs() < 1e-4, "{text:.60}");
        assert_eq!(&TRANSFORMER.embed_query(text).unwrap(), found, "alone as in a batch");
    }
}

#[test]
fn a_question_is_nearest_to_its_answer() {
    let answers = [
        "Raise max_connections or return clients to the pool sooner.",
        "Use a BTreeMap, whose iteration order does not differ between runs.",
        "The migration held an exclusive lock on the users table.",
    ];
    let vectors = TRANSFORMER.embed(&answers).unwrap();
    for (at, question) in [
        "why do we run out of database connections?",
        "how can I make the output of a hash map deterministic",
        "what blocked the deploy?",
    ]
    .into_iter()
    .enumerate()
    {
        let vector = TRANSFORMER.embed_query(question).unwrap();
        let cosines: Vec<f32> = vectors.iter().map(|one| dot(one, &vector)).collect();
        let best = (0..cosines.len()).max_by(|a, b| cosines[*a].total_cmp(&cosines[*b]));
        assert_eq!(best, Some(at), "{question}: {cosines:?}");
    }
}

#[test]
fn texts_without_a_known_word_have_no_direction_and_long_ones_are_cut() {
    for text in ["", "  ", "\u{1f980}"] {
        assert_eq!(TRANSFORMER.embed_query(text).unwrap(), vec![0.0; DIMS], "{text:?}");
    }
    let (cut, long) = ("word ".repeat(TOKENS_MAX), "word ".repeat(20 * TOKENS_MAX));
    assert_eq!(TRANSFORMER.embed_query(&cut), TRANSFORMER.embed_query(&long));
    let accents = "é".repeat(TEXT_BYTES_MAX);
    assert_eq!(TRANSFORMER.embed_query(&accents).unwrap().len(), DIMS);
}

#[test]
fn the_special_tokens_are_those_of_the_vocabulary() {
    let table = EmbeddingTable::built_in().unwrap();
    let names: Vec<&str> = table.tokens().skip(100).take(3).collect();
    assert_eq!((UNKNOWN, START, END), (100, 101, 102));
    assert_eq!(names, ["[UNK]", "[CLS]", "[SEP]"]);
}

#[test]
fn the_identity_is_the_digest_of_the_model_and_the_notice_names_its_licence() {
    let digest = blake3::hash(MODEL).to_hex();
    assert_eq!(TRANSFORMER.identity(), format!("klnode-minilm-{}", &digest[..10]));
    let notice = include_str!("../../model/NOTICE");
    for part in ["minilm.onnx", "all-MiniLM-L6-v2", "Apache License"] {
        assert!(notice.contains(part), "{part}");
    }
    // The properties of the model are at the end of the file.
    let properties = String::from_utf8_lossy(&MODEL[MODEL.len() - 200..]);
    assert!(properties.contains("Apache-2.0"), "{properties}");
}
