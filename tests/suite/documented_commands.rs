//! Commands in documents, help texts and messages exist: every verb and every flag is known to the command
//! line, so that a renamed verb cannot leave a false instruction behind.
//!
//! A command is `klnode` and its words: on a line of a code block, in backticks, or after `Example:` in the
//! comment of a verb. Values are not checked, nor configuration keys. The page `docs/reference/commands.md` is
//! made from the command line: `KLNODE_BLESS=1` writes it again. The targets that a text names for cargo
//! (`--bench NAME`) exist as well.

use clap::{Arg, Command, CommandFactory};
use klnode_tests::repo_source::{ROOT, Source, Violation, assert_none, repository};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Texts about other programs, about the past, or with wrong commands on purpose.
const NOT_CHECKED: [&str; 6] = [
    "CHANGELOG.md",
    "docs/internals/history/",
    "fuzz/",
    "node/cli/src/help.rs",
    "node/model/",
    "tests/",
];

/// Longest command in backticks, so that an unpaired backtick ends somewhere.
const COMMAND_BYTES_MAX: usize = 240;

#[test]
fn every_command_in_a_text_exists() {
    let command = klnode_cli::Cli::command();
    let sources = repository().sources.iter();
    let checked =
        sources.filter(|source| !NOT_CHECKED.iter().any(|part| source.path.starts_with(part)));
    let found: Vec<(&Source, usize, String)> = checked
        .flat_map(|source| {
            commands(source).into_iter().map(move |(line, text)| (source, line, text))
        })
        .collect();
    assert!(found.len() > 300, "only {} commands were found", found.len());
    let wrong = found.iter().filter_map(|(source, line, text)| {
        let problem = problem(&command, text)?;
        let way_out = "write a command that `klnode --help` knows";
        Some(Violation::new(&source.path, *line, format!("`{text}` has {problem}"), way_out))
    });
    assert_none(&wrong.collect::<Vec<_>>());
}

#[test]
fn the_reference_lists_every_command_with_its_flags() {
    let mut klnode = klnode_cli::Cli::command();
    klnode.build();
    let page = reference(&klnode);
    let file = std::path::Path::new(ROOT).join("docs/reference/commands.md");
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

#[test]
fn every_named_cargo_target_exists() {
    const EXCEPTED: [&str; 3] =
        ["CHANGELOG.md", "docs/internals/history/", "tests/suite/documented_commands.rs"];
    let sources = &repository().sources;
    let targets = targets(sources);
    let is_excepted = |source: &&Source| EXCEPTED.iter().any(|part| source.path.starts_with(part));
    let named: Vec<_> = sources
        .iter()
        .filter(|source| !is_excepted(source))
        .flat_map(|source| named_targets(source).into_iter().map(move |named| (source, named)))
        .collect();
    assert!(named.len() > 30, "only {} targets were found", named.len());
    let wrong = named.iter().filter(|(_, (_, target))| !targets.contains(target)).map(
        |(source, (line, (kind, name)))| {
            let way_out = "name a target of a Cargo.toml";
            Violation::new(&source.path, *line, format!("there is no {kind} `{name}`"), way_out)
        },
    );
    assert_none(&wrong.collect::<Vec<_>>());
}

/// Kind and name of a cargo target, such as `bench` and `search`.
type Target = (&'static str, String);

/// The kinds of targets that texts name.
const TARGET_KINDS: [&str; 3] = ["bench", "bin", "test"];

/// The targets that the manifests declare.
fn targets(sources: &[Source]) -> BTreeSet<Target> {
    let mut found = BTreeSet::new();
    for manifest in sources.iter().filter(|source| source.path.ends_with("Cargo.toml")) {
        let mut section = "";
        for line in manifest.text.lines() {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']);
            }
            let name = line.strip_prefix("name = \"").and_then(|rest| rest.strip_suffix('"'));
            let kind = TARGET_KINDS.into_iter().find(|kind| *kind == section);
            found.extend(kind.zip(name.map(str::to_owned)));
        }
    }
    found
}

/// The targets that a text names, each with its line: `--bench NAME`, `--bin NAME` and `--test NAME`.
/// A placeholder has capitals.
fn named_targets(source: &Source) -> Vec<(usize, Target)> {
    let mut found = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        for kind in TARGET_KINDS {
            for part in line.split(&format!(" --{kind} ")).skip(1) {
                let is_part = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '-');
                let name = part.split(|c: char| !is_part(c)).next().unwrap_or_default();
                found.extend((!name.is_empty()).then(|| (at + 1, (kind, name.to_owned()))));
            }
        }
    }
    found
}

