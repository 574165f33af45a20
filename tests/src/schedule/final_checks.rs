//! Checks after all faults have ended.

use super::acknowledged_writes::titles_by;
use super::run::{Report, Runner, contains, for_team, is_covered, is_covered_but_for};
use crate::cluster::{Cluster, SWEEP_MS};
use crate::disk::Fault;
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::tally::Observation;
use klnode_engine::{Command, REMOVED};
use klnode_federation::proto::SyncState;
use klnode_federation::proto::entry_filter::FilterRule;
use std::collections::{BTreeMap, BTreeSet};

/// Duration of one rest after the last fault, in milliseconds: two sweeps.
const REST_MS: u64 = 60_000;
/// Maximum number of rests.
const RESTS_MAX: u64 = 9;
/// A node corrects any omission at the periodic re-examination, so everything must be right before
/// it.
const _: () = assert!(RESTS_MAX * (REST_MS + PASSING_MS) < SWEEP_MS);
/// Duration of the quiet period that is watched afterwards, in milliseconds.
const WATCH_MS: u64 = 300_000;
/// Maximum number of frames per link in that period: a comparison a minute, each way.
const FRAMES_MAX: usize = 24;
/// Time after which a write on a calm network has arrived everywhere.
const PASSING_MS: u64 = 5_000;
/// Time after which a node retries records that it could not write.
const AGAIN_MS: u64 = 35_000;
/// At most one seed of this many may depend on a sweep.
pub const UNSWEPT_SEEDS: u64 = 500;
/// Tag of entries that a filter holds back for a while.
const LATE: &str = "late";
/// Title of such entries.
const LATE_TITLE: &str = "held back for a while";

/// The removed keys of a workspace as a node sees them, each with the digests of its records that
/// still count.
pub(super) fn cuts_in(
    nodes: &mut Cluster,
    at: usize,
    workspace: WorkspaceId,
) -> BTreeMap<AuthorId, BTreeSet<Digest>> {
    let (snapshot, shared) =
        (nodes.snapshot(at), nodes.membership(at).workspaces.remove(&workspace));
    let charter = shared.map(|shared| shared.charter).unwrap_or_default();
    let by = charter.cut_authors();
    let cut = |key: &AuthorId| snapshot.cut_digests(workspace, *key, &by).expect("readable");
    charter.removed.keys().map(|key| (*key, cut(key))).collect()
}

/// A mismatch between two nodes.
enum Difference {
    /// A record would pass now, but was not re-examined yet. A judgement changes with knowledge
    /// about an author, and only the next sweep re-examines records that pass because of it. That
    /// is rare: callers with many seeds check the rate against [`UNSWEPT_SEEDS`].
    Unswept(String),
    /// Any other mismatch.
    Wrong(String),
}

impl Runner {
    /// Lets the network become idle, and runs all checks.
    pub(super) fn finish(mut self) -> Result<Report, String> {
        self.settle();
        self.rest()?;
        self.check_acknowledged()?;
        self.check_removed()?;
        self.check_refusals()?;
        self.check_playbooks()?;
        // The remaining checks write on any node, and removals that are taken back leave no trace.
        if self.reinstate_all() {
            self.rest()?;
            self.check_acknowledged()?;
            self.check_refusals()?;
            self.check_playbooks()?;
        }
        self.check_frames()?;
        self.check_silence()?;
        self.check_passing()?;
        self.check_waiting()?;
        self.check_stores()?;
        self.nodes.note_holdings();
        self.report.trace = self.nodes.trace();
        self.report.network = self.nodes.counts();
        self.report.written_ahead = self.nodes.written_ahead();
        Ok(self.report)
    }

    /// Waits until neighbours hold the same records.
    fn rest(&mut self) -> Result<(), String> {
        let mut rests = 0;
        loop {
            self.nodes.pass(REST_MS);
            rests += 1;
            for (one, two) in self.nodes.links() {
                self.nodes.sync(one, two);
            }
            self.nodes.pass(PASSING_MS);
            match self.difference() {
                None => break,
                Some(Difference::Unswept(what)) if rests == RESTS_MAX => {
                    self.report.unswept = Some(what);
                    self.nodes.pass(SWEEP_MS);
                }
                Some(Difference::Unswept(what) | Difference::Wrong(what)) if rests >= RESTS_MAX => {
                    return Err(what);
                }
                Some(_) => {}
            }
        }
        self.report.rests += rests;
        Ok(())
    }

