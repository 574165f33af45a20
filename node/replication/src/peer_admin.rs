//! The operator's decisions: which peers are paired, which entries pass, which nodes are members.

use super::actor::ReplicationActor;
use super::pair_error::PairError;
use super::replica::EngineWriter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, Nonce, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::workspace_charter::{self, Charter};
use klnode_engine::{Command, NewEntry, PeerCommand, RemovalCommand, SourceKey};
use klnode_federation::proto::entry_filter::PeerFilter;
use klnode_federation::proto::ticket::{JoinOffer, is_workspace_name};
use klnode_query::{clean_name, name_of};
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};
use std::collections::BTreeSet;

impl ReplicationActor {
    /// Approves a peer and establishes the offered relation. A request to join by address needs its
    /// code ([`ReplicationActor::approve_with_code`]).
    pub fn approve(&mut self, peer: AuthorId) -> Result<(), PairError> {
        if self.needs_code(peer) {
            return Err(PairError::CodeNeeded(self.peer_name(peer)?));
        }
        let held = self.row(peer)?;
        let row = PeerRow { approval: PeerApproval::Approved, ..held };
        self.establish_relation(peer, row)
    }

    /// Refuses a waiting node. A node that is already paired stays paired, without the offered
    /// relation. Fails if the node does not wait for a decision.
    pub fn refuse(&mut self, peer: AuthorId) -> Result<(), PairError> {
        // Ends a request to join by address, or an attempt of this node.
        if self.refuse_request(peer) || self.cancel_join(peer) {
            return Ok(());
        }
        let held = self.row(peer)?;
        match (held.approval, held.offer.is_some()) {
            (PeerApproval::Waiting | PeerApproval::Refused, _) => self.remove(peer),
            (PeerApproval::Approved, true) => {
                let row = PeerRow { offer: None, ..held };
                Ok(self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?)
            }
            (PeerApproval::Approved, false) => Err(PairError::NotWaiting(self.peer_name(peer)?)),
        }
    }

    /// Examines all entries again for every approved peer, after the operator has released one.
    pub fn examine_again(&mut self) {
        let now = (self.now)();
        // If the peers cannot be read now, the periodic examination finds the entry.
        let Ok(membership) = self.replica.membership(now) else { return };
        let approved = membership.peers.keys().filter(|peer| membership.is_approved(**peer));
        self.changed(approved.copied().collect());
    }

    /// Removes a peer. Entries that it holds can still be forgotten when it comes back.
    pub fn remove(&mut self, peer: AuthorId) -> Result<(), PairError> {
        let held = self.row(peer)?;
        // A peer that comes back starts without its earlier relations and filters.
        let (offer, egress, ingress, offered) = (None, None, None, Vec::new());
        let approval = PeerApproval::Refused;
        let row = PeerRow { approval, is_mine: false, offer, egress, ingress, offered, ..held };
        self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?;
        self.net.forbid(peer);
        self.changed([peer].into());
        Ok(())
    }

    /// Blocks a key, so that its records are rejected, or unblocks it; then rejected records are
    /// requested again.
    pub fn block(&mut self, peer: AuthorId, is_blocked: bool) -> Result<(), PairError> {
        let now = (self.now)();
        let held = self.membership()?.peers.get(&peer).cloned();
        let was_blocked = held.as_ref().is_some_and(|row| row.is_blocked);
        match is_blocked {
            true if peer == self.own => return Err(PairError::Oneself("block")),
            false if !was_blocked => return Err(PairError::NotBlocked(self.peer_name(peer)?)),
            _ => {}
        }
        if is_blocked {
            self.refuse_request(peer);
        }
        // A key can be blocked before it was ever met.
        let unmet = PeerRow { approval: PeerApproval::Refused, since: now, ..PeerRow::default() };
        let row = PeerRow { is_blocked, ..held.unwrap_or(unmet) };
        let mut acts = vec![PeerCommand::Put(peer, Box::new(row))];
        if !is_blocked {
            acts.extend(self.readmit()?);
        }
        self.replica.note(acts)?;
        self.changed([peer].into());
        Ok(())
    }

