//! The health check of the container in `docs/deploy`.

use std::net::TcpListener;
use std::process::{Command, Output};

use acp_reference_agent::Reference;
use acp_server_remote::{Token, Tokens};

use crate::http::Host;

/// Runs the health check with the server's port in place of that of the container.
async fn health_check(port: u16) -> Output {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/deploy/Dockerfile");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, command) = text.split_once("HEALTHCHECK CMD ").unwrap();
    let words: Vec<String> = serde_json::from_str(&command.replace("\\\n", "")).unwrap();
    assert!(words[2].contains("/5173;"), "{words:?}");
    let script = words[2].replace("/5173;", &format!("/{port};"));
    let run = move || Command::new(&words[0]).args([&words[1], &script]).output();
    tokio::task::spawn_blocking(run).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_health_check_succeeds_only_with_a_server() {
    let tokens = Tokens::new(&Token::random().unwrap());
    let host = Host::protected(Reference::server().build(), tokens).await;
    let checked = health_check(host.address.port()).await;
    assert!(checked.status.success(), "{checked:?}");

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let checked = health_check(port).await;
    assert!(!checked.status.success(), "{checked:?}");
}
