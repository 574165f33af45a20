//! House rules of form: docs, names, leftovers, links and length.
//!
//! As in `architecture`, each rule is a pure function from files to violations, tested on this
//! repository and on a planted violation. Rules of rustfmt and clippy are not repeated.

use std::collections::BTreeSet;

use klnode_tests::repo_source::{
    Source, Violation, assert_none, attributes, mentions, repository, split,
};

/// Longest Rust file, in lines. Long before that, look for the second idea.
const FILE_LINES_MAX: usize = 600;

/// Longest README, in lines.
const README_LINES_MAX: usize = 119;

/// A documentation sentence has at least this many words.
const SENTENCE_WORDS_MIN: usize = 3;

/// Names that do not describe their content.
const EMPTY_NAMES: [&str; 4] = ["utils", "common", "helpers", "prelude"];

/// Marks of unfinished work. Each must name its owner.
const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

#[test]
fn every_rust_file_opens_with_module_docs() {
    assert_none(&each(&repository().sources, opening_docs));
}

#[test]
fn every_mark_of_unfinished_work_names_its_owner() {
    assert_none(&each(&repository().sources, owned_marks));
}

#[test]
fn no_leftover_macro_and_no_ignored_test_stays() {
    assert_none(&each(&repository().sources, leftovers));
}

#[test]
fn a_lint_is_expected_with_a_reason_and_never_allowed() {
    assert_none(&each(&repository().sources, expected_lints));
}

#[test]
fn every_file_name_describes_its_content() {
    assert_none(&each(&repository().sources, telling_names));
}

#[test]
fn no_test_sleeps() {
    assert_none(&each(&repository().sources, sleeps));
}

#[test]
fn the_readme_fits_a_short_read() {
    assert_none(&readme_length(&repository().sources));
}

#[test]
fn every_decision_is_linked_from_the_index() {
    assert_none(&linked_decisions(&repository().sources));
}

#[test]
fn every_document_is_linked_from_an_index() {
    assert_none(&linked_documents(&repository().sources));
}

#[test]
fn every_relative_link_leads_to_a_file() {
    assert_none(&live_links(&repository().sources, &repository().paths));
}

#[test]
fn no_line_ends_in_white_space_and_every_file_in_a_newline() {
    assert_none(&each(&repository().sources, white_space));
}

#[test]
fn no_rust_file_is_too_long() {
    assert_none(&each(&repository().sources, length));
}

/// Applies a rule about single files to all of them.
fn each(sources: &[Source], rule: fn(&Source) -> Vec<Violation>) -> Vec<Violation> {
    sources.iter().flat_map(rule).collect()
}

fn opening_docs(source: &Source) -> Vec<Violation> {
    if !source.is_rust() {
        return Vec::new();
    }
    let docs = source.text.lines().map_while(|line| line.strip_prefix("//!"));
    let text = docs.map(str::trim).collect::<Vec<_>>().join(" ");
    let is_sentence = |part: &str| part.split_whitespace().count() >= SENTENCE_WORDS_MIN;
    let mut parts: Vec<&str> = text.split(['.', '?', '!']).collect();
    // Text after the last full stop is no complete sentence.
    parts.pop();
    if parts.into_iter().any(is_sentence) {
        return Vec::new();
    }
    let what = "does not open with a sentence of module docs";
    let way_out = "describe the file's purpose on the first lines, after `//!`";
    vec![Violation::new(&source.path, 1, what, way_out)]
}

fn owned_marks(source: &Source) -> Vec<Violation> {
    // Literals do not count in Rust; elsewhere everything is text.
    let text = if source.is_rust() {
        let split = split(&source.text);
        let lines = split.code.lines().zip(split.comments.lines());
        lines.map(|(code, comment)| format!("{code} {comment}\n")).collect()
    } else {
        source.text.clone()
    };
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for mark in MARKS {
            if line.match_indices(mark).any(|(start, _)| is_bare_mark(line, start, mark)) {
                let what = format!("a {mark} without an owner");
                let way_out = "do it, or write `TODO(name): the missing part`";
                found.push(Violation::new(&source.path, at + 1, what, way_out));
            }
        }
    }
    found
}

/// Whether the mark at `start` is a whole word and no `(name):` follows.
fn is_bare_mark(line: &str, start: usize, mark: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    let rest = &line[start + mark.len()..];
    if line[..start].ends_with(joins) || rest.starts_with(joins) {
        return false;
    }
    let owner = rest.strip_prefix('(').and_then(|rest| rest.split_once("):"));
    owner.is_none_or(|(name, _)| name.trim().is_empty() || name.contains(')'))
}

