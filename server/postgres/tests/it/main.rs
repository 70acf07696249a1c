//! The store against a real PostgreSQL, which the tests start.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod contract;
mod costs;
mod doubt;
mod fencing;
mod leases;
mod outage;
mod proxy;
mod schema;
mod server;
mod tls;

use std::sync::Arc;

use acp_server::event::Batch;
use acp_server::store::{Commit, Lease, Store as _, StoreError};
use acp_server_postgres::PostgresStore;
use acp_store_tests::contract::audit;

/// Returns a commit of the events `first..first + count`.
fn events(first: u64, count: u64) -> Commit {
    let mut batch = Batch::new(first);
    for number in first..first + count {
        batch.push(&format!(r#"{{"n":{number}}}"#));
    }
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(batch));
    commit
}

async fn append(store: &PostgresStore, lease: &Lease, first: u64) -> Result<(), StoreError> {
    store.commit(lease, events(first, 1)).await
}

/// Returns the number of the last event of a session, which has all events up to it.
async fn last_event(store: &PostgresStore, session: &str) -> u64 {
    let identity = |text: &str| Some(text.to_owned());
    let audit = audit::session(store, &session.into(), identity, []).await;
    assert!(audit.is_clean(), "{:?}", audit.faults);
    audit.last
}
