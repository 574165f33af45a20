//! Parses the fields of an entry from a file, by the names of the API or those of the flags.

use klnode_api_types::NewEntry;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use std::fmt;

/// The citation of an entry whose text was typed, and which has no other evidence.
pub(super) const OWN_WORD: &str = "word:operator";
/// Names of flags, and the field that each fills; a file may use them too. A serde alias would
/// appear in the list of fields that an error message prints, so it is not used.
const FLAGS: [(&str, &str); 3] =
    [("anchor", "anchors"), ("decay", "decay_class"), ("verify", "verify_steps")];

/// A parsed entry. A field under both of its names is a duplicate, and an error.
pub(super) struct ParsedEntry(pub(super) NewEntry);

impl<'de> Deserialize<'de> for ParsedEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_struct("NewEntry", &[], EntryVisitor).map(Self)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = NewEntry;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the fields of an entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<NewEntry, A::Error> {
        NewEntry::deserialize(MapAccessDeserializer::new(RenamedMap(fields)))
    }
}

/// A map whose keys are renamed from flags to fields.
struct RenamedMap<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for RenamedMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(RenamedKey(seed))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// Renames a key inside the parser, which then knows the line of an unknown key.
struct RenamedKey<K>(K);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for RenamedKey<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<K::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for RenamedKey<K> {
    type Value = K::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<K::Value, E> {
        let own = FLAGS.iter().find(|row| row.0 == name).map_or(name, |row| row.1);
        self.0.deserialize(StrDeserializer::<E>::new(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NewEntry, String> {
        serde_json::from_str(text).map(|ParsedEntry(new)| new).map_err(|error| error.to_string())
    }

    #[test]
    fn the_name_of_a_flag_stands_for_its_field_once() {
        let new = read(r#"{"decay": "stable", "verify": ["run it"], "anchor": ["path:a"]}"#);
        let new = new.expect("an entry");
        assert_eq!(new.decay_class.as_deref(), Some("stable"));
        assert_eq!((new.verify_steps, new.anchors), (vec!["run it".into()], vec!["path:a".into()]));
        let twice = read(r#"{"decay_class": "stable", "decay": "stable"}"#).unwrap_err();
        assert!(twice.starts_with("duplicate field `decay_class` at line 1"), "{twice}");
    }

    #[test]
    fn an_unknown_name_lists_the_names_of_fields() {
        let told = read("{\n\"titel\": \"t\"}").unwrap_err();
        assert!(told.starts_with("unknown field `titel`, expected one of `title`"), "{told}");
        assert!(told.contains("`decay_class`") && told.contains(" at line 2 "), "{told}");
        for (flag, _) in FLAGS {
            assert!(!told.contains(&format!("`{flag}`")), "{told}");
        }
    }
}