fn leftovers(source: &Source) -> Vec<Violation> {
    if !source.is_rust() {
        return Vec::new();
    }
    let code = split(&source.text).code;
    let mut found = Vec::new();
    for mention in mentions(&code) {
        let name = mention.path.last().map_or("", String::as_str);
        if mention.is_macro && ["dbg", "todo", "unimplemented"].contains(&name) {
            let way_out = "finish it, or return an error that names the missing part";
            found.push(Violation::new(&source.path, mention.line, format!("{name}!"), way_out));
        }
    }
    for (line, attribute) in attributes(&code) {
        if attribute_names(&attribute).any(|name| name == "ignore") {
            let way_out = "make it pass or delete it; long runs belong in `.ci/long`";
            found.push(Violation::new(&source.path, line, "an ignored test", way_out));
        }
    }
    found
}

fn expected_lints(source: &Source) -> Vec<Violation> {
    if !source.is_rust() {
        return Vec::new();
    }
    let way_out = "write `#[expect(lint, reason = \"…\")]`, which fails once it is not needed";
    let mut found = Vec::new();
    for (line, attribute) in attributes(&split(&source.text).code) {
        let names = |wanted: &str| attribute_names(&attribute).any(|name| name == wanted);
        if names("allow") {
            found.push(Violation::new(&source.path, line, "allows a lint", way_out));
        } else if names("expect") && !attribute.contains("reason=") {
            found.push(Violation::new(&source.path, line, "expects without a reason", way_out));
        }
    }
    found
}

/// Names of an attribute: its own, or those that a `cfg_attr` adds.
fn attribute_names(attribute: &str) -> impl Iterator<Item = &str> {
    let conditional = attribute.strip_prefix("cfg_attr(");
    let skipped = usize::from(conditional.is_some());
    let parts = conditional.unwrap_or(attribute).split(',').skip(skipped);
    let limit = if conditional.is_some() { usize::MAX } else { 1 };
    parts.take(limit).map(|part| part.split(['(', '=', ')']).next().unwrap_or(part))
}

fn telling_names(source: &Source) -> Vec<Violation> {
    let path = source.path.as_str();
    let mut parts = path.strip_suffix(".rs").into_iter().flat_map(|stem| stem.split('/'));
    let Some(name) = parts.find(|part| EMPTY_NAMES.contains(part)) else { return Vec::new() };
    let way_out = "name it after the one idea it holds, or put each piece beside its user";
    vec![Violation::new(path, 1, format!("`{name}` does not describe its content"), way_out)]
}

fn sleeps(source: &Source) -> Vec<Violation> {
    let is_test = source.path.starts_with("tests/") || source.path.contains("/tests/");
    if !source.is_rust() || !is_test {
        return Vec::new();
    }
    let is_sleep = |path: &[String]| {
        matches!(path, [.., module, verb]
        if matches!(module.as_str(), "thread" | "time")
            && matches!(verb.as_str(), "sleep" | "sleep_until"))
    };
    let found = mentions(&split(&source.text).code).into_iter().filter(|m| is_sleep(&m.path));
    let way_out = "wait for a condition with a deadline: recv_timeout, wait_timeout, timeout";
    found.map(|m| Violation::new(&source.path, m.line, "a test sleeps", way_out)).collect()
}

fn readme_length(sources: &[Source]) -> Vec<Violation> {
    let way_out = "keep the parts for a new user and link to docs/ for the rest";
    let Some(readme) = sources.iter().find(|source| source.path == "README.md") else {
        return vec![Violation::new("README.md", 1, "is missing", "write it")];
    };
    let lines = readme.text.lines().count();
    if lines <= README_LINES_MAX {
        return Vec::new();
    }
    let what = format!("{lines} lines, more than {README_LINES_MAX}");
    vec![Violation::new("README.md", README_LINES_MAX + 1, what, way_out)]
}

fn linked_decisions(sources: &[Source]) -> Vec<Violation> {
    const INDEX: &str = "docs/adr/README.md";
    let index = sources.iter().find(|source| source.path == INDEX);
    let Some(index) = index else {
        return vec![Violation::new(INDEX, 1, "is missing", "write it")];
    };
    let linked: BTreeSet<String> =
        links(&index.text).into_iter().filter_map(|(_, target)| resolve(INDEX, &target)).collect();
    let is_decision = |source: &&Source| {
        source.path.starts_with("docs/adr/") && source.path.ends_with(".md") && source.path != INDEX
    };
    let missing = sources.iter().filter(is_decision).filter(|s| !linked.contains(&s.path));
    let way_out = "add a line to docs/adr/README.md";
    missing.map(|s| Violation::new(&s.path, 1, "is not in the index", way_out)).collect()
}

