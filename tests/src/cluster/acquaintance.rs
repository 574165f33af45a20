//! Who the nodes of a cluster are to each other: peers with filters, blocked authors, members of a
//! workspace.

use super::Cluster;
use klnode::engine::{NewEntry, PeerAct, SourceKey};
use klnode::replicate::Event;
use klnode::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{AuthorId, Nonce, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;
use klnode_crdt::writer::Claim;
use klnode_federation::proto::filter::Filter;

impl Cluster {
    /// Makes two nodes peers of each other.
    pub fn pair(&mut self, one: usize, two: usize, is_mine: bool) {
        for (at, other) in [(one, two), (two, one)] {
            if self.members[at].puppet.is_some() {
                continue;
            }
            let (peer, since) = (self.author(other), self.now(at));
            let row = PeerRow {
                name: format!("node {other}"),
                approval: Approval::Approved,
                is_mine,
                since,
                ..PeerRow::default()
            };
            self.put_peer(at, peer, row);
        }
        self.links.insert((one.min(two), one.max(two)));
        self.connect(one, two);
    }

    /// Changes what a node knows of a peer.
    pub fn put_peer(&mut self, at: usize, peer: AuthorId, row: PeerRow) {
        self.replica(at).note(vec![PeerAct::Put(peer, Box::new(row))]).expect("noted");
        self.happen(at, Event::Changed([peer].into()));
    }

    /// Sets what a node sends to a peer.
    pub fn set_egress(&mut self, at: usize, to: usize, change: impl FnOnce(&mut Filter)) {
        let society = self.society(at);
        let peer = self.author(to);
        let row = society.peers.get(&peer).expect("acquainted").clone();
        let mut filter = self.replica(at).examiner().egress(&row, &society);
        change(&mut filter);
        self.put_peer(at, peer, PeerRow { egress: Some(filter), ..row });
    }

    /// Sets what a node takes from a peer; what was refused is asked for again.
    pub fn set_ingress(&mut self, at: usize, from: usize, change: impl FnOnce(&mut Filter)) {
        let mut filter = self.ingress(at, from);
        change(&mut filter);
        let peer = self.author(from);
        let row = self.society(at).peers.get(&peer).expect("acquainted").clone();
        self.put_peer(at, peer, PeerRow { ingress: Some(filter), ..row });
        self.readmit(at);
    }

    /// What a node takes from a peer.
    pub fn ingress(&mut self, at: usize, from: usize) -> Filter {
        let (society, peer) = (self.society(at), self.author(from));
        let row = society.peers.get(&peer).expect("acquainted");
        self.replica(at).examiner().ingress(row, &society)
    }

    /// Blocks an author on a node, or no longer; then what was refused is asked for again.
    pub fn block(&mut self, at: usize, author: AuthorId, is_blocked: bool) {
        let society = self.society(at);
        let unmet = PeerRow { approval: Approval::Refused, ..PeerRow::default() };
        let row = society.peers.get(&author).cloned().unwrap_or(unmet);
        self.put_peer(at, author, PeerRow { is_blocked, ..row });
        if !is_blocked {
            self.readmit(at);
        }
    }

    /// Whether a node has blocked an author.
    pub fn is_blocked(&mut self, at: usize, author: AuthorId) -> bool {
        self.society(at).peers.get(&author).is_some_and(|row| row.is_blocked)
    }

    fn readmit(&mut self, at: usize) {
        for other in 0..self.count() {
            let peer = self.author(other);
            let offers = self.snapshot(at).offers_of(peer).expect("readable");
            if offers.is_empty() {
                continue;
            }
            let acts = offers.into_iter().map(PeerAct::Readmit).chain([PeerAct::Rewind(peer)]);
            self.replica(at).note(acts.collect()).expect("noted");
            if other != at && self.network.is_linked(at, other) {
                self.happen(at, Event::Connected(peer));
            }
        }
    }

    /// Founds a workspace with these members, the first its owner; all know its name.
    pub fn found(&mut self, members: &[usize]) -> WorkspaceId {
        let owner = members[0];
        let nonce = Nonce::from_bytes([7; 16]);
        let id = WorkspaceId::of(self.author(owner), nonce);
        let row =
            |since| WorkspaceRow { name: "team".into(), since, is_current: false, owner: None };
        for at in members {
            let since = self.now(*at);
            self.replica(*at).note(vec![PeerAct::NameWorkspace(id, row(since))]).expect("noted");
        }
        let mut claims = vec![Claim::Add(TextSet::OWNER_NONCES, nonce.to_string())];
        for at in &members[1..] {
            claims.push(Claim::Add(TextSet::MEMBERS, self.author(*at).to_string()));
        }
        let new = NewEntry {
            workspace: id,
            memory: Memory::Episodic,
            kind: Kind::Signal,
            title: "team".into(),
            content: "# Settings".into(),
            registers: Vec::new(),
            claims,
            citations: Vec::new(),
            source: Some(SourceKey { format: charter::FORMAT.into(), key: charter::KEY.into() }),
        };
        self.create(owner, new);
        id
    }
}
