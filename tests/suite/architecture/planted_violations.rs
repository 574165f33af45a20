//! Each architecture rule on planted files: it finds the violation and nothing else.

use super::*;

#[track_caller]
fn check(rule: fn(&[Source]) -> Vec<Violation>, files: &[(&str, &str)], expect: &[&str]) {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let places: Vec<String> = rule(&sources).into_iter().map(|v| v.place).collect();
    assert_eq!(places, expect);
}

#[test]
fn a_forbidden_crate_dependency_is_found() {
    let mut files: Vec<(String, &str)> = Vec::new();
    for (folder, _) in ARROWS {
        files.push((format!("{folder}/Cargo.toml"), ""));
    }
    files[1].1 = "[dependencies]\nserde.workspace = true\nklnode-scoring.workspace = true";
    files[2].1 = "[dependencies]\nklnode-crdt.workspace = true\n\
        [target.'cfg(unix)'.dependencies]\nfed = { package = \"klnode-federation\" }";
    files[3].1 = "[dev-dependencies]\nklnode-scoring.workspace = true";
    let (at, _) =
        ARROWS.iter().enumerate().find(|(_, (folder, _))| *folder == "examples").expect("listed");
    files[at].1 = "[dependencies]\nklnode.workspace = true";
    let mut files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    check(arrows, &files, &["crdt/Cargo.toml:3", "scoring/Cargo.toml:4"]);
    files.push(("node/inner/Cargo.toml", ""));
    files.remove(0);
    let expect =
        ["config:1", "crdt/Cargo.toml:3", "scoring/Cargo.toml:4", "node/inner/Cargo.toml:1"];
    check(arrows, &files, &expect);
}

#[test]
fn a_crate_with_too_many_lines_is_found() {
    let (small, large) = ("//! a\n".repeat(7), "//! b\n".repeat(4));
    let files =
        [("node/store/src/lib.rs", small.as_str()), ("node/cli/src/lib.rs", large.as_str())];
    check(crate_shares, &files, &["node/cli:1", "node/store:1"]);
    let even = "//! c\n".repeat(3);
    let names = ["a", "b", "c", "d"].map(|name| format!("node/{name}/src/lib.rs"));
    let files: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), even.as_str())).collect();
    check(crate_shares, &files, &[]);
}

#[test]
fn a_second_writer_is_found() {
    let one = ("node/store/src/writer.rs", "fn f() { db.begin_write()?; }");
    let tests = "// begin_write\n#[cfg(test)]\nmod tests { fn g() { db.begin_write(); } }";
    check(one_writer, &[one, ("node/store/src/shared_reads.rs", tests)], &[]);
    check(one_writer, &[("tests/suite/a.rs", one.1)], &["node/store:1"]);
    check(one_writer, &[("node/src/cli.rs", one.1)], &["node/src/cli.rs:1"]);
    let second = ("node/src/engine.rs", "\nlet begin = Database::begin_write;");
    let expect = ["node/store/src/writer.rs:1", "node/src/engine.rs:2"];
    check(one_writer, &[one, second], &expect);
}

#[test]
fn the_network_library_outside_net_is_found() {
    let files = [
        ("federation/Cargo.toml", "[dependencies]\nlibp2p.workspace = true"),
        ("federation/src/net/swarm.rs", "use libp2p::Swarm;"),
        ("federation/src/proto/a.rs", "// libp2p\nfn f(p: libp2p_identity::PeerId) {}"),
        ("node/Cargo.toml", "[dependencies]\nlibp2p.workspace = true"),
        ("node/src/cli.rs", "let filter = \"libp2p=warn\";"),
    ];
    check(network_stays_in_net, &files, &["node/Cargo.toml:2", "federation/src/proto/a.rs:2"]);
}

#[test]
fn every_kind_of_impurity_is_found() {
    let text = "use std::time::{Duration, Instant};\nuse std::{fs, net::IpAddr};\n\
        fn a() { std::env::var(\"A\"); std::thread::yield_now(); }\n\
        async fn b() { tokio::spawn(c); tracing::info!(\"x\"); println!(\"x\"); }\n\
        fn d() { rand::random(); getrandom::fill(x); }\nuse std::collections::*;\n\
        type E = (HashMap<u8, u8>, HashSet<u8>, time::SystemTime, OsRng);\n\
        // println! SystemTime\nfn rand(tracing: u8, s: &str) { f(\"HashMap\", tracing) }";
    let lines = [1, 2, 2, 3, 3, 4, 4, 4, 4, 5, 5, 7, 7, 7, 7];
    for folder in PURE {
        let path = format!("{folder}a.rs");
        let expect: Vec<String> = lines.iter().map(|line| format!("{path}:{line}")).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check(purity, &[(&path, text)], &expect);
    }
    check(purity, &[("node/src/a.rs", text), ("federation/src/net/a.rs", text)], &[]);
}

#[test]
fn a_missing_lint_ban_is_found() {
    let files = [
        ("clippy.toml", "lines = 70\nbans = [\"a\", \"b\"]"),
        ("crdt/clippy.toml", "lines = 70\nbans = [\"b\", \"c\", \"a\"]"),
        ("crdt/document/clippy.toml", "lines = 70\nbans = [\"a\", \"b\"]"),
        ("scoring/clippy.toml", "lines = 71\nbans = [\"a\", \"c\"]"),
    ];
    let expect = ["scoring/clippy.toml:1", "scoring/clippy.toml:1", "federation/clippy.toml:1"];
    check(repeated_bans, &files, &expect);
    check(repeated_bans, &files[1..], &["clippy.toml:1"]);
}

#[test]
fn a_dependency_without_a_reason_is_found() {
    let text = "[workspace.dependencies]\n# Ours\nklnode = { path = \"node\" }\n\
        a = \"1\" # for a\nb = \"#2\"\nc = { version = \"3\", features = [\n  \"x\",\n] } # for c\n\
        d = { version = \"4\", features = [\n  \"y\",\n] }\n# Storage\ne = \"5\" #\n\
        [workspace.dependencies.f] # for f\nversion = \"6\"\n[profile.dev]\ndebug = 0 # why";
    check(
        dependency_reasons,
        &[("Cargo.toml", text)],
        &["Cargo.toml:5", "Cargo.toml:9", "Cargo.toml:13"],
    );
}

#[test]
fn a_dependency_version_outside_the_workspace_is_found() {
    let text = "[dependencies]\na.workspace = true\nb = { workspace = true, features = [\"x\"] }\n\
        c = \"1\"\n[dev-dependencies]\nitself = { path = \".\" }\nd = { version = \"1\" }\n\
        e = { path = \"../e\" }";
    let expect = ["node/Cargo.toml:4", "node/Cargo.toml:7", "node/Cargo.toml:8"];
    check(inherited_versions, &[("node/Cargo.toml", text)], &expect);
}