/// The reference page of all commands.
fn reference(klnode: &Command) -> String {
    let mut page = String::from(
        "# Commands\n\nEvery verb of the command line with its arguments and flags, as `--help` describes them. \
         `klnode --help` groups\nthe verbs by purpose, and `klnode VERB --help` adds examples. The \
         [guide](../guide/README.md) explains the verbs by task.\n\nThis page is made from the program: a test \
         compares the two.\n\n## Flags of every verb\n\n",
    );
    flag_table(&mut page, klnode, true);
    let is_listed = |verb: &&Command| !verb.is_hide_set() && verb.get_name() != "help";
    for verb in klnode.get_subcommands().filter(is_listed) {
        describe(&mut page, verb, "klnode", "##");
    }
    page
}

fn describe(page: &mut String, command: &Command, parent: &str, level: &str) {
    let name = format!("{parent} {}", command.get_name());
    let arguments: String = command.get_positionals().map(|arg| format!(" {arg}")).collect();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "\n{level} {name}\n\n`{name}{arguments}`: {}\n", plain(&about));
    flag_table(page, command, false);
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        describe(page, sub, &name, "###");
    }
    let end = page.trim_end().len();
    page.truncate(end);
    page.push('\n');
}

/// The arguments and flags of a command, either the global ones or its own.
fn flag_table(page: &mut String, command: &Command, is_global: bool) {
    let is_listed = |arg: &&Arg| {
        arg.is_global_set() == is_global
            && !arg.is_hide_set()
            && !matches!(arg.get_id().as_str(), "help" | "version")
    };
    let mut args = command.get_arguments().filter(is_listed).peekable();
    if args.peek().is_some() {
        page.push_str("| argument | meaning |\n|---|---|\n");
    }
    for arg in args {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "| `{}` | {} |", arg.to_string().replace('|', "\\|"), plain(&help));
    }
}

/// A help text as one line of a table.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace('|', "\\|").replace('<', "&lt;");
    if line.is_empty() || line.ends_with('.') { line } else { line + "." }
}

/// The commands of a text, each with its line.
fn commands(source: &Source) -> Vec<(usize, String)> {
    let is_document = source.path.ends_with(".md");
    let mut found = Vec::new();
    let mut in_fence = false;
    let mut prose = String::new();
    for (at, line) in source.text.lines().enumerate() {
        let text = match source.is_rust() {
            true => line.trim_start().trim_start_matches(['/', '!']).trim_start(),
            false => line,
        };
        if is_document && text.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if in_fence {
            let typed = text.trim_start().trim_start_matches("$ ");
            found.extend(typed.starts_with("klnode ").then(|| (at + 1, typed.to_owned())));
        } else if let Some((_, example)) = text.split_once("Example: klnode ") {
            found.push((at + 1, format!("klnode {example}")));
        }
        // A command in backticks may be wrapped, in a literal after a backslash.
        let piece = if in_fence { "" } else { text.trim_end_matches('\\').trim() };
        prose.push_str(piece);
        prose.push('\n');
    }
    for (at, _) in prose.match_indices("`klnode") {
        let rest = &prose[at + 1..];
        let is_command = rest["klnode".len()..].starts_with(char::is_whitespace);
        if let Some(end) = rest.find('`').filter(|end| is_command && *end <= COMMAND_BYTES_MAX) {
            let line = prose[..at].matches('\n').count() + 1;
            found.push((line, rest[..end].replace('\n', " ")));
        }
    }
    found
}

