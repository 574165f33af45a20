//! Recognizes the format of a file or a folder by its names and first lines.

use crate::corpus_error::CorpusError;
use crate::format::FileFormat;
use crate::front_matter::{self, Fields};
use crate::source_file::{is_below, is_linked};
use crate::text_lines::TextLines;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The format of a path, and the file or folder that holds the knowledge.
pub(crate) struct Detection {
    pub(crate) format: FileFormat,
    pub(crate) root: PathBuf,
}

/// Notes that are examined to tell a folder's format.
const PROBES_MAX: usize = 24;
/// Bytes of a JSON document that are examined.
const PROBE_BYTES: u64 = 64 * 1024;
/// Names of files with instructions for agents.
const INSTRUCTION_FILES: [&str; 7] = [
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    ".cursorrules",
    ".windsurfrules",
    "copilot-instructions.md",
];
/// The folder of Cursor's rules.
const CURSOR_RULES: &str = "/.cursor/rules/";
/// The folder of Copilot's instructions.
const COPILOT_INSTRUCTIONS: &str = "/.github/instructions/";
/// Places of knowledge in a repository, with their formats.
const PLACES: [(&str, FileFormat); 7] = [
    (".decapod/data/knowledge.db", FileFormat::DecapodDb),
    (".decapod/knowledge", FileFormat::Decapod),
    (".planning/knowledge", FileFormat::Gsd),
    (".gsd/knowledge", FileFormat::Gsd),
    ("config/flux-drive/knowledge", FileFormat::FluxDrive),
    ("wfc/references/reviewers", FileFormat::Wfc),
    (".wfc/knowledge/global/reviewers", FileFormat::Wfc),
];

/// The place of a format's knowledge in a path whose format the caller names.
pub(crate) fn root_for(path: &Path, format: FileFormat) -> Result<PathBuf, CorpusError> {
    let places = || PLACES.iter().filter(|(_, of)| *of == format).map(|(place, _)| *place);
    match places().find(|place| is_below(path, place)) {
        Some(place) => Ok(path.join(place)),
        None => match places().find(|place| leads_somewhere(path, place)) {
            Some(place) => Err(CorpusError::Linked { path: path.to_owned(), place }),
            None => Ok(path.to_owned()),
        },
    }
}

/// True if a place exists behind a symbolic link.
fn leads_somewhere(path: &Path, place: &str) -> bool {
    is_linked(path, place) && path.join(place).exists()
}

/// Recognizes a path.
pub(crate) fn detect(path: &Path, is_folder: bool) -> Result<Detection, CorpusError> {
    if !is_folder {
        let format = of_file(path).ok_or_else(|| CorpusError::Unknown { path: path.to_owned() })?;
        return Ok(Detection { format, root: path.to_owned() });
    }
    let (mut found, mut linked) = (Vec::<Detection>::new(), None);
    for (place, format) in PLACES {
        if leads_somewhere(path, place) {
            linked = linked.or(Some(place));
        } else if is_below(path, place) && found.iter().all(|other| other.format != format) {
            found.push(Detection { format, root: path.join(place) });
        }
    }
    if found.len() > 1 {
        let formats = found.iter().map(|of| of.format.name().to_owned()).collect();
        return Err(CorpusError::Several { path: path.to_owned(), formats });
    }
    if let Some(found) = found.pop() {
        return Ok(found);
    }
    // The notes of a repository are not the knowledge that a link in it names.
    if let Some(place) = linked {
        return Err(CorpusError::Linked { path: path.to_owned(), place });
    }
    let format = of_folder(path).ok_or_else(|| CorpusError::Unknown { path: path.to_owned() })?;
    Ok(Detection { format, root: path.to_owned() })
}

