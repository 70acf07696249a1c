//! Who has a session: owners, takeovers, and writers that come too late.

use std::sync::Arc;

use acp_server::store::{Lease, SessionRecord, Store as _, StoreErrorKind};

use crate::server::{self, blocked, options, schema_of};
use crate::{append, events, last_event};

#[tokio::test]
async fn the_owner_of_a_session_is_known_to_all() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let first = server
        .open(&options.clone().address("http://a:7000").name("a"))
        .await;
    let second = server.open(&options).await;
    let id = "s".into();
    assert_eq!(first.owner(&id).await.unwrap(), None, "no session");
    let lease = first
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    let owner = first.owner(&id).await.unwrap().unwrap();
    assert!(owner.is_this_instance);
    let owner = second.owner(&id).await.unwrap().unwrap();
    assert!(!owner.is_this_instance);
    assert_eq!(owner.address.as_deref(), Some("http://a:7000"));
    let error = second.acquire(&id).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InUse);
    assert_eq!(error.owner(), Some("http://a:7000"));
    assert!(error.to_string().contains("http://a:7000"), "{error}");

    let nodes = second.nodes().await.unwrap();
    let shown: Vec<_> = nodes
        .iter()
        .map(|node| {
            (
                node.name.as_deref(),
                node.sessions,
                node.is_valid,
                node.is_this_instance,
            )
        })
        .collect();
    assert_eq!(shown, [(Some("a"), 1, true, false), (None, 0, true, true)]);
    assert_eq!(nodes[0].pid, Some(std::process::id().into()));
    first.release(&lease).await.unwrap();
    assert_eq!(second.owner(&id).await.unwrap(), None, "released");
}

#[tokio::test]
async fn closing_frees_all_sessions_at_once() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let (first, second) = (server.open(&options).await, server.open(&options).await);
    let lease = first
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    first.close().await.unwrap();
    let (_, taken) = second.acquire(&"s".into()).await.unwrap();
    assert!(taken.token > lease.token);
    let late = append(&first, &lease, 1).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::LeaseLost);
    let closed = first.acquire(&"s".into()).await.unwrap_err();
    assert_eq!(closed.kind(), StoreErrorKind::Unavailable);
    assert!(closed.to_string().contains("closed"), "{closed}");
    assert_eq!(second.nodes().await.unwrap().len(), 1);
}

/// A dropped store ends its leases in the background. Others of the process wait for that.
#[tokio::test]
async fn a_dropped_instance_is_waited_for() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let (first, second) = (server.open(&options).await, server.open(&options).await);
    first
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    // Its end takes time.
    let mut client = server.client().await;
    let lock = client.transaction().await.unwrap();
    let sql = format!("SELECT 1 FROM {}.acp_nodes FOR UPDATE", schema_of(&options));
    lock.batch_execute(&sql).await.unwrap();
    drop(first);
    let id = "s".into();
    let unlock = async {
        blocked(server, &schema_of(&options)).await;
        lock.commit().await.unwrap();
    };
    let (acquired, ()) = tokio::join!(second.acquire(&id), unlock);
    acquired.unwrap();
}

/// A node that does not know yet that it has expired writes while another one takes its sessions over.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_commit_comes_after_a_takeover() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let first = Arc::new(server.open(&options).await);
    let second = server.open(&options).await;
    expire(server, &schema_of(&options), &first).await;
    for round in 0..40 {
        let id = format!("s{round}");
        let lease = first.create(&SessionRecord::new(id.clone(), "/")).await;
        let lease = lease.unwrap();
        let writer = tokio::spawn({
            let first = first.clone();
            async move {
                let mut last = 0;
                loop {
                    match append(&first, &lease, last + 1).await {
                        Ok(()) => last += 1,
                        Err(error) => return (last, error),
                    }
                }
            }
        });
        // Some commits are on their way.
        let session = id.as_str().into();
        while second.find(&session).await.unwrap().unwrap().last_event < round % 4 {}
        let (record, lease) = second.acquire(&session).await.unwrap();
        let (written, error) = writer.await.unwrap();
        assert_eq!(error.kind(), StoreErrorKind::LeaseLost, "{error}");
        assert_eq!(
            written, record.last_event,
            "acknowledged after the takeover"
        );
        append(&second, &lease, written + 1).await.unwrap();
        assert_eq!(last_event(&second, &id).await, written + 1);
    }
}

