//! Numbers of nodes for a monitoring system.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::shared::{Node, SharedStore};

/// Asserts that the metrics of a node have these lines.
async fn expect(node: &Node, lines: &[&str]) {
    let (status, text) = node.rest("GET", "/metrics", "").await;
    assert_eq!(status, 200, "{text}");
    for line in lines {
        let line = format!("acp_server_{line}");
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_has_the_metrics_of_nodes() {
    let shared = Arc::<SharedStore>::default();
    let node = Node::start(&shared).await;
    let (_, text) = node.rest("GET", "/metrics", "").await;
    let types = text.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE acp_server_")?.split_once(' ')?;
        Some(format!(
            "{name}{}",
            if kind == "counter" { "_total" } else { "" }
        ))
    });
    let of_nodes = |name: &String| name.starts_with("node");
    let existing: BTreeSet<_> = types.filter(of_nodes).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let document = std::fs::read_to_string(path).unwrap();
    let names = document.split("`acp_server_").skip(1);
    let names = names.map(|name| name.split(['`', '{']).next().unwrap().to_owned());
    let documented: BTreeSet<_> = names.filter(of_nodes).collect();
    assert_eq!(documented, existing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_the_numbers_of_nodes() {
    let shared = Arc::<SharedStore>::default();
    let (mut first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let session = here.new_session("/work").await.unwrap();
    let path = format!("/sessions/{}", session.id());
    expect(&second, &["node_requests_total 0", "node_failures_total 0"]).await;
    let (status, _) = second.rest("GET", &path, "").await;
    assert_eq!(status, 200);
    let there = second.client().await;
    let id = session.id().clone();
    there.load_session(id, "/work").await.unwrap();
    expect(&second, &["node_requests_total 2", "node_failures_total 0"]).await;

    first.cut().await;
    let (status, _) = second.rest("GET", &path, "").await;
    assert_eq!(status, 503);
    expect(
        &second,
        &[
            "node_requests_total 3",
            r#"nodes{state="alive"} 2"#,
            r#"nodes{state="gone"} 0"#,
            "node_sessions 3",
            "node_takeovers_total 7",
            "node_leases_lost_total 2",
            "node_renewal_age_seconds 1.5",
            "node_oldest_heartbeat_seconds 2.5",
        ],
    )
    .await;
    let (_, text) = second.rest("GET", "/metrics", "").await;
    // The connection of the client that has loaded the session failed, too.
    let failures = text
        .lines()
        .find_map(|line| line.strip_prefix("acp_server_node_failures_total "));
    assert!(failures.is_some_and(|count| count != "0"), "{text}");
}
