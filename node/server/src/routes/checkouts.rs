//! Maps checkouts to workspaces.

use super::anchors;
use super::checkout_identity::identity;
use super::workspaces::one;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::peers::find_workspace;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiResult, Body, Path};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::MapCheckoutRequest;
use klnode_api_types::peers::Workspace;
use klnode_crdt::ids::WorkspaceId;
use klnode_engine::{CheckoutCommand, Command};
use klnode_git::{RepositoryIdentity, RepositorySimilarity};
use klnode_store::checkouts::CheckoutRow;

/// Maps a checkout to a workspace: entries written there go to it by default. The mapping covers
/// all worktrees and clones of the repository, but no forks.
#[utoipa::path(post, path = "/v1/workspaces/{name}/checkouts", request_body = MapCheckoutRequest,
    responses((status = 200, body = Workspace)))]
pub(super) async fn map(
    State(service): State<Service>,
    caller: Caller,
    Path(name): Path<String>,
    Body(ask): Body<MapCheckoutRequest>,
) -> ApiResult<Workspace> {
    let folder = anchors::permitted_checkout(caller, Some(&ask.checkout))?.unwrap_or_default();
    let snapshot = service.snapshot()?;
    let id = find_workspace(&service.membership(&snapshot)?, &name)?;
    drop(snapshot);
    let working = service.clone();
    let acts = run_blocking(move |_| {
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
        Ok(vec![CheckoutCommand::Map(identity.key(), row)])
    });
    let acts = acts.await?;
    if acts.is_empty() {
        let message = format!("The checkout is not mapped to workspace `{name}`.");
        return Err(ApiError::new(ErrorKind::NotFound, message, None));
    }
    for act in acts {
        service.submit(caller, Command::Checkout(act)).await?;
    }
    one(service, id).await
}

impl Service {
    /// The commands that remove every mapping of a repository to a workspace.
    fn mapped_like(
        &self,
        id: WorkspaceId,
        identity: &RepositoryIdentity,
    ) -> Result<Vec<CheckoutCommand>, ApiError> {
        let rows = self.snapshot()?.checkouts()?.into_iter();
        let is_meant = |row: &CheckoutRow| {
            let like =
                row.identity.parse::<RepositoryIdentity>().map(|known| known.likeness(identity));
            row.workspace == id && like.is_ok_and(|like| like > RepositorySimilarity::Other)
        };
        let meant = rows.filter(|(_, row)| is_meant(row));
        Ok(meant.map(|(at, _)| CheckoutCommand::Unmap(at)).collect())
    }
}
