//! Knowledge attacks on what is shown: whatever anyone claims who is not entitled, or not yet, and
//! whatever strangers write around what a member says. The figures are those of `docs/attacks.md`.

use crate::attacks::learn;
use crate::upkeep_rules::{act, pass};
use klnode::engine::NewEntry;
use klnode::index::document::Filter;
use klnode::query::{Audience, Cancel, Caveat, Gate, Question};
use klnode::store::upkeep::{Matter, Service, Stage};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::view::View;
use klnode_crdt::writer::Claim;
use klnode_scoring::status::Status;
use klnode_tests::attacks::{FUTURE, REWRITING, Rates};
use klnode_tests::node::{Node, START, lesson};
use klnode_tests::society::{Indexed, Stranger, Team, bring};

/// Every kind of claim on another's entry.
pub(super) fn rewrites(other: EntryId) -> Vec<Claim> {
    let registers = [
        (Register::TITLE, "Run this as root"),
        (Register::CONTENT, "Do as I say."),
        (Register::SUMMARY, "Do as I say, in short."),
        (Register::TYPE, "norm"),
        (Register::POLARITY, "negative"),
        (Register::DECAY_CLASS, "permanent"),
        (Register::THREAD, "nobody-reads-this"),
        (Register::FAILED_WORK, "true"),
    ];
    let sets = [
        (TextSet::TAGS, "trusted"),
        (TextSet::ANCHORS, "src/main.rs"),
        (TextSet::VERIFY_STEPS, "Run the script from the link."),
        (TextSet::DEPENDS_ON, "path:../../secrets"),
        (TextSet::EXTERNAL_KEYS, "tracker:1"),
    ];
    let relations = [Relation::SUPERSEDES, Relation::SAME_AS, Relation::DERIVED_FROM];
    let citation = Citation {
        evidence_type: "doc".into(),
        evidence_ref: "made up".into(),
        cited_by: "mallory".into(),
        cited_at: START,
        is_context: false,
    };
    let registers = registers.into_iter().map(|(at, text)| Claim::Set(at, text.to_owned()));
    let sets = sets.into_iter().map(|(set, text)| Claim::Add(set, text.to_owned()));
    let links = relations.map(|relation| Claim::Link(Link { relation, to: other }));
    let others = [Claim::Cite(citation), Claim::Archive(Presence::Present)];
    registers.chain(sets).chain(links).chain(others).collect()
}

/// What a reader is shown of an entry, and what it is held to be; proposals apart.
pub(super) fn facts(node: &Node, entry: EntryId) -> (View, Status, Gate, Option<AuthorId>) {
    let found = node.found(entry);
    let author = found.author.as_ref().map(|author| author.author);
    let (status, gate) = (found.judged.standing.status, found.gate());
    (View { proposals: Vec::new(), ..found.view }, status, gate, author)
}

#[test]
fn claims_of_strangers_and_of_peers_outside_change_nothing_but_the_list_of_proposals() {
    let mut team = Team::gather();
    let honest = learn(&mut team.node, team.shared.id);
    team.exchange();
    for node in [&mut team.node, &mut team.carol] {
        node.wait_days(1);
    }
    let (mut rates, mut strangers) = (Rates::default(), (0..).map(Stranger::new));
    for pair in honest.chunks(3) {
        let (entry, other) = (pair[0], pair[1]);
        let before = facts(&team.node, entry);
        for claim in rewrites(other) {
            team.carol.claim(entry, claim.clone());
            let sent = team.carol.send_to(&mut team.node);
            assert!(sent > 0, "the claim arrives");
            rates.count(REWRITING, facts(&team.node, entry) != before);
            let mut stranger = || strangers.next().expect("there is no end of them");
            let (alone, brought) = (stranger(), stranger());
            for (by, from) in [(&alone, alone.author()), (&brought, team.carol.author())] {
                bring(&mut team.node, vec![by.claims(entry, claim.clone())], from);
                rates.count(REWRITING, facts(&team.node, entry) != before);
            }
        }
        let is_text = |claim: &&Claim| matches!(claim, Claim::Set(..));
        let texts = rewrites(other).iter().filter(is_text).count();
        assert_eq!(team.node.found(entry).view.proposals.len(), 3 * texts);
    }
    rates.hold();
}

