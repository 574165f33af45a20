//! A server that embeds: one that speaks as OpenAI does, or Ollama.
//!
//! Every text that is embedded is sent to that server. It is asked when it is first needed, so that
//! a node starts without it; how many dimensions its vectors have is learnt from its first answer
//! and fixed from then on. What it answers is checked before it is believed. Calls block: the
//! follower sends batches and is patient, a query has one attempt and little time, and after a
//! failed one the next queries do not wait again for a while.

mod http;
mod wire;

#[cfg(test)]
mod tests;

pub use http::Key;

use super::{EmbedError, Embedder};
use http::{Address, Client, Patience};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// After a query that failed in a passing way, queries fail at once for this long: each would cost
/// its reader the whole timeout.
pub const QUERY_REST: Duration = Duration::from_secs(5);

/// What is embedded to learn the number of dimensions, where nothing else was asked before.
const PROBE: &str = "dimensions";

/// The shape of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `POST {url}/embeddings`.
    OpenAi,
    /// `POST {url}/api/embed`.
    Ollama,
}

/// Where the server is, and how far it is trusted with time and space.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The shape of requests and answers.
    pub protocol: Protocol,
    /// The part of the address before `/embeddings` or `/api/embed`.
    pub url: String,
    /// The model's name, as the server knows it.
    pub model: String,
    /// Sent as a bearer token.
    pub key: Option<Key>,
    /// How long a query may wait.
    pub query_timeout: Duration,
    /// How long one request with a batch of entries may take.
    pub request_timeout: Duration,
    /// Texts in one request.
    pub batch_texts_max: usize,
    /// Bytes of text in one request, unless a single text has more.
    pub batch_bytes_max: usize,
    /// A longer text is cut.
    pub text_bytes_max: usize,
    /// Further attempts after a first that could not connect, or was answered with 429 or 5xx.
    pub retries_max: u32,
    /// The wait before the first of them; it doubles.
    pub back_off: Duration,
}

/// An embedder on the other end of a connection.
pub struct EndpointEmbedder {
    settings: Settings,
    identity: String,
    client: Client,
    dims: OnceLock<usize>,
    resting: Mutex<Option<(Instant, EmbedError)>>,
}

impl EndpointEmbedder {
    /// Checks the settings; the server is not asked yet.
    pub fn new(settings: Settings) -> Result<Self, EmbedError> {
        let (name, path) = match settings.protocol {
            Protocol::OpenAi => ("openai", "/embeddings"),
            Protocol::Ollama => ("ollama", "/api/embed"),
        };
        let address = Address::new(&settings.url, path)?;
        let identity = format!("{name}:{}/{}", address.server(), settings.model);
        let client = Client::new(address, settings.key.as_ref())?;
        let (dims, resting) = (OnceLock::new(), Mutex::new(None));
        Ok(Self { settings, identity, client, dims, resting })
    }

    /// One request, and what it answers, checked.
    fn ask(&self, texts: &[&str], patience: Patience) -> Result<Vec<Vec<f32>>, EmbedError> {
        let Settings { protocol, model, .. } = &self.settings;
        let body = wire::request(model, texts);
        let known = self.dims.get().copied();
        let bytes_max = wire::answer_bytes_max(texts.len(), known);
        let answer = self.client.post(body, bytes_max, patience)?;
        let garbled = |why| EmbedError::Garbled { server: self.client.server().to_owned(), why };
        let vectors = wire::vectors(*protocol, &answer, texts.len(), known).map_err(garbled)?;
        if let (None, Some(first)) = (known, vectors.first()) {
            let fixed = *self.dims.get_or_init(|| first.len());
            // Two first answers may come at once; the one that is second has to agree.
            wire::check_dims(fixed, first.len()).map_err(garbled)?;
        }
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(vectors)
    }

    fn patience(&self) -> Patience {
        let Settings { request_timeout, retries_max, back_off, .. } = self.settings;
        Patience { timeout: request_timeout, retries_max, back_off }
    }

    fn known_dims(&self) -> Result<usize, EmbedError> {
        if self.dims.get().is_none() {
            self.ask(&[PROBE], self.patience())?;
        }
        Ok(*self.dims.get().expect("an answer that was believed has fixed the dimensions"))
    }

    /// The error of a query that failed a moment ago.
    fn recent_failure(&self) -> Option<EmbedError> {
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.as_ref().filter(|(until, _)| Instant::now() < *until).map(|(_, why)| why.clone())
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
        // Servers refuse an empty text, and it has no meaning to ask for.
        let asked: Vec<&str> = cut.iter().copied().filter(|text| !text.is_empty()).collect();
        let mut found = Vec::with_capacity(asked.len());
        for batch in batches(&asked, &self.settings) {
            found.extend(self.ask(batch, self.patience())?);
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
        let patience = Patience { timeout, retries_max: 0, back_off: Duration::ZERO };
        let asked = if text.is_empty() { PROBE } else { text };
        match self.ask(&[asked], patience) {
            Ok(mut vectors) => {
                let vector = vectors.pop().expect("an answer that was believed has its vector");
                Ok(if text.is_empty() { vec![0.0; vector.len()] } else { vector })
            }
            Err(failure) => {
                if failure.is_passing() {
                    let rest = (Instant::now() + QUERY_REST, failure.clone());
                    *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = Some(rest);
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

/// The beginning of a text without blanks around it, on a character's border.
fn cut(text: &str, bytes_max: usize) -> &str {
    let text = text.trim();
    text[..text.floor_char_boundary(bytes_max)].trim_end()
}

/// Texts in their order, as many to a request as its limits allow, and at least one.
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
