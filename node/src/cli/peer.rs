//! `klnode peer` and `sync`: other nodes, what they may have, and how far they are in sync.

mod filter;
mod told;

pub(super) use told::{off_by, standing};

use super::harmless::printable;
use super::invite::path;
use super::waiting::waiting;
use super::{Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::types::peers::{Decide, Decision, Peer, Peers, Sync, Synced};
use crate::query::count::records;
use filter::{FilterArgs, PreviewArgs};
use hyper::Method;
use std::fmt::Write;
use told::{called, list, state, whole};

/// What to do about other nodes.
#[derive(Debug, clap::Subcommand)]
pub enum PeerVerb {
    /// List other nodes.
    ///
    /// Example: klnode peer list
    List,
    /// Show one, with filters, trust and how far it is in sync.
    ///
    /// Example: klnode peer show alice
    Show(OnePeer),
    /// Let a node that waits talk to this one.
    ///
    /// A node that asks to join by address chose its own name, so approving it takes the six digits that
    /// its machine shows. One wrong code ends the attempt on both sides.
    ///
    /// Example: klnode peer approve alice --code 123456
    Approve(ApproveArgs),
    /// Say no to a node that waits, or end an attempt of this node to join one.
    ///
    /// One that may talk already, and waits to be more, goes on as it was.
    ///
    /// Example: klnode peer refuse 1a2b3c4d
    Refuse(OnePeer),
    /// Refuse what a key signs from now on; what it takes back is still heard.
    ///
    /// Example: klnode peer block alice
    Block(OnePeer),
    /// Take what a key signs again, and ask for what was refused.
    ///
    /// Example: klnode peer unblock alice
    Unblock(OnePeer),
    /// Vouch for a peer, so that its word counts before its texts have helped here.
    ///
    /// A vouch counts as three successes on this node, which fade after 30 days. It is never sent to
    /// others, opens no gate, and ends with a block, a removal or a conviction. Vouching again renews it.
    ///
    /// Example: klnode peer vouch alice
    Vouch(Vouch),
    /// Talk to a node no longer.
    ///
    /// Its filters go, and a machine of yours is none any more until it joins with a new ticket.
    ///
    /// Example: klnode peer remove alice
    Remove(OnePeer),
    /// Set what a node is sent, or with --from-peer what is taken from it.
    ///
    /// Without a flag that says what to set, it shows what is set, and changes nothing.
    ///
    /// Example: klnode peer filter alice --deny-tag private --min-confidence 0.5
    Filter(Box<FilterArgs>),
    /// Show what a node has or fetches, what it is about to get, and what is held back by which rule.
    ///
    /// Example: klnode peer preview alice
    Preview(PreviewArgs),
}

/// For which peer to vouch.
#[derive(Debug, clap::Args)]
pub struct Vouch {
    /// The peer.
    #[command(flatten)]
    pub peer: OnePeer,
    /// Take the vouch back.
    #[arg(long)]
    pub undo: bool,
}

/// One node.
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
    /// The six digits that the other machine shows.
    #[arg(long, value_name = "DIGITS")]
    pub code: Option<String>,
}

impl PeerVerb {
    pub(super) fn needs_person(&self) -> bool {
        match self {
            Self::List | Self::Show(_) | Self::Preview(_) => false,
            Self::Filter(filter) => !filter.dry_run && !filter.is_question(),
            Self::Approve(_)
            | Self::Refuse(_)
            | Self::Block(_)
            | Self::Unblock(_)
            | Self::Vouch(_)
            | Self::Remove(_) => true,
        }
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::List => {
                let peers: Peers = client.get("/v1/peers").await?;
                Ok(Reply::new(&peers, list(&peers)))
            }
            Self::Show(one) => {
                let peer: Peer = client.get(&path(&one.peer, "")?).await?;
                Ok(Reply::new(&peer, whole(&peer)))
            }
            Self::Approve(ApproveArgs { peer, code }) => {
                OnePeer { peer }.decide_with(client, Decision::Approve, code).await
            }
            Self::Refuse(one) => one.decide(client, Decision::Refuse).await,
            Self::Block(one) => one.decide(client, Decision::Block).await,
            Self::Unblock(one) => one.decide(client, Decision::Unblock).await,
            Self::Remove(one) => one.decide(client, Decision::Remove).await,
            Self::Vouch(Vouch { peer, undo }) => {
                let decision = if undo { Decision::Unvouch } else { Decision::Vouch };
                peer.decide(client, decision).await
            }
            Self::Filter(filter) => filter.run(client).await,
            Self::Preview(args) => args.run(client).await,
        }
    }
}