fn linked_documents(sources: &[Source]) -> Vec<Violation> {
    const INDEXES: [&str; 3] = ["docs/README.md", "docs/guide/README.md", "docs/adr/README.md"];
    let indexes = sources.iter().filter(|source| INDEXES.contains(&source.path.as_str()));
    let linked: BTreeSet<String> = indexes
        .flat_map(|index| links(&index.text).into_iter().map(|(_, to)| resolve(&index.path, &to)))
        .flatten()
        .collect();
    let is_document = |source: &&Source| {
        let path = source.path.as_str();
        path.starts_with("docs/") && path.ends_with(".md") && path != INDEXES[0]
    };
    let missing = sources.iter().filter(is_document).filter(|s| !linked.contains(&s.path));
    let way_out = "link it from docs/README.md or docs/guide/README.md";
    missing.map(|s| Violation::new(&s.path, 1, "is linked from no index", way_out)).collect()
}

fn live_links(sources: &[Source], paths: &BTreeSet<String>) -> Vec<Violation> {
    let is_document = |source: &&Source| {
        source.path.ends_with(".md")
            && (!source.path.contains('/') || source.path.starts_with("docs/"))
    };
    let mut found = Vec::new();
    for source in sources.iter().filter(is_document) {
        for (line, target) in links(&source.text) {
            let leads = |path: String| path.is_empty() || paths.contains(&path);
            if !resolve(&source.path, &target).is_some_and(leads) {
                let what = format!("the link to {target} leads nowhere");
                let way_out = "mend the path, which is read from the folder of the document";
                found.push(Violation::new(&source.path, line, what, way_out));
            }
        }
    }
    found
}

/// Relative links of a Markdown text, without their anchors. Code does not link.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let defined = prose.starts_with('[').then(|| prose.split_once("]: ")).flatten();
        for target in inline.chain(defined.map(|(_, target)| target)) {
            let target = target.split_whitespace().next().unwrap_or_default();
            let target = target.trim_start_matches('<').trim_end_matches('>');
            let path = target.split('#').next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.starts_with('#');
            if !is_elsewhere && !target.starts_with("mailto:") {
                found.push((at + 1, path.to_owned()));
            }
        }
    }
    found
}

