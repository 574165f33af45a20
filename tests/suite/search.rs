//! Search as people and programs use it: real processes, over the socket.

use crate::support::conformance::conforms;
use crate::support::homes::files;
use crate::support::node_process::{Running, done, run, start, told};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A node in a temporary home.
struct Asked {
    home: tempfile::TempDir,
    node: Option<Running>,
}

impl Asked {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (node, _) = start(home.path());
        Self { home, node: Some(node) }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        run(self.path(), arguments)
    }

    /// JSON output of a verb that must succeed.
    fn json(&self, arguments: &[&str]) -> Value {
        done(self.path(), arguments)
    }

    fn add(&self, title: &str, content: &str, more: &[&str]) -> String {
        let arguments = ["add", "--title", title, "--content", content, "--evidence", "doc:notes"];
        self.json(&[&arguments, more].concat())["code"].as_str().unwrap().to_owned()
    }

    /// Id of a new task.
    fn begin(&self) -> String {
        let begun = self.json(&["task", "begin", "--agent", "tester", "--goal", "try it"]);
        begun["task"].as_str().unwrap().to_owned()
    }

    /// Codes of the hits, and whether the node abstained.
    fn search(&self, query: &str, more: &[&str]) -> (Vec<String>, bool) {
        let arguments = [&["search", query, "--deterministic", "--json"], more].concat();
        let output = self.run(&arguments);
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let hits = answer["hits"].as_array().unwrap();
        assert_eq!(output.status.code(), Some(i32::from(hits.is_empty())), "{answer}");
        let codes = hits.iter().map(|hit| hit["code"].as_str().unwrap().to_owned()).collect();
        (codes, answer["abstained"].as_bool().unwrap())
    }

    fn stop(&mut self) {
        let mut node = self.node.take().expect("runs");
        node.0.kill().unwrap();
        node.0.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.node = Some(start(self.path()).0);
    }

    /// Waits until the index is complete.
    fn settle(&self) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.json(&["status"]);
            let index = &status["index"];
            if index["lag"] == 0 && index["rebuild"].is_null() && !index["model"].is_null() {
                return status;
            }
            assert!(Instant::now() < deadline, "the index does not settle: {status}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_added_entry_is_found_by_the_next_search() {
    conforms("S002-39");
    let node = Asked::new();
    let mut codes = Vec::new();
    for number in 0..40 {
        let word = format!("zq{number}x");
        let code = node.add(&format!("About {word}"), "Words that occur nowhere else.", &[]);
        assert_eq!(node.search(&word, &[]).0.first(), Some(&code), "{word}");
        codes.push(code);
    }
    node.settle();
    for (number, code) in codes.iter().enumerate() {
        let found = node.search(&format!("zq{number}x"), &[]).0;
        assert_eq!(found.first(), Some(code), "{number}");
    }
}

#[test]
fn symbols_paths_and_error_codes_are_found_whole_and_in_part() {
    let node = Asked::new();
    let context = node.add("Check ctx.Err() after calls", "In src/auth/middleware.go:42.", &[]);
    let borrow = node.add("E0502 while iterating", "Collect before you call push_back.", &[]);
    let pool = node.add("HttpConnectionPool leaks", "Close it in tearDown.", &[]);
    for (query, expected) in [
        ("ctx.Err()", &context),
        ("middleware.go", &context),
        ("src/auth/middleware.go:42", &context),
        ("error[E0502]", &borrow),
        ("push_back", &borrow),
        ("HttpConnectionPool", &pool),
        ("connection pool", &pool),
    ] {
        assert_eq!(node.search(query, &[]).0.first(), Some(expected), "{query}");
    }
}

#[test]
fn evidence_moves_the_ranking() {
    let node = Asked::new();
    let text = "Wait longer after each failed attempt.";
    let one = node.add("Retry the billing gateway with backoff", text, &[]);
    let two = node.add("Retry the billing gateway with backoff", text, &[]);
    let (first, second) =
        if node.search("retry billing gateway", &[]).0[0] == one { (one, two) } else { (two, one) };
    for _ in 0..10 {
        node.json(&["feedback", &second, "--success", "--task", &node.begin()]);
    }
    assert_eq!(node.search("retry billing gateway", &[]).0, [second.clone(), first.clone()]);
    for _ in 0..20 {
        node.json(&["feedback", &second, "--harmful", "--task", &node.begin()]);
    }
    assert_eq!(node.search("retry billing gateway", &[]).0, [first, second]);
}

