//! `klnode knowledge`: the commands of Decapod, for scripts and agents that know them. Each one calls
//! the verb of klnode that does the same.
//!
//! `add` and `show` read and print an entry as a JSON object of Decapod, under the id that it has
//! there. The verb is not listed in `klnode --help`; the guide describes it.

use super::api_path::{entry_path, escape};
use super::archive::Archive;
use super::check::Args as Checks;
use super::check_gates::RuleGate;
use super::entry_copy::EntryCopy;
use super::export_stream::receive;
use super::foreign::entry_line_conversion::{self, CorpusIdentity, ExportedLine};
use super::pipe_gate::allow_in_pipe;
use super::show::EntryListArgs;
use super::{OutputReader, ProgressSink, Reply, VerbError, add, knowledge_reflection};
use clap::ValueEnum;
use hyper::Method;
use klnode_api_types::transfer::ImportResult;
use klnode_api_types::{Edit, Entry, EntryIdentity};
use klnode_client::Client;
use klnode_formats::{FileFormat, decapod_entry};
use serde_json::{Value, json};
use std::path::Path;

/// The most bytes of an object that is read from a file.
const OBJECT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A memory of Decapod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KnowledgeMemory {
    /// Facts and concepts.
    Semantic,
    /// Norms of a team.
    Procedural,
    /// Observations of agents.
    Episodic,
}

/// A kind of norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NormKind {
    /// How a commit is made.
    Commit,
    /// What a pull request must have.
    Pr,
    /// When work is done.
    Expectation,
    /// How risky a change is.
    Risk,
}

/// One command of Decapod.
#[derive(Debug, clap::Subcommand)]
pub enum KnowledgeVerb {
    /// Write an entry from a JSON object of Decapod.
    ///
    /// Example: klnode knowledge add --type semantic --evidence commit:1a2b3c4 --content '{"id":
    /// "entity.auth", "type": "entity", "name": "Auth", "description": "The auth service."}'
    Add(KnowledgeAdd),
    /// List entries of a memory.
    ///
    /// Example: klnode knowledge list --type procedural --norm-type commit
    List(KnowledgeList),
    /// Print an entry as a JSON object of Decapod, by its own id or its code.
    ///
    /// Example: klnode knowledge show entity.auth
    Show(KnowledgeShow),
    /// Add evidence to an entry.
    ///
    /// Example: klnode knowledge reweave --entry entity.auth --evidence pr:77
    Reweave(Reweave),
    /// Look for duplicates and contradictions, and propose links.
    ///
    /// Example: klnode knowledge reflect --json
    Reflect,
    /// Check all six gates.
    ///
    /// Example: klnode knowledge verify --json
    Verify,
    /// Archive own entries that have not changed for some days.
    ///
    /// Example: klnode knowledge archive --older-than 90
    Archive(ArchiveOld),
    /// Copy one entry into another memory, with evidence and an approval.
    ///
    /// Example: klnode knowledge promote --from L-7F3K --to procedural --evidence pr:77 --approve
    /// "the team agreed"
    Promote(PromoteEntry),
}

/// The entry to write.
#[derive(Debug, clap::Args)]
pub struct KnowledgeAdd {
    /// The memory to write the entry to.
    #[arg(long = "type", value_enum)]
    pub memory: KnowledgeMemory,
    /// The kind of a norm, if the object does not name it.
    #[arg(long, value_enum)]
    pub norm_type: Option<NormKind>,
    /// Evidence, as KIND:REF; may be given more than once.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
    /// The object, or `-` to read it from standard input.
    #[arg(long, value_name = "JSON")]
    pub content: String,
    /// The workspace of the entry.
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
}

/// The entries to list.
#[derive(Debug, clap::Args)]
pub struct KnowledgeList {
    /// The memory to list.
    #[arg(long = "type", value_enum)]
    pub memory: KnowledgeMemory,
    /// Only norms of this kind.
    #[arg(long, value_enum)]
    pub norm_type: Option<NormKind>,
    /// The most entries to list, from 1 to 1000 [default: 50].
    #[arg(long)]
    pub limit: Option<usize>,
}

/// The entry to print.
#[derive(Debug, clap::Args)]
pub struct KnowledgeShow {
    /// Its id in Decapod, its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Also print untrusted text into a pipe.
    #[arg(long)]
    pub all: bool,
}

