//! Routes for workspaces: list, create, show, change and select the current one.

use super::anchors;
use super::checkout_identity::identity;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::joins::offers;
use crate::convert::peers::{find_peer, find_workspace, workspace};
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::WorkspacesQuery;
use klnode_api_types::peers::{NewWorkspace, Workspace, WorkspaceUpdate, Workspaces};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::workspace_charter;
use klnode_engine::Command;
use klnode_query::name_of;
use klnode_store::peers::Membership;

/// Lists the workspaces of this node.
#[utoipa::path(get, path = "/v1/workspaces", params(WorkspacesQuery),
    responses((status = 200, body = Workspaces)))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    QueryParams(query): QueryParams<WorkspacesQuery>,
) -> ApiResult<Workspaces> {
    let folder = anchors::permitted_checkout(caller, query.checkout.as_deref())?;
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let membership = service.membership(&snapshot)?;
        let mapped = service.reader.here(&snapshot, &membership, folder.as_deref())?.workspace;
        let personal = [WorkspaceId::MAIN, WorkspaceId::LOCAL];
        let ids = personal.into_iter().chain(membership.workspaces.keys().copied());
        let workspaces = ids.map(|id| {
            let one = workspace(&snapshot, &membership, &service.reader.numbers, id);
            one.map(|one| Workspace { here: mapped == Some(id), ..one })
        });
        let offers = offers(&membership, (service.now)()).into_iter().map(|(_, offer)| offer);
        let offers = offers.collect();
        Ok(Workspaces { workspaces: workspaces.collect::<Result<_, ApiError>>()?, offers })
    })
    .await
    .map(ApiReply)
}

/// Creates a workspace that this node owns.
#[utoipa::path(post, path = "/v1/workspaces", request_body = NewWorkspace,
    responses((status = 200, body = Workspace)))]
pub(super) async fn create(
    State(service): State<Service>,
    Body(new): Body<NewWorkspace>,
) -> ApiResult<Workspace> {
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
    QueryParams(query): QueryParams<WorkspacesQuery>,
) -> ApiResult<Workspace> {
    let folder = anchors::permitted_checkout(caller, query.checkout.as_deref())?;
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let membership = service.membership(&snapshot)?;
        let id = find_workspace(&membership, &name)?;
        let mapped = service.reader.here(&snapshot, &membership, folder.as_deref())?.workspace;
        let one = workspace(&snapshot, &membership, &service.reader.numbers, id)?;
        Ok(Workspace { here: mapped == Some(id), ..one })
    })
    .await
    .map(ApiReply)
}

pub(super) async fn one(service: Service, id: WorkspaceId) -> ApiResult<Workspace> {
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        workspace(&snapshot, &service.membership(&snapshot)?, &service.reader.numbers, id)
    })
    .await
    .map(ApiReply)
}

/// Changes a workspace: its settings, members or declared checkouts.
#[utoipa::path(patch, path = "/v1/workspaces/{name}", request_body = WorkspaceUpdate,
    responses((status = 200, body = Workspace)))]
pub(super) async fn change(
    State(service): State<Service>,
    Path(name): Path<String>,
    caller: Caller,
    Body(change): Body<WorkspaceUpdate>,
) -> ApiResult<Workspace> {
    let snapshot = service.snapshot()?;
    let membership = service.membership(&snapshot)?;
    drop(snapshot);
    let id = find_workspace(&membership, &name)?;
    let may =
        membership.workspaces.get(&id).is_some_and(|one| one.charter.may_invite(service.author));
    if !may {
        let message = format!("Only the owner and admins of workspace `{name}` may change it.");
        return Err(ApiError::new(ErrorKind::Refused, message, None));
    }
    // Everything is validated before anything is written.
    let offered = offered(&service, caller, &change).await?;
    let settings = settings(&service, &name, change.settings)?;
    let addition = match &change.add {
        Some(who) => Some((service.replication()?, find_peer(&membership, who)?)),
        None => None,
    };
    let removal = match &change.remove {
        Some(who) => Some((service.replication()?, leaving(&membership, id, who)?)),
        None => None,
    };
    let reinstatement = match &change.reinstate {
        Some(who) => Some((service.replication()?, find_peer(&membership, who)?)),
        None => None,
    };
    let claims: Vec<ClaimEdit> = offered.into_iter().chain(settings).collect();
    if !claims.is_empty() {
        service
            .submit(caller, Command::Claim { entry: workspace_charter::entry(id), claims })
            .await?;
    }
    if let Some((peers, who)) = addition {
        peers.call(move |core| core.offer_membership(id, who)).await??;
    }
    if let Some((peers, who)) = removal {
        peers.call(move |core| core.remove_member(id, who, change.keep_members)).await??;
    }
    if let Some((peers, who)) = reinstatement {
        peers.call(move |core| core.reinstate_member(id, who)).await??;
    }
    one(service, id).await
}