/// A node that has judged the owner, and waits for the row, is not faster than one that has leased it meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_leased_meanwhile_is_in_use() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let schema = schema_of(&options);
    let (gone, here) = (server.open(&options).await, server.open(&options).await);
    let lease = gone.create(&SessionRecord::new("s", "/")).await.unwrap();
    expire(server, &schema, &gone).await;
    let mut client = server.client().await;
    let lock = client.transaction().await.unwrap();
    let sql = format!("SELECT 1 FROM {schema}.acp_sessions WHERE id = 's' FOR UPDATE");
    lock.batch_execute(&sql).await.unwrap();
    // A node that registers while the other one waits.
    let lease_it = async {
        blocked(server, &schema).await;
        let sql = format!(
            "WITH node AS (
                 INSERT INTO {schema}.acp_nodes (address, started_at, heartbeat, expires)
                 VALUES ('http://faster', now(), now(), now() + interval '1 day') RETURNING key
             )
             UPDATE {schema}.acp_sessions SET token = nextval('{schema}.acp_tokens'),
                 owner = (SELECT key FROM node)"
        );
        lock.batch_execute(&sql).await.unwrap();
        lock.commit().await.unwrap();
    };
    let id = lease.session.clone();
    let (acquired, ()) = tokio::join!(here.acquire(&id), lease_it);
    let error = acquired.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InUse, "{error}");
    assert!(error.to_string().contains("http://faster"), "{error}");
}

/// Two nodes want a session of a third one that has ended: one of them gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_several_takes_a_session_over() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let gone = server.open(&options).await;
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(Arc::new(server.open(&options).await));
    }
    for round in 0..20 {
        let id = format!("s{round}");
        let record = SessionRecord::new(id.clone(), "/");
        if round == 0 {
            gone.create(&record).await.unwrap();
            gone.close().await.unwrap();
        } else {
            let lease = stores[0].create(&record).await.unwrap();
            stores[0].release(&lease).await.unwrap();
        }
        let acquired = stores.iter().map(|store| {
            let (store, id) = (store.clone(), id.as_str().into());
            tokio::spawn(async move { store.acquire(&id).await })
        });
        let mut winners = 0;
        for acquired in acquired.collect::<Vec<_>>() {
            match acquired.await.unwrap() {
                Ok(_) => winners += 1,
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::InUse, "{error}"),
            }
        }
        assert_eq!(winners, 1, "of session {id}");
    }
}

/// A node whose heartbeat is old may write as long as nobody took the session.
#[tokio::test]
async fn the_latest_token_writes_whatever_the_heartbeat() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let store = server.open(&options).await;
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    expire(server, &schema_of(&options), &store).await;
    append(&store, &lease, 1).await.unwrap();
    assert_eq!(store.owner(&"s".into()).await.unwrap(), None);
}

/// A node that was killed and started again does not wait for its own leases, and other nodes pass it nothing
/// that it cannot open.
#[tokio::test]
async fn a_node_that_is_started_again_replaces_the_one_at_its_address() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options().address("http://a:7000");
    let first = server.open(&options).await;
    let created = first.create(&SessionRecord::new("s", "/work")).await;
    let lease = created.unwrap();
    let second = server.open(&options).await;
    second.acquire(&"s".into()).await.unwrap();
    let late = append(&first, &lease, 1).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::LeaseLost, "{late}");
    let elsewhere = options.clone().address("http://b:7000");
    let third = server.open(&elsewhere).await;
    let refused = third.acquire(&"s".into()).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::InUse, "{refused}");
}

