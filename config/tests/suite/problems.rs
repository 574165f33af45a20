//! Tests of error messages, word for word.
//!
//! The messages are part of the interface: they name the key, the value, the limit, the origin and
//! the fix.

use klnode_config::{Layers, Problem};

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
        ["unknown key `retreival.pin_bonus` in klnode.toml line 2; \
          did you mean `retrieval.pin_bonus`?"]
    );
    assert_eq!(
        messages_of(&Layers::new().environment([("KLNODE__TRUST__HOPMAX", "2")])),
        ["unknown key `trust.hopmax` in environment variable KLNODE__TRUST__HOPMAX; \
          did you mean `KLNODE__TRUST__HOP_MAX`?"]
    );
    assert_eq!(
        messages("zzzz = 1"),
        ["unknown key `zzzz` in klnode.toml line 1; `klnode config` lists every key"]
    );
}

#[test]
fn a_value_of_the_wrong_type_gets_one_sentence() {
    let cases = [
        (
            "trust.hop_max = \"three\"",
            "`trust.hop_max = \"three\"` (klnode.toml line 1) must be a whole number from 1 to 16; \
             the default is 3",
        ),
        (
            "anchors.count_as_observation = \"yes\"",
            "`anchors.count_as_observation = \"yes\"` (klnode.toml line 1) must be true or false; \
             the default is false",
        ),
        (
            "provenance.outside_observations_per_day_max = 0",
            "`provenance.outside_observations_per_day_max = 0` (klnode.toml line 1) must be a whole \
             number from 1 to 1000000; the default is 1",
        ),
        (
            "provenance.outside_observations_per_day_max = 1000001",
            "`provenance.outside_observations_per_day_max = 1000001` (klnode.toml line 1) must be a \
             whole number from 1 to 1000000; the default is 1",
        ),
        (
            "retrieval.entries_max = 101",
            "`retrieval.entries_max = 101` (klnode.toml line 1) must be a whole number from 1 to \
             100; the default is 5",
        ),
        (
            "log.level = 3",
            "`log.level = 3` (klnode.toml line 1) must be one of \"off\", \"error\", \"warn\", \
             \"info\", \"debug\", \"trace\"; the default is \"info\"",
        ),
        (
            "status.stale_after = 90",
            "`status.stale_after = 90` (klnode.toml line 1) must be text such as \"90 days\" \
             or \"4 weeks\", from \"1 day\" to \"36500 days\"; the default is \"90 days\"",
        ),
        (
            "provenance.task_expires_after = \"5 m\"",
            "`provenance.task_expires_after = \"5 m\"` (klnode.toml line 1) must be unmistakable: \
             \"m\" may be minutes or months; write \"min\" for minutes, and months as days; the \
             default is \"7 days\"",
        ),
        (
            "provenance.user_primed_for = \"9 min\"",
            "`provenance.user_primed_for = \"9 min\"` (klnode.toml line 1) must be text such as \
             \"30 min\", \"1 h\" or \"1 day\", from \"10 min\" to \"366 days\"; the default is \"1 h\"",
        ),
        (
            "retrieval.pin_bonus = { x = 1 }",
            "`retrieval.pin_bonus = { x = 1 }` (klnode.toml line 1) must be a number from 0 to 1; \
             the default is 0.15",
        ),
        (
            "trust.hop_max = 99999999999999999999",
            "`trust.hop_max = 99999999999999999999` (klnode.toml line 1) holds a number \
             that does not fit into 64 bits; the default is 3",
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
        ["`log` in klnode.toml line 1 is a section, not a value; \
          set a key inside it, such as `log.format`"]
    );
    assert_eq!(
        messages_of(&Layers::new().environment([("KLNODE__LOG", "debug")])),
        ["`log` in environment variable KLNODE__LOG is a section, not a value; \
          set a key inside it, such as `KLNODE__LOG__FORMAT`"]
    );
    for (key, inside) in [
        ("retrieval.workspace_weights", "retrieval.workspace_weights.NAME.cooccurrence"),
        ("retrieval.workspace_weights.team", "retrieval.workspace_weights.team.cooccurrence"),
    ] {
        let messages = messages(&format!("{key} = 0.5"));
        let expected = format!("`{key}` in klnode.toml line 1 is a section, not a value; ");
        assert!(messages[0].starts_with(&expected), "{messages:?}");
        assert!(messages[0].ends_with(&format!("such as `{inside}`")), "{messages:?}");
    }
    assert_eq!(messages("[[trust]]\nhop_max = 2").len(), 1);
}

#[test]
fn settings_of_the_api_and_the_log_end_where_they_say() {
    for right in ["api.event_streams_max = 0", "api.event_streams_max = 65536"] {
        assert!(Layers::new().file("klnode.toml", right).resolve().is_ok(), "{right}");
    }
    for format in ["text", "json"] {
        let text = format!("log.format = \"{format}\"");
        assert!(Layers::new().file("klnode.toml", text).resolve().is_ok(), "{format}");
    }
    for wrong in
        ["api.event_streams_max = -1", "api.event_streams_max = 65537", "log.format = \"xml\""]
    {
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
            "flag --set was given `{text}`, and takes `key=value`, such as `trust.hop_max=2`"
        );
        assert_eq!(messages_of(&Layers::new().flags([("--set", text)])), [expected]);
    }
}

