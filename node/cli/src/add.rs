//! `klnode add`: writes a new entry, or copies one with `--from`.

use super::editor::{Draft, Editor};
use super::entry_copy::EntryCopy;
use super::entry_fields::{OWN_WORD, ParsedEntry};
use super::sanitize::printable;
use super::solved_problem::{SolvedArgs, WriteUp};
use super::{Reply, VerbError, anchors, front_matter, read_limited};
use hyper::Method;
use klnode_api_types::{AddResult, NewEntry, ShareFlag};
use klnode_client::{Client, ClientError};
use klnode_scoring::content_scan::disclosure::SCAN_TOPIC;
use serde::de::IgnoredAny;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The most bytes of a file that is read as one entry.
const ENTRY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most characters of a title that is derived from a text.
const TITLE_CHARACTERS_MAX: usize = 80;
/// Extensions that mark an argument as a file name, even if no such file exists.
const FILE_ENDINGS: [&str; 7] = ["md", "markdown", "json", "jsonl", "txt", "yaml", "yml"];

/// The end of the help: an entry as a Markdown file.
const MARKDOWN: &str = "An entry as a Markdown file:

    ---
    title: Check ctx.Err() after upstream calls
    tags: [auth, go]
    evidence: [commit:1a2b3c4]
    ---
    Auth middleware swallows cancellation.

Without a `title`, a heading at the beginning of the text is the title.

Without evidence the entry cites the task, or else the commit of the checkout, or else the file;
typed text cites your own word. Norms and procedural entries need evidence.";

/// The fields of the new entry.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = MARKDOWN)]
pub struct Add {
    /// The text, or a file, or `-` for standard input. Flags override fields of a file.
    ///
    /// An existing file is read as Markdown (fields between two lines of dashes, then the content)
    /// or as a JSON object. A missing path that ends in .md, .json or the like is an error. Any
    /// other text is the content, and its first sentence is the title.
    #[arg(value_name = "TEXT|FILE")]
    pub given: Option<OsString>,
    /// Copy this entry: out of its thread, or into the workspace given with --workspace. Only
    /// --workspace, --memory, --type, --evidence and --approve can be added.
    #[arg(long, value_name = "ENTRY", conflicts_with_all = ["given", "title", "content", "tags",
        "anchors", "verify_steps", "depends_on", "thread", "task", "polarity", "decay", "outcome",
        "sub_type"])]
    pub from: Option<String>,
    /// With --from: approve that the entry leaves episodic memory, and say why. The ledger of
    /// promotions keeps the reason. If there is a person's key, this needs its passphrase.
    #[arg(long, value_name = "REASON", requires = "from")]
    pub approve: Option<String>,
    /// The title, on one line.
    #[arg(long, allow_hyphen_values = true)]
    pub title: Option<String>,
    /// The content, instead of writing it in the editor or in a file.
    #[arg(long, allow_hyphen_values = true)]
    pub content: Option<String>,
    /// lesson, skill, experience, spike, finding, norm, entity, relation, signal, friction,
    /// calibration or playbook [default: lesson].
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// The sub-type: technique, pattern or anti_pattern of a skill; decision, convention, learning or
    /// bug of an experience; commit, pr, expectation or risk of a norm.
    #[arg(long)]
    pub sub_type: Option<String>,
    /// semantic, procedural or episodic [default: follows from the type].
    ///
    /// If there is a person's key, procedural memory and norms need its passphrase.
    #[arg(long)]
    pub memory: Option<String>,
    /// The workspace; local is never sent to a peer [default: the one mapped to the checkout, else
    /// the one set by `workspace use`, else main].
    #[arg(long)]
    pub workspace: Option<String>,
    /// A tag, hierarchical with `/`; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Evidence: commit, pr, doc, test, transcript, file, url or run, and its location.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
    /// A place in a checkout that the entry describes: in words, or as a predicate such as
    /// path:src/lib.rs, which the node checks whenever the entry is read there.
    #[arg(long = "anchor", value_name = "PREDICATE")]
    pub anchors: Vec<String>,
    /// A step that checks whether the entry still holds.
    #[arg(long = "verify", value_name = "STEP")]
    pub verify_steps: Vec<String>,
    /// A predicate that must hold for the entry to be valid, such as dep:cargo:tokio>=1.40.
    #[arg(long, value_name = "PREDICATE")]
    pub depends_on: Vec<String>,
    /// The thread that the entry belongs to.
    #[arg(long)]
    pub thread: Option<String>,
    /// The task it is written in, as `task begin` printed it. Without evidence the entry cites the
    /// task, and it becomes verified if the task succeeds.
    #[arg(long)]
    pub task: Option<String>,
    /// positive, negative or neutral.
    #[arg(long)]
    pub polarity: Option<String>,
    /// ephemeral, stable or permanent.
    #[arg(long, value_name = "CLASS")]
    pub decay: Option<String>,
    /// The result of a spike: confirmed, rejected, partial or inconclusive.
    #[arg(long)]
    pub outcome: Option<String>,
    /// The parts of a write-up.
    #[command(flatten)]
    pub solved: SolvedArgs,
}

