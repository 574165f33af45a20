//! Relations between the nodes of a cluster: peers with filters, blocked authors, members of a
//! workspace.

use super::Cluster;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, Nonce, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::workspace_charter;
use klnode_engine::{NewEntry, PeerCommand, SourceKey};
use klnode_federation::proto::entry_filter::PeerFilter;
use klnode_replication::ReplicaEvent;
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};

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
                approval: PeerApproval::Approved,
                is_mine,
                since,
                ..PeerRow::default()
            };
            self.put_peer(at, peer, row);
        }
        self.links.insert((one.min(two), one.max(two)));
        self.connect(one, two);
    }

    /// Replaces a node's row for a peer.
    pub fn put_peer(&mut self, at: usize, peer: AuthorId, row: PeerRow) {
        self.replica(at).note(vec![PeerCommand::Put(peer, Box::new(row))]).expect("noted");
        self.happen(at, ReplicaEvent::Changed([peer].into()));
    }

    /// Changes the filter for records that a node sends to a peer.
    pub fn set_egress(&mut self, at: usize, to: usize, change: impl FnOnce(&mut PeerFilter)) {
        let membership = self.membership(at);
        let peer = self.author(to);
        let row = membership.peers.get(&peer).expect("acquainted").clone();
        let mut filter = self.replica(at).policy().egress(&row, &membership);
        change(&mut filter);
        self.put_peer(at, peer, PeerRow { egress: Some(filter), ..row });
    }

    /// Changes the filter for records that a node accepts from a peer, and requests refused ones
    /// again.
    pub fn set_ingress(&mut self, at: usize, from: usize, change: impl FnOnce(&mut PeerFilter)) {
        let mut filter = self.ingress(at, from);
        change(&mut filter);
        let peer = self.author(from);
        let row = self.membership(at).peers.get(&peer).expect("acquainted").clone();
        self.put_peer(at, peer, PeerRow { ingress: Some(filter), ..row });
        self.readmit(at);
    }

    /// The filter for records that a node accepts from a peer.
    pub fn ingress(&mut self, at: usize, from: usize) -> PeerFilter {
        let (membership, peer) = (self.membership(at), self.author(from));
        let row = membership.peers.get(&peer).expect("acquainted");
        self.replica(at).policy().ingress(row, &membership)
    }

    /// Blocks or unblocks an author on a node; unblocking requests refused records again.
    pub fn block(&mut self, at: usize, author: AuthorId, is_blocked: bool) {
        let membership = self.membership(at);
        let unmet = PeerRow { approval: PeerApproval::Refused, ..PeerRow::default() };
        let row = membership.peers.get(&author).cloned().unwrap_or(unmet);
        self.put_peer(at, author, PeerRow { is_blocked, ..row });
        if !is_blocked {
            self.readmit(at);
        }
    }

    /// Whether a node has blocked an author.
    pub fn is_blocked(&mut self, at: usize, author: AuthorId) -> bool {
        self.membership(at).peers.get(&author).is_some_and(|row| row.is_blocked)
    }

    fn readmit(&mut self, at: usize) {
        for other in 0..self.count() {
            let peer = self.author(other);
            let offers = self.snapshot(at).offers_of(peer).expect("readable");
            if offers.is_empty() {
                continue;
            }
            let acts =
                offers.into_iter().map(PeerCommand::Readmit).chain([PeerCommand::Rewind(peer)]);
            self.replica(at).note(acts.collect()).expect("noted");
            if other != at && self.network.is_linked(at, other) {
                self.happen(at, ReplicaEvent::Connected(peer));
            }
        }
    }

    /// Creates a workspace with these members, the first one its owner; all nodes know its name.
    pub fn found(&mut self, members: &[usize]) -> WorkspaceId {
        let owner = members[0];
        let nonce = Nonce::from_bytes([7; 16]);
        let id = WorkspaceId::of(self.author(owner), nonce);
        let row =
            |since| WorkspaceRow { name: "team".into(), since, is_current: false, owner: None };
        for at in members {
            let since = self.now(*at);
            self.replica(*at)
                .note(vec![PeerCommand::NameWorkspace(id, row(since))])
                .expect("noted");
        }
        let mut claims = vec![ClaimEdit::Add(TextSet::OWNER_NONCES, nonce.to_string())];
        for at in &members[1..] {
            claims.push(ClaimEdit::Add(TextSet::MEMBERS, self.author(*at).to_string()));
        }
        let new = NewEntry {
            workspace: id,
            memory: Memory::Episodic,
            kind: EntryType::Signal,
            title: "team".into(),
            content: "# Settings".into(),
            registers: Vec::new(),
            claims,
            citations: Vec::new(),
            source: Some(SourceKey {
                format: workspace_charter::FORMAT.into(),
                key: workspace_charter::KEY.into(),
            }),
        };
        self.create(owner, new);
        id
    }
}
