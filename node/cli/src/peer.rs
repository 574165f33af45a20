//! `klnode peer`: pairing with other nodes, syncing with them, and decisions about them.

mod filter;
mod render;

pub(super) use render::{off_by, standing};

use super::api_path::peer_path;
use super::invite::InviteArgs;
use super::join::JoinArgs;
use super::sanitize::printable;
use super::wait_progress::waiting;
use super::{ConfirmPrompt, ProgressSink, Reply, VerbError};
use filter::{FilterArgs, PreviewArgs};
use hyper::Method;
use klnode_api_types::peers::{
    Peer, PeerDecision, PeerDecisionRequest, Peers, SyncOrder, SyncResult,
};
use klnode_client::Client;
use klnode_text::plural::records;
use render::{list, peer_label, state, whole};
use std::fmt::Write;

/// The action on other nodes.
#[derive(Debug, clap::Subcommand)]
pub enum PeerVerb {
    /// Create a ticket with which another node can join this one.
    ///
    /// Example: klnode peer invite --mine
    Invite(InviteArgs),
    /// Pair with another node by its ticket or its address.
    ///
    /// With an address both machines show six digits. The operator there reads the digits here and
    /// runs `klnode peer approve NAME --code DIGITS`. This command waits for that; Ctrl-C cancels
    /// it. One wrong code ends the attempt.
    ///
    /// Example: klnode peer join vm.example:4001 --member team
    Join(JoinArgs),
    /// Sync now with one peer or all, and report whether both sides hold the same records. Ends
    /// with 1 if they do not.
    ///
    /// Example: klnode peer sync
    Sync(SyncArgs),
    /// List other nodes.
    ///
    /// Example: klnode peer list
    List,
    /// Show one peer: filters, trust and sync state.
    ///
    /// Example: klnode peer show alice
    Show(OnePeer),
    /// Approve a node that asked to join.
    ///
    /// A node that joins by address chooses its own name, so the approval needs the six digits on
    /// its screen. One wrong code ends the attempt on both sides.
    ///
    /// Example: klnode peer approve alice --code 123456
    Approve(ApproveArgs),
    /// Refuse a node that asked to join, or cancel an attempt of this node to join another.
    ///
    /// A peer that is already paired and asked for a larger role keeps its present role.
    ///
    /// Example: klnode peer refuse 1a2b3c4d
    Refuse(OnePeer),
    /// Reject new records of an author; retractions are still accepted.
    ///
    /// Example: klnode peer block alice
    Block(OnePeer),
    /// Accept records of a blocked author again, and request the rejected ones.
    ///
    /// Example: klnode peer unblock alice
    Unblock(OnePeer),
    /// Vouch for a peer, so that its entries count before they have proved useful here.
    ///
    /// A vouch counts as three successes on this node, which fade after 30 days. It is never sent
    /// to peers, opens no gate, and ends with a block, a removal or a conviction. Vouching again
    /// renews it.
    ///
    /// Example: klnode peer vouch alice
    Vouch(Vouch),
    /// Unpair a peer and delete its filters.
    ///
    /// A machine of yours needs a new ticket to become one again.
    ///
    /// Example: klnode peer remove alice
    Remove(OnePeer),
    /// Filter the entries that a peer is sent, or with --from-peer those accepted from it.
    ///
    /// Without a rule the command shows the present filter and changes nothing.
    ///
    /// Example: klnode peer filter alice --deny-tag private --min-confidence 0.5
    Filter(Box<FilterArgs>),
    /// Show the entries a peer has, those it will get, and the rule that holds back each other one.
    ///
    /// Example: klnode peer preview alice
    Preview(PreviewArgs),
}

/// The peer to vouch for.
#[derive(Debug, clap::Args)]
pub struct Vouch {
    /// The peer to vouch for.
    #[command(flatten)]
    pub peer: OnePeer,
    /// Withdraw the vouch.
    #[arg(long)]
    pub undo: bool,
}

