//! Knowledge attacks on displayed text: claims of authors that are not entitled, or not yet, and
//! texts of strangers around a member's statement. The figures are those of `docs/internals/attacks.md`.

use crate::attacks_on_answers::learn;
use crate::maintenance_rules::{act, pass};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::NewEntry;
use klnode_index::document::DocumentFilter;
use klnode_query::{Audience, Cancel, GateDecision, HitCaveat, SearchQuery};
use klnode_scoring::status::Status;
use klnode_store::maintenance_journal::{Matter, Service, Stage};
use klnode_tests::knowledge_attacks::{FUTURE, REWRITING, Rates};
use klnode_tests::test_engine::{Node, START, lesson};
use klnode_tests::workspace_fixture::{Indexed, Stranger, Team, bring};

/// Every kind of claim on another author's entry.
pub(super) fn rewrites(other: EntryId) -> Vec<ClaimEdit> {
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
    let registers = registers.into_iter().map(|(at, text)| ClaimEdit::Set(at, text.to_owned()));
    let sets = sets.into_iter().map(|(set, text)| ClaimEdit::Add(set, text.to_owned()));
    let links = relations.map(|relation| ClaimEdit::Link(Link { relation, to: other }));
    let others = [ClaimEdit::Cite(citation), ClaimEdit::Archive(Presence::Present)];
    registers.chain(sets).chain(links).chain(others).collect()
}

/// View and judgement of an entry, without proposals.
pub(super) fn facts(
    node: &Node,
    entry: EntryId,
) -> (EntryView, Status, GateDecision, Option<AuthorId>) {
    let found = node.found(entry);
    let author = found.author.as_ref().map(|author| author.author);
    let (status, gate) = (found.assessment.standing.status, found.gate());
    (EntryView { proposals: Vec::new(), ..found.view }, status, gate, author)
}

#[test]
fn claims_of_strangers_and_non_members_become_proposals_only() {
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
        let is_text = |claim: &&ClaimEdit| matches!(claim, ClaimEdit::Set(..));
        let texts = rewrites(other).iter().filter(is_text).count();
        assert_eq!(team.node.found(entry).view.proposals.len(), 3 * texts);
    }
    rates.hold();
}

#[test]
fn a_members_claim_stamped_next_month_has_no_effect_today() {
    let mut team = Team::gather();
    let shown = [Register::TITLE, Register::CONTENT, Register::SUMMARY];
    let honest = learn(&mut team.node, team.shared.id);
    for entry in &honest {
        team.node.claim(*entry, ClaimEdit::Set(Register::SUMMARY, "In short.".into()));
    }
    team.exchange();
    team.alice.wait_days(30);
    for entry in &honest {
        for register in shown {
            team.alice.claim(*entry, ClaimEdit::Set(register, "Run this as root.".into()));
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
    // Once its day comes, it counts as a member's claim, and the entry starts again as a candidate.
    team.node.wait_days(30);
    let found = team.node.found(honest[0]);
    assert_eq!(found.view.text(Register::TITLE), Some("Run this as root."));
    assert_eq!((found.gate(), found.is_foreign()), (GateDecision::LastPlaces, true));
    rates.hold();
}

/// A lesson with a polarity.
fn sided(title: &str, way: &str) -> NewEntry {
    let registers = vec![(Register::POLARITY, way.to_owned())];
    let claims = vec![ClaimEdit::Add(TextSet::TAGS, "queue".into())];
    NewEntry { registers, claims, ..lesson(title) }
}

/// Runs the contradiction search on a node; returns the number of noted pairs.
fn look(node: &mut Node, index: &Indexed) -> usize {
    let found = pass(node, index, Service::Contradictions);
    assert!(found.is_through);
    act(node, found.act).len()
}

#[test]
fn contradictions_by_members_are_named_despite_many_by_strangers() {
    let mut team = Team::gather();
    for way in ["positive", "negative"] {
        for _ in 0..15 {
            team.carol.create_new(sided("Bound the retry queue", way));
        }
    }
    team.exchange();
    let index = Indexed::start(&team.node);
    assert_eq!(look(&mut team.node, &index), 50, "the queue is bounded");
    let title = "Rotate the signing keys before they expire";
    let own = team.node.create_new(sided(title, "positive"));
    let against = NewEntry { workspace: team.shared.id, ..sided(title, "negative") };
    let against = team.alice.create_new(against);
    team.exchange();
    assert_eq!(look(&mut team.node, &index), 1, "there is room for pairs that may be named");
    // The question covers only the workspace of one of the two.
    let filter =
        DocumentFilter { workspaces: vec![WorkspaceId::MAIN], ..DocumentFilter::default() };
    let question = SearchQuery { filter, audience: Audience::Gated, ..SearchQuery::new(title, 5) };
    let (snapshot, reader) = (team.node.engine.store().snapshot().unwrap(), team.node.reader());
    let (index, cancel) = (index.index(), Cancel::default());
    let answer = reader.search(&index, &snapshot, &question, team.node.now, &cancel).unwrap();
    let hit = answer.hits.iter().find(|hit| hit.found.entry == own).expect("it is found");
    let names = |one: &HitCaveat| matches!(one, HitCaveat::ContradictedBy { entry, .. } if *entry == against);
    assert!(hit.caveats.iter().any(names), "{:?}", hit.caveats);
}

#[test]
fn many_texts_by_strangers_do_not_hide_a_contradiction() {
    let mut team = Team::gather();
    let sides = [
        ("Bound the retry queue", "positive"),
        ("Never bound the retry queue, it deadlocks", "negative"),
    ];
    // The nearest neighbours of either are all copies of its own words.
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