#[test]
fn weights_that_do_not_sum_to_one_are_answered_with_the_sum_and_what_was_set() {
    assert_eq!(
        messages("[retrieval.weights]\nsemantic = 0.5\n"),
        ["`retrieval.weights.semantic = 0.5` (klnode.toml line 2): semantic + thompson + \
          freshness + status + thread + cooccurrence must be 1 (within 0.001), and is 1.1200; \
          change them together, or leave out what you set"]
    );
    for text in [
        "admission.weights.scanner = 0.3",
        "conflict.composite.mean_weight = 0.6",
        "retrieval.foreign.floor_share = 0.5",
        "retrieval.workspace_weights.team.thread = 0.3",
    ] {
        assert_eq!(messages(text).len(), 1, "{text}");
    }
    assert_eq!(messages("[retrieval.weights]\nsemantic = 0.33\nthread = 0.12"), [""; 0]);
}

#[test]
fn a_signal_may_not_weigh_more_than_a_half() {
    let messages = messages("[retrieval.weights]\nsemantic = 0.51\nthompson = 0.12\n");
    assert_eq!(
        messages,
        [
            "`retrieval.weights.semantic = 0.51` (klnode.toml line 2) must be a number from 0 to 0.5; \
          the default is 0.38"
        ]
    );
}

#[test]
fn values_in_the_wrong_order_are_answered_with_both() {
    assert_eq!(
        messages("admission.reject_below = 0.36"),
        ["`admission.reject_below = 0.36` (klnode.toml line 1), \
          `admission.candidate_below = 0.35` (default): `admission.reject_below` must be at most \
          `admission.candidate_below`; change them together, or leave out what you set"]
    );
    let wrong = [
        "confidence.gamma_per_day.stable = 0.97",
        "confidence.gamma_per_day.archived = 0.99",
        "confidence.floor = 6.0",
        "confidence.reset.mean_min = 0.65",
        "status.verified_alpha_min = 5.0",
        "gate.uncorroborated_places_max = 6",
        "retrieval.entries_max = 1",
        "retrieval.executor_budget_tokens = 501",
        "retrieval.foreign.factor_min = 0.95",
        "retrieval.status_bonus.candidate = 0.9",
        "cooccurrence.prune_below = 1.0",
        "federation.budget.back_off = \"2 h\"",
        "network.redial_after_max = \"1 s\"",
        "embedder.query_timeout = \"61 s\"",
        "embedder.text_bytes_max = \"129 KiB\"",
    ];
    for text in wrong {
        let messages = messages(text);
        assert!(!messages.is_empty(), "{text}");
        let key = text.split(' ').next().unwrap();
        assert!(messages.iter().all(|message| message.contains(key)), "{messages:?}");
    }
}

