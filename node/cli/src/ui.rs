//! `klnode ui`: opens the page of the running node in the browser.
//!
//! Other users can see the arguments of a program, so the browser gets the path of a private file,
//! and the file leads it to the page with the code.

use super::wait_progress::waiting;
use super::{OutputReader, ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::{PageState, PageTicket};
use klnode_client::Client;
use klnode_home::{Layout, write_private};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Programs that open a file in the browser of the desktop, by system.
#[cfg(target_os = "macos")]
const OPENERS: [&str; 1] = ["open"];
#[cfg(not(target_os = "macos"))]
const OPENERS: [&str; 2] = ["xdg-open", "sensible-browser"];

/// How the page is opened.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the address with the code instead of opening a browser; on a terminal only.
    #[arg(long)]
    pub no_open: bool,
}

/// The answer for programs, without the code.
#[derive(Serialize)]
struct OpenedPage {
    address: String,
    opened: bool,
}

/// The file with the code; dropping it removes the file.
struct CodeFile(PathBuf);

impl Drop for CodeFile {
    fn drop(&mut self) {
        // An error is ignored: the code in it is used or expires within seconds.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Args {
    pub(super) async fn run(
        self,
        client: &Client,
        terminal: OutputReader,
        home: &Path,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        if self.no_open && terminal == OutputReader::Pipe {
            let message =
                "The address contains a secret code, so it is printed on a terminal only.";
            return Err(VerbError::Input(message.to_owned()));
        }
        let ticket: PageTicket = client.send_json(Method::POST, "/v1/page", &()).await?;
        let (address, seconds) = (ticket.address.clone(), ticket.lifetime_seconds);
        if self.no_open {
            let text = format!(
                "{}#code={}\nOpen this address within {seconds} seconds; it is valid once.\n",
                ticket.address, ticket.code
            );
            return Ok(Reply::new(&OpenedPage { address, opened: false }, text));
        }
        let file = CodeFile(Layout::new(home).page_file(std::process::id()));
        let failed =
            |error| VerbError::Failed(format!("Cannot write {}: {error}.", file.0.display()));
        write_private(&file.0, document(&ticket).as_bytes()).map_err(failed)?;
        open_browser(&file.0)?;
        let opened = waiting("waiting for the browser", progress, was_opened(client, &ticket));
        if !opened.await? {
            let message = format!("No browser opened the page within {seconds} seconds.");
            let hint = "Run `klnode ui --no-open` and open the printed address.";
            return Err(VerbError::Failed(format!("{message} {hint}")));
        }
        let text = format!("The page is open in the browser, at {address} until the node stops.\n");
        Ok(Reply::new(&OpenedPage { address, opened: true }, text))
    }
}

/// A document that leads the browser to the page. Address and code contain no markup.
fn document(ticket: &PageTicket) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <title>klnode</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={}#code={}\">\n",
        ticket.address, ticket.code
    )
}

fn open_browser(file: &Path) -> Result<(), VerbError> {
    let spawn = |opener: &&str| {
        let mut command = Command::new(opener);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    };
    match OPENERS.iter().any(spawn) {
        true => Ok(()),
        false => {
            let message =
                format!("No program to open a browser was found ({}).", OPENERS.join(", "));
            let hint = "Run `klnode ui --no-open` and open the printed address.";
            Err(VerbError::Failed(format!("{message} {hint}")))
        }
    }
}

/// Waits until the browser has traded the code; false if the code has expired.
async fn was_opened(client: &Client, ticket: &PageTicket) -> Result<bool, VerbError> {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(ticket.lifetime_seconds) {
        let state: PageState = client.get("/v1/page").await?;
        if state.opened > ticket.opened {
            return Ok(true);
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_leads_to_the_page_with_the_code() {
        let address = "http://127.0.0.1:4711/".to_owned();
        let ticket = PageTicket { address, code: "ab12".into(), lifetime_seconds: 30, opened: 0 };
        assert!(document(&ticket).contains("url=http://127.0.0.1:4711/#code=ab12\""));
    }
}
