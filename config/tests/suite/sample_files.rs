//! Tests that every sample file is valid as it is, because users copy these files first.

use klnode_config::{Config, Layers};

fn load(name: &str, text: &str) -> Config {
    match Layers::new().file(name, text).resolve() {
        Ok(layered) => layered.config().clone(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_sample_for_one_machine_loads_and_listens_nowhere() {
    let config = load("solo.toml", include_str!("../../samples/solo.toml"));
    assert!(config.network.listen.as_slice().is_empty());
}

#[test]
fn the_sample_for_a_hub_loads_and_listens_on_a_fixed_port() {
    let config = load("team-hub.toml", include_str!("../../samples/team-hub.toml"));
    let addresses = config.network.listen.as_slice();
    assert!(addresses.iter().all(|address| address.as_str().ends_with("/tcp/4600")));
    assert_eq!(addresses.len(), 2);
}

#[test]
fn the_sample_for_a_workstation_loads_and_keeps_private_tags_at_home() {
    let config = load("workstation.toml", include_str!("../../samples/workstation.toml"));
    let tags = config.filter.egress.tags_deny.as_slice();
    assert!(tags.iter().any(|tag| tag.as_str() == "private"));
    let (name, weights) = config.retrieval.workspace_weights.first_key_value().unwrap();
    assert_eq!(name.as_str(), "team");
    assert_ne!(weights, &config.retrieval.weights);
}

#[test]
fn the_sample_for_a_local_model_loads_and_stays_on_this_machine() {
    let config = load("local-model.toml", include_str!("../../samples/local-model.toml"));
    assert_eq!(config.embedder.kind, klnode_config::units::EmbedderKind::Ollama);
    assert!(!config.embedder.url.is_exposed());
}

#[test]
fn no_sample_repeats_a_default() {
    let samples = [
        include_str!("../../samples/solo.toml"),
        include_str!("../../samples/team-hub.toml"),
        include_str!("../../samples/workstation.toml"),
        include_str!("../../samples/local-model.toml"),
    ];
    for text in samples {
        for setting in Layers::new().file("sample.toml", text).resolve().unwrap().explain() {
            let is_set = setting.origin != klnode_config::ValueSource::Default;
            assert!(!is_set || setting.value != setting.default, "{}", setting.key);
        }
    }
}
