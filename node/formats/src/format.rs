//! The formats that klnode reads and writes, with their names.

use std::fmt;
use std::str::FromStr;

/// A file format of another tool. The name is part of the ids of imported entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileFormat {
    /// Lines of JSON that klnode exports, and plain lines. The node itself reads them.
    Klnode,
    /// flux-drive: one Markdown file per finding, with `lastConfirmed` and `provenance`.
    FluxDrive,
    /// Decapod: one JSON object per line, below `semantic`, `procedural` and `episodic`.
    Decapod,
    /// Decapod's SQLite database.
    DecapodDb,
    /// GSD: signals, spikes, reflections and lessons as Markdown files with an index.
    Gsd,
    /// WFC: a `KNOWLEDGE.md` for each reviewer.
    Wfc,
    /// FormicOS: knowledge as JSON.
    Formicos,
    /// FormicOS's database of events.
    FormicosDb,
    /// Instructions for coding agents: CLAUDE.md, AGENTS.md, GEMINI.md, Cursor rules, Copilot.
    Instructions,
    /// A memory folder of Claude Code.
    ClaudeMemory,
    /// Markdown notes, such as an Obsidian vault.
    Markdown,
    /// Notes of basic-memory.
    BasicMemory,
    /// The file of the MCP memory server.
    McpMemory,
    /// An export of mem0.
    Mem0,
    /// The database of claude-mem.
    ClaudeMem,
}

impl FileFormat {
    /// All formats, with their names and a description for lists.
    pub const ALL: [(Self, &'static str, &'static str); 15] = [
        (Self::Klnode, "klnode", "lines of JSON that klnode exports, and plain lines"),
        (Self::FluxDrive, "flux-drive", "flux-drive knowledge files"),
        (Self::Decapod, "decapod", "Decapod knowledge, lines of JSON"),
        (Self::DecapodDb, "decapod-db", "the database of Decapod"),
        (Self::Gsd, "gsd", "GSD signals, spikes, reflections and lessons"),
        (Self::Wfc, "wfc", "WFC reviewer knowledge"),
        (Self::Formicos, "formicos", "FormicOS knowledge as JSON"),
        (Self::FormicosDb, "formicos-db", "the events of FormicOS"),
        (Self::Instructions, "instructions", "CLAUDE.md, AGENTS.md, GEMINI.md, Cursor, Copilot"),
        (Self::ClaudeMemory, "claude-memory", "a memory folder of Claude Code"),
        (Self::Markdown, "markdown", "Markdown notes, such as an Obsidian vault"),
        (Self::BasicMemory, "basic-memory", "notes of basic-memory"),
        (Self::McpMemory, "mcp-memory", "the file of the MCP memory server"),
        (Self::Mem0, "mem0", "an export of mem0"),
        (Self::ClaudeMem, "claude-mem", "the database of claude-mem"),
    ];

    /// The formats that klnode writes as files in a folder.
    pub const WRITTEN: [Self; 6] =
        [Self::FluxDrive, Self::Decapod, Self::Gsd, Self::Wfc, Self::Formicos, Self::Markdown];

    /// The name, as `--format` takes it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// A description for lists.
    pub fn description(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        Self::ALL.iter().find(|row| row.0 == self).expect("every format has a row")
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for FileFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let other = |alias: &str| match alias {
            "obsidian" => Some(Self::Markdown),
            "jsonl" => Some(Self::Klnode),
            _ => None,
        };
        let found = Self::ALL.iter().find(|row| row.1 == text).map(|row| row.0);
        found.or_else(|| other(text)).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|row| row.1).collect();
            format!("it must be one of {}", known.join(", "))
        })
    }
}
