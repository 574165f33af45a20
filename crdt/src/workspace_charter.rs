//! The charter: the entry that lists the members of a shared workspace.
//!
//! The entry id of the charter follows from the workspace id, so every member can find it.
//! Authority on a charter comes in three levels:
//!
//! - The **owner** is the author who shows the preimage of the workspace id.
//! - **Admins** are the keys that the owner lists in its claims.
//! - **Members** are the keys that the owner or an admin lists in its claims.
//!
//! Claims of other authors on a charter have no effect, so membership is not transitive. No stamp
//! decides membership: a key belongs to the workspace while at least one owner or admin lists it and
//! no removal stands. A removal ([`crate::member_removal`]) stands if the owner states it, or if
//! a current admin states it about a key that is not an admin.
//!
//! For each admin the charter also holds a signed grant of the owner. An admin copies its grant
//! into its tombstones, so nodes without the charter can verify them.

pub use crate::charter_origin::{FORMAT, KEY, entry, origin};

use crate::claims::TextSet;
use crate::entry::Entry;
use crate::entry_view::Entitlement;
use crate::ids::{AuthorId, Nonce, WorkspaceId};
use crate::limits::SET_ELEMENTS_MAX;
use crate::member_removal::RemovalStatements;
use crate::record_builder::ClaimEdit;
use crate::register::Register;
use crate::signing_key::{SecretKey, Signature};
use crate::time::WallTime;
use crate::tombstone::AdminGrant;
use data_encoding::HEXLOWER;
use std::collections::{BTreeMap, BTreeSet};

/// Owner, admins, members and settings of a workspace, computed from the claims on its charter
/// entry and from removals.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Charter {
    /// The owner, and the nonce that proves the ownership; `None` until the owner's claims are
    /// held.
    pub owner: Option<(AuthorId, Nonce)>,
    /// The keys that the owner lists as admins, without the owner.
    pub admins: BTreeSet<AuthorId>,
    /// All members: the owner, the admins, and the keys that they list.
    pub members: BTreeSet<AuthorId>,
    /// The removed keys, each with the owner and admins whose removal stands. None of them is a
    /// member, even if a list still names it.
    pub removed: BTreeMap<AuthorId, BTreeSet<AuthorId>>,
    /// The settings of the workspace as TOML text, by the latest claim of the owner or an admin.
    pub settings: Option<String>,
    /// The name of the workspace, by the latest claim of the owner or an admin.
    pub name: Option<String>,
    /// The checkouts that the owner or an admin assigns to the workspace. Only a suggestion: a node
    /// maps a checkout to the workspace only after its operator agrees.
    pub checkouts: BTreeSet<String>,
    /// Names of members and removed keys, given by the owner or admins, for nodes that are not
    /// paired with them.
    pub names: BTreeMap<AuthorId, String>,
}

/// The claim that gives a member a name in the charter; `None` if the name is blank.
pub fn name_claim(member: AuthorId, name: &str) -> Option<ClaimEdit> {
    let name = name.trim();
    (!name.is_empty()).then(|| ClaimEdit::Add(TextSet::NAMES, name_text(member, name)))
}

fn name_text(member: AuthorId, name: &str) -> String {
    format!("{member} {name}")
}

fn parse_name(text: &str) -> Option<(AuthorId, String)> {
    let (key, name) = text.split_once(' ')?;
    Some((AuthorId::from_hex(key)?, name.to_owned()))
}

