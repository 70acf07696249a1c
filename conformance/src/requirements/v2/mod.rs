//! The checks that exist in v2 only, or inspect messages that v1 does not have.
//!
//! All others serve both versions.

pub(super) mod arrays;
pub(super) mod authentication;
pub(super) mod background;
pub(super) mod cancellation;
mod git_patch;
pub(super) mod initialization;
pub(super) mod plan;
pub(super) mod prompt_lifecycle;
pub(super) mod sessions;
pub(super) mod tool_calls;
