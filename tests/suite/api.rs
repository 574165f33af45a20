//! The local API on the wire: formats, OpenAPI document, events, metrics, callers.

use crate::support::conformance::conforms;
use crate::support::event_stream::Followed;
use klnode_api_types::ErrorKind;
use klnode_api_types::{Entry, EntryIdentity, ErrorBody, NewEntry};
use klnode_server::{Limits, document};
use klnode_tests::test_server::{Answer, Doors, PATIENCE, Served, TOKEN, ask, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

const PACKED: (&str, &str) = ("Content-Type", "application/msgpack");

fn served() -> Served {
    Served::start(Limits::default(), Doors::Socket)
}

fn lesson(title: &str) -> Value {
    json!({ "title": title, "content": "A short lesson.", "evidence": ["run:1"] })
}

/// Writes an entry and returns its id.
fn create(node: &Served, title: &str) -> String {
    let answer = node.json("POST", "/v1/entries", &lesson(title));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn problem(answer: &Answer) -> String {
    let body: ErrorBody = serde_json::from_slice(&answer.body).expect("an error in JSON");
    body.error.message
}

#[test]
fn messagepack_and_json_carry_the_same_data_both_ways() {
    let node = served();
    let new = NewEntry {
        title: "packed".into(),
        content: "A short lesson.".into(),
        evidence: vec!["run:1".into()],
        ..NewEntry::default()
    };
    let packed = rmp_serde::to_vec_named(&new).unwrap();
    let answer = node.ask("POST", "/v1/entries", &[PACKED], &packed);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("content-type: application/msgpack"), "{}", answer.head);
    let named: EntryIdentity =
        rmp_serde::from_slice(&answer.body).expect("packed like the request");

    let path = format!("/v1/entries/{}", named.id);
    let shown = node.ask("GET", &path, &[], b"");
    assert!(shown.head.contains("content-type: application/json"), "{}", shown.head);
    let accept = [("Accept", "text/html, application/msgpack;q=0.5")];
    let packed = node.ask("GET", &path, &accept, b"");
    let packed: Entry = rmp_serde::from_slice(&packed.body).expect("packed as accepted");
    assert_eq!(serde_json::to_value(&packed).unwrap(), shown.json());
    assert_eq!(packed.title, "packed");

    let accept = [PACKED, ("Accept", "application/json")];
    let body = rmp_serde::to_vec_named(&new).unwrap();
    let answer = node.ask("POST", "/v1/entries", &accept, &body);
    assert!(
        answer.json()["code"].is_string(),
        "the Accept header takes precedence over Content-Type"
    );
}

#[test]
fn mistakes_are_answered_in_the_format_of_the_caller() {
    let node = served();
    let answer = node.ask("POST", "/v1/entries", &[PACKED], b"\xc1 no messagepack");
    assert_eq!(answer.status, 400);
    let body: ErrorBody = rmp_serde::from_slice(&answer.body).expect("packed");
    assert_eq!(body.error.kind, ErrorKind::Invalid);
    assert!(
        body.error.message.starts_with("The request could not be read: "),
        "{}",
        body.error.message
    );
    let hint = body.error.hint.expect("a way out");
    assert!(hint.starts_with("See /v1/openapi.json "), "{hint}");
    let path = node.ask("GET", "/v2", &[("Accept", "application/msgpack")], b"");
    let body: ErrorBody = rmp_serde::from_slice(&path.body).expect("packed");
    assert_eq!(body.error.kind, ErrorKind::NotFound);
    let path = node.ask("GET", "/v1/entries/%FF", &[("Accept", "application/msgpack")], b"");
    let body: ErrorBody = rmp_serde::from_slice(&path.body).expect("packed");
    assert_eq!((path.status, body.error.kind), (400, ErrorKind::Invalid), "{}", body.error.message);

    let two = [rmp_serde::to_vec_named(&json!({"outcome": "success"})).unwrap(), vec![0]].concat();
    let entry = create(&node, "observed");
    let answer = node.ask("POST", &format!("/v1/entries/{entry}/observations"), &[PACKED], &two);
    let body: ErrorBody = rmp_serde::from_slice(&answer.body).expect("packed");
    assert!(body.error.message.ends_with("1 bytes follow the value."), "{}", body.error.message);

    let body = lesson("odd").to_string();
    let answer =
        node.ask("POST", "/v1/entries", &[("Content-Type", "text/plain")], body.as_bytes());
    assert_eq!(answer.status, 415);
    let expected = "The request has the Content-Type text/plain; \
                    it must be application/json or application/msgpack.";
    assert_eq!(problem(&answer), expected);
    let parameters = [("Content-Type", "Application/JSON; charset=utf-8")];
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    for headers in [&parameters[..], &form, &[]] {
        let answer = node.ask("POST", "/v1/entries", headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{headers:?}: {answer:?}");
    }
    let answer = node.ask("POST", &format!("/v1/entries/{entry}/retract"), &[], b"");
    assert_eq!(answer.status, 200, "a route without a body accepts an empty one: {answer:?}");
}

/// The first line of a response that may be a stream.
fn first_line(node: &Served, method: &str, path: &str) -> String {
    let mut stream = node.connect();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: klnode\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn every_route_is_described_with_its_errors_and_every_description_has_a_route() {
    let node = served();
    let served = node.ask("GET", "/v1/openapi.json", &[], b"");
    assert_eq!(served.text(), document());
    let document: Value = serde_json::from_str(&document()).unwrap();
    let mut routes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            routes += 1;
            let what = format!("{method} {path}");
            for status in ["401", "403", "500", "503"] {
                assert!(operation["responses"][status].is_object(), "{what} lacks {status}");
            }
            if path.contains("{entry}") {
                assert!(operation["responses"]["404"].is_object(), "{what}");
                let parameters = operation["parameters"].as_array().expect("the entry");
                assert!(parameters.iter().any(|p| p["name"] == "entry"), "{what}");
            }
            // Import and export bodies are lines, independent of the format of other bodies.
            let body = operation.get("requestBody").filter(|_| !path.starts_with("/v1/import"));
            if let Some(body) = body {
                assert!(body["content"]["application/msgpack"].is_object(), "{what}");
                assert!(operation["responses"]["415"].is_object(), "{what}");
                // An unknown field is refused as a mistake.
                let schema = body["content"]["application/json"]["schema"]["$ref"].as_str();
                let pointer = schema.expect("a type").trim_start_matches('#');
                let schema = document.pointer(pointer).expect("it is described");
                assert_eq!(schema["additionalProperties"], false, "{what}: {pointer}");
            }
            assert!(operation["summary"].is_string(), "{what} has no summary");
            let path = path.replace("{entry}", "00000000000000000000000000000000");
            if path == "/v1/events" {
                assert!(first_line(&node, &method.to_uppercase(), &path).contains(" 200 "));
                continue;
            }
            let answer = node.ask(&method.to_uppercase(), &path, &[], b"");
            assert!(!answer.text().contains("The path does not "), "{what}: {answer:?}");
        }
    }
    assert!(routes >= 13, "{routes}");
    for (method, path) in [("GET", "/v2"), ("DELETE", "/v1/status")] {
        let answer = node.ask(method, path, &[], b"");
        assert_eq!(answer.status, 404);
        assert!(problem(&answer).starts_with("The path does not "), "{answer:?}");
        let hint = answer.json()["error"]["hint"].to_string();
        assert!(hint.contains("/v1/openapi.json"), "{hint}");
    }
}

#[test]
fn described_path_parameters_occur_in_the_path() {
    let document: Value = serde_json::from_str(&document()).unwrap();
    let mut parts = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array();
            for parameter in parameters.into_iter().flatten().filter(|p| p["in"] == "path") {
                let name = parameter["name"].as_str().expect("a name");
                assert!(path.contains(&format!("{{{name}}}")), "{method} {path}: {name}");
                parts += 1;
            }
        }
    }
    assert!(parts >= 13, "{parts}");
}

