//! What is sent to a server and what may come back, as JSON.
//!
//! Separate because a server's answer is not to be believed: each vector is counted, measured and
//! scaled here, and what does not fit is said in a sentence. Nothing here knows of connections.

use super::Protocol;
use crate::index::vectors::DIMS_MAX;
use serde::{Deserialize, Serialize};

/// A shorter vector has no direction and becomes zero.
const LENGTH_MIN: f64 = 1e-6;
/// Bytes of one number, written out in full with its comma.
const NUMBER_BYTES_MAX: usize = 32;
/// Bytes of an answer beside its numbers.
const FRAME_BYTES_MAX: usize = 64 * 1024;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

/// The body of a request; both protocols take the same.
pub(super) fn request(model: &str, texts: &[&str]) -> Vec<u8> {
    serde_json::to_vec(&Request { model, input: texts }).expect("strings are always JSON")
}

/// The largest answer to a request with this many texts, once the dimensions are known or before.
pub(super) fn answer_bytes_max(texts: usize, dims: Option<usize>) -> usize {
    let vector_bytes_max = dims.unwrap_or(DIMS_MAX) * NUMBER_BYTES_MAX;
    texts.saturating_mul(vector_bytes_max).saturating_add(FRAME_BYTES_MAX)
}

/// A missing number stands for one that JSON cannot write.
type Numbers = Vec<Option<f64>>;

#[derive(Deserialize)]
struct OpenAi {
    data: Vec<Placed>,
}

#[derive(Deserialize)]
struct Placed {
    index: usize,
    embedding: Numbers,
}

#[derive(Deserialize)]
struct Ollama {
    embeddings: Vec<Numbers>,
}

/// The vectors of an answer, in the order of the texts and of length one; or why it is none, in
/// words that follow a colon.
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
                return Err("two vectors in its answer have the same index".to_owned());
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

/// Whether vectors have the length that the first of them had.
pub(super) fn check_dims(dims: usize, found: usize) -> Result<(), String> {
    if found == dims {
        Ok(())
    } else {
        Err(format!("it gives a vector of {found} numbers, and before it gave {dims}"))
    }
}

fn parse<'a, T: Deserialize<'a>>(answer: &'a [u8], expected: &str) -> Result<T, String> {
    serde_json::from_slice(answer)
        .map_err(|_| format!("its answer is not the JSON that was expected, {expected}"))
}

fn check_count(texts: usize, found: usize) -> Result<(), String> {
    if found == texts { Ok(()) } else { Err(format!("it gives {found} vectors for {texts} texts")) }
}

fn vector(numbers: Numbers, dims: usize) -> Result<Vec<f32>, String> {
    check_dims(dims, numbers.len())?;
    if numbers.is_empty() || numbers.len() > DIMS_MAX {
        let found = numbers.len();
        return Err(format!(
            "it gives a vector of {found} numbers, and 1 to {DIMS_MAX} can be used"
        ));
    }
    let finite = |number: Option<f64>| number.filter(|number| (*number as f32).is_finite());
    let numbers: Option<Vec<f64>> = numbers.into_iter().map(finite).collect();
    let numbers = numbers.ok_or("a number in its answer is not finite")?;
    // In 64 bits, where no square of a 32-bit number is too large.
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
    fn an_answer_that_does_not_fit_is_refused_in_a_sentence() {
        let cases = [
            (r#"{"embeddings":[[1,2]]}"#, "it gives 1 vectors for 2 texts"),
            (r#"{"embeddings":[[1,2],[1,2],[1,2]]}"#, "it gives 3 vectors for 2 texts"),
            (
                r#"{"embeddings":[[1,2],[1]]}"#,
                "it gives a vector of 1 numbers, and before it gave 2",
            ),
            (
                r#"{"embeddings":[[],[]]}"#,
                "it gives a vector of 0 numbers, and 1 to 4096 can be used",
            ),
            (r#"{"embeddings":[[1,null],[1,2]]}"#, "a number in its answer is not finite"),
            (r#"{"embeddings":[[1,1e300],[1,2]]}"#, "a number in its answer is not finite"),
            (
                r#"{"embeddings":[[1,NaN],[1,2]]}"#,
                "its answer is not the JSON that was expected, an object with `embeddings`",
            ),
            ("", "its answer is not the JSON that was expected, an object with `embeddings`"),
            ("<html>", "its answer is not the JSON that was expected, an object with `embeddings`"),
        ];
        for (answer, why) in cases {
            assert_eq!(ollama(answer, 2, None).unwrap_err(), why, "{answer}");
        }
        let doubled = r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}"#;
        assert_eq!(
            openai(doubled, 2, None).unwrap_err(),
            "two vectors in its answer have the same index"
        );
        let other = ollama(r#"{"embeddings":[[1,2]]}"#, 1, Some(3)).unwrap_err();
        assert_eq!(other, "it gives a vector of 2 numbers, and before it gave 3");
    }

    #[test]
    fn numbers_near_the_ends_of_their_range_do_not_make_a_broken_vector() {
        assert_eq!(ollama(r#"{"embeddings":[[0,3e38]]}"#, 1, None).unwrap(), [[0.0, 1.0]]);
        assert_eq!(ollama(r#"{"embeddings":[[1e-300,0]]}"#, 1, None).unwrap(), [[0.0, 0.0]]);
    }

    #[test]
    fn the_dimensions_end_at_their_limit() {
        let answer =
            |dims: usize| format!(r#"{{"embeddings":[[{}]]}}"#, vec!["0.1"; dims].join(","));
        assert!(ollama(&answer(DIMS_MAX), 1, None).is_ok());
        assert!(ollama(&answer(DIMS_MAX + 1), 1, None).is_err());
    }
}
