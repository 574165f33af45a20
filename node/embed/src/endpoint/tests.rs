//! Tests of the embedder with a server on loopback that answers correctly, wrongly, late or not at
//! all.

use super::*;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::response::Response;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::thread;
use tokio::runtime::Runtime;

/// The server's reaction to a request.
enum Answer {
    Json(Value),
    Status(u16),
    Text(&'static str),
    Endless,
    Never,
}

/// A request as received by the server.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    path: String,
    key: Option<String>,
    body: Value,
}

impl Seen {
    fn texts(&self) -> Vec<&str> {
        let input = self.body["input"].as_array().unwrap();
        input.iter().map(|text| text.as_str().unwrap()).collect()
    }
}

type Seens = Arc<Mutex<Vec<Seen>>>;

struct Server {
    address: SocketAddr,
    seen: Seens,
    arrivals: mpsc::Receiver<()>,
    _runtime: Runtime,
}

impl Server {
    /// Answers each request by its number, counted from zero, and its texts.
    fn start(answer: impl Fn(usize, &Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), answer)
    }

    fn at(
        address: SocketAddr,
        answer: impl Fn(usize, &Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (seen, answer) = (Seens::default(), Arc::new(answer));
        let (arrived, arrivals) = mpsc::channel();
        let log = Arc::clone(&seen);
        let app = Router::new().fallback(move |request: Request| {
            let (log, answer, arrived) = (Arc::clone(&log), Arc::clone(&answer), arrived.clone());
            async move {
                let one = read(request).await;
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(one.clone());
                    log.len() - 1
                };
                arrived.send(()).unwrap_or_default();
                respond(answer(number, &one)).await
            }
        });
        runtime.spawn(async move {
            axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await
        });
        Self { address, seen, arrivals, _runtime: runtime }
    }

    fn settings(&self) -> Settings {
        settings(&format!("http://{}/v1/", self.address))
    }

    fn embedder(&self) -> EndpointEmbedder {
        EndpointEmbedder::new(self.settings()).unwrap()
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn read(request: Request) -> Seen {
    let path = request.uri().path().to_owned();
    let key = request.headers().get(AUTHORIZATION);
    let key = key.map(|value| value.to_str().unwrap().to_owned());
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    Seen { path, key, body: serde_json::from_slice(&body).unwrap() }
}

async fn respond(answer: Answer) -> Response {
    let body = match answer {
        Answer::Json(value) => Body::from(value.to_string()),
        Answer::Status(status) => {
            let body = Body::from("the key secret-key is wrong");
            return Response::builder().status(status).body(body).unwrap();
        }
        Answer::Text(text) => Body::from(text),
        Answer::Endless => {
            let part = || Ok::<_, Infallible>("0.1, ".repeat(1000));
            Body::from_stream(futures_util::stream::repeat_with(part))
        }
        Answer::Never => std::future::pending().await,
    };
    Response::new(body)
}

fn settings(url: &str) -> Settings {
    Settings {
        protocol: Protocol::Ollama,
        url: url.to_owned(),
        model: "small".to_owned(),
        key: None,
        query_timeout: Duration::from_secs(10),
        request_timeout: Duration::from_secs(10),
        batch_texts_max: 3,
        batch_bytes_max: 100,
        text_bytes_max: 60,
        retries_max: 2,
        back_off: Duration::from_millis(1),
    }
}

/// A vector that encodes the length of the text.
fn good(_: usize, seen: &Seen) -> Answer {
    let vectors: Vec<Value> = seen.texts().iter().map(|text| json!([text.len(), 1])).collect();
    Answer::Json(json!({ "embeddings": vectors }))
}

fn slope(vector: &[f32]) -> f32 {
    vector[0] / vector[1]
}

#[test]
fn ollama_is_asked_at_its_address_for_the_vectors_of_all_texts() {
    let server = Server::start(good);
    let embedder = server.embedder();
    assert_eq!(embedder.identity(), format!("ollama:{}/small", server.address));
    let vectors = embedder.embed(&["ab", "abcd"]).unwrap();
    assert_eq!(vectors.iter().map(|one| slope(one).round()).collect::<Vec<_>>(), [2.0, 4.0]);
    assert_eq!(embedder.dims(), Ok(2));
    let body = json!({ "model": "small", "input": ["ab", "abcd"] });
    let expected = Seen { path: "/v1/api/embed".to_owned(), key: None, body };
    assert_eq!(server.seen(), [expected]);
}

#[test]
fn openai_is_asked_at_its_address_with_the_key() {
    let server = Server::start(|_, _| {
        Answer::Json(json!({ "data": [
            { "index": 1, "embedding": [0, 5] }, { "index": 0, "embedding": [5, 0] },
        ]}))
    });
    let key = Some(Key::new("secret-key\n".to_owned()));
    let settings = Settings { protocol: Protocol::OpenAi, key, ..server.settings() };
    assert!(!format!("{settings:?}").contains("secret-key"));
    let embedder = crate::open(crate::Settings::Endpoint(settings)).unwrap();
    assert_eq!(embedder.identity(), format!("openai:{}/small", server.address));
    assert_eq!(embedder.embed(&["a", "b"]).unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
    assert!(!format!("{embedder:?}").contains("secret-key"));
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].path.as_str()), (1, "/v1/embeddings"));
    assert_eq!(seen[0].key.as_deref(), Some("Bearer secret-key"));
}