#[test]
fn events_report_new_records_and_resume_where_they_stopped() {
    conforms("S004-11");
    let node = served();
    create(&node, "before");
    let mut live = Followed::new(&node, "");
    let entry = create(&node, "after");
    let path = |rest: &str| format!("/v1/entries/{entry}/{rest}");
    let (id, name, data) = live.next().unwrap();
    assert_eq!((id, name.as_str()), (2, "entry"));
    assert_eq!(data["seq"], 2);
    assert_eq!(data["entry"], entry.as_str());
    assert_eq!(data["facet"], "claims");
    assert!(data["code"].as_str().unwrap().starts_with("L-"));
    assert!(data["at"].as_u64().unwrap() > 1_700_000_000_000);
    let outcome = json!({"outcome": "success"});
    assert_eq!(node.json("POST", &path("observations"), &outcome).status, 200);
    assert_eq!(live.next().unwrap().1, "observation");
    assert_eq!(node.ask("POST", &path("retract"), &[], b"").status, 200);
    assert_eq!(live.next().unwrap().1, "retraction");
    assert_eq!(node.ask("POST", &path("forget"), &[], b"").status, 200);
    let (seq, name, data) = live.next().unwrap();
    assert_eq!(name, "forgotten");
    assert!(data.get("code").is_none(), "a forgotten entry has no code");

    let mut late = Followed::new(&node, "?since=0");
    assert_eq!(late.next().unwrap().0, 1);
    assert_eq!(late.next().unwrap().0, seq, "forgotten records are not replayed");
    let beyond = node.ask("GET", "/v1/events?since=99", &[], b"");
    assert_eq!(beyond.status, 400);
    let expected = format!("`since` is 99, but the feed ends at {seq}.");
    assert_eq!(problem(&beyond), expected);
}

