//! The JSON of requests to an embedding server and of its answers.
//!
//! It is separate because the answer of a server is untrusted: each vector is counted, checked and
//! scaled here, and errors say what is wrong. This module is independent of connections.

use super::Protocol;
use crate::DIMS_MAX;
use serde::{Deserialize, Serialize};

/// Minimum length of a vector with a direction; a shorter one becomes zero.
const LENGTH_MIN: f64 = 1e-6;
/// Maximum bytes of one number with its comma.
const NUMBER_BYTES_MAX: usize = 32;
/// Maximum bytes of an answer besides its numbers.
const FRAME_BYTES_MAX: usize = 64 * 1024;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

/// The body of a request, which is the same in both protocols.
pub(super) fn request(model: &str, texts: &[&str]) -> Vec<u8> {
    serde_json::to_vec(&Request { model, input: texts }).expect("strings are always JSON")
}

/// The size limit of an answer for this many texts; `dims` is `None` before the first answer.
pub(super) fn answer_bytes_max(texts: usize, dims: Option<usize>) -> usize {
    let vector_bytes_max = dims.unwrap_or(DIMS_MAX) * NUMBER_BYTES_MAX;
    texts.saturating_mul(vector_bytes_max).saturating_add(FRAME_BYTES_MAX)
}

/// `None` stands for a number that JSON cannot represent.
type RawVector = Vec<Option<f64>>;

#[derive(Deserialize)]
struct OpenAi {
    data: Vec<IndexedEmbedding>,
}

#[derive(Deserialize)]
struct IndexedEmbedding {
    index: usize,
    embedding: RawVector,
}

#[derive(Deserialize)]
struct Ollama {
    embeddings: Vec<RawVector>,
}

/// The vectors of an answer in the order of the texts, scaled to length one; the error completes a
/// sentence after a colon.
pub(super) fn vectors(
    protocol: Protocol,
    answer: &[u8],
    texts: usize,
    dims: Option<usize>,
) -> Result<Vec<Vec<f32>>, String> {
    let vectors = match protocol {
        Protocol::OpenAi => {
            let OpenAi { mut data } = parse(answer, "an object with `data`, `index`, `embedding`")?;
            data.sort_by_key(|one| one.index);
            check_count(texts, data.len())?;
            if data.iter().enumerate().any(|(at, one)| at != one.index) {
                return Err("two vectors have the same index".to_owned());
            }
            data.into_iter().map(|one| one.embedding).collect()
        }
        Protocol::Ollama => {
            let Ollama { embeddings } = parse(answer, "an object with `embeddings`")?;
            check_count(texts, embeddings.len())?;
            embeddings
        }
    };
    let dims = dims.or_else(|| vectors.first().map(Vec::len)).unwrap_or(0);
    vectors.into_iter().map(|numbers| vector(numbers, dims)).collect()
}

/// Checks that a vector has the dimensions of the first one.
pub(super) fn check_dims(dims: usize, found: usize) -> Result<(), String> {
    if found == dims {
        Ok(())
    } else {
        Err(format!("a vector has {found} dimensions; earlier ones had {dims}"))
    }
}

fn parse<'a, T: Deserialize<'a>>(answer: &'a [u8], expected: &str) -> Result<T, String> {
    serde_json::from_slice(answer).map_err(|_| format!("it is not the expected JSON, {expected}"))
}

fn check_count(texts: usize, found: usize) -> Result<(), String> {
    if found == texts { Ok(()) } else { Err(format!("it has {found} vectors for {texts} texts")) }
}