/// The peer that a verb is about.
#[derive(Debug, clap::Args)]
pub struct OnePeer {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
}

/// A node to approve.
#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
    /// The six digits on the screen of the other machine.
    #[arg(long, value_name = "DIGITS")]
    pub code: Option<String>,
}

impl PeerVerb {
    pub(super) fn needs_person(&self) -> bool {
        match self {
            Self::List | Self::Show(_) | Self::Preview(_) | Self::Sync(_) => false,
            Self::Filter(filter) => !filter.dry_run && !filter.is_question(),
            Self::Invite(_)
            | Self::Join(_)
            | Self::Approve(_)
            | Self::Refuse(_)
            | Self::Block(_)
            | Self::Unblock(_)
            | Self::Vouch(_)
            | Self::Remove(_) => true,
        }
    }

    pub(super) async fn run(
        self,
        client: &Client,
        ask: ConfirmPrompt<'_>,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        match self {
            Self::Invite(invite) => invite.run(client, ask).await,
            Self::Join(join) => join.run(client, progress).await,
            Self::Sync(sync) => sync.run(client, progress).await,
            Self::List => {
                let peers: Peers = client.get("/v1/peers").await?;
                Ok(Reply::new(&peers, list(&peers)))
            }
            Self::Show(one) => {
                let peer: Peer = client.get(&peer_path(&one.peer, "")?).await?;
                Ok(Reply::new(&peer, whole(&peer)))
            }
            Self::Approve(ApproveArgs { peer, code }) => {
                OnePeer { peer }.decide_with(client, PeerDecision::Approve, code).await
            }
            Self::Refuse(one) => one.decide(client, PeerDecision::Refuse).await,
            Self::Block(one) => one.decide(client, PeerDecision::Block).await,
            Self::Unblock(one) => one.decide(client, PeerDecision::Unblock).await,
            Self::Remove(one) => one.decide(client, PeerDecision::Remove).await,
            Self::Vouch(Vouch { peer, undo }) => {
                let decision = if undo { PeerDecision::Unvouch } else { PeerDecision::Vouch };
                peer.decide(client, decision).await
            }
            Self::Filter(filter) => filter.run(client).await,
            Self::Preview(args) => args.run(client).await,
        }
    }
}

impl OnePeer {
    async fn decide(self, client: &Client, decision: PeerDecision) -> Result<Reply, VerbError> {
        self.decide_with(client, decision, None).await
    }

    async fn decide_with(
        self,
        client: &Client,
        decision: PeerDecision,
        code: Option<String>,
    ) -> Result<Reply, VerbError> {
        let path = peer_path(&self.peer, "/decision")?;
        let decide = PeerDecisionRequest { decision, code };
        let peer: Peer = client.send_json(Method::POST, &path, &decide).await?;
        let text = format!("{}  {}\n", peer_label(&peer), decided(decision, &peer));
        Ok(Reply::new(&peer, text))
    }
}

/// The role of a peer after a decision. A peer that is approved again may have a smaller role.
fn decided(decision: PeerDecision, peer: &Peer) -> String {
    let is_approved = peer.state == "approved";
    let result = match decision {
        PeerDecision::Approve if peer.request.is_some() => {
            "is confirmed here; the other operator must type the code too"
        }
        PeerDecision::Approve if peer.mine => "is approved: another machine of yours",
        PeerDecision::Approve if !peer.workspaces.is_empty() => {
            let shared = peer.workspaces.join(", ");
            return format!("is approved: member of {shared}, not one of your machines");
        }
        PeerDecision::Approve => {
            "is approved: neither yours nor a member of a workspace, until it joins with a ticket \
             (`klnode peer invite --help`)"
        }
        PeerDecision::Refuse if peer.asked => {
            "is no longer asked: the attempt to join it was cancelled"
        }
        PeerDecision::Refuse if is_approved => "keeps its present role; the offer was withdrawn",
        PeerDecision::Refuse => "is refused; it learns this when it asks again",
        PeerDecision::Block => "is blocked",
        PeerDecision::Unblock => "is no longer blocked",
        PeerDecision::Vouch => {
            "is vouched for: this counts as three successes on this node; the effect decays. \
             `klnode peer show` has its trust"
        }
        PeerDecision::Unvouch => "is no longer vouched for",
        PeerDecision::Remove => {
            "is removed: `klnode peer approve` pairs it again, and only a ticket makes it yours"
        }
    };
    result.to_owned()
}

