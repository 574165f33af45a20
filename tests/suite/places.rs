//! Places: repositories made by git itself, the workspaces they are mapped to, and what is written
//! in them.

use crate::ground::{Ground, done, refused, type_in};
use crate::peer::Peer;
use crate::program::{eventually, told};
use klnode::query::{CheckoutError, Identity, Likeness, Repository, Roots};
use klnode_tests::served::ask;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The workspace that an entry goes to which is written in a folder.
#[track_caller]
fn goes_to(node: &Peer, from: &Path) -> String {
    let words = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
    let added = done(node, from, &[&words[..], &["--evidence", "doc:notes"]].concat());
    added["workspace"].as_str().unwrap().to_owned()
}

const OURS: &str = "https://example.org/acme/shop.git";

#[test]
fn worktrees_clones_and_moved_folders_are_one_checkout_and_forks_are_not() {
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
    let here = "here          what is written in this checkout goes here\n";
    assert!(typed("shop/deep", &["workspace", "show", "team"]).contains(here));
    assert!(!typed("other", &["workspace", "show", "team"]).contains(here));
    let elsewhere = ["add", "--title", "t", "--content", "c", "--evidence", "doc:d"];
    assert!(typed("shop", &elsewhere).ends_with("  t  (in team)\n"));
    assert!(typed("other", &elsewhere).ends_with("  t\n"));
    let words = [&elsewhere[..], &["--workspace", "local"]].concat();
    assert_eq!(done(&node, &ground.path("shop"), &words)["workspace"], "local");
    std::fs::rename(ground.path("again"), ground.path("moved")).unwrap();
    assert_eq!(goes_to(&node, &ground.path("moved")), "team");
    ground.clone("shop", "fork", Some("https://example.org/somebody/shop.git"));
    ground.git("fork", &["remote", "add", "upstream", OURS]);
    for name in ["fork", "other", "."] {
        assert_eq!(goes_to(&node, &ground.path(name)), "main", "{name}");
    }
    // Unless it is said.
    done(&node, &ground.path("fork"), &["workspace", "map", "team"]);
    assert_eq!(goes_to(&node, &ground.path("fork")), "team");
    let shown = type_in(&node, &ground.path("."), &["workspace", "show", "team"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("checkout      example.org/somebody/shop, root "), "{shown}");
    done(&node, &ground.path("fork"), &["workspace", "unmap", "team"]);
    assert_eq!(goes_to(&node, &ground.path("fork")), "main");
    assert_eq!(goes_to(&node, &ground.path("shop")), "team", "the other mapping stays");
    refused(&node, &ground.path("fork"), &["workspace", "unmap", "team"], 1, "is not mapped");
    refused(&node, &ground.path("."), &["workspace", "map", "team"], 2, "find a checkout at");
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
        let expected: Identity = format!("root:{root}").parse().unwrap();
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
        // Half of each: the newest loose again, on a branch of its own and with no branch at all.
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
fn a_shallow_clone_is_told_by_its_remote_and_without_one_by_nothing() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", Some(OURS), 5);
    let from = format!("file://{}", ground.path("shop").display());
    ground.git(".", &["clone", "-q", "--depth", "1", &from, "shallow"]);
    done(&node, &ground.path("."), &["workspace", "new", "team"]);
    let map = ["workspace", "map", "team"];
    refused(&node, &ground.path("shallow"), &map, 2, "it has no root commit, no remote");
    done(&node, &ground.path("shop"), &map);
    assert_eq!(goes_to(&node, &ground.path("shallow")), "main");
    ground.git("shallow", &["remote", "set-url", "origin", "git@example.org:acme/shop.git"]);
    let identity = ground.identity("shallow");
    assert_eq!((identity.roots().len(), identity.remote()), (0, Some("example.org/acme/shop")));
    assert_eq!(identity.likeness(&ground.identity("shop")), Likeness::SameRemote);
    assert_eq!(goes_to(&node, &ground.path("shallow")), "team");
}

#[test]
fn the_root_is_found_in_objects_that_lie_in_another_repository() {
    let ground = Ground::new();
    ground.repository("shop", None, 3);
    let root = ground.git("shop", &["rev-list", "--max-parents=0", "HEAD"]);
    let expected: Identity = format!("root:{root}").parse().unwrap();
    // By the path from the root, from one to the next, and in a worktree with packed references.
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
    // Packed there, and a circle.
    ground.git("shop", &["repack", "-adq"]);
    std::fs::write(alternates("shop"), "../../../borrowed/.git/objects\n").unwrap();
    assert_eq!(ground.identity("borrowed"), expected, "packed");
    // Through a link nothing is opened, and what is no folder is none.
    let objects = ground.path("shop/.git/objects");
    std::os::unix::fs::symlink(&objects, ground.path("link")).unwrap();
    for other in ["../../../link", "../../../shop/.git/HEAD", "/nowhere", "\0"] {
        std::fs::write(alternates("borrowed"), format!("{other}\n")).unwrap();
        assert!(ground.identity("borrowed").is_empty(), "{other}");
    }
    // A long row of others is followed only so far.
    let mut many: Vec<String> = (0..20).map(|number| format!("../../../o{number}")).collect();
    for name in &many {
        std::fs::create_dir(ground.path("borrowed/.git/objects").join(name)).unwrap();
    }
    many.push(objects.display().to_string());
    std::fs::write(alternates("borrowed"), many.join("\n")).unwrap();
    assert!(ground.identity("borrowed").is_empty());
}

#[test]
fn objects_that_cannot_be_borrowed_take_nothing_away_from_those_that_are_there() {
    let ground = Ground::new();
    ground.repository("shop", None, 3);
    let root = ground.git("shop", &["rev-list", "--max-parents=0", "HEAD"]);
    let expected: Identity = format!("root:{root}").parse().unwrap();
    let alternates = ground.path("shop/.git/objects/info/alternates");
    std::fs::create_dir_all(alternates.parent().unwrap()).unwrap();
    // More files than are looked through, in the packs of a folder that is borrowed from.
    let crowded = ground.path("crowded/pack");
    std::fs::create_dir_all(&crowded).unwrap();
    for number in 0..=4_096 {
        std::fs::write(crowded.join(format!("{number}.keep")), "").unwrap();
    }
    std::fs::write(&alternates, "../../../crowded\n").unwrap();
    assert_eq!(ground.identity("shop"), expected, "packs that are too many");
    // A list that is no file, and one that is not text.
    std::fs::write(&alternates, [0xFF, b'\n', 0, b'\n', b'/']).unwrap();
    assert_eq!(ground.identity("shop"), expected, "no names of folders");
    std::fs::remove_file(&alternates).unwrap();
    std::fs::create_dir(&alternates).unwrap();
    assert_eq!(ground.identity("shop"), expected, "no list");
    // Among its own packs an object may stand that is not found: nothing is said then.
    for number in 0..=4_096 {
        let pack = ground.path("shop/.git/objects/pack");
        std::fs::create_dir_all(&pack).unwrap();
        std::fs::write(pack.join(format!("{number}.keep")), "").unwrap();
    }
    assert!(ground.identity("shop").is_empty());
}

#[test]
fn references_in_a_format_that_is_not_read_are_told_and_give_no_false_identity() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", Some(OURS), 2);
    ground.clone("shop", "modern", Some(OURS));
    // As git 2.45 and later leave it with `--ref-format=reftable`.
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
    let said = "it keeps its references as reftable, which is not read";
    refused(&node, &ground.path("modern"), &["workspace", "map", "team"], 2, said);
    let add = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
    let said = "this checkout keeps its references as reftable, which is not read";
    refused(&node, &ground.path("modern"), &add, 2, said);
    done(&node, &ground.path("shop"), &["workspace", "map", "team"]);
    assert_eq!(goes_to(&node, &ground.path("modern")), "team", "by its remote");
}