#[test]
fn an_embedder_opens_without_its_server_and_works_once_it_is_there() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let embedder = EndpointEmbedder::new(settings(&format!("http://{address}"))).unwrap();
    let failure = embedder.embed(&["a"]).unwrap_err();
    assert!(failure.is_passing(), "{failure:?}");
    assert!(failure.to_string().starts_with("The embedder at 127.0.0.1:"), "{failure}");
    assert!(embedder.dims().is_err());
    let _server = Server::at(address, good);
    assert_eq!(embedder.dims(), Ok(2));
    assert!(embedder.embed(&["a"]).is_ok());
}

#[test]
fn server_errors_are_retried_and_rejections_are_not() {
    for (status, requests) in [(500, 2), (503, 2), (429, 2), (400, 1), (404, 1), (302, 1)] {
        let server = Server::start(move |number, seen| match number {
            0 => Answer::Status(status),
            _ => good(number, seen),
        });
        let result = server.embedder().embed(&["a"]);
        assert_eq!(result.is_ok(), requests == 2, "{status}: {result:?}");
        assert_eq!(server.seen().len(), requests, "{status}");
    }
}

#[test]
fn attempts_are_bounded_and_a_query_has_one() {
    let server = Server::start(|_, _| Answer::Status(503));
    let embedder = server.embedder();
    let failure = embedder.embed(&["a"]).unwrap_err();
    assert_eq!(server.seen().len(), 3);
    let expected = format!(
        "The embedder at {} answered with status 503: it has an internal problem.",
        server.address
    );
    assert_eq!(failure.to_string(), expected);
    assert_eq!(embedder.embed_query("a").unwrap_err(), failure);
    assert_eq!(server.seen().len(), 4);
}

#[test]
fn messages_contain_neither_the_key_nor_the_server_text() {
    let server = Server::start(|_, _| Answer::Status(401));
    let key = Some(Key::new("secret-key".to_owned()));
    let embedder = EndpointEmbedder::new(Settings { key, ..server.settings() }).unwrap();
    let failure = embedder.embed(&["a"]).unwrap_err();
    assert!(!failure.is_passing());
    assert!(!format!("{failure} {failure:?}").contains("secret"), "{failure:?}");
    assert!(failure.to_string().contains("embedder.key_variable"), "{failure}");
}

#[test]
fn queries_fail_at_once_after_a_timeout_until_a_success() {
    let server = Server::start(|number, seen| match number {
        0 => Answer::Never,
        _ => good(number, seen),
    });
    let query_timeout = Duration::from_millis(50);
    let settings = Settings { query_timeout, ..server.settings() };
    let embedder = EndpointEmbedder::new(settings).unwrap();
    let failure = embedder.embed_query("a").unwrap_err();
    assert!(failure.to_string().ends_with("it did not answer within 50ms."), "{failure}");
    assert_eq!(embedder.embed_query("a").unwrap_err(), failure);
    assert_eq!(server.seen().len(), 1);
    assert!(embedder.embed(&["a"]).is_ok());
    assert!(embedder.recent_failure().is_none());
}

