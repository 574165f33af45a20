//! An agent that uses the local API through the Rust client: it asks, works and tells how it went.

use hyper::Method;
use klnode::api::Client;
use klnode::api::search::{Search, SearchAnswer};
use klnode::api::types::{
    Briefing, FinishTask, FinishedTask, Named, NewEntry, NewTask, Outcome, Task,
};
use std::error::Error;

/// Writes an entry, is served it in a task, and finishes the task; returns what there is to say.
pub async fn work(client: &Client) -> Result<Vec<String>, Box<dyn Error>> {
    let new = NewEntry {
        title: "Pin the toolchain in CI".into(),
        content: "A new lint of a new release broke the build over night.".into(),
        tags: vec!["ci".into()],
        evidence: vec!["doc:notes".into()],
        ..NewEntry::default()
    };
    let named: Named = client.send_json(Method::POST, "/v1/entries", &new).await?;
    let mut said = vec![format!("wrote {}", named.code)];

    let (agent, goal) = ("rust-example".to_owned(), "mend the build".to_owned());
    let new = NewTask { agent, goal, ..NewTask::default() };
    let Task { task, .. } = client.send_json(Method::POST, "/v1/tasks", &new).await?;
    let query = "the build broke over night with a new lint".to_owned();
    let search = Search { query, task: Some(task.clone()), ..Search::default() };
    let answer: SearchAnswer = client.send_json(Method::POST, "/v1/search", &search).await?;
    said.extend(answer.hits.iter().map(|hit| format!("found {} {}", hit.code, hit.title)));

    let finish = FinishTask {
        outcome: Outcome::Success,
        quality: Some(0.9),
        used: answer.hits.iter().map(|hit| hit.id.clone()).collect(),
        dismissed: Vec::new(),
        avoided: Vec::new(),
        cost: None,
        rounds: None,
        strategy: None,
    };
    let path = format!("/v1/tasks/{task}/finish");
    let done: FinishedTask = client.send_json(Method::POST, &path, &finish).await?;
    let credited = done.credits.iter();
    said.extend(credited.map(|credit| format!("credited {} {}", credit.code, credit.amount)));

    let briefing: Briefing = client.get("/v1/briefing?workspace=main").await?;
    said.push(format!("briefed in {} tokens", briefing.tokens));
    Ok(said)
}
