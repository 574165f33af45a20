//! The one suite binary of the workspace: one link instead of many.

mod architecture;
mod laws;
mod lives;
mod tidy;
