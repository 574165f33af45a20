//! Real processes on loopback: two commands pair two nodes, and entries travel.

use crate::support::conformance::conforms;
use crate::support::node_process::{done, eventually, klnode, printed, started, text, told};
use crate::support::peer_processes::Peer;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_federation::net;
use klnode_federation::proto::ticket::{JoinOffer, Secret, Ticket};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[test]
fn two_commands_pair_own_machines_and_entries_travel() {
    conforms("S004-120");
    let (here, there) = (Peer::start(), Peer::start());
    let before = here.add("cancellation in auth middleware", &[]);
    let ticket = here.ticket(&["--mine"]);
    let joined = there.json(&["peer", "join", &ticket]);
    assert_eq!(joined["mine"], true);
    there.found("cancellation in auth middleware", &before);
    let after = here.add("retry storms in the billing worker", &[]);
    let hit = there.found("retry storms billing", &after);
    assert_eq!(hit["author"], here.key());
    assert_eq!(hit["hop"], 0, "another machine of the same person");
    let code = |peer: &Peer| peer.json(&["peer", "list"])["peers"][0]["code"].clone();
    assert_eq!(code(&here), code(&there), "both operators see one code");
    let synced = eventually("equal", || {
        let synced = here.json(&["peer", "sync"]);
        (synced["peers"][0]["sync"] == "equal").then_some(synced)
    });
    assert!(synced["peers"][0]["sync_at"].is_u64());
    assert!(here.home.join("node.key").exists());
}

#[test]
fn a_member_of_a_workspace_is_one_hop_away_and_is_trusted_as_a_stranger() {
    let (here, there) = (Peer::start(), Peer::start());
    let ticket = here.ticket(&["team"]);
    let joined = there.json(&["peer", "join", &ticket]);
    assert_eq!(joined["workspace"], "team");
    let private = here.add("my own shell aliases", &[]);
    let shared = here.add("flaky integration tests need a seeded clock", &["--workspace", "team"]);
    let hit = there.found("flaky integration tests seeded clock", &shared);
    assert_eq!(hit["author"], here.key());
    assert_eq!(hit["hop"], 1);
    // The workspace is shown by name everywhere, and a charter is not listed as an entry.
    assert_eq!(hit["workspace"], "team");
    assert_eq!(there.json(&["list"])["entries"][0]["workspace"], "team");
    assert_eq!(there.json(&["status"])["entries"], 1);
    assert_eq!(there.json(&["peer", "list"])["peers"][0]["offered"], 1);
    assert_eq!(here.json(&["status"])["entries"], 2);
    let preview = here.json(&["peer", "preview", &there.key()[..8]]);
    assert_eq!(preview["released"].as_array().map(Vec::len), Some(1), "{preview}");
    let trust = hit["trust"].as_f64().expect("a number");
    assert!((trust - 0.1).abs() < 1e-9, "{trust}");
    assert_eq!(there.type_in(&["show", &private]).status.code(), Some(1), "main is not shared");
    let listed = there.json(&["workspace", "show", "team"]);
    assert_eq!(listed["members"].as_array().map(Vec::len), Some(2));
    // The owner of the workspace can forget any entry in it.
    let unwanted = there.add("said by a member", &["--workspace", "team"]);
    here.found("said by a member", &unwanted);
    let refused = there.type_in(&["forget", &shared]);
    assert!(told(&refused).contains("only the node that wrote it, or"), "{}", told(&refused));
    let before = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    here.json(&["forget", &unwanted]);
    eventually("it is forgotten there", || {
        (there.type_in(&["show", &unwanted]).status.code() == Some(1)).then_some(())
    });
    let status = there.json(&["forget", &unwanted, "--status"]);
    let erased =
        status["peers"][0]["erased"].as_u64().expect("the peer that delivered it has erased it");
    assert!(u128::from(erased) >= before, "the time of the forget, not of the sync: {status}");
    // Observations made there are received here.
    there.json(&["feedback", &shared, "--success"]);
    eventually("the observation comes back", || {
        let shown = here.json(&["show", &shared]);
        (shown["observations"].as_f64()? > 0.0).then_some(())
    });
}