    /// Makes the owner take back all removals; whether there were any.
    fn reinstate_all(&mut self) -> bool {
        let membership = self.nodes.membership(0);
        let removed = membership.workspaces.get(&self.team);
        let removed = removed.map(|shared| shared.charter.removed.clone()).unwrap_or_default();
        for at in 1..self.nodes.count() {
            if removed.contains_key(&self.nodes.author(at)) {
                self.set_removed(at, false);
            }
        }
        !removed.is_empty()
    }

    /// Checks that equal peers only compare occasionally.
    fn check_silence(&mut self) -> Result<(), String> {
        let (sent, before) = (self.nodes.sent.len(), self.nodes.records_sent());
        self.nodes.pass(WATCH_MS);
        let (frames, links) = (self.nodes.sent.len() - sent, self.nodes.links().len());
        if frames > FRAMES_MAX * links {
            return Err(format!("{frames} frames on {links} links after all were equal"));
        }
        match self.nodes.records_sent() - before {
            0 => Ok(()),
            records => Err(format!("{records} records were sent after all were equal")),
        }
    }

    /// Checks that forwarding alone is complete on a lossless network: records that a filter held
    /// back arrive when it no longer does, forgetting and retracting also pass the filter, and no
    /// comparison finds a difference.
    fn check_passing(&mut self) -> Result<(), String> {
        let (from, to) = self.equal_pair();
        if self.is_removed_still(from)? {
            return Ok(());
        }
        let before = self.nodes.differences(from, to);
        self.hold_back(from, to, true);
        let mut new = for_team(self.team, LATE_TITLE);
        new.claims.push(ClaimEdit::Add(TextSet::TAGS, LATE.into()));
        let entry = self.nodes.create(from, new);
        let (of, amount) = (Observation::Success, Thousandths::ONE);
        self.nodes.run(from, Command::Observe { entry, of, amount }).map_err(|e| e.to_string())?;
        self.nodes.pass(PASSING_MS);
        self.hold_back(from, to, false);
        let is_taken = !self.nodes.refused(to, from).contains(&entry);
        let is_due = is_taken && self.nodes.is_released(from, to, entry);
        if is_due && !is_covered(&mut self.nodes, from, to, entry) {
            return Err(format!("{from} let {entry} pass to {to}, and it has not come"));
        }
        self.hold_back(from, to, true);
        self.check_taking_back(from, to, entry)?;
        match self.nodes.differences(from, to) - before {
            0 => Ok(()),
            found => Err(format!(
                "{found} comparisons found what {from} had not passed on to {to} of {entry}"
            )),
        }
    }

    /// Checks that forgetting an entry reaches a peer that may no longer receive it; or, in every
    /// other run, that its text disappears there once its creator retracts it.
    fn check_taking_back(&mut self, from: usize, to: usize, entry: EntryId) -> Result<(), String> {
        let is_there = !self.nodes.digests(to, entry).is_empty();
        let is_read = self.has_text(to, entry, LATE_TITLE);
        // A bit of the id replaces a random draw, so that the following draws stay the same.
        let is_forgotten = entry.as_bytes()[0].is_multiple_of(2);
        let command = match is_forgotten {
            true => Command::Forget { entry },
            false => Command::Retract { entry },
        };
        self.nodes.run(from, command).map_err(|e| e.to_string())?;
        self.nodes.pass(PASSING_MS);
        let tombstone = self.nodes.snapshot(to).tombstone(entry).expect("readable");
        if is_forgotten && is_there && tombstone.is_none() {
            return Err(format!("{from} has forgotten {entry}, and {to} has not heard of it"));
        }
        if is_read && self.has_text(to, entry, LATE_TITLE) {
            return Err(format!("{from} has taken {entry} back, and {to} holds its text"));
        }
        Ok(())
    }

    /// Checks that a node requests records again that arrived while its disk was full.
    fn check_waiting(&mut self) -> Result<(), String> {
        // The pair must be equal, since a comparison would deliver the entry too.
        let (from, to) = self.equal_pair();
        if self.is_removed_still(from)? {
            return Ok(());
        }
        // Either all writes fail, or the records cannot be written but the note about them can.
        let period = [1, 9][self.random.below(2) as usize];
        self.nodes.fail(to, period, Fault::NoSpace);
        let entry = self.nodes.create(from, for_team(self.team, "comes too early"));
        self.nodes.pass(PASSING_MS);
        self.nodes.mend(to);
        self.nodes.pass(AGAIN_MS);
        let is_taken = !self.nodes.refused(to, from).contains(&entry);
        let is_due = is_taken && self.nodes.is_released(from, to, entry);
        match is_due && !is_covered(&mut self.nodes, from, to, entry) {
            false => Ok(()),
            true => Err(format!("{to} had no room for {entry} of {from}, and lacks it now")),
        }
    }

