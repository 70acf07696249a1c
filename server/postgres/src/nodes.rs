//! The nodes that share a database, for people and metrics.

use std::time::Duration;

use acp_server::store::NodesSeen;
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::failure::Failure;
use crate::rows;

/// A node: an instance of the store that has not ended, or that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Unique in the database; rises with each registration.
    pub key: i64,
    /// Address at which other nodes reach it, if it was given one.
    pub address: Option<String>,
    /// Its name for people, if it was given one.
    pub name: Option<String>,
    /// The name of its machine.
    pub host: Option<String>,
    /// The id of its process.
    pub pid: Option<i64>,
    /// Time since it was registered.
    pub age: Duration,
    /// Time since it last renewed its leases.
    pub last_seen: Duration,
    /// Whether its leases are valid. If not, other nodes take its sessions over when they are asked
    /// for.
    pub is_valid: bool,
    /// Whether it is the instance that was asked.
    pub is_this_instance: bool,
    /// Sessions that it has leased.
    pub sessions: u64,
}

pub(crate) async fn list(database: &Database, key: Option<i64>) -> Result<Vec<NodeInfo>, Failure> {
    let found = database
        .read(
            "SELECT n.key, n.address, n.name, n.host, n.pid,
             (extract(epoch FROM clock_timestamp() - n.started_at) * 1000)::bigint,
             (extract(epoch FROM clock_timestamp() - n.heartbeat) * 1000)::bigint,
             n.expires > clock_timestamp(), coalesce(n.key = $1, false),
             (SELECT count(*) FROM @acp_sessions s WHERE s.owner = n.key)
         FROM @acp_nodes n ORDER BY n.key",
            &[(&key, Type::INT8)],
        )
        .await;
    let found = found?;
    let nodes = found.iter().map(|row| {
        Ok(NodeInfo {
            key: row.try_get(0)?,
            address: row.try_get(1)?,
            name: row.try_get(2)?,
            host: row.try_get(3)?,
            pid: row.try_get(4)?,
            age: rows::milliseconds(row.try_get(5)?),
            last_seen: rows::milliseconds(row.try_get(6)?),
            is_valid: row.try_get(7)?,
            is_this_instance: row.try_get(8)?,
            sessions: rows::unsigned(row.try_get(9)?)?,
        })
    });
    nodes.collect()
}

/// Returns what a node tells of all nodes.
pub(crate) fn seen(nodes: &[NodeInfo]) -> NodesSeen {
    let mut seen = NodesSeen::default();
    for node in nodes {
        if node.is_this_instance {
            seen.sessions = node.sessions;
        }
        match node.is_valid {
            true => {
                seen.alive += 1;
                seen.oldest_heartbeat = seen.oldest_heartbeat.max(node.last_seen);
            }
            false => seen.gone += 1,
        }
    }
    seen
}
