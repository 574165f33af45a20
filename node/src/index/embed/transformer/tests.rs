//! The transformer against a real model and the values of the reference implementation.
//!
//! The model is not in this repository: `.ci/fetch-transformer` fetches it. Damaged folders are made
//! of links to its files, with one of them replaced.

use super::*;
use crate::index::embed::golden::{numbers, unescape};
use crate::index::embed::{self, Settings};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn model() -> PathBuf {
    let folder = std::env::var_os("KLNODE_MINILM").expect(
        "these tests need a model: run them as \
         `KLNODE_MINILM=$(.ci/fetch-transformer) cargo test -p klnode --features transformer`",
    );
    PathBuf::from(folder)
}

/// A folder with links to some files of the model, and further files of these contents.
fn folder_of(linked: &[&str], written: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for name in linked {
        symlink(model().join(name), folder.path().join(name)).unwrap();
    }
    for (name, content) in written {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// What is wrong with a folder.
fn complaint(linked: &[&str], written: &[(&str, &[u8])]) -> String {
    let folder = folder_of(linked, written);
    let failure = embed::open(Settings::Folder(folder.path().to_owned())).unwrap_err();
    let text = failure.to_string();
    let start = format!("use the model in {}: ", folder.path().display());
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}")).to_owned()
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

const WHOLE: &[&str] = &["config.json", "model.safetensors", "vocab.txt"];

#[test]
fn vectors_are_those_of_the_reference_one_by_one_and_in_batches() {
    let embedder = embed::open(Settings::Folder(model())).unwrap();
    let rows: Vec<(String, Vec<f32>)> = include_str!("../../../../model/golden/transformer.tsv")
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(text, vector)| (unescape(text), numbers(vector)))
        .collect();
    assert!(rows.len() >= 8);
    let texts: Vec<&str> = rows.iter().map(|(text, _)| text.as_str()).collect();
    let together = embedder.embed(&texts).unwrap();
    for ((text, expected), found) in rows.iter().zip(&together) {
        let alone = embedder.embed_query(text).unwrap();
        for found in [found, &alone] {
            assert_eq!(found.len(), 384);
            assert!(dot(found, expected) > 1.0 - 1e-4, "{text:.60}: {}", dot(found, expected));
            let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f32::max) < 1e-3, "{text:.60}");
        }
    }
}

#[test]
fn a_model_names_itself_by_its_files_and_has_one_generation() {
    let embedder = embed::open(Settings::Folder(model())).unwrap();
    let identity = embedder.identity();
    assert!(identity.len() == 15 && identity.starts_with("bert-"), "{identity}");
    assert_eq!(embedder.dims(), Ok(384));
    assert!(embedder.refit(&mut ["a".to_owned()].into_iter()).is_none());
    assert!(embedder.weights().is_none());
    // Without the file that says how long its texts were, texts end later: another identity.
    let bare = folder_of(WHOLE, &[]);
    let bare = embed::open(Settings::Folder(bare.path().to_owned())).unwrap();
    assert_ne!(bare.identity(), identity);
}

#[test]
fn the_vocabulary_may_stand_in_the_tokenizer_file_alone() {
    let with = |name| {
        let folder = folder_of(&["config.json", "model.safetensors", name], &[]);
        embed::open(Settings::Folder(folder.path().to_owned())).unwrap()
    };
    let (lines, json) = (with("vocab.txt"), with("tokenizer.json"));
    assert_eq!(lines.identity(), json.identity());
    let text = "Connection pool exhausted";
    assert_eq!(lines.embed_query(text), json.embed_query(text));
}

#[test]
fn a_text_without_a_known_word_has_no_direction_and_disturbs_no_other() {
    let embedder = embed::open(Settings::Folder(model())).unwrap();
    let vectors = embedder.embed(&["", "a word", "\u{1f980} \u{0}"]).unwrap();
    assert_eq!((&vectors[0], &vectors[2]), (&vec![0.0; 384], &vec![0.0; 384]));
    let alone = embedder.embed_query("a word").unwrap();
    assert!(dot(&vectors[1], &alone) > 0.9999);
    assert_eq!(embedder.embed(&[]).unwrap(), Vec::<Vec<f32>>::new());
}

#[test]
fn a_batch_keeps_to_its_limit_and_holds_every_text_once() {
    let tokens: Vec<(usize, Vec<u32>)> = [1, 1, 2, 1000, 1000, 1024, 1024, 5000, 9000]
        .map(|count| vec![0; count])
        .into_iter()
        .enumerate()
        .collect();
    let lengths: Vec<usize> = batches(&tokens).map(<[_]>::len).collect();
    assert_eq!(lengths, [4, 3, 1, 1]);
}

