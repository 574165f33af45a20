//! `GET /v1/settings`: the settings with which this node was started, each with its origin.

use crate::extractors_and_replies::ApiReply;
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{NodeSetting, NodeSettings};
use klnode_config::SettingReport;

/// Lists the settings with which the node was started, each with its origin. `klnode config` shows
/// those of a node that would start now.
#[utoipa::path(get, path = "/v1/settings", responses((status = 200, body = NodeSettings)))]
pub(super) async fn list(State(service): State<Service>) -> ApiReply<NodeSettings> {
    ApiReply(NodeSettings { settings: service.settings.iter().map(setting).collect() })
}

fn setting(report: &SettingReport) -> NodeSetting {
    let SettingReport { key, value, origin, default, comment, variable } = report.clone();
    NodeSetting { key, value, default, origin: origin.to_string(), variable, comment }
}