fn vector(numbers: RawVector, dims: usize) -> Result<Vec<f32>, String> {
    check_dims(dims, numbers.len())?;
    if numbers.is_empty() || numbers.len() > DIMS_MAX {
        let found = numbers.len();
        return Err(format!("a vector has {found} dimensions; 1 to {DIMS_MAX} are supported"));
    }
    let finite = |number: Option<f64>| number.filter(|number| (*number as f32).is_finite());
    let numbers: Option<Vec<f64>> = numbers.into_iter().map(finite).collect();
    let numbers = numbers.ok_or("a number in it is not finite")?;
    // In 64 bits, where the square of a 32-bit number cannot overflow.
    let length = numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
    let factor = if length > LENGTH_MIN { 1.0 / length } else { 0.0 };
    Ok(numbers.into_iter().map(|number| (number * factor) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(answer: &str, texts: usize, dims: Option<usize>) -> Result<Vec<Vec<f32>>, String> {
        vectors(Protocol::OpenAi, answer.as_bytes(), texts, dims)
    }

    fn ollama(answer: &str, texts: usize, dims: Option<usize>) -> Result<Vec<Vec<f32>>, String> {
        vectors(Protocol::Ollama, answer.as_bytes(), texts, dims)
    }

    #[test]
    fn a_request_names_the_model_and_its_texts() {
        let body = request("m", &["a \"b\"", "ü\n"]);
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"model":"m","input":["a \"b\"","ü\n"]}"#);
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts_and_have_length_one() {
        let answer = r#"{"object":"list","data":[
            {"object":"embedding","index":1,"embedding":[0,2]},
            {"object":"embedding","index":0,"embedding":[3,4]}],"usage":{"total_tokens":2}}"#;
        assert_eq!(openai(answer, 2, None).unwrap(), [[0.6, 0.8], [0.0, 1.0]]);
        let answer = r#"{"model":"m","embeddings":[[3.0,4.0],[0,0]],"total_duration":1}"#;
        assert_eq!(ollama(answer, 2, Some(2)).unwrap(), [[0.6, 0.8], [0.0, 0.0]]);
    }

    #[test]
    fn an_invalid_answer_is_rejected_with_a_reason() {
        let cases = [
            (r#"{"embeddings":[[1,2]]}"#, "it has 1 vectors for 2 texts"),
            (r#"{"embeddings":[[1,2],[1,2],[1,2]]}"#, "it has 3 vectors for 2 texts"),
            (r#"{"embeddings":[[1,2],[1]]}"#, "a vector has 1 dimensions; earlier ones had 2"),
            (r#"{"embeddings":[[],[]]}"#, "a vector has 0 dimensions; 1 to 4096 are supported"),
            (r#"{"embeddings":[[1,null],[1,2]]}"#, "a number in it is not finite"),
            (r#"{"embeddings":[[1,1e300],[1,2]]}"#, "a number in it is not finite"),
            (
                r#"{"embeddings":[[1,NaN],[1,2]]}"#,
                "it is not the expected JSON, an object with `embeddings`",
            ),
            ("", "it is not the expected JSON, an object with `embeddings`"),
            ("<html>", "it is not the expected JSON, an object with `embeddings`"),
        ];
        for (answer, why) in cases {
            assert_eq!(ollama(answer, 2, None).unwrap_err(), why, "{answer}");
        }
        let doubled = r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}"#;
        assert_eq!(openai(doubled, 2, None).unwrap_err(), "two vectors have the same index");
        let other = ollama(r#"{"embeddings":[[1,2]]}"#, 1, Some(3)).unwrap_err();
        assert_eq!(other, "a vector has 2 dimensions; earlier ones had 3");
    }

    #[test]
    fn extreme_numbers_give_valid_vectors() {
        assert_eq!(ollama(r#"{"embeddings":[[0,3e38]]}"#, 1, None).unwrap(), [[0.0, 1.0]]);
        assert_eq!(ollama(r#"{"embeddings":[[1e-300,0]]}"#, 1, None).unwrap(), [[0.0, 0.0]]);
    }

    #[test]
    fn the_number_of_dimensions_is_bounded() {
        let answer =
            |dims: usize| format!(r#"{{"embeddings":[[{}]]}}"#, vec!["0.1"; dims].join(","));
        assert!(ollama(&answer(DIMS_MAX), 1, None).is_ok());
        assert!(ollama(&answer(DIMS_MAX + 1), 1, None).is_err());
    }
}
