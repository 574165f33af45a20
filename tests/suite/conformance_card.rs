//! Statements of the design card about packages: each is a dependency of a crate of the product, and
//! the source of that crate names it. They are checked in the source, since no output shows them.

use crate::support::conformance::conforms;
use klnode_tests::repo_source::{repository, split};

/// Files of the product: neither tests, nor benches, nor examples.
fn is_product(path: &str) -> bool {
    let outside = ["tests/", "fuzz/", "examples/", "docs/", ".ci/"];
    !outside.iter().any(|folder| path.starts_with(folder)) && !path.contains("/tests")
}

/// Folder of a crate whose manifest lists the package among its dependencies, and whose code names it.
#[track_caller]
fn used(package: &str) {
    let name = package.replace('-', "_");
    let sources = || repository().sources.iter().filter(|source| is_product(&source.path));
    let lists = |text: &str| {
        let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        let is_named = |line: &str| {
            line.strip_prefix(package).is_some_and(|rest| rest.starts_with([' ', '.', '=']))
        };
        dependencies.lines().any(is_named)
    };
    let manifests = sources().filter(|source| source.path.ends_with("/Cargo.toml"));
    let mut users = manifests.filter(|source| lists(&source.text)).filter_map(|manifest| {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let mut files = sources().filter(|file| file.is_rust() && file.path.starts_with(folder));
        let path = format!("{name}::");
        files.find(|file| split(&file.text).code.contains(&path)).map(|file| &file.path)
    });
    assert!(users.next().is_some(), "no crate of the product uses {package}");
}

#[test]
fn the_packages_of_the_card_are_used() {
    conforms("C-02");
    conforms("C-03");
    conforms("C-04");
    conforms("C-05");
    conforms("C-06");
    conforms("C-07");
    conforms("C-08");
    conforms("C-09");
    for package in ["libp2p", "tokio", "serde", "rmp-serde", "redb", "statrs", "hnsw_rs", "tracing"]
    {
        used(package);
    }
}