#[test]
fn an_embedder_without_what_it_needs_is_answered_with_what_is_missing() {
    assert_eq!(
        messages("embedder.kind = \"folder\""),
        ["`embedder.kind = \"folder\"` (klnode.toml line 1), `embedder.folder = \"\"` (default): \
          with this `embedder.kind`, `embedder.folder` must be the absolute path of the model's \
          folder; change them together, or leave out what you set"]
    );
    assert_eq!(messages("embedder = { kind = \"folder\", folder = \"/m\" }"), [""; 0]);
    for kind in ["openai", "ollama"] {
        let told = messages(&format!("embedder.kind = \"{kind}\""));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("`embedder.url` must be the address of the server"), "{told:?}");
        assert!(told[1].contains("`embedder.model` must be the name of the server's"), "{told:?}");
        let text = format!(
            "[embedder]\nkind = \"{kind}\"\nurl = \"http://10.0.0.7:11434\"\nmodel = \"m\"\n"
        );
        assert_eq!(messages(&text), [""; 0]);
        let told = messages(&format!("{text}key_variable = \"SERVER_KEY\"\n"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("must be an https address, or one of this machine"), "{told:?}");
    }
}

#[test]
fn a_key_put_into_the_configuration_is_refused_and_not_repeated() {
    let layers = [
        Layers::new().file("klnode.toml", "embedder.key_variable = \"sk-proj-hush\""),
        Layers::new().environment([("KLNODE__EMBEDDER__KEY_VARIABLE", "sk-proj-hush")]),
        Layers::new().flags([("--set", "embedder.key_variable=sk-proj-hush")]),
        Layers::new().file("klnode.toml", "embedder.url = \"https://me:hush@host\""),
        Layers::new().file("klnode.toml", "embedder.key = \"sk-proj-hush\""),
    ];
    for layers in layers {
        let told = messages_of(&layers);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(!told[0].contains("hush"), "{told:?}");
        assert!(told[0].contains("embedder."), "{told:?}");
    }
}

#[test]
fn all_problems_of_all_layers_are_told_at_once() {
    let layers = Layers::new()
        .file("a.toml", "[log]\nlevel = ")
        .file("b.toml", "[trust]\nhop_max = 99\nquantil = 0.1\n[admission]\nreject_below = 0.9\n")
        .environment([("KLNODE__RETRIEVAL__PIN_BONUS", "2"), ("KLNODE__NO", "1")])
        .flags([("--set", "status.stale_after=soon"), ("--set", "nothing")]);
    let error = layers.resolve().unwrap_err();
    let kinds: Vec<&str> = error.problems().iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["syntax", "unknown", "unknown", "malformed", "unfit", "unfit", "unfit", "unsound"]
    );
    let text = error.to_string();
    assert!(text.starts_with("use this configuration:\n  a.toml line 2 "), "{text}");
    assert_eq!(text.lines().count(), 1 + kinds.len());
}

#[test]
fn a_wrong_value_is_told_even_where_a_later_layer_overrides_it() {
    let layers = Layers::new()
        .file("klnode.toml", "trust.hop_max = 99")
        .flags([("--set", "trust.hop_max=2")]);
    assert_eq!(messages_of(&layers).len(), 1);
}

#[test]
fn a_rule_over_a_refused_value_stays_silent() {
    let messages = messages("[retrieval.weights]\nsemantic = \"much\"\nthread = 0.4\n");
    assert_eq!(messages.len(), 1, "{messages:?}");
}

fn kind(problem: &Problem) -> &'static str {
    match problem {
        Problem::Syntax { .. } => "syntax",
        Problem::Malformed { .. } => "malformed",
        Problem::Unknown { .. } => "unknown",
        Problem::Unfit { .. } => "unfit",
        Problem::Unsound { .. } => "unsound",
        _ => "other",
    }
}
