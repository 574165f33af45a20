//! What was answered is on the platter: which commands are synced before anyone hears of them, and
//! which may wait for the next one.

use klnode::engine::{
    CheckoutAct, Command, Compared, FindingAct, Finish, Looks, Marks, NewFinding, NewTask, PeerAct,
    PriorEvidence, Promotion, Receipt, TaskAct, TaskDone, UpkeepAct,
};
use klnode::store::findings::FindingKey;
use klnode::store::peers::rows::{Approval, Cursor, PeerRow, RefusalRow, WorkspaceRow};
use klnode::store::places::CheckoutRow;
use klnode::store::rows::{CallerRow, Seq, ServedRow};
use klnode::store::upkeep::{Service, ServiceRow};
use klnode_crdt::equivocation::Proof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId, TaskId, WorkspaceId};
use klnode_crdt::key::Signature;
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::testing::key;
use klnode_crdt::time::Day;
use klnode_crdt::writer::{Claim, Writer};
use klnode_federation::proto::Offerer;
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::ticket::{Offer, Secret};
use klnode_scoring::outcome::{Outcome, Verdict};
use klnode_tests::node::{Node, START, lesson};
use klnode_tests::samples::stamp;
use std::collections::BTreeSet;

/// Whether somebody relies on it once it is answered. Whoever adds a command decides here, and adds
/// an example below.
fn is_promised(command: &Command) -> bool {
    match command {
        Command::As { command, .. } => is_promised(command),
        Command::Peers(acts) => acts.iter().any(is_promised_of_peers),
        Command::Upkeep(act) => match &**act {
            UpkeepAct::Pass { notes, over, .. } => !notes.is_empty() || !over.is_empty(),
            UpkeepAct::Undo(_) | UpkeepAct::Accept(_) | UpkeepAct::Dismiss(_) => true,
        },
        Command::Looked(looks) => looks.is_counted,
        Command::Served(_) => false,
        Command::Task(act) => match **act {
            TaskAct::Begin(_)
            | TaskAct::Finish(..)
            | TaskAct::Create(..)
            | TaskAct::Observe { .. }
            | TaskAct::Confirm { .. } => true,
        },
        Command::Finding(act) => match **act {
            FindingAct::Record(..)
            | FindingAct::Dismiss(..)
            | FindingAct::Keep { .. }
            | FindingAct::Show { .. }
            | FindingAct::Settle(_) => true,
        },
        Command::Create(_)
        | Command::Promote(_)
        | Command::Checkout(_)
        | Command::Claim { .. }
        | Command::Observe { .. }
        | Command::Reset { .. }
        | Command::Retract { .. }
        | Command::Forget { .. }
        | Command::Ingest(_)
        | Command::Release(_)
        | Command::Reject(_)
        | Command::Mark { .. }
        | Command::NotePrior { .. }
        | Command::ConfirmPrimed { .. }
        | Command::ConfirmAsPerson { .. }
        | Command::Rewrite => true,
    }
}

fn is_promised_of_peers(act: &PeerAct) -> bool {
    match act {
        // Read, said or compared again.
        PeerAct::Advance(..) | PeerAct::Distance(..) | PeerAct::Told(..) | PeerAct::Equal(..) => {
            false
        }
        PeerAct::Put(..)
        | PeerAct::NameWorkspace(..)
        | PeerAct::Invite(_)
        | PeerAct::Rewind(_)
        | PeerAct::Release(..)
        | PeerAct::Released(..)
        | PeerAct::Requeue(..)
        | PeerAct::Restart(_)
        | PeerAct::Reread(_)
        | PeerAct::Refuse(..)
        | PeerAct::Withdrawn(..)
        | PeerAct::Readmit(_)
        | PeerAct::ReadmitWaiting(_)
        | PeerAct::Convict(..)
        | PeerAct::Received(..) => true,
    }
}

fn about_entries(entry: EntryId, gone: EntryId) -> Vec<Command> {
    let title = Claim::Set(Register::TITLE, "another".into());
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    let looks = |is_counted| Looks { held: vec![entry], broken: Vec::new(), is_counted };
    let marks = Marks { pinned: Some(true), ..Marks::default() };
    let prior = PriorEvidence { successes: Thousandths::ONE, ..PriorEvidence::default() };
    let checkout = CheckoutRow {
        workspace: WorkspaceId::MAIN,
        identity: "remote:example.org/shop".into(),
        folder: "/src/shop".into(),
        since: START,
    };
    let promotion = Promotion { new: lesson("promoted"), source: entry, approved_by: None };
    let again = Command::Create(Box::new(lesson("of a caller")));
    vec![
        Command::Create(Box::new(lesson("new"))),
        Command::As { caller: CallerRow::default(), command: Box::new(again) },
        Command::Promote(Box::new(promotion)),
        Command::Checkout(CheckoutAct::Map([3; 16], checkout)),
        Command::Checkout(CheckoutAct::Unmap([3; 16])),
        Command::Claim { entry, claims: vec![title] },
        Command::Observe { entry, of, amount },
        Command::ConfirmPrimed { entry },
        Command::ConfirmAsPerson { entry },
        Command::Mark { entry, marks },
        Command::NotePrior { entry, prior },
        Command::Served(ServedRow { entries: vec![entry], ..ServedRow::default() }),
        Command::Looked(looks(false)),
        Command::Looked(looks(true)),
        Command::Reset { entry },
        Command::Retract { entry: gone },
        Command::Forget { entry: gone },
        Command::Ingest(Vec::new()),
        Command::Release(Digest::from_bytes([1; 32])),
        Command::Reject(Digest::from_bytes([1; 32])),
        Command::Rewrite,
    ]
}

