//! The one suite binary of the workspace: one link instead of many.

mod architecture;
mod crash;
mod full_disk;
mod laws;
mod lives;
mod tidy;
mod writers;
