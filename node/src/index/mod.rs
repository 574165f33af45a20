//! What makes entries findable. Disposable: delete it and it is built again from the store.
//!
//! So far the default embedder stands here; keyword and vector search, which use it, come next.

pub mod embed;
pub mod shares;
pub mod spelling;
pub mod words;