#[test]
fn a_missing_file_is_named() {
    assert_eq!(complaint(&[], &[]), "config.json is missing");
    assert_eq!(complaint(&["config.json", "vocab.txt"], &[]), "model.safetensors is missing");
    assert_eq!(
        complaint(&["config.json", "model.safetensors"], &[]),
        "vocab.txt and tokenizer.json are both missing"
    );
    let nowhere = embed::open(Settings::Folder("/no/such/folder".into())).unwrap_err();
    assert_eq!(nowhere.to_string(), "use the model in /no/such/folder: config.json is missing");
}

#[test]
fn damaged_weights_are_an_error() {
    let rest = &["config.json", "vocab.txt"];
    let weights = fs::read(model().join("model.safetensors")).unwrap();
    for bytes in [&b""[..], b"not tensors at all", &weights[..1000], &weights[..weights.len() - 1]]
    {
        let complaint = complaint(rest, &[("model.safetensors", bytes)]);
        assert!(complaint.starts_with("model.safetensors: "), "{complaint}");
        assert!(!complaint.contains('\n'), "{complaint}");
    }
}

#[test]
fn a_config_that_does_not_fit_is_an_error_that_says_where() {
    let text = fs::read_to_string(model().join("config.json")).unwrap();
    let rest = &["model.safetensors", "vocab.txt"];
    for (from, to, why) in [
        (
            "\"hidden_size\": 384",
            "\"hidden_size\": 0",
            "config.json: hidden_size is 0, and 1 to 4096",
        ),
        (
            "\"num_attention_heads\": 12",
            "\"num_attention_heads\": 7",
            "does not divide hidden_size",
        ),
        ("\"num_attention_heads\": 12", "\"num_attention_heads\": 0", "num_attention_heads is 0"),
        ("\"hidden_size\": 384", "\"hidden_size\": 768", "model.safetensors: "),
        ("\"num_hidden_layers\": 6", "\"num_hidden_layers\": 7", "model.safetensors: "),
        ("\"bert\"", "\"mpnet\"", "names the family `mpnet`"),
        ("\"gelu\"", "\"swish\"", "config.json: unknown variant `swish`"),
        ("\"vocab_size\": 30522", "\"vocab_size\": 30521", "vocab.txt has 30522 tokens"),
        ("\"max_position_embeddings\": 512", "\"max_position_embeddings\": 2", "out of bounds"),
        ("{", "[", "config.json: "),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let complaint = complaint(rest, &[("config.json", changed.as_bytes())]);
        assert!(complaint.contains(why), "{complaint}");
    }
}

#[test]
fn a_model_that_would_be_computed_wrongly_is_refused() {
    for (name, content, why) in [
        ("1_Pooling/config.json", r#"{"pooling_mode_cls_token":true}"#, "pooling_mode_cls_token"),
        ("modules.json", r#"[{"type":"sentence_transformers.models.Dense"}]"#, "module `Dense`"),
        ("tokenizer_config.json", r#"{"do_lower_case":false}"#, "`do_lower_case` is false"),
        ("tokenizer.json", r#"{"normalizer":{"lowercase":false}}"#, "`lowercase` is false"),
        ("modules.json", "[", "modules.json is no JSON"),
    ] {
        let complaint = complaint(WHOLE, &[(name, content.as_bytes())]);
        assert!(complaint.contains(why) && complaint.starts_with(name), "{complaint}");
    }
}

#[test]
fn a_vocabulary_that_cannot_be_used_is_an_error() {
    let rest = &["config.json", "model.safetensors"];
    for (name, content, why) in [
        ("vocab.txt", &b"a\nb\n"[..], "vocab.txt has no [CLS]"),
        ("vocab.txt", b"\xff", "vocab.txt is not UTF-8"),
        ("tokenizer.json", b"{}", "tokenizer.json holds no vocabulary: "),
        ("tokenizer.json", br#"{"model":{"type":"BPE","vocab":{}}}"#, "is of type `BPE`"),
        ("tokenizer.json", br#"{"model":{"vocab":{"a":0,"b":2}}}"#, "leaves out an id"),
        ("tokenizer.json", br#"{"model":{"vocab":{"a":0,"b":0}}}"#, "leaves out an id"),
    ] {
        let complaint = complaint(rest, &[(name, content)]);
        assert!(complaint.contains(why), "{complaint}");
    }
}
