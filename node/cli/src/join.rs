//! `klnode peer join`: pairs with another node by a ticket or an address.
//!
//! With an address the command shows six digits at once and waits for the decision of the
//! operators. A program (`--json`) gets the digits as the answer, and the command does not wait.

use super::api_path::peer_path;
use super::sanitize::printable;
use super::wait_progress::waiting;
use super::{ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::joins::{JoinRequest, JoinResponse, PendingJoin};
use klnode_api_types::peers::{PeerDecision, PeerDecisionRequest};
use klnode_client::Client;
use serde_json::Value;

/// The node to join.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("wants").args(["mine", "member"])))]
pub struct JoinArgs {
    /// A ticket from `klnode peer invite`, or an address: host:port, [v6]:port, or a multiaddr such
    /// as /dns4/vm.example/tcp/4001. With /p2p/… the node there must have that key.
    #[arg(value_name = "TICKET|ADDRESS")]
    pub target: String,
    /// By address: ask to be another machine of the same person. Both operators type the code.
    #[arg(long)]
    pub mine: bool,
    /// By address: ask to be a member of the other node's workspace of this name.
    #[arg(long, value_name = "WORKSPACE")]
    pub member: Option<String>,
    /// By address: print the digits and end, without waiting for the decision.
    #[arg(long)]
    pub no_wait: bool,
    /// Accepted for symmetry with `peer invite`; this command asks no question.
    #[arg(long)]
    pub yes: bool,
}

impl JoinArgs {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        let what = asking(&self.target);
        let join = JoinRequest { target: self.target, mine: self.mine, workspace: self.member };
        let asked = client.send_json(Method::POST, "/v1/join", &join);
        let joined: JoinResponse = waiting(&what, progress, asked).await?;
        let Some(request) = joined.request.clone().filter(|_| joined.waiting) else {
            return Ok(Reply::new(&joined, result(&joined)));
        };
        let lines = digits(&joined, &request);
        if self.no_wait || !progress.announce(&lines) {
            return Ok(Reply::new(&joined, lines));
        }
        let decided = decision(&joined.peer, &joined.name, client, progress);
        let joined = tokio::select! {
            decided = decided => decided?,
            _ = tokio::signal::ctrl_c() => {
                cancel(&joined.peer, client).await;
                return Err(VerbError::Interrupted("The attempt to join was cancelled.".into()));
            }
        };
        Ok(Reply::new(&joined, result(&joined)))
    }
}

