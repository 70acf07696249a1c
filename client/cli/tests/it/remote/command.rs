//! `acp run --url`.

use std::process::Output;

use tokio::process::Command;

use crate::fake::{Server, within};

fn acp(args: &[&str]) -> Command {
    let mut command = super::acp();
    command.args(["run", "--deny-all", "hello"]).args(args);
    for variable in [
        "ACP_TOKEN",
        "NO_PROXY",
        "no_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(variable);
    }
    command
}

async fn ended(mut command: Command) -> Output {
    within(command.output()).await.unwrap()
}

#[tokio::test]
async fn the_token_comes_from_a_file_or_the_environment_and_is_not_shown() {
    let mut server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let url = server.url();
    let mut by_file = acp(&["--url", &url, "--token-file", file.to_str().unwrap()]);
    by_file.args(["--header", "X-Tenant: blue"]);
    let mut by_variable = acp(&["--url", &url, "--header", "X-Tenant:blue"]);
    by_variable.env("ACP_TOKEN", "s3cret");
    for command in [by_file, by_variable] {
        let running = tokio::spawn(ended(command));
        let post = server.next("POST initialize").await;
        assert_eq!(post.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(post.header("x-tenant"), Some("blue"));
        post.respond("401 Unauthorized", "", "wrong token").await;
        let output = running.await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{stderr}");
        assert!(
            stderr.contains("401 (wrong token); the token is missing or wrong"),
            "{stderr}"
        );
        assert!(!stderr.contains("s3cret"), "{stderr}");
    }
}

#[tokio::test]
async fn wrong_usage_is_told_before_anything_is_sent() {
    let mut server = Server::start().await;
    let url = server.url();
    for args in [
        &["--url", "host/acp"][..],
        &["--url", &url, "--token-file", "/nonexistent"],
        &["--url", &url, "--header", "s3cret"],
        &["--url", &url, "--header", "Host: x"],
        &["--url", &url, "--fingerprint", "12"],
        &["--url", &url, "--ca-file", "/nonexistent"],
        &["--url", &url, "--", "agent"],
    ] {
        let output = ended(acp(args)).await;
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(!stderr.contains("s3cret"), "{stderr}");
    }
    assert!(server.is_idle().await);
}

#[tokio::test]
async fn proxies_are_used_for_all_transports() {
    let mut server = Server::start().await;
    let proxy = format!("http://127.0.0.1:{}", server.port);
    for (url, seen) in [
        ("http://agent.invalid/acp", "POST http://agent.invalid/acp"),
        ("https://agent.invalid/acp", "CONNECT agent.invalid:443"),
        ("wss://agent.invalid/acp", "CONNECT agent.invalid:443"),
        ("ws://agent.invalid/acp", "GET http://agent.invalid/acp"),
    ] {
        let mut command = acp(&["--url", url]);
        command.env("HTTP_PROXY", &proxy).env("HTTPS_PROXY", &proxy);
        command.env("http_proxy", &proxy).env("https_proxy", &proxy);
        let running = tokio::spawn(ended(command));
        let request = server.next("").await;
        assert_eq!(request.line, seen, "{url}");
        request
            .respond("502 Bad Gateway", "", "no such agent")
            .await;
        assert_eq!(running.await.unwrap().status.code(), Some(3), "{url}");
    }
    // Excluded hosts are not reached through the proxy.
    let mut command = acp(&["--url", "http://agent.invalid/acp"]);
    command
        .env("http_proxy", &proxy)
        .env("NO_PROXY", "agent.invalid");
    assert_eq!(ended(command).await.status.code(), Some(3));
    assert!(server.is_idle().await);
}

/// The proxy stands for the way to another machine.
#[tokio::test]
async fn secrets_are_not_sent_to_another_machine_without_encryption() {
    let mut server = Server::start().await;
    let proxy = format!("http://127.0.0.1:{}", server.port);
    let to = |url: &str, args: &[&str]| {
        let mut command = acp(&["--url", url]);
        command.args(args);
        command.env("HTTP_PROXY", &proxy).env("http_proxy", &proxy);
        command
    };
    let header = ["--header", "X-Key: s3cret"];
    for (url, encrypted) in [
        ("http://agent.invalid/acp", "https://"),
        ("ws://agent.invalid/acp", "wss://"),
        ("http://127.0.0.1.agent.invalid/acp", "https://"),
        ("http://192.0.2.1/acp", "https://"),
    ] {
        let mut with_token = to(url, &[]);
        with_token.env("ACP_TOKEN", "s3cret");
        for (command, what) in [(with_token, "the token"), (to(url, &header), "the header")] {
            let output = ended(command).await;
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            for part in [what, url, encrypted, "--insecure"] {
                assert!(stderr.contains(part), "{stderr}, not {part}");
            }
            assert!(!stderr.contains("s3cret"), "{stderr}");
        }
    }
    assert!(server.is_idle().await);
    // Neither a secret alone nor an insecure URL alone is a reason, and the user may decide otherwise.
    for (url, args, sent) in [
        ("http://agent.invalid/acp", &[][..], None),
        (
            "http://agent.invalid/acp",
            &["--insecure"],
            Some("Bearer s3cret"),
        ),
        (
            "ws://agent.invalid/acp",
            &["--insecure"],
            Some("Bearer s3cret"),
        ),
    ] {
        let mut command = to(url, args);
        if let Some(token) = sent {
            command.env("ACP_TOKEN", token.strip_prefix("Bearer ").unwrap());
        }
        let running = tokio::spawn(ended(command));
        let request = server.next("").await;
        assert_eq!(request.header("authorization"), sent, "{url}");
        request
            .respond("502 Bad Gateway", "", "no such agent")
            .await;
        assert_eq!(running.await.unwrap().status.code(), Some(3), "{url}");
    }
}
