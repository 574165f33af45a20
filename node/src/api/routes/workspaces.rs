//! Shared workspaces: which there are, who belongs to them, where new entries go.

use super::{anchors, checkouts};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Params, Path};
use crate::api::joining::offers;
use crate::api::server::Service;
use crate::api::sharing::{find_peer, find_workspace, workspace};
use crate::api::types::WorkspacesQuery;
use crate::api::types::peers::{ChangeWorkspace, NewWorkspace, Workspace, Workspaces};
use crate::engine::Command;
use crate::query::name_of;
use crate::store::peers::Society;
use axum::extract::State;
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::writer::Claim;

/// Lists workspaces.
#[utoipa::path(get, path = "/v1/workspaces", params(WorkspacesQuery),
    responses((status = 200, body = Workspaces)))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    Params(query): Params<WorkspacesQuery>,
) -> Answered<Workspaces> {
    let folder = anchors::permitted(caller, query.checkout.as_deref())?;
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let society = service.society(&snapshot)?;
        let mapped = service.reader.here(&snapshot, &society, folder.as_deref())?.workspace;
        let personal = [WorkspaceId::MAIN, WorkspaceId::LOCAL];
        let ids = personal.into_iter().chain(society.workspaces.keys().copied());
        let workspaces = ids.map(|id| {
            let one = workspace(&snapshot, &society, &service.reader.numbers, id);
            one.map(|one| Workspace { here: mapped == Some(id), ..one })
        });
        let offers = offers(&society, (service.now)()).into_iter().map(|(_, offer)| offer);
        let offers = offers.collect();
        Ok(Workspaces { workspaces: workspaces.collect::<Result<_, ApiError>>()?, offers })
    })
    .await
    .map(Answer)
}

/// Makes a workspace that this node owns.
#[utoipa::path(post, path = "/v1/workspaces", request_body = NewWorkspace,
    responses((status = 200, body = Workspace)))]
pub(super) async fn create(
    State(service): State<Service>,
    Body(new): Body<NewWorkspace>,
) -> Answered<Workspace> {
    let made = service.replication()?.call(move |core| core.new_workspace(&new.name));
    let id = made.await??;
    one(service, id).await
}

/// Shows a workspace.
#[utoipa::path(get, path = "/v1/workspaces/{name}", params(WorkspacesQuery),
    responses((status = 200, body = Workspace)))]
pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    Path(name): Path<String>,
    Params(query): Params<WorkspacesQuery>,
) -> Answered<Workspace> {
    let folder = anchors::permitted(caller, query.checkout.as_deref())?;
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let society = service.society(&snapshot)?;
        let id = find_workspace(&society, &name)?;
        let mapped = service.reader.here(&snapshot, &society, folder.as_deref())?.workspace;
        let one = workspace(&snapshot, &society, &service.reader.numbers, id)?;
        Ok(Workspace { here: mapped == Some(id), ..one })
    })
    .await
    .map(Answer)
}

pub(super) async fn one(service: Service, id: WorkspaceId) -> Answered<Workspace> {
    apart(move |_| {
        let snapshot = service.snapshot()?;
        workspace(&snapshot, &service.society(&snapshot)?, &service.reader.numbers, id)
    })
    .await
    .map(Answer)
}

/// Changes a workspace: its settings or its members.
#[utoipa::path(patch, path = "/v1/workspaces/{name}", request_body = ChangeWorkspace,
    responses((status = 200, body = Workspace)))]
pub(super) async fn change(
    State(service): State<Service>,
    Path(name): Path<String>,
    caller: Caller,
    Body(change): Body<ChangeWorkspace>,
) -> Answered<Workspace> {
    let snapshot = service.snapshot()?;
    let society = service.society(&snapshot)?;
    drop(snapshot);
    let id = find_workspace(&society, &name)?;
    let may = society.workspaces.get(&id).is_some_and(|one| one.charter.may_invite(service.author));
    if !may {
        let message = format!("change workspace `{name}`: only its owner and admins may");
        return Err(ApiError::new(Kind::Refused, message, None));
    }
    // What is wrong with any of it is found before anything is written.
    let offered = offered(&service, caller, &change).await?;
    let settings = settings(&service, &name, change.settings)?;
    let addition = match &change.add {
        Some(who) => Some((service.replication()?, find_peer(&society, who)?)),
        None => None,
    };
    let removal = match &change.remove {
        Some(who) => Some((service.replication()?, leaving(&society, id, who)?)),
        None => None,
    };
    let claims: Vec<Claim> = offered.into_iter().chain(settings).collect();
    if !claims.is_empty() {
        service.submit(caller, Command::Claim { entry: charter::entry(id), claims }).await?;
    }
    if let Some((peers, who)) = addition {
        peers.call(move |core| core.offer_membership(id, who)).await??;
    }
    if let Some((peers, who)) = removal {
        peers.call(move |core| core.remove_member(id, who)).await??;
    }
    one(service, id).await
}

