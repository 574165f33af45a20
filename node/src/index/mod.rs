//! What makes entries findable. Disposable: delete it and it is built again from the store.
//!
//! [`embed`] makes vectors of texts, [`vectors`] finds the nearest of them.

pub mod embed;
pub mod vectors;
