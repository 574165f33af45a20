//! Tests of the embedded defaults: they are complete, valid and documented.
//!
//! The structs refuse unknown keys and have no optional fields. Parsing `default.toml` therefore
//! proves that every field has a key and every key has a field.

use klnode_config::{Config, DEFAULT_TOML, Layers, ValueSource};

#[test]
fn the_embedded_defaults_are_valid() {
    let layered = Layers::new().resolve().unwrap();
    assert_eq!(layered.config(), &Config::default());
}

#[test]
fn every_field_needs_its_key_in_the_defaults() {
    let complete: toml::Table = toml::from_str(DEFAULT_TOML).unwrap();
    let settings = Layers::new().resolve().unwrap().explain();
    for setting in &settings {
        let mut table = complete.clone();
        let (section, name) = section_of(&mut table, &setting.key);
        assert!(section.remove(name).is_some(), "{}", setting.key);
        let result = Config::from_table(table);
        assert!(result.is_err(), "{} has a second default somewhere", setting.key);
    }
}

#[test]
fn a_key_without_a_field_is_refused_in_every_section() {
    let complete: toml::Table = toml::from_str(DEFAULT_TOML).unwrap();
    for setting in Layers::new().resolve().unwrap().explain() {
        let mut table = complete.clone();
        let (section, _) = section_of(&mut table, &setting.key);
        section.insert("no_such_field".to_owned(), toml::Value::Integer(1));
        assert!(Config::from_table(table).is_err(), "beside {}", setting.key);
    }
}

#[test]
fn the_defaults_given_as_a_file_change_nothing_but_the_origins() {
    let layered = Layers::new().file("klnode.toml", DEFAULT_TOML).resolve().unwrap();
    assert_eq!(layered.config(), &Config::default());
    for explained in layered.explain() {
        assert!(matches!(explained.origin, ValueSource::File { .. }), "{}", explained.key);
        assert_eq!(explained.value, explained.default, "{}", explained.key);
    }
}

#[test]
fn every_setting_is_explained_once_in_the_order_of_the_defaults() {
    let explained = Layers::new().resolve().unwrap().explain();
    let places: Vec<usize> = explained.iter().map(|setting| place_of(&setting.key)).collect();
    assert!(places.is_sorted_by(|before, after| before < after), "{places:?}");
    let lines = DEFAULT_TOML.lines().filter(|line| !line.starts_with('#') && line.contains(" = "));
    assert_eq!(explained.len(), lines.count());
    let pin = explained.iter().find(|setting| setting.key == "tuning.retrieval.pin_bonus").unwrap();
    assert_eq!(pin.value, "0.15");
    assert_eq!(pin.origin, ValueSource::Default);
    assert_eq!(pin.variable, "KLNODE__TUNING__RETRIEVAL__PIN_BONUS");
    assert!(pin.comment.starts_with("Amount that a pin adds to the score"), "{}", pin.comment);
    assert!(pin.comment.ends_with("relevant."), "{}", pin.comment);
}

#[test]
fn every_setting_can_be_set_by_its_variable() {
    for setting in Layers::new().resolve().unwrap().explain() {
        let layered = Layers::new()
            .environment([(&setting.variable, &setting.default)])
            .resolve()
            .unwrap_or_else(|error| panic!("{error}"));
        let origin = layered.origin(&setting.key).unwrap();
        assert_eq!(origin, &ValueSource::Environment { name: setting.variable });
        assert_eq!(layered.config(), &Config::default());
    }
}

/// The table that holds a setting, and the setting's name in that table.
fn section_of<'a>(table: &'a mut toml::Table, key: &'a str) -> (&'a mut toml::Table, &'a str) {
    let (sections, name) = key.rsplit_once('.').expect("a setting lies in a section");
    let section = sections.split('.').fold(table, |table, section| {
        table.get_mut(section).and_then(toml::Value::as_table_mut).expect("a section is a table")
    });
    (section, name)
}

/// The byte position of a setting in `default.toml`, found without a TOML parser.
fn place_of(key: &str) -> usize {
    let (section, name) = key.rsplit_once('.').expect("a setting lies in a section");
    let section =
        DEFAULT_TOML.find(&format!("\n[{section}]\n")).expect("the section stands in the text");
    section + DEFAULT_TOML[section..].find(&format!("\n{name} = ")).expect("the key follows")
}