/// Whom somebody means to strike off. The owner is in the workspace's id, and nobody can take it out.
fn leaving(society: &Society, id: WorkspaceId, who: &str) -> Result<AuthorId, ApiError> {
    let key = find_peer(society, who)?;
    let owner = society.workspaces.get(&id).and_then(|one| one.charter.owner);
    if owner.is_none_or(|(owner, _)| owner != key) {
        return Ok(key);
    }
    let why = match key == society.own {
        true => "yourself: you own".to_owned(),
        false => format!("`{}`: it owns", name_of(society, key)),
    };
    let message = format!("strike off {why} `{}`", society.name(id));
    let hint = "a workspace keeps its owner; all others can be struck off";
    Err(ApiError::new(Kind::Refused, message, Some(hint)))
}

/// What a change of a workspace says about its settings.
fn settings(
    service: &Service,
    name: &str,
    settings: Option<String>,
) -> Result<Option<Claim>, ApiError> {
    let Some(settings) = settings else { return Ok(None) };
    if let Err(reason) = service.reader.numbers.weights_by(&settings) {
        let message = format!("set the settings of `{name}`: {reason}");
        let hint = "they are TOML: [weights] with any of semantic, thompson, freshness, \
                    status, thread, cooccurrence, each from 0 to 0.5, all together 1";
        return Err(ApiError::new(Kind::Invalid, message, Some(hint)));
    }
    Ok(Some(Claim::Set(Register::CONTENT, settings)))
}

/// What a change of a workspace says about a checkout: members' nodes offer it to their operators.
async fn offered(
    service: &Service,
    caller: Caller,
    change: &ChangeWorkspace,
) -> Result<Option<Claim>, ApiError> {
    let (path, is_offered) = match (&change.offer_checkout, &change.withdraw_checkout) {
        (Some(path), None) => (path, true),
        (None, Some(path)) => (path, false),
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = "offer a checkout and withdraw one at once: do one of them";
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
    };
    let folder = anchors::permitted(caller, Some(path))?.unwrap_or_default();
    let working = service.clone();
    let line = apart(move |_| Ok(checkouts::identity(&working, &folder)?.0.to_string())).await?;
    Ok(Some(match is_offered {
        true => Claim::Add(TextSet::CHECKOUTS, line),
        false => Claim::Withdraw(TextSet::CHECKOUTS, line),
    }))
}

/// Has new entries go to a workspace.
#[utoipa::path(post, path = "/v1/workspaces/{name}/use",
    responses((status = 200, body = Workspace)))]
pub(super) async fn make_current(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> Answered<Workspace> {
    let snapshot = service.snapshot()?;
    let id = find_workspace(&service.society(&snapshot)?, &name)?;
    drop(snapshot);
    if id == WorkspaceId::LOCAL {
        let message = "have all new entries stay in `local`: what is kept there is never shared";
        let hint = "`klnode add --workspace local` keeps one there, and `klnode workspace map local` \
                    what is written in a checkout";
        return Err(ApiError::new(Kind::Invalid, message, Some(hint)));
    }
    service.replication()?.call(move |core| core.use_workspace(id)).await??;
    one(service, id).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::peers::Workspace as Held;
    use crate::store::peers::rows::PeerRow;
    use klnode_crdt::charter::Charter;
    use klnode_crdt::ids::Nonce;

    #[test]
    fn the_owner_of_a_workspace_is_not_struck_off_and_is_told_why() {
        let [owner, other] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
        let id = WorkspaceId::from_bytes([7; 16]);
        let nonce = Nonce::from_bytes([0; Nonce::LEN]);
        let seen_by = |own: AuthorId| {
            let members = [owner, other].into();
            let charter = Charter { owner: Some((owner, nonce)), members, ..Charter::default() };
            let held = Held { name: "team".into(), charter, ..Held::default() };
            let row = PeerRow { name: "desk".into(), ..PeerRow::default() };
            let peer = if own == owner { other } else { owner };
            let (peers, workspaces) = ([(peer, row)].into(), [(id, held)].into());
            Society { own, peers, workspaces, ..Society::default() }
        };
        let refused = |own, who: &str| {
            let error = leaving(&seen_by(own), id, who).unwrap_err().into_detail();
            assert_eq!(error.kind, Kind::Refused);
            error.message
        };
        let key = owner.to_string();
        assert_eq!(refused(owner, &key), "cannot strike off yourself: you own `team`");
        assert_eq!(refused(other, "desk"), "cannot strike off `desk`: it owns `team`");
        assert_eq!(leaving(&seen_by(owner), id, "desk").unwrap(), other);
    }
}
