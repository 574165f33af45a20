//! What the operator decides: who may talk, what passes, who belongs to a workspace.

use super::pairing::PairError;
use super::replica::Writer;
use super::run::Core;
use crate::engine::{Command, NewEntry, PeerAct, SourceKey};
use crate::query::{cleaned, name_of};
use crate::store::peers::rows::{Approval, PeerRow, WorkspaceRow};
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{AuthorId, Nonce, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;
use klnode_crdt::writer::Claim;
use klnode_federation::proto::filter::Filter;
use klnode_federation::proto::ticket::{Offer, is_workspace_name};

impl Core {
    /// Lets a peer talk, and makes it what it was offered to be. A request to join by address needs its
    /// code ([`Core::approve_with_code`]).
    pub fn approve(&mut self, peer: AuthorId) -> Result<(), PairError> {
        if self.needs_code(peer) {
            return Err(PairError::CodeNeeded(self.called(peer)?));
        }
        let held = self.row(peer)?;
        let row = PeerRow { approval: Approval::Approved, ..held };
        self.settle(peer, row)
    }

    /// Says no to a node that waits. One that may talk already goes on as it was, without what it was
    /// offered; one that waits for nothing is not sent away by a word that says no to nothing.
    pub fn refuse(&mut self, peer: AuthorId) -> Result<(), PairError> {
        // A request to join by address ends, and so does an attempt of this node.
        if self.refuse_request(peer) || self.cancel_join(peer) {
            return Ok(());
        }
        let held = self.row(peer)?;
        match (held.approval, held.offer.is_some()) {
            (Approval::Waiting | Approval::Refused, _) => self.remove(peer),
            (Approval::Approved, true) => {
                let row = PeerRow { offer: None, ..held };
                Ok(self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?)
            }
            (Approval::Approved, false) => Err(PairError::NotWaiting(self.called(peer)?)),
        }
    }

    /// Sends a node away. What it holds can still be forgotten when it comes back.
    pub fn remove(&mut self, peer: AuthorId) -> Result<(), PairError> {
        let held = self.row(peer)?;
        // Whoever comes back begins with nothing.
        let (offer, egress, ingress, offered) = (None, None, None, Vec::new());
        let approval = Approval::Refused;
        let row = PeerRow { approval, is_mine: false, offer, egress, ingress, offered, ..held };
        self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?;
        self.net.forbid(peer);
        self.changed([peer].into());
        Ok(())
    }

    /// Refuses what a key signs from now on, or no longer; what was refused is asked for again.
    pub fn block(&mut self, peer: AuthorId, is_blocked: bool) -> Result<(), PairError> {
        let now = (self.now)();
        let held = self.society()?.peers.get(&peer).cloned();
        let was_blocked = held.as_ref().is_some_and(|row| row.is_blocked);
        match is_blocked {
            true if peer == self.own => return Err(PairError::Oneself("block")),
            false if !was_blocked => return Err(PairError::NotBlocked(self.called(peer)?)),
            _ => {}
        }
        if is_blocked {
            self.refuse_request(peer);
        }
        // A key may be blocked without ever having been met.
        let unmet = PeerRow { approval: Approval::Refused, since: now, ..PeerRow::default() };
        let row = PeerRow { is_blocked, ..held.unwrap_or(unmet) };
        let mut acts = vec![PeerAct::Put(peer, Box::new(row))];
        if !is_blocked {
            acts.extend(self.readmit()?);
        }
        self.replica.note(acts)?;
        self.changed([peer].into());
        Ok(())
    }

    /// Vouches for a peer from today on, or takes that back. Vouching again renews it.
    pub fn vouch(&mut self, peer: AuthorId, is_vouched: bool) -> Result<(), PairError> {
        let held = self.row(peer)?;
        let was_vouched = held.vouched.is_some();
        let today = (self.now)().day();
        let row = PeerRow { vouched: is_vouched.then_some(today), ..held };
        let is_convicted = self.replica.writer().store().snapshot()?.equivocation(peer)?.is_some();
        match is_vouched {
            true if row.is_mine => return Err(PairError::VouchForOwn(self.called(peer)?)),
            true if is_convicted => return Err(PairError::VouchForConvicted(self.called(peer)?)),
            true if row.standing_vouch().is_none() => {
                return Err(PairError::VouchForSilent(self.called(peer)?));
            }
            false if !was_vouched => return Err(PairError::NotVouched(self.called(peer)?)),
            _ => {}
        }
        self.replica.note(vec![PeerAct::Put(peer, Box::new(row))])?;
        self.changed([peer].into());
        Ok(())
    }

    /// Sets what is sent to a peer and what is taken from it; none leaves it as it is.
    pub fn set_filters(
        &mut self,
        peer: AuthorId,
        egress: Option<Filter>,
        ingress: Option<Filter>,
    ) -> Result<(), PairError> {
        let held = self.row(peer)?;
        let mut acts = if ingress.is_some() { self.readmit()? } else { Vec::new() };
        let row = PeerRow {
            egress: egress.or(held.egress.clone()),
            ingress: ingress.or(held.ingress.clone()),
            ..held
        };
        acts.push(PeerAct::Put(peer, Box::new(row)));
        self.replica.note(acts)?;
        self.changed([peer].into());
        Ok(())
    }

    /// What is sent to a peer, or what is taken from it, is the configuration's again.
    pub fn reset_filters(
        &mut self,
        peer: AuthorId,
        is_sent: bool,
        is_taken: bool,
    ) -> Result<(), PairError> {
        let held = self.row(peer)?;
        let mut acts = if is_taken { self.readmit()? } else { Vec::new() };
        let row = PeerRow {
            egress: held.egress.clone().filter(|_| !is_sent),
            ingress: held.ingress.clone().filter(|_| !is_taken),
            ..held
        };
        acts.push(PeerAct::Put(peer, Box::new(row)));
        self.replica.note(acts)?;
        self.changed([peer].into());
        Ok(())
    }

    /// What was refused from any store may be welcome now: it is asked for again from the start, once
    /// this is noted.
    fn readmit(&mut self) -> Result<Vec<PeerAct>, PairError> {
        let peers: Vec<AuthorId> = self.society()?.peers.keys().copied().collect();
        let mut acts = Vec::new();
        for peer in peers {
            let snapshot = self.replica.writer().store().snapshot()?;
            for offer in snapshot.offers_of(peer)? {
                acts.extend([PeerAct::Readmit(offer), PeerAct::Rewind(peer)]);
                self.again.insert(peer);
            }
        }
        Ok(acts)
    }

    fn row(&mut self, peer: AuthorId) -> Result<PeerRow, PairError> {
        if peer == self.own {
            return Err(PairError::Oneself("decide about a peer"));
        }
        let held = self.society()?.peers.get(&peer).cloned();
        held.ok_or_else(|| PairError::NoSuchPeer(peer.to_string()))
    }

    /// What a node is called here.
    pub(super) fn called(&mut self, peer: AuthorId) -> Result<String, PairError> {
        let society = self.society()?;
        Ok(name_of(&society, peer))
    }

    /// An approved peer becomes what it was offered to be, and is talked to. Its row comes last: where a
    /// workspace takes nobody more it waits as it did, with its offer, and can be approved again.
    pub(super) fn settle(&mut self, peer: AuthorId, row: PeerRow) -> Result<(), PairError> {
        let mut commands = Vec::new();
        let mut row = row;
        match row.offer.take() {
            Some(Offer::Mine) => row.is_mine = true,
            Some(Offer::Member(id, _)) => {
                let mut claims = vec![Claim::Add(TextSet::MEMBERS, peer.to_string())];
                // Members who are not paired with it learn its name from the charter.
                claims.extend(self.charter(id)?.rename(peer, &cleaned(&row.name)));
                commands.push(Command::Claim { entry: charter::entry(id), claims });
            }
            None => {}
        }
        if row.is_mine {
            commands.extend(self.share_workspaces(peer)?);
        }
        if !commands.is_empty() {
            for answer in self.replica.writer().write(commands) {
                answer?;
            }
        }
        self.let_in(peer, row)
    }

    /// Notes an approved peer, and talks to it. An offer that it has stays open.
    pub(super) fn let_in(&mut self, peer: AuthorId, row: PeerRow) -> Result<(), PairError> {
        let places = row.places();
        // What only the person's own machines may bring was refused from one that was not.
        let is_new = row.counts_as_mine() && !self.society()?.mine.contains(&peer);
        let mut acts = if is_new { self.readmit()? } else { Vec::new() };
        acts.push(PeerAct::Put(peer, Box::new(row)));
        self.replica.note(acts)?;
        self.net.allow(peer, places);
        self.changed([peer].into());
        if self.connected.contains_key(&peer) {
            self.begin_session(peer);
        }
        Ok(())
    }

    /// Another node of the same person administers what this one owns.
    fn share_workspaces(&mut self, peer: AuthorId) -> Result<Vec<Command>, PairError> {
        let society = self.society()?;
        let shared = society.workspaces.iter().filter_map(|(id, shared)| {
            let owner = shared.charter.owner.map(|(owner, _)| owner);
            let set = match owner == Some(self.own) {
                true => TextSet::ADMINS,
                false if shared.charter.admins.contains(&self.own) => TextSet::MEMBERS,
                false => return None,
            };
            let claims = vec![Claim::Add(set, peer.to_string())];
            Some(Command::Claim { entry: charter::entry(*id), claims })
        });
        Ok(shared.collect())
    }

    // Workspaces.

    /// Makes a workspace that this node owns.
    pub fn new_workspace(&mut self, name: &str) -> Result<WorkspaceId, PairError> {
        if !is_workspace_name(name) {
            return Err(PairError::BadName(name.to_owned()));
        }
        if self.society()?.workspace(name).is_some() {
            return Err(PairError::NameTaken(name.to_owned()));
        }
        let mut bytes = [0; Nonce::LEN];
        (self.entropy)(&mut bytes);
        let nonce = Nonce::from_bytes(bytes);
        let id = WorkspaceId::of(self.own, nonce);
        let new = NewEntry {
            workspace: id,
            memory: Memory::Episodic,
            kind: Kind::Signal,
            title: name.to_owned(),
            content: "# Settings of this workspace, as TOML.\n".to_owned(),
            registers: Vec::new(),
            claims: [Claim::Add(TextSet::OWNER_NONCES, nonce.to_string())]
                .into_iter()
                .chain(charter::name_claim(self.own, &cleaned(&self.card().name)))
                .collect(),
            citations: Vec::new(),
            source: Some(SourceKey { format: charter::FORMAT.into(), key: charter::KEY.into() }),
        };
        let row = WorkspaceRow {
            name: name.to_owned(),
            since: (self.now)(),
            is_current: false,
            owner: Some(self.own),
        };
        let mut commands = vec![
            Command::Peers(vec![PeerAct::NameWorkspace(id, row)]),
            Command::Create(Box::new(new)),
        ];
        let mine: Vec<AuthorId> = self.society()?.mine.iter().copied().collect();
        let others = mine.iter().filter(|one| **one != self.own);
        let claims: Vec<Claim> =
            others.map(|one| Claim::Add(TextSet::ADMINS, one.to_string())).collect();
        if !claims.is_empty() {
            commands.push(Command::Claim { entry: charter::entry(id), claims });
        }
        for answer in self.replica.writer().write(commands) {
            answer?;
        }
        Ok(id)
    }

    /// New entries go to this workspace from now on.
    pub fn use_workspace(&mut self, id: WorkspaceId) -> Result<(), PairError> {
        let snapshot = self.replica.writer().store().snapshot()?;
        let rows = snapshot.workspaces()?.into_iter();
        let acts = rows.map(|(one, row)| {
            let is_current = one == id;
            PeerAct::NameWorkspace(one, WorkspaceRow { is_current, ..row })
        });
        Ok(self.replica.note(acts.collect())?)
    }

    /// Takes a member or admin out of a workspace, or takes back what a peer was offered there.
    pub fn remove_member(&mut self, id: WorkspaceId, who: AuthorId) -> Result<(), PairError> {
        let charter = self.charter(id)?;
        if self.withdraw_offer(id, who)? && !charter.members.contains(&who) {
            return Ok(());
        }
        let lists = [TextSet::MEMBERS, TextSet::ADMINS];
        let listed = lists.map(|set| Claim::Withdraw(set, who.to_string()));
        let claims = listed.into_iter().chain(charter.unname(who)).collect();
        self.replica
            .writer()
            .write(vec![Command::Claim { entry: charter::entry(id), claims }])
            .into_iter()
            .try_for_each(|answer| answer.map(|_| ()))?;
        // Whoever speaks for the workspace lists members, and takes back what it said itself.
        if !self.charter(id)?.members.contains(&who) {
            return Ok(());
        }
        Err(PairError::StillListed(self.called(who)?))
    }

    pub(super) fn charter(&mut self, id: WorkspaceId) -> Result<charter::Charter, PairError> {
        let society = self.society()?;
        Ok(society.workspaces.get(&id).map(|shared| shared.charter.clone()).unwrap_or_default())
    }
}
