//! What authors are called here: names are labels that others choose, and are never taken for proof.

use super::characters::is_seen;
use crate::store::peers::Society;
use crate::store::peers::rows::PeerRow;
use klnode_crdt::charter::Charter;
use klnode_crdt::ids::AuthorId;

/// Characters of a key that tell most people apart.
const SHORT_KEY: usize = 8;
/// Longer names are cut: a name is one word in a line.
const NAME_CHARACTERS_MAX: usize = 40;
/// What labels are made with: keys stand in parentheses, distance and trust after commas.
const LABEL_MARKS: [char; 5] = ['(', ')', ',', ';', '"'];

/// What an author is called here. A peer chooses its own name, so nobody is called `you`, two whose
/// names look the same are told apart by their keys, and no name looks like a key or holds one.
pub fn name_of(society: &Society, author: AuthorId) -> String {
    if author == society.own {
        return "you".to_owned();
    }
    let short = short_key(author);
    let called = |row: &PeerRow| cleaned(&row.name);
    let peer = society.peers.get(&author).map(called).filter(|name| !name.is_empty());
    let Some(name) = peer else {
        // A name from a charter is an admin's word: the key always stands beside it.
        return match charter_name(society, author) {
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
    } else if is_like_key || society.peers.iter().any(is_taken) {
        format!("{name} ({short})")
    } else {
        name
    }
}

/// What a workspace that this person shares calls one of its members.
fn charter_name(society: &Society, author: AuthorId) -> Option<String> {
    let is_shared =
        |charter: &Charter| society.mine.iter().any(|own| charter.members.contains(own));
    let charters = society.workspaces.values().map(|shared| &shared.charter);
    let mut names = charters.filter(|charter| is_shared(charter)).filter_map(|charter| {
        charter.names.get(&author).map(|name| cleaned(name)).filter(|name| !name.is_empty())
    });
    names.next()
}

/// The beginning of a key, as it stands beside a name.
pub fn short_key(author: AuthorId) -> String {
    author.to_string()[..SHORT_KEY].to_owned()
}

/// A name as it is seen: nothing in it hides, and nothing ends the label that it stands in.
pub fn cleaned(name: &str) -> String {
    let plain = |one: char| if LABEL_MARKS.contains(&one) { '_' } else { one };
    let plain: String = name.chars().filter(|one| is_seen(*one)).map(plain).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let cut: String = words.join(" ").chars().take(NAME_CHARACTERS_MAX).collect();
    cut.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::peers::Workspace;
    use klnode_crdt::ids::WorkspaceId;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    #[test]
    fn nobody_chooses_a_name_that_is_taken_or_means_the_reader() {
        let called = |names: &[&str]| {
            let row = |name: &&str| PeerRow { name: (*name).to_owned(), ..PeerRow::default() };
            let peers = (2..).zip(names).map(|(byte, name)| (author(byte), row(name))).collect();
            let society = Society { own: author(1), peers, ..Society::default() };
            (1..=3).map(|byte| name_of(&society, author(byte))).collect::<Vec<_>>()
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
    fn a_fellow_member_who_is_no_peer_has_the_name_of_the_charter_beside_the_key() {
        let (own, member) = (author(1), author(2));
        let charter = Charter {
            members: [own, member].into(),
            names: [(member, "carl (you)".to_owned())].into(),
            ..Charter::default()
        };
        let shared = Workspace { charter, ..Workspace::default() };
        let workspaces = [(WorkspaceId::MAIN, shared)].into();
        let mut society = Society { own, mine: [own].into(), workspaces, ..Society::default() };
        assert_eq!(name_of(&society, member), "carl _you_ (02020202)");
        let row = PeerRow { name: "carl".into(), ..PeerRow::default() };
        society.peers.insert(member, row);
        assert_eq!(name_of(&society, member), "carl", "a peer tells its own name");
        society.peers.clear();
        society.mine.clear();
        assert_eq!(name_of(&society, member), "02020202", "nobody of this person belongs to it");
    }
}