impl Charter {
    /// Reads the charter of a workspace at `now` from its entry and from the removals that any
    /// author states.
    pub fn read(
        workspace: WorkspaceId,
        held: &Entry,
        removals: &RemovalStatements,
        now: WallTime,
    ) -> Self {
        let listed = |author: AuthorId, set: TextSet| {
            let texts = held.claims.get(&author).and_then(|claims| claims.texts.get(&set));
            let present = texts.into_iter().flat_map(|set| set.present());
            present.filter_map(|text| AuthorId::from_hex(text)).collect::<BTreeSet<_>>()
        };
        let owner = held.claims.iter().find_map(|(author, claims)| {
            let proofs = claims.texts.get(&TextSet::OWNER_NONCES)?;
            let mut nonces = proofs.present().filter_map(|text| Nonce::from_hex(text));
            let nonce = nonces.find(|nonce| WorkspaceId::of(*author, *nonce) == workspace)?;
            Some((*author, nonce))
        });
        let Some((by, _)) = owner else { return Self::default() };
        let is_removed_by = |author: &AuthorId, by: &AuthorId| {
            removals.get(author).is_some_and(|authors| authors.contains(by))
        };
        let mut admins = listed(by, TextSet::ADMINS);
        admins.retain(|admin| *admin != by && !is_removed_by(admin, &by));
        let speakers: BTreeSet<AuthorId> = admins.iter().copied().chain([by]).collect();
        let removed = standing_removals(removals, by, &admins);
        let mut members = speakers.clone();
        for speaker in &speakers {
            members.extend(listed(*speaker, TextSet::MEMBERS));
        }
        members.retain(|member| !removed.contains_key(member));
        let said = |speaker: &AuthorId| {
            let claims = held.claims.get(speaker)?;
            Some(claims.texts.get(&TextSet::CHECKOUTS)?.present().cloned())
        };
        let checkouts = speakers.iter().filter_map(said).flatten().collect();
        let mut names = BTreeMap::new();
        // The owner's word on a name comes last, and counts.
        for speaker in admins.iter().copied().chain([by]) {
            let texts = held.claims.get(&speaker).and_then(|by| by.texts.get(&TextSet::NAMES));
            let named = texts.into_iter().flat_map(|set| set.present());
            let named = named.filter_map(|text| parse_name(text));
            names.extend(
                named.filter(|(key, _)| members.contains(key) || removed.contains_key(key)),
            );
        }
        let view = held.view(now, &Entitlement { mine: BTreeSet::new(), members: speakers });
        let text = |register| view.text(register).map(str::to_owned);
        let (settings, name) = (text(Register::CONTENT), text(Register::TITLE));
        Self { owner, admins, members, removed, settings, name, checkouts, names }
    }

    /// The claims that give a member this name and take back another name that the member had. If
    /// the set of names is full, no name is given: a missing name must not keep a member out.
    pub fn rename(&self, member: AuthorId, name: &str) -> Vec<ClaimEdit> {
        if self.names.get(&member).is_some_and(|known| known == name.trim()) {
            return Vec::new();
        }
        let is_full = self.names.len() + 1 >= SET_ELEMENTS_MAX;
        let new = name_claim(member, name).filter(|_| !is_full);
        new.into_iter().chain(self.unname(member)).collect()
    }

    /// The claim that takes back the name of a member.
    pub fn unname(&self, member: AuthorId) -> Option<ClaimEdit> {
        let name = self.names.get(&member)?;
        Some(ClaimEdit::Withdraw(TextSet::NAMES, name_text(member, name)))
    }

    /// Claims that the owner must add to `claims` so that the grants match the admins: one new
    /// grant for each admin without one, and a withdrawal of the grant of each former admin. A
    /// withdrawal does not revoke the grant; it only makes room in the set. Empty if `owner` is not
    /// the owner.
    pub fn grants(&self, owner: &SecretKey, held: &Entry, claims: &[ClaimEdit]) -> Vec<ClaimEdit> {
        let Some((_, nonce)) = self.owner.filter(|(by, _)| *by == owner.author()) else {
            return Vec::new();
        };
        let mut admins = self.admins.clone();
        for claim in claims {
            match claim {
                ClaimEdit::Add(TextSet::ADMINS, admin) => admins.extend(AuthorId::from_hex(admin)),
                ClaimEdit::Withdraw(TextSet::ADMINS, admin) => {
                    admins.retain(|one| one.to_string() != *admin);
                }
                _ => {}
            }
        }
        let grant = |admin: &AuthorId| {
            let AdminGrant { signature, .. } = AdminGrant::sign(owner, nonce, *admin);
            format!("{admin} {}", HEXLOWER.encode(signature.as_bytes()))
        };
        let wanted: BTreeSet<String> = admins.iter().map(grant).collect();
        let given = self.owner_elements(held, TextSet::GRANTS);
        let new =
            wanted.difference(&given).cloned().map(|text| ClaimEdit::Add(TextSet::GRANTS, text));
        let old = given.difference(&wanted).cloned();
        new.chain(old.map(|text| ClaimEdit::Withdraw(TextSet::GRANTS, text))).collect()
    }

    /// The grant of the owner for this admin, if the charter has one.
    pub fn admin_grant(&self, held: &Entry, admin: AuthorId) -> Option<AdminGrant> {
        let (owner, nonce) = self.owner.filter(|_| self.admins.contains(&admin))?;
        let signature =
            self.owner_elements(held, TextSet::GRANTS).into_iter().find_map(|text| {
                let signature = text.strip_prefix(&admin.to_string())?.strip_prefix(' ')?;
                let bytes = HEXLOWER.decode(signature.as_bytes()).ok()?;
                Some(Signature::from_bytes(bytes.try_into().ok()?))
            })?;
        Some(AdminGrant { owner, nonce, signature })
    }

