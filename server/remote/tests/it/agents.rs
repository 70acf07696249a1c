//! Several agents behind one set of endpoints.

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::{Agents, EndpointSettings, ListenSettings, ServedAgent, router};

use crate::raw::{Answer, Listener};

fn two() -> Agents {
    let agent = |name| ServedAgent::new(name, Server::new(Reference));
    Agents::new([agent("one"), agent("two")]).unwrap()
}

async fn post(listener: &Listener, path: &str, connection: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{connection}\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    listener.send(&request).await
}

const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}"#;

#[tokio::test]
async fn a_connection_belongs_to_its_agent() {
    let routes = router(two(), &EndpointSettings::default());
    let listener = Listener::start(routes, ListenSettings::default()).await;
    for (opened, used, status) in [
        ("/acp/two", "/acp/two", 202),
        ("/acp/two", "/acp", 404),
        ("/acp/two", "/acp/one", 404),
        // The first agent is the default.
        ("/acp", "/acp/one", 202),
        ("/acp/one", "/acp", 202),
    ] {
        let hello = post(&listener, opened, "", HELLO).await;
        let id = hello.header("acp-connection-id").unwrap();
        let connection = format!("Acp-Connection-Id: {id}\r\n");
        let answer = post(&listener, used, &connection, LIST).await;
        assert_eq!(answer.status, status, "{opened} {used}: {answer:?}");
    }
}

#[tokio::test]
async fn the_agents_share_the_places_of_connections() {
    let mut settings = EndpointSettings::default();
    settings.connections = 1;
    let listener = Listener::start(router(two(), &settings), ListenSettings::default()).await;
    assert_eq!(post(&listener, "/acp/one", "", HELLO).await.status, 200);
    assert_eq!(post(&listener, "/acp/two", "", HELLO).await.status, 503);
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_the_known_ones() {
    let listener = Listener::start(
        router(two(), &EndpointSettings::default()),
        ListenSettings::default(),
    )
    .await;
    for (name, shown) in [
        ("three", "three"),
        ("One", "One"),
        ("%0a", "\\n"),
        ("%ff", ""),
    ] {
        let answer = post(&listener, &format!("/acp/{name}"), "", HELLO).await;
        assert_eq!(answer.status, 404);
        let body = answer.json();
        assert_eq!(body["error"], "agent_not_found");
        let expected = format!("no agent has the name \"{shown}\". The names are: one, two");
        assert_eq!(body["message"], expected);
    }
}

/// One server is an agent of the name that it announces.
#[tokio::test]
async fn a_server_alone_has_a_path_too() {
    let server = Server::new(Reference);
    let name = server.info().implementation.name.clone();
    let listener = Listener::start(
        router(server, &EndpointSettings::default()),
        ListenSettings::default(),
    )
    .await;
    for (path, status) in [
        ("/acp", 200),
        (&*format!("/acp/{name}"), 200),
        ("/acp/x", 404),
    ] {
        let answer = post(&listener, path, "", HELLO).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
}
