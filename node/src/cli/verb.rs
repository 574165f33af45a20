//! Every verb that can be typed, with the help that is shown for it.

use super::{
    accept, add, anchors, archive, backup, briefing, change, config, connect, eval, export,
    friction, help, history, hook, identity, import, invite, join, maintain, mcp, peer, person,
    promote, quarantine, read, resolve, restore, search, served, service, supersede, survey, task,
    usage, watch, workspace,
};
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start the node in the foreground (the same as `klnode` alone).
    ///
    /// Example: klnode serve --home ~/second
    Serve,
    /// Show what a node started like this would use, and where each value comes from.
    ///
    /// A node that runs keeps what it was started with. A value comes from the defaults, over them
    /// the file, over it the environment, over it `--set`. A variable is KLNODE, the sections and
    /// the key in capitals, joined by two underscores: `KLNODE__TRUST__HOP_MAX=2`.
    ///
    /// Example: klnode config trust
    Config(config::Args),
    /// Print a script that completes verbs and flags in a shell.
    ///
    /// Example: klnode completions bash > ~/.local/share/bash-completion/completions/klnode
    Completions(help::Completions),
    /// Print the man page.
    ///
    /// Example: klnode man > klnode.1 && man ./klnode.1
    Man,
    /// Ask the running node how it is.
    ///
    /// Example: klnode status --json
    Status,
    /// Stop the running node, and wait until it has.
    ///
    /// Example: klnode stop
    Stop,
    /// Write an entry, from flags, or from Markdown or JSON in a file or on standard input.
    ///
    /// Example: klnode add --title "Check ctx.Err() after upstream calls" --content "Auth
    /// middleware swallows cancellation." --tag auth --evidence commit:1a2b3c4
    Add(add::Add),
    /// Show one entry, by id, code or an unambiguous beginning of the code.
    ///
    /// Example: klnode show L-7F3K
    Show(read::Show),
    /// List what the node holds, in the order of ids, or with --recent the newest change first.
    ///
    /// A line has the code, the status, the confidence, the day of the last change and the title.
    ///
    /// Example: klnode list --recent -n 20
    List(read::List),
    /// Ask for knowledge: ranked, labelled, and nothing where nothing is relevant.
    ///
    /// Example: klnode search "context cancelled in auth middleware" --explain
    Search(search::Args),
    /// Tell what of a workspace matters now: verified, contested, stale, new from peers, open tasks.
    ///
    /// Example: klnode briefing team --budget 400
    Briefing(briefing::Args),
    /// Show what answers cost and what they were good for: by caller, author or peer.
    ///
    /// Example: klnode usage --since 30d --by author
    Usage(usage::Args),
    /// List what was served last: to whom, to which question; or who was given one entry.
    ///
    /// Example: klnode served L-7F3K
    Served(served::Args),
    /// Check what entries depend on against a checkout: for CI, and after a change.
    ///
    /// Example: klnode anchors check
    #[command(subcommand)]
    Anchors(anchors::AnchorsVerb),
    /// Show what was said about an entry: when, by whom, and on whose behalf.
    ///
    /// Example: klnode history L-7F3K
    History(history::Args),
    /// Print a line for everything that comes in, until Ctrl-C.
    ///
    /// Example: klnode watch --since 0
    Watch(watch::Watch),
    /// Count an observation: the entry helped, or it misled.
    ///
    /// Example: klnode observe L-7F3K --success
    Observe(change::Observe),
    /// Bracket a piece of work: what was served in it is known, and its outcome counts.
    ///
    /// Example: klnode task begin --agent reviewer --goal "Review the auth middleware"
    #[command(subcommand)]
    Task(task::TaskVerb),
    /// Measure how good the answers are, on a labelled set.
    ///
    /// Example: klnode eval queries.jsonl --compare
    Eval(eval::Args),
    /// Say that an entry was of help, or that it did harm.
    ///
    /// Example: klnode feedback L-7F3K --helpful
    Feedback(change::Feedback),
    /// Say that an entry still holds.
    ///
    /// Outside a task, and in one that was served it, it is counted apart: it may be an echo. With
    /// your own key (`--as-person`) it is evidence anywhere.
    ///
    /// Example: klnode confirm L-7F3K --task 01a0c4506c00beeb8da1658eec67f893
    Confirm(change::Confirm),
    /// Have what this node counted of an entry count no longer.
    ///
    /// For what many observations left undecided. Refused, with the numbers, for anything else.
    ///
    /// Example: klnode reset L-7F3K
    Reset(change::One),
    /// Change an entry, by flags, or without any in `$VISUAL` or `$EDITOR`.
    ///
    /// The editor opens with title, tags and content. An unchanged or empty file changes nothing.
    ///
    /// Example: klnode edit L-7F3K --title "Check ctx.Err()" --tag go
    Edit(change::Edit),
    /// Settle versions that concurrent edits left; `show` lists and numbers them.
    ///
    /// Keeps one of them, or opens `$VISUAL` or `$EDITOR` with all. The result is an ordinary edit
    /// that replaces every version, so the conflict ends on all nodes after the next sync.
    ///
    /// Example: klnode resolve L-7F3K --take 2
    Resolve(resolve::Args),
    /// Put an entry away, or a whole thread: kept whole, not served.
    ///
    /// Example: klnode archive --thread fix-login
    Archive(archive::Archive),
    /// Bring an archived entry, or a whole thread, back.
    ///
    /// Example: klnode unarchive L-7F3K
    Unarchive(archive::Archive),
    /// Make a new entry of one that is there: out of its thread, or in another workspace.
    ///
    /// The text goes along, with tags, anchors, verify steps and citations; what was observed stays
    /// with the old entry, to which the new one leads.
    ///
    /// Example: klnode promote L-7F3K --to team
    Promote(promote::Promote),
    /// Say that another entry takes an entry's place: it is shown below it, and says so.
    ///
    /// Example: klnode supersede L-7F3K --by L-9Q2M
    Supersede(supersede::Supersede),
    /// Take what somebody else proposes for entries as your own word; `show` lists proposals.
    ///
    /// Example: klnode accept L-7F3K --from alice --what title
    Accept(accept::Accept),
    /// Take back what this node said about an entry. Its text is erased wherever this arrives.
    ///
    /// Asks first. Where there is no terminal the whole code is needed, or `--yes`.
    ///
    /// Example: klnode retract L-7F3KQ2MX
    Retract(change::Retract),
    /// Forget an entry for good, here and wherever this arrives.
    ///
    /// Asks first. Where there is no terminal the whole code is needed, or `--yes`.
    ///
    /// Example: klnode forget L-7F3KQ2MX --now
    Forget(change::Forget),
    /// Rank an entry up, on this node alone.
    ///
    /// Example: klnode pin L-7F3K
    Pin(change::Mark),
    /// Hide an entry, on this node alone.
    ///
    /// Example: klnode mute L-7F3K --undo
    Mute(change::Mark),
    /// Hold an entry to be wrong, on this node alone.
    ///
    /// Example: klnode invalidate L-7F3K
    Invalidate(change::Mark),
    /// Put a note on an entry, on this node alone; an empty note removes it.
    ///
    /// Example: klnode annotate L-7F3K "see the incident of March"
    Annotate(change::Note),
    /// Make a ticket with which another node may pair with this one.
    ///
    /// Example: klnode invite --mine
    Invite(invite::InviteArgs),
    /// Pair with another node, by its ticket or its address.
    ///
    /// By address both machines show six digits. The operator there reads them here and types
    /// `klnode peer approve NAME --code DIGITS`; this verb waits for that, and Ctrl-C cancels it. One
    /// wrong code ends the attempt.
    ///
    /// Example: klnode join vm.example:4001 --member team
    Join(join::JoinArgs),
    /// Look at other nodes, and decide what they may have.
    ///
    /// Example: klnode peer list
    #[command(subcommand)]
    Peer(peer::PeerVerb),
    /// Replicate now, and say whether both sides hold the same. Ends with 1 if not.
    ///
    /// Example: klnode sync
    Sync(peer::SyncArgs),
    /// Look after shared workspaces.
    ///
    /// Example: klnode workspace list
    #[command(subcommand)]
    Workspace(workspace::WorkspaceVerb),
    /// Look after the key of the person behind this node.
    ///
    /// Where there is one, whatever opens the node to others needs its passphrase: a program that
    /// runs as you cannot do it.
    ///
    /// Example: klnode person new
    #[command(subcommand)]
    Person(person::PersonVerb),
    /// Look at what peers brought and the scan holds back, and decide about it.
    ///
    /// What waits is neither shown nor passed on. Where there is a person's key, deciding needs its
    /// passphrase.
    ///
    /// Example: klnode quarantine list
    #[command(subcommand)]
    Quarantine(quarantine::QuarantineVerb),
    /// Look after the store now: duplicates, contradictions, pairs, stale entries.
    ///
    /// The node does this by itself when enough has changed. What it did can be listed and undone.
    ///
    /// Example: klnode maintain --dry-run duplicates
    Maintain(maintain::Args),
    /// Check that every entry keeps the rules: evidence, links, promotion, norms. For CI.
    ///
    /// Ends with 1 if a procedural entry of your own breaks one that blocks; what only warns is listed.
    /// What contradicts is what upkeep has found: `klnode maintain contradictions` looks anew.
    ///
    /// Example: klnode verify team
    Verify(survey::Args),
    /// Tell what has drifted: stale, contradictory, resting on what is gone, or too much under one tag.
    ///
    /// In a checkout, what entries depend on is looked at there. Ends with 1 if something has drifted.
    ///
    /// Example: klnode drift
    Drift(survey::Args),
    /// Tell whether anything wants your attention: six numbers, each beside its limit.
    ///
    /// The limits are `klnode config survey`. Ends with 1 if one is passed.
    ///
    /// Example: klnode health
    Health(survey::Args),
    /// Record what got in the way, and tell what comes again and again.
    ///
    /// Example: klnode friction record "cargo test hangs without a terminal" --kind tool_error
    #[command(subcommand)]
    Friction(friction::FrictionVerb),
    /// Write every entry to a file, as lines of JSON with the signed records.
    ///
    /// The file holds everything, `local` and the tombstones of what was forgotten included; it is
    /// open to you alone. `import` takes it in again, here or elsewhere, record by record.
    ///
    /// Example: klnode export knowledge.jsonl
    Export(export::Export),
    /// Take in a file: one that `export` wrote, or any lines of JSON with a title and a content.
    ///
    /// What is taken in is told apart from what is known already, so a file can be imported again:
    /// after it has grown, or after something went wrong. A plain line is an entry of this node;
    /// it is called by its `key` or `id`, else by its text, and without `evidence` it cites itself.
    ///
    /// Example: klnode import notes.jsonl --dry-run
    ///
    /// A plain line: {"title": "Check ctx.Err()", "content": "Cancellation is swallowed.",
    /// "type": "lesson", "tags": ["go"], "evidence": ["commit:1a2b3c4"], "key": "note-17"}
    Import(import::Import),
    /// Serve coding agents over MCP, on standard input and output: tools, resources and prompts.
    ///
    /// A client of the running node. Without one it stays up and says so to every call.
    ///
    /// Example: klnode mcp --start
    Mcp(mcp::Args),
    /// Have the running node write a backup: its whole store and its key, in one file.
    ///
    /// The node goes on meanwhile. The file is open to you alone; whoever has it can be this node,
    /// unless the key is left out.
    ///
    /// Example: klnode backup /mnt/backup/klnode.backup
    Backup(backup::Args),
    /// Put a backup in the place of this home's store. No node may be running on it.
    ///
    /// The backup is verified first. What was forgotten here since it was made stays forgotten.
    /// The home keeps its key; one without a key takes the backup's.
    ///
    /// Example: klnode restore /mnt/backup/klnode.backup
    Restore(restore::Args),
    /// Decide whose node this home is, after its key was lost.
    ///
    /// Example: klnode identity adopt --yes
    #[command(subcommand)]
    Identity(identity::IdentityVerb),
    /// Check everything: the home, the store, every record. Ends with 1 if something is wrong.
    ///
    /// Example: klnode doctor --json
    Doctor,
    /// Print what keeps a node running: a systemd user unit, or a launchd agent.
    ///
    /// Example: klnode service --systemd
    Service(service::Args),
    /// Configure the programs that agents run in, so that they find this node.
    ///
    /// What would change is shown first; a copy of every file that is changed is kept beside it.
    /// Settings that cannot be read are left alone.
    ///
    /// Example: klnode connect claude-code --hooks
    Connect(connect::Args),
    /// What a client runs at certain moments: JSON on standard input, JSON or nothing in return.
    ///
    /// `klnode connect --hooks` sets it up. It never fails and never waits long; `hook.log` in the
    /// home says what it did.
    ///
    /// Example: echo '{"prompt": "context cancelled in auth"}' | klnode hook prompt
    Hook(hook::Args),
}