#[test]
fn automatic_maintenance_is_reported_to_subscribers() {
    conforms("S004-131");
    let node = served();
    let (one, two) = (create(&node, "Bound the queue"), create(&node, "Bound the queue"));
    let mut live = Followed::new(&node, "");
    let run = |service: &str| {
        let ran = node.json("POST", "/v1/maintenance/run", &json!({"service": service}));
        assert_eq!(ran.status, 200, "{}", ran.text());
        ran.json()
    };
    assert_eq!(run("duplicates")["noted"][0]["stage"], "made");
    // The link is an ordinary record; the maintenance event that caused it follows.
    let (seq, name, data) = live.next().unwrap();
    assert_eq!((seq, name.as_str(), &data["entry"]), (3, "entry", &json!(two)));
    let (id, name, data) = live.next().unwrap();
    assert_eq!((id, name.as_str()), (0, "maintenance"), "it has no feed position");
    assert_eq!((&data["number"], &data["matter"]), (&json!(1), &json!("sameness")));
    assert_eq!((&data["stage"], &data["service"]), (&json!("made"), &json!("duplicates")));
    let ids: Vec<&Value> = data["entries"].as_array().unwrap().iter().map(|of| &of["id"]).collect();
    assert_eq!(ids, [&json!(one), &json!(two)]);
    assert!(data["entries"][0]["code"].as_str().unwrap().starts_with("L-"));
    // A late subscriber continues by the number. Proposals write no record but are sent as well.
    let mut late = Followed::new(&node, "?noted_since=0");
    assert_eq!(late.next().unwrap().2["number"], 1);
    for content in [
        "Set the timeout of the billing client to 5 seconds.",
        "The billing client's timeout should be set to 5 s.",
    ] {
        let new = json!({"title": "Billing timeout", "content": content, "evidence": ["run:1"]});
        assert_eq!(node.json("POST", "/v1/entries", &new).status, 200);
        assert_eq!(late.next().unwrap().1, "entry");
    }
    run("duplicates");
    let (_, name, data) = late.next().unwrap();
    assert_eq!((name.as_str(), &data["stage"]), ("maintenance", &json!("proposed")));
    // A number that is not assigned yet is refused: the subscriber would wait in silence.
    let refused = |noted: u64| {
        let beyond = node.ask("GET", &format!("/v1/events?noted_since={noted}"), &[], b"");
        assert_eq!(beyond.status, 400, "{noted}");
        let told = problem(&beyond);
        let start = format!("`noted_since` is {noted}, but the journal ends at ");
        let newest = told.strip_prefix(&start).unwrap_or_else(|| panic!("{told}"));
        newest.trim_end_matches('.').parse::<u64>().unwrap()
    };
    let newest = refused(u64::MAX);
    assert_eq!(refused(newest + 1), newest);
    assert!(newest >= data["number"].as_u64().unwrap());
    let mut last = Followed::new(&node, &format!("?noted_since={newest}"));
    create(&node, "after");
    assert_eq!(last.next().unwrap().1, "entry", "the newest number is accepted");
}

