//! The repositories in which the predicates of an entry were written.
//!
//! A path means something in one repository only. Each author therefore records, beside its anchors
//! and `depends_on`, the identity of the repository it wrote them in: elements of
//! [`TextSet::ANCHOR_REPOSITORIES`]. A predicate is evaluated in checkouts of that repository and
//! in no other. An element is one line: the digests of its predicates, then the identity, as in
//! `9f86d081884c7d65,0a1b2c3d4e5f6071 root:HEX remote:HOST/PATH`.

use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_git::RepositoryIdentity;
use klnode_scoring::predicate::Predicate;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Maximum number of predicates in one element. With the longest identity, an element of this size
/// stays below the element limit of the record format.
const PREDICATES_MAX: usize = 64;
/// Length of a predicate's digest in hexadecimal digits.
const DIGEST_DIGITS: usize = 16;

/// A set of predicate digests and the repository in which the predicates were written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    digests: BTreeSet<String>,
    identity: RepositoryIdentity,
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digests: Vec<&str> = self.digests.iter().map(String::as_str).collect();
        write!(f, "{} {}", digests.join(","), self.identity)
    }
}

impl FromStr for Binding {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (digests, identity) = text.split_once(' ').ok_or(())?;
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let is_digest = |text: &&str| text.len() == DIGEST_DIGITS && text.bytes().all(is_digit);
        let read: BTreeSet<String> =
            digests.split(',').filter(is_digest).take(PREDICATES_MAX).map(str::to_owned).collect();
        if read.len() != digests.split(',').count() {
            return Err(());
        }
        Ok(Self { digests: read, identity: identity.parse()? })
    }
}

/// Encodes one repository for each of `texts` that parses as a predicate.
pub fn bind<'t>(
    identity: &RepositoryIdentity,
    texts: impl IntoIterator<Item = &'t str>,
) -> Vec<String> {
    let predicates = texts.into_iter().filter(|text| Predicate::read(text).is_ok());
    let digests: BTreeSet<String> = predicates.map(digest).collect();
    if identity.is_empty() {
        return Vec::new();
    }
    elements(digests, identity)
}

fn elements(digests: BTreeSet<String>, identity: &RepositoryIdentity) -> Vec<String> {
    let digests: Vec<String> = digests.into_iter().collect();
    let binding = |some: &[String]| {
        let digests = some.iter().cloned().collect();
        Binding { digests, identity: identity.clone() }.to_string()
    };
    digests.chunks(PREDICATES_MAX).map(binding).collect()
}

/// The truncated, domain-separated hash of a predicate's text.
fn digest(text: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("klnode v1 anchored predicate");
    hasher.update(text.as_bytes());
    let mut digits = hasher.finalize().to_hex().to_string();
    digits.truncate(DIGEST_DIGITS);
    digits
}

/// The repositories of all predicates of an entry, by predicate digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(BTreeMap<String, BTreeSet<RepositoryIdentity>>);

impl Bindings {
    /// The bindings that entitled authors recorded.
    pub fn of(view: &EntryView) -> Self {
        let elements = view.texts.get(&TextSet::ANCHOR_REPOSITORIES).into_iter().flatten();
        Self::read(elements.map(|(element, _)| element.as_str()))
    }

    /// Parses elements. A malformed element, such as one in the format of a later version, is
    /// skipped.
    pub fn read<'e>(elements: impl IntoIterator<Item = &'e str>) -> Self {
        let mut bindings = Self::default();
        for element in elements {
            let Ok(Binding { digests, identity }) = element.parse() else { continue };
            for digest in digests {
                bindings.0.entry(digest).or_default().insert(identity.clone());
            }
        }
        bindings
    }

    /// True if the entry records no repository.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The repositories that a predicate was written in; none if it was written outside any
    /// repository, or before klnode recorded repositories.
    pub fn repositories(&self, predicate: &str) -> impl Iterator<Item = &RepositoryIdentity> {
        self.0.get(&digest(predicate)).into_iter().flatten()
    }

    /// True if a predicate was written in the repository `here`.
    pub fn is_of(&self, predicate: &str, here: &RepositoryIdentity) -> bool {
        self.repositories(predicate).any(|identity| identity.is_same_repository(here))
    }

    /// The elements that copy the repositories of `predicates` to another entry. `carried` maps
    /// each identity to the form that may be published, or to `None` to leave it out.
    pub fn carried_over<'t>(
        &self,
        predicates: impl IntoIterator<Item = &'t str>,
        carried: impl Fn(&RepositoryIdentity) -> Option<RepositoryIdentity>,
    ) -> Vec<String> {
        let of = |(identity, predicates): (&RepositoryIdentity, Vec<&str>)| {
            let digests = predicates.into_iter().map(digest).collect();
            carried(identity).map(|identity| elements(digests, &identity)).unwrap_or_default()
        };
        self.by_repository(predicates).into_iter().flat_map(of).collect()
    }

    /// Groups the predicates that have a repository by repository.
    pub fn by_repository<'t>(
        &self,
        predicates: impl IntoIterator<Item = &'t str>,
    ) -> BTreeMap<&RepositoryIdentity, Vec<&'t str>> {
        let mut grouped: BTreeMap<&RepositoryIdentity, Vec<&str>> = BTreeMap::new();
        for predicate in predicates {
            for identity in self.repositories(predicate) {
                grouped.entry(identity).or_default().push(predicate);
            }
        }
        grouped
    }
}

