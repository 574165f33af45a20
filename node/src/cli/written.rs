//! An entry as somebody writes it: under the names of the API's fields, or under those of the flags.

use crate::api::types::NewEntry;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use std::fmt;

/// What a flag is called, and the field that it fills. Whoever knows the flag types its name in a
/// file, too. An alias of serde's would do, and would stand among the names that are told to whoever
/// has mistyped one.
const FLAGS: [(&str, &str); 3] =
    [("anchor", "anchors"), ("decay", "decay_class"), ("verify", "verify_steps")];

/// The entry that was written. A field that is given under both of its names is given twice.
pub(super) struct Written(pub(super) NewEntry);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_struct("NewEntry", &[], Fields).map(Self)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = NewEntry;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the fields of an entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<NewEntry, A::Error> {
        NewEntry::deserialize(MapAccessDeserializer::new(Renamed(fields)))
    }
}

/// Fields, each under its own name.
struct Renamed<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Renamed<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(Name(seed))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// Reads a name inside of whatever reads the text, which so knows the line of an unknown one.
struct Name<K>(K);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Name<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<K::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for Name<K> {
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
        serde_json::from_str(text).map(|Written(new)| new).map_err(|error| error.to_string())
    }

    #[test]
    fn a_flags_name_stands_for_its_field_and_only_once() {
        let new = read(r#"{"decay": "stable", "verify": ["run it"], "anchor": ["path:a"]}"#);
        let new = new.expect("an entry");
        assert_eq!(new.decay_class.as_deref(), Some("stable"));
        assert_eq!((new.verify_steps, new.anchors), (vec!["run it".into()], vec!["path:a".into()]));
        let twice = read(r#"{"decay_class": "stable", "decay": "stable"}"#).unwrap_err();
        assert!(twice.starts_with("duplicate field `decay_class` at line 1"), "{twice}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_fields_own_names() {
        let told = read("{\n\"titel\": \"t\"}").unwrap_err();
        assert!(told.starts_with("unknown field `titel`, expected one of `title`"), "{told}");
        assert!(told.contains("`decay_class`") && told.contains(" at line 2 "), "{told}");
        for (flag, _) in FLAGS {
            assert!(!told.contains(&format!("`{flag}`")), "{told}");
        }
    }
}