    /// Two neighbours that have just compared, so that their next comparison is not within a
    /// minute.
    fn equal_pair(&mut self) -> (usize, usize) {
        let pick = self.random.below(1 << 16) as usize;
        let (one, two) = self.link(pick);
        self.nodes.sync(one, two);
        self.nodes.sync(two, one);
        self.nodes.pass(PASSING_MS);
        (one, two)
    }

    /// Whether a node refuses to write for the team because it has not heard that the owner took its
    /// removal back. It may never hear if a node between it and the owner is no member or blocks the
    /// owner (seed 600111). A neighbour of the owner must have heard.
    fn is_removed_still(&mut self, at: usize) -> Result<bool, String> {
        let (author, owner) = (self.nodes.author(at), self.nodes.author(0));
        let shared = self.nodes.membership(at).workspaces.remove(&self.team);
        if !shared.is_some_and(|shared| shared.charter.removed.contains_key(&author)) {
            return Ok(false);
        }
        let is_near = self.nodes.links().iter().any(|link| *link == (0, at) || *link == (at, 0));
        let is_outside = self.outside.contains(&at) || self.nodes.is_blocked(0, author);
        match is_near && !is_outside && !self.nodes.is_blocked(at, owner) {
            true => Err(format!("{at} has not heard that its removal was taken back")),
            false => Ok(true),
        }
    }

    /// Makes a node hold back tagged entries from another, or release them, and waits until it
    /// takes effect.
    fn hold_back(&mut self, from: usize, to: usize, is_held: bool) {
        self.nodes.set_egress(from, to, |filter| match is_held {
            true => drop(filter.tags_deny.insert(LATE.into())),
            false => drop(filter.tags_deny.remove(LATE)),
        });
        self.nodes.pass(PASSING_MS);
    }

    /// Ends all faults and, except in every other run, all filters and blocks. All nodes get the
    /// same version again: nodes of different versions never connect.
    fn settle(&mut self) {
        for at in 0..self.nodes.count() {
            if self.nodes.ahead(at) > 0 {
                self.nodes.replace(at, 0);
            }
        }
        self.nodes.calm();
        if self.keeps_grudges {
            return;
        }
        self.reinstate_all();
        for at in 0..self.nodes.count() {
            for other in 0..self.nodes.count() {
                let author = self.nodes.author(other);
                if self.nodes.is_blocked(at, author) {
                    self.nodes.block(at, author, false);
                }
            }
        }
        for (one, two) in self.nodes.links() {
            for (at, from) in [(one, two), (two, one)] {
                self.nodes.set_ingress(at, from, |filter| filter.tags_deny.clear());
            }
        }
    }

    /// The first mismatch between neighbours.
    fn difference(&mut self) -> Option<Difference> {
        let mut unswept = None;
        for (one, two) in self.nodes.links() {
            let mut refused = self.nodes.refused(one, two);
            refused.extend(self.nodes.refused(two, one));
            for (from, to) in [(one, two), (two, one)] {
                for (entry, digests) in self.nodes.holdings(from) {
                    if !self.nodes.is_released(from, to, entry) || refused.contains(&entry) {
                        continue;
                    }
                    let excused_authors = self.excused_authors(from, to, entry);
                    if !is_covered_but_for(&mut self.nodes, &excused_authors, (from, to), entry) {
                        let odd = self.disagreement(to, from);
                        let what = format!("{to} lacks what {from} releases to it of {entry}{odd}");
                        return Some(Difference::Wrong(what));
                    }
                    let there = self.nodes.digests(to, entry);
                    if !self.nodes.is_released(to, from, entry) {
                        continue;
                    }
                    if there != digests {
                        let what = format!("{from} and {to} differ about {entry}");
                        return Some(Difference::Wrong(what));
                    }
                    if self.nodes.payloads(from, entry) != self.nodes.payloads(to, entry) {
                        let what = format!("{from} and {to} have not erased the same of {entry}");
                        return Some(Difference::Wrong(what));
                    }
                }
                let preview = self.nodes.preview(from, to);
                let (more, less) = (preview.would_be, preview.would_end);
                let what = format!(
                    "the preview of {from} for {to} is not what is so: {more:?} would be, {less:?} \
                     would end"
                );
                match (more.is_empty(), less.is_empty()) {
                    (true, true) => {}
                    (false, true) => unswept = Some(Difference::Unswept(what)),
                    (_, false) => return Some(Difference::Wrong(what)),
                }
                let state = self.nodes.state(from, to);
                if !matches!(state, SyncState::Equal(_)) {
                    let odd = self.disagreement(from, to);
                    let what = format!("{from} says of {to}: {state:?}{odd}");
                    return Some(Difference::Wrong(what));
                }
            }
        }
        unswept
    }