#[test]
fn a_hostile_repository_leads_nowhere_and_ends_nothing() {
    let (ground, node) = (Ground::new(), Peer::start());
    let write = |path: &str, bytes: &[u8]| {
        let path = ground.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    // Pointers in a circle, and to what is no repository.
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
    // A link in the place of a reference, and of the objects.
    ground.repository("linked", None, 2);
    let git = ground.path("linked/.git");
    std::fs::rename(git.join("objects"), ground.path("objects")).unwrap();
    std::os::unix::fs::symlink(ground.path("objects"), git.join("objects")).unwrap();
    assert!(ground.identity("linked").is_empty());
    // A commit that was cut off, and a pack index that claims everything.
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
fn without_evidence_an_entry_cites_its_task_or_the_commit_that_is_checked_out() {
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
    refused(&node, &here, &words, 2, "hint: say what it rests on as evidence, such as commit:");
    let norm = [&words[..], &["--type", "norm"]].concat();
    refused(&node, &ground.path("shop"), &norm, 2, "citations are missing");
    done(&node, &here, &["task", "finish", &task, "--success"]);
    let late = [&words[..], &["--task", &task]].concat();
    refused(&node, &here, &late, 2, "it is finished");
}

#[test]
fn search_prefers_the_workspace_of_the_checkout_and_looks_everywhere() {
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
    assert_eq!(order(&here), [ours, theirs], "elsewhere the current workspace is main");
}

#[test]
fn a_branch_is_a_thread_where_the_operator_says_so() {
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
fn what_admins_say_belongs_to_a_workspace_is_offered_and_nothing_more() {
    let (ground, owner, member) = (Ground::new(), Peer::start(), Peer::start());
    ground.repository("shop", Some(OURS), 2);
    ground.clone("shop", "mine", Some("git@example.org:acme/shop.git"));
    let here = ground.path(".");
    done(&owner, &here, &["workspace", "new", "team"]);
    done(&owner, &ground.path("shop"), &["workspace", "map", "team", "--offer"]);
    let ticket = owner.ticket(&["team"]);
    done(&member, &here, &["join", &ticket]);
    let show = ["workspace", "show", "team"];
    let offered = eventually("the offer arrives", || {
        let output = type_in(&member, &here, &[&show[..], &["--json"]].concat());
        let one: Value = serde_json::from_slice(&output.stdout).ok()?;
        one["offered"].as_array().and_then(|all| all.first().cloned())
    });
    assert_eq!(offered["remote"], "example.org/acme/shop");
    assert_eq!(goes_to(&member, &ground.path("mine")), "main", "nobody said so here");
    let words = ["add", "--title", "t", "--content", "c"];
    let said = type_in(&member, &ground.path("mine"), &words);
    assert!(told(&said).contains("`klnode workspace map team`"), "{}", told(&said));
    // A member's word is nobody else's.
    let offer = ["workspace", "map", "team", "--offer"];
    refused(&member, &ground.path("mine"), &offer, 4, "only its owner and admins may");
    done(&member, &ground.path("mine"), &["workspace", "map", "team"]);
    assert_eq!(goes_to(&member, &ground.path("mine")), "team");
}

#[test]
fn a_change_of_a_workspace_of_which_a_part_is_refused_changes_nothing() {
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
fn what_names_something_of_the_house_is_flagged_where_others_will_have_it() {
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
    // What nobody else will have is not flagged.
    for alone in [&["--workspace", "main"], &["--thread", "fix"]] {
        assert_eq!(add(alone)["flags"], Value::Null, "{alone:?}");
    }
}

#[test]
fn what_other_nodes_may_not_show_is_told_to_whoever_writes_it() {
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
    assert_eq!(add("main", piped)["flags"], Value::Null, "nobody else will have it");
    let plain = add("team", "Install it from the package.");
    assert_eq!(plain["flags"], Value::Null);
    let edit = ["edit", plain["id"].as_str().unwrap(), "--content"];
    let edited = done(&node, &here, &[&edit[..], &[piped]].concat());
    assert_eq!(edited["flags"], flags, "by a change, too");
    let longer = format!("{piped} Then start it.");
    let again = type_in(&node, &here, &[&edit[..], &[longer.as_str()]].concat());
    let told = String::from_utf8(again.stderr).unwrap();
    assert!(told.contains("the scan says medium: pipe-to-shell, in its content.\n"), "{told}");
}

/// The file of an object that git keeps by itself.
fn object(folder: &Path, name: &str) -> PathBuf {
    folder.join(".git/objects").join(&name[..2]).join(&name[2..])
}

#[test]
fn what_a_folder_says_of_a_commit_is_said_of_no_other_folder() {
    let ground = Ground::new();
    ground.repository("victim", None, 3);
    ground.repository("forged", None, 1);
    let head = ground.git("victim", &["rev-parse", "HEAD"]);
    let root = ground.git("forged", &["rev-parse", "HEAD"]);
    // A root of its own under the name of the other's newest commit.
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
fn a_history_that_takes_too_much_to_follow_has_no_root() {
    let ground = Ground::new();
    ground.repository("padded", None, 1);
    let padding = ground.path("message");
    std::fs::write(&padding, "pad ".repeat(200_000)).unwrap();
    for _ in 0..50 {
        let file = padding.to_str().unwrap();
        ground.git("padded", &["commit", "-q", "--allow-empty", "-F", file]);
    }
    assert_eq!(ground.identity("padded").roots().len(), 1);
    // Each commit is made of all that are packed before it.
    ground.git("padded", &["repack", "-adq", "--depth=50", "--window=60"]);
    assert!(ground.identity("padded").roots().is_empty());
}
