//! Acknowledged commands are durable: which commands are synced before their answer, and which may
//! wait for the next sync.

use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId, TaskId, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::Signature;
use klnode_crdt::tally::Observation;
use klnode_crdt::testing::key;
use klnode_crdt::time::Day;
use klnode_engine::{
    AnchorResults, CheckoutCommand, Command, ComparedFinding, FindingCommand, Finish,
    InsightCommand, MaintenanceCommand, MarkChange, NewFinding, NewTask, PeerCommand,
    PriorEvidence, Promotion, Receipt, RemovalCommand, TaskCommand, TaskReceipt,
};
use klnode_federation::proto::Offerer;
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::ticket::{JoinOffer, Secret};
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use klnode_store::checkouts::CheckoutRow;
use klnode_store::findings::FindingKey;
use klnode_store::imports::ImportRow;
use klnode_store::maintenance_journal::{Service, ServiceRow};
use klnode_store::peers::row_types::{FeedCursor, PeerApproval, PeerRow, RefusalRow, WorkspaceRow};
use klnode_store::row_types::{CallerRow, Seq, ServedRow};
use klnode_tests::sample_records::stamp;
use klnode_tests::test_engine::{Node, START, lesson};
use std::collections::BTreeSet;

/// Whether callers rely on the command once it is answered. A new command needs a decision here and
/// an example below.
fn is_promised(command: &Command) -> bool {
    match command {
        Command::As { command, .. } => is_promised(command),
        Command::Peers(acts) => acts.iter().any(is_promised_of_peers),
        Command::Maintenance(act) => match &**act {
            MaintenanceCommand::Pass { notes, over, .. } => !notes.is_empty() || !over.is_empty(),
            MaintenanceCommand::Undo(_)
            | MaintenanceCommand::Accept(_)
            | MaintenanceCommand::Dismiss(_) => true,
        },
        Command::Looked(looks) => looks.is_counted,
        Command::Served(_) => false,
        Command::Task(act) => match **act {
            TaskCommand::Begin(_)
            | TaskCommand::Finish(..)
            | TaskCommand::Create(..)
            | TaskCommand::Observe { .. }
            | TaskCommand::Confirm { .. } => true,
        },
        Command::Finding(act) => match **act {
            FindingCommand::Record(..)
            | FindingCommand::Dismiss(..)
            | FindingCommand::Keep { .. }
            | FindingCommand::Show { .. }
            | FindingCommand::Settle(_) => true,
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
        | Command::ReleasePassages { .. }
        | Command::NotePrior { .. }
        | Command::NoteSource { .. }
        | Command::ConfirmPrimed { .. }
        | Command::ConfirmAsPerson { .. }
        | Command::Document(_)
        | Command::Insight(_)
        | Command::Removal(_)
        | Command::Rewrite => true,
    }
}

fn is_promised_of_peers(act: &PeerCommand) -> bool {
    match act {
        // These are read, received or compared again after a crash.
        PeerCommand::Advance(..)
        | PeerCommand::Distance(..)
        | PeerCommand::Told(..)
        | PeerCommand::Equal(..) => false,
        PeerCommand::Put(..)
        | PeerCommand::NameWorkspace(..)
        | PeerCommand::Invite(_)
        | PeerCommand::Rewind(_)
        | PeerCommand::Release(..)
        | PeerCommand::Released(..)
        | PeerCommand::Requeue(..)
        | PeerCommand::Restart(_)
        | PeerCommand::Reread(_)
        | PeerCommand::Refuse(..)
        | PeerCommand::Withdrawn(..)
        | PeerCommand::Readmit(_)
        | PeerCommand::ReadmitWaiting(_)
        | PeerCommand::Convict(..)
        | PeerCommand::Received(..) => true,
    }
}

fn about_entries(entry: EntryId, gone: EntryId) -> Vec<Command> {
    let title = ClaimEdit::Set(Register::TITLE, "another".into());
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    let looks = |is_counted| AnchorResults { held: vec![entry], broken: Vec::new(), is_counted };
    let marks = MarkChange { pinned: Some(true), ..MarkChange::default() };
    let words = ImportRow {
        id: Some("les-1".into()),
        words: "{}".into(),
        place: Some("root:1 a.md#".into()),
        base: None,
        links: Vec::new(),
    };
    let prior = PriorEvidence { successes: Thousandths::ONE, ..PriorEvidence::default() };
    let checkout = CheckoutRow {
        workspace: WorkspaceId::MAIN,
        identity: "remote:example.org/shop".into(),
        folder: "/src/shop".into(),
        since: START,
    };
    let promotion =
        Promotion { new: lesson("promoted"), source: entry, approved_by: None, reason: None };
    let again = Command::Create(Box::new(lesson("of a caller")));
    vec![
        Command::Create(Box::new(lesson("new"))),
        Command::As { caller: CallerRow::default(), command: Box::new(again) },
        Command::Promote(Box::new(promotion)),
        Command::Checkout(CheckoutCommand::Map([3; 16], checkout)),
        Command::Checkout(CheckoutCommand::Unmap([3; 16])),
        Command::Claim { entry, claims: vec![title] },
        Command::Observe { entry, of, amount },
        Command::ConfirmPrimed { entry },
        Command::ConfirmAsPerson { entry },
        Command::Mark { entry, marks },
        Command::Insight(InsightCommand::Restore([1; 16])),
        Command::ReleasePassages { entry, numbers: vec![7] },
        Command::Removal(RemovalCommand::Reinstate {
            workspace: WorkspaceId::from_bytes([3; 16]),
            member: AuthorId::from_bytes([3; 32]),
        }),
        Command::NotePrior { entry, prior },
        Command::NoteSource { entry, row: Box::new(words), dated: None },
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
    let begin = NewTask { agent: "two".into(), goal: "goal".into(), ..NewTask::default() };
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    let outcome = TaskOutcome { verdict: TaskVerdict::Success, quality: 0.5 };
    let finish = Finish::new(outcome, vec![]);
    let found = NewFinding {
        text: "A fault was found.".into(),
        severity: "low".into(),
        confidence: 0.5,
        anchors: vec!["path:a".into()],
        repositories: Vec::new(),
        verify: vec!["look".into()],
        dismissal: None,
        workspace: WorkspaceId::MAIN,
        is_once: false,
    };
    let finding = FindingKey { task, number: 1 };
    let compared =
        ComparedFinding { finding, is_dismissed: false, entry: None, others: Vec::new() };
    let pass = |over| MaintenanceCommand::Pass {
        service: Service::Duplicates,
        row: ServiceRow::default(),
        notes: Vec::new(),
        over,
        faded: Vec::new(),
        edges: Vec::new(),
    };
    let tasks = [
        TaskCommand::Begin(begin),
        TaskCommand::Create(task, Box::new(lesson("made in a task"))),
        TaskCommand::Observe { task, entry, of, amount },
        TaskCommand::Confirm { task, entry, is_lowered: false },
        TaskCommand::Finish(task, finish),
    ];
    let findings = [
        FindingCommand::Record(task, found),
        FindingCommand::Keep { finding, same: None },
        FindingCommand::Dismiss(finding, "reason".into()),
        FindingCommand::Show { of: task, to: task },
        FindingCommand::Settle(compared),
    ];
    let maintenance = [pass(Vec::new()), pass(vec![1])];
    let decided = [
        MaintenanceCommand::Undo(1),
        MaintenanceCommand::Accept(1),
        MaintenanceCommand::Dismiss(1),
    ];
    let findings = findings.map(|act| Command::Finding(Box::new(act)));
    let maintenance =
        maintenance.into_iter().chain(decided).map(|act| Command::Maintenance(Box::new(act)));
    let tasks = tasks.map(|act| Command::Task(Box::new(act)));
    findings.into_iter().chain(tasks).chain(maintenance).collect()
}

fn about_peers(entry: EntryId, peer: AuthorId) -> Vec<Command> {
    let row = PeerRow { approval: PeerApproval::Approved, since: START, ..PeerRow::default() };
    let cursor = FeedCursor { store: StoreId::default(), epoch: 7, position: Seq(9) };
    let offer = Offerer { peer, store: cursor.store };
    let workspace =
        WorkspaceRow { name: "team".into(), since: START, is_current: false, owner: None };
    let invitation = Invitation {
        secret: Secret::from_bytes([7; 16]),
        offer: JoinOffer::Mine,
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
        PeerCommand::Put(peer, Box::new(row)),
        PeerCommand::Equal(peer, START),
        PeerCommand::NameWorkspace(WorkspaceId::from_bytes([9; WorkspaceId::LEN]), workspace),
        PeerCommand::Invite(Box::new(invitation)),
        PeerCommand::Advance(peer, cursor),
        PeerCommand::Release(peer, entry, true),
        PeerCommand::Released(peer, entry, true),
        PeerCommand::Requeue(peer, vec![Digest::from_bytes([1; 32])]),
        PeerCommand::Refuse(offer, [6; 16], Box::new(refusal)),
        PeerCommand::Withdrawn(offer, BTreeSet::new()),
        PeerCommand::ReadmitWaiting(offer),
        PeerCommand::Readmit(offer),
        PeerCommand::Distance(key(6).author(), peer, 1),
        PeerCommand::Convict(peer, Box::new(two_faced(entry))),
        PeerCommand::Received(peer, Vec::new()),
        PeerCommand::Told(peer, Vec::new()),
        PeerCommand::Restart(peer),
        PeerCommand::Rewind(peer),
        PeerCommand::Reread(peer),
    ];
    acts.into_iter().map(|act| Command::Peers(vec![act])).collect()
}

/// Proof that an author signed two records for the same slot and counter.
fn two_faced(entry: EntryId) -> EquivocationProof {
    let (author, own) = (key(5), LiveRecords::default());
    let writer = RecordBuilder { key: &author, boot: Boot(5), entry, own: &own };
    let [one, two] = [1, 2].map(|day| {
        writer.observe(Observation::Success, Thousandths::ONE, Day(day), stamp(7)).unwrap()
    });
    EquivocationProof::find(one.signed_header(), two.signed_header())
        .expect("they contradict each other")
}

#[test]
fn commands_that_callers_rely_on_are_synced_before_their_answer() {
    let mut node = Node::start(1, 1);
    let [entry, gone] = ["kept", "gone"].map(|title| node.create(title));
    let begin = NewTask { agent: "one".into(), goal: "goal".into(), ..NewTask::default() };
    let begun = node.run(Command::Task(Box::new(TaskCommand::Begin(begin)))).unwrap();
    let Receipt::Task(TaskReceipt::Began(task)) = begun else { panic!("{begun:?}") };
    let disk = node.medium.disk();
    let examples =
        [about_entries(entry, gone), about_work(entry, task), about_peers(entry, key(4).author())];
    for command in examples.concat() {
        let is_promised = is_promised(&command);
        assert_eq!(command.is_incidental(), !is_promised, "{command:?}");
        let before = disk.counts().syncs;
        // Some of them are rejected here: committed changes are synced all the same.
        let answer = node.run(command.clone());
        let has_synced = disk.counts().syncs > before;
        assert_eq!(has_synced, is_promised, "{command:?}: {answer:?}");
    }
}
