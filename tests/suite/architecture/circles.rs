//! Circles between sibling modules: modules of one parent that import each other, directly or in a round.
//!
//! A circle makes its files one unit that cannot be read or moved in parts. A parent and its child may
//! import each other.

use super::{Mention, Source, Violation, mentions, split};
use std::collections::{BTreeMap, BTreeSet};

/// A module: the folder of its crate, then its path.
type Module = Vec<String>;

pub(super) fn circles(sources: &[Source]) -> Vec<Violation> {
    let violation = |circle: Vec<Module>| {
        let names: Vec<&str> =
            circle.iter().filter_map(|module| module.last()).map(String::as_str).collect();
        let what = format!("{} import each other", names.join(", "));
        let way_out = "move the shared part into a module of its own, or pass the value in";
        Violation::new(&circle[0][0], 1, what, way_out)
    };
    all_circles(sources).into_iter().map(violation).collect()
}

/// Every set of sibling modules that reach each other through imports.
fn all_circles(sources: &[Source]) -> Vec<Vec<Module>> {
    let modules: BTreeMap<Module, &Source> =
        sources.iter().filter_map(|source| Some((module_of(source)?, source))).collect();
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, source) in &modules {
        for mention in mentions(&split(&source.text).code) {
            let Some(target) = target(module, &mention, &modules) else { continue };
            let shared = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            if shared < module.len() && shared < target.len() {
                let sibling = |path: &Module| path[..=shared].to_vec();
                edges.entry(sibling(module)).or_default().insert(sibling(&target));
            }
        }
    }
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        edges.keys().map(|from| (from, reached(from, &edges))).collect();
    let mut found: BTreeSet<Vec<Module>> = BTreeSet::new();
    for (from, targets) in &reach {
        if targets.contains(*from) {
            let with = |to: &&Module| reach.get(to).is_some_and(|back| back.contains(*from));
            found.insert(targets.iter().filter(with).cloned().collect());
        }
    }
    found.into_iter().collect()
}

fn reached(from: &Module, edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.clone()];
    while let Some(next) = open.pop() {
        for to in edges.get(&next).into_iter().flatten() {
            if seen.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    seen
}

/// The module that a file of a library holds; none for tests and programs.
fn module_of(source: &Source) -> Option<Module> {
    let (folder, inside) = source.path.strip_suffix(".rs")?.split_once("/src/")?;
    let mut path = vec![folder.to_owned()];
    path.extend(inside.split('/').map(str::to_owned));
    if matches!(path.last().map(String::as_str), Some("mod" | "lib")) {
        path.pop();
    }
    let is_product =
        !folder.starts_with("tests") && !path.iter().any(|part| part == "tests" || part == "main");
    is_product.then_some(path)
}

/// The module of the same crate that a path leads into.
fn target(from: &Module, mention: &Mention, modules: &BTreeMap<Module, &Source>) -> Option<Module> {
    if mention.is_test {
        return None;
    }
    let climbed = mention.path.iter().take_while(|segment| *segment == "super").count();
    let mut path = match mention.path.first()?.as_str() {
        "crate" => {
            let mut path = vec![from[0].clone()];
            path.extend(mention.path[1..].iter().cloned());
            path
        }
        "super" => {
            let up = climbed.checked_sub(mention.modules)?;
            let mut path = from[..from.len().checked_sub(up)?].to_vec();
            path.extend(mention.path[climbed..].iter().cloned());
            path
        }
        _ => return None,
    };
    while path.len() > 1 && !modules.contains_key(&path) {
        path.pop();
    }
    (path.len() > 1).then_some(path)
}

#[test]
fn a_circle_between_siblings_is_found() {
    let files = [
        ("node/x/src/lib.rs", "mod a; mod b; mod c;"),
        ("node/x/src/a.rs", "use crate::b::B;"),
        (
            "node/x/src/b.rs",
            "use super::c::C;\n#[cfg(test)]\nmod tests { use super::super::a::A; }",
        ),
        ("node/x/src/c.rs", "fn f() { crate::a::call(); }"),
        ("node/x/src/d.rs", "use crate::a::A;"),
    ];
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let found = all_circles(&sources);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].len(), 3);
    assert_eq!(circles(&sources).len(), 1);
}

#[test]
fn parent_and_child_may_import_each_other() {
    let files = [
        ("node/x/src/a.rs", "mod b; use b::B;"),
        ("node/x/src/a/b.rs", "use super::A; use crate::a::C;"),
    ];
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    assert!(all_circles(&sources).is_empty());
}
