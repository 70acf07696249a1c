//! Each recipe does what its page promises, and each page has the text of its recipe.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(unreachable_pub, reason = "nothing of a test is reachable")]

mod agents;
mod clients;
mod hosts;
mod migration;
mod pages;
mod proxies;
#[path = "../../../../client/tests/it/script.rs"]
mod script;
mod support;
mod testing;
