//! Display names of authors. Peers choose their own names, so a name is a label and never proof of
//! identity.

use klnode_crdt::ids::AuthorId;
use klnode_crdt::workspace_charter::Charter;
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::PeerRow;
use klnode_text::unicode::is_seen;

/// Length of a shortened key in hexadecimal digits; enough to distinguish most authors.
const SHORT_KEY: usize = 8;
/// Maximum length of a name in characters. Longer names are cut, because a name has to fit into a
/// line.
const NAME_CHARACTERS_MAX: usize = 40;
/// Characters with a meaning in labels: keys stand in parentheses, distance and trust after commas.
const LABEL_MARKS: [char; 5] = ['(', ')', ',', ';', '"'];

/// The display name of an author. A peer chooses its own name, so no peer may be called `you`, a
/// key is added to names that look alike, and no name looks like a key or contains one.
pub fn name_of(membership: &Membership, author: AuthorId) -> String {
    if author == membership.own {
        return "you".to_owned();
    }
    let short = short_key(author);
    let called = |row: &PeerRow| clean_name(&row.name);
    let peer = membership.peers.get(&author).map(called).filter(|name| !name.is_empty());
    let Some(name) = peer else {
        // A name from a charter is an admin's claim, so the key always follows it.
        return match charter_name(membership, author) {
            Some(name) => format!("{name} ({short})"),
            None => short,
        };
    };
    let looks = name.to_lowercase();
    let is_alike = |row| called(row).to_lowercase() == looks;
    let is_taken = |(other, row): (&AuthorId, _)| *other != author && is_alike(row);
    let is_like_key = looks.len() == SHORT_KEY && looks.chars().all(|one| one.is_ascii_hexdigit());
    if looks.is_empty() || looks == "you" {
        short
    } else if is_like_key || membership.peers.iter().any(is_taken) {
        format!("{name} ({short})")
    } else {
        name
    }
}

/// The name that a workspace shared with the owner gives to one of its members.
fn charter_name(membership: &Membership, author: AuthorId) -> Option<String> {
    let is_shared =
        |charter: &Charter| membership.mine.iter().any(|own| charter.members.contains(own));
    let charters = membership.workspaces.values().map(|shared| &shared.charter);
    let mut names = charters.filter(|charter| is_shared(charter)).filter_map(|charter| {
        charter.names.get(&author).map(|name| clean_name(name)).filter(|name| !name.is_empty())
    });
    names.next()
}

/// The first digits of a key, as shown beside a name.
pub fn short_key(author: AuthorId) -> String {
    author.to_string()[..SHORT_KEY].to_owned()
}

/// A name that is safe to show: without invisible characters, and with the characters that delimit
/// labels replaced.
pub fn clean_name(name: &str) -> String {
    let plain = |one: char| if LABEL_MARKS.contains(&one) { '_' } else { one };
    let plain: String = name.chars().filter(|one| is_seen(*one)).map(plain).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let cut: String = words.join(" ").chars().take(NAME_CHARACTERS_MAX).collect();
    cut.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::ids::WorkspaceId;
    use klnode_store::peers::SharedWorkspace;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    #[test]
    fn ambiguous_peer_names_get_a_key() {
        let called = |names: &[&str]| {
            let row = |name: &&str| PeerRow { name: (*name).to_owned(), ..PeerRow::default() };
            let peers = (2..).zip(names).map(|(byte, name)| (author(byte), row(name))).collect();
            let membership = Membership { own: author(1), peers, ..Membership::default() };
            (1..=3).map(|byte| name_of(&membership, author(byte))).collect::<Vec<_>>()
        };
        assert_eq!(called(&["alice"]), ["you", "alice", "03030303"]);
        assert_eq!(called(&["ann", "ann"]), ["you", "ann (02020202)", "ann (03030303)"]);
        assert_eq!(called(&[" YOU ", "\n"]), ["you", "02020202", "03030303"]);
        assert_eq!(called(&[&"x".repeat(99), "a\t b"]), ["you", &"x".repeat(40), "a b"]);
        assert_eq!(called(&["y\u{200B}ou", "Yo\u{2060}U\u{A0}"]), ["you", "02020202", "03030303"]);
        let alike = ["you", "Ann (02020202)", "ann (03030303)"];
        assert_eq!(called(&["Ann", "an\u{AD}n "]), alike);
        assert_eq!(called(&["vm", "vm (02020202)"]), ["you", "vm", "vm _02020202_"]);
        assert_eq!(called(&["vm, 1 hop", "0A0A0A0A"]), ["you", "vm_ 1 hop", "0A0A0A0A (03030303)"]);
    }

    #[test]
    fn an_unpaired_member_has_its_charter_name_and_key() {
        let (own, member) = (author(1), author(2));
        let charter = Charter {
            members: [own, member].into(),
            names: [(member, "carl (you)".to_owned())].into(),
            ..Charter::default()
        };
        let shared = SharedWorkspace { charter, ..SharedWorkspace::default() };
        let workspaces = [(WorkspaceId::MAIN, shared)].into();
        let mut membership =
            Membership { own, mine: [own].into(), workspaces, ..Membership::default() };
        assert_eq!(name_of(&membership, member), "carl _you_ (02020202)");
        let row = PeerRow { name: "carl".into(), ..PeerRow::default() };
        membership.peers.insert(member, row);
        assert_eq!(name_of(&membership, member), "carl", "the name of a paired peer wins");
        membership.peers.clear();
        membership.mine.clear();
        assert_eq!(
            name_of(&membership, member),
            "02020202",
            "the owner is not a member of the workspace"
        );
    }
}
