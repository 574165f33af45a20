//! `klnode join`: pairs with another node, by its ticket or its address.
//!
//! By address the digits are shown at once, and the verb waits for the operators' decision. A program
//! (`--json`) gets the digits as the answer, and does not wait.

use super::harmless::printable;
use super::invite::path;
use super::waiting::waiting;
use super::{Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::types::joins::{Join, JoinRequest, Joined};
use crate::api::types::peers::{Decide, Decision};
use hyper::Method;
use serde_json::Value;

/// Whom to join.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("wants").args(["mine", "member"])))]
pub struct JoinArgs {
    /// A ticket from `klnode invite`, or an address: host:port, [v6]:port, or a multiaddr such as
    /// /dns4/vm.example/tcp/4001. With /p2p/… the node there must have that key.
    #[arg(value_name = "TICKET|ADDRESS")]
    pub target: String,
    /// By address: ask to be another machine of the same person. Both operators type the code.
    #[arg(long)]
    pub mine: bool,
    /// By address: ask to be a member of the other node's workspace of this name.
    #[arg(long, value_name = "WORKSPACE")]
    pub member: Option<String>,
    /// By address: end with the digits, and do not wait for the decision.
    #[arg(long)]
    pub no_wait: bool,
    /// Do not ask, as with `invite`; so far nothing is asked here.
    #[arg(long)]
    pub yes: bool,
}

impl JoinArgs {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let what = asking(&self.target);
        let join = Join { target: self.target, mine: self.mine, workspace: self.member };
        let asked = client.send_json(Method::POST, "/v1/join", &join);
        let joined: Joined = waiting(&what, progress, asked).await?;
        let Some(request) = joined.request.clone().filter(|_| joined.waiting) else {
            return Ok(Reply::new(&joined, told(&joined)));
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
                return Err(VerbError::Interrupted("the attempt to join was cancelled".into()));
            }
        };
        Ok(Reply::new(&joined, told(&joined)))
    }
}

/// Waits until the attempt is over.
async fn decision(
    peer: &str,
    name: &str,
    client: &Client,
    progress: &mut dyn Progress,
) -> Result<Joined, VerbError> {
    let path = format!("/v1/join/{peer}");
    let what = format!("waiting for the operator of {}", printable(name));
    let decided = async {
        loop {
            let joined: Joined = client.get(&path).await?;
            if !joined.waiting {
                return Ok(joined);
            }
        }
    };
    waiting(&what, progress, decided).await
}

/// Ends the attempt on both sides. The node ends it by itself later if that fails.
async fn cancel(peer: &str, client: &Client) {
    if let Ok(path) = path(peer, "/decision") {
        let refuse = Decide { decision: Decision::Refuse, code: None };
        let _ = client.send_json::<Value>(Method::POST, &path, &refuse).await;
    }
}

/// What is asked for, in words that follow "to be".
pub(super) fn wanted(request: &JoinRequest) -> String {
    match (request.wants.as_str(), &request.workspace) {
        ("mine", _) => "another machine of yours".to_owned(),
        ("member", Some(name)) => format!("a member of `{}`", printable(name)),
        _ => "a peer".to_owned(),
    }
}

/// The digits, and what to do with them.
fn digits(joined: &Joined, request: &JoinRequest) -> String {
    let code = joined.code.as_deref().unwrap_or_default();
    let plain: String = code.chars().filter(char::is_ascii_digit).collect();
    let name = match joined.name.is_empty() {
        true => joined.peer[..8].to_owned(),
        false => printable(&joined.name),
    };
    let mut text = format!(
        "Code {code}: asked {name} to be {}.\nThere, its operator types: klnode peer approve NAME \
         --code {plain}\n",
        wanted(request)
    );
    if request.wants == "mine" {
        text.push_str(&format!(
            "Here, type the digits that `klnode peer list` shows there: klnode peer approve {} \
             --code DIGITS\n",
            &joined.peer[..8]
        ));
    }
    text.push_str("If the two machines show different digits, another node is in between: stop.\n");
    text
}

/// What joining came to.
fn told(joined: &Joined) -> String {
    let (name, key) = (printable(&joined.name), &joined.peer[..8]);
    let mut text = match (&joined.workspace, joined.mine, joined.waiting) {
        // A ticket and an address leave a code. A node that was paired before has nothing to decide.
        (None, mine, false) if joined.code.is_none() => {
            let what = if mine { ": another machine of yours" } else { "" };
            return format!("Paired with {name} already{what}; see `klnode peer show {key}`.\n");
        }
        (Some(workspace), ..) => format!("Joined {name}, as a member of `{workspace}`.\n"),
        (None, true, _) => format!("Joined {name}: another machine of yours.\n"),
        (None, false, false) => format!("Joined {name}: a peer, and a member of nothing yet.\n"),
        (None, false, true) => format!("Asked {name}, whose operator decides.\n"),
    };
    if let Some(code) = &joined.code {
        text.push_str(&format!(
            "Code {code}: `klnode peer list` there shows the same, or something is wrong.\n"
        ));
    }
    if joined.waiting {
        text.push_str(&format!(
            "Nothing is shared until they say `klnode peer approve`; see `klnode peer show \
             {key}`.\n"
        ));
    }
    text
}

/// Who is asked to pair: an address names its host, a ticket shows nothing.
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
    fn who_is_asked_is_named_by_its_host_where_there_is_one() {
        assert_eq!(asking(" /dns4/vm.example/tcp/4001/p2p/12D3"), "asking vm.example");
        assert_eq!(asking("/ip6/::1/tcp/4001/p2p/12D3"), "asking ::1");
        assert_eq!(asking("vm.example:4001"), "asking vm.example");
        for target in ["klnode1abc", "/", "nowhere"] {
            assert_eq!(asking(target), "asking the node that invited");
        }
    }

    fn joined(mine: bool, code: Option<&str>, waiting: bool) -> Joined {
        let (peer, name, code) = ("ab".repeat(32), "vm".to_owned(), code.map(str::to_owned));
        Joined { peer, name, mine, workspace: None, code, waiting, request: None }
    }

    #[test]
    fn a_node_that_is_paired_already_is_not_said_to_be_asked() {
        let told = |mine, code, waiting| told(&joined(mine, code, waiting));
        let see = "see `klnode peer show abababab`.\n";
        assert_eq!(told(false, None, false), format!("Paired with vm already; {see}"));
        let mine = format!("Paired with vm already: another machine of yours; {see}");
        assert_eq!(told(true, None, false), mine);
        assert!(told(false, None, true).starts_with("Asked vm, whose operator decides.\n"));
        let ticket = told(true, Some("123 456"), false);
        assert!(ticket.starts_with("Joined vm: another machine of yours.\nCode 123"), "{ticket}");
        let peer = told(false, Some("123 456"), false);
        assert!(peer.starts_with("Joined vm: a peer, and a member of nothing yet.\n"), "{peer}");
    }

    #[test]
    fn the_digits_come_with_what_is_asked_for_and_with_the_line_to_type() {
        let request = |wants: &str, workspace: Option<&str>| JoinRequest {
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