#[test]
fn a_second_own_machine_gets_all_workspaces_and_entries() {
    let (here, there) = (Peer::start(), Peer::start());
    here.json(&["workspace", "new", "team"]);
    let raw = here.add("a raw signal", &["--type", "signal"]);
    let old = here.add("an archived lesson", &["--workspace", "team"]);
    here.json(&["archive", &old]);
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    eventually("its name is known there", || {
        let all = there.json(&["workspace", "list"]);
        let all = all["workspaces"].as_array()?.clone();
        all.into_iter().find(|one| one["name"] == "team")
    });
    for id in [&raw, &old] {
        eventually("everything arrives", || {
            there.type_in(&["show", id]).status.success().then_some(())
        });
    }
    let added = there.add("written on the second machine", &["--workspace", "team"]);
    here.found("written on the second machine", &added);
    let shown = here.json(&["show", &added]);
    assert_eq!(shown["workspace"], "team");
    // As an admin it may forget a member's entry, and the member's node accepts it.
    let third = Peer::start();
    third.json(&["peer", "join", &here.ticket(&["team", "--yes"])]);
    let unwanted = third.add("unwanted by the owner", &["--workspace", "team"]);
    there.found("unwanted by the owner", &unwanted);
    there.json(&["forget", &unwanted]);
    eventually("it is forgotten where it was written", || {
        (third.type_in(&["show", &unwanted]).status.code() == Some(1)).then_some(())
    });
}

#[test]
fn the_owner_removes_a_member_that_its_other_machine_invited() {
    let (here, there, third) = (Peer::start(), Peer::start(), Peer::start());
    here.json(&["workspace", "new", "team"]);
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    eventually("its name is known there", || {
        there.type_in(&["workspace", "show", "team"]).status.success().then_some(())
    });
    // The second machine is an admin.
    third.json(&["peer", "join", &there.ticket(&["team"])]);
    let key = third.key();
    let early = third.add("how the gateway retries", &["--workspace", "team"]);
    here.found("how the gateway retries", &early);
    let removed = here.type_in(&["workspace", "members", "team", "--remove", &key]);
    assert!(removed.status.success(), "{}", told(&removed));
    let members = |peer: &Peer| peer.json(&["workspace", "show", "team"]);
    eventually("the machine that listed it has heard of the removal", || {
        (members(&there)["removed"][0]["key"] == key).then_some(())
    });
    eventually("the removed node has heard of it", || {
        (members(&third)["removed_here"] == true).then_some(())
    });
    let words =
        ["add", "--workspace", "team", "--title", "late", "--content", "late", "--evidence"];
    let refused = third.type_in(&[&words[..], &["run:1"]].concat());
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
    assert!(told(&refused).contains("was removed"), "{}", told(&refused));
    let status = third.json(&["status"])["attention"].to_string();
    assert!(status.contains("removed from team"), "{status}");
    here.found("how the gateway retries", &early);
    // Another admin's invitation does not lift the owner's removal; the owner's own does.
    let ticket = there.ticket(&["team", "--yes"]);
    let refused = third.type_in(&["peer", "join", &ticket]);
    assert!(!refused.status.success(), "{}", told(&refused));
    let back = here.type_in(&["workspace", "members", "team", "--reinstate", &key]);
    assert!(back.status.success(), "{}", told(&back));
    eventually("the removed node is a member again", || {
        members(&third)["removed_here"].is_null().then_some(())
    });
    let late = third.add("how the queue drains", &["--workspace", "team"]);
    here.found("how the queue drains", &late);
}

#[test]
fn an_invitation_to_a_personal_workspace_is_refused_without_a_prompt() {
    let here = Peer::start();
    here.json(&["add", "--title", "A note", "--content", "For me.", "--evidence", "run:1"]);
    for words in [&["peer", "invite", "main"][..], &["peer", "invite", "main", "--yes"]] {
        let refused = here.type_in(words);
        assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
        assert!(told(&refused).contains("is personal"), "{}", told(&refused));
    }
}

