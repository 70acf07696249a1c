//! A database that stops and starts again.

use std::time::Duration;

use acp_server::store::{SessionRecord, Store as _, StoreErrorKind};
use tokio::time::timeout;

use crate::proxy::Proxy;
use crate::server::{self, Server, options};
use crate::{append, last_event};

#[tokio::test]
async fn the_store_goes_on_when_the_database_is_back() {
    let Some(server) = Server::start() else {
        return;
    };
    let store = server.open(&options()).await;
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    append(&store, &lease, 1).await.unwrap();
    server.stop();
    for error in [
        append(&store, &lease, 2).await.unwrap_err(),
        store.find(&"s".into()).await.unwrap_err(),
        store.usage().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    }
    server.start_again();
    let back = timeout(Duration::from_secs(30), async {
        loop {
            match store.find(&"s".into()).await {
                Ok(found) => return found.unwrap(),
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
            }
        }
    });
    let record = back.await.expect("the store does not go on");
    assert_eq!(record.last_event, 1);
    append(&store, &lease, 2).await.unwrap();
    assert_eq!(last_event(&store, "s").await, 2);
}

/// The network drops everything: one operation notices, and the others do not have to.
#[tokio::test]
async fn a_connection_without_answers_is_replaced_with_all_others() {
    let Some(server) = server::shared() else {
        return;
    };
    let proxy = Proxy::start(server.socket()).await;
    let options = options().statement_timeout(Duration::from_secs(2));
    let store = options.open(&proxy.url()).await.unwrap();
    let id = "s".into();
    let find = || store.find(&id);
    let (a, b, c, d) = tokio::join!(find(), find(), find(), find());
    assert!(a.is_ok() && b.is_ok() && c.is_ok() && d.is_ok());
    proxy.stall();
    let error = find().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert_eq!(find().await.unwrap(), None);
}