    /// Vouches for a peer from today on, or withdraws the vouch. Vouching again renews it.
    pub fn vouch(&mut self, peer: AuthorId, is_vouched: bool) -> Result<(), PairError> {
        let held = self.row(peer)?;
        let was_vouched = held.vouched.is_some();
        let today = (self.now)().day();
        let row = PeerRow { vouched: is_vouched.then_some(today), ..held };
        let is_convicted = self.replica.writer().store().snapshot()?.equivocation(peer)?.is_some();
        match is_vouched {
            true if row.is_mine => return Err(PairError::VouchForOwn(self.peer_name(peer)?)),
            true if is_convicted => {
                return Err(PairError::VouchForConvicted(self.peer_name(peer)?));
            }
            true if row.standing_vouch().is_none() => {
                return Err(PairError::VouchForSilent(self.peer_name(peer)?));
            }
            false if !was_vouched => return Err(PairError::NotVouched(self.peer_name(peer)?)),
            _ => {}
        }
        self.replica.note(vec![PeerCommand::Put(peer, Box::new(row))])?;
        self.changed([peer].into());
        Ok(())
    }

    /// Sets the filters of a peer; `None` leaves a filter unchanged.
    pub fn set_filters(
        &mut self,
        peer: AuthorId,
        egress: Option<PeerFilter>,
        ingress: Option<PeerFilter>,
    ) -> Result<(), PairError> {
        let held = self.row(peer)?;
        let mut acts = if ingress.is_some() { self.readmit()? } else { Vec::new() };
        let row = PeerRow {
            egress: egress.or(held.egress.clone()),
            ingress: ingress.or(held.ingress.clone()),
            ..held
        };
        acts.push(PeerCommand::Put(peer, Box::new(row)));
        self.replica.note(acts)?;
        self.changed([peer].into());
        Ok(())
    }