#[test]
fn a_workspaces_settings_hold_for_all_members_and_an_override_wins() {
    conforms("S004-147");
    let (mut here, mut there) = (Peer::start(), Peer::start());
    let ticket = here.ticket(&["team"]);
    there.json(&["peer", "join", &ticket]);
    let settings = here.home.join("team.toml");
    let file = settings.to_str().unwrap().to_owned();
    std::fs::write(&settings, "[weights]\nsemantic = 0.9\n").unwrap();
    let refused = here.type_in(&["workspace", "settings", "team", &file]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("weight of semantic is 0.9"), "{}", told(&refused));
    std::fs::write(&settings, "[weights]\nsemantic = 0.48\nthompson = 0.15\n").unwrap();
    here.json(&["workspace", "settings", "team", &file]);
    let foreign = there.type_in(&["workspace", "settings", "team", &file]);
    assert!(
        told(&foreign).contains("Only the owner and admins of workspace"),
        "{}",
        told(&foreign)
    );
    eventually("the settings arrive", || {
        let shown = there.json(&["workspace", "show", "team"]);
        (shown["weights"]["semantic"] == 0.48).then_some(())
    });
    let asked = ["search", "anything at all", "--workspace", "team", "--explain"];
    let answer = there.json(&asked);
    assert_eq!(answer["weights"]["thompson"], 0.15);
    assert_eq!(answer["weights_from"], "the workspace's settings");
    let elsewhere = there.json(&["search", "anything at all", "--explain"]);
    assert_eq!(elsewhere["weights_from"], "the configuration");
    here.stop();
    let own = "[tuning.retrieval.workspace_weights.team]\nsemantic = 0.4\nthompson = 0.23\n";
    std::fs::write(here.home.join("klnode.toml"), own).unwrap();
    here.run();
    let shown = here.json(&["workspace", "show", "team"]);
    assert_eq!(shown["weights"]["semantic"], 0.4);
    assert_eq!(shown["weights_from"], "your override for this workspace");
    // The weights are stored: after a restart they are the same.
    there.stop();
    there.run();
    let shown = there.json(&["workspace", "show", "team"]);
    assert_eq!(shown["weights"]["semantic"], 0.48);
    assert_eq!(there.json(&asked)["weights_from"], "the workspace's settings");
}