    /// Authors whose records a node may lack of a released entry without a stored refusal: authors
    /// that it blocks, or knows as removed, for an entry that passes in one direction only. Such
    /// entries' third-party records are not compared, and a comparison at the moment when only one
    /// side had the new state takes the refusal for that of a removed record. Unblocking and
    /// reinstatement read everything again (seeds 510096 and 600188).
    fn excused_authors(&mut self, from: usize, to: usize, entry: EntryId) -> BTreeSet<AuthorId> {
        if self.nodes.is_released(to, from, entry) {
            return BTreeSet::new();
        }
        let shared = self.nodes.membership(to).workspaces.remove(&self.team);
        let removed = shared.map(|shared| shared.charter.removed).unwrap_or_default();
        let authors: Vec<AuthorId> =
            (0..self.nodes.count()).map(|at| self.nodes.author(at)).collect();
        let is_excused =
            |author: &AuthorId| removed.contains_key(author) || self.nodes.is_blocked(to, *author);
        authors.into_iter().filter(is_excused).collect()
    }

    /// Describes the authors of these records.
    fn describe_records(&mut self, at: usize, digests: &BTreeSet<Digest>) -> String {
        let snapshot = self.nodes.snapshot(at);
        let mut text = String::new();
        for digest in digests {
            let Some(record) = snapshot.record(*digest).expect("readable") else { continue };
            let by = (0..self.nodes.count()).find(|by| self.nodes.author(*by) == record.author());
            text += &format!(" {at} has {:?} by {by:?};", record.header().facet);
        }
        text
    }

    /// Describes where two nodes disagree about releases, and the refusals of each.
    fn disagreement(&mut self, one: usize, two: usize) -> String {
        let mut odd = String::new();
        let (a, b) = (self.nodes.author(one), self.nodes.author(two));
        let entries: BTreeSet<EntryId> = self
            .nodes
            .holdings(one)
            .into_keys()
            .chain(self.nodes.holdings(two).into_keys())
            .collect();
        for entry in entries {
            let here = self.nodes.snapshot(one).release(b, entry).expect("readable");
            let there = self.nodes.snapshot(two).release(a, entry).expect("readable");
            let is_odd = here.out != there.back || here.back != there.out;
            let (mine, theirs) = (self.nodes.digests(one, entry), self.nodes.digests(two, entry));
            if is_odd || mine != theirs {
                let (lack, more) =
                    (theirs.difference(&mine).count(), mine.difference(&theirs).count());
                odd += &format!(
                    "\n  {entry}: {:?}/{:?} here, {:?}/{:?} there; {more} held here alone, {lack} there",
                    here.out, here.back, there.out, there.back
                );
                for (at, alone) in [(one, &mine - &theirs), (two, &theirs - &mine)] {
                    odd += &self.describe_records(at, &alone);
                }
            }
        }
        for (at, from) in [(one, two), (two, one)] {
            for (digest, why) in self.nodes.refusals(at, from) {
                odd += &format!("\n  {at} has refused {digest} of {from}: {why}");
            }
        }
        odd
    }

