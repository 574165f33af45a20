//! Request and response types of the promotion ledger.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects a page of the promotion ledger.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PromotionsQuery {
    /// The most rows, from 1 to 1000. Default: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only rows after the one of this new entry, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A page of the promotion ledger, by the id of the new entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromotionLedger {
    /// The promotions that this node made.
    pub promotions: Vec<LedgerPromotion>,
    /// The id to continue after; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One promotion: an entry that was made from another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerPromotion {
    /// The id of the source entry.
    pub source: String,
    /// The citation code of the source entry; only its digits if this node no longer holds it.
    pub source_code: String,
    /// The id of the new entry.
    pub target: String,
    /// The citation code of the new entry.
    pub target_code: String,
    /// The memory of the new entry, `semantic` or `procedural`; absent if it was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_memory: Option<String>,
    /// The evidence that the new entry cited at its promotion, each item as KIND:REF.
    pub evidence: Vec<String>,
    /// `person` if the person's key signed the promotion, `caller` if a caller approved it with a
    /// reason, `none` if it needed no approval.
    pub approver: String,
    /// The person's key that signed the promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// The reason that the approver gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was promoted, in milliseconds since 1970.
    pub at: u64,
}