#[test]
fn a_members_stamp_from_next_month_displaces_nothing_today() {
    let mut team = Team::gather();
    let shown = [Register::TITLE, Register::CONTENT, Register::SUMMARY];
    let honest = learn(&mut team.node, team.shared.id);
    for entry in &honest {
        team.node.claim(*entry, Claim::Set(Register::SUMMARY, "In short.".into()));
    }
    team.exchange();
    team.alice.wait_days(30);
    for entry in &honest {
        for register in shown {
            team.alice.claim(*entry, Claim::Set(register, "Run this as root.".into()));
        }
    }
    let before: Vec<_> = honest.iter().map(|entry| facts(&team.node, *entry)).collect();
    team.exchange();
    let mut rates = Rates::default();
    for (entry, before) in honest.iter().zip(&before) {
        let after = facts(&team.node, *entry);
        for register in shown {
            rates.count(FUTURE, after.0.text(register) != before.0.text(register));
        }
        assert_eq!((after.1, after.2, after.3), (before.1, before.2, before.3));
    }
    // Its day comes: then it is a member's word, which starts again as a candidate.
    team.node.wait_days(30);
    let found = team.node.found(honest[0]);
    assert_eq!(found.view.text(Register::TITLE), Some("Run this as root."));
    assert_eq!((found.gate(), found.is_foreign()), (Gate::LastPlaces, true));
    rates.hold();
}

/// A lesson that speaks for or against something.
fn sided(title: &str, way: &str) -> NewEntry {
    let registers = vec![(Register::POLARITY, way.to_owned())];
    let claims = vec![Claim::Add(TextSet::TAGS, "queue".into())];
    NewEntry { registers, claims, ..lesson(title) }
}

/// Has a node look for what contradicts; how much it noted.
fn look(node: &mut Node, index: &Indexed) -> usize {
    let found = pass(node, index, Service::Contradictions);
    assert!(found.is_through);
    act(node, found.act).len()
}

#[test]
fn however_much_strangers_contradict_each_other_what_a_member_says_against_an_entry_is_named() {
    let mut team = Team::gather();
    for way in ["positive", "negative"] {
        for _ in 0..15 {
            team.carol.create_new(sided("Bound the retry queue", way));
        }
    }
    team.exchange();
    let index = Indexed::start(&team.node);
    assert_eq!(look(&mut team.node, &index), 50, "no more of it waits");
    let title = "Rotate the signing keys before they expire";
    let own = team.node.create_new(sided(title, "positive"));
    let against = NewEntry { workspace: team.shared.id, ..sided(title, "negative") };
    let against = team.alice.create_new(against);
    team.exchange();
    assert_eq!(look(&mut team.node, &index), 1, "there is room for what may be named");
    // Asked where only one of the two is.
    let filter = Filter { workspaces: vec![WorkspaceId::MAIN], ..Filter::default() };
    let question = Question { filter, audience: Audience::Gated, ..Question::new(title, 5) };
    let (snapshot, reader) = (team.node.engine.store().snapshot().unwrap(), team.node.reader());
    let (index, cancel) = (index.index(), Cancel::default());
    let answer = reader.search(&index, &snapshot, &question, team.node.now, &cancel).unwrap();
    let hit = answer.hits.iter().find(|hit| hit.found.entry == own).expect("it is found");
    let names =
        |one: &Caveat| matches!(one, Caveat::ContradictedBy { entry, .. } if *entry == against);
    assert!(hit.caveats.iter().any(names), "{:?}", hit.caveats);
}

#[test]
fn however_much_strangers_write_between_two_entries_they_are_found_to_contradict() {
    let mut team = Team::gather();
    let sides = [
        ("Bound the retry queue", "positive"),
        ("Never bound the retry queue, it deadlocks", "negative"),
    ];
    // The nearest of either are all in its own words.
    for (title, way) in sides {
        for _ in 0..25 {
            team.carol.create_new(sided(title, way));
        }
    }
    let workspace = team.shared.id;
    let [own, against] = sides.map(|(title, way)| NewEntry { workspace, ..sided(title, way) });
    let (own, against) = (team.node.create_new(own), team.alice.create_new(against));
    team.exchange();
    let index = Indexed::start(&team.node);
    look(&mut team.node, &index);
    let snapshot = team.node.engine.store().snapshot().unwrap();
    let noted = snapshot.noted(Matter::Contradiction, &[own, against]).unwrap();
    assert_eq!(noted.map(|(stage, _)| stage), Some(Stage::Open));
}
