//! Tests of version comparisons and of the version order.

use std::cmp::Ordering;

use crate::predicate::version::{Comparator, Operator, PackageVersion};

fn version(text: &str) -> PackageVersion {
    PackageVersion::parse(text).unwrap_or_else(|| panic!("{text} is a version"))
}

fn admits(asked: &str, given: &str) -> bool {
    let (operator, rest) = Operator::split(asked).expect("a sign");
    Comparator::new(operator, version(rest)).expect("a comparison").admits(&version(given))
}

#[test]
fn each_operator_admits_its_versions() {
    for (asked, yes, no) in [
        ("=1.40", "1.40 1.40.0 1.40.7 1.40.0-rc.1", "1.39.9 1.41.0 1.4.0 2.40"),
        ("=1.40.2", "1.40.2 1.40.2.1", "1.40.1 1.40.3 1.40.2-rc.1 1.40.2.post1"),
        ("=1", "1 1.0.0 1.99.3", "0.1 2.0.0 10.0"),
        ("!=1.40", "1.39.0 1.41.0", "1.40.0 1.40.9"),
        (">1.40", "1.41.0 2.0.0", "1.40.0 1.40.9 1.39.0"),
        (">1.40.2", "1.40.3 1.41.0", "1.40.2 1.40.2-rc.1"),
        (">=1.40", "1.40.0 1.40.0-rc.1 1.41.0 2.0.0", "1.39.9 0.50.0 1.5.0"),
        (">=2.0.0", "2.0.0 2.0.1 2.0.0.post1", "2.0.0-rc.1 1.9.9"),
        (">=2.0.0-rc.1", "2.0.0-rc.1 2.0.0-rc.2 2.0.0", "2.0.0-beta.9 1.9.9"),
        ("<2", "1.99.99 0.1", "2.0.0 2.0.0-rc.1 3.0.0"),
        ("<2.0.0", "1.99.99 2.0.0-rc.1", "2.0.0 2.0.1"),
        ("<=1.40", "1.40.0 1.40.9 1.39.0", "1.41.0 2.0.0"),
        ("^1.2", "1.2.0 1.9.0", "1.1.9 2.0.0 2.0.0-rc.1"),
        ("^1.2.3", "1.2.3 1.3.0", "1.2.2 2.0.0"),
        ("^0.3", "0.3.0 0.3.9", "0.2.9 0.4.0 1.0.0"),
        ("^0.0.3", "0.0.3", "0.0.2 0.0.4 0.1.0"),
        ("^0.0", "0.0.0 0.0.9", "0.1.0"),
        ("^0", "0.0.0 0.9.9", "1.0.0"),
        ("^18", "18.0.0 18.99.0", "17.9.9 19.0.0"),
        ("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
        ("~1.2", "1.2.0 1.2.9", "1.1.0 1.3.0"),
        ("~1", "1.0.0 1.9.9", "0.9.9 2.0.0"),
        ("~=2.31", "2.31 2.99.0", "2.30.9 3.0.0"),
        ("~=2.31.1", "2.31.1 2.31.9", "2.31.0 2.32.0"),
    ] {
        for given in yes.split_whitespace() {
            assert!(admits(asked, given), "{asked} admits {given}");
        }
        for given in no.split_whitespace() {
            assert!(!admits(asked, given), "{asked} does not admit {given}");
        }
    }
}

#[test]
fn versions_are_ordered() {
    let rising = [
        "0.0.0-20230101000000-abcdef",
        "0.9",
        "1.0.dev1",
        "1.0.0-1",
        "1.0a1",
        "1.0a2",
        "1.0b1",
        "1.0rc1",
        "1.0.0-rc.1.1",
        "1.0.0-rc.2",
        "1.0.0-rc.10",
        "1.0",
        "1.0.post1",
        "1.0.0.1",
        "1.0.1",
        "1.10",
        "2",
    ];
    for (at, low) in rising.iter().enumerate() {
        for high in &rising[at + 1..] {
            assert_eq!(version(low).order(&version(high)), Ordering::Less, "{low} and {high}");
            assert_eq!(version(high).order(&version(low)), Ordering::Greater, "{high} and {low}");
        }
    }
    for same in ["1", "1.0", "1.0.0", "v1.0.0", "1.0.0+build.7"] {
        assert_eq!(version(same).order(&version("1.0.0.0")), Ordering::Equal, "{same}");
    }
}

#[test]
fn invalid_versions_are_refused() {
    for text in [
        "",
        "x",
        "v",
        "1.",
        ".1",
        "1..2",
        "1.x",
        "1-",
        "1.0-a..b",
        "1.0-ü",
        "latest",
        "1!2.0",
        "1.0a1.dev2",
        "99999999999999999999",
        "1.2.3.4.5.6.7",
        "1 2",
    ] {
        assert_eq!(PackageVersion::parse(text), None, "{text}");
    }
}