/// The entry that gets evidence.
#[derive(Debug, clap::Args)]
pub struct Reweave {
    /// Its id or its code.
    #[arg(long)]
    pub entry: String,
    /// Evidence to add; may be given more than once.
    #[arg(long, value_name = "KIND:REF", required = true)]
    pub evidence: Vec<String>,
}

/// The age to archive.
#[derive(Debug, clap::Args)]
pub struct ArchiveOld {
    /// Days without a change.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub older_than: u32,
}

/// The entry to promote.
#[derive(Debug, clap::Args)]
pub struct PromoteEntry {
    /// The entry. A whole memory, such as episodic/friction, cannot be promoted.
    #[arg(long)]
    pub from: String,
    /// The memory of the new entry.
    #[arg(long, value_enum)]
    pub to: KnowledgeMemory,
    /// The type of the new entry [default: norm in procedural memory].
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Evidence for the new entry, as KIND:REF; may be given more than once.
    #[arg(long, value_name = "KIND:REF")]
    pub evidence: Vec<String>,
    /// The reason why you approve it.
    #[arg(long, value_name = "REASON")]
    pub approve: Option<String>,
}

impl KnowledgeMemory {
    fn name(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Procedural => "procedural",
            Self::Episodic => "episodic",
        }
    }
}

impl NormKind {
    /// The sub-type of klnode.
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Pr => "pr",
            Self::Expectation => "expectation",
            Self::Risk => "risk",
        }
    }
}

impl KnowledgeVerb {
    pub(super) fn needs_person(&self) -> bool {
        match self {
            Self::Add(add) => add.memory == KnowledgeMemory::Procedural,
            Self::Promote(promote) => {
                EntryCopy::needs_person(Some(promote.to.name()), promote.approve.as_deref())
            }
            _ => false,
        }
    }

    pub(super) async fn run(
        self,
        client: &Client,
        terminal: OutputReader,
        program: &str,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        match self {
            Self::Add(add) => add.run(client).await,
            Self::List(list) => list.args().run(client, terminal, program).await,
            Self::Show(show) => show.run(client, terminal).await,
            Self::Reweave(Reweave { entry, evidence }) => {
                let edit = Edit { add_evidence: evidence, ..Edit::default() };
                // An id of the file names an entry only when it is read.
                let found: Entry = client.get(&entry_path(&entry, "")?).await?;
                let path = entry_path(&found.id, "")?;
                let named: EntryIdentity = client.send_json(Method::PATCH, &path, &edit).await?;
                Ok(Reply::new(&named, format!("{}  has new evidence\n", named.code)))
            }
            Self::Reflect => knowledge_reflection::run(client, progress).await,
            Self::Verify => {
                let gates = RuleGate::value_variants().to_vec();
                let checks = Checks { gates, ..Checks::default() };
                checks.run(client, progress).await
            }
            Self::Archive(ArchiveOld { older_than }) => {
                let old = Archive { older_than: Some(older_than), ..Archive::default() };
                old.run(client).await
            }
            Self::Promote(promote) => promote.run(client).await,
        }
    }
}

impl KnowledgeList {
    fn args(self) -> EntryListArgs {
        EntryListArgs {
            limit: self.limit,
            memory: Some(self.memory.name().to_owned()),
            sub_type: self.norm_type.map(|kind| kind.name().to_owned()),
            ..EntryListArgs::default()
        }
    }
}

