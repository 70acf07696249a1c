//! `acp-server tokens`, and a server that uses their file.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::serve::{TOKEN, User, text, token_file};

fn add(user: &User, args: &[&str]) -> String {
    let output = user.run(&[&["tokens", "add"], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("added "));
    text(&output.stdout).trim().to_owned()
}

#[test]
fn tokens_are_added_listed_and_revoked_while_a_server_runs() {
    let user = User::new();
    let server = user.serve(&[]);
    let full = add(&user, &["ci"]);
    let reader = add(&user, &["dashboard", "--read-only", "--expires", "90d"]);
    let own = add(&user, &["one", "--session", "s"]);
    let route = "/openapi.json";
    for secret in [&full, &reader, &own] {
        assert_eq!(secret.len(), 64);
        assert_eq!(server.get(route, Some(secret)).status, 200);
    }
    assert_eq!(server.get("/runs", Some(&reader)).status, 200);
    assert_eq!(server.get("/runs", Some(&own)).status, 403);

    let shown = text(&user.run(&["tokens", "list"]).stdout);
    assert!(
        shown.contains("dashboard") && shown.contains("session s"),
        "{shown}"
    );
    let shown = text(&user.run(&["tokens", "list", "--json"]).stdout);
    let rows: Vec<Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&rows[0]["name"], &rows[0]["access"]),
        (&"ci".into(), &"full".into())
    );
    assert!(rows[0]["expires"].is_null() && rows[1]["expires"].is_string());
    assert_eq!(
        (&rows[2]["session"], &rows[2]["state"]),
        (&"s".into(), &"valid".into())
    );
    assert!(!shown.contains(&full));

    let output = user.run(&["tokens", "revoke", "ci"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // The server looks at the file once a second.
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.get(route, Some(&full)).status != 401 {
        assert!(Instant::now() < deadline, "the token is still valid");
    }
    assert_eq!(server.get(route, Some(&reader)).status, 200);
    let (code, said) = user.fails(&["tokens", "revoke", "ci"]);
    assert!(code == 1 && said.contains("no token \"ci\""), "{said}");
    let (code, said) = user.fails(&["tokens", "add", "two words"]);
    assert!(code == 2 && said.contains("expected a name"), "{said}");
    let (code, said) = user.fails(&["tokens", "add", "one", "--read-only", "--session", "s"]);
    assert!(code == 2 && said.contains("--read-only"), "{said}");
}

#[test]
fn a_token_of_the_operator_needs_the_file_by_name() {
    let user = User::new();
    let master = token_file(&user);
    let named = add(&user, &["ci"]);
    let server = user.serve(&["--token-file", &master]);
    assert!(
        server.said.contains("named tokens: none"),
        "{}",
        server.said
    );
    assert_eq!(server.get("/openapi.json", Some(&named)).status, 401);

    let file = user.0.path().join("named.json");
    let file = file.to_str().unwrap();
    let named = add(&user, &["ci", "--tokens", file]);
    let server = user.serve(&["--token-file", &master, "--tokens", file]);
    for secret in [TOKEN, &named] {
        assert_eq!(server.get("/openapi.json", Some(secret)).status, 200);
    }
    let (code, said) = user.fails(&["serve", "--token-file", &master, "--keep-session-tokens"]);
    assert!(code == 2 && said.contains("--tokens FILE"), "{said}");
}

#[test]
fn a_damaged_file_is_an_error_at_the_start_and_one_warning_later() {
    let user = User::new();
    let file = user.0.path().join("tokens.json");
    let path = file.to_str().unwrap();
    let named = add(&user, &["ci", "--tokens", path]);
    let mut server = user.serve(&["--tokens", path]);
    assert_eq!(server.get("/openapi.json", Some(&named)).status, 200);
    for damaged in ["{", "{}"] {
        fs::write(&file, damaged).unwrap();
        // A token that is not known is looked for in the file.
        assert_eq!(
            server.get("/openapi.json", Some("an-unknown-token")).status,
            401
        );
        assert_eq!(server.get("/openapi.json", Some(&named)).status, 200);
    }
    server.says("kept the earlier tokens: expected named tokens in");
    let (code, said) = user.fails(&["serve", "--store", "memory", "--tokens", path]);
    assert!(
        code == 2 && said.contains("expected named tokens in"),
        "{said}"
    );
    let (code, said) = user.fails(&["tokens", "list", "--tokens", path]);
    assert!(code == 1 && said.contains(path), "{said}");
    server.child.kill().unwrap();
    server.end();
    assert_eq!(
        server.said.matches("kept the earlier tokens").count(),
        1,
        "{}",
        server.said
    );
}

#[test]
fn session_tokens_survive_a_restart_where_they_are_kept() {
    let user = User::new();
    let store = user.0.path().join("sessions.db");
    let args = ["--store", store.to_str().unwrap(), "--keep-session-tokens"];
    let start = || {
        let mut all = vec!["serve", "--port", "0"];
        all.extend(args);
        crate::serve::Server::start(user.command(&all))
    };
    let server = start();
    let created = server.post("/session", &user.token(&server), "{}").json();
    let (id, own) = (
        &created["session_id"],
        created["session_token"].as_str().unwrap(),
    );
    let path = format!("/session/{}", id.as_str().unwrap());
    assert_eq!(server.get(&path, Some(own)).status, 200);
    drop(server);
    let server = start();
    assert_eq!(server.get(&path, Some(own)).status, 200);
    assert_eq!(server.get("/runs", Some(own)).status, 403);
}