#[test]
fn a_wrong_a_used_and_a_damaged_ticket_are_refused_with_a_reason_on_both_sides() {
    let (here, there, third) = (Peer::start(), Peer::start(), Peer::start());
    let ticket = here.ticket(&["--mine"]);
    let other = if ticket.ends_with('a') { 'b' } else { 'a' };
    let damaged =
        there.type_in(&["peer", "join", &format!("{}{other}", &ticket[..ticket.len() - 1])]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(told(&damaged).contains("damaged. Copy it again"), "{}", told(&damaged));
    assert_eq!(there.type_in(&["peer", "join", "hello"]).status.code(), Some(2));
    assert!(there.type_in(&["peer", "join", &ticket]).status.success());
    let used = third.type_in(&["peer", "join", &ticket]);
    assert_eq!(used.status.code(), Some(4));
    assert!(told(&used).contains("the ticket has been used"), "{}", told(&used));
    let away = here.json(&["peer", "list"]);
    assert_eq!(away["turned_away"][0]["peer"], third.key());
    assert_eq!(away["turned_away"][0]["reason"], "the ticket has been used");
    // The refused node has no peer.
    assert_eq!(third.json(&["peer", "list"])["peers"], serde_json::json!([]));
}

#[test]
fn an_expired_ticket_is_refused_without_a_connection() {
    let here = Peer::start_with("[federation]\nticket_lifetime = \"1 s\"\n");
    let there = Peer::start();
    let ticket = here.ticket(&["--mine"]);
    let made = Instant::now();
    eventually("the ticket expires", || (made.elapsed() > Duration::from_secs(2)).then_some(()));
    let expired = there.type_in(&["peer", "join", &ticket]);
    assert!(!expired.status.success());
    assert!(told(&expired).contains("The ticket has expired"), "{}", told(&expired));
    for peer in [&here, &there] {
        assert_eq!(peer.json(&["peer", "list"])["peers"], serde_json::json!([]));
    }
}

#[test]
fn a_ticket_without_addresses_fails_at_once() {
    let there = Peer::start();
    let inviter = SecretKey::from_bytes(&[9; 32]).author();
    for address in [None, Some("nowhere"), Some("/ip4/127.0.0.1/tcp/1")] {
        let addresses: Vec<String> = address.map(str::to_owned).into_iter().collect();
        let (expires, secret) = (WallTime::from_millis(1 << 42), Secret::from_bytes([1; 16]));
        let ticket = Ticket::new(inviter, &addresses, JoinOffer::Mine, expires, secret);
        let joined = there.type_in(&["peer", "join", &ticket.to_string()]);
        assert_eq!(joined.status.code(), Some(1), "{address:?}");
        assert!(told(&joined).contains("the ticket names no address of it"), "{}", told(&joined));
    }
}

#[test]
fn a_second_attempt_to_join_a_node_does_not_end_the_first() {
    let there = Peer::start();
    // It accepts connections but never speaks.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("a port").port();
    let nobody = net::peer_id_text(SecretKey::from_bytes(&[9; 32]).author());
    let address = format!("/ip4/127.0.0.1/tcp/{port}/p2p/{nobody}");
    let join = || {
        let mut command = klnode(&there.home);
        command.args(["peer", "join", &address]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("runs")
    };
    let mut joining = vec![join(), join()];
    let second = eventually("one of them is told", || {
        joining.iter_mut().position(|one| one.try_wait().expect("runs").is_some())
    });
    let second = joining.remove(second).wait_with_output().expect("ends");
    assert_eq!(second.status.code(), Some(1));
    assert!(told(&second).contains("Another attempt to join that node"), "{}", told(&second));
    drop(silent);
    let first = joining.remove(0).wait_with_output().expect("ends");
    assert!(told(&first).contains("is not reachable"), "{}", told(&first));
}

#[test]
fn a_blocked_node_cannot_unblock_itself_by_asking_again() {
    let (here, there) = (Peer::start(), Peer::start());
    let address = here.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    there.json(&["peer", "join", &address]);
    let key = there.key();
    here.json(&["peer", "block", &key]);
    eventually("the attempt is over", || {
        (there.json(&["peer", "list"])["peers"] == json!([])).then_some(())
    });
    let refused = there.type_in(&["peer", "join", &address]);
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
    assert!(told(&refused).contains("its operator has blocked yours"), "{}", told(&refused));
    let listed = here.json(&["peer", "list"]);
    assert_eq!(listed["peers"][0]["blocked"], true, "{listed}");
    assert_eq!(listed["turned_away"][0]["reason"], "you have blocked it");
}

#[test]
fn a_node_that_asks_to_join_waits_for_approval() {
    let (here, there) = (Peer::start(), Peer::start());
    here.json(&["workspace", "new", "open"]);
    let entry = here.add("how releases are cut", &["--workspace", "open"]);
    let address = here.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    let joined = there.json(&["peer", "join", &address]);
    assert_eq!(joined["waiting"], true);
    let key = there.key();
    let listed = here.json(&["peer", "list"]);
    assert_eq!(listed["peers"][0]["state"], "waiting");
    let status = printed(&here.type_in(&["status"]));
    let waits = format!(" ({}) asks to join: see `klnode peer list`\n", &key[..8]);
    assert!(status.contains("  health 1 thing needs your attention: "), "{status}");
    assert!(status.contains(&waits) && !status.contains("compared"), "{status}");
    let status = printed(&there.type_in(&["status"]));
    assert!(status.contains("): asked to be a peer, code "), "{status}");
    let code = joined["code"].as_str().unwrap();
    here.json(&["peer", "approve", &key, "--code", code]);
    assert_eq!(here.json(&["status"])["attention"], json!([]));
    let preview = here.json(&["peer", "preview", &key]);
    assert_eq!(preview["held"][0]["rule"], "workspace", "paired, and no member of anything");
    let set = here.json(&["peer", "filter", &key, "--workspace", "open"]);
    assert!(set["would_be"].as_array().unwrap().iter().any(|one| one["id"] == entry.as_str()));
    there.found("how releases are cut", &entry);
    let cleared = here.json(&["peer", "filter", &key, "--workspace", ""]);
    assert!(cleared["would_end"].as_array().unwrap().iter().any(|one| one["id"] == entry.as_str()));
    let file = here.home.join("note.jsonl");
    std::fs::write(&file, "{\"title\": \"a note\", \"content\": \"About it.\"}").unwrap();
    let words = ["import", file.to_str().unwrap(), "--workspace"];
    let closed = here.type_in(&[&words[..], &["closed"]].concat());
    assert_eq!(closed.status.code(), Some(1), "there is no such workspace");
    assert_eq!(here.json(&[&words[..], &["open"]].concat())["taken"], 1);
}

#[test]
fn the_log_reports_a_waiting_node_once() {
    let folder = tempfile::tempdir().unwrap();
    let (home, log) = (folder.path().join("home"), folder.path().join("log"));
    let mut command = klnode(&home);
    command.args(["--set", "network.listen=[\"/ip4/127.0.0.1/tcp/0\"]"]);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
    let _node = started(command);
    let there = Peer::start();
    let address = text(&done(&home, &["peer", "list"])["addresses"][0]);
    there.json(&["peer", "join", &address]);
    let again = there.type_in(&["peer", "join", &address]);
    assert!(told(&again).contains("Another attempt"), "{}", told(&again));
    let log = std::fs::read_to_string(&log).unwrap();
    let told = log.lines().filter(|line| line.contains("A node asks to join; "));
    assert_eq!(told.count(), 1, "{log}");
}

#[test]
fn two_nodes_that_were_both_stopped_find_each_other_again() {
    let (mut here, mut there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    here.stop();
    there.stop();
    here.run();
    there.run();
    eventually("they are equal", || {
        let synced = here.json(&["peer", "sync"]);
        (synced["peers"][0]["sync"] == "equal").then_some(())
    });
}

#[test]
fn the_address_that_worked_is_kept_despite_announced_ones() {
    let (here, mut there) = (Peer::start(), Peer::start());
    let listed = here.json(&["peer", "list"]);
    let address = listed["addresses"][0].as_str().unwrap().to_owned();
    let named = address.replace("/ip4/127.0.0.1/", "/dns4/localhost/");
    let joined = there.json(&["peer", "join", &named]);
    let code = joined["code"].as_str().unwrap();
    here.json(&["peer", "approve", &there.key(), "--code", code]);
    eventually("they are paired", || {
        let shown = there.type_in(&["peer", "show", &here.key(), "--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
        (shown["request"].is_null() && shown["state"] == "approved").then_some(())
    });
    let (place, _) = named.rsplit_once("/p2p/").unwrap();
    for _ in 0..2 {
        let places = there.json(&["peer", "show", &here.key()])["addresses"].clone();
        assert_eq!(places[0], place, "{places}");
        eventually("they are equal", || {
            let synced = there.json(&["peer", "sync"]);
            (synced["peers"][0]["sync"] == "equal").then_some(())
        });
        there.stop();
        there.run();
    }
}

#[test]
fn a_removed_peer_cannot_return_with_its_used_ticket() {
    let (here, there) = (Peer::start(), Peer::start());
    let ticket = here.ticket(&["--mine"]);
    there.json(&["peer", "join", &ticket]);
    // The response was lost and it asks again: the ticket is still its own.
    there.json(&["peer", "join", &ticket]);
    here.json(&["peer", "remove", &there.key()]);
    let refused = there.type_in(&["peer", "join", &ticket]);
    assert_eq!(refused.status.code(), Some(4), "{}", told(&refused));
    assert_eq!(here.json(&["peer", "list"])["peers"][0]["state"], "refused");
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    assert_eq!(here.json(&["peer", "list"])["peers"][0]["state"], "approved");
}

#[test]
fn announced_addresses_come_first_in_a_ticket() {
    let config = "[network]\nannounce = [\"/dns4/hub.example.org/tcp/4600\"]\n";
    let hub = Peer::start_with(config);
    let ticket: Ticket = hub.ticket(&["--mine"]).parse().unwrap();
    let first = format!("/dns4/hub.example.org/tcp/4600/p2p/{}", net::peer_id_text(ticket.inviter));
    assert_eq!(ticket.addresses[0], first);
    assert!(ticket.addresses.len() > 1, "{:?}", ticket.addresses);
}

#[test]
fn every_shown_filter_field_can_be_set_and_ingress_needs_no_judgement() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    let key = there.key();
    let shown = here.json(&["peer", "show", &key])["filters"].clone();
    assert!(shown["egress"]["statuses"].is_array(), "{shown}");
    let file = here.home.join("filters.json");
    let set = |filters: &Value| {
        std::fs::write(&file, filters.to_string()).unwrap();
        here.type_in(&["peer", "filter", &key, "--file", file.to_str().unwrap(), "--json"])
    };
    let same: Value = serde_json::from_slice(&set(&shown).stdout).unwrap();
    assert_eq!(same["filters"], shown);
    for (field, value) in [("confidence_min", json!(0.5)), ("statuses", json!(["active"]))] {
        let refused = set(&json!({ "ingress": { field: value } }));
        assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
        assert!(
            told(&refused).contains(&format!("`{field}` is evaluated only after")),
            "{}",
            told(&refused)
        );
    }
}

#[test]
fn a_backup_restored_as_another_author_contains_no_peers() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["--mine"])]);
    let kept = here.add("kept in a backup", &[]);
    there.found("kept in a backup", &kept);
    let file = here.home.join("backup");
    here.json(&["backup", "create", file.to_str().unwrap()]);
    let mut third = Peer::start();
    third.stop();
    let words = ["backup", "restore", file.to_str().unwrap(), "--as-this-node", "--yes"];
    let restored = third.type_in(&words);
    assert!(restored.status.success(), "{}", told(&restored));
    third.run();
    assert_eq!(third.json(&["show", &kept, "--all"])["title"], "kept in a backup");
    assert_eq!(third.json(&["peer", "list"])["peers"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_peer_killed_in_mid_sync_ends_up_equal() {
    let (here, mut there) = (Peer::start(), Peer::start());
    let lines: String = (0..2_000)
        .map(|number| {
            format!("{{\"title\": \"note {number}\", \"content\": \"About {number}.\"}}\n")
        })
        .collect();
    let file = here.home.join("notes.jsonl");
    std::fs::write(&file, lines).unwrap();
    here.json(&["import", file.to_str().unwrap()]);
    let ticket = here.ticket(&["--mine"]);
    assert!(there.type_in(&["peer", "join", &ticket]).status.success());
    for _ in 0..3 {
        eventually("something has come", || {
            (there.json(&["status"])["entries"].as_u64()? > 0).then_some(())
        });
        there.kill();
        there.run();
    }
    eventually("all has come", || {
        (there.json(&["status"])["entries"].as_u64()? == 2_000).then_some(())
    });
    // Each by its own comparison.
    for node in [&there, &here] {
        eventually("equal", || {
            let synced = node.json(&["peer", "sync"]);
            (synced["peers"][0]["sync"] == "equal").then_some(())
        });
    }
    there.kill();
    // The set of an offline peer is unknown.
    let synced = eventually("it is missed", || {
        let synced = here.type_in(&["peer", "sync"]);
        (synced.status.code() == Some(1)).then_some(synced)
    });
    let text = String::from_utf8(synced.stdout).unwrap();
    assert!(text.contains("not connected, last in sync at "), "{text}");
    assert!(text.ends_with("\n0 records received, 0 sent.\n"), "{text}");
}

/// Output of a node's peer list.
fn listed(peer: &Peer) -> String {
    printed(&peer.type_in(&["peer", "list"]))
}

#[test]
fn an_unapproved_or_removed_peer_is_not_shown_as_paired() {
    let (here, there) = (Peer::start(), Peer::start());
    let address = here.json(&["peer", "list"])["addresses"][0].as_str().unwrap().to_owned();
    let joined = there.json(&["peer", "join", &address]);
    let text = listed(&there);
    assert!(text.contains("asked to be a peer, code ") && !text.contains("paired"), "{text}");
    let key = there.key();
    let sync_here = || {
        let synced = here.type_in(&["peer", "sync", &key]);
        assert_eq!(synced.status.code(), Some(1), "{}", told(&synced));
        String::from_utf8(synced.stdout).unwrap()
    };
    assert_eq!(here.type_in(&["peer", "sync", &key]).status.code(), Some(1), "it is no peer yet");
    here.json(&["peer", "approve", &key, "--code", joined["code"].as_str().unwrap()]);
    eventually("paired", || listed(&there).contains("  paired, code ").then_some(()));
    eventually("equal", || there.type_in(&["peer", "sync"]).status.success().then_some(()));
    let text = listed(&there);
    assert!(text.contains("; connected, in sync at "), "{text}");

    here.json(&["peer", "remove", &key]);
    assert!(sync_here().contains("is refused"));
    const AWAY: &str = "does not answer: this node is not paired with yours";
    let synced = eventually("it is told", || {
        let synced = there.type_in(&["peer", "sync"]);
        String::from_utf8_lossy(&synced.stdout).contains(AWAY).then_some(synced)
    });
    assert_eq!(synced.status.code(), Some(1));
    let text = listed(&there);
    assert!(text.contains(AWAY) && !text.contains("in sync at"), "{text}");
}

#[test]
fn an_empty_value_or_a_reset_restores_the_configured_filter() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let key = there.key();
    let set = |words: &[&str]| {
        let words = [&["peer", "filter", &key][..], words].concat();
        printed(&here.type_in(&words))
    };
    let shown = || here.json(&["peer", "show", &key])["filters"].clone();
    let before = shown();
    set(&["--memory", "episodic", "--type", "norm", "--status", "verified"]);
    assert_eq!(shown()["egress"]["memories"], json!(["episodic"]));
    set(&["--memory", "", "--type", "", "--status", ""]);
    assert_eq!(shown(), before);
    let text = set(&["--from-peer", "--type", "lesson"]);
    assert!(
        text.starts_with("The filter for accepted entries has changed: types lesson"),
        "{text}"
    );
    assert!(!text.contains("be sent"), "{text}");
    set(&["--from-peer", "--reset"]);
    set(&["--deny-tag", "private", "--reach", "created_here"]);
    set(&["--reset", "--deny-tag", "draft"]);
    let after = shown();
    let egress = &after["egress"];
    assert_eq!(
        (&egress["tags_deny"], &egress["reach"]),
        (&json!(["draft"]), &before["egress"]["reach"])
    );
    set(&["--reset"]);
    assert_eq!(shown(), before);
}

#[test]
fn an_unknown_key_can_be_blocked_and_unblocking_removes_its_row() {
    let here = Peer::start();
    let key = "f".repeat(64);
    let blocked = printed(&here.type_in(&["peer", "block", &key]));
    assert_eq!(blocked, format!("{key}  is blocked\n"));
    assert_eq!(here.json(&["peer", "list"])["peers"][0]["blocked"], true);
    printed(&here.type_in(&["peer", "unblock", &key]));
    assert_eq!(here.json(&["peer", "list"])["peers"], json!([]));
    let unknown = here.type_in(&["peer", "sync", &"e".repeat(64)]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(told(&unknown).contains("Peer `eeee"), "{}", told(&unknown));
}
