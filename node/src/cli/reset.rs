//! `klnode reset`: what was counted of an entry starts anew.

use super::change::One;
use super::read::path;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::Named;
use hyper::Method;

pub(super) async fn run(One { entry }: One, client: &Client) -> Result<Reply, VerbError> {
    let named: Named = client.send_json(Method::POST, &path(&entry, "/reset")?, &()).await?;
    let text = format!("{}  what was counted here no longer counts\n", named.code);
    Ok(Reply::new(&named, text))
}
