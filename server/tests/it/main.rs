//! The reference agent against a real client in memory, and its binary on real pipes.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod asking;
mod cancel;
mod capabilities;
mod claiming;
mod counting;
mod deciding;
mod dropped;
mod editor;
mod effects;
mod failures;
mod faults;
mod guards;
mod half_committed;
mod half_way;
mod handler;
mod hiccups;
mod initialize;
mod joins;
mod kept;
mod login;
mod once;
mod outside;
mod panics;
mod queued;
mod races;
mod raw;
mod retention;
mod sessions;
mod settings;
mod shared;
mod simulated;
mod spoken;
mod stress;
mod words;
