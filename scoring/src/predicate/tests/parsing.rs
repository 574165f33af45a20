//! Tests of valid predicates, their display form, and the errors for invalid ones.

use super::parsed;
use crate::predicate::{ATOMS_MAX, DEPTH_MAX, ParseError, Predicate, TEXT_BYTES_MAX};

#[test]
fn a_predicate_has_one_display_form() {
    for (text, expect) in [
        ("path:src/lib.rs", "path:src/lib.rs"),
        ("  path:src/lib.rs\n", "path:src/lib.rs"),
        ("path:\"src/lib.rs\"", "path:src/lib.rs"),
        ("path:\"docs/a page.md\"", "path:\"docs/a page.md\""),
        ("path:\"app/(group)/[id].tsx\"", "path:\"app/(group)/[id].tsx\""),
        ("path:src/**/*.r?", "path:src/**/*.r?"),
        ("path:app/[id]/{x}.ts", "path:app/[id]/{x}.ts"),
        ("path:.github/workflows/ci.yml", "path:.github/workflows/ci.yml"),
        ("path:.gitignore", "path:.gitignore"),
        ("path:grün/größe.rs", "path:grün/größe.rs"),
        ("hash:a.rs=blake3:9F86D081884C7D65", "hash:a.rs=blake3:9f86d081884c7d65"),
        ("hash:a.rs#7-7=blake3:9f86d081884c7d65", "hash:a.rs#7=blake3:9f86d081884c7d65"),
        ("hash:a.rs#10-24=blake3:9f86d081884c7d65", "hash:a.rs#10-24=blake3:9f86d081884c7d65"),
        (r#"text:src/**/*.rs~"fn\s+verify\(""#, r#"text:src/**/*.rs~"fn\s+verify\(""#),
        (r#"text:a~"say \"no\"" AND path:b"#, r#"text:a~"say \"no\"" AND path:b"#),
        (r#"text:a~"\\" AND path:b"#, r#"text:a~"\\" AND path:b"#),
        (r#"text:a~"(?i)TODO|é""#, r#"text:a~"(?i)TODO|é""#),
        ("dep:cargo:tokio", "dep:cargo:tokio"),
        ("dep:cargo:tokio>=1.40,<2", "dep:cargo:tokio>=1.40,<2"),
        ("dep:cargo:tokio==v1.040+build", "dep:cargo:tokio=1.40"),
        ("dep:npm:react^18", "dep:npm:react^18"),
        ("dep:npm:@types/node~20.1", "dep:npm:@types/node~20.1"),
        ("dep:pypi:Ruamel_.YAML~=0.18", "dep:pypi:ruamel-yaml~=0.18"),
        ("dep:pypi:numpy>=2.0rc1,!=2.0.post1", "dep:pypi:numpy>=2.0-rc.1,!=2.0.post1"),
        ("dep:go:golang.org/x/net>=v0.20", "dep:go:golang.org/x/net>=0.20"),
        ("dep:go:git.sr.ht/~user/x~1.2", "dep:go:git.sr.ht/~user/x~1.2"),
        ("dep:cargo:tokio>=1 IN crates/*/Cargo.toml", "dep:cargo:tokio>=1 in crates/*/Cargo.toml"),
        ("not path:a and path:b or path:c", "NOT path:a AND path:b OR path:c"),
        ("NOT (path:a AND path:b)", "NOT (path:a AND path:b)"),
        ("NOT(NOT path:a)", "NOT NOT path:a"),
        ("(((path:a)))", "path:a"),
        ("path:a AND (path:b OR path:c)", "path:a AND (path:b OR path:c)"),
        ("(path:a AND path:b) OR path:c", "path:a AND path:b OR path:c"),
        ("path:a AND (path:b AND path:c)", "path:a AND (path:b AND path:c)"),
        ("(path:a)OR(path:b)", "path:a OR path:b"),
    ] {
        let shown = parsed(text).to_string();
        assert_eq!(shown, expect, "{text}");
        assert_eq!(parsed(&shown), parsed(text), "{text}");
    }
}

#[test]
fn not_binds_tighter_than_and_and_and_tighter_than_or() {
    for (text, same) in [
        ("path:a OR path:b AND path:c", "path:a OR (path:b AND path:c)"),
        ("NOT path:a AND path:b", "(NOT path:a) AND path:b"),
        ("NOT path:a OR path:b", "(NOT path:a) OR path:b"),
    ] {
        assert_eq!(parsed(text), parsed(same), "{text}");
    }
    assert_ne!(parsed("NOT (path:a OR path:b)"), parsed("NOT path:a OR path:b"));
}

#[test]
fn errors_name_the_offset_and_the_expected_syntax() {
    for (text, at, expected) in [
        ("", 0, "`path:`, `hash:`"),
        ("   ", 3, "`path:`, `hash:`"),
        ("src/lib.rs", 0, "`path:`, `hash:`"),
        ("file:src/lib.rs", 0, "`path:`, `hash:`"),
        ("PATH:src/lib.rs", 0, "`path:`, `hash:`"),
        ("run:ls", 0, "`path:`, `hash:`"),
        ("path:", 5, "a path"),
        ("path: src/lib.rs", 5, "a path"),
        ("path:\"src", 9, "`\"` at the end of the path"),
        ("path:src/", 5, "a path to a file"),
        ("path:src/a**", 5, "`**` between slashes"),
        ("path:*/*/*/*/*/*/*/*/*", 5, "at most 8 wildcards"),
        ("path:a path:b", 7, "`AND`, `OR` or the end"),
        ("path:a AND", 10, "`path:`, `hash:`"),
        ("path:a & path:b", 7, "`AND`, `OR` or the end"),
        ("NOT", 3, "`path:`, `hash:`"),
        ("(path:a", 7, "`AND`, `OR` or `)`"),
        ("path:a)", 6, "`AND`, `OR` or the end"),
        ("()", 1, "`path:`, `hash:`"),
        ("hash:a.rs", 9, "`#`, two line numbers"),
        ("hash:*.rs=blake3:9f86d081884c7d65", 5, "a path without wildcards"),
        ("hash:a.rs=sha1:9f86d081884c7d65", 9, "`#`, two line numbers"),
        ("hash:a.rs=blake3:9f86", 17, "16 to 64 hexadecimal"),
        ("hash:a.rs#0-3=blake3:9f86d081884c7d65", 10, "line numbers from 1 on"),
        ("hash:a.rs#5-3=blake3:9f86d081884c7d65", 10, "line numbers from 1 on"),
        ("hash:a.rs#-3=blake3:9f86d081884c7d65", 10, "line numbers from 1 on"),
        ("hash:a.rs#99999999999=blake3:9f86d081884c7d65", 10, "line numbers from 1 on"),
        ("text:a.rs", 9, "`~` and a pattern"),
        ("text:a.rs~x", 9, "`~` and a pattern"),
        ("text:a.rs~\"x", 12, "`\"` at the end of the pattern"),
        ("text:a.rs~\"x\\\"", 14, "`\"` at the end of the pattern"),
        ("text:a.rs~\"\"", 11, "a pattern that an empty file"),
        ("text:a.rs~\"a*\"", 11, "a pattern that an empty file"),
        ("text:a.rs~\"(\"", 11, "a regular expression"),
        ("text:a.rs~\"a{100}\"", 11, "a pattern without counted repetition"),
        ("text:a.rs~\"(?=a)\"", 11, "no look-around"),
        ("text:a.rs~\"(?<!a)b\"", 11, "no look-around"),
        ("text:a.rs~\"(?u)a\"", 11, "no look-around, no names and no flags"),
        ("text:a.rs~\"(a)\\1\"", 11, "a regular expression"),
        ("text:a.rs~\"\\pL\"", 11, "a regular expression"),
        ("text:a.rs~\"a\tb\"", 11, "a pattern without control"),
        ("dep:tokio", 4, "`cargo:`, `npm:`, `pypi:` or `go:`"),
        ("dep:gem:rails", 4, "`cargo:`, `npm:`, `pypi:` or `go:`"),
        ("dep:cargo:", 10, "the name of a package"),
        ("dep:cargo:>=1", 10, "the name of a package"),
        ("dep:pypi:___", 9, "the name of a package"),
        ("dep:cargo:tokio>=", 17, "a version"),
        ("dep:cargo:tokio>=x", 17, "a version"),
        ("dep:cargo:tokio>=1,", 19, "`=`, `!=`, `<`"),
        ("dep:cargo:tokio>=1,2", 19, "`=`, `!=`, `<`"),
        ("dep:cargo:tokio >=1", 16, "`AND`, `OR` or the end"),
        ("dep:pypi:x~=2", 12, "a version (two numbers"),
        ("dep:cargo:tokio>=1 in src/lib.rs", 22, "a path to Cargo.toml"),
        ("dep:npm:react in ../package.json", 17, "a path without `.` or `..`"),
    ] {
        let error = Predicate::parse(text).expect_err(text);
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.expected.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn every_error_gives_an_example_that_is_a_predicate() {
    for text in
        ["", "path:", "path:\"a", "hash:a", "text:a", "dep:x", "dep:go:x in y", "path:a path:b"]
    {
        let error = Predicate::parse(text).expect_err(text);
        parsed(error.example);
    }
    let error = Predicate::parse("path:/etc/passwd").expect_err("an absolute path");
    let expect = "The predicate is invalid at byte 5: expected a path relative to the checkout, \
        without a `/` in front, as in `path:src/lib.rs`.";
    assert_eq!(error.to_string(), expect);
}

#[test]
fn length_depth_and_atoms_are_bounded() {
    let expected =
        |text: &str| Predicate::parse(text).map_err(|ParseError { expected, .. }| expected);
    let long = |bytes: usize| format!("path:a{}", " ".repeat(bytes - 6));
    assert!(expected(&long(TEXT_BYTES_MAX)).is_ok());
    assert_eq!(expected(&long(TEXT_BYTES_MAX + 1)), Err("at most 1024 bytes"));

    let deep = |levels: usize| format!("{}path:a{}", "(".repeat(levels), ")".repeat(levels));
    let negated = |levels: usize| format!("{}path:a", "NOT ".repeat(levels));
    for nested in [deep, negated] {
        assert!(expected(&nested(DEPTH_MAX)).is_ok());
        let error = expected(&nested(DEPTH_MAX + 1));
        assert_eq!(error, Err("at most 8 levels of `NOT` and parentheses"));
    }

    let wide = |atoms: usize| vec!["path:a"; atoms].join(" OR ");
    assert!(expected(&wide(ATOMS_MAX)).is_ok());
    assert_eq!(expected(&wide(ATOMS_MAX + 1)), Err("at most 32 atoms"));

    let named = |bytes: usize| format!("path:{}", "a".repeat(bytes));
    assert!(expected(&named(512)).is_ok());
    assert_eq!(expected(&named(513)), Err("a path of at most 512 bytes"));
    let patterned = |bytes: usize| format!("text:a~\"{}\"", "a".repeat(bytes));
    assert!(expected(&patterned(256)).is_ok());
    assert_eq!(expected(&patterned(257)), Err("a pattern of at most 256 bytes"));
}