fn about_work(entry: EntryId, task: TaskId) -> Vec<Command> {
    let begin = NewTask { agent: "two".into(), goal: "goal".into(), thread: None, parent: None };
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    let outcome = Outcome { verdict: Verdict::Success, quality: 0.5 };
    let finish = Finish::new(outcome, vec![]);
    let found = NewFinding {
        text: "What was found.".into(),
        severity: "low".into(),
        confidence: 0.5,
        anchors: vec!["path:a".into()],
        repositories: Vec::new(),
        verify: vec!["look".into()],
        dismissal: None,
        workspace: WorkspaceId::MAIN,
    };
    let finding = FindingKey { task, number: 1 };
    let compared = Compared { finding, is_dismissed: false, entry: None, others: Vec::new() };
    let pass = |over| UpkeepAct::Pass {
        service: Service::Duplicates,
        row: ServiceRow::default(),
        notes: Vec::new(),
        over,
        faded: Vec::new(),
        edges: Vec::new(),
    };
    let tasks = [
        TaskAct::Begin(begin),
        TaskAct::Create(task, Box::new(lesson("made in a task"))),
        TaskAct::Observe { task, entry, of, amount },
        TaskAct::Confirm { task, entry, is_lowered: false },
        TaskAct::Finish(task, finish),
    ];
    let findings = [
        FindingAct::Record(task, found),
        FindingAct::Keep { finding, same: None },
        FindingAct::Dismiss(finding, "reason".into()),
        FindingAct::Show { of: task, to: task },
        FindingAct::Settle(compared),
    ];
    let upkeep = [pass(Vec::new()), pass(vec![1])];
    let decided = [UpkeepAct::Undo(1), UpkeepAct::Accept(1), UpkeepAct::Dismiss(1)];
    let findings = findings.map(|act| Command::Finding(Box::new(act)));
    let upkeep = upkeep.into_iter().chain(decided).map(|act| Command::Upkeep(Box::new(act)));
    let tasks = tasks.map(|act| Command::Task(Box::new(act)));
    findings.into_iter().chain(tasks).chain(upkeep).collect()
}

fn about_peers(entry: EntryId, peer: AuthorId) -> Vec<Command> {
    let row = PeerRow { approval: Approval::Approved, since: START, ..PeerRow::default() };
    let cursor = Cursor { store: StoreId::default(), epoch: 7, position: Seq(9) };
    let offer = Offerer { peer, store: cursor.store };
    let workspace =
        WorkspaceRow { name: "team".into(), since: START, is_current: false, owner: None };
    let invitation = Invitation {
        secret: Secret::from_bytes([7; 16]),
        offer: Offer::Mine,
        expires: START,
        must_confirm: false,
        used_by: None,
        joiner: None,
    };
    let refusal = RefusalRow {
        header: vec![1, 2, 3],
        signature: Signature::from_bytes([4; 64]),
        counter: 5,
        digest: Digest::from_bytes([1; 32]),
        reason: "filter".into(),
        is_unknown: false,
    };
    let acts = vec![
        PeerAct::Put(peer, Box::new(row)),
        PeerAct::Equal(peer, START),
        PeerAct::NameWorkspace(WorkspaceId::from_bytes([9; WorkspaceId::LEN]), workspace),
        PeerAct::Invite(Box::new(invitation)),
        PeerAct::Advance(peer, cursor),
        PeerAct::Release(peer, entry, true),
        PeerAct::Released(peer, entry, true),
        PeerAct::Requeue(peer, vec![Digest::from_bytes([1; 32])]),
        PeerAct::Refuse(offer, [6; 16], Box::new(refusal)),
        PeerAct::Withdrawn(offer, BTreeSet::new()),
        PeerAct::ReadmitWaiting(offer),
        PeerAct::Readmit(offer),
        PeerAct::Distance(key(6).author(), peer, 1),
        PeerAct::Convict(peer, Box::new(two_faced(entry))),
        PeerAct::Received(peer, Vec::new()),
        PeerAct::Told(peer, Vec::new()),
        PeerAct::Restart(peer),
        PeerAct::Rewind(peer),
        PeerAct::Reread(peer),
    ];
    acts.into_iter().map(|act| Command::Peers(vec![act])).collect()
}

/// Somebody has signed two things as one.
fn two_faced(entry: EntryId) -> Proof {
    let (author, own) = (key(5), Holding::default());
    let writer = Writer { key: &author, boot: Boot(5), entry, own: &own };
    let [one, two] = [1, 2].map(|day| {
        writer.observe(Observation::Success, Thousandths::ONE, Day(day), stamp(7)).unwrap()
    });
    Proof::find(one.signed(), two.signed()).expect("they contradict each other")
}

#[test]
fn whatever_anyone_relies_on_is_synced_before_it_is_answered() {
    let mut node = Node::start(1, 1);
    let [entry, gone] = ["kept", "gone"].map(|title| node.create(title));
    let begin = NewTask { agent: "one".into(), goal: "goal".into(), thread: None, parent: None };
    let begun = node.run(Command::Task(Box::new(TaskAct::Begin(begin)))).unwrap();
    let Receipt::Task(TaskDone::Began(task)) = begun else { panic!("{begun:?}") };
    let disk = node.medium.disk();
    let examples =
        [about_entries(entry, gone), about_work(entry, task), about_peers(entry, key(4).author())];
    for command in examples.concat() {
        let is_promised = is_promised(&command);
        assert_eq!(command.is_incidental(), !is_promised, "{command:?}");
        let before = disk.counts().syncs;
        // Some of them are rejected here: what is committed is synced all the same.
        let answer = node.run(command.clone());
        let has_synced = disk.counts().syncs > before;
        assert_eq!(has_synced, is_promised, "{command:?}: {answer:?}");
    }
}
