//! Every decoder on its corpus, on its past crashers, and on thousands of mutations of both.
//!
//! `KLNODE_BLESS=1` rewrites the seeds of the corpora; `KLNODE_FUZZ` sets the number of mutations
//! per target. `.ci/fuzz` goes further, with libFuzzer.

use klnode_store::row_reencoding::rewritten;
use klnode_tests::fuzzing::{self, TABLES, TARGETS, Target, mutator, seeds};
use klnode_tests::repo_source::ROOT;
use klnode_tests::test_engine::Seeded;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn mutations() -> u64 {
    std::env::var("KLNODE_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000)
}

fn folder(kind: &str, target: &Target) -> PathBuf {
    Path::new(ROOT).join("fuzz").join(kind).join(target.name)
}

/// Files of a folder in the order of their names; empty if it does not exist.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The failure of a target on an input, if it breaks a property. The input is kept in a file.
fn failure(target: &Target, input: &[u8], number: u64) -> Option<String> {
    let run = AssertUnwindSafe(|| fuzzing::run(target.name, input));
    let panic = catch_unwind(run).err()?;
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let file = format!("klnode-{}-{}-{number}", target.name, std::process::id());
    let path = std::env::temp_dir().join(file);
    fs::write(&path, input).unwrap();
    let (name, path) = (target.name, path.display());
    Some(format!("{name}: {words}\n  the input is {path}; mend it, and keep it in fuzz/crashers"))
}

#[track_caller]
fn assert_no_failure(failures: &[String]) {
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_corpus_holds_its_seeds_and_breaks_nothing() {
    let mut failures = Vec::new();
    for target in TARGETS {
        let folder = folder("corpus", target);
        let seeds = seeds::of(target.name);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (number, seed) in seeds.iter().enumerate() {
            let path = folder.join(format!("seed-{number:02}"));
            if std::env::var_os("KLNODE_BLESS").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, seed).unwrap();
            }
            let kept = fs::read(&path).unwrap_or_default();
            let path = path.display();
            assert!(kept == *seed, "{path} is not the seed that is written now");
        }
        let all = files(&folder);
        failures.extend(all.iter().filter_map(|(_, input)| failure(target, input, 0)));
    }
    assert_no_failure(&failures);
}

#[test]
fn past_crashers_no_longer_fail() {
    let mut failures = Vec::new();
    for target in TARGETS {
        let all = files(&folder("crashers", target));
        failures.extend(all.iter().filter_map(|(_, input)| failure(target, input, 0)));
    }
    assert_no_failure(&failures);
}

#[test]
fn mutated_inputs_break_nothing() {
    let failures: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            TARGETS.iter().map(|target| scope.spawn(move || first_failure(target))).collect();
        runs.into_iter().filter_map(|run| run.join().unwrap()).collect()
    });
    assert_no_failure(&failures);
}

fn first_failure(target: &Target) -> Option<String> {
    let mut inputs = seeds::of(target.name);
    for kind in ["corpus", "crashers"] {
        inputs.extend(files(&folder(kind, target)).into_iter().map(|(_, input)| input));
    }
    let place = TARGETS.iter().position(|other| other.name == target.name);
    let mut random = Seeded(place.unwrap() as u64);
    (0..mutations()).find_map(|number| {
        let mut pick = || random.below(inputs.len() as u64) as usize;
        let (one, other) = (pick(), pick());
        let input = mutator::mutated(&inputs[one], &inputs[other], &mut random);
        failure(target, &input, number)
    })
}

#[test]
fn every_table_has_a_seed_that_decodes() {
    let seeds = seeds::of("stored-values");
    for (number, table) in TABLES.iter().enumerate() {
        let mut of_table = seeds.iter().filter(|seed| usize::from(seed[0]) == number);
        let decodes =
            of_table.any(|seed| rewritten(table, &seed[1..]).as_deref() == Some(&seed[1..]));
        assert_eq!(decodes, *table != "no such table", "{table}");
    }
}

#[test]
fn every_target_has_a_driver_and_every_driver_a_target() {
    let folder = Path::new(ROOT).join("fuzz/fuzz_targets");
    let drivers: Vec<(PathBuf, Vec<u8>)> = files(&folder);
    assert_eq!(drivers.len(), TARGETS.len());
    let manifest = fs::read_to_string(Path::new(ROOT).join("fuzz/Cargo.toml")).unwrap();
    for Target { name, .. } in TARGETS {
        let driver = fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        assert!(driver.contains(&format!("run(\"{name}\", data)")), "{name}");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}