impl OnePeer {
    async fn decide(self, client: &Client, decision: Decision) -> Result<Reply, VerbError> {
        self.decide_with(client, decision, None).await
    }

    async fn decide_with(
        self,
        client: &Client,
        decision: Decision,
        code: Option<String>,
    ) -> Result<Reply, VerbError> {
        let path = path(&self.peer, "/decision")?;
        let decide = Decide { decision, code };
        let peer: Peer = client.send_json(Method::POST, &path, &decide).await?;
        let text = format!("{}  {}\n", called(&peer), decided(decision, &peer));
        Ok(Reply::new(&peer, text))
    }
}

/// What a peer is after a decision. Whoever talks again may be less than it was: that is told.
fn decided(decision: Decision, peer: &Peer) -> String {
    let is_approved = peer.state == "approved";
    let told = match decision {
        Decision::Approve if peer.request.is_some() => {
            "is confirmed here; the other side has to type the code too"
        }
        Decision::Approve if peer.mine => "may talk now: another machine of yours",
        Decision::Approve if !peer.workspaces.is_empty() => {
            let shared = peer.workspaces.join(", ");
            return format!("may talk now: member of {shared}, no machine of yours");
        }
        Decision::Approve => {
            "may talk now: neither yours nor a member of anything, until a ticket makes it so \
             (`klnode invite --help`)"
        }
        Decision::Refuse if peer.asked => "is asked no longer: the attempt to join is over",
        Decision::Refuse if is_approved => "goes on as it was; what it was offered is taken back",
        Decision::Refuse => "is refused; it hears of that when it asks again",
        Decision::Block => "is blocked",
        Decision::Unblock => "is heard again",
        Decision::Vouch => {
            "is vouched for: it counts as three successes here, which fade; `klnode peer show` has \
             the trust"
        }
        Decision::Unvouch => "is vouched for no longer",
        Decision::Remove => {
            "is refused now: `klnode peer approve` lets it talk again, and only a ticket makes it \
             yours"
        }
    };
    told.to_owned()
}

/// With whom to replicate now.
#[derive(Debug, clap::Args)]
pub struct SyncArgs {
    /// Its name, its key or peer id, or the beginning of its key; all, if none is given.
    pub peer: Option<String>,
}

impl SyncArgs {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let whom = self.peer.as_deref().map_or_else(|| "every peer".to_owned(), printable);
        let sync = Sync { peer: self.peer };
        let asked = client.send_json(Method::POST, "/v1/sync", &sync);
        let synced: Synced = waiting(&format!("waiting for {whom}"), progress, asked).await?;
        let mut text = String::new();
        for peer in &synced.peers {
            let _ = writeln!(text, "{}  {}", called(peer), synced_as(peer));
        }
        if synced.peers.is_empty() {
            text.push_str("Nobody to replicate with. `klnode invite --help` shows how to pair.\n");
        }
        let _ = writeln!(text, "{}", moved(&synced));
        let is_equal = synced.peers.iter().all(|peer| peer.connected && peer.sync == "equal");
        Ok(Reply::new(&synced, text).ending(u8::from(!is_equal)))
    }
}

/// What moved during a sync.
fn moved(synced: &Synced) -> String {
    format!("{} came in, {} went out.", records(synced.received), synced.sent)
}

/// How a sync with a peer ended.
fn synced_as(peer: &Peer) -> String {
    match (peer.state.as_str(), peer.sync.as_str()) {
        ("refused", _) => "is refused: `klnode peer approve` lets it talk".to_owned(),
        // One that may talk already may still wait to be what it was offered.
        ("waiting", "unknown") => "waits for `klnode peer approve`".to_owned(),
        _ => state(peer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_ends_with_what_came_in_and_what_went_out() {
        let told = |received, sent| moved(&Synced { peers: Vec::new(), received, sent });
        assert_eq!(told(3, 2), "3 records came in, 2 went out.");
        assert_eq!(told(1, 1), "1 record came in, 1 went out.");
        assert_eq!(told(0, 0), "0 records came in, 0 went out.");
    }

    #[test]
    fn whoever_may_talk_again_is_told_by_what_it_is_and_a_no_by_what_it_did() {
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
            (Decision::Approve, &own, "may talk now: another machine of yours"),
            (Decision::Approve, &member, "may talk now: member of team, no machine of yours"),
            (Decision::Approve, &bare, "may talk now: neither yours nor a member of anything"),
            (Decision::Refuse, &own, "goes on as it was"),
            (Decision::Refuse, &refused, "is refused;"),
            (Decision::Remove, &refused, "is refused now:"),
        ] {
            let told = decided(decision, peer);
            assert!(told.starts_with(expect), "{told}");
        }
    }
}