/// The format of a folder that is not a known place of a repository.
fn of_folder(path: &Path) -> Option<FileFormat> {
    let has = |name: &str| is_below(path, name);
    if ["semantic", "procedural", "episodic"].iter().any(|name| has(&format!("{name}/v1"))) {
        return Some(FileFormat::Decapod);
    }
    if has(".obsidian") {
        return Some(FileFormat::Markdown);
    }
    if has("KNOWLEDGE.md") || has("KNOWLEDGE-ARCHIVE.md") {
        return Some(FileFormat::Wfc);
    }
    let mut notes = Vec::new();
    probe(path, 0, &mut notes);
    let names = |name: &str| notes.iter().any(|note| note.file_name().is_some_and(|of| of == name));
    if names("KNOWLEDGE.md") {
        return Some(FileFormat::Wfc);
    }
    let is_rule = |note: &PathBuf| is_instruction_file(&note.to_string_lossy());
    if is_in_rule_folder(path) || (!notes.is_empty() && notes.iter().all(is_rule)) {
        return Some(FileFormat::Instructions);
    }
    let fields: Vec<Fields> = notes.iter().filter_map(|note| fields_of(note)).collect();
    let formats: Vec<FileFormat> = fields.iter().filter_map(of_fields).collect();
    let count = |format: FileFormat| formats.iter().filter(|of| **of == format).count();
    for format in [FileFormat::Gsd, FileFormat::FluxDrive, FileFormat::BasicMemory] {
        if count(format) > 0 && count(format) * 2 >= formats.len() {
            return Some(format);
        }
    }
    if has("MEMORY.md") {
        return Some(FileFormat::ClaudeMemory);
    }
    if INSTRUCTION_FILES.iter().any(|name| has(name))
        || has(".cursor/rules")
        || has(".github/copilot-instructions.md")
    {
        return Some(FileFormat::Instructions);
    }
    if !notes.is_empty() {
        return Some(FileFormat::Markdown);
    }
    let listed = fs::read_dir(path).ok()?;
    let mut files: Vec<PathBuf> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.sort();
    files.retain(|file| fs::symlink_metadata(file).is_ok_and(|found| found.is_file()));
    files.iter().take(PROBES_MAX).find_map(|file| of_file(file))
}

/// True for a folder with rules of Cursor or instructions of Copilot.
fn is_in_rule_folder(path: &Path) -> bool {
    let path = if path == Path::new("") { Path::new(".") } else { path };
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = format!("{}/", path.to_string_lossy());
    path.contains(CURSOR_RULES) || path.contains(COPILOT_INSTRUCTIONS)
}

/// True for a file whose name alone shows that it has instructions.
fn is_instruction_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    INSTRUCTION_FILES.contains(&name)
        || name.ends_with(".mdc")
        || name.ends_with(".instructions.md")
}

/// Finds some notes of a folder.
fn probe(folder: &Path, depth: usize, notes: &mut Vec<PathBuf>) {
    let Ok(listed) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    let mut folders = Vec::new();
    for path in paths {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let is_hidden =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if metadata.is_dir() && !is_hidden && depth < 4 {
            folders.push(path);
        } else if metadata.is_file() && is_markdown(&path) && notes.len() < PROBES_MAX {
            notes.push(path);
        }
    }
    for folder in folders {
        if notes.len() < PROBES_MAX {
            probe(&folder, depth + 1, notes);
        }
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|of| of == "md" || of == "markdown" || of == "mdc")
}

fn fields_of(note: &Path) -> Option<Fields> {
    let mut lines = TextLines::open(note).ok()?;
    let (fields, _) = front_matter::read_fields(&mut lines).ok()?;
    Some(fields).filter(|fields| !fields.0.is_empty())
}

/// The format that the fields of a note show.
fn of_fields(fields: &Fields) -> Option<FileFormat> {
    let id = fields.0.get("id").and_then(Value::as_str).unwrap_or_default();
    let is_gsd = ["sig-", "spk-", "les-", "ref-"].iter().any(|start| id.starts_with(start));
    if is_gsd {
        Some(FileFormat::Gsd)
    } else if fields.has("lastConfirmed") {
        Some(FileFormat::FluxDrive)
    } else if fields.has("permalink") {
        Some(FileFormat::BasicMemory)
    } else {
        Some(FileFormat::Markdown)
    }
}

