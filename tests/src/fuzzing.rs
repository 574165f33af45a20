//! Every decoder that reads what others wrote, as a function from bytes to a verdict: it returns, or
//! a law is broken.
//!
//! One table for everybody: the suite replays and mutates the corpora, `fuzz/` drives the same
//! functions with libFuzzer. A target checks more than that nothing panics: what was read can be
//! written and read again as the same, refusals are short, work and answers are bounded.

mod meeting;
pub mod mutator;
pub mod seeds;
mod surface;
mod text;
mod wire;

pub use wire::TABLES;

/// Longer inputs are cut: what matters about size is in the length a few bytes claim.
pub const INPUT_BYTES_MAX: usize = 64 * 1024;

/// A family of decoders.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What its corpus, its crashers and its driver are called.
    pub name: &'static str,
    /// What the bytes are.
    pub what: &'static str,
    /// Reads the bytes and panics if a law is broken.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "compare",
        what: "a message of a comparison, asked or answered",
        run: meeting::compare,
    },
    Target { name: "config", what: "a configuration file, or one flag", run: text::config },
    Target { name: "frames", what: "a frame of a paired node", run: wire::frames },
    Target { name: "front-matter", what: "an entry as a Markdown file", run: text::front_matter },
    Target { name: "hook-input", what: "what a client tells a hook", run: surface::hook_input },
    Target { name: "import-lines", what: "lines of an imported file", run: text::import_lines },
    Target { name: "pairing", what: "a frame of a stranger", run: wire::pairing },
    Target { name: "predicates", what: "a predicate", run: text::predicates },
    Target { name: "proofs", what: "two headers that convict their author", run: wire::proofs },
    Target { name: "records", what: "a record: header, signature, payload", run: wire::records },
    Target { name: "scan", what: "a text that is scanned and redacted", run: text::scan },
    Target {
        name: "stored-values",
        what: "the number of a table, and a value of it",
        run: wire::stored_values,
    },
    Target { name: "tickets", what: "a ticket, as text or as its bytes", run: wire::tickets },
    Target { name: "tool-calls", what: "an agent's call of a tool", run: surface::tool_calls },
    Target {
        name: "workspace-settings",
        what: "the settings that a charter carries",
        run: surface::settings,
    },
];

/// Runs one target.
///
/// # Panics
/// If a law is broken, or if there is no such target.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("there is no target {name}"));
    (target.run)(&data[..data.len().min(INPUT_BYTES_MAX)]);
}