/// Finds the member to remove. The owner is part of the workspace's id and cannot be removed.
fn leaving(membership: &Membership, id: WorkspaceId, who: &str) -> Result<AuthorId, ApiError> {
    let key = find_peer(membership, who)?;
    let owner = membership.workspaces.get(&id).and_then(|one| one.charter.owner);
    if owner.is_none_or(|(owner, _)| owner != key) {
        return Ok(key);
    }
    let name = membership.name(id);
    let message = match key == membership.own {
        true => format!("You cannot be removed from `{name}` because you own it."),
        false => format!("`{}` cannot be removed: it owns `{name}`.", name_of(membership, key)),
    };
    let hint = "All members except the owner can be removed.";
    Err(ApiError::new(ErrorKind::Refused, message, Some(hint)))
}

/// The claim that sets the settings, after validating them.
fn settings(
    service: &Service,
    name: &str,
    settings: Option<String>,
) -> Result<Option<ClaimEdit>, ApiError> {
    let Some(settings) = settings else { return Ok(None) };
    if let Err(reason) = service.reader.numbers.weights_by(&settings) {
        let message = format!("The settings of `{name}` are invalid: {reason}");
        let hint = "Settings are TOML: [weights] with any of semantic, thompson, freshness, \
                    status, thread, cooccurrence, each from 0 to 0.5, with a sum of 1.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    }
    Ok(Some(ClaimEdit::Set(Register::CONTENT, settings)))
}

/// The claim that declares or withdraws a checkout; members' nodes suggest it to their operators.
async fn offered(
    service: &Service,
    caller: Caller,
    change: &WorkspaceUpdate,
) -> Result<Option<ClaimEdit>, ApiError> {
    let (path, is_offered) = match (&change.offer_checkout, &change.withdraw_checkout) {
        (Some(path), None) => (path, true),
        (None, Some(path)) => (path, false),
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = "One request can either offer or withdraw a checkout, not both.";
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
    };
    let folder = anchors::permitted_checkout(caller, Some(path))?.unwrap_or_default();
    let working = service.clone();
    let line = run_blocking(move |_| Ok(identity(&working, &folder)?.0.to_string())).await?;
    Ok(Some(match is_offered {
        true => ClaimEdit::Add(TextSet::CHECKOUTS, line),
        false => ClaimEdit::Withdraw(TextSet::CHECKOUTS, line),
    }))
}

/// Makes a workspace the current one, to which new entries go.
#[utoipa::path(post, path = "/v1/workspaces/{name}/use",
    responses((status = 200, body = Workspace)))]
pub(super) async fn make_current(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> ApiResult<Workspace> {
    let snapshot = service.snapshot()?;
    let id = find_workspace(&service.membership(&snapshot)?, &name)?;
    drop(snapshot);
    if id == WorkspaceId::LOCAL {
        let message =
            "`local` cannot be the current workspace because its entries are never shared.";
        let hint = "Use `klnode add --workspace local` for one entry, or `klnode workspace map \
                    local` for all entries of a checkout.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    }
    service.replication()?.call(move |core| core.use_workspace(id)).await??;
    one(service, id).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::ids::Nonce;
    use klnode_crdt::workspace_charter::Charter;
    use klnode_store::peers::SharedWorkspace as Held;
    use klnode_store::peers::row_types::PeerRow;

    #[test]
    fn the_owner_of_a_workspace_cannot_be_removed() {
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
            Membership { own, peers, workspaces, ..Membership::default() }
        };
        let refused = |own, who: &str| {
            let error = leaving(&seen_by(own), id, who).unwrap_err().into_detail();
            assert_eq!(error.kind, ErrorKind::Refused);
            error.message
        };
        let key = owner.to_string();
        let expect = "You cannot be removed from `team` because you own it.";
        assert_eq!(refused(owner, &key), expect);
        assert_eq!(refused(other, "desk"), "`desk` cannot be removed: it owns `team`.");
        assert_eq!(leaving(&seen_by(owner), id, "desk").unwrap(), other);
    }
}