/// The claims with which an author removes withdrawn predicates from its own elements: it withdraws
/// each affected element and adds one with the remaining predicates. A predicate that the author
/// adds again later gets the repository it is then written in.
pub fn unbind<'t>(
    own: &BTreeSet<String>,
    withdrawn: impl IntoIterator<Item = &'t str>,
) -> Vec<ClaimEdit> {
    let withdrawn: BTreeSet<String> = withdrawn.into_iter().map(digest).collect();
    let mut claims = Vec::new();
    for element in own {
        let Ok(Binding { digests, identity }) = element.parse() else { continue };
        if digests.is_disjoint(&withdrawn) {
            continue;
        }
        claims.push(ClaimEdit::Withdraw(TextSet::ANCHOR_REPOSITORIES, element.clone()));
        let kept: BTreeSet<String> = digests.difference(&withdrawn).cloned().collect();
        claims.extend(elements(kept, &identity).into_iter().map(recorded));
    }
    claims
}

/// The claim that adds an element.
pub fn recorded(element: String) -> ClaimEdit {
    ClaimEdit::Add(TextSet::ANCHOR_REPOSITORIES, element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::limits::ELEMENT_BYTES_MAX;

    fn identity(line: &str) -> RepositoryIdentity {
        line.parse().unwrap()
    }

    #[test]
    fn a_predicate_belongs_to_the_repository_it_was_written_in() {
        let root = "a".repeat(40);
        let shop = identity(&format!("root:{root} remote:h/shop"));
        let other = identity(&format!("root:{} remote:h/other", "b".repeat(40)));
        let elements = bind(&shop, ["path:a.rs", "the retry loop", "path:b.rs"]);
        assert_eq!(elements.len(), 1);
        let more = bind(&other, ["path:b.rs"]);
        let all = elements.iter().chain(&more).map(String::as_str);
        let bindings = Bindings::read(all.chain(["nonsense", "zz root:1", ""]));
        let is_of = |predicate, here| [bindings.is_of(predicate, here)];
        assert_eq!([is_of("path:a.rs", &shop), is_of("path:a.rs", &other)], [[true], [false]]);
        assert_eq!([is_of("path:b.rs", &shop), is_of("path:b.rs", &other)], [[true], [true]]);
        assert!(bindings.repositories("the retry loop").next().is_none(), "words are not checked");
        assert!(bind(&RepositoryIdentity::default(), ["path:a.rs"]).is_empty());
    }

    #[test]
    fn an_element_fits_the_record_format_and_is_read_back() {
        let roots: Vec<String> =
            (0..4).map(|root: u32| format!("root:{}", root.to_string().repeat(64))).collect();
        let line = format!("{} remote:h/{}", roots.join(" "), "x".repeat(510));
        let longest = identity(&line);
        let texts: Vec<String> = (0..100).map(|number| format!("path:src/{number}.rs")).collect();
        let elements = bind(&longest, texts.iter().map(String::as_str));
        assert_eq!(elements.len(), 2);
        assert!(elements.iter().all(|element| element.len() <= ELEMENT_BYTES_MAX));
        let bindings = Bindings::read(elements.iter().map(String::as_str));
        assert!(texts.iter().all(|text| bindings.is_of(text, &longest)));
    }

    #[test]
    fn a_withdrawn_predicate_loses_its_repository_and_others_keep_theirs() {
        let shop = identity("remote:h/shop");
        let own: BTreeSet<String> = bind(&shop, ["path:a.rs", "path:b.rs"]).into_iter().collect();
        let claims = unbind(&own, ["path:a.rs"]);
        let [ClaimEdit::Withdraw(_, gone), ClaimEdit::Add(_, kept)] = &claims[..] else {
            panic!("{claims:?}")
        };
        assert!(own.contains(gone));
        let left = Bindings::read([kept.as_str()]);
        assert_eq!([left.is_of("path:a.rs", &shop), left.is_of("path:b.rs", &shop)], [false, true]);
        assert!(unbind(&own, ["path:c.rs"]).is_empty());
    }

    #[test]
    fn carried_over_elements_keep_only_the_filtered_identity() {
        let shop = identity(&format!("root:{} remote:h/shop", "a".repeat(40)));
        let elements = bind(&shop, ["path:a.rs", "path:b.rs"]);
        let bindings = Bindings::read(elements.iter().map(String::as_str));
        let carried = bindings
            .carried_over(["path:a.rs"], |identity| Some(identity.clone().without_remote()));
        assert_eq!(carried.len(), 1);
        assert!(!carried[0].contains("h/shop"), "{carried:?}");
        let carried = Bindings::read(carried.iter().map(String::as_str));
        assert!(carried.is_of("path:a.rs", &shop) && !carried.is_of("path:b.rs", &shop));
    }
}