impl Add {
    /// Judges by the flags alone: a file is read later, and then the node names the missing flag.
    pub(super) fn needs_person(&self) -> bool {
        if self.from.is_some() {
            return EntryCopy::needs_person(self.memory.as_deref(), self.approve.as_deref());
        }
        match self.memory.as_deref() {
            Some(memory) => memory == "procedural",
            None => self.kind.as_deref() == Some("norm"),
        }
    }

    pub(super) async fn run(
        mut self,
        client: &Client,
        editor: Option<Editor<'_>>,
    ) -> Result<Reply, VerbError> {
        if let Some(entry) = self.from {
            let Self { workspace, memory, kind, evidence, approve, .. } = self;
            let copy = EntryCopy { entry, workspace, memory, kind, evidence, approve };
            return copy.run(client).await;
        }
        if !self.solved.solved {
            return self.write(client, None).await;
        }
        let solved = std::mem::take(&mut self.solved);
        let given = NewEntry {
            title: self.title.take().unwrap_or_default(),
            tags: std::mem::take(&mut self.tags),
            evidence: std::mem::take(&mut self.evidence),
            anchors: std::mem::take(&mut self.anchors),
            verify_steps: std::mem::take(&mut self.verify_steps),
            ..NewEntry::default()
        };
        let WriteUp { entry, draft } = solved.write_up(&given, editor, title_of)?;
        let written = self.write(client, Some(entry)).await;
        match (written, draft) {
            (Ok(reply), draft) => {
                draft.iter().for_each(Draft::remove);
                Ok(reply)
            }
            (Err(error), Some(draft)) => Err(draft.keep(&error.to_string())),
            (Err(error), None) => Err(error),
        }
    }

    /// Writes the entry of the command line, which fills the fields that a write-up left free.
    async fn write(
        self,
        client: &Client,
        written_up: Option<NewEntry>,
    ) -> Result<Reply, VerbError> {
        let path = if self.needs_person() { "/v1/entries/person" } else { "/v1/entries" };
        let has_no_text = self.given.is_none() && self.content.is_none() && written_up.is_none();
        let new = self.into_entry(written_up.unwrap_or_default())?;
        let sent: Result<AddResult, ClientError> = client.send_json(Method::POST, path, &new).await;
        let added = sent.map_err(|error| if has_no_text { hinting(error) } else { error })?;
        // An entry outside `main` may be sent to others, so the workspace is printed every time.
        let place = match added.current && added.workspace == "main" {
            true => String::new(),
            false => format!("  (in {})", added.workspace),
        };
        let text = format!("{}  {}{place}\n", added.code, printable(&new.title));
        let cited = added
            .cited
            .iter()
            .map(|cited| format!("No evidence was given, so the entry cites {cited}.\n"));
        let offered = added.offered.iter().map(|name| {
            format!(
                "The entry is in {}. The admins of workspace {name} map this checkout to it: run \
                 `klnode workspace map {name}` to write there from now on.\n",
                added.workspace
            )
        });
        let flags = [flagged(&added.flags, added.held, &added.code)];
        let unchecked = [
            anchors::unchecked_note(&new.depends_on),
            anchors::unanchored_note(added.unanchored, &added.code),
        ];
        let same = added.same.iter().map(|same| {
            format!(
                "Entry {} is a duplicate: next time run `klnode feedback` on that one. `klnode \
                 forget {}` removes this one.\n",
                same.code, added.code
            )
        });
        let notes = cited.chain(offered).chain(flags).chain(unchecked).chain(same).collect();
        Ok(Reply::new(&added, text).with_notes(notes))
    }

