//! Attempts to leave the checkout, or to reach git's own folder.

use super::{Memory, judge};
use crate::predicate::Predicate;
use crate::predicate::glob::Glob;

/// Paths that are refused, bare or in quotation marks.
const REFUSED: [&str; 62] = [
    "../x",
    "..",
    ".",
    "./x",
    "a/../x",
    "a/../../x",
    "a/..",
    "a/./b",
    "/etc/passwd",
    "//server/share",
    "/",
    "C:/x",
    "C:\\x",
    "c:x",
    "..\\x",
    "..\\\\x",
    "a\\..\\x",
    "\\\\server\\share",
    "\\\\?\\C:\\x",
    "file.txt:stream",
    "file:///etc/passwd",
    ".git/config",
    ".GIT/config",
    ".Git/config",
    ".git",
    "a/.git/config",
    "sub/.gIt",
    ".git./config",
    ".git /config",
    ".git::$INDEX_ALLOCATION/config",
    "git~1/config",
    "GIT~1/config",
    "a/Git~2",
    ".g\u{200c}it/config",
    ".git\u{200d}/config",
    ".\u{feff}git/config",
    "a\u{202e}b",
    "a\u{ad}b",
    "．．/x",
    "..／x",
    "‥/x",
    "․․/x",
    "a∕b",
    "a⁄b",
    "a＼b",
    "a\0b",
    "a\nb",
    "a\u{7f}b",
    "a\u{85}b",
    "a//b",
    "a/",
    "a/b/",
    "a.",
    "a./b",
    "...",
    "a/.../b",
    " a",
    "a ",
    "a /b",
    "**/../x",
    "*/.git/config",
    "a/**/.git/*",
];

/// Paths that are ordinary names: nothing in them is decoded or expanded.
const LITERAL: [&str; 14] = [
    "%2e%2e/x",
    "%2e%2e%2fx",
    "..%2fx",
    "a%00b",
    "~/x",
    "~root/x",
    "$HOME/x",
    "${HOME}/x",
    "$(id)/x",
    "`id`/x",
    "-rf/x",
    ".gitmodules",
    "a.git/config",
    "..a/x",
];

#[test]
fn a_path_that_could_leave_the_checkout_is_refused() {
    for path in REFUSED {
        assert!(Glob::new(path).is_err(), "{path:?}");
        let digest = "=blake3:9f86d081884c7d65";
        for text in [
            format!("path:{path}"),
            format!("path:\"{path}\""),
            format!("hash:\"{path}\"{digest}"),
            format!("text:\"{path}\"~\"x\""),
            format!("dep:cargo:x in \"{path}/Cargo.toml\""),
        ] {
            // Without quotation marks a path may end early; then it is another path or an error.
            let given = Predicate::parse(&text);
            let is_out = given.as_ref().is_ok_and(|given| given.to_string().contains(path));
            assert!(!is_out, "{text:?}");
            assert!(given.is_err() || !text.contains('"'), "{text:?}");
        }
        assert_eq!(Predicate::of_content(path, None, b"", super::digest), None, "{path:?}");
    }
}

#[test]
fn encoded_looking_paths_are_literal_names() {
    let checkout = Memory::of(&[("x", ""), ("etc/passwd", ""), ("root/x", ""), ("a", "")]);
    for path in LITERAL {
        let (truth, _) = judge(&format!("path:\"{path}\""), &checkout);
        assert_eq!(truth, "broken", "{path}");
        assert_eq!(
            judge(&format!("path:\"{path}\""), &Memory::of(&[(path, "")])).0,
            "holds",
            "{path}"
        );
    }
}

#[test]
fn only_tracked_paths_are_requested() {
    // The in-memory checkout panics when it is asked for a path that it has not listed.
    let checkout = Memory::of(&[("src/a.rs", "fn a() {}")]);
    for text in [
        "path:secret.env",
        "path:SRC/a.rs",
        "path:src",
        "hash:secret.env=blake3:9f86d081884c7d65",
        "text:secret.env~\"KEY\"",
        "text:**/*.env~\"KEY\"",
        "dep:cargo:tokio",
        "dep:cargo:tokio in src/Cargo.toml",
    ] {
        assert_eq!(judge(text, &checkout).0, "broken", "{text}");
    }
    assert_eq!(checkout.reads(), 0);
}

#[test]
fn wildcards_do_not_match_refused_paths() {
    // A checkout that lists paths which git would never track.
    let listed = [".git/config", "../x", "/etc/passwd", "a/.GIT/config", "a\\b", "ok/config"];
    let files: Vec<(&str, &str)> = listed.iter().map(|path| (*path, "secret")).collect();
    let checkout = Memory::of(&files);
    for (text, expect) in [
        ("text:**/config~\"secret\"", vec!["ok/config"]),
        ("text:**~\"other\"", vec!["ok/config"]),
        ("text:*/x~\"secret\"", vec![]),
        ("text:?git/config~\"secret\"", vec![]),
    ] {
        checkout.reads.borrow_mut().clear();
        judge(text, &checkout);
        assert_eq!(*checkout.reads.borrow(), expect, "{text}");
    }
}

#[test]
fn wildcards_match_names_and_folders() {
    for (glob, path, expect) in [
        ("*.rs", "a.rs", true),
        ("*.rs", ".rs", true),
        ("*.rs", "src/a.rs", false),
        ("src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/a/b.rs", false),
        ("src/*/b.rs", "src/b.rs", false),
        ("src/**/*.rs", "src/a.rs", true),
        ("src/**/*.rs", "src/a/b/c.rs", true),
        ("src/**/*.rs", "lib/a.rs", false),
        ("**/Cargo.toml", "Cargo.toml", true),
        ("**/Cargo.toml", "a/b/Cargo.toml", true),
        ("**/Cargo.toml", "a/NotCargo.toml", false),
        ("**/a/**/b", "x/a/y/a/z/b", true),
        ("**/a/**/b", "x/a/y/a/z/c", false),
        ("**/a/b", "a/b/a/b", true),
        ("src/**", "src/a/b", true),
        ("src/**", "src", false),
        ("**", "a", true),
        ("a?c", "abc", true),
        ("a?c", "aéc", true),
        ("a?c", "ac", false),
        ("*??", "€", false),
        ("*a*b", "xaxxbxb", true),
        ("*a*b", "xaxxbx", false),
        ("a*", "a", true),
        ("[ab]", "a", false),
        ("[ab]", "[ab]", true),
        ("A.rs", "a.rs", false),
    ] {
        let given = Glob::new(glob).unwrap_or_else(|why| panic!("{glob}: {why}"));
        assert_eq!(given.matches(path), expect, "{glob} for {path}");
        assert!(!expect || path.starts_with(given.prefix()), "{glob} for {path}");
    }
}
