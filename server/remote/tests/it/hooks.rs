//! Webhooks, over real sockets.

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::{
    AccessControl, EndpointSettings, HookAnswer, Hosts, ListenSettings, Token, Tokens, hooks,
    protect, router,
};

use crate::raw::{Listener, exchange};

async fn listener() -> Listener {
    let settings = EndpointSettings::default();
    let called = hooks(&settings, |call| {
        let answer = match (call.name, call.signature(), call.token()) {
            ("ci", Some("sha256=00"), None) if call.body == b"body" => HookAnswer::Accepted,
            ("ci", None, Some("secret")) => HookAnswer::Accepted,
            ("ci", ..) => HookAnswer::Unauthorized,
            ("full", ..) => HookAnswer::Full,
            ("odd", ..) => HookAnswer::Invalid("the body is odd".to_owned()),
            _ => HookAnswer::Unknown,
        };
        std::future::ready(answer)
    });
    let routes = router(Server::new(Reference), &settings).merge(called);
    let tokens = Tokens::new(&Token::random().unwrap());
    let access = AccessControl::new(Hosts::loopback(), tokens);
    Listener::start(protect(routes, access), ListenSettings::default()).await
}

#[tokio::test]
async fn calls_need_no_token_and_are_judged_by_their_receiver() {
    let listener = listener().await;
    for (method, path, header, status, error) in [
        (
            "POST",
            "/hooks/ci",
            "X-Hub-Signature-256: sha256=00",
            202,
            "",
        ),
        ("POST", "/hooks/ci", "Authorization: Bearer secret", 202, ""),
        ("POST", "/hooks/ci", "X-Gitlab-Token: secret", 202, ""),
        (
            "POST",
            "/hooks/ci",
            "X-Gitlab-Token: other",
            401,
            "unauthorized",
        ),
        ("POST", "/hooks/none", "X-Other: 1", 404, "hook_not_found"),
        ("POST", "/hooks/%FF", "X-Other: 1", 404, "hook_not_found"),
        ("POST", "/hooks/full", "X-Other: 1", 503, "too_many_calls"),
        ("POST", "/hooks/odd", "X-Other: 1", 400, "the body is odd"),
        // Nothing else is open to all, and no other host or page may call.
        (
            "GET",
            "/hooks/ci",
            "X-Gitlab-Token: secret",
            401,
            "unauthorized",
        ),
        (
            "POST",
            "/acp",
            "X-Gitlab-Token: secret",
            401,
            "unauthorized",
        ),
        ("POST", "/hooks/ci", "Origin: https://evil.example", 403, ""),
    ] {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\
             Content-Length: 4\r\n\r\nbody"
        );
        let answer = exchange(listener.connect().await, &request).await;
        assert_eq!(
            answer.status, status,
            "{method} {path} {header}: {answer:?}"
        );
        assert!(answer.body.contains(error), "{answer:?}");
    }
}

#[tokio::test]
async fn a_body_is_bounded_before_anybody_knows_its_sender() {
    let listener = listener().await;
    let body = "x".repeat((1 << 20) + 1);
    let request = format!(
        "POST /hooks/ci HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         X-Gitlab-Token: secret\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(listener.connect().await, &request).await;
    assert_eq!(answer.status, 413, "{answer:?}");
}