/// Waits until the operators have decided or the attempt has expired.
async fn decision(
    peer: &str,
    name: &str,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<JoinResponse, VerbError> {
    let path = format!("/v1/join/{peer}");
    let what = format!("waiting for the operator of {}", printable(name));
    let decided = async {
        loop {
            let joined: JoinResponse = client.get(&path).await?;
            if !joined.waiting {
                return Ok(joined);
            }
        }
    };
    waiting(&what, progress, decided).await
}

/// Cancels the attempt on both sides. If the request fails, the attempt expires later.
async fn cancel(peer: &str, client: &Client) {
    if let Ok(path) = peer_path(peer, "/decision") {
        let refuse = PeerDecisionRequest { decision: PeerDecision::Refuse, code: None };
        let _ = client.send_json::<Value>(Method::POST, &path, &refuse).await;
    }
}

/// The requested role, in words that follow "to be".
pub(super) fn wanted(request: &PendingJoin) -> String {
    match (request.wants.as_str(), &request.workspace) {
        ("mine", _) => "another machine of yours".to_owned(),
        ("member", Some(name)) => format!("a member of `{}`", printable(name)),
        _ => "a peer".to_owned(),
    }
}

/// The digits, and the commands to type with them.
fn digits(joined: &JoinResponse, request: &PendingJoin) -> String {
    let code = joined.code.as_deref().unwrap_or_default();
    let plain: String = code.chars().filter(char::is_ascii_digit).collect();
    let name = match joined.name.is_empty() {
        true => joined.peer[..8].to_owned(),
        false => printable(&joined.name),
    };
    let mut text = format!(
        "Code {code}: asked {name} to be {}.\nIts operator runs there: klnode peer approve NAME \
         --code {plain}\n",
        wanted(request)
    );
    if request.wants == "mine" {
        text.push_str(&format!(
            "Run here, with the digits that `klnode peer list` shows there: klnode peer approve {} \
             --code DIGITS\n",
            &joined.peer[..8]
        ));
    }
    text.push_str(
        "If the two machines show different digits, another node intercepts the \
                   connection: stop.\n",
    );
    text
}

/// The result of joining.
fn result(joined: &JoinResponse) -> String {
    let (name, key) = (printable(&joined.name), &joined.peer[..8]);
    let mut text = match (&joined.workspace, joined.mine, joined.waiting) {
        // Both a ticket and an address yield a code. Without a code the nodes were paired before.
        (None, mine, false) if joined.code.is_none() => {
            let what = if mine { ": another machine of yours" } else { "" };
            return format!("Paired with {name} already{what}; see `klnode peer show {key}`.\n");
        }
        (Some(workspace), ..) => format!("Joined {name}, as a member of `{workspace}`.\n"),
        (None, true, _) => format!("Joined {name}: another machine of yours.\n"),
        (None, false, false) => {
            format!("Joined {name}: a peer, but not yet a member of a workspace.\n")
        }
        (None, false, true) => format!("Asked {name}; its operator decides.\n"),
    };
    if let Some(code) = &joined.code {
        text.push_str(&format!(
            "Code {code}: check that `klnode peer list` there shows the same digits.\n"
        ));
    }
    if joined.waiting {
        text.push_str(&format!(
            "Nothing is shared until its operator runs `klnode peer approve`; see `klnode peer \
             show {key}`.\n"
        ));
    }
    text
}

/// The progress text while pairing: the host of an address; a ticket shows no name.
fn asking(target: &str) -> String {
    let target = target.trim();
    let host = match target.strip_prefix('/') {
        Some(address) => address.split('/').nth(1),
        None => target.rsplit_once(':').map(|(host, _)| host),
    };
    format!("asking {}", host.map_or_else(|| "the node that invited".to_owned(), printable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_text_names_the_host_of_an_address() {
        assert_eq!(asking(" /dns4/vm.example/tcp/4001/p2p/12D3"), "asking vm.example");
        assert_eq!(asking("/ip6/::1/tcp/4001/p2p/12D3"), "asking ::1");
        assert_eq!(asking("vm.example:4001"), "asking vm.example");
        for target in ["klnode1abc", "/", "nowhere"] {
            assert_eq!(asking(target), "asking the node that invited");
        }
    }

    fn joined(mine: bool, code: Option<&str>, waiting: bool) -> JoinResponse {
        let (peer, name, code) = ("ab".repeat(32), "vm".to_owned(), code.map(str::to_owned));
        JoinResponse { peer, name, mine, workspace: None, code, waiting, request: None }
    }

    #[test]
    fn a_node_that_is_already_paired_is_reported_as_paired() {
        let told = |mine, code, waiting| result(&joined(mine, code, waiting));
        let see = "see `klnode peer show abababab`.\n";
        assert_eq!(told(false, None, false), format!("Paired with vm already; {see}"));
        let mine = format!("Paired with vm already: another machine of yours; {see}");
        assert_eq!(told(true, None, false), mine);
        assert!(told(false, None, true).starts_with("Asked vm; its operator decides.\n"));
        let ticket = told(true, Some("123 456"), false);
        assert!(ticket.starts_with("Joined vm: another machine of yours.\nCode 123"), "{ticket}");
        let peer = told(false, Some("123 456"), false);
        assert!(
            peer.starts_with("Joined vm: a peer, but not yet a member of a workspace.\n"),
            "{peer}"
        );
    }

    #[test]
    fn the_digits_come_with_the_requested_role_and_the_command_to_type() {
        let request = |wants: &str, workspace: Option<&str>| PendingJoin {
            from: "here".into(),
            wants: wants.into(),
            workspace: workspace.map(str::to_owned),
            code: Some("012 345".into()),
            confirmed: false,
            confirmed_there: false,
            expires: 0,
        };
        let told = |request| digits(&joined(false, Some("012 345"), true), &request);
        let peer = told(request("peer", None));
        assert!(peer.starts_with("Code 012 345: asked vm to be a peer.\n"), "{peer}");
        assert!(peer.contains("klnode peer approve NAME --code 012345\n"), "{peer}");
        assert!(!peer.contains("abababab"), "{peer}");
        let mine = told(request("mine", None));
        assert!(mine.contains("klnode peer approve abababab --code DIGITS\n"), "{mine}");
        let member = told(request("member", Some("team")));
        assert!(member.contains("to be a member of `team`.\n"), "{member}");
    }
}
