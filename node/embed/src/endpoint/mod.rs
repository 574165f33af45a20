//! An embedder on a server with the OpenAI or the Ollama protocol.
//!
//! Every embedded text is sent to that server. The first request is made when it is needed, so that
//! a node starts without the server; the first answer fixes the number of dimensions. Answers are
//! checked before use. Calls block: the indexer sends batches and retries, a query has one attempt
//! with a short timeout, and after a failed query the next ones fail at once for a while.

mod http;
mod json;

#[cfg(test)]
mod tests;

pub use http::Key;

use super::{EmbedError, Embedder};
use http::{Address, EndpointClient, RetryPolicy};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// After a query that failed temporarily, queries fail at once for this long: otherwise each would
/// cost its caller the whole timeout.
pub const QUERY_REST: Duration = Duration::from_secs(5);

/// The text to embed if only the number of dimensions is needed.
const PROBE: &str = "dimensions";

/// The format of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The protocol of OpenAI: `POST {url}/embeddings`.
    OpenAi,
    /// The protocol of Ollama: `POST {url}/api/embed`.
    Ollama,
}

/// The server's address, limits and timeouts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The format of requests and answers.
    pub protocol: Protocol,
    /// The part of the address before `/embeddings` or `/api/embed`.
    pub url: String,
    /// The name of the model on the server.
    pub model: String,
    /// Sent as a bearer token, if set.
    pub key: Option<Key>,
    /// The timeout of a query.
    pub query_timeout: Duration,
    /// The timeout of one request with a batch of entries.
    pub request_timeout: Duration,
    /// Maximum number of texts in one request.
    pub batch_texts_max: usize,
    /// Maximum bytes of text in one request, unless a single text has more.
    pub batch_bytes_max: usize,
    /// Maximum bytes of a text; a longer text is cut.
    pub text_bytes_max: usize,
    /// Maximum number of retries after a failed connection, or a status of 429 or 5xx.
    pub retries_max: u32,
    /// The pause before the first retry; it doubles.
    pub back_off: Duration,
}

/// An embedder that calls a server.
pub struct EndpointEmbedder {
    settings: Settings,
    identity: String,
    client: EndpointClient,
    dims: OnceLock<usize>,
    query_failure: Mutex<Option<(Instant, EmbedError)>>,
}

impl EndpointEmbedder {
    /// Checks the settings; no request is made yet.
    pub fn new(settings: Settings) -> Result<Self, EmbedError> {
        let (name, path) = match settings.protocol {
            Protocol::OpenAi => ("openai", "/embeddings"),
            Protocol::Ollama => ("ollama", "/api/embed"),
        };
        let address = Address::new(&settings.url, path)?;
        let identity = format!("{name}:{}/{}", address.server(), settings.model);
        let client = EndpointClient::new(address, settings.key.as_ref())?;
        let (dims, query_failure) = (OnceLock::new(), Mutex::new(None));
        Ok(Self { settings, identity, client, dims, query_failure })
    }

    /// Sends one request and checks the answer.
    fn request(
        &self,
        texts: &[&str],
        retry_policy: RetryPolicy,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let Settings { protocol, model, .. } = &self.settings;
        let body = json::request(model, texts);
        let known = self.dims.get().copied();
        let bytes_max = json::answer_bytes_max(texts.len(), known);
        let answer = self.client.post(body, bytes_max, retry_policy)?;
        let garbled = |why| EmbedError::Garbled { server: self.client.server().to_owned(), why };
        let vectors = json::vectors(*protocol, &answer, texts.len(), known).map_err(garbled)?;
        if let (None, Some(first)) = (known, vectors.first()) {
            let fixed = *self.dims.get_or_init(|| first.len());
            // Two first answers may arrive concurrently; the second one has to agree.
            json::check_dims(fixed, first.len()).map_err(garbled)?;
        }
        *self.query_failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(vectors)
    }

    fn retry_policy(&self) -> RetryPolicy {
        let Settings { request_timeout, retries_max, back_off, .. } = self.settings;
        RetryPolicy { timeout: request_timeout, retries_max, back_off }
    }

    fn known_dims(&self) -> Result<usize, EmbedError> {
        if self.dims.get().is_none() {
            self.request(&[PROBE], self.retry_policy())?;
        }
        Ok(*self.dims.get().expect("an answer that was believed has fixed the dimensions"))
    }

    /// The error of the last query, if it failed a moment ago.
    fn recent_failure(&self) -> Option<EmbedError> {
        let query_failure = self.query_failure.lock().unwrap_or_else(PoisonError::into_inner);
        query_failure
            .as_ref()
            .filter(|(until, _)| Instant::now() < *until)
            .map(|(_, why)| why.clone())
    }
}

impl Embedder for EndpointEmbedder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        self.known_dims()
    }

    fn dims_at_hand(&self) -> Option<usize> {
        self.dims.get().copied()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let cut: Vec<&str> =
            texts.iter().map(|text| cut(text, self.settings.text_bytes_max)).collect();
        // Servers reject an empty text, which has no meaning anyway.
        let asked: Vec<&str> = cut.iter().copied().filter(|text| !text.is_empty()).collect();
        let mut found = Vec::with_capacity(asked.len());
        for batch in batches(&asked, &self.settings) {
            found.extend(self.request(batch, self.retry_policy())?);
        }
        let zeros =
            if asked.len() < cut.len() { vec![0.0; self.known_dims()?] } else { Vec::new() };
        let mut found = found.into_iter();
        let vector = |text: &&str| {
            let vector = if text.is_empty() { Some(zeros.clone()) } else { found.next() };
            vector.expect("an answer that was believed has a vector for each text")
        };
        Ok(cut.iter().map(vector).collect())
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let text = cut(text, self.settings.text_bytes_max);
        if let Some(failure) = self.recent_failure() {
            return Err(failure);
        }
        let timeout = self.settings.query_timeout;
        let retry_policy = RetryPolicy { timeout, retries_max: 0, back_off: Duration::ZERO };
        let asked = if text.is_empty() { PROBE } else { text };
        match self.request(&[asked], retry_policy) {
            Ok(mut vectors) => {
                let vector = vectors.pop().expect("an answer that was believed has its vector");
                Ok(if text.is_empty() { vec![0.0; vector.len()] } else { vector })
            }
            Err(failure) => {
                if failure.is_passing() {
                    let rest = (Instant::now() + QUERY_REST, failure.clone());
                    *self.query_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(rest);
                }
                Err(failure)
            }
        }
    }

    fn stop(&self) {
        self.client.stop();
    }
}

impl fmt::Debug for EndpointEmbedder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EndpointEmbedder")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A text without surrounding blanks, truncated at a character boundary.
fn cut(text: &str, bytes_max: usize) -> &str {
    let text = text.trim();
    text[..text.floor_char_boundary(bytes_max)].trim_end()
}

/// Splits texts, in order, into batches within the limits, with at least one text each.
fn batches<'t, 's>(
    texts: &'t [&'s str],
    settings: &Settings,
) -> impl Iterator<Item = &'t [&'s str]> {
    let (texts_max, bytes_max) = (settings.batch_texts_max, settings.batch_bytes_max);
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest.iter().take(texts_max).take_while(|text| {
            bytes += text.len();
            bytes <= bytes_max
        });
        let count = fitting.count().max(1);
        let (batch, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(batch)
    })
}
