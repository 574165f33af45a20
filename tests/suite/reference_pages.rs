//! Two pages of the reference. `docs/reference/configuration.md` lists every key outside `tuning` with its
//! default and the first sentence of its comment in `config/default.toml`; `KLNODE_BLESS=1` writes it again.
//! `docs/reference/formats.md` names the versions and limits that the code has, and files that exist.

use klnode_federation::net::Protocol;
use klnode_federation::proto::limits::{FRAME_BYTES_MAX, PAIR_FRAME_BYTES_MAX};
use klnode_home::Layout;
use klnode_tests::repo_source::{ROOT, repository};
use std::fmt::Write;
use std::path::Path;

const BEGINNING: &str = "# Configuration\n\n\
    The keys that an operator may want to change. A node needs no configuration file: each key has a default.\n\
    [config/default.toml](../../config/default.toml) gives the reasons, and lists the keys below `tuning` as well, whose\n\
    defaults suit nearly every node. `klnode config` shows every key with its value and the source of the value.\n\n\
    Each source overrides the one before: the defaults, `klnode.toml` in the home, the environment\n\
    (`KLNODE__TRUST__HOP_MAX=2`), the flag `--set trust.hop_max=2`. A running node keeps the settings it was started\n\
    with. A test compares this page with the defaults.\n";

#[test]
fn the_configuration_page_lists_every_key_outside_tuning() {
    let defaults = std::fs::read_to_string(Path::new(ROOT).join("config/default.toml")).unwrap();
    let page = page(&defaults);
    assert!(page.matches("\n| `").count() > 40, "{page}");
    let file = Path::new(ROOT).join("docs/reference/configuration.md");
    if std::env::var_os("KLNODE_BLESS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let differing = written.lines().zip(page.lines()).find(|(old, new)| old != new);
    assert!(
        written == page,
        "run this test with KLNODE_BLESS=1; the first difference: {differing:?}"
    );
}

/// The page for a file of defaults.
fn page(defaults: &str) -> String {
    let (mut page, mut section, mut comment) = (BEGINNING.to_owned(), "", String::new());
    for line in defaults.lines() {
        if let Some(text) = line.strip_prefix('#') {
            comment.push_str(text);
        } else if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            comment.clear();
            if !is_tuning(section) {
                let _ =
                    write!(page, "\n## {section}\n\n| key | default | meaning |\n|---|---|---|\n");
            }
        } else if let Some((key, value)) = line.split_once(" = ") {
            if !is_tuning(section) {
                let meaning = first_sentence(&comment).replace('|', "\\|");
                let _ = writeln!(page, "| `{section}.{key}` | `{value}` | {meaning} |");
            }
            comment.clear();
        } else {
            comment.clear();
        }
    }
    page
}

fn is_tuning(section: &str) -> bool {
    section.split('.').next() == Some("tuning")
}

/// The text up to its first full stop before a space.
fn first_sentence(comment: &str) -> &str {
    let comment = comment.trim();
    comment.find(". ").map_or(comment, |end| &comment[..=end])
}

#[test]
fn a_key_is_listed_with_its_default_and_the_first_sentence_of_its_comment() {
    let defaults = "# About the file.\n\n[api]\n# The socket, in\n# the home. Only you can open it.\n\
        socket = \"a.sock\"\ntcp = \"off\"\n[tuning.api]\n# A limit.\nsize_max = 1\n";
    let page = page(defaults);
    let table = page.strip_prefix(BEGINNING).unwrap();
    let expect = "\n## api\n\n| key | default | meaning |\n|---|---|---|\n\
        | `api.socket` | `\"a.sock\"` | The socket, in the home. |\n| `api.tcp` | `\"off\"` |  |\n";
    assert_eq!(table, expect);
}

#[test]
fn the_formats_page_has_the_versions_limits_and_files_of_the_code() {
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/reference/formats.md")).unwrap();
    let row = |begin: &str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {begin}")));
        row.unwrap_or_else(|| panic!("no row begins with {begin}"))
    };
    let kib = |bytes: usize| match bytes % (1024 * 1024) {
        0 => format!("at most {} MiB", bytes / 1024 / 1024),
        _ => format!("at most {} KiB", bytes / 1024),
    };
    for (begin, part) in [
        ("`store.redb`", format!("schema {}", klnode_store::tables::SCHEMA)),
        ("header", format!("format {}", klnode_crdt::limits::FORMAT)),
        ("header", kib(klnode_crdt::limits::HEADER_BYTES_MAX)),
        ("payload", kib(klnode_crdt::limits::PAYLOAD_BYTES_MAX)),
        ("edit of a playbook", kib(klnode_crdt::limits::EDIT_BYTES_MAX)),
        (&format!("`{}`", Protocol::Sync.name()), kib(FRAME_BYTES_MAX)),
        (&format!("`{}`", Protocol::Pair.name()), kib(PAIR_FRAME_BYTES_MAX)),
        ("export", format!("version {}", klnode_api_types::export_file::VERSION)),
        ("backup", format!("version {}", klnode_store::backup::VERSION)),
    ] {
        assert!(row(begin).contains(&part), "{part}: {}", row(begin));
    }
    let home = Layout::new("");
    let files = [
        home.store_file(),
        home.key_file(),
        home.person_file(),
        home.config_file(),
        home.index_folder(),
        home.token_file(),
        home.port_file(),
        home.hook_log_file(),
        home.run_folder(),
        home.lock_file(),
    ];
    let of_process = home.page_file(0).display().to_string().replace('0', "PROCESS");
    for file in files.iter().map(|file| file.display().to_string()).chain([of_process]) {
        assert!(
            page.contains(&format!("`{file}`")) || page.contains(&format!("`{file}/`")),
            "{file}"
        );
    }
    let paths = page.split('`').skip(1).step_by(2).filter(|code| {
        ["crdt/", "federation/", "node/", "config/"].iter().any(|of| code.starts_with(of))
    });
    let missing: Vec<&str> = paths.filter(|path| !repository().paths.contains(*path)).collect();
    assert!(missing.is_empty(), "these files do not exist: {missing:?}");
}
