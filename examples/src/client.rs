//! An agent that uses the local API through the Rust client: it asks, works and reports the
//! outcome.

use hyper::Method;
use klnode_api_types::search::{Search, SearchResponse};
use klnode_api_types::{
    Briefing, EntryIdentity, FinishTask, FinishedTask, NewEntry, NewTask, Outcome, Task,
};
use klnode_client::Client;
use std::error::Error;

/// Writes an entry, searches for it in a task and finishes the task. Returns lines that describe
/// each step.
pub async fn work(client: &Client) -> Result<Vec<String>, Box<dyn Error>> {
    let new = NewEntry {
        title: "Pin the toolchain in CI".into(),
        content: "A new lint of a new release broke the build over night.".into(),
        tags: vec!["ci".into()],
        evidence: vec!["doc:notes".into()],
        ..NewEntry::default()
    };
    let named: EntryIdentity = client.send_json(Method::POST, "/v1/entries", &new).await?;
    let mut lines = vec![format!("wrote {}", named.code)];

    let (agent, goal) = ("rust-example".to_owned(), "mend the build".to_owned());
    let new = NewTask { agent, goal, ..NewTask::default() };
    let Task { task, .. } = client.send_json(Method::POST, "/v1/tasks", &new).await?;
    let query = "the build broke over night with a new lint".to_owned();
    let search = Search { query, task: Some(task.clone()), ..Search::default() };
    let answer: SearchResponse = client.send_json(Method::POST, "/v1/search", &search).await?;
    lines.extend(answer.hits.iter().map(|hit| format!("found {} {}", hit.code, hit.title)));

    let finish = FinishTask {
        quality: Some(0.9),
        used: answer.hits.iter().map(|hit| hit.id.clone()).collect(),
        ..FinishTask::new(Outcome::Success)
    };
    let path = format!("/v1/tasks/{task}/finish");
    let done: FinishedTask = client.send_json(Method::POST, &path, &finish).await?;
    let credited = done.credits.iter();
    lines.extend(credited.map(|credit| format!("credited {} {}", credit.code, credit.amount)));

    let briefing: Briefing = client.get("/v1/briefing?workspace=main").await?;
    lines.push(format!("briefed in {} tokens", briefing.tokens));
    Ok(lines)
}
