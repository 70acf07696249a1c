//! Sessions that a server leases before it opens them.

use std::sync::Arc;
use std::time::Duration;

use acp_reference_agent::Reference;
use acp_sdk::v1::ContentBlock;
use acp_server::Server;
use acp_server::store::{MemoryStore, SessionRecord, Store, StoreErrorKind};

async fn server() -> (Server, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::new());
    let created = store.create(&SessionRecord::new("s", "/w")).await;
    store.release(&created.unwrap()).await.unwrap();
    let server = Server::builder(Reference).store(store.clone()).build();
    (server, store)
}

async fn is_leased(store: &MemoryStore) -> bool {
    match store.acquire_unused(&"s".into()).await {
        Ok((_, lease)) => {
            store.release(&lease).await.unwrap();
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), StoreErrorKind::InUse, "{error}");
            true
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claimed_session_that_nobody_opens_is_free_after_10_s() {
    let (server, store) = server().await;
    server.claim_session(&"s".into()).await.unwrap();
    assert!(is_leased(&store).await);
    tokio::time::sleep(Duration::from_millis(9_900)).await;
    assert!(is_leased(&store).await);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!is_leased(&store).await);
}

#[tokio::test(start_paused = true)]
async fn a_claimed_session_stays_leased_once_it_is_open() {
    let (server, store) = server().await;
    let id = "s".into();
    server.claim_session(&id).await.unwrap();
    let session = server.session(&id).await.unwrap();
    // It is open, so this does nothing: a further lease would end that of the session.
    server.claim_session(&id).await.unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert!(is_leased(&store).await);
    session
        .prompt([ContentBlock::from("hello")])
        .unwrap()
        .stop_reason()
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_shuts_down_releases_its_claims() {
    let (server, store) = server().await;
    server.claim_session(&"s".into()).await.unwrap();
    server.shutdown().await;
    assert!(!is_leased(&store).await);
    server.claim_session(&"s".into()).await.unwrap_err();
}
