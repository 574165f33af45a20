//! Checkouts: which workspace what is written in one goes to.

use super::anchors;
use super::workspaces::one;
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answered, Body, Path};
use crate::api::server::Service;
use crate::api::sharing::find_workspace;
use crate::api::types::MapCheckout;
use crate::api::types::peers::Workspace;
use crate::engine::{CheckoutAct, Command};
use crate::query::{Identity, Likeness, Repository};
use crate::store::places::CheckoutRow;
use axum::extract::State;
use klnode_crdt::ids::WorkspaceId;

/// Maps a checkout to a workspace: what is written there goes to it, unless it says otherwise. All
/// worktrees and clones of the repository are mapped with it; forks are not.
#[utoipa::path(post, path = "/v1/workspaces/{name}/checkouts", request_body = MapCheckout,
    responses((status = 200, body = Workspace)))]
pub(super) async fn map(
    State(service): State<Service>,
    caller: Caller,
    Path(name): Path<String>,
    Body(ask): Body<MapCheckout>,
) -> Answered<Workspace> {
    let folder = anchors::permitted(caller, Some(&ask.checkout))?.unwrap_or_default();
    let snapshot = service.snapshot()?;
    let id = find_workspace(&service.society(&snapshot)?, &name)?;
    drop(snapshot);
    let working = service.clone();
    let acts = apart(move |_| {
        let (identity, root) = identity(&working, &folder)?;
        if ask.remove {
            return working.mapped_like(id, &identity);
        }
        let row = CheckoutRow {
            workspace: id,
            identity: identity.to_string(),
            folder: root,
            since: (working.now)(),
        };
        Ok(vec![CheckoutAct::Map(identity.key(), row)])
    });
    let acts = acts.await?;
    if acts.is_empty() {
        let message = format!("unmap the checkout: it is not mapped to workspace `{name}`");
        return Err(ApiError::new(Kind::NotFound, message, None));
    }
    for act in acts {
        service.submit(caller, Command::Checkout(act)).await?;
    }
    one(service, id).await
}

/// Which repository the checkout in a folder is of, and where it lies.
pub(super) fn identity(
    service: &Service,
    folder: &std::path::Path,
) -> Result<(Identity, String), ApiError> {
    let invalid = |message: String, hint| ApiError::new(Kind::Invalid, message, hint);
    let repository = Repository::open(folder).map_err(|error| invalid(error.to_string(), None))?;
    let identity = service.reader.identity(&repository);
    let root = repository.path().display().to_string();
    if let Some(format) = repository.unread_refs() {
        let message = format!(
            "tell which repository {root} is of: it keeps its references as {format}, which is not read"
        );
        let hint = "`git refs migrate --ref-format=files` changes that; until then it is known by its \
                    remote alone, so type this in a clone that keeps them in files";
        return Err(invalid(message, Some(hint)));
    }
    if identity.is_empty() {
        let message =
            format!("tell which repository {root} is of: it has no root commit, no remote");
        let hint = "commit something first; a shallow clone needs a remote named origin";
        return Err(invalid(message, Some(hint)));
    }
    Ok((identity, root))
}

impl Service {
    /// What takes away every mapping to a workspace that a checkout falls under.
    fn mapped_like(
        &self,
        id: WorkspaceId,
        identity: &Identity,
    ) -> Result<Vec<CheckoutAct>, ApiError> {
        let rows = self.snapshot()?.checkouts()?.into_iter();
        let is_meant = |row: &CheckoutRow| {
            let like = row.identity.parse::<Identity>().map(|known| known.likeness(identity));
            row.workspace == id && like.is_ok_and(|like| like > Likeness::Other)
        };
        let meant = rows.filter(|(_, row)| is_meant(row));
        Ok(meant.map(|(at, _)| CheckoutAct::Unmap(at)).collect())
    }
}