    /// Resets filters of a peer to the configured ones.
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
        acts.push(PeerCommand::Put(peer, Box::new(row)));
        self.replica.note(acts)?;
        self.changed([peer].into());
        Ok(())
    }

    /// The changes that lift all refusals and read the outboxes from the start, because refused
    /// records may be accepted now.
    fn readmit(&mut self) -> Result<Vec<PeerCommand>, PairError> {
        let peers: Vec<AuthorId> = self.membership()?.peers.keys().copied().collect();
        let mut acts = Vec::new();
        for peer in peers {
            let snapshot = self.replica.writer().store().snapshot()?;
            for offer in snapshot.offers_of(peer)? {
                acts.extend([PeerCommand::Readmit(offer), PeerCommand::Rewind(peer)]);
                self.again.insert(peer);
            }
        }
        Ok(acts)
    }

    fn row(&mut self, peer: AuthorId) -> Result<PeerRow, PairError> {
        if peer == self.own {
            return Err(PairError::Oneself("decide about"));
        }
        let held = self.membership()?.peers.get(&peer).cloned();
        held.ok_or_else(|| PairError::NoSuchPeer(peer.to_string()))
    }

    /// This node's name for a peer.
    pub(super) fn peer_name(&mut self, peer: AuthorId) -> Result<String, PairError> {
        let membership = self.membership()?;
        Ok(name_of(&membership, peer))
    }

    /// Establishes the offered relation of an approved peer and starts a session. The row is
    /// written last: if the workspace cannot take more members, the peer keeps waiting with its
    /// offer and can be approved again.
    pub(super) fn establish_relation(
        &mut self,
        peer: AuthorId,
        row: PeerRow,
    ) -> Result<(), PairError> {
        let mut commands = Vec::new();
        let mut row = row;
        match row.offer.take() {
            Some(JoinOffer::Mine) => row.is_mine = true,
            Some(JoinOffer::Member(id, _)) => {
                commands.extend(self.take_back_removal(id, peer)?);
                let mut claims = vec![ClaimEdit::Add(TextSet::MEMBERS, peer.to_string())];
                // Members that are not paired with the peer learn its name from the charter.
                claims.extend(self.charter(id)?.rename(peer, &clean_name(&row.name)));
                commands.push(Command::Claim { entry: workspace_charter::entry(id), claims });
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
        self.store_and_connect(peer, row)
    }

    /// Stores an approved peer and starts a session. An offer in its row stays open.
    pub(super) fn store_and_connect(
        &mut self,
        peer: AuthorId,
        row: PeerRow,
    ) -> Result<(), PairError> {
        let places = row.places();
        // Records that only the person's own nodes may send were refused from this peer before.
        let is_new = row.counts_as_mine() && !self.membership()?.mine.contains(&peer);
        let mut acts = if is_new { self.readmit()? } else { Vec::new() };
        acts.push(PeerCommand::Put(peer, Box::new(row)));
        self.replica.note(acts)?;
        self.net.allow(peer, places);
        self.changed([peer].into());
        if self.connected.contains_key(&peer) {
            self.begin_session(peer);
        }
        Ok(())
    }

    /// The commands that make another node of the same person an admin of the workspaces this node
    /// owns.
    fn share_workspaces(&mut self, peer: AuthorId) -> Result<Vec<Command>, PairError> {
        let membership = self.membership()?;
        let shared = membership.workspaces.iter().filter_map(|(id, shared)| {
            let owner = shared.charter.owner.map(|(owner, _)| owner);
            let set = match owner == Some(self.own) {
                true => TextSet::ADMINS,
                false if shared.charter.admins.contains(&self.own) => TextSet::MEMBERS,
                false => return None,
            };
            let claims = vec![ClaimEdit::Add(set, peer.to_string())];
            Some(Command::Claim { entry: workspace_charter::entry(*id), claims })
        });
        Ok(shared.collect())
    }

    // Workspaces.

    /// Creates a workspace that this node owns.
    pub fn new_workspace(&mut self, name: &str) -> Result<WorkspaceId, PairError> {
        if !is_workspace_name(name) {
            return Err(PairError::BadName(name.to_owned()));
        }
        if self.membership()?.workspace(name).is_some() {
            return Err(PairError::NameTaken(name.to_owned()));
        }
        let mut bytes = [0; Nonce::LEN];
        (self.entropy)(&mut bytes);
        let nonce = Nonce::from_bytes(bytes);
        let id = WorkspaceId::of(self.own, nonce);
        let new = NewEntry {
            workspace: id,
            memory: Memory::Episodic,
            kind: EntryType::Signal,
            title: name.to_owned(),
            content: "# Settings of this workspace, as TOML.\n".to_owned(),
            registers: Vec::new(),
            claims: [ClaimEdit::Add(TextSet::OWNER_NONCES, nonce.to_string())]
                .into_iter()
                .chain(workspace_charter::name_claim(self.own, &clean_name(&self.card().name)))
                .collect(),
            citations: Vec::new(),
            source: Some(SourceKey {
                format: workspace_charter::FORMAT.into(),
                key: workspace_charter::KEY.into(),
            }),
        };
        let row = WorkspaceRow {
            name: name.to_owned(),
            since: (self.now)(),
            is_current: false,
            owner: Some(self.own),
        };
        let mut commands = vec![
            Command::Peers(vec![PeerCommand::NameWorkspace(id, row)]),
            Command::Create(Box::new(new)),
        ];
        let mine: Vec<AuthorId> = self.membership()?.mine.iter().copied().collect();
        let others = mine.iter().filter(|one| **one != self.own);
        let claims: Vec<ClaimEdit> =
            others.map(|one| ClaimEdit::Add(TextSet::ADMINS, one.to_string())).collect();
        if !claims.is_empty() {
            commands.push(Command::Claim { entry: workspace_charter::entry(id), claims });
        }
        for answer in self.replica.writer().write(commands) {
            answer?;
        }
        Ok(id)
    }

    /// Makes a workspace the current one, to which new entries go.
    pub fn use_workspace(&mut self, id: WorkspaceId) -> Result<(), PairError> {
        let snapshot = self.replica.writer().store().snapshot()?;
        let rows = snapshot.workspaces()?.into_iter();
        let acts = rows.map(|(one, row)| {
            let is_current = one == id;
            PeerCommand::NameWorkspace(one, WorkspaceRow { is_current, ..row })
        });
        Ok(self.replica.note(acts.collect())?)
    }

    /// Removes a member or admin from a workspace, or withdraws an offer of membership. `keep` says
    /// whether members that only this admin lists stay members; it is needed if there are any.
    pub fn remove_member(
        &mut self,
        id: WorkspaceId,
        who: AuthorId,
        keep: Option<bool>,
    ) -> Result<(), PairError> {
        let charter = self.charter(id)?;
        if self.withdraw_offer(id, who)? && !charter.members.contains(&who) {
            return Ok(());
        }
        if !charter.members.contains(&who) && !charter.removed.contains_key(&who) {
            return Err(PairError::NotMember(self.peer_name(who)?));
        }
        let dependants = self.listed_only_by(id, &charter, who)?;
        if keep.is_none() && !dependants.is_empty() {
            let names: Result<Vec<String>, PairError> =
                dependants.iter().map(|key| self.peer_name(*key)).collect();
            return Err(PairError::AloneLists(self.peer_name(who)?, names?.join(", ")));
        }
        let keep = dependants.into_iter().filter(|_| keep == Some(true)).collect();
        let remove = RemovalCommand::Remove { workspace: id, member: who, keep };
        self.write_one(Command::Removal(remove))
    }

    /// Takes back this node's removal of a member, and lists it again.
    pub fn reinstate_member(&mut self, id: WorkspaceId, who: AuthorId) -> Result<(), PairError> {
        let reinstate = RemovalCommand::Reinstate { workspace: id, member: who };
        self.write_one(Command::Removal(reinstate))?;
        self.take_back_removal(id, who)?;
        let charter = self.charter(id)?;
        if charter.members.contains(&who) {
            return Ok(());
        }
        let claims = vec![ClaimEdit::Add(TextSet::MEMBERS, who.to_string())];
        self.write_one(Command::Claim { entry: workspace_charter::entry(id), claims })
    }

    /// The command that takes back this node's removal of a key that becomes a member again. An
    /// error if another author's removal of it stands.
    fn take_back_removal(
        &mut self,
        workspace: WorkspaceId,
        member: AuthorId,
    ) -> Result<Option<Command>, PairError> {
        let charter = self.charter(workspace)?;
        let Some(by) = charter.removed.get(&member) else { return Ok(None) };
        let mut others = Vec::new();
        for author in by.iter().filter(|by| **by != self.own).copied().collect::<Vec<_>>() {
            others.push(self.peer_name(author)?);
        }
        if !others.is_empty() {
            return Err(PairError::StillRemoved(self.peer_name(member)?, others.join(", ")));
        }
        let reinstate = RemovalCommand::Reinstate { workspace, member };
        Ok(Some(Command::Removal(reinstate)))
    }

    /// The members that only this admin lists.
    fn listed_only_by(
        &mut self,
        id: WorkspaceId,
        charter: &Charter,
        admin: AuthorId,
    ) -> Result<BTreeSet<AuthorId>, PairError> {
        if !charter.admins.contains(&admin) {
            return Ok(BTreeSet::new());
        }
        let snapshot = self.replica.writer().store().snapshot()?;
        let held = snapshot.entry(workspace_charter::entry(id))?.to_entry();
        Ok(charter.listed_only_by(admin, &held))
    }

    fn write_one(&mut self, command: Command) -> Result<(), PairError> {
        let answers = self.replica.writer().write(vec![command]);
        Ok(answers.into_iter().try_for_each(|answer| answer.map(|_| ()))?)
    }

    pub(super) fn charter(&mut self, id: WorkspaceId) -> Result<Charter, PairError> {
        let membership = self.membership()?;
        Ok(membership.workspaces.get(&id).map(|shared| shared.charter.clone()).unwrap_or_default())
    }
}
