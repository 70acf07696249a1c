//! `acp-server nodes`.

use std::io::Write;

use super::Failure;
use super::store::StoreArgs;
use super::usage::usage;

/// Writes the servers of a database: address, process, state, time since the last sign of life, open sessions.
///
/// # Errors
///
/// Wrong usage for a store that no servers share; those of the database and the output.
#[cfg(feature = "postgres")]
pub(super) async fn list(store: &StoreArgs, output: &mut impl Write) -> Result<(), Failure> {
    let Some(store) = store.open_shared().await? else {
        return no_nodes();
    };
    let listed = store.nodes().await;
    // Otherwise it looks like a node until its leases end.
    let closed = store.close().await;
    let nodes = listed?;
    let others = nodes.iter().filter(|node| !node.is_this_instance);
    writeln!(
        output,
        "{:<32} {:<20} {:>8} {:<6} {:>9} {:>8}",
        "ADDRESS", "HOST", "PID", "STATE", "SEEN", "SESSIONS"
    )?;
    for node in others {
        let text = |text: &Option<String>| {
            let text = text.as_deref().unwrap_or("-");
            acp_sdk::text::single_line(text)
        };
        let pid = node
            .pid
            .map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let state = if node.is_valid { "alive" } else { "gone" };
        let seen = format!("{} s ago", node.last_seen.as_secs());
        writeln!(
            output,
            "{:<32} {:<20} {pid:>8} {state:<6} {seen:>9} {:>8}",
            text(&node.address),
            text(&node.host),
            node.sessions
        )?;
    }
    Ok(closed?)
}

#[cfg(not(feature = "postgres"))]
pub(super) async fn list(_: &StoreArgs, _: &mut impl Write) -> Result<(), Failure> {
    no_nodes()
}

fn no_nodes() -> Result<(), Failure> {
    usage("only servers with a database have nodes: --store postgres://… or ACP_STORE")
}
