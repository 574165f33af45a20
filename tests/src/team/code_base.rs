//! The checkout that the agents work in: files that show the present values of the facts.

use super::world::{Fact, FactKind, ReplayWorld};
use crate::checkout::Tree;
use klnode_crdt::claims::TextSet;
use klnode_crdt::record_builder::ClaimEdit;
use std::path::Path;

/// A file that exists on every day.
const README: &str = "README.md";

/// A checkout that follows the world.
pub(super) struct CodeBase {
    tree: Tree,
    /// The true value of each fact that files show.
    shown: Vec<usize>,
}

impl CodeBase {
    pub(super) fn new(world: &ReplayWorld) -> Self {
        let tree = Tree::new(&[README]);
        tree.write(README, b"# Services\n");
        let mut base = Self { tree, shown: Vec::new() };
        base.follow(world, 0);
        base
    }

    /// Root of the checkout.
    pub(super) fn path(&self) -> &Path {
        self.tree.path()
    }

    /// Writes the files of a day.
    pub(super) fn follow(&mut self, world: &ReplayWorld, day: u32) {
        let truths: Vec<usize> = world.facts.iter().map(|fact| fact.truth(day)).collect();
        if truths == self.shown {
            return;
        }
        let mut tracked = vec![README.to_owned()];
        for (fact, value) in world.facts.iter().zip(&truths) {
            match fact.kind {
                FactKind::Version => {
                    let path = format!("{}/Cargo.toml", fact.folder());
                    self.tree.write(&path, manifest(fact, *value).as_bytes());
                    tracked.push(path);
                }
                FactKind::Layout => {
                    let path = &fact.values[*value];
                    self.tree.write(path, format!("// The {}.\n", fact.item).as_bytes());
                    tracked.push(path.clone());
                }
                _ => {}
            }
        }
        tracked.sort();
        tracked.dedup();
        let tracked: Vec<&str> = tracked.iter().map(String::as_str).collect();
        self.tree.track(&tracked);
        self.shown = truths;
    }

    /// Claims that anchor an entry by a predicate in this checkout.
    pub(super) fn anchored(&self, predicate: &str) -> Vec<ClaimEdit> {
        let mut claims = self.tree.bound(&[predicate]);
        claims.push(ClaimEdit::Add(TextSet::DEPENDS_ON, predicate.to_owned()));
        claims
    }

    /// A predicate that holds on every day.
    pub(super) fn always_true() -> String {
        format!("path:{README}")
    }
}

fn manifest(fact: &Fact, value: usize) -> String {
    let (folder, item, version) = (fact.folder(), fact.item, &fact.values[value]);
    format!(
        "[package]\nname = \"{folder}\"\nversion = \"0.1.0\"\n\n[dependencies]\n\
         {item} = \"={version}.0\"\n"
    )
}
