//! The socket and the command line, as people and programs use them: real processes.

use crate::process::{klnode, start, told};
use klnode::api::Client;
use klnode::api::types::{Entry, Named, NewEntry, Observe, Outcome, Status};
use klnode_tests::transcript;
use std::path::Path;

#[test]
fn the_session_in_the_readme_prints_what_it_promises() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"));
    let steps = transcript::sessions(&readme.expect("the README is there"));
    assert!(steps.len() >= 5, "the README has a session");
    let folder = tempfile::tempdir().unwrap();
    let (home, programs) = (folder.path().join("home"), folder.path().join("bin"));
    std::fs::create_dir(&programs).unwrap();
    let program = env!("CARGO_BIN_EXE_klnode-under-test");
    std::os::unix::fs::symlink(program, programs.join("klnode")).unwrap();
    let (_node, _) = start(&home);
    transcript::run(&steps, &programs, &home);
}

fn answer(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = klnode(home).args(arguments).output().unwrap();
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.code().expect("an exit code"), printed, told(&output))
}

/// What a newcomer can do wrong, what it says, and how it ends.
#[test]
fn every_mistake_gets_a_sentence_a_way_out_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (code, _, told) = answer(home, &["status"]);
    assert_eq!(code, 3);
    let socket = home.join("klnode.sock");
    let expected = format!(
        "klnode: cannot reach the node: none is running on {}\n  hint: start one with `klnode`\n",
        socket.display()
    );
    assert_eq!(told, expected);

    let (_node, _) = start(home);
    let long = "x".repeat(201);
    let cases: [(&[&str], i32, &str); 11] = [
        (&["show", "L-ZZZZZZZZ"], 1, "cannot find entry L-ZZZZZZZZ: this node does not hold it"),
        (&["show", "what is this"], 2, "it is neither an id (hex) nor a code such as L-7F3KQ2MX"),
        (&["add", "--title", "t", "--content", "c"], 2, "citations are missing; a semantic entry"),
        (&["add", "--title", "", "--content", "c", "--evidence", "run:1"], 2, "title is empty"),
        (&["add", "--title", "t", "--content", "c", "--evidence", "1"], 2, "write it as KIND:REF"),
        (&["add", "--title", "t", "--content", "c", "--evidence", "x:1"], 2, "one of commit, pr"),
        (&["add", "--title", &long, "--content", "c", "--evidence", "run:1"], 2, "the 200 allowed"),
        (&["add", "--type", "note", "--title", "t"], 2, "type is `note`; it must be one of skill"),
        (&["add", "/nowhere.json"], 2, "cannot read /nowhere.json: No such file"),
        (&["edit", "AAAA", "--field", "colour=red"], 2, "there is no such field"),
        (&["observe", "AAAA"], 2, "--success|--failure"),
    ];
    for (arguments, expected, part) in cases {
        let (code, _, told) = answer(home, arguments);
        assert_eq!(code, expected, "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
    assert_eq!(
        answer(home, &["list"]).1,
        "Nothing yet. `klnode add --help` shows how to write the first entry.\n"
    );
}

#[test]
fn sixty_four_clients_at_once_lose_nothing() {
    const CLIENTS: usize = 64;
    const REQUESTS: usize = 50;
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let client = Client::new(&home.path().join("klnode.sock"));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let new = |title: String| NewEntry {
        title,
        content: "What we learned.".into(),
        evidence: vec!["run:1".into()],
        ..NewEntry::default()
    };
    let post = hyper::Method::POST;
    runtime.block_on(async {
        let shared: Named =
            client.send_json(post.clone(), "/v1/entries", &new("shared".into())).await.unwrap();
        let path = format!("/v1/entries/{}", shared.id);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (client, path, post) = (client.clone(), path.clone(), post.clone());
                tokio::spawn(async move {
                    let observe = Observe { outcome: Outcome::Success };
                    for request in 0..REQUESTS {
                        if request % 5 == 0 {
                            let entry = new(format!("{number} {request}"));
                            let made: Named = client
                                .send_json(post.clone(), "/v1/entries", &entry)
                                .await
                                .unwrap();
                            // What was acknowledged is there to be read.
                            let path = format!("/v1/entries/{}", made.id);
                            let read: Entry = client.get(&path).await.unwrap();
                            assert_eq!(read.title, entry.title);
                        } else {
                            let path = format!("{path}/observations");
                            let _: Named =
                                client.send_json(post.clone(), &path, &observe).await.unwrap();
                        }
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.expect("no client fails");
        }
        let status: Status = client.get("/v1/status").await.unwrap();
        assert_eq!(status.entries as usize, 1 + CLIENTS * REQUESTS / 5);
        let read: Entry = client.get(&path).await.unwrap();
        let expected = (CLIENTS * (REQUESTS - REQUESTS / 5)) as f64;
        assert!((read.observations - expected).abs() < 1e-6, "{}", read.observations);
        assert_eq!(read.status, "verified");
    });
}

#[test]
fn a_socket_left_behind_by_a_killed_node_is_no_obstacle() {
    let home = tempfile::tempdir().unwrap();
    let (mut node, _) = start(home.path());
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    assert!(home.path().join("klnode.sock").exists());
    let (_node, _) = start(home.path());
    assert_eq!(answer(home.path(), &["status"]).0, 0);
}