    /// The elements that the owner has in this set.
    fn owner_elements(&self, held: &Entry, set: TextSet) -> BTreeSet<String> {
        let claims = self.owner.and_then(|(owner, _)| held.claims.get(&owner));
        let texts = claims.and_then(|claims| claims.texts.get(&set));
        texts.into_iter().flat_map(|texts| texts.present()).cloned().collect()
    }

    /// The keys whose claims count: the members, and the removed keys with their records in the cut.
    pub fn entitled(&self) -> BTreeSet<AuthorId> {
        self.members.iter().chain(self.removed.keys()).copied().collect()
    }

    /// The authors whose cuts count: the owner and the admins. A record is kept if any of their
    /// cuts names it.
    pub fn cut_authors(&self) -> BTreeSet<AuthorId> {
        self.admins.iter().copied().chain(self.owner.map(|(owner, _)| owner)).collect()
    }

    /// The members that would leave the workspace with this admin, because no other author lists
    /// them.
    pub fn listed_only_by(&self, admin: AuthorId, held: &Entry) -> BTreeSet<AuthorId> {
        let lists = |by: &AuthorId, key: &AuthorId| {
            let sets = [TextSet::MEMBERS, TextSet::ADMINS];
            let texts = |set: &TextSet| held.claims.get(by).and_then(|of| of.texts.get(set));
            let mut listed = sets.iter().filter_map(texts).flat_map(|texts| texts.present());
            listed.any(|text| AuthorId::from_hex(text) == Some(*key))
        };
        let others = self.cut_authors();
        let is_only = |key: &&AuthorId| {
            **key != admin
                && lists(&admin, key)
                && !others.iter().any(|by| by == *key || (*by != admin && lists(by, key)))
        };
        self.members.iter().filter(is_only).copied().collect()
    }

    /// True if the author may remove this key: the owner any other key, an admin a key that is not
    /// an admin.
    pub fn may_remove(&self, author: AuthorId, key: AuthorId) -> bool {
        let Some((owner, _)) = self.owner else { return false };
        let is_plain = !self.admins.contains(&key);
        key != owner && (author == owner || (self.admins.contains(&author) && is_plain))
    }

    /// True if the author may list members: the owner and the admins.
    pub fn may_invite(&self, author: AuthorId) -> bool {
        self.admins.contains(&author) || self.owner.is_some_and(|(owner, _)| owner == author)
    }
}

