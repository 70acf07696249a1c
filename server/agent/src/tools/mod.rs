//! Tools to start with. Each is a [`Tool`] of its own; [`files`] and [`all`] are sets.
//!
//! Files are read and written through the client, which has what the user has not saved, or on this machine
//! where [`LocalTools`](acp_server::LocalTools) allows that. `list`, `glob` and `grep` look at this machine,
//! inside of the session's directories.

mod ask;
mod edit;
mod file;
mod plan;
mod search;
mod shell;

pub use ask::ask;
pub use edit::edit;
pub(crate) use file::existing;
pub use file::{read, write};
pub use plan::plan;
pub use search::{glob, grep, list};
pub use shell::shell;

use serde_json::Value;

use crate::Tool;

/// Returns the tools for files: `read`, `write`, `edit`, `list`, `glob`, `grep`.
#[must_use]
pub fn files() -> Vec<Tool> {
    vec![read(), write(), edit(), list(), glob(), grep()]
}

/// Returns all tools of this module: those of [`files`], `shell`, `plan` and `ask`.
#[must_use]
pub fn all() -> Vec<Tool> {
    let mut tools = files();
    tools.extend([shell(), plan(), ask()]);
    tools
}

/// Returns a member of the arguments as text, for titles.
fn text_of(arguments: &Value, member: &str) -> String {
    arguments[member].as_str().unwrap_or_default().to_owned()
}

/// Returns the file that the arguments name.
fn path(arguments: &Value) -> Vec<String> {
    let path = arguments["path"].as_str();
    path.into_iter().map(str::to_owned).collect()
}
