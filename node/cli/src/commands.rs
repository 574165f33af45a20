//! The verbs of the command line, with the help text of each.

use super::{
    add, archive, backup, briefing, check, compound, config, connect, decapod_commands, edit,
    entry_links, entry_schema, export, feedback, forget, generate, hook_arguments, identity,
    import, inbox, insights, maintain, mark, mcp, peer, playbook, search, show, task, ui,
    usage_report, workspace,
};
use clap::Subcommand;

/// One verb with its arguments. The first line of each comment is also its line in `klnode --help`,
/// where `help::GROUPS` decides group and order.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start the node in the foreground (the same as `klnode` alone).
    ///
    /// Example: klnode serve --home ~/second
    Serve,
    /// Show the state of the running node, or the benefit of its answers (usage).
    ///
    /// Without `usage` the command prints store, index, peers and warnings.
    ///
    /// Example: klnode status --json
    ///
    /// Example: klnode status usage --since 30d --by author
    Status {
        /// The report to print instead of the state.
        #[command(subcommand)]
        report: Option<usage_report::StatusReport>,
    },
    /// Stop the running node and wait until it has ended.
    ///
    /// Example: klnode stop
    Stop,
    /// Open the page of the running node in the browser: see, search, edit, decide.
    ///
    /// The node serves the page on a random port of this machine, and only after this command. A
    /// code opens the page once, within 30 seconds; the browser reads it from a file that only you
    /// can read. The session acts as you and ends with the node. Acts that need the passphrase of
    /// the person's key stay in the terminal.
    ///
    /// Example: klnode ui
    Ui(ui::Args),
    /// Add this node to the settings of the agent programs on this machine.
    ///
    /// The command shows each change first, and keeps a copy of every file that it changes. It
    /// leaves a settings file alone if it cannot parse the file.
    ///
    /// Example: klnode connect claude-code --hooks
    Connect(connect::Args),
    /// Write an entry from flags, text, a file, or another entry (--from).
    ///
    /// Example: klnode add --title "Check ctx.Err() after upstream calls" --content "Auth
    /// middleware swallows cancellation." --tag auth --evidence commit:1a2b3c4
    ///
    /// With --from the new entry copies text, tags, anchors, verify steps and citations of an
    /// existing entry, out of its thread or into another workspace. Observations stay with the old
    /// entry, which the new one names: klnode add --from L-7F3K --workspace team
    ///
    /// With --solved the command asks for the parts of a solved problem, on a terminal in the
    /// editor: klnode add --solved
    Add(Box<add::Add>),
    /// Change an entry, settle an edit conflict, or name its successor.
    ///
    /// Without a flag, `$VISUAL` or `$EDITOR` opens with title, tags and content. An unchanged or
    /// empty file changes nothing.
    ///
    /// Example: klnode edit L-7F3K --title "Check ctx.Err()" --tag go
    ///
    /// Concurrent edits can leave several versions of a field; `klnode show` numbers them. `--take`
    /// keeps one of them, and `--resolve` opens the editor with all of them. The result is an
    /// ordinary edit that replaces every version, so the edit conflict ends on all nodes after the
    /// next sync: klnode edit L-7F3K --take 2
    Edit(Box<edit::Edit>),
    /// Write and edit playbooks: longer texts that a team edits together.
    ///
    /// A playbook says how something is done: releasing, reviewing, debugging. Members of its
    /// workspace edit it at the same time, also offline; the node merges all edits and keeps them as
    /// history.
    ///
    /// Example: klnode playbook new "How we release" --file RELEASING.md
    #[command(subcommand)]
    Playbook(playbook::PlaybookVerb),
    /// Archive an entry or a whole thread: kept, but not served.
    ///
    /// `--older-than` and `--stale` archive all own entries of that kind.
    ///
    /// Example: klnode archive --thread fix-login
    Archive(archive::Archive),
    /// Erase an entry on every node, or only retract your statements.
    ///
    /// The command asks first. Without a terminal it needs the whole code, or `--yes`.
    ///
    /// Example: klnode forget L-7F3KQ2MX --now
    Forget(forget::Forget),
    /// Find entries: ranked, labelled, and none if none is relevant.
    ///
    /// Example: klnode search "context cancelled in auth middleware" --explain
    Search(search::Args),
    /// Summarise a workspace: verified, contradicted, stale, new, open tasks.
    ///
    /// Example: klnode briefing team --budget 400
    Briefing(briefing::Args),
    /// List, show or dismiss insights: matters of a workspace that need you.
    ///
    /// Thirteen rules find them, from declining confidence to costly tasks. Each names its evidence
    /// and suggests an action; none changes anything.
    ///
    /// Example: klnode insights list
    #[command(subcommand)]
    Insights(insights::InsightsVerb),
    /// Show one entry in full, its history (--history) or its links (--links).
    ///
    /// Example: klnode show L-7F3K
    Show(show::Show),
    /// List entries, or print each change as it happens (--follow).
    ///
    /// Entries are listed by id, or by their last change with --recent. A line has the code, the
    /// status, the confidence, the day of the last change and the title; `idle 3 of 10` counts the
    /// tasks that were served the entry without evidence for it, after which it is archived.
    ///
    /// Example: klnode list --recent -n 20
    List(Box<show::EntryListArgs>),
    /// Record a piece of work: its start, findings, friction and outcome.
    ///
    /// Entries that the node serves in a task are credited or blamed for the outcome of the task.
    ///
    /// Example: klnode task begin --agent reviewer --goal "Review the auth middleware"
    #[command(subcommand)]
    Task(task::TaskVerb),
    /// Report whether an entry helped, misled or still holds.
    ///
    /// A confirmation outside a task, or in a task that was served the entry, counts separately: it
    /// may be an echo. A confirmation with the person's key (`--confirm --as-person`) is always
    /// evidence.
    ///
    /// Example: klnode feedback L-7F3K --helpful
    Feedback(feedback::Feedback),
    /// Pin, mute, annotate or call wrong an entry, on this node only.
    ///
    /// Marks are never sent to peers.
    ///
    /// Example: klnode mark L-7F3K --pin
    Mark(mark::Mark),
    /// Pair with other nodes, sync with them, and decide what they get.
    ///
    /// Example: klnode peer list
    #[command(subcommand)]
    Peer(peer::PeerVerb),
    /// Create and manage shared workspaces and their members.
    ///
    /// Example: klnode workspace list
    #[command(subcommand)]
    Workspace(workspace::WorkspaceVerb),
    /// Decide about records in quarantine and proposals of other authors.
    ///
    /// Quarantined records are neither shown nor sent on. If there is a person's key, releasing and
    /// rejecting them needs its passphrase.
    ///
    /// Example: klnode inbox list
    #[command(subcommand)]
    Inbox(inbox::InboxVerb),
    /// Check home, store, rules, drift, limits and anchors, or answers (eval).
    ///
    /// `home` and `store` need no running node. `rules` checks evidence, links, promotion and
    /// norms; it fails if a procedural entry of your own breaks a blocking rule. `drift` lists
    /// entries that are stale, contradict each other or depend on deleted code, and crowded tags.
    /// `limits` compares six numbers with the limits in `klnode config audit`. `anchors` checks
    /// every anchor and `depends_on` that was written in this repository. Without a part the
    /// command checks all of them, anchors only inside a checkout. It ends with 1 if a check fails,
    /// so it can gate a build. `--gate` checks one rule alone, by its name, and `--norms` tests
    /// the commits of a range against the commit norms. `eval` measures the quality of answers.
    ///
    /// Example: klnode check rules drift --workspace team
    Check(check::Args),
    /// The commands of Decapod, for scripts that know them.
    ///
    /// Each command calls the verb of klnode that does the same: `add`, `list`, `show`, `edit`,
    /// `check --gate`, `archive` and `add --from`. Entries are JSON objects of Decapod.
    ///
    /// Example: klnode knowledge show entity.auth
    #[command(subcommand, hide = true)]
    Knowledge(decapod_commands::KnowledgeVerb),
    /// List the typed links around an entry: the same as `show ENTRY --links`.
    ///
    /// Example: klnode links E-7F3K --depth 2
    #[command(hide = true)]
    Links(entry_links::LinksArgs),
    /// Print the JSON Schema of a new entry: the same as `generate schema`.
    ///
    /// Example: klnode schema norm/commit
    #[command(hide = true)]
    Schema(entry_schema::Args),
    /// Write up a solved problem: the same as `add --solved`.
    ///
    /// Example: klnode compound --problem "The login hangs." --cause "A lock is held across a call."
    /// --solution "Release it first." --anchor path:src/auth.go --verify "go test ./auth"
    #[command(hide = true)]
    Compound(Box<compound::CompoundArgs>),
    /// Run maintenance now; list, undo or accept its actions.
    ///
    /// Maintenance looks for duplicates, contradictions, pairs and stale entries. The node also
    /// runs it by itself when enough entries have changed.
    ///
    /// Example: klnode maintain --dry-run duplicates
    Maintain(maintain::Args),
    /// Create, verify or restore a backup of store and key.
    ///
    /// Example: klnode backup create /mnt/backup/klnode.backup
    #[command(subcommand)]
    Backup(backup::BackupVerb),
    /// Write every entry to a file, as JSON lines with signed records.
    ///
    /// The file holds all entries, including the workspace `local` and the tombstones of forgotten
    /// entries; only you can read it. `klnode import` reads it again, here or elsewhere, record by
    /// record. With --format, the entries become files of another tool in a folder.
    ///
    /// Example: klnode export knowledge.jsonl
    ///
    /// Example: klnode export --format markdown notes
    Export(export::ExportArgs),
    /// Read an export, JSON lines, or the files of another tool.
    ///
    /// The command skips records that this node already has, so a file can be imported again after
    /// it has grown or after a failure. A plain line becomes an entry of this node; its `key` or
    /// `id`, or else its text, identifies it, and without `evidence` it cites itself.
    ///
    /// The format of other files, such as CLAUDE.md or an Obsidian vault, shows in their names and
    /// first lines. The command ends with 1 if it refuses a part, and lists such parts.
    ///
    /// Example: klnode import notes.jsonl --dry-run
    ///
    /// A plain line: {"title": "Check ctx.Err()", "content": "Cancellation is swallowed.",
    /// "type": "lesson", "tags": ["go"], "evidence": ["commit:1a2b3c4"], "key": "note-17"}
    Import(import::Import),
    /// Show every setting, its value, and where the value comes from.
    ///
    /// A running node keeps the settings it was started with. Later sources override earlier ones:
    /// the defaults, the file, the environment, `--set`. A variable is KLNODE, the sections and the
    /// key in capitals, joined by two underscores: `KLNODE__TRUST__HOP_MAX=2`.
    ///
    /// Example: klnode config trust
    Config(config::Args),
    /// Create and show the person's key, or replace a lost node key.
    ///
    /// Once there is a person's key, every command that opens the node to others needs its
    /// passphrase, so a program that runs as you cannot do it.
    ///
    /// Example: klnode identity new
    #[command(subcommand)]
    Identity(identity::IdentityVerb),
    /// Serve coding agents over MCP on standard input and output.
    ///
    /// The server offers tools, resources and prompts. It is a client of the running node; without
    /// a node it stays up and answers every call with an error that says so.
    ///
    /// Example: klnode mcp --start
    Mcp(mcp::Args),
    /// Answer an event of an agent program: JSON in, JSON or nothing out.
    ///
    /// `klnode connect --hooks` installs the hooks. A hook never fails and never waits long; it
    /// logs to `hook.log` in the home.
    ///
    /// Example: echo '{"prompt": "context cancelled in auth"}' | klnode hook prompt
    #[command(hide = true)]
    Hook(hook_arguments::Args),
    /// Print shell completions, man page, service unit or a predicate.
    ///
    /// Example: klnode generate completions bash
    #[command(subcommand)]
    Generate(generate::GenerateVerb),
}