#[test]
fn a_search_without_relevant_entries_abstains() {
    let node = Asked::new();
    assert_eq!(node.search("anything", &[]), (Vec::new(), true), "an empty store");
    node.add("Pin the linker version", "Builds differ between lld 17 and 18.", &[]);
    assert_eq!(node.search("recipe for apple pie", &[]), (Vec::new(), true));
    assert_eq!(node.search("???", &[]), (Vec::new(), true));
    let output = node.run(&["search", "recipe for apple pie", "--nearest"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Nearest:") && text.contains("Pin the linker version"), "{text}");
}

#[test]
fn filters_apply_and_marks_hide_and_lift_entries() {
    conforms("S002-36");
    let node = Asked::new();
    let jwt = node.add("Rotate signing keys", "Tokens outlive keys.", &["--tag", "auth/jwt"]);
    let norm = node.add("Rotate on-call weekly", "Rota of the team.", &["--type", "norm"]);
    let thread = node.add("Rotate logs", "By size.", &["--thread", "ops", "--workspace", "local"]);
    let found = |more: &[&str]| {
        let (mut codes, _) = node.search("rotate", &[&["--all-threads"], more].concat());
        codes.sort();
        codes
    };
    let only = |code: &String| vec![code.clone()];
    let mut all = vec![jwt.clone(), norm.clone(), thread.clone()];
    all.sort();
    assert_eq!(found(&[]), all);
    assert_eq!(found(&["--tag", "auth"]), only(&jwt));
    assert_eq!(found(&["--type", "norm"]), only(&norm));
    assert_eq!(found(&["--workspace", "local"]), only(&thread));
    assert_eq!(found(&["--memory", "procedural"]), only(&norm));
    node.settle();
    assert_eq!(found(&["--tag", "auth"]), only(&jwt), "from the index");
    assert_eq!(found(&["--workspace", "local"]), only(&thread));
    assert_eq!(node.search("rotate", &["--thread", "ops"]).0[0], thread, "preferred");
    node.json(&["mark", "--mute", &norm]);
    node.json(&["archive", &jwt]);
    assert_eq!(found(&[]), only(&thread));
    assert_eq!(found(&["--archived"]).len(), 2);
    node.json(&["mark", "--mute", &norm, "--undo"]);
    node.json(&["mark", "--pin", &norm]);
    assert_eq!(node.search("rotate", &[]).0[0], norm, "pinned");
    node.json(&["mark", "--wrong", &norm]);
    assert_eq!(found(&[]), only(&thread));
}

#[test]
fn a_thread_can_be_searched_and_listed_alone() {
    let node = Asked::new();
    let inside = node.add("Rotate logs", "By size.", &["--thread", "ops"]);
    let outside = node.add("Rotate keys", "By age.", &[]);
    let thread = ["--thread", "ops"];
    assert!(
        node.search("rotate", &thread).0.contains(&outside),
        "a thread is preferred, not exclusive"
    );
    let only = [&thread[..], &["--only-thread"]].concat();
    assert_eq!(node.search("rotate", &only).0, std::slice::from_ref(&inside));
    let unnamed = node.run(&["search", "rotate", "--only-thread"]);
    assert_eq!(unnamed.status.code(), Some(2), "{}", told(&unnamed));
    let listed = node.json(&["list", "--thread", "ops"]);
    let codes: Vec<&Value> =
        listed["entries"].as_array().unwrap().iter().map(|entry| &entry["code"]).collect();
    assert_eq!(codes, [&json!(inside)]);
    assert_eq!(node.run(&["list", "--thread", "nosuch"]).status.code(), Some(1));
}

#[test]
fn a_filter_applies_in_each_engine_despite_many_nearer_entries() {
    let node = Asked::new();
    let home = node.path().join("lines.jsonl");
    let line =
        |n: usize| format!("{{\"title\":\"Rotate signing keys {n}\",\"content\":\"Now.\"}}\n");
    std::fs::write(&home, (0..130).map(line).collect::<String>()).unwrap();
    assert!(node.run(&["import", home.to_str().unwrap()]).status.success());
    let content = "Teams should rotate those keys at some time, signing or not.";
    let tagged = node.add("An old note", content, &["--tag", "auth"]);
    node.settle();
    for engine in ["vectors", "keyword", "hybrid"] {
        let more = ["--engine", engine, "--tag", "auth", "--nearest"];
        let answer = node.run(&[&["search", "rotate signing keys", "--json"], &more[..]].concat());
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let listed = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> = [listed("hits"), listed("nearest")].concat();
        let codes: Vec<&str> = all.iter().filter_map(|hit| hit["code"].as_str()).collect();
        assert_eq!(codes, [tagged.as_str()], "{engine}: {answer}");
    }
}

#[test]
fn an_answer_keeps_its_budget_and_reports_omitted_entries() {
    conforms("S000-30");
    conforms("S000-43");
    conforms("S002-22");
    let node = Asked::new();
    for number in 0..8 {
        let content = "Every retry doubles its waiting time. ".repeat(30);
        node.add(&format!("Backoff rule {number}"), &content, &[]);
    }
    let answer = node.json(&["search", "backoff rule retry", "--tier", "full"]);
    assert!(answer["tokens"].as_u64().unwrap() <= 500, "{}", answer["tokens"]);
    assert_eq!(answer["hits"].as_array().unwrap().len(), 5);
    assert_eq!(answer["left_out"].as_object().unwrap().len(), 3);
    let narrow = node.json(&["search", "backoff rule retry", "--tier", "full", "--budget", "60"]);
    assert!(narrow["tokens"].as_u64().unwrap() <= 60);
    let all = node.json(&["search", "backoff rule retry", "--all", "-n", "8", "--tier", "full"]);
    assert_eq!(all["hits"].as_array().unwrap().len(), 8);
    assert!(all["hits"][0]["content"].as_str().unwrap().len() > 1_000);
}

#[test]
fn a_hit_shows_a_few_tags_and_citations_within_its_token_cost() {
    let node = Asked::new();
    let topics = ["topic"; 20].join(" ");
    let mut tags: Vec<String> = (10..30).map(|number| format!("{number} topic")).collect();
    let mut cited: Vec<String> = (10..19).map(|number| format!("doc:{number} {topics}")).collect();
    // These would come first, and are too long to be shown in full.
    tags.push(format!("00 {topics}"));
    cited.push(format!("doc:{}", "0".repeat(301)));
    let mut more = Vec::new();
    more.extend(tags.iter().flat_map(|tag| ["--tag", tag.as_str()]));
    more.extend(cited.iter().flat_map(|evidence| ["--evidence", evidence.as_str()]));
    node.add("Rotate the zqkeys", "Every month.", &more);
    let ask = ["search", "rotate zqkeys", "--engine", "keyword"];
    let answer = node.json(&ask);
    let hit = &answer["hits"][0];
    assert_eq!(hit["tags"], json!(tags[..8]));
    let shown = hit["citations"].as_array().unwrap().iter();
    let shown: Vec<String> =
        shown.map(|one| format!("doc:{}", one["evidence_ref"].as_str().unwrap())).collect();
    assert_eq!(shown, cited[..4]);
    let left_out = json!("not shown here: 13 more tags and 7 more citations");
    assert!(hit["caveats"].as_array().unwrap().contains(&left_out), "{hit}");
    assert!(answer["tokens"].as_u64().unwrap() > 100, "{}", answer["tokens"]);
    let printed = node.run(&ask).stdout;
    assert!(printed.len() < 2_000, "{}", String::from_utf8_lossy(&printed));
    let shown = node.json(&["show", hit["code"].as_str().unwrap()]);
    assert_eq!(shown["tags"].as_array().unwrap().len(), 21, "complete in show");
}

#[test]
fn text_without_words_costs_tokens_too() {
    conforms("S002-62");
    let node = Asked::new();
    let digests = "7f3ab209".repeat(5_000);
    node.add("Digests of the release archive", &digests, &[]);
    let ask = ["search", "digests of the release archive", "--tier", "full"];
    let answer = node.json(&ask);
    assert_ne!(answer["hits"][0]["form"], "full", "{answer}");
    assert!(answer["tokens"].as_u64().unwrap() <= 500, "{}", answer["tokens"]);
    let whole = node.json(&[&ask[..], &["--all"]].concat());
    assert_eq!(whole["hits"][0]["content"], json!(digests));
    assert!(whole["tokens"].as_u64().unwrap() >= 10_000, "{}", whole["tokens"]);
}

#[test]
fn an_executor_is_served_only_when_it_deviates() {
    conforms("S002-04");
    let node = Asked::new();
    node.add("Retry with backoff", "On 503.", &[]);
    assert_eq!(node.search("retry backoff", &["--role", "executor"]), (Vec::new(), true));
    let (hits, _) = node.search("retry backoff", &["--role", "executor", "--deviating"]);
    assert_eq!(hits.len(), 1);
}

/// Damage to an index while its node is stopped.
type Damage<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn the_index_survives_a_restart_and_is_built_again_when_it_is_gone_or_damaged() {
    conforms("S004-11");
    let mut node = Asked::new();
    let codes: Vec<String> =
        (0..150).map(|n| node.add(&format!("Topic kx{n}y"), "A text about it.", &[])).collect();
    let mut model = node.settle()["index"]["model"].clone();
    let index = node.path().join("index");
    let damage: [Damage<'_>; 5] = [
        ("nothing", &|_| {}),
        ("no vectors", &|index| std::fs::remove_file(index.join("vectors.bin")).unwrap()),
        ("no index", &|index| std::fs::remove_dir_all(index).unwrap()),
        ("a flipped byte in the vectors", &|index| flip(&index.join("vectors.bin"))),
        ("flipped bytes in the words", &|index| {
            for file in files(&index.join("keyword")) {
                flip(&file);
            }
        }),
    ];
    for (what, damage) in damage {
        node.stop();
        damage(&index);
        node.start_again();
        // Only one hit, so that no co-occurrence affects the next search.
        let first = |word: &str| node.search(word, &["-n", "1"]).0;
        assert_eq!(first("kx7y"), [codes[7].clone()], "{what}, at once");
        let status = node.settle();
        assert_eq!(status["index"]["vectors"], 150, "{what}");
        assert_eq!(status["index"]["documents"], 150, "{what}");
        // Words are reweighted only if vectors are rebuilt.
        let is_same = status["index"]["model"] == model;
        let is_kept = what == "nothing" || what.ends_with("words");
        assert!(is_same || !is_kept, "{what}: {status}");
        model = status["index"]["model"].clone();
        assert_eq!(first("kx8y"), [codes[8].clone()], "{what}, when settled");
    }
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    if !bytes.is_empty() {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn forget_now_erases_the_text_from_every_file_of_the_home() {
    let node = Asked::new();
    // Imported together, so that they share their index files.
    let lines = node.path().join("lines.jsonl");
    let line = |n: usize| match n {
        15 => json!({"title": "The xylophonecipher", "content": "Hidden in quartzflute.",
                     "tags": ["vexedgnome"]}),
        _ => json!({"title": format!("Neighbour {n}"), "content": "It stays."}),
    };
    let text: Vec<String> = (0..31).map(|n| line(n).to_string()).collect();
    std::fs::write(&lines, text.join("\n")).unwrap();
    assert!(node.run(&["import", lines.to_str().unwrap()]).status.success());
    std::fs::remove_file(lines).unwrap();
    node.settle();
    let (codes, _) = node.search("xylophonecipher quartzflute", &[]);
    let [code] = &codes[..] else { panic!("{codes:?}") };
    let words = ["xylophonecipher", "quartzflute", "vexedgnome"];
    let holding = |word: &str| -> Vec<PathBuf> {
        let holds = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_default();
            let lower = bytes.to_ascii_lowercase();
            lower.windows(word.len()).any(|part| part == word.as_bytes())
        };
        let all = files(node.path()).into_iter();
        all.filter(|path| path.extension().is_none_or(|of| of != "sock")).filter(holds).collect()
    };
    for word in words {
        assert!(!holding(word).is_empty(), "{word} is somewhere before");
    }
    node.json(&["forget", code, "--now"]);
    for word in words {
        assert_eq!(holding(word), Vec::<PathBuf>::new(), "{word}");
    }
    // The keyword index does not store whole words, so its own list shows whether anything is left.
    let keyword = node.path().join("index/keyword");
    let meta: Value =
        serde_json::from_slice(&std::fs::read(keyword.join("meta.json")).unwrap()).unwrap();
    let segments = meta["segments"].as_array().unwrap();
    assert!(segments.iter().all(|segment| segment["deletes"].is_null()), "{meta:#}");
    let ids: Vec<String> =
        segments.iter().map(|of| of["segment_id"].as_str().unwrap().replace('-', "")).collect();
    for file in files(&keyword) {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_of_segment = name.len() >= 32;
        assert!(!is_of_segment || ids.iter().any(|id| name.starts_with(id)), "{file:?} {ids:?}");
    }
    assert_eq!(node.search("xylophonecipher", &[]), (Vec::new(), true));
    assert_eq!(node.search("neighbour stays", &[]).0.len(), 5);
}

#[test]
fn an_index_of_another_life_of_the_home_is_rebuilt() {
    let mut node = Asked::new();
    node.add("Common ground", "Before the copy.", &[]);
    node.settle();
    node.stop();
    let (store, index) = (node.path().join("store.redb"), node.path().join("index"));
    let (copy, aside) = (node.path().join("copy"), node.path().join("aside"));
    std::fs::copy(&store, &copy).unwrap();
    node.start_again();
    node.add("About xylophones", "Of the first life.", &[]);
    node.settle();
    node.stop();
    std::fs::rename(&index, &aside).unwrap();
    std::fs::rename(&copy, &store).unwrap();
    node.start_again();
    let flute = node.add("About quartzflutes", "Of the second life.", &[]);
    node.add("About gnomes", "Of the second life, too.", &[]);
    node.settle();
    node.stop();
    std::fs::remove_dir_all(&index).unwrap();
    std::fs::rename(&aside, &index).unwrap();
    node.start_again();
    let status = node.settle();
    assert_eq!(
        (&status["index"]["documents"], &status["index"]["vectors"]),
        (&3.into(), &3.into())
    );
    assert_eq!(node.search("quartzflutes", &["-n", "1"]).0, [flute]);
    assert_eq!(node.search("xylophones", &[]), (Vec::new(), true));
}

#[test]
fn foreign_entries_are_not_served_unasked_before_a_success() {
    let (theirs, node) = (Asked::new(), Asked::new());
    theirs.add("Rotate signing keys weekly", "Tokens outlive keys.", &[]);
    let file = theirs.path().join("all.jsonl");
    assert!(theirs.run(&["export", file.to_str().unwrap()]).status.success());
    assert!(node.run(&["import", file.to_str().unwrap()]).status.success());
    assert_eq!(node.search("rotate signing keys", &[]), (Vec::new(), true));
    let (codes, _) = node.search("rotate signing keys", &["--all"]);
    let [code] = &codes[..] else { panic!("{codes:?}") };
    node.json(&["feedback", code, "--success"]);
    assert_eq!(node.search("rotate signing keys", &[]).0, codes);
}

#[test]
fn invalid_queries_get_a_message() {
    let node = Asked::new();
    for (arguments, expected) in [
        (
            &["search", "x", "--tier", "huge"][..],
            "The tier `huge` does not exist; it must be one of",
        ),
        (&["search", "x", "--role", "boss"], "The role `boss` does not exist; it must be one of"),
        (&["search", "x", "--type", "poem"], "The type `poem` does not exist; it must be one of"),
        (
            &["search", "x", "--engine", "magic"],
            "The engine `magic` does not exist; it must be one of",
        ),
        (&["search", "x", "-n", "0"], "The limit is 0 hits; it must be 1 to 100."),
    ] {
        let output = node.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(told(&output).contains(expected), "{arguments:?}: {}", told(&output));
    }
    let long = "word ".repeat(4_000);
    let output = node.run(&["search", &long]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("at most 16384 are allowed"), "{}", told(&output));
}

#[test]
fn an_explanation_adds_up() {
    let node = Asked::new();
    node.add("Retry with backoff", "On 503.", &[]);
    let answer = node.json(&["search", "retry backoff", "--explain"]);
    let hit = &answer["hits"][0];
    let adds = hit["explain"]["adds"].as_object().unwrap();
    let sum: f64 = adds.values().map(|value| value.as_f64().unwrap()).sum();
    assert!((sum - hit["score"].as_f64().unwrap()).abs() < 1e-9, "{hit}");
    let weights = answer["weights"].as_object().unwrap();
    let total: f64 = weights.values().map(|value| value.as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9);
    assert_eq!(answer["fallback"], json!(null));
    let text = String::from_utf8(node.run(&["search", "retry backoff", "--explain"]).stdout);
    let text = text.unwrap();
    let added: Vec<f64> = text
        .lines()
        .filter_map(|line| line.split_once(" adds ")?.1.parse().ok())
        .take(adds.len())
        .collect();
    assert_eq!(added.len(), adds.len(), "{text}");
    assert!(added.is_sorted_by(|a, b| a >= b), "the largest first: {text}");
}

#[test]
fn a_verbatim_match_ranks_above_a_match_of_its_words() {
    let node = Asked::new();
    let quoted = node.add("Dragging", "Fails with: token channel should never be closed.", &[]);
    node.add("Sending", "Is the channel closed? Never: a token should be sent first.", &[]);
    let message = "token channel should never be closed";
    let answer = node.json(&["search", message, "--explain"]);
    let hits = answer["hits"].as_array().unwrap();
    let of = |is_quoted: bool| {
        let hit = hits.iter().find(|hit| (hit["code"] == json!(quoted)) == is_quoted).unwrap();
        let number = |value: &Value| value.as_f64().unwrap();
        (number(&hit["explain"]["phrase"]), number(&hit["relevance"]))
    };
    let ((whole, near), (other, far)) = (of(true), of(false));
    assert!(whole > 0.99 && other < 0.5, "{whole} {other}");
    assert!(near > far, "{near} {far}");
    let text = String::from_utf8(node.run(&["search", message, "--explain"]).stdout).unwrap();
    assert!(text.contains(", word for word 1.00"), "{text}");
}

#[test]
fn an_explanation_shows_the_fraction_of_identifiers() {
    let node = Asked::new();
    node.add("max_retries is 5", "The client gives up after max_retries.", &[]);
    for (query, engine, expect) in [
        ("max_retries", "hybrid", 1.0),
        ("retries of the client", "hybrid", 0.0),
        ("max_retries", "keyword", 0.0),
    ] {
        let answer = node.json(&["search", query, "--engine", engine, "--explain"]);
        assert_eq!(answer["hits"][0]["explain"]["names"], json!(expect), "{query}: {answer}");
    }
}

#[test]
fn an_empty_node_says_that_nothing_is_stored() {
    let node = Asked::new();
    let asked = || String::from_utf8(node.run(&["search", "rotate keys"]).stdout).unwrap();
    assert!(asked().starts_with("The store has no entries yet.\n"), "{}", asked());
    node.add("An old note", "Something about gardens.", &[]);
    assert!(asked().starts_with("No relevant entries (best score "), "{}", asked());
}

#[test]
fn an_empty_filter_result_names_the_filter() {
    let node = Asked::new();
    let said = |words: &[&str]| String::from_utf8(node.run(words).stdout).unwrap();
    let code = node.add("Billing runs at night", "Billing runs at two.", &["--tag", "billing"]);
    for (more, why) in [
        (&["--tag", "nope"][..], "No entry has the tag `nope`."),
        (&["--type", "norm"], "No entry is of type `norm`."),
        (&["--memory", "procedural"], "No entry is of memory `procedural`."),
        (&["--workspace", "local"], "No entry is of that workspace."),
        (
            &["--tag", "billing", "--type", "norm"],
            "No entry has the tag `billing` and is of type `norm`.",
        ),
    ] {
        let told = said(&[&["search", "billing"], more].concat());
        assert_eq!(told, format!("{why}\n"));
    }
    let told = said(&["search", "gardens of stone", "--tag", "billing"]);
    assert!(told.starts_with("No relevant entries (best score "), "{told}");
    let told = said(&["search", &code]);
    assert!(
        told.ends_with(&format!("Run `klnode show {code}` to show an entry by its code.\n")),
        "{told}"
    );
}