#[tokio::test]
async fn the_numbers_of_nodes_are_those_of_all() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let (first, second) = (server.open(&options).await, server.open(&options).await);
    for id in ["released", "silent"] {
        let created = first.create(&SessionRecord::new(id, "/work")).await;
        let lease = created.unwrap();
        if id == "released" {
            first.release(&lease).await.unwrap();
        }
    }
    second.acquire(&"released".into()).await.unwrap();
    let numbers = second.node_statistics().await.unwrap().unwrap();
    let nodes = numbers.nodes.unwrap();
    assert_eq!((numbers.takeovers, numbers.leases_lost), (0, 0));
    assert_eq!((nodes.sessions, nodes.alive, nodes.gone), (1, 2, 0));

    expire(server, &schema_of(&options), &first).await;
    second.acquire(&"silent".into()).await.unwrap();
    let numbers = second.node_statistics().await.unwrap().unwrap();
    let nodes = numbers.nodes.unwrap();
    assert_eq!(numbers.takeovers, 1);
    assert_eq!((nodes.sessions, nodes.alive, nodes.gone), (2, 1, 1));
}

/// Sets the turn that runs in a session.
async fn begin_turn(store: &acp_server_postgres::PostgresStore, lease: &Lease, turn: Option<u64>) {
    let mut commit = events(1, 1);
    commit.change.running_turn = Some(turn);
    store.commit(lease, commit).await.unwrap();
}

#[tokio::test]
async fn sessions_whose_node_was_killed_in_a_turn_are_found_without_reading_the_others() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let (first, second) = (server.open(&options).await, server.open(&options).await);
    for (store, id, turn) in [
        (&first, "killed", Some(1)),
        (&first, "idle", None),
        (&second, "alive", Some(1)),
    ] {
        let created = store.create(&SessionRecord::new(id, "/work")).await;
        begin_turn(store, &created.unwrap(), turn).await;
    }
    assert_eq!(second.abandoned(10).await.unwrap(), Some(vec![]));
    let schema = schema_of(&options);
    expire(server, &schema, &first).await;
    // A node that ended long ago had these.
    let client = server.client().await;
    let copies = format!(
        "INSERT INTO {schema}.acp_sessions (id, cwd, additional_directories, created_at, updated_at,
             settings, last_event, oldest_event, bytes, removed, token, owner)
         SELECT 'copy-' || n, cwd, additional_directories, created_at, updated_at,
             settings, 0, 1, 0, 0, 0, 1000000 FROM {schema}.acp_sessions, generate_series(1, 10000) n
         WHERE id = 'idle';
         ANALYZE {schema}.acp_sessions"
    );
    client.batch_execute(&copies).await.unwrap();
    let before = second.statements();
    assert_eq!(
        second.abandoned(10).await.unwrap(),
        Some(vec!["killed".into()])
    );
    assert_eq!(second.statements() - before, 1);
    let plan = format!(
        "EXPLAIN SELECT s.id FROM {schema}.acp_sessions s WHERE s.running_turn IS NOT NULL"
    );
    let plan = client.query(&plan, &[]).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("acp_sessions_running"), "{plan}");

    // Whoever opens it has it.
    let (_, lease) = second.acquire(&"killed".into()).await.unwrap();
    assert_eq!(second.abandoned(10).await.unwrap(), Some(vec![]));
    second.release(&lease).await.unwrap();
    assert_eq!(second.abandoned(0).await.unwrap(), Some(vec![]));
    assert_eq!(
        second.abandoned(10).await.unwrap(),
        Some(vec!["killed".into()])
    );
}

/// Makes a node look as if it had not renewed its leases for long.
async fn expire(server: &server::Server, schema: &str, store: &acp_server_postgres::PostgresStore) {
    let nodes = store.nodes().await.unwrap();
    let node = nodes.iter().find(|node| node.is_this_instance).unwrap();
    let sql = format!(
        "UPDATE {schema}.acp_nodes SET expires = clock_timestamp() - interval '1 second' WHERE key = $1"
    );
    let client = server.client().await;
    assert_eq!(client.execute(&sql, &[&node.key]).await.unwrap(), 1);
}