    fn into_entry(self, base: NewEntry) -> Result<NewEntry, VerbError> {
        let mut new = match self.given.as_deref().map(AddInput::of).transpose()? {
            None => base,
            Some(AddInput::File(path)) => {
                let new = read_entry(path)?;
                NewEntry { source: new.source.clone().or_else(|| source_of(path)), ..new }
            }
            Some(AddInput::Text(text)) if self.content.is_some() => {
                return Err(VerbError::Input(format!(
                    "Cannot write the entry: its content is given twice, as `{}` and with \
                     --content.",
                    cut(text.trim(), TITLE_CHARACTERS_MAX)
                )));
            }
            Some(AddInput::Text(text)) => NewEntry {
                title: title_of(text),
                content: text.trim().to_owned(),
                source: Some(OWN_WORD.to_owned()),
                ..NewEntry::default()
            },
        };
        if let Some(title) = self.title {
            new.title = title;
        }
        if let Some(content) = self.content {
            new.content = content;
        }
        new.kind = self.kind.or(new.kind);
        new.sub_type = self.sub_type.or(new.sub_type);
        new.memory = self.memory.or(new.memory);
        new.workspace = self.workspace.or(new.workspace);
        new.thread = self.thread.or(new.thread);
        new.task = self.task.or(new.task);
        new.polarity = self.polarity.or(new.polarity);
        new.decay_class = self.decay.or(new.decay_class);
        new.outcome = self.outcome.or(new.outcome);
        new.tags.extend(self.tags);
        new.evidence.extend(self.evidence);
        new.anchors.extend(self.anchors);
        new.verify_steps.extend(self.verify_steps);
        new.depends_on.extend(self.depends_on);
        new.checkout = anchors::here();
        Ok(new)
    }
}

/// The argument before the flags.
enum AddInput<'a> {
    /// A file to read, or standard input.
    File(&'a Path),
    /// The text itself.
    Text(&'a str),
}

impl<'a> AddInput<'a> {
    /// An existing path is a file; a missing one with a file extension is an error; any other
    /// argument is the text.
    fn of(given: &'a OsStr) -> Result<Self, VerbError> {
        let path = Path::new(given);
        // A text can be longer than any path; a failed lookup means that it is no file.
        if given == "-" || path.try_exists().unwrap_or(false) {
            return Ok(Self::File(path));
        }
        let ending = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
        let is_file_name = ending.is_some_and(|of| FILE_ENDINGS.contains(&of.as_str()));
        match given.to_str().filter(|_| !is_file_name) {
            Some(text) if text.trim().is_empty() => {
                Err(VerbError::Input("Cannot write the entry: its text is empty.".to_owned()))
            }
            Some(text) => Ok(Self::Text(text)),
            None => Err(VerbError::Input(format!(
                "Cannot read {}: No such file. To write it as a text, use --title and --content.",
                path.display()
            ))),
        }
    }
}

/// Reads an entry from a file with Markdown or a JSON object.
fn read_entry(path: &Path) -> Result<NewEntry, VerbError> {
    let text = read(path, ENTRY_BYTES_MAX)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let read = match text.trim_start().as_bytes().first() {
        Some(b'{') => serde_json::from_str(text)
            .map(|ParsedEntry(new)| new)
            .map_err(|error| error.to_string()),
        Some(b'[') if serde_json::from_str::<Vec<IgnoredAny>>(text).is_ok() => {
            Err("it is a list; `klnode import` reads many entries, one per line".to_owned())
        }
        _ => front_matter::read(text),
    };
    read.map_err(|problem| {
        VerbError::Input(format!("Cannot read {} as an entry: {problem}.", name(path)))
    })
}

/// The citation of an entry from a file if neither a task nor a checkout is known.
fn source_of(path: &Path) -> Option<String> {
    if path.as_os_str() == "-" {
        return None;
    }
    let path = std::fs::canonicalize(path).ok()?;
    // A path that is not UTF-8 cannot be stored as text.
    path.to_str().map(|path| format!("file:{path}"))
}

/// The title of a text: its first sentence, without the full stop, cut at a word if it is long.
fn title_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let ends = line.char_indices().filter(|(_, one)| matches!(one, '.' | '!' | '?'));
    let mut ends = ends.map(|(at, one)| (at, at + one.len_utf8()));
    // A full stop within a word, as in `ctx.Err()`, ends no sentence; nor does one after a digit or
    // a single letter, as in `1. Do this` and `e.g. this`.
    let is_end = |(at, after): &(usize, usize)| {
        let word = line[..*at].rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_short = word.chars().count() <= 1 || word.contains('.');
        let is_number = word.chars().all(|one| one.is_ascii_digit());
        line[*after..].starts_with(char::is_whitespace) && !is_short && !is_number
    };
    let sentence = match ends.find(is_end) {
        Some((_, after)) => &line[..after],
        None => line,
    };
    let sentence = sentence.strip_suffix('.').unwrap_or(sentence);
    cut(sentence, TITLE_CHARACTERS_MAX)
}

