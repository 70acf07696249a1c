//! `serve --hook`: webhooks over HTTP.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::serve::{Server, TOKEN, User, token_file};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A file with a secret.
fn secret(user: &User, name: &str, text: &str) -> String {
    let path = user.0.path().join(name);
    fs::write(&path, format!("{text}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

fn serve(user: &User, hook: &str) -> Server {
    let token = token_file(user);
    let store = user.0.path().join("sessions.db");
    let store = store.to_str().unwrap();
    let args = ["serve", "--store", store, "--port", "0", "--hook", hook];
    let mut command = user.command(&args);
    command
        .args(["--token-file", &token])
        .current_dir(user.0.path());
    Server::start(command)
}

/// Returns the only session and all that it has, once that contains a text.
fn session_with(server: &Server, text: &str) -> (String, String) {
    // The answer to a call does not wait for its turn.
    for _ in 0..1_000 {
        let listed: Value =
            serde_json::from_str(&server.get("/sessions", Some(TOKEN)).body).unwrap();
        let sessions = listed["sessions"].as_array().unwrap();
        assert!(sessions.len() < 2, "{listed}");
        if let Some(session) = sessions.first() {
            let id = session["session_id"].as_str().unwrap();
            let shown = server.get(&format!("/sessions/{id}"), Some(TOKEN)).body;
            if shown.contains(text) {
                return (id.to_owned(), shown);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!(
        "no session has {text:?}: {}",
        server.get("/sessions", Some(TOKEN)).body
    );
}

#[test]
fn a_call_begins_a_turn_of_the_session_of_its_name() {
    let user = User::new();
    let hook = format!("ci={}", secret(&user, "ci.secret", SECRET));
    let server = serve(&user, &hook);
    let call = |server: &Server, path: &str, secret: Option<&str>, body: &str| {
        let answer = server.send("POST", path, secret, body);
        answer.status
    };
    assert_eq!(call(&server, "/hooks/other", Some(SECRET), "x"), 404);
    assert_eq!(call(&server, "/hooks/ci", Some(TOKEN), "x"), 401);
    assert_eq!(call(&server, "/hooks/ci", None, "x"), 401);
    let long = "x".repeat(300 << 10);
    assert_eq!(call(&server, "/hooks/ci", Some(SECRET), &long), 400);
    // The secret is that of the webhook only.
    assert_eq!(server.get("/sessions", Some(SECRET)).status, 401);

    let failed = r#"{"failed":"main"}"#;
    assert_eq!(call(&server, "/hooks/ci", Some(SECRET), failed), 202);
    let (session, shown) = session_with(&server, "end_turn");
    assert!(shown.contains("The webhook ci was called with:"), "{shown}");
    assert!(shown.contains(r#"{\"failed\":\"main\"}"#), "{shown}");
    let directory = user.0.path().canonicalize().unwrap();
    assert!(shown.contains(directory.to_str().unwrap()), "{shown}");
    assert!(
        server.said.contains("webhook: /hooks/ci"),
        "{}",
        server.said
    );
    assert!(!server.said.contains(SECRET), "{}", server.said);
    drop(server);

    // The session of the name is there already.
    let server = serve(&user, &hook);
    assert_eq!(call(&server, "/hooks/ci", Some(SECRET), "again"), 202);
    assert_eq!(session_with(&server, "again").0, session);
}

#[test]
fn hooks_that_cannot_be_served_are_wrong_usage() {
    let user = User::new();
    let file = secret(&user, "secret", SECRET);
    let short = secret(&user, "short", "short");
    let missing = user.0.path().join("missing");
    for (hooks, expected) in [
        (vec!["ci".to_owned()], "expected NAME=FILE"),
        (vec![format!("ci={}", missing.display())], "missing"),
        (vec![format!("ci={short}")], "expected a token of 16 to"),
        (vec![format!("a/b={file}")], "a name has 1 to 64 letters"),
        (
            vec![format!("ci={file}"), format!("ci={file}")],
            "two webhooks have the name ci",
        ),
    ] {
        let mut args = vec!["serve", "--store", "memory", "--port", "0"];
        args.extend(hooks.iter().flat_map(|hook| ["--hook", hook]));
        let (code, said) = user.fails(&args);
        assert!(code == 2 && said.contains(expected), "{hooks:?}: {said}");
        assert!(!said.contains(SECRET), "{said}");
    }
}