#[test]
fn an_open_stream_blocks_neither_the_writer_nor_the_shutdown() {
    let mut node = served();
    // This stream is never read: the kernel's buffer fills, and other clients are not affected.
    let _deaf = Followed::new(&node, "?since=0");
    let mut followed = Followed::new(&node, "");
    for number in 0..50 {
        create(&node, &format!("number {number}"));
    }
    for _ in 0..50 {
        assert!(followed.next().is_some());
    }
    let begun = Instant::now();
    node.stop();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(followed.next().is_none(), "the stream ends as it should");
}

#[test]
fn streams_send_keep_alives_and_have_their_own_limit() {
    let interval = Duration::from_millis(20);
    let limits = Limits { event_streams_max: 2, keep_alive_interval: interval, ..<_>::default() };
    let node = Served::start(limits, Doors::Socket);
    let (mut one, _two) = (Followed::new(&node, ""), Followed::new(&node, ""));
    let mut line = String::new();
    one.0.read_line(&mut line).unwrap();
    one.0.read_line(&mut line).unwrap();
    assert!(line.contains("\r\n:") || line.contains(":\n"), "a comment: {line:?}");
    let third = node.ask("GET", "/v1/events", &[], b"");
    assert_eq!(third.status, 503);
    assert!(problem(&third).contains("tuning.api.event_streams_max"), "{}", third.text());
    create(&node, "requests still have slots");
    drop(one);
    let deadline = Instant::now() + PATIENCE;
    while first_line(&node, "GET", "/v1/events").contains(" 503 ") {
        assert!(Instant::now() < deadline, "a slot is free again");
    }
}

/// Parses the text format strictly: contiguous families, help and type first, valid numbers.
fn families(text: &str) -> BTreeMap<String, (String, Vec<(String, f64)>)> {
    let mut found = BTreeMap::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, help) = line.strip_prefix("# HELP ").expect(line).split_once(' ').unwrap();
        assert!(help.ends_with('.'), "{line}");
        assert!(name.starts_with("klnode_"), "{line}");
        let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).expect(line);
        let mut samples = Vec::new();
        while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
            let (series, value) = sample.rsplit_once(' ').expect(sample);
            let base = series.split('{').next().unwrap();
            let suffixes: &[&str] = match kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(suffixes.iter().any(|suffix| base == format!("{name}{suffix}")), "{sample}");
            samples.push((series.to_owned(), value.parse().expect(sample)));
        }
        assert!(found.insert(name.to_owned(), (kind.to_owned(), samples)).is_none(), "{name}");
    }
    found
}

#[test]
fn metrics_are_valid_prometheus_text_and_count_requests() {
    let node = served();
    create(&node, "counted");
    for _ in 0..3 {
        node.ask("GET", "/v1/entries/not%20an%20id", &[], b"");
    }
    node.ask("GET", "/no/such/path", &[], b"");
    let answer = node.ask("GET", "/metrics", &[], b"");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    let families = families(&answer.text());
    let value = |family: &str, series: &str| {
        let samples = &families.get(family).unwrap_or_else(|| panic!("{family}")).1;
        let found = samples.iter().find(|(name, _)| name == series);
        found.unwrap_or_else(|| panic!("{series} in {samples:?}")).1
    };
    assert_eq!(value("klnode_entries", "klnode_entries"), 1.0);
    assert_eq!(value("klnode_feed_head_position", "klnode_feed_head_position"), 1.0);
    assert_eq!(value("klnode_quarantined_records", "klnode_quarantined_records"), 0.0);
    assert_eq!(value("klnode_writer_queue_commands", "klnode_writer_queue_commands"), 0.0);
    assert!(value("klnode_resident_memory_bytes", "klnode_resident_memory_bytes") > 1e6);
    assert!(value("klnode_uptime_seconds", "klnode_uptime_seconds") > 0.0);
    let total =
        |labels: &str| value("klnode_requests_total", &format!("klnode_requests_total{labels}"));
    assert_eq!(total("{method=\"POST\",route=\"/v1/entries\",status=\"2xx\"}"), 1.0);
    assert_eq!(total("{method=\"GET\",route=\"/v1/entries/{entry}\",status=\"4xx\"}"), 3.0);
    assert_eq!(total("{method=\"GET\",route=\"other\",status=\"4xx\"}"), 1.0);
    let name = "klnode_request_duration_seconds";
    let labels = "method=\"GET\",route=\"/v1/entries/{entry}\"";
    assert_eq!(value(name, &format!("{name}_count{{{labels}}}")), 3.0);
    assert_eq!(value(name, &format!("{name}_bucket{{{labels},le=\"+Inf\"}}")), 3.0);
    let (kind, samples) = &families[name];
    assert_eq!(kind, "histogram");
    let buckets =
        samples.iter().filter(|(series, _)| series.contains(&format!("_bucket{{{labels}")));
    let counts: Vec<f64> = buckets.map(|(_, count)| *count).collect();
    assert!(counts.len() > 5 && counts.is_sorted(), "{counts:?}");
}

