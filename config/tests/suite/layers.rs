//! Tests of the precedence of layers and of reported origins, with valid input only.

use std::path::PathBuf;

use klnode_config::units::{Days, LogLevel, ScopeName};
use klnode_config::{Layered, Layers, ValueSource};

const FILE: &str = "[trust]\nhop_max = 2\n\n[log]\nlevel = \"warn\"\n";

fn hop_max(layered: &Layered) -> (u32, String) {
    let origin = layered.origin("trust.hop_max").expect("the key exists");
    (layered.config().trust.hop_max.get(), origin.to_string())
}

#[test]
fn each_layer_overrides_the_one_before() {
    let layers = Layers::new();
    assert_eq!(hop_max(&layers.resolve().unwrap()), (3, "default".into()));

    let layers = layers.file("etc/klnode.toml", FILE);
    let expected = (2, "etc/klnode.toml line 2".into());
    assert_eq!(hop_max(&layers.resolve().unwrap()), expected);

    let layers = layers.environment([("KLNODE__TRUST__HOP_MAX", "4")]);
    let expected = (4, "environment variable KLNODE__TRUST__HOP_MAX".into());
    assert_eq!(hop_max(&layers.resolve().unwrap()), expected);

    let layers = layers.flags([("--set", "trust.hop_max=5")]);
    assert_eq!(hop_max(&layers.resolve().unwrap()), (5, "flag --set".into()));
}

#[test]
fn the_order_in_which_layers_are_handed_in_does_not_matter() {
    let layers = Layers::new()
        .flags([("--set", "trust.hop_max=5")])
        .environment([("KLNODE__TRUST__HOP_MAX", "4")])
        .file("klnode.toml", FILE);
    assert_eq!(hop_max(&layers.resolve().unwrap()).0, 5);
}

#[test]
fn a_later_file_or_flag_overrides_an_earlier_one() {
    let layers = Layers::new().file("a.toml", FILE).file("b.toml", "trust.hop_max = 6");
    assert_eq!(hop_max(&layers.resolve().unwrap()), (6, "b.toml line 1".into()));
    let layers = layers.flags([("--set", "trust.hop_max=7"), ("--hops", "trust.hop_max=8")]);
    assert_eq!(hop_max(&layers.resolve().unwrap()), (8, "flag --hops".into()));
}

#[test]
fn a_layer_touches_only_the_keys_it_names() {
    let layered = Layers::new().file("klnode.toml", FILE).resolve().unwrap();
    let others =
        layered.explain().into_iter().filter(|setting| setting.origin != ValueSource::Default);
    let keys: Vec<String> = others.map(|setting| setting.key).collect();
    assert_eq!(keys, ["log.level", "trust.hop_max"]);
    assert_eq!(layered.config().log.level, LogLevel::Warn);
    let line = 5;
    let path = PathBuf::from("klnode.toml");
    assert_eq!(layered.origin("log.level"), Some(&ValueSource::File { path, line }));
}

#[test]
fn keys_may_be_written_dotted_inline_or_in_sections() {
    for text in ["trust.hop_max = 2", "trust = { hop_max = 2 }", "[trust]\nhop_max = 2"] {
        let layered = Layers::new().file("klnode.toml", text).resolve().unwrap();
        assert_eq!(hop_max(&layered).0, 2, "{text}");
    }
}

#[test]
fn variables_without_the_prefix_are_ignored() {
    let variables = [("KLNODE_HOME", "/srv"), ("PATH", "/bin"), ("klnode__trust__hop_max", "4")];
    let layered = Layers::new().environment(variables).resolve().unwrap();
    assert_eq!(layered, Layers::new().resolve().unwrap());
}

#[test]
fn text_and_lists_need_no_quotes_in_the_environment_and_on_flags() {
    let layered = Layers::new()
        .environment([("KLNODE__STATUS__STALE_AFTER", "30 days")])
        .flags([("--set", "filter.egress.tags_deny=private, draft")])
        .resolve()
        .unwrap();
    assert_eq!(layered.config().status.stale_after, Days::new(30).unwrap());
    let tags = layered.config().filter.egress.tags_deny.as_slice();
    let tags: Vec<&str> = tags.iter().map(ScopeName::as_str).collect();
    assert_eq!(tags, ["private", "draft"]);
}

#[test]
fn a_workspace_has_its_own_weights_and_takes_the_others_from_the_common_ones() {
    let text = "[tuning.retrieval.workspace_weights.\"my team\"]\nthompson = 0.17\nthread = 0.15\n";
    let layered = Layers::new().file("klnode.toml", text).resolve().unwrap();
    let retrieval = &layered.config().retrieval;
    let weights = &retrieval.workspace_weights;
    let (name, team) = weights.first_key_value().unwrap();
    assert_eq!((weights.len(), name.as_str()), (1, "my team"));
    assert_eq!(team.thread.get(), 0.15);
    assert_eq!(team.semantic, retrieval.weights.semantic);
    let explained = layered.explain();
    let own = explained
        .iter()
        .find(|setting| setting.key == "tuning.retrieval.workspace_weights.\"my team\".thread")
        .unwrap();
    assert_eq!((own.value.as_str(), own.default.as_str()), ("0.15", "0.07"));
    assert!(layered.origin(&own.key).is_some());
}

#[test]
fn a_key_that_does_not_exist_has_no_origin() {
    let layered = Layers::new().resolve().unwrap();
    for key in ["trust", "trust.hop", "", "trust.hop_max.x"] {
        assert_eq!(layered.origin(key), None, "{key}");
    }
}

#[test]
fn a_retired_setting_is_ignored() {
    let old = "[status]\nstale_prediction_errors_min = 5\nstale_uses_below = 3\n";
    let layered = Layers::new()
        .file("klnode.toml", format!("{old}stale_after = \"30 days\"\n"))
        .environment([("KLNODE__STATUS__STALE_USES_BELOW", "9")])
        .flags([("--set", "status.stale_prediction_errors_min=9")])
        .resolve()
        .unwrap();
    assert_eq!(layered.config().status.stale_after.get(), 30);
    assert!(layered.origin("status.stale_uses_below").is_none());
}
