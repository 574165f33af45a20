//! Tests of error messages, word for word.
//!
//! The messages are part of the interface: they name the key, the value, the limit, the origin and
//! the fix.

use klnode_config::{ConfigProblem, Layers};

/// All messages for a file with this text.
fn messages(text: &str) -> Vec<String> {
    messages_of(&Layers::new().file("klnode.toml", text))
}

fn messages_of(layers: &Layers) -> Vec<String> {
    match layers.resolve() {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn an_unknown_key_is_answered_with_the_nearest_known_one() {
    assert_eq!(
        messages("[retreival]\npin_bonus = 0.1"),
        ["Unknown key `retreival.pin_bonus` in klnode.toml line 2. \
          Did you mean `tuning.retrieval.pin_bonus`?"]
    );
    assert_eq!(
        messages_of(&Layers::new().environment([("KLNODE__TRUST__HOPMAX", "2")])),
        ["Unknown key `trust.hopmax` in environment variable KLNODE__TRUST__HOPMAX. \
          Did you mean `KLNODE__TRUST__HOP_MAX`?"]
    );
    assert_eq!(
        messages("zzzz = 1"),
        ["Unknown key `zzzz` in klnode.toml line 1. Run `klnode config` to list all keys."]
    );
}

#[test]
fn a_value_of_the_wrong_type_is_answered_with_the_type_and_the_default() {
    let cases = [
        (
            "trust.hop_max = \"three\"",
            "`trust.hop_max = \"three\"` (klnode.toml line 1) must be a whole number from 1 to 16. \
             The default is 3.",
        ),
        (
            "anchors.count_as_observation = \"yes\"",
            "`anchors.count_as_observation = \"yes\"` (klnode.toml line 1) must be true or false. \
             The default is false.",
        ),
        (
            "tuning.tasks.outside_observations_per_day_max = 0",
            "`tuning.tasks.outside_observations_per_day_max = 0` (klnode.toml line 1) must be a whole \
             number from 1 to 1000000. The default is 1.",
        ),
        (
            "tuning.tasks.outside_observations_per_day_max = 1000001",
            "`tuning.tasks.outside_observations_per_day_max = 1000001` (klnode.toml line 1) must be a \
             whole number from 1 to 1000000. The default is 1.",
        ),
        (
            "retrieval.entries_max = 101",
            "`retrieval.entries_max = 101` (klnode.toml line 1) must be a whole number from 1 to \
             100. The default is 5.",
        ),
        (
            "log.level = 3",
            "`log.level = 3` (klnode.toml line 1) must be one of \"off\", \"error\", \"warn\", \
             \"info\", \"debug\", \"trace\". The default is \"info\".",
        ),
        (
            "status.stale_after = 90",
            "`status.stale_after = 90` (klnode.toml line 1) must be text such as \"90 days\" \
             or \"4 weeks\", from \"1 day\" to \"36500 days\". The default is \"90 days\".",
        ),
        (
            "tasks.expire_after = \"5 m\"",
            "`tasks.expire_after = \"5 m\"` (klnode.toml line 1) must be unmistakable: \
             \"m\" may be minutes or months; write \"min\" for minutes, and months as days. The \
             default is \"7 days\".",
        ),
        (
            "tuning.tasks.user_priming_lifetime = \"9 min\"",
            "`tuning.tasks.user_priming_lifetime = \"9 min\"` (klnode.toml line 1) must be text such as \
             \"30 min\", \"1 h\" or \"1 day\", from \"10 min\" to \"366 days\". The default is \"1 h\".",
        ),
        (
            "tuning.retrieval.pin_bonus = { x = 1 }",
            "`tuning.retrieval.pin_bonus = { x = 1 }` (klnode.toml line 1) must be a number from 0 to 1. \
             The default is 0.15.",
        ),
        (
            "trust.hop_max = 99999999999999999999",
            "`trust.hop_max = 99999999999999999999` (klnode.toml line 1) holds a number \
             that does not fit into 64 bits. The default is 3.",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(messages(text), [expected]);
    }
}

#[test]
fn a_section_given_a_value_is_answered_with_a_key_inside_it() {
    assert_eq!(
        messages("log = \"debug\""),
        ["`log` in klnode.toml line 1 is a section, not a value. \
          Set a key inside it, such as `log.format`."]
    );
    assert_eq!(
        messages_of(&Layers::new().environment([("KLNODE__LOG", "debug")])),
        ["`log` in environment variable KLNODE__LOG is a section, not a value. \
          Set a key inside it, such as `KLNODE__LOG__FORMAT`."]
    );
    for (key, inside) in [
        ("tuning.retrieval.workspace_weights", "NAME.cooccurrence"),
        ("tuning.retrieval.workspace_weights.team", "cooccurrence"),
    ] {
        let messages = messages(&format!("{key} = 0.5"));
        let expected = format!("`{key}` in klnode.toml line 1 is a section, not a value. ");
        assert!(messages[0].starts_with(&expected), "{messages:?}");
        assert!(messages[0].ends_with(&format!("such as `{key}.{inside}`.")), "{messages:?}");
    }
    assert_eq!(messages("[[trust]]\nhop_max = 2").len(), 1);
}

#[test]
fn limits_of_event_streams_and_log_formats_are_checked() {
    for right in ["tuning.api.event_streams_max = 0", "tuning.api.event_streams_max = 65536"] {
        assert!(Layers::new().file("klnode.toml", right).resolve().is_ok(), "{right}");
    }
    for format in ["text", "json"] {
        let text = format!("log.format = \"{format}\"");
        assert!(Layers::new().file("klnode.toml", text).resolve().is_ok(), "{format}");
    }
    for wrong in [
        "tuning.api.event_streams_max = -1",
        "tuning.api.event_streams_max = 65537",
        "log.format = \"xml\"",
    ] {
        assert_eq!(messages(wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn text_that_is_not_toml_is_answered_with_the_line() {
    let messages = messages("[log]\nlevel = info\n");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("klnode.toml line 2 is not valid TOML: "), "{messages:?}");
}

#[test]
fn a_flag_without_a_key_and_a_value_is_answered_with_an_example() {
    for text in ["trust.hop_max", "=3", "", "a b=3"] {
        let expected = format!(
            "`{text}` of flag --set is not an assignment. Write `key=value`, such as \
             `trust.hop_max=2`."
        );
        assert_eq!(messages_of(&Layers::new().flags([("--set", text)])), [expected]);
    }
}

#[test]
fn weights_that_do_not_sum_to_one_are_answered_with_the_sum_and_the_set_values() {
    assert_eq!(
        messages("[tuning.retrieval.weights]\nsemantic = 0.5\n"),
        ["`tuning.retrieval.weights.semantic = 0.5` (klnode.toml line 2): the sum semantic + \
          thompson + freshness + status + thread + cooccurrence must be 1 (within 0.001), but is \
          1.1200. Change these keys together, or remove your values."]
    );
    for text in [
        "tuning.admission.weights.scanner = 0.3",
        "tuning.contradiction.composite.mean_weight = 0.6",
        "tuning.retrieval.foreign.floor_share = 0.5",
        "tuning.retrieval.workspace_weights.team.thread = 0.3",
    ] {
        assert_eq!(messages(text).len(), 1, "{text}");
    }
    assert_eq!(messages("[tuning.retrieval.weights]\nsemantic = 0.33\nthread = 0.12"), [""; 0]);
}

#[test]
fn a_signal_may_not_weigh_more_than_a_half() {
    let messages = messages("[tuning.retrieval.weights]\nsemantic = 0.51\nthompson = 0.12\n");
    assert_eq!(
        messages,
        ["`tuning.retrieval.weights.semantic = 0.51` (klnode.toml line 2) must be a \
             number from 0 to 0.5. The default is 0.38."]
    );
}

#[test]
fn values_in_the_wrong_order_are_answered_with_both() {
    assert_eq!(
        messages("tuning.admission.reject_below = 0.36"),
        ["`tuning.admission.reject_below = 0.36` (klnode.toml line 1), \
          `tuning.admission.candidate_below = 0.35` (default): `tuning.admission.reject_below` must \
          be at most `tuning.admission.candidate_below`. Change these keys together, or remove your \
          values."]
    );
    let wrong = [
        "tuning.confidence.decay_per_day.stable = 0.97",
        "tuning.confidence.decay_per_day.archived = 0.99",
        "tuning.confidence.floor = 6.0",
        "tuning.confidence.reset.mean_min = 0.65",
        "tuning.status.verified_alpha_min = 5.0",
        "tuning.gate.uncorroborated_entries_max = 6",
        "retrieval.entries_max = 1",
        "tuning.retrieval.executor_budget_tokens = 501",
        "tuning.retrieval.foreign.factor_min = 0.95",
        "tuning.retrieval.status_bonus.candidate = 0.9",
        "tuning.cooccurrence.prune_below = 1.0",
        "tuning.federation.budget.back_off = \"2 h\"",
        "tuning.network.redial_after_max = \"1 s\"",
        "embedder.query_timeout = \"61 s\"",
        "tuning.embedder.text_bytes_max = \"129 KiB\"",
    ];
    for text in wrong {
        let messages = messages(text);
        assert!(!messages.is_empty(), "{text}");
        let key = text.split(' ').next().unwrap();
        assert!(messages.iter().all(|message| message.contains(key)), "{messages:?}");
    }
}

#[test]
fn an_incomplete_embedder_is_answered_with_the_missing_settings() {
    for kind in ["openai", "ollama"] {
        let found = messages(&format!("embedder.kind = \"{kind}\""));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`embedder.url` must be the address of the server"), "{found:?}");
        assert!(
            found[1].contains("`embedder.model` must be the name of the server's"),
            "{found:?}"
        );
        let text = format!(
            "[embedder]\nkind = \"{kind}\"\nurl = \"http://10.0.0.7:11434\"\nmodel = \"m\"\n"
        );
        assert_eq!(messages(&text), [""; 0]);
        let found = messages(&format!("{text}key_variable = \"SERVER_KEY\"\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("must be an https address, or one of this machine"), "{found:?}");
    }
}

#[test]
fn an_api_key_in_the_configuration_is_refused_and_not_shown() {
    let layers = [
        Layers::new().file("klnode.toml", "embedder.key_variable = \"sk-proj-hush\""),
        Layers::new().environment([("KLNODE__EMBEDDER__KEY_VARIABLE", "sk-proj-hush")]),
        Layers::new().flags([("--set", "embedder.key_variable=sk-proj-hush")]),
        Layers::new().file("klnode.toml", "embedder.url = \"https://me:hush@host\""),
        Layers::new().file("klnode.toml", "embedder.key = \"sk-proj-hush\""),
    ];
    for layers in layers {
        let found = messages_of(&layers);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].contains("hush"), "{found:?}");
        assert!(found[0].contains("embedder."), "{found:?}");
    }
}

#[test]
fn all_problems_of_all_layers_are_reported_at_once() {
    let layers = Layers::new()
        .file("a.toml", "[log]\nlevel = ")
        .file(
            "b.toml",
            "[trust]\nhop_max = 99\nquantil = 0.1\n[tuning.admission]\nreject_below = 0.9\n",
        )
        .environment([("KLNODE__TUNING__RETRIEVAL__PIN_BONUS", "2"), ("KLNODE__NO", "1")])
        .flags([("--set", "status.stale_after=soon"), ("--set", "nothing")]);
    let error = layers.resolve().unwrap_err();
    let kinds: Vec<&str> = error.problems().iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["syntax", "unknown", "unknown", "malformed", "unfit", "unfit", "unfit", "unsound"]
    );
    let text = error.to_string();
    assert!(text.starts_with("The configuration is invalid:\n  a.toml line 2 "), "{text}");
    assert_eq!(text.lines().count(), 1 + kinds.len());
}

#[test]
fn a_wrong_value_is_reported_even_if_a_later_layer_overrides_it() {
    let layers = Layers::new()
        .file("klnode.toml", "trust.hop_max = 99")
        .flags([("--set", "trust.hop_max=2")]);
    assert_eq!(messages_of(&layers).len(), 1);
}

#[test]
fn a_rule_over_a_refused_value_is_not_reported() {
    let messages = messages("[tuning.retrieval.weights]\nsemantic = \"much\"\nthread = 0.4\n");
    assert_eq!(messages.len(), 1, "{messages:?}");
}

fn kind(problem: &ConfigProblem) -> &'static str {
    match problem {
        ConfigProblem::Syntax { .. } => "syntax",
        ConfigProblem::Malformed { .. } => "malformed",
        ConfigProblem::Unknown { .. } => "unknown",
        ConfigProblem::Unfit { .. } => "unfit",
        ConfigProblem::Unsound { .. } => "unsound",
        _ => "other",
    }
}