#[test]
fn metrics_report_index_lag_and_query_outcomes() {
    let node = served();
    create(&node, "Rotate signing keys");
    let ask = |query: &str| node.json("POST", "/v1/search", &json!({ "query": query })).json();
    assert_eq!(ask("rotate signing keys")["hits"].as_array().unwrap().len(), 1);
    assert_eq!(ask("recipe for apple pie")["abstained"], true);
    assert_eq!(ask("rotate keys")["abstained"], false);
    let deadline = Instant::now() + PATIENCE;
    let families = loop {
        let families = families(&node.ask("GET", "/metrics", &[], b"").text());
        if families["klnode_index_vectors_behind_records"].1[0].1 == 0.0 {
            break families;
        }
        assert!(Instant::now() < deadline, "the index does not catch up: {families:?}");
        std::thread::yield_now();
    };
    let value = |family: &str, labels: &str| {
        let series = format!("{family}{labels}");
        let samples = &families.iter().find(|(name, _)| family.starts_with(*name)).unwrap().1.1;
        let found = samples.iter().find(|(name, _)| *name == series);
        found.unwrap_or_else(|| panic!("{series} in {samples:?}")).1
    };
    for (name, expected) in [
        ("klnode_index_words_entries", 1.0),
        ("klnode_index_vectors_entries", 1.0),
        ("klnode_index_words_behind_records", 0.0),
        ("klnode_index_rebuild_waiting_texts", 0.0),
        ("klnode_index_faults", 0.0),
        ("klnode_search_duration_seconds_count", 3.0),
    ] {
        assert_eq!(value(name, ""), expected, "{name}");
    }
    assert_eq!(value("klnode_searches_total", "{outcome=\"answered\"}"), 2.0);
    assert_eq!(value("klnode_searches_total", "{outcome=\"abstained\"}"), 1.0);
    assert_eq!(families["klnode_search_duration_seconds"].0, "histogram");
}

#[test]
fn the_history_names_the_local_caller_of_each_record() {
    let node = Served::start(Limits::default(), Doors::Both);
    let entry = create(&node, "told");
    let path = format!("/v1/entries/{entry}");
    let edit = json!({"registers": {"summary": "In short."}, "add_tags": ["go"]});
    assert_eq!(node.json("PATCH", &path, &edit).status, 200);
    let token = format!("Bearer {TOKEN}");
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
    let observations = format!("{path}/observations");
    let body = json!({"outcome": "failure"}).to_string();
    let answer = ask(node.connect_tcp(), "POST", &observations, &headers, body.as_bytes());
    assert_eq!(answer.status, 200, "{answer:?}");

    let history = node.ask("GET", &format!("{path}/history"), &[], b"").json();
    let records = history["records"].as_array().unwrap();
    assert_eq!(records.len(), 2, "an author's word in a facet is one record: {history:#}");
    let claims = &records[0];
    assert_eq!(claims["facet"], "claims");
    assert_eq!(claims["own"], true);
    assert_eq!(claims["counter"], 2);
    assert_eq!(claims["caller"]["way"], "socket");
    assert_eq!(claims["caller"]["pid"], std::process::id());
    assert!(claims["caller"]["uid"].is_u64());
    let changes = claims["changes"].as_array().unwrap();
    let change = |field: &str| {
        let found = changes.iter().find(|change| change["field"] == field);
        found.map(|change| (change["act"].as_str().unwrap(), change["value"].as_str().unwrap()))
    };
    assert_eq!(change("title"), Some(("set", "told")));
    assert_eq!(change("summary"), Some(("set", "In short.")));
    assert_eq!(change("tags"), Some(("added", "go")));
    assert_eq!(change("evidence"), Some(("added", "run:1")));
    let tally = &records[1];
    assert_eq!(tally["caller"], json!({"way": "tcp", "uid": null, "pid": null}));
    assert_eq!(tally["observations"][0]["failures"], 1.0);
    assert_eq!(tally["observations"][0]["successes"], 0.0);
    assert_eq!(tally["observations"][0]["day"].as_str().unwrap().len(), 10);

    assert_eq!(node.ask("POST", &format!("{path}/forget"), &[], b"").status, 200);
    let history = node.ask("GET", &format!("{path}/history"), &[], b"").json();
    let records = history["records"].as_array().unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["facet"], "tombstone");
    assert_eq!(records[0]["caller"]["pid"], std::process::id());
}