    /// Checks that no refusal outlasts its reason: the record would never be requested again.
    fn check_refusals(&mut self) -> Result<(), String> {
        for (one, two) in self.nodes.links() {
            for (at, from) in [(one, two), (two, one)] {
                for (author, why) in self.nodes.refused_for(at, from) {
                    if !self.is_due(at, from, author, &why) {
                        return Err(format!("{at} still refuses a record of {from}: {why}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the reason of a refusal still applies.
    fn is_due(&mut self, at: usize, from: usize, author: Option<AuthorId>, why: &str) -> bool {
        if why.starts_with("format ") {
            return true;
        }
        if why == "its author is blocked" {
            return author.is_some_and(|author| self.nodes.is_blocked(at, author));
        }
        if why == REMOVED {
            let (membership, team) = (self.nodes.membership(at), self.team);
            let charter = membership.workspaces.get(&team).map(|shared| &shared.charter);
            return author.is_some_and(|author| {
                charter.is_some_and(|charter| charter.removed.contains_key(&author))
            });
        }
        // Filters of a schedule use no other rule.
        why == FilterRule::TagDenied.to_string()
            && !self.nodes.ingress(at, from).tags_deny.is_empty()
    }

    /// Checks that no node holds a title that a removed node wrote after its removal. The number of
    /// the step is in the title. A node that blocks the creator of an entry does not know that the
    /// entry is in the workspace, so it shows nothing of it and applies no removal (seed 600592).
    fn check_cut(&mut self) -> Result<(), String> {
        for (gone, since) in self.removed_at.clone() {
            let author = self.nodes.author(gone);
            for at in (0..self.nodes.count()).filter(|at| *at != gone) {
                let shared = self.nodes.membership(at).workspaces.remove(&self.team);
                if !shared.is_some_and(|shared| shared.charter.removed.contains_key(&author)) {
                    continue;
                }
                for entry in self.oracle.order.clone() {
                    let snapshot = self.nodes.snapshot(at);
                    let row = snapshot.view_row(entry).expect("readable");
                    if row.is_none_or(|row| row.workspace.is_none()) {
                        continue;
                    }
                    let held = snapshot.entry(entry).expect("readable").to_entry();
                    let titles = titles_by(&held, author);
                    let number = |title: &String| title.split(' ').nth(1)?.parse::<usize>().ok();
                    if titles.iter().filter_map(number).any(|number| number > since) {
                        return Err(format!(
                            "{at} holds a title of {entry} that {gone} wrote after its removal"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that all members that hold the same removals show the same texts of removed authors.
    fn check_removed(&mut self) -> Result<(), String> {
        self.check_cut()?;
        for (one, two) in self.nodes.links() {
            let team = self.team;
            let cuts = |nodes: &mut Cluster, at: usize| {
                let shared = nodes.membership(at).workspaces.remove(&team);
                let members = shared.map(|shared| shared.charter.members).unwrap_or_default();
                (cuts_in(nodes, at, team), members)
            };
            let (here, there) = (cuts(&mut self.nodes, one), cuts(&mut self.nodes, two));
            let are_members =
                [one, two].into_iter().all(|at| here.1.contains(&self.nodes.author(at)));
            if here != there || !are_members {
                continue;
            }
            // A node refuses the records of an author that it blocks.
            let mut authors: Vec<AuthorId> = here.0.keys().copied().collect();
            authors.retain(|author| {
                ![one, two].into_iter().any(|at| self.nodes.is_blocked(at, *author))
            });
            let mut refused = self.nodes.refused(one, two);
            refused.extend(self.nodes.refused(two, one));
            for entry in self.oracle.order.clone() {
                // A filter may refuse an entry on its way in (seed 600548).
                let is_open = self.nodes.is_released(one, two, entry)
                    && self.nodes.is_released(two, one, entry)
                    && !refused.contains(&entry);
                let texts = |nodes: &mut Cluster, at: usize| {
                    let held = nodes.snapshot(at).entry(entry).expect("readable").to_entry();
                    let of = authors.iter().map(|author| held.texts_by(*author));
                    of.collect::<Vec<_>>()
                };
                if is_open && texts(&mut self.nodes, one) != texts(&mut self.nodes, two) {
                    let odd = self.disagreement(one, two);
                    return Err(format!(
                        "{one} and {two} show different texts of a removed author of {entry}{odd}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that every row of every store is intact and in its place.
    fn check_stores(&mut self) -> Result<(), String> {
        for at in 0..self.nodes.count() {
            let damage = self.nodes.snapshot(at).check().map_err(|error| error.to_string())?;
            if let Some(first) = damage.first() {
                return Err(format!("the store of {at} is damaged: {first}"));
            }
        }
        Ok(())
    }

    /// Checks that no private text has left its node.
    fn check_frames(&self) -> Result<(), String> {
        for secret in &self.secrets {
            let has = |frame: &[u8]| contains(frame, secret.as_bytes());
            if let Some(sent) = self.nodes.sent.iter().find(|sent| has(&sent.frame)) {
                return Err(format!("`{secret}` went from {} to {}", sent.from, sent.to));
            }
        }
        Ok(())
    }
}
