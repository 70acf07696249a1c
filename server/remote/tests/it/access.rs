//! Hosts, origins, tokens, tickets and rates, over real sockets.

use acp_reference_agent::Reference;
use acp_sdk::v1::SessionId;
use acp_server::Server;
use acp_server_remote::{AccessControl, Hosts, Token, Tokens, protect, require_full, router};
use acp_server_remote::{EndpointSettings, ListenSettings};

use crate::raw::{Listener, who};

const UNAUTHORIZED: &str = r#"{"error":"unauthorized","message":"the token is missing or not valid; send Authorization: Bearer TOKEN"}"#;

fn hosts() -> Hosts {
    Hosts::loopback()
        .allow("agents.example".parse().unwrap())
        .allow("192.0.2.1:80".parse().unwrap())
        .allow_origin("https://app.example".parse().unwrap())
        .allow_origin("vscode-webview://panel".parse().unwrap())
}

fn bearer(token: &Token) -> String {
    format!("Authorization: Bearer {}", token.secret())
}

#[tokio::test]
async fn hosts_that_are_not_allowed_are_refused_on_every_method_and_path() {
    let listener = Listener::open(hosts()).await;
    for host in [
        "localhost",
        "LOCALHOST:1",
        "localhost.",
        "127.0.0.1:5173",
        "127.9.9.9",
        "[::1]",
        "[::1]:80",
        "[0:0:0:0:0:0:0:1]:80",
        "[::ffff:127.0.0.1]",
        "agents.example",
        "Agents.Example.:8443",
        "192.0.2.1:80",
    ] {
        let answer = listener.get("/who", &[&format!("Host: {host}")]).await;
        assert_eq!((answer.status, &*answer.body), (200, "Full"), "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "192.0.2.1",
        "192.0.2.1:81",
        "0.0.0.0",
        "[::]",
        "127.1",
        "2130706433",
        "evil.example.",
    ] {
        let answer = listener.get("/who", &[&format!("Host: {host}")]).await;
        assert_eq!(answer.status, 403, "{host}");
        assert_eq!(answer.json()["error"], "forbidden_host");
        assert!(answer.json()["message"].is_string());
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    for method in ["GET", "POST", "DELETE", "OPTIONS", "PUT", "HEAD", "BREW"] {
        for path in ["/who", "/healthz", "/nothing"] {
            let answer = listener
                .request(method, path, &["Host: evil.example"])
                .await;
            assert_eq!(answer.status, 403, "{method} {path}");
        }
    }
    let upgrade = [
        "Host: evil.example",
        "Connection: Upgrade",
        "Upgrade: websocket",
    ];
    assert_eq!(listener.get("/who", &upgrade).await.status, 403);
}

#[tokio::test]
async fn a_missing_doubled_malformed_or_contradictory_host_is_a_bad_request() {
    let listener = Listener::open(hosts()).await;
    for head in [
        "GET /who HTTP/1.1",
        "GET /who HTTP/1.0",
        "GET /who HTTP/1.1\r\nHost:",
        "GET /who HTTP/1.1\r\nHost: localhost\r\nHost: localhost",
        "GET /who HTTP/1.1\r\nHost: localhost, localhost",
        "GET /who HTTP/1.1\r\nHost: user@localhost",
        "GET /who HTTP/1.1\r\nHost: localhost..",
        "GET /who HTTP/1.1\r\nHost: ::1",
        "GET /who HTTP/1.1\r\nHost: localhost:99999",
        "GET /who HTTP/1.1\r\nHost: l\u{f6}calhost",
        "GET http://localhost/who HTTP/1.1",
        "GET http://evil.example/who HTTP/1.1\r\nHost: localhost",
        "GET http://localhost/who HTTP/1.1\r\nHost: evil.example",
        "GET http://user@localhost/who HTTP/1.1\r\nHost: localhost",
    ] {
        let answer = listener
            .send(&format!("{head}\r\nConnection: close\r\n\r\n"))
            .await;
        assert_eq!(answer.status, 400, "{head:?}");
        assert_eq!(answer.json()["error"], "invalid_host", "{head:?}");
    }
    let absolute =
        "GET http://LOCALHOST./who HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(listener.send(absolute).await.status, 200);
    let absolute = "GET http://evil.example/who HTTP/1.1\r\nHost: evil.example\r\n\
                    Connection: close\r\n\r\n";
    assert_eq!(listener.send(absolute).await.status, 403);
}

#[tokio::test]
async fn foreign_origins_are_refused_and_listed_ones_may_read_the_answer() {
    let listener = Listener::open(hosts()).await;
    let port = listener.address.port();
    let own = format!("Origin: http://localhost:{port}");
    let answer = listener.get("/who", &[&own]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    for origin in [
        "https://app.example",
        "https://APP.example:443",
        "vscode-webview://panel",
    ] {
        let answer = listener.get("/who", &[&format!("Origin: {origin}")]).await;
        assert_eq!(answer.status, 200, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        assert_eq!(answer.header("vary"), Some("Origin"));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("Acp-Connection-Id") && exposed.contains("Acp-Session-Id"));
    }
    for origin in [
        "https://evil.example",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.example",
        "http://localhost",
        "http://127.0.0.1:{port}",
        "null",
        "",
        "https://app.example/",
        "https://app.example https://evil.example",
    ] {
        let origin = origin.replace("{port}", &port.to_string());
        for method in ["GET", "POST", "OPTIONS"] {
            let header = format!("Origin: {origin}");
            let wish = "Access-Control-Request-Method: POST";
            let answer = listener.request(method, "/who", &[&header, wish]).await;
            assert_eq!(answer.status, 403, "{method} {origin:?}");
            assert_eq!(answer.json()["error"], "forbidden_origin");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let two = [&*own, "Origin: https://app.example"];
    assert_eq!(listener.get("/who", &two).await.status, 403);
}

#[tokio::test]
async fn a_preflight_request_of_a_listed_origin_needs_no_token() {
    let master = Token::random().unwrap();
    let tokens = Tokens::new(&master);
    let control = AccessControl::new(hosts(), tokens.clone());
    let listener = Listener::protected(control, tokens).await;
    let origin = "Origin: https://app.example";
    let wish = "Access-Control-Request-Method: POST";
    let answer = listener.request("OPTIONS", "/who", &[origin, wish]).await;
    assert_eq!(answer.status, 204);
    let allowed = answer.header("access-control-allow-headers").unwrap();
    for name in [
        "Authorization",
        "Content-Type",
        "Last-Event-ID",
        "Acp-Connection-Id",
        "Acp-Session-Id",
        "Acp-Protocol-Version",
    ] {
        assert!(allowed.contains(name), "{name} in {allowed}");
    }
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    // The page can read why it was refused; other OPTIONS requests need a token.
    let refused = listener.request("OPTIONS", "/who", &[origin]).await;
    assert_eq!((refused.status, &*refused.body), (401, UNAUTHORIZED));
    assert!(refused.header("access-control-allow-origin").is_some());
    assert_eq!(
        listener.request("OPTIONS", "/who", &[wish]).await.status,
        401
    );
}

#[tokio::test]
async fn each_token_opens_what_it_should_and_others_nothing() {
    let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&reader);
    let control = AccessControl::new(hosts(), tokens.clone());
    let listener = Listener::protected(control, tokens.clone()).await;
    let first = tokens.issue(&SessionId::from("one")).unwrap();
    for (token, access) in [
        (&master, "Full"),
        (&reader, "ReadOnly"),
        (&first, "Session"),
    ] {
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let header = format!("Authorization: {scheme} {}", token.secret());
            let answer = listener.get("/who", &[&header]).await;
            assert_eq!(answer.status, 200);
            assert!(answer.body.starts_with(access), "{access}: {}", answer.body);
        }
    }
    let second = tokens.issue(&SessionId::from("one")).unwrap();
    assert_eq!(listener.get("/who", &[&bearer(&second)]).await.status, 200);
    assert_eq!(
        listener.get("/who", &[&bearer(&first)]).await.status,
        401,
        "rotated"
    );

    let basic = bearer(&master).replace("Bearer", "Basic");
    let longer = bearer(&master) + "0";
    let doubled = bearer(&master);
    for headers in [
        vec![],
        vec!["Authorization: Bearer"],
        vec!["Authorization: Bearer 0000000000000000"],
        vec![&*basic],
        vec![&*longer],
        vec![&*doubled, &*doubled],
    ] {
        for path in [
            "/who",
            "/nothing",
            "/ticket",
            "/healthz/",
            "/healthz/../who",
        ] {
            let answer = listener.get(path, &headers).await;
            assert_eq!(
                (answer.status, &*answer.body),
                (401, UNAUTHORIZED),
                "{path} {headers:?}"
            );
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.header("content-type"), Some("application/json"));
        }
    }
    assert_eq!(listener.get("/healthz", &[]).await.body, "healthy");
    assert_eq!(listener.request("POST", "/healthz", &[]).await.status, 401);
}

#[tokio::test]
async fn a_ticket_has_the_rights_of_its_token_and_works_once() {
    let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&reader);
    let control = AccessControl::new(hosts(), tokens.clone());
    let listener = Listener::protected(control, tokens).await;
    for (token, access) in [(&master, "Full"), (&reader, "ReadOnly")] {
        let answer = listener.request("POST", "/ticket", &[&bearer(token)]).await;
        assert_eq!(answer.status, 201);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.json()["expires_in"], 60);
        let ticket = answer.json()["ticket"].as_str().unwrap().to_owned();

        let with_header = format!("Authorization: Bearer {ticket}");
        assert_eq!(
            listener.get("/who", &[&with_header]).await.status,
            401,
            "no token"
        );
        let target = format!("/who?a=1&ticket={ticket}");
        let answer = listener.get(&target, &[]).await;
        assert_eq!((answer.status, &*answer.body), (200, access));
        let answer = listener.get(&target, &[]).await;
        assert_eq!(
            (answer.status, &*answer.body),
            (401, UNAUTHORIZED),
            "used twice"
        );
    }
    assert_eq!(listener.get("/who?ticket=", &[]).await.status, 401);
    assert_eq!(listener.request("POST", "/ticket", &[]).await.status, 401);
    let as_ticket = format!("/who?ticket={}", master.secret());
    assert_eq!(
        listener.get(&as_ticket, &[]).await.status,
        401,
        "tokens stay out of URLs"
    );
}

