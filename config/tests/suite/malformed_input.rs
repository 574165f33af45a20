//! Tests with malformed input: the result is a configuration or a list of problems, without a panic
//! and within bounded time.
//!
//! These inputs have no expected result to compare with, only bounds.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use klnode_config::{Config, ConfigError, DEFAULT_TOML, FILE_BYTES_MAX, Layered, Layers};

fn load(text: &str) -> Result<Layered, ConfigError> {
    Layers::new().file("klnode.toml", text).resolve()
}

#[test]
fn an_empty_file_is_the_defaults() {
    for text in
        ["", "\n", " \t\r\n", "# nothing\n", "[log]\n", "[tuning.retrieval.workspace_weights]"]
    {
        assert_eq!(load(text).unwrap().config(), &Config::default(), "{text:?}");
    }
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_make_no_difference() {
    let text = "\u{feff}# comment\r\n[trust]\r\nhop_max = 2\r\n";
    let layered = load(text).unwrap();
    assert_eq!(layered.config().trust.hop_max.get(), 2);
    assert_eq!(layered.origin("trust.hop_max").unwrap().to_string(), "klnode.toml line 3");
    let windows = format!("\u{feff}{}", DEFAULT_TOML.replace('\n', "\r\n"));
    assert_eq!(load(&windows).unwrap().config(), &Config::default());
}

#[test]
fn deep_nesting_is_a_problem_and_not_a_crash() {
    for depth in [10, 100, 1_000, 50_000] {
        let texts = [
            format!("network.listen = {}{}", "[".repeat(depth), "]".repeat(depth)),
            format!("network.listen = {}1{}", "{a=".repeat(depth), "}".repeat(depth)),
            format!("{}a = 1", "a.".repeat(depth)),
            format!("[{}a]\nb = 1", "a.".repeat(depth)),
            format!("trust.hop_max = {}", "[".repeat(depth)),
        ];
        for text in texts {
            assert!(load(&text).is_err(), "{depth}");
        }
    }
}

#[test]
fn numbers_beyond_all_bounds_are_problems() {
    let numbers = [
        "nan",
        "-nan",
        "inf",
        "-inf",
        "1e309",
        "-1e309",
        "1e-400",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551616",
        "0x7fffffffffffffff",
        "-1",
        "1_0_0_0_0_0_0_0",
    ];
    let keys = [
        "trust.hop_max",
        "tuning.confidence.prior_alpha",
        "tuning.retrieval.pin_bonus",
        "status.stale_after",
    ];
    for number in numbers {
        for key in keys {
            let loaded = load(&format!("{key} = {number}"));
            let is_zero = number == "1e-400" && key == "tuning.retrieval.pin_bonus";
            assert_eq!(loaded.is_ok(), is_zero, "{key} = {number}");
            let flag = format!("{key}={number}");
            let loaded = Layers::new().flags([("--set", flag)]).resolve();
            assert_eq!(loaded.is_ok(), is_zero, "{key}={number}");
        }
    }
}

#[test]
fn a_value_of_each_type_in_place_of_each_setting_is_at_worst_a_problem() {
    let values =
        ["1", "0.5", "true", "\"x\"", "[]", "[1]", "[[]]", "{}", "{ a = 1 }", "1979-05-27"];
    for setting in Layers::new().resolve().unwrap().explain() {
        let right =
            values.iter().filter(|value| load(&format!("{} = {value}", setting.key)).is_ok());
        assert!(right.count() <= 3, "{} takes nearly everything", setting.key);
    }
}

#[test]
fn a_file_beyond_the_size_limit_is_not_parsed() {
    let text = "# ".repeat(FILE_BYTES_MAX / 2);
    assert!(load(&text).is_ok());
    let message = load(&format!("{text}#")).unwrap_err().to_string();
    assert!(message.contains("has 262145 bytes"), "{message}");
}

#[test]
fn a_file_full_of_wrong_keys_is_answered_with_the_first_and_the_number_of_the_rest() {
    let text: String = (0..20_000).map(|number| format!("k{number} = 1\n")).collect();
    let error = load(&text).unwrap_err();
    assert_eq!(error.problems().len() + error.omitted(), 20_000);
    assert!(error.to_string().lines().count() < 100);
}

#[test]
fn long_keys_and_values_are_shortened_in_messages() {
    let long = "x".repeat(100_000);
    for text in [format!("{long} = 1"), format!("log.level = \"{long}\""), format!("\"{long}\"")] {
        let message = load(&text).unwrap_err().to_string();
        assert!(message.len() < 1_000, "{}", message.len());
    }
}

#[test]
fn names_and_values_that_are_not_unicode_are_problems() {
    let wrong = OsStr::from_bytes(b"\xff\xfe");
    let name = OsStr::from_bytes(b"KLNODE__\xff");
    assert!(Layers::new().environment([(name, wrong)]).resolve().is_err());
    let name = OsStr::new("KLNODE__LOG__LEVEL");
    assert!(Layers::new().environment([(name, wrong)]).resolve().is_err());
    assert!(Layers::new().environment([(wrong, wrong)]).resolve().is_ok());
}

#[test]
fn odd_variables_and_flags_are_problems() {
    for name in ["KLNODE__", "KLNODE____", "KLNODE__LOG__", "KLNODE__LOG__LEVEL__X", "KLNODE__ __"]
    {
        assert!(Layers::new().environment([(name, "info")]).resolve().is_err(), "{name}");
    }
    for flag in ["=", "==", ".=1", "log.level\n=info", "[log]\nlevel=info", "\"log.level\"=info"] {
        assert!(Layers::new().flags([("--set", flag)]).resolve().is_err(), "{flag:?}");
    }
}

#[test]
fn damaged_defaults_cause_no_panic() {
    // A fixed pseudo-random sequence (xorshift64), so that a failure is reproducible.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let pieces =
        ["[", "]", "{", "}", "\"", "'", "\"\"\"", "=", ".", "#", "\n", "\0", "ü", "-", "1e999"];
    let lines: Vec<&str> = DEFAULT_TOML.lines().filter(|line| !line.starts_with('#')).collect();
    let text = lines.join("\n");
    let mut wrong = 0;
    for _ in 0..300 {
        let mut damaged: Vec<char> = text.chars().collect();
        for _ in 0..=draw(4) {
            let place = draw(damaged.len());
            let end = (place + draw(8)).min(damaged.len());
            damaged.splice(place..end, pieces[draw(pieces.len())].chars());
        }
        let damaged: String = damaged.into_iter().collect();
        wrong += usize::from(load(&damaged).is_err());
    }
    assert!(wrong > 200, "{wrong} of 300 were noticed");
}

#[test]
fn a_file_full_of_workspaces_is_read_whole() {
    let table = |number| format!("[tuning.retrieval.workspace_weights.w{number}]\nthread = 0.07\n");
    let text: String = (0..500).map(table).collect();
    let layered = load(&text).unwrap();
    assert_eq!(layered.config().retrieval.workspace_weights.len(), 500);
}
