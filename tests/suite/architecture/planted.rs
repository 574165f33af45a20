//! Each rule of the architecture on planted files: where it must find something, and nowhere else.

use super::*;

#[track_caller]
fn check(rule: fn(&[Source]) -> Vec<Violation>, files: &[(&str, &str)], expect: &[&str]) {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let places: Vec<String> = rule(&sources).into_iter().map(|v| v.place).collect();
    assert_eq!(places, expect);
}

#[test]
fn an_arrow_that_points_the_wrong_way_is_found() {
    let mut files: Vec<(String, &str)> = Vec::new();
    for (folder, _) in ARROWS {
        files.push((format!("{folder}/Cargo.toml"), ""));
    }
    files[1].1 = "[dependencies]\nserde.workspace = true\nklnode-scoring.workspace = true";
    files[2].1 = "[dependencies]\nklnode-crdt.workspace = true\n\
        [target.'cfg(unix)'.dependencies]\nfed = { package = \"klnode-federation\" }";
    files[3].1 = "[dev-dependencies]\nklnode-scoring.workspace = true";
    files[5].1 = "[dependencies]\nklnode.workspace = true";
    let mut files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    check(arrows, &files, &["crdt/Cargo.toml:3", "scoring/Cargo.toml:4"]);
    files.push(("node/inner/Cargo.toml", ""));
    files.remove(0);
    let expect =
        ["config:1", "crdt/Cargo.toml:3", "scoring/Cargo.toml:4", "node/inner/Cargo.toml:1"];
    check(arrows, &files, &expect);
}

#[test]
fn a_module_that_looks_ahead_is_found() {
    let store = "//! crate::cli\nuse crate::store::Seq;\nuse crate::{\n    engine::Clock,\n};\n\
        fn f() { crate::wiring::start(); super::super::query::ask(); super::ok(); }\n\
        mod inner { use super::super::near; pub(crate) fn g() {} }";
    let files = [
        ("node/src/store/writer.rs", store),
        ("node/src/wiring.rs", "use crate::{cli, store};\nuse super::api;"),
        ("node/src/store/mod.rs", "use super::index;\nuse crate::Root;"),
        ("node/src/helper.rs", ""),
        ("node/src/main.rs", "use crate::anything;"),
        ("crdt/src/lib.rs", "use crate::wiring;"),
    ];
    let expect = [
        "node/src/store/writer.rs:4",
        "node/src/store/writer.rs:6",
        "node/src/store/writer.rs:6",
        "node/src/store/mod.rs:1",
        "node/src/store/mod.rs:2",
        "node/src/helper.rs:1",
    ];
    check(module_order, &files, &expect);
}

#[test]
fn a_second_writer_is_found() {
    let one = ("node/src/store/writer.rs", "fn f() { db.begin_write()?; }");
    let tests = "// begin_write\n#[cfg(test)]\nmod tests { fn g() { db.begin_write(); } }";
    check(one_writer, &[one, ("node/src/store/read.rs", tests)], &[]);
    check(one_writer, &[("tests/suite/a.rs", one.1)], &["node/src/store:1"]);
    check(one_writer, &[("node/src/cli.rs", one.1)], &["node/src/cli.rs:1"]);
    let second = ("node/src/engine.rs", "\nlet begin = Database::begin_write;");
    let expect = ["node/src/store/writer.rs:1", "node/src/engine.rs:2"];
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
fn a_forgotten_ban_is_found() {
    let files = [
        ("clippy.toml", "lines = 70\nbans = [\"a\", \"b\"]"),
        ("crdt/clippy.toml", "lines = 70\nbans = [\"b\", \"c\", \"a\"]"),
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
fn a_version_of_its_own_is_found() {
    let text = "[dependencies]\na.workspace = true\nb = { workspace = true, features = [\"x\"] }\n\
        c = \"1\"\n[dev-dependencies]\nitself = { path = \".\" }\nd = { version = \"1\" }\n\
        e = { path = \"../e\" }";
    let expect = ["node/Cargo.toml:4", "node/Cargo.toml:7", "node/Cargo.toml:8"];
    check(inherited_versions, &[("node/Cargo.toml", text)], &expect);
}
