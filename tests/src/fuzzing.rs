//! Fuzz targets: every decoder of foreign input as a function that returns normally or panics on a
//! broken property.
//!
//! One table for two drivers: the suite replays and mutates the corpora, `fuzz/` drives the same
//! functions with libFuzzer. A target checks more than the absence of panics: decoded values
//! round-trip, error messages are short, work and results are bounded.

mod agent_input;
mod binary_inputs;
pub mod mutator;
mod playbook_changes;
mod protocol;
pub mod seeds;
mod text;

pub use binary_inputs::TABLES;

/// Longer inputs are truncated: claimed lengths in a few bytes cover the size limits.
pub const INPUT_BYTES_MAX: usize = 64 * 1024;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of its corpus, its crashers and its driver.
    pub name: &'static str,
    /// Description of the input bytes.
    pub what: &'static str,
    /// Decodes the bytes and panics if a property is broken.
    pub run: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    Target {
        name: "compare",
        what: "a message of a comparison, asked or answered",
        run: protocol::compare,
    },
    Target { name: "config", what: "a configuration file, or one flag", run: text::config },
    Target {
        name: "documents",
        what: "changes of a playbook's text",
        run: playbook_changes::documents,
    },
    Target { name: "frames", what: "a frame of a paired node", run: binary_inputs::frames },
    Target { name: "front-matter", what: "an entry as a Markdown file", run: text::front_matter },
    Target {
        name: "hook-input",
        what: "the input of a hook from its client",
        run: agent_input::hook_input,
    },
    Target { name: "import-lines", what: "lines of an imported file", run: text::import_lines },
    Target { name: "pairing", what: "a frame of a stranger", run: binary_inputs::pairing },
    Target { name: "predicates", what: "a predicate", run: text::predicates },
    Target {
        name: "proofs",
        what: "two headers that convict their author",
        run: binary_inputs::proofs,
    },
    Target {
        name: "records",
        what: "a record: header, signature, payload",
        run: binary_inputs::records,
    },
    Target { name: "scan", what: "a text that is scanned and redacted", run: text::scan },
    Target {
        name: "stored-values",
        what: "the number of a table, and a value of it",
        run: binary_inputs::stored_values,
    },
    Target {
        name: "tickets",
        what: "a ticket, as text or as its bytes",
        run: binary_inputs::tickets,
    },
    Target { name: "tool-calls", what: "an agent's call of a tool", run: agent_input::tool_calls },
    Target {
        name: "workspace-settings",
        what: "the settings that a charter carries",
        run: agent_input::settings,
    },
];

/// Runs one target.
///
/// # Panics
/// If a property is broken, or if there is no such target.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("there is no target {name}"));
    (target.run)(&data[..data.len().min(INPUT_BYTES_MAX)]);
}
