//! The client with all kinds of agents: in memory, and as processes.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and unwrap says where"
)]
#![allow(unreachable_pub, reason = "nothing of a test is reachable")]
#![allow(missing_docs, reason = "tests are named after what they show")]

mod agent;
#[cfg(all(unix, feature = "blocking"))]
mod blocking;
mod child_sessions;
#[cfg(unix)]
mod continuing;
#[cfg(unix)]
mod executor;
mod external;
mod guard;
mod hooks;
mod late;
#[cfg(unix)]
#[path = "../../src/lifeline.rs"]
mod lifeline;
mod misbehaving;
mod permissions;
#[cfg(unix)]
mod process;
mod prompt_ids;
mod readers;
#[cfg(unix)]
mod restart;
#[cfg(all(unix, feature = "review"))]
mod review;
#[cfg(unix)]
pub mod script;
mod sessions;
mod steering;
mod subagents;
#[cfg(unix)]
mod terminals;
mod turns;
mod v2;
