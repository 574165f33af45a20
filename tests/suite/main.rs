//! The one suite binary of the workspace: one link instead of many.

mod architecture;
mod crash;
mod forgetting;
mod full_disk;
mod golden;
mod laws;
mod lives;
mod process;
mod signatures;
mod store;
mod tidy;
mod writers;