/// The format of a file.
fn of_file(path: &Path) -> Option<FileFormat> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let is_rule = || is_markdown(path) && path.parent().is_some_and(is_in_rule_folder);
    if is_instruction_file(&name) || is_rule() {
        return Some(FileFormat::Instructions);
    }
    if name.starts_with("KNOWLEDGE") && is_markdown(path) {
        return Some(FileFormat::Wfc);
    }
    if is_markdown(path) {
        return fields_of(path).as_ref().map_or(Some(FileFormat::Markdown), of_fields);
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(PROBE_BYTES).read_to_end(&mut head).ok()?;
    if head.starts_with(b"SQLite format 3\0") {
        return Some(of_database(&name, &head));
    }
    let text = String::from_utf8_lossy(&head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let first = text.lines().next().unwrap_or_default();
    match serde_json::from_str::<Value>(first) {
        Ok(Value::Object(line)) => Some(of_line(&line)),
        _ => of_document(text),
    }
}

/// The format of a database, by the names in its first page.
fn of_database(name: &str, head: &[u8]) -> FileFormat {
    let text = String::from_utf8_lossy(head);
    if name.contains("claude-mem") || text.contains("session_summaries") {
        FileFormat::ClaudeMem
    } else if text.contains("events") && text.contains("trace_id") {
        FileFormat::FormicosDb
    } else {
        FileFormat::DecapodDb
    }
}

/// The format that the first line of a file of lines shows.
fn of_line(line: &serde_json::Map<String, Value>) -> FileFormat {
    let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
    let has = |name: &str| line.contains_key(name);
    if has("klnode") || has("records") {
        FileFormat::Klnode
    } else if (kind == "entity" && has("entityType")) || (kind == "relation" && has("relationType"))
    {
        FileFormat::McpMemory
    } else if has("results") {
        of_results(line)
    } else if has("memory") && !has("title") {
        FileFormat::Mem0
    } else if has("items") || has("entry_type") {
        FileFormat::Formicos
    } else if has("schema_version") || (has("id") && has("provenance")) || has("rule") {
        FileFormat::Decapod
    } else {
        FileFormat::Klnode
    }
}

/// The format of a search answer: mem0 and FormicOS both have `results`, with other elements.
fn of_results(line: &serde_json::Map<String, Value>) -> FileFormat {
    let results = line.get("results").and_then(Value::as_array);
    let first = results.and_then(|of| of.first()).and_then(Value::as_object);
    let has = |name: &str| first.is_some_and(|of| of.contains_key(name));
    let is_formicos = has("entry_type") || has("conf_alpha") || has("domains");
    match is_formicos && !has("memory") {
        true => FileFormat::Formicos,
        false => FileFormat::Mem0,
    }
}

/// The format of a JSON document, by the names in its beginning.
fn of_document(text: &str) -> Option<FileFormat> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    if has("entry_type") || has("conf_alpha") {
        Some(FileFormat::Formicos)
    } else if has("memory") {
        Some(FileFormat::Mem0)
    } else if has("entityType") {
        Some(FileFormat::McpMemory)
    } else {
        None
    }
}

/// True if a folder of a corpus is searched for files.
pub(crate) fn visits(format: FileFormat, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match format {
        FileFormat::Instructions => {
            !matches!(name, ".git" | "node_modules" | "target" | "vendor" | ".venv")
                && (!name.starts_with('.') || matches!(name, ".cursor" | ".github" | ".claude"))
        }
        _ => !name.starts_with('.') && name != "node_modules",
    }
}

/// True if a file of a folder belongs to a corpus of the format. `root` is the whole path of the
/// corpus.
pub(crate) fn takes(format: FileFormat, root: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ends = |of: &[&str]| of.iter().any(|end| name.ends_with(end));
    match format {
        FileFormat::FluxDrive => ends(&[".md"]) && name != "README.md",
        FileFormat::Gsd => ends(&[".md"]) && !matches!(name, "README.md" | "index.md"),
        FileFormat::Wfc => matches!(name, "KNOWLEDGE.md" | "KNOWLEDGE-ARCHIVE.md"),
        FileFormat::ClaudeMemory | FileFormat::BasicMemory => ends(&[".md"]),
        FileFormat::Markdown => ends(&[".md", ".markdown"]),
        FileFormat::Instructions => {
            let is_rule = || format!("{root}/{path}").contains(CURSOR_RULES) && ends(&[".md"]);
            is_instruction_file(name) || is_rule()
        }
        FileFormat::Decapod | FileFormat::McpMemory | FileFormat::Klnode => ends(&[".jsonl"]),
        FileFormat::Mem0 | FileFormat::Formicos => ends(&[".json", ".jsonl"]),
        FileFormat::DecapodDb | FileFormat::FormicosDb | FileFormat::ClaudeMem => ends(&[".db"]),
    }
}