/// Target of a link, from the root; `None` if it leaves the repository.
fn resolve(document: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    if target.starts_with('/') || target.is_empty() {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn white_space(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut add =
        |line, what: &str, way_out| found.push(Violation::new(&source.path, line, what, way_out));
    // `lines` would drop a carriage return.
    for (at, line) in source.text.split('\n').enumerate() {
        if line.ends_with(char::is_whitespace) {
            add(at + 1, "white space at the end of the line", "delete it");
        }
        if source.is_rust() && line.contains('\t') {
            add(at + 1, "a tab", "let `cargo fmt` indent; write \\t in a literal");
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        add(source.text.lines().count(), "no newline at the end of the file", "add one");
    }
    found
}

fn length(source: &Source) -> Vec<Violation> {
    let lines = source.text.lines().count();
    if !source.is_rust() || lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    let what = format!("{lines} lines, more than {FILE_LINES_MAX}");
    let way_out = "find the second idea and give it a file";
    vec![Violation::new(&source.path, FILE_LINES_MAX + 1, what, way_out)]
}

/// Each rule on planted files: it finds the violation and nothing else.
mod planted {
    use super::*;

    #[track_caller]
    fn expect_places(found: Vec<Violation>, expect: &[&str]) {
        let places: Vec<String> = found.into_iter().map(|v| v.place).collect();
        assert_eq!(places, expect);
    }

    /// Checks a rule on one Rust file against the expected lines.
    #[track_caller]
    fn check(rule: fn(&Source) -> Vec<Violation>, text: &str, lines: &[usize]) {
        let expect: Vec<String> = lines.iter().map(|line| format!("tests/a.rs:{line}")).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        expect_places(rule(&Source::new("tests/a.rs", text)), &expect);
    }

    #[test]
    fn a_file_without_docs_is_found() {
        check(opening_docs, "//! Keeps the time.\nfn f() {}", &[]);
        check(opening_docs, "//! Keeps\n//! the time: always.\n", &[]);
        for text in ["", "//! crdt\n", "//! Keeps the time\n", "fn f() {}\n//! Keeps the time.\n"] {
            check(opening_docs, text, &[1]);
        }
    }

    #[test]
    fn a_mark_without_an_owner_is_found() {
        check(owned_marks, "// TODO(ada): widen\nlet s = \"TODO\";\nlet TODOS = 1;", &[]);
        check(owned_marks, "// TODO: widen\n// FIXME\n/* XXX() */\n// TODO(): a", &[1, 2, 3, 4]);
        let page = Source::new("docs/a.md", "fine\nTODO write this\n");
        expect_places(owned_marks(&page), &["docs/a.md:2"]);
    }

    #[test]
    fn a_leftover_macro_is_found() {
        check(leftovers, "// dbg!(x)\nlet todo = \"todo!()\"; if todo != x {}", &[]);
        check(leftovers, "dbg!(x);\ntodo!();\nstd::unimplemented!();", &[1, 2, 3]);
        check(leftovers, "#[test]\n#[ignore]\nfn f() {}", &[2]);
        check(leftovers, "#[ignore = \"slow\"]\n#[cfg_attr(unix, ignore)]", &[1, 2]);
        check(leftovers, "#[doc(ignore)] // #[ignore]", &[]);
    }

    #[test]
    fn an_allowed_lint_is_found() {
        check(expected_lints, "#[expect(dead_code, reason = \"a wire type\")]", &[]);
        check(expected_lints, "#![allow(a)]\n#[allow(\n    b\n)]\n#[expect(c)]", &[1, 2, 5]);
        check(expected_lints, "#[cfg_attr(test, allow(a))]\n// #[allow(b)]", &[1]);
    }

    #[test]
    fn a_meaningless_file_name_is_found() {
        let names = |path: &str| telling_names(&Source::new(path, ""));
        expect_places(names("node/store/src/utils.rs"), &["node/store/src/utils.rs:1"]);
        expect_places(names("crdt/src/common/mod.rs"), &["crdt/src/common/mod.rs:1"]);
        expect_places(names("crdt/src/commons.rs"), &[]);
        expect_places(names("docs/common/notes.md"), &[]);
    }

    #[test]
    fn a_sleeping_test_is_found() {
        let text =
            "use std::thread::{self, sleep};\nthread::sleep(d);\ntokio::time::sleep(d).await;";
        check(sleeps, text, &[1, 2, 3]);
        check(sleeps, "// thread::sleep\nlet sleep = channel.recv_timeout(d);", &[]);
        expect_places(sleeps(&Source::new("node/src/serve.rs", text)), &[]);
    }

    #[test]
    fn a_long_readme_is_found() {
        let readme = |lines: usize| [Source::new("README.md", &"a\n".repeat(lines))];
        expect_places(readme_length(&readme(119)), &[]);
        expect_places(readme_length(&readme(120)), &["README.md:120"]);
        expect_places(readme_length(&[]), &["README.md:1"]);
    }

    #[test]
    fn a_decision_that_is_not_in_the_index_is_found() {
        let sources = [
            Source::new("docs/adr/0001-a.md", ""),
            Source::new("docs/adr/0002-b.md", ""),
            Source::new("docs/adr/README.md", "[1](0001-a.md#why), `[2](0002-b.md)`\n"),
        ];
        expect_places(linked_decisions(&sources), &["docs/adr/0002-b.md:1"]);
        expect_places(linked_decisions(&sources[..1]), &["docs/adr/README.md:1"]);
    }

    #[test]
    fn a_document_without_a_link_is_found() {
        let sources = [
            Source::new("docs/README.md", "[a](guide/a.md) [guide](guide/README.md)\n"),
            Source::new("docs/guide/README.md", "[b](b.md), `[c](c.md)`\n"),
            Source::new("docs/guide/a.md", ""),
            Source::new("docs/guide/b.md", ""),
            Source::new("docs/guide/c.md", ""),
            Source::new("node/notes.md", ""),
        ];
        expect_places(linked_documents(&sources), &["docs/guide/c.md:1"]);
    }

    #[test]
    fn a_dead_link_is_found() {
        let paths = ["README.md", "docs", "docs/a.md", "docs/adr/b.md"];
        let paths: BTreeSet<String> = paths.into_iter().map(str::to_owned).collect();
        let text = "[a](a.md) [b](./adr/b.md#x \"title\") [c](../README.md) [d](https://e.f/g)\n\
            ```\n[x](x.md)\n```\n`[x](x.md)` [h](#here) [docs](../docs/)\n[gone](gone.md)\n\
            [out](../../out.md)\n[r]: lost.md\n[k]: adr/b.md";
        let page = Source::new("docs/a.md", text);
        let expect = ["docs/a.md:6", "docs/a.md:7", "docs/a.md:8"];
        expect_places(live_links(&[page], &paths), &expect);
        expect_places(live_links(&[Source::new("node/x.md", text)], &paths), &[]);
    }

    #[test]
    fn stray_white_space_is_found() {
        check(white_space, "a\n\nb\n", &[]);
        check(white_space, "a \n\tb\nc\r\nd", &[1, 2, 3, 4]);
        let page = Source::new("docs/a.md", "a\tb\n");
        expect_places(white_space(&page), &[]);
    }

    #[test]
    fn a_long_file_is_found() {
        check(length, &"\n".repeat(600), &[]);
        check(length, &"\n".repeat(601), &[601]);
    }
}
