//! Tests of the stores: the contract, faults, limits, and what a killed process leaves.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too")]

#[cfg(feature = "sqlite")]
mod files;
#[cfg(all(feature = "sqlite", target_os = "linux"))]
mod full_disk;
#[cfg(feature = "sqlite")]
mod kill;
mod listed;
mod logged;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod versions;