/// The first verb or flag of a command that does not exist.
fn problem(klnode: &Command, text: &str) -> Option<String> {
    let mut verb = klnode;
    let mut is_value = false;
    let mut quote = None;
    for word in text.split_whitespace().skip(1) {
        if quote.is_some() || std::mem::take(&mut is_value) {
            quote = open_quote(word, quote);
            continue;
        }
        let ends = word.ends_with([';', ',']);
        let bare = word.trim_end_matches([';', ',', '.', ')', ']']).trim_start_matches('[');
        if matches!(bare, "|" | "||" | ">" | "<" | "&" | "&&" | "--")
            || bare.starts_with(['#', '('])
            || bare.starts_with("2>")
        {
            return None;
        }
        if let Some(flag) = bare.strip_prefix("--") {
            let name = flag.split(['=', ':']).next().unwrap_or(flag);
            let mut known = verb.get_arguments().chain(klnode.get_arguments());
            let arg = known.find(|arg| arg.get_long() == Some(name));
            let is_standard = matches!(name, "help" | "version");
            match arg {
                None if !is_standard => return Some(format!("an unknown flag --{name}")),
                Some(arg) => is_value = arg.get_action().takes_values() && !flag.contains('='),
                None => {}
            }
        } else if let Some(sub) = verb.find_subcommand(bare) {
            verb = sub;
        } else if verb.has_subcommands() && verb.get_positionals().next().is_none() && is_word(bare)
        {
            return Some(format!("an unknown verb `{bare}`"));
        }
        quote = open_quote(word, quote);
        if ends {
            return None;
        }
    }
    None
}

/// The quotation mark that is open after a word.
fn open_quote(word: &str, mut quote: Option<char>) -> Option<char> {
    for c in word.chars() {
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
    }
    quote
}

/// Whether a word can be a verb; a placeholder has capitals.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        && !text.starts_with('-')
}

mod planted {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let command = klnode_cli::Cli::command();
        let found = commands(&Source::new(path, text));
        found.iter().filter_map(|(_, text)| problem(&command, text)).collect()
    }

    #[test]
    fn an_unknown_verb_or_flag_is_found() {
        assert_eq!(
            problems("a.md", "Run `klnode confirm L-7F3K`.\n"),
            ["an unknown verb `confirm`"]
        );
        assert_eq!(problems("a.md", "Run `klnode peer\nsink`.\n"), ["an unknown verb `sink`"]);
        let block = "```console\n$ klnode add --text \"a --b\" | klnode x\n```\n";
        assert_eq!(problems("a.md", block), ["an unknown flag --text"]);
        let literal = "say(\"Run `klnode \\\n    quarantine list`.\");\n";
        assert_eq!(problems("a.rs", literal), ["an unknown verb `quarantine`"]);
        assert_eq!(
            problems("a.rs", "/// Example: klnode edit L-7 --rename x\n"),
            ["an unknown flag --rename"]
        );
    }

    #[test]
    fn an_unknown_cargo_target_is_found() {
        let manifest = "[package]\nname = \"a\"\n[[bench]]\nname = \"search\"\nharness = false\n";
        let targets = targets(&[Source::new("a/Cargo.toml", manifest)]);
        let text = "`cargo bench -p a --bench search` and `cargo bench --bench upkeep`\n\
            cargo run --bin search -- --bench NAME\n";
        let named = named_targets(&Source::new("a.md", text));
        assert_eq!(named.len(), 3, "{named:?}");
        let is_unknown = |(_, target): &&(usize, Target)| !targets.contains(target);
        let unknown: Vec<_> = named.iter().filter(is_unknown).cloned().collect();
        assert_eq!(unknown, [(1, ("bench", "upkeep".into())), (2, ("bin", "search".into()))]);
    }

    #[test]
    fn a_command_with_values_and_placeholders_is_right() {
        let text = "`klnode VERB --help`, `klnode peer list`, `klnode add --title confirm -`,\n\
            `klnode --home second peer join $(cat ticket) | head -1`, `klnode search \"add --rename\"`.\n";
        assert!(problems("a.md", text).is_empty(), "{:?}", problems("a.md", text));
    }
}