#[test]
fn over_tcp_only_local_requests_with_the_token_are_served() {
    let node = Served::start(Limits::default(), Doors::Both);
    let port = node.tcp.unwrap().port();
    let token = format!("Bearer {TOKEN}");
    let good = ("Authorization", token.as_str());
    let status = |headers: &[(&str, &str)]| {
        let answer = ask(node.connect_tcp(), "GET", "/v1/status", headers, b"");
        (answer.status, answer)
    };
    assert_eq!(status(&[good]).0, 200);
    let host = format!("127.0.0.1:{port}");
    let origin = format!("http://{host}");
    assert_eq!(status(&[good, ("Host", &host), ("Origin", &origin)]).0, 200);
    let (refused, answer) = status(&[]);
    assert_eq!(refused, 401);
    let body: ErrorBody = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body.error.kind, ErrorKind::Unauthorised);
    assert!(answer.head.contains("www-authenticate: Bearer"), "{}", answer.head);
    assert!(body.error.hint.unwrap().contains("the file `token`"));
    let short = format!("Bearer {}", &TOKEN[1..]);
    for wrong in ["Bearer", "Bearer x", TOKEN, &short] {
        assert_eq!(status(&[("Authorization", wrong)]).0, 401, "{wrong}");
    }
    for host in ["example.org", "klnode.example.org", "10.0.0.1"] {
        assert_eq!(status(&[good, ("Host", host)]).0, 403, "{host}");
    }
    for origin in ["http://example.org", "null", "http://127.0.0.1:1", "http://localhost"] {
        assert_eq!(status(&[good, ("Host", &host), ("Origin", origin)]).0, 403, "{origin}");
    }
    // The Unix socket needs neither: file permissions authorise the caller.
    assert_eq!(node.ask("GET", "/v1/status", &[("Host", "example.org")], b"").status, 200);
    let head = read({
        let mut stream = node.connect_tcp();
        stream.write_all(b"GET /v1/status HTTP/1.0\r\n\r\n").unwrap();
        stream
    });
    assert_eq!(head.status, 403, "without a host: {head:?}");
}

#[test]
fn a_listing_applies_its_filters() {
    let node = served();
    let tagged = |title: &str, kind: &str, tag: &str| {
        let mut new = lesson(title);
        new["type"] = kind.into();
        new["tags"] = json!([tag]);
        let answer = node.json("POST", "/v1/entries", &new);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    tagged("one", "lesson", "auth/jwt");
    tagged("two", "norm", "auth");
    tagged("three", "lesson", "authors");
    let titles = |query: &str| {
        let answer = node.ask("GET", &format!("/v1/entries?{query}"), &[], b"");
        let list: Value = serde_json::from_slice(&answer.body).unwrap();
        let entries = list["entries"].as_array().cloned().unwrap_or_default();
        let mut titles: Vec<String> =
            entries.iter().map(|entry| entry["title"].as_str().unwrap().to_owned()).collect();
        titles.sort_unstable();
        (answer.status, titles.join(" "))
    };
    assert_eq!(titles(""), (200, "one three two".into()));
    assert_eq!(titles("tag=auth"), (200, "one two".into()));
    assert_eq!(titles("tag=auth&type=norm&status=candidate"), (200, "two".into()));
    assert_eq!(titles("workspace=main&type=lesson"), (200, "one three".into()));
    assert_eq!(titles("status=verified"), (200, String::new()));
    for wrong in ["type=poem", "status=good", "limit=0", "limit=1001"] {
        assert_eq!(titles(wrong).0, 400, "{wrong}");
    }
    assert_eq!(titles("limit=1000").0, 200);
    assert_eq!(titles("workspace=nowhere").0, 404);
}
