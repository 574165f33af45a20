//! The local API with the Rust client: an agent asks, works and tells how it went.
//!
//! `cargo run -p klnode-examples --bin client -- ~/.local/share/klnode/klnode.sock`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use hyper::Method;
use klnode::api::Client;
use klnode::api::search::{Search, SearchAnswer};
use klnode::api::types::{
    Briefing, FinishTask, FinishedTask, Named, NewEntry, NewTask, Outcome, Task,
};
use klnode_examples::run;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let socket = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: client SOCKET")?;
    // What it is served and what it writes is noted under its name and its session.
    run(work(Client::new(&socket).named("rust-example", Some("example-1"))))
}

async fn work(client: Client) -> Result<(), Box<dyn Error>> {
    let new = NewEntry {
        title: "Pin the toolchain in CI".into(),
        content: "A new lint of a new release broke the build over night.".into(),
        tags: vec!["ci".into()],
        evidence: vec!["doc:notes".into()],
        ..NewEntry::default()
    };
    let named: Named = client.send_json(Method::POST, "/v1/entries", &new).await?;
    println!("wrote {}", named.code);

    let new = NewTask {
        agent: "rust-example".into(),
        goal: "mend the build".into(),
        ..NewTask::default()
    };
    let task: Task = client.send_json(Method::POST, "/v1/tasks", &new).await?;
    let search = Search {
        query: "the build broke over night with a new lint".into(),
        task: Some(task.task.clone()),
        ..Search::default()
    };
    let answer: SearchAnswer = client.send_json(Method::POST, "/v1/search", &search).await?;
    for hit in &answer.hits {
        println!("found {} {}", hit.code, hit.title);
    }
    let finish = FinishTask {
        outcome: Outcome::Success,
        quality: Some(0.9),
        used: answer.hits.iter().map(|hit| hit.id.clone()).collect(),
        cost: None,
        rounds: None,
        strategy: None,
    };
    let path = format!("/v1/tasks/{}/finish", task.task);
    let done: FinishedTask = client.send_json(Method::POST, &path, &finish).await?;
    for credit in &done.credits {
        println!("credited {} {}", credit.code, credit.amount);
    }
    let briefing: Briefing = client.get("/v1/briefing?workspace=main").await?;
    println!("briefed in {} tokens", briefing.tokens);
    Ok(())
}
