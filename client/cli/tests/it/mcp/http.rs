//! `acp mcp --http`.

use std::process::Stdio;

use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::agent::within;
use crate::host::{Connected, Host, call, texts};
use crate::script;

const TOKEN: &str = "a-token-that-nobody-guesses";

/// Starts the server, and returns its URL. Its standard error is piped.
async fn start(args: &[&str], token: Option<&str>) -> (Child, String) {
    let agent =
        "start; while prompt; do say \"$$\"; end end_turn; answer '{\"sessionId\":\"s\"}'; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
    command.args(["mcp", "--http", "127.0.0.1:0"]).args(args);
    command.args(["--", "sh", "-c", &script::script(agent)]);
    command
        .env_remove("ACP_MCP_TOKEN")
        .envs(token.map(|token| ("ACP_MCP_TOKEN", token)));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    within(stdout.read_line(&mut line)).await.unwrap();
    (child, line.trim().to_owned())
}

async fn connect(url: &str, token: Option<&str>) -> Option<Connected> {
    // Not used without TLS, but the client requires it; another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    if let Some(token) = token {
        config = config.auth_header(token);
    }
    let transport = StreamableHttpClientTransport::from_config(config);
    within(Host::default().serve(transport)).await.ok()
}

/// Posts `initialize` with these headers, and returns the status.
async fn status(url: &str, headers: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let (address, path) = address.split_once('/').unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let request = format!(
        "POST /{path} HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    within(socket.read_exact(&mut head)).await.unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[tokio::test]
async fn several_hosts_are_served() {
    // A token of the environment is not required either.
    let (_server, url) = start(&["--no-token", "--name", "worker"], Some(TOKEN)).await;
    assert!(
        url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"),
        "{url}"
    );
    let mut processes = Vec::new();
    for _ in 0..2 {
        let host = connect(&url, None).await.unwrap();
        let tools = within(host.list_all_tools()).await.unwrap();
        assert_eq!(tools[0].name, "worker");
        let result = call(&host, "hi").await.unwrap();
        processes.push(texts(&result)[0].to_owned());
        within(host.cancel()).await.unwrap();
    }
    processes.dedup();
    assert_eq!(processes.len(), 1, "they share the agent: {processes:?}");
}

#[tokio::test]
async fn pages_and_strangers_are_refused() {
    let (_server, url) = start(&["--http-host", "box.example"], Some(TOKEN)).await;
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    for (headers, expected) in [
        (format!("Host: localhost\r\n{right}"), "200"),
        (format!("Host: box.example\r\n{right}"), "200"),
        ("Host: localhost\r\n".to_owned(), "401"),
        (
            format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}x\r\n"),
            "401",
        ),
        (
            format!("Host: localhost\r\nAuthorization: Basic {TOKEN}\r\n"),
            "401",
        ),
        (format!("Host: evil.example\r\n{right}"), "403"),
        (
            format!("Host: localhost\r\nOrigin: https://evil.example\r\n{right}"),
            "403",
        ),
    ] {
        assert_eq!(status(&url, &headers).await, expected, "{headers}");
    }
    let elsewhere = url.replace("/mcp", "/");
    assert_eq!(
        status(&elsewhere, &format!("Host: localhost\r\n{right}")).await,
        "404"
    );
    assert!(connect(&url, None).await.is_none());
    let host = connect(&url, Some(TOKEN)).await.unwrap();
    assert_eq!(call(&host, "hi").await.unwrap().is_error, Some(false));
    within(host.cancel()).await.unwrap();
}

/// Returns the token that the server has made and printed on standard error.
async fn made_token(server: &mut Child) -> String {
    let mut line = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    within(stderr.read_line(&mut line)).await.unwrap();
    let (_, token) = line.split_once("Bearer ").expect(&line);
    token.split('`').next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn without_a_token_one_is_made_and_printed() {
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let (mut server, url) = start(&[], None).await;
        assert_eq!(status(&url, "Host: localhost\r\n").await, "401");
        let token = made_token(&mut server).await;
        assert!(token.len() >= 32, "{token}");
        let right = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
        assert_eq!(status(&url, &right).await, "200");
        let host = connect(&url, Some(&token)).await.unwrap();
        assert_eq!(call(&host, "hi").await.unwrap().is_error, Some(false));
        within(host.cancel()).await.unwrap();
        tokens.push(token);
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() {
    let short = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(short.path(), "short\n").unwrap();
    let short = short.path().to_str().unwrap();
    for (args, reason) in [
        (&["--http", "0.0.0.0:0"][..], "so needs a token"),
        (&["--http", "0.0.0.0:0", "--no-token"], "so needs a token"),
        (&["--no-token"], "--http <ADDRESS>"),
        (
            &[
                "--http",
                "127.0.0.1:0",
                "--no-token",
                "--http-token-file",
                short,
            ],
            "cannot be used with",
        ),
        (
            &["--http", "127.0.0.1:0", "--http-token-file", short],
            "at least 16",
        ),
        (
            &["--http", "127.0.0.1:0", "--http-token-file", "/nonexistent"],
            "no such file",
        ),
        (
            &["--http", "192.0.2.1:1", "--http-token-file", "Cargo.toml"],
            "cannot use the token",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
        command
            .arg("mcp")
            .args(args)
            .args(["--", "sh"])
            .env_remove("ACP_MCP_TOKEN");
        let output = within(command.output()).await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
}