#[test]
fn a_slow_batch_is_not_retried() {
    let server = Server::start(|_, _| Answer::Never);
    let request_timeout = Duration::from_millis(50);
    let settings = Settings { request_timeout, ..server.settings() };
    let failure = EndpointEmbedder::new(settings).unwrap().embed(&["a"]).unwrap_err();
    assert!(failure.is_passing());
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn an_answer_without_vectors_is_rejected_with_a_reason() {
    type Give = fn() -> Answer;
    let answers: [(Give, &str); 5] = [
        (|| Answer::Text("<html>busy</html>"), "it is not the expected JSON"),
        (|| Answer::Json(json!({ "embeddings": [[1, 2]] })), "it has 1 vectors for 2 texts"),
        (|| Answer::Json(json!({ "embeddings": [[1, 2], [1]] })), "a vector has 1 dimensions"),
        (
            || Answer::Json(json!({ "embeddings": [[1, 2], [1, null]] })),
            "a number in it is not finite",
        ),
        (|| Answer::Endless, "it is larger than 327680 bytes"),
    ];
    for (answer, why) in answers {
        let server = Server::start(move |_, _| answer());
        let embedder = server.embedder();
        let failure = embedder.embed(&["a", "b"]).unwrap_err();
        assert!(failure.to_string().contains(why), "{failure}");
        assert!(!failure.is_passing(), "{failure}");
        assert_eq!(server.seen().len(), 1, "{failure}");
        assert_eq!(embedder.dims.get(), None, "{failure}");
    }
}

#[test]
fn the_first_answer_fixes_the_dimensions() {
    let server = Server::start(|number, _| {
        Answer::Json(json!({ "embeddings": [vec![1; if number == 1 { 3 } else { 2 }]] }))
    });
    let embedder = server.embedder();
    assert_eq!(embedder.dims(), Ok(2));
    let failure = embedder.embed(&["a"]).unwrap_err();
    assert!(failure.to_string().contains("a vector has 3 dimensions; earlier ones had 2"));
    assert!(embedder.embed(&["a"]).is_ok());
    assert_eq!(embedder.dims(), Ok(2));
}

#[test]
fn texts_are_sent_in_batches_that_keep_to_both_limits() {
    let server = Server::start(good);
    let long = "x".repeat(55);
    let texts = ["a", "b", "c", "d", &long, &long, "e"];
    let vectors = server.embedder().embed(&texts).unwrap();
    let lengths: Vec<usize> = server.seen().iter().map(|one| one.texts().len()).collect();
    assert_eq!(lengths, [3, 2, 2]);
    let slopes: Vec<f32> = vectors.iter().map(|one| slope(one).round()).collect();
    assert_eq!(slopes, [1.0, 1.0, 1.0, 1.0, 55.0, 55.0, 1.0]);
}

#[test]
fn long_texts_are_cut_and_empty_ones_are_not_sent() {
    let server = Server::start(good);
    let embedder = server.embedder();
    let long = "ü".repeat(40) + "x";
    let vectors = embedder.embed(&["", &format!("x{long}"), " \n"]).unwrap();
    assert_eq!(server.seen()[0].texts(), [format!("x{}", "ü".repeat(29))]);
    assert_eq!((&vectors[0], &vectors[2]), (&vec![0.0; 2], &vec![0.0; 2]));
    assert_eq!(slope(&vectors[1]).round(), 59.0);
    assert_eq!(embedder.embed_query("  ").unwrap(), [0.0; 2]);
    assert_eq!(embedder.embed(&[]).unwrap(), Vec::<Vec<f32>>::new());
}

#[test]
fn stopping_ends_a_call_that_waits() {
    let server = Server::start(|_, _| Answer::Never);
    let request_timeout = Duration::from_secs(60);
    let settings = Settings { request_timeout, ..server.settings() };
    let embedder = EndpointEmbedder::new(settings).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| embedder.embed(&["a"]));
        server.arrivals.recv_timeout(Duration::from_secs(60)).unwrap();
        embedder.stop();
        assert_eq!(waiting.join().unwrap(), Err(EmbedError::Stopped));
    });
    assert_eq!(embedder.embed_query("a"), Err(EmbedError::Stopped));
}

#[test]
fn the_embedder_works_inside_another_runtime() {
    let server = Server::start(good);
    let embedder = server.embedder();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async move {
        assert!(embedder.embed_query("a").is_ok());
        drop(embedder);
    });
}

#[test]
fn a_server_that_does_not_speak_tls_is_unreachable_over_https() {
    let server = Server::start(good);
    let embedder = EndpointEmbedder::new(settings(&format!("https://{}", server.address)));
    let failure = embedder.unwrap().embed_query("a").unwrap_err();
    assert!(matches!(failure, EmbedError::Unreachable { .. }), "{failure:?}");
}

#[test]
fn an_invalid_address_is_rejected_and_not_repeated() {
    for (url, why) in [
        ("", "it names no server"),
        ("localhost:1234", "it is not a URL"),
        ("/v1", "it names no server"),
        ("ftp://host/v1", "it starts with neither http:// nor https://"),
        (
            "https://me:pass@host",
            "it contains a password; name a variable in embedder.key_variable",
        ),
        ("https://host/v1?key=pass", "it contains a query"),
    ] {
        let failure = EndpointEmbedder::new(settings(url)).unwrap_err();
        assert_eq!(failure, EmbedError::Url { why }, "{url}");
        assert!(!failure.to_string().contains(":pass"));
    }
}

#[test]
fn a_key_with_invalid_characters_is_rejected() {
    let key = Some(Key::new("a\nb".to_owned()));
    let failure = EndpointEmbedder::new(Settings { key, ..settings("http://host") }).unwrap_err();
    assert_eq!(failure, EmbedError::Key);
}