#[tokio::test]
async fn too_many_requests_of_a_token_are_refused_and_those_of_others_are_not() {
    let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&reader);
    let control = AccessControl::new(hosts(), tokens.clone()).requests_per_second(1);
    let listener = Listener::protected(control, tokens).await;
    let mut last = 200;
    for _ in 0..50 {
        let answer = listener.get("/who", &[&bearer(&master)]).await;
        last = answer.status;
        if last == 429 {
            assert_eq!(answer.header("retry-after"), Some("1"));
            assert_eq!(answer.json()["error"], "too_many_requests");
            break;
        }
    }
    assert_eq!(last, 429);
    assert_eq!(listener.get("/who", &[&bearer(&reader)]).await.status, 200);
    // Guesses and what needs no token are counted by address.
    let mut refused = 0;
    for _ in 0..50 {
        refused = listener
            .get("/who", &["Authorization: Bearer wrong"])
            .await
            .status;
        if refused == 429 {
            break;
        }
        assert_eq!(refused, 401);
    }
    assert_eq!(refused, 429);
    assert_eq!(listener.get("/healthz", &[]).await.status, 429);
    assert_eq!(listener.get("/", &[]).await.status, 429);
}

#[tokio::test]
async fn routes_can_require_full_access() {
    let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&reader);
    let control = AccessControl::new(hosts(), tokens);
    let router = protect(require_full(who()), control);
    let listener = Listener::start(router, ListenSettings::default()).await;
    assert_eq!(listener.get("/who", &[&bearer(&master)]).await.status, 200);
    let refused = listener.get("/who", &[&bearer(&reader)]).await;
    assert_eq!(
        (refused.status, refused.json()["error"].as_str()),
        (403, Some("forbidden"))
    );
}

#[tokio::test]
async fn health_is_exact_and_needs_no_token() {
    let tokens = Tokens::new(&Token::random().unwrap());
    let routes = router(Server::new(Reference), &EndpointSettings::default());
    let router = protect(routes, AccessControl::new(Hosts::loopback(), tokens));
    let listener = Listener::start(router, ListenSettings::default()).await;
    let answer = listener.get("/healthz", &[]).await;
    let health = answer.json();
    assert_eq!((answer.status, &health["status"]), (200, &"ok".into()));
    assert!(health["version"].is_string(), "{health}");
    let started = health["started_at"].as_str().unwrap();
    assert!(
        started.starts_with("20") && started.ends_with('Z'),
        "{health}"
    );
    assert_eq!(listener.request("HEAD", "/healthz", &[]).await.status, 200);
    assert_eq!(listener.get("/healthz/x", &[]).await.status, 401);
}
