//! The graph of typed links around an entry.
//!
//! The store holds links at the entry that states them. So one pass over all entries collects the
//! links that lead here; only links that an author of the text or this person states count.

use super::{AssessedEntry, ReadContext};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::entry_view::State;
use klnode_crdt::ids::EntryId;
use klnode_store::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of links in a graph; further ones are left out.
const GRAPH_LINKS_MAX: usize = 1_000;
/// Maximum number of links between the first entry and any other of the graph.
pub const GRAPH_DEPTH_MAX: usize = 8;

/// A directed link between two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphLink {
    /// The entry that states the link.
    pub from: EntryId,
    /// How the entry that states the link relates to the target.
    pub relation: Relation,
    pub to: EntryId,
}

/// Entries and links that can be reached from an entry, in either direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkGraph {
    /// The entries with their distance in steps, the first one with 0. An entry that this node does
    /// not hold may be among them.
    pub entries: BTreeMap<EntryId, usize>,
    /// The links between them, by the entry that states them.
    pub links: BTreeSet<GraphLink>,
    /// True if links were left out because there are too many.
    pub is_cut: bool,
}

impl ReadContext<'_> {
    /// The links within `depth` steps of an entry, of one relation or of all known ones.
    pub fn link_graph(
        &self,
        entry: EntryId,
        depth: usize,
        relation: Option<Relation>,
    ) -> Result<LinkGraph, Error> {
        let is_wanted =
            |link: &Link| relation.map_or(link.relation.name().is_some(), |of| link.relation == of);
        let mut touching: BTreeMap<EntryId, BTreeSet<GraphLink>> = BTreeMap::new();
        for row in self.snapshot.entries()? {
            let (from, row) = row?;
            if row.is_forgotten || row.is_internal(from) {
                continue;
            }
            // Links are read without an assessment; entries with links are few.
            let view = Error::unless_damaged(self.view(from))?.flatten().map(|(_, view)| view);
            if view.is_none_or(|view| view.links.is_empty() || view.state != State::Live) {
                continue;
            }
            let Some(found) = self.read_sound(from)? else { continue };
            for link in stated(&found).filter(|link| is_wanted(link)) {
                let link = GraphLink { from, relation: link.relation, to: link.to };
                touching.entry(from).or_default().insert(link);
                touching.entry(link.to).or_default().insert(link);
            }
        }
        Ok(reach(entry, depth.min(GRAPH_DEPTH_MAX), &touching))
    }
}

/// The links that an author of the text or this person states.
fn stated(found: &AssessedEntry) -> impl Iterator<Item = Link> + '_ {
    let links = found.view.links.iter().filter(|(_, by)| found.is_own_voice(by));
    links.map(|(link, _)| *link)
}

/// The part of a graph within `depth` steps of an entry.
fn reach(
    entry: EntryId,
    depth: usize,
    touching: &BTreeMap<EntryId, BTreeSet<GraphLink>>,
) -> LinkGraph {
    let mut graph = LinkGraph { entries: [(entry, 0)].into(), ..LinkGraph::default() };
    let mut edge = vec![entry];
    for step in 1..=depth {
        let mut next = Vec::new();
        for at in edge {
            for link in touching.get(&at).into_iter().flatten() {
                if graph.links.len() == GRAPH_LINKS_MAX && !graph.links.contains(link) {
                    graph.is_cut = true;
                    return graph;
                }
                graph.links.insert(*link);
                let other = if link.from == at { link.to } else { link.from };
                if let std::collections::btree_map::Entry::Vacant(place) =
                    graph.entries.entry(other)
                {
                    place.insert(step);
                    next.push(other);
                }
            }
        }
        edge = next;
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> EntryId {
        EntryId::from_bytes([byte; 16])
    }

    #[test]
    fn a_graph_ends_after_its_steps_and_follows_both_directions() {
        let link = |from, to| GraphLink { from: id(from), relation: Relation::USES, to: id(to) };
        let mut touching: BTreeMap<EntryId, BTreeSet<GraphLink>> = BTreeMap::new();
        for link in [link(1, 2), link(3, 2), link(3, 4), link(4, 1), link(5, 6)] {
            touching.entry(link.from).or_default().insert(link);
            touching.entry(link.to).or_default().insert(link);
        }
        let near = reach(id(2), 1, &touching);
        assert_eq!(near.entries, [(id(1), 1), (id(2), 0), (id(3), 1)].into());
        assert_eq!(near.links, [link(1, 2), link(3, 2)].into());
        let far = reach(id(2), 2, &touching);
        assert_eq!(far.entries.get(&id(4)), Some(&2));
        assert_eq!(far.links.len(), 4);
        assert!(!far.entries.contains_key(&id(5)));
        assert_eq!(reach(id(9), 3, &touching).entries, [(id(9), 0)].into());
    }
}