/// The peers to sync with now.
#[derive(Debug, clap::Args)]
pub struct SyncArgs {
    /// Its name, its key or peer id, or the beginning of its key [default: all peers].
    pub peer: Option<String>,
}

impl SyncArgs {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        let whom = self.peer.as_deref().map_or_else(|| "every peer".to_owned(), printable);
        let sync = SyncOrder { peer: self.peer };
        let asked = client.send_json(Method::POST, "/v1/sync", &sync);
        let synced: SyncResult = waiting(&format!("waiting for {whom}"), progress, asked).await?;
        let mut text = String::new();
        for peer in &synced.peers {
            let _ = writeln!(text, "{}  {}", peer_label(peer), synced_as(peer));
        }
        if synced.peers.is_empty() {
            text.push_str(
                "There is no peer to sync with. `klnode peer invite --help` shows how to pair.\n",
            );
        }
        let _ = writeln!(text, "{}", moved(&synced));
        let is_equal = synced.peers.iter().all(|peer| peer.connected && peer.sync == "equal");
        Ok(Reply::new(&synced, text).with_exit_code(u8::from(!is_equal)))
    }
}

/// The number of records received and sent during a sync.
fn moved(synced: &SyncResult) -> String {
    format!("{} received, {} sent.", records(synced.received), synced.sent)
}

/// The result of a sync with one peer.
fn synced_as(peer: &Peer) -> String {
    match (peer.state.as_str(), peer.sync.as_str()) {
        ("refused", _) => "is refused; `klnode peer approve` pairs it".to_owned(),
        // A paired peer may still wait for the role it was offered.
        ("waiting", "unknown") => "waits for `klnode peer approve`".to_owned(),
        _ => state(peer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_reports_received_and_sent_records() {
        let line = |received, sent| moved(&SyncResult { peers: Vec::new(), received, sent });
        assert_eq!(line(3, 2), "3 records received, 2 sent.");
        assert_eq!(line(1, 1), "1 record received, 1 sent.");
        assert_eq!(line(0, 0), "0 records received, 0 sent.");
    }

    #[test]
    fn a_decision_reports_the_resulting_role() {
        let peer = |state: &str, mine: bool, workspaces: &[&str]| -> Peer {
            let one = serde_json::json!({
                "peer": "ab".repeat(32), "name": "vm", "state": state, "mine": mine,
                "blocked": false, "connected": true, "addresses": [], "workspaces": workspaces,
                "sync": "unknown", "refused": 0, "released": 0, "offered": 0, "since": 0,
            });
            serde_json::from_value(one).expect("a peer")
        };
        let (own, bare) = (peer("approved", true, &[]), peer("approved", false, &[]));
        let member = peer("approved", false, &["team"]);
        let refused = peer("refused", false, &[]);
        for (decision, peer, expect) in [
            (PeerDecision::Approve, &own, "is approved: another machine of yours"),
            (
                PeerDecision::Approve,
                &member,
                "is approved: member of team, not one of your machines",
            ),
            (
                PeerDecision::Approve,
                &bare,
                "is approved: neither yours nor a member of a workspace",
            ),
            (PeerDecision::Refuse, &own, "keeps its present role"),
            (PeerDecision::Refuse, &refused, "is refused;"),
            (PeerDecision::Remove, &refused, "is removed:"),
        ] {
            let result = decided(decision, peer);
            assert!(result.starts_with(expect), "{result}");
        }
    }
}