impl KnowledgeAdd {
    /// The file of the layout that such an object lies in. Its folders give the type of an object
    /// that names none.
    fn file(&self, id: Option<&str>) -> String {
        let folder = match (self.memory, self.norm_type) {
            (KnowledgeMemory::Semantic, _) => "semantic/v1/entities",
            (KnowledgeMemory::Episodic, _) => return "episodic/v1/friction_ledger.jsonl".into(),
            (KnowledgeMemory::Procedural, Some(NormKind::Commit)) => "procedural/v1/commit_norms",
            (KnowledgeMemory::Procedural, Some(NormKind::Pr)) => "procedural/v1/pr_expectations",
            (KnowledgeMemory::Procedural, Some(NormKind::Risk)) => "procedural/v1/risk_tiers",
            (KnowledgeMemory::Procedural, _) => "procedural/v1/user_expectations",
        };
        let is_plain = |id: &&str| {
            id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        };
        format!("{folder}/{}.jsonl", id.filter(is_plain).unwrap_or("entry"))
    }

    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let wrong = |why: String| VerbError::Input(format!("Cannot write the entry: {why}."));
        let text = match self.content.as_str() {
            "-" => add::read(Path::new("-"), OBJECT_BYTES_MAX)?,
            text => text.to_owned(),
        };
        let mut object: Value = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("its content is no JSON object: {error}")))?;
        if !object.is_object() {
            return Err(wrong("its content is no JSON object".to_owned()));
        }
        if !self.evidence.is_empty() {
            let given = self.evidence.iter().map(|evidence| {
                let (kind, at) = evidence.split_once(':').unwrap_or(("doc", evidence));
                json!({"evidence_type": kind, "evidence_ref": at})
            });
            match &mut object["provenance"] {
                Value::Array(held) => held.extend(given),
                held => *held = given.collect(),
            }
        }
        let id = object["id"].as_str().map(str::to_owned);
        let file = self.file(id.as_deref());
        let entry = decapod_entry(&file, &object.to_string()).map_err(wrong)?;
        let memory = self.memory.name();
        let found = entry.memory.clone().unwrap_or_default();
        if found != memory {
            return Err(wrong(format!("its object belongs to {found} memory, not to {memory}")));
        }
        if self.memory != KnowledgeMemory::Episodic && entry.evidence.is_empty() {
            return Err(wrong(format!(
                "provenance required: a {memory} entry needs evidence and cites none"
            )));
        }
        let line = entry_line_conversion::of_entry(&entry, &CorpusIdentity::default()).to_string();
        let route = match self.memory {
            KnowledgeMemory::Procedural => "/v1/import/person",
            _ => "/v1/import",
        };
        let workspace = self.workspace.map(|name| format!("&workspace={}", escape(&name)));
        let path = format!("{route}?source={}{}", escape(&file), workspace.unwrap_or_default());
        let media_type = "application/x-ndjson";
        let sent = client.send_bytes(Method::POST, &path, media_type, line.into_bytes());
        let sent: ImportResult = sent.await?;
        if let Some(problem) = sent.problems.first() {
            return Err(wrong(problem.message.trim_end_matches('.').to_owned()));
        }
        let (done, name) = (sent.taken > 0, id.unwrap_or_else(|| entry.title.clone()));
        let text = match done {
            true => format!("{name}  added ({memory})\n"),
            false => format!("{name}  already known\n"),
        };
        Ok(Reply::new(&json!({"id": name, "memory": memory, "added": done}), text))
    }
}

impl KnowledgeShow {
    async fn run(self, client: &Client, terminal: OutputReader) -> Result<Reply, VerbError> {
        let found: Entry = client.get(&entry_path(&self.entry, "")?).await?;
        if !self.all && terminal == OutputReader::Pipe {
            allow_in_pipe(&found.code, (found.foreign, &found.gate, &found.status))?;
        }
        let path = format!("/v1/export?plain=true&entry={}", found.id);
        let mut bytes = Vec::new();
        receive(client, &path, "The entry is incomplete.", |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        // The first line is the head of the export.
        let line = bytes.split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
        let failed = |error: &dyn std::fmt::Display| {
            VerbError::Failed(format!("The node sent a line that is no entry: {error}."))
        };
        let line: ExportedLine = serde_json::from_slice(line).map_err(|error| failed(&error))?;
        let entry = line.into_entry().ok_or_else(|| failed(&"it has no text"))?;
        let mut object = None;
        let mut put = |file: klnode_formats::OutputFile| {
            let is_entry = !file.path.contains("/provenance/") && file.path.contains('/');
            if is_entry {
                object = serde_json::from_str::<Value>(file.text.trim_end()).ok();
            }
            Ok(())
        };
        let mut entries = std::iter::once(entry);
        klnode_formats::write(FileFormat::Decapod, &mut entries, &mut put)
            .map_err(|error| failed(&error))?;
        let object = object.ok_or_else(|| failed(&"it has no text"))?;
        Ok(Reply::new(&object, format!("{object:#}\n")))
    }
}

impl PromoteEntry {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { from, to, kind, evidence, approve } = self;
        let memory = from.split('/').next().unwrap_or_default();
        if KnowledgeMemory::from_str(memory, true).is_ok() {
            return Err(VerbError::Input(format!(
                "Cannot promote {from}: directional flow violation: a whole memory is never \
                 promoted. Promote one entry, with --evidence and --approve."
            )));
        }
        let norm = (to == KnowledgeMemory::Procedural).then(|| "norm".to_owned());
        let (memory, kind) = (Some(to.name().to_owned()), kind.or(norm));
        EntryCopy { entry: from, workspace: None, memory, kind, evidence, approve }
            .run(client)
            .await
    }
}