/// A text of at most `characters_max` characters, cut after a word.
fn cut(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    let short: String = text.chars().take(characters_max - 1).collect();
    let words = short.rsplit_once(char::is_whitespace).map_or(short.as_str(), |(words, _)| words);
    format!("{}…", words.trim_end())
}

/// Warnings about an entry that peers will receive, one line each, and the remedy for a held one.
pub(super) fn flagged(flags: &[ShareFlag], is_held: bool, code: &str) -> String {
    let line = |ShareFlag { field, topic, text }: &ShareFlag| match topic == SCAN_TOPIC {
        true => format!("Peers may quarantine it: the scan found {text} in its {field}.\n"),
        false if is_held => format!("It is held: its {field} contains {text} ({topic}).\n"),
        false => format!("Peers will receive it: its {field} contains {text} ({topic}).\n"),
    };
    let remedy = match is_held {
        true => format!(
            "Neither peers nor agents get it until you rephrase it with `klnode edit {code}` or \
             release it with `klnode inbox release {code}`.\n"
        ),
        false => String::new(),
    };
    flags.iter().map(line).chain([remedy]).collect()
}

/// Adds a hint on how to read standard input, for a caller that pipes a text and gives no argument.
/// Standard input is not read by default: it may be a terminal, or have no end.
fn hinting(error: ClientError) -> ClientError {
    match error {
        ClientError::Refused(mut why) if why.message.contains("content is empty") => {
            let hint = "Give it with --content; `klnode add -` reads it from standard input.";
            why.hint = why.hint.or_else(|| Some(hint.to_owned()));
            ClientError::Refused(why)
        }
        error => error,
    }
}

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<String, VerbError> {
    let read = match path.as_os_str() == "-" {
        true => read_limited::text(std::io::stdin(), bytes_max),
        false => read_limited::file(path, bytes_max),
    };
    read.map_err(|error| VerbError::Input(format!("Cannot read {}: {error}.", name(path))))
}

/// The name of a source in messages.
fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_the_title() {
        let long = "word ".repeat(40);
        let cut = format!("{}…", "word ".repeat(15).trim_end());
        for (text, title) in [
            ("use pnpm, not npm", "use pnpm, not npm"),
            ("Use pnpm. It is faster.", "Use pnpm"),
            ("Check ctx.Err() first. Then go on.", "Check ctx.Err() first"),
            ("Is it cached? Yes.", "Is it cached?"),
            ("1. Do this. 2. Do that.", "1. Do this"),
            ("Pin tools, e.g. node. Always.", "Pin tools, e.g. node"),
            ("  First line\nSecond line.", "First line"),
            ("Version 1.2.3 breaks", "Version 1.2.3 breaks"),
            (&long, &cut),
        ] {
            assert_eq!(title_of(text), title, "{text}");
        }
        assert!(title_of(&"x".repeat(500)).chars().count() <= TITLE_CHARACTERS_MAX);
    }

    #[test]
    fn an_existing_path_is_a_file_and_a_missing_one_with_an_extension_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a note");
        std::fs::write(&file, "text").unwrap();
        assert!(matches!(AddInput::of(file.as_os_str()), Ok(AddInput::File(_))));
        assert!(matches!(AddInput::of(OsStr::new("-")), Ok(AddInput::File(_))));
        assert!(matches!(AddInput::of(OsStr::new("use pnpm, not npm")), Ok(AddInput::Text(_))));
        let long = "x".repeat(100_000);
        assert!(matches!(AddInput::of(OsStr::new(&long)), Ok(AddInput::Text(_))));
        for missing in ["notes.md", "a/b.json", "Notes.MD", "lines.jsonl"] {
            let told = AddInput::of(OsStr::new(missing)).err().expect("a mistake").to_string();
            assert!(told.contains("No such file"), "{told}");
        }
        assert!(AddInput::of(OsStr::new("  ")).is_err());
    }
}