/// The removals that stand: by the owner about any other key, by an admin about keys that are not
/// admins.
fn standing_removals(
    stated: &RemovalStatements,
    owner: AuthorId,
    admins: &BTreeSet<AuthorId>,
) -> BTreeMap<AuthorId, BTreeSet<AuthorId>> {
    let of = |(key, authors): (&AuthorId, &BTreeSet<AuthorId>)| {
        let may_remove =
            |by: &AuthorId| *by == owner || (admins.contains(by) && !admins.contains(key));
        let by: BTreeSet<AuthorId> = authors.iter().copied().filter(may_remove).collect();
        (*key != owner && !by.is_empty()).then_some((*key, by))
    };
    stated.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Boot;
    use crate::lattice::Lattice;
    use crate::live_records::LiveRecords;
    use crate::record_builder::{ClaimEdit, RecordBuilder};
    use crate::signing_key::SecretKey;
    use crate::time::Hlc;

    const NONCE: Nonce = Nonce::from_bytes([9; 16]);

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes(&[seed; 32])
    }

    fn says(held: &mut Entry, workspace: WorkspaceId, by: u8, claims: &[ClaimEdit]) {
        let (key, own) = (key(by), LiveRecords::default());
        let at = entry(workspace);
        let writer = RecordBuilder { key: &key, boot: Boot(u64::from(by)), entry: at, own: &own };
        let stamp = Hlc::new(WallTime::from_millis(1_000), 0);
        let record = writer.claim(held, Some(origin(workspace)), claims, stamp).unwrap();
        held.join(record.to_entry());
    }

    fn add(set: TextSet, who: u8) -> ClaimEdit {
        ClaimEdit::Add(set, key(who).author().to_string())
    }

    #[test]
    fn only_owner_and_admins_list_members() {
        let workspace = WorkspaceId::of(key(1).author(), NONCE);
        let mut held = Entry::default();
        // A stranger claims to be the owner and lists itself.
        let proof = ClaimEdit::Add(TextSet::OWNER_NONCES, NONCE.to_string());
        let greedy = [proof.clone(), add(TextSet::ADMINS, 6), add(TextSet::MEMBERS, 6)];
        says(&mut held, workspace, 6, &greedy);
        let now = WallTime::from_millis(2_000);
        assert_eq!(
            Charter::read(workspace, &held, &RemovalStatements::new(), now),
            Charter::default()
        );
        let settings = ClaimEdit::Set(Register::CONTENT, "a = 1".into());
        says(&mut held, workspace, 1, &[proof, add(TextSet::ADMINS, 2), settings]);
        says(&mut held, workspace, 2, &[add(TextSet::MEMBERS, 3), add(TextSet::ADMINS, 4)]);
        let checkout = |name: &str| ClaimEdit::Add(TextSet::CHECKOUTS, name.to_owned());
        says(&mut held, workspace, 2, &[checkout("remote:h/team")]);
        says(&mut held, workspace, 3, &[add(TextSet::MEMBERS, 5), checkout("remote:h/else")]);
        let charter = Charter::read(workspace, &held, &RemovalStatements::new(), now);
        assert_eq!(charter.owner, Some((key(1).author(), NONCE)));
        assert_eq!(charter.admins, [key(2).author()].into());
        let members: BTreeSet<AuthorId> = [1, 2, 3].map(|seed| key(seed).author()).into();
        assert_eq!(charter.members, members);
        assert_eq!(charter.settings.as_deref(), Some("a = 1"));
        assert_eq!(charter.checkouts, ["remote:h/team".to_owned()].into());
        assert!(charter.may_invite(key(2).author()) && !charter.may_invite(key(3).author()));
    }

    #[test]
    fn a_removal_by_the_owner_or_a_current_admin_ends_membership_in_every_list() {
        let workspace = WorkspaceId::of(key(1).author(), NONCE);
        let mut held = Entry::default();
        let proof = ClaimEdit::Add(TextSet::OWNER_NONCES, NONCE.to_string());
        let listed = [proof, add(TextSet::ADMINS, 2), add(TextSet::ADMINS, 3)];
        says(&mut held, workspace, 1, &listed);
        says(&mut held, workspace, 2, &[add(TextSet::MEMBERS, 4), add(TextSet::MEMBERS, 5)]);
        says(&mut held, workspace, 3, &[add(TextSet::MEMBERS, 5), add(TextSet::MEMBERS, 6)]);
        // Pairs of removed key and author, then the members and the removed keys.
        type Case<'a> = (&'a [(u8, u8)], &'a [u8], &'a [u8]);
        let cases: [Case<'_>; 8] = [
            (&[], &[1, 2, 3, 4, 5, 6], &[]),
            (&[(5, 1)], &[1, 2, 3, 4, 6], &[5]),
            (&[(5, 2)], &[1, 2, 3, 4, 6], &[5]),
            (&[(5, 4), (5, 9)], &[1, 2, 3, 4, 5, 6], &[]),
            (&[(3, 2)], &[1, 2, 3, 4, 5, 6], &[]),
            (&[(3, 1)], &[1, 2, 4, 5], &[3]),
            (&[(3, 1), (5, 3)], &[1, 2, 4, 5], &[3]),
            (&[(1, 2), (1, 1), (9, 1)], &[1, 2, 3, 4, 5, 6], &[9]),
        ];
        let keys = |seeds: &[u8]| {
            seeds.iter().map(|seed| key(*seed).author()).collect::<BTreeSet<AuthorId>>()
        };
        for (stated, members, removed) in cases {
            let mut removals = RemovalStatements::new();
            for (member, by) in stated {
                removals.entry(key(*member).author()).or_default().insert(key(*by).author());
            }
            let now = WallTime::from_millis(2_000);
            let charter = Charter::read(workspace, &held, &removals, now);
            assert_eq!(charter.members, keys(members), "{stated:?}");
            assert_eq!(charter.removed.keys().copied().collect::<BTreeSet<_>>(), keys(removed));
        }
        let charter = Charter::read(
            workspace,
            &held,
            &RemovalStatements::new(),
            WallTime::from_millis(2_000),
        );
        let of = |seed: u8| key(seed).author();
        assert_eq!(charter.listed_only_by(of(3), &held), keys(&[6]));
        assert_eq!(charter.listed_only_by(of(2), &held), keys(&[4]));
        assert!(charter.may_remove(of(1), of(2)) && charter.may_remove(of(2), of(4)));
        assert!(!charter.may_remove(of(2), of(3)) && !charter.may_remove(of(4), of(5)));
        assert!(!charter.may_remove(of(2), of(1)) && !charter.may_remove(of(1), of(1)));
    }

    #[test]
    fn names_of_members_are_those_that_owner_and_admins_say() {
        let workspace = WorkspaceId::of(key(1).author(), NONCE);
        let mut held = Entry::default();
        let name = |who: u8, name: &str| name_claim(key(who).author(), name).unwrap();
        let proof = ClaimEdit::Add(TextSet::OWNER_NONCES, NONCE.to_string());
        says(&mut held, workspace, 1, &[proof, add(TextSet::ADMINS, 2), name(1, "anna")]);
        let listed =
            [add(TextSet::MEMBERS, 3), name(3, "carl p"), name(1, "not anna"), name(9, "no")];
        says(&mut held, workspace, 2, &listed);
        says(&mut held, workspace, 3, &[name(2, "by a member")]);
        let names = Charter::read(
            workspace,
            &held,
            &RemovalStatements::new(),
            WallTime::from_millis(2_000),
        )
        .names;
        let expect = [(1, "anna"), (3, "carl p")];
        let expect = expect.map(|(who, name)| (key(who).author(), name.to_owned()));
        assert_eq!(names, expect.into());
        assert_eq!(name_claim(key(1).author(), " "), None);
        let charter = Charter::read(
            workspace,
            &held,
            &RemovalStatements::new(),
            WallTime::from_millis(2_000),
        );
        assert_eq!(charter.rename(key(3).author(), "carl p"), []);
        says(&mut held, workspace, 2, &charter.rename(key(3).author(), "carla"));
        let charter = Charter::read(
            workspace,
            &held,
            &RemovalStatements::new(),
            WallTime::from_millis(2_000),
        );
        assert_eq!(charter.names[&key(3).author()], "carla");
        let full = (0..SET_ELEMENTS_MAX as u64).map(|number| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            (AuthorId::from_bytes(bytes), "x".to_owned())
        });
        let full = Charter { names: full.collect(), ..Charter::default() };
        assert_eq!(full.rename(key(3).author(), "carl"), [], "there is no room for a name");
    }

    #[test]
    fn each_admin_has_a_grant_of_the_owner_for_as_long_as_it_is_one() {
        let workspace = WorkspaceId::of(key(1).author(), NONCE);
        let (now, admin) = (WallTime::from_millis(2_000), key(2).author());
        let mut held = Entry::default();
        let read = |held: &Entry| Charter::read(workspace, held, &RemovalStatements::new(), now);
        let grants =
            |held: &Entry, by: u8, claims: &[ClaimEdit]| read(held).grants(&key(by), held, claims);
        let proof = ClaimEdit::Add(TextSet::OWNER_NONCES, NONCE.to_string());
        // An admin that was listed before grants existed.
        says(&mut held, workspace, 1, &[proof, add(TextSet::ADMINS, 2)]);
        assert_eq!(read(&held).admin_grant(&held, admin), None);
        assert_eq!(grants(&held, 2, &[]), [], "only the owner grants");
        let late = grants(&held, 1, &[]);
        assert_eq!(late, [ClaimEdit::Add(TextSet::GRANTS, text(&late))]);
        says(&mut held, workspace, 3, &late);
        assert_eq!(
            read(&held).admin_grant(&held, admin),
            None,
            "a grant by another author does not count"
        );
        says(&mut held, workspace, 1, &late);
        let grant = read(&held).admin_grant(&held, admin).expect("it was granted");
        assert!(grant.holds(workspace, admin) && !grant.holds(workspace, key(3).author()));
        assert_eq!(grants(&held, 1, &[]), [], "once is enough");
        assert_eq!(grants(&held, 1, &[add(TextSet::ADMINS, 3)]).len(), 1);
        let strike = ClaimEdit::Withdraw(TextSet::ADMINS, admin.to_string());
        let gone = grants(&held, 1, std::slice::from_ref(&strike));
        assert_eq!(gone, [ClaimEdit::Withdraw(TextSet::GRANTS, text(&late))]);
        says(&mut held, workspace, 1, &[strike]);
        assert_eq!(read(&held).admin_grant(&held, admin), None);
    }

    /// The text of a single claim on a set.
    fn text(claims: &[ClaimEdit]) -> String {
        match claims {
            [ClaimEdit::Add(_, text) | ClaimEdit::Withdraw(_, text)] => text.clone(),
            other => panic!("{other:?}"),
        }
    }
}
