//! The command `prompt`, as a process.

use std::io::{BufReader, Read as _, Write as _};
use std::process::Stdio;

use serde_json::Value;

use crate::serve::{Server, TOKEN, User};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn one_command_gets_the_answer_of_a_running_server() {
    let user = User::new();
    let (code, said) = user.fails(&["prompt", "think"]);
    assert_eq!(code, 2);
    assert!(said.contains("acp-server serve"), "{said}");

    let server = user.serve(&[]);
    let output = user.run(&["prompt", "--model", "large", "think", "hard"]);
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "I have thought.\n", "{said}");
    assert_eq!(output.status.code(), Some(0));
    let session = said.split_once("session: ").unwrap().1.trim().to_owned();

    // The session goes on, with what comes from standard input.
    let mut command = user.command(&["prompt", "--session", &session, "--json", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"hello\nthere")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&result["output"], &result["model"]),
        (&"hello\nthere".into(), &"large".into())
    );
    assert_eq!(result["session_id"], session.as_str());

    // Its failures are those of the command.
    for (words, expected) in [
        (&["prompt", "fail"][..], "the turn failed: "),
        (
            &["prompt", "refuse"],
            "the turn ended with the stop reason refusal",
        ),
        (&["prompt", "--json", "refuse"], "stop reason refusal"),
        (
            &["prompt", "--session", "none", "x"],
            "404: session_not_found",
        ),
        (&["prompt", "--mode", "none", "x"], "400: invalid_setting: "),
    ] {
        let (code, said) = user.fails(words);
        assert_eq!(code, 1, "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    let again = user.serve(&[]);
    let (code, said) = user.fails(&["prompt", "think"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains(&again.port.to_string()), "{said}");
    let port = server.port.to_string();
    let output = user.run(&["prompt", "--port", &port, "ping"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), String::new())
    );
}

#[test]
fn a_token_goes_to_no_other_machine_in_the_clear() {
    let user = User::new();
    let words = ["prompt", "--url", "http://192.0.2.1:5173", "x"];
    let mut command = user.command(&words);
    let output = command.env("ACP_SERVER_TOKEN", TOKEN).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--insecure") && !said.contains(TOKEN),
        "{said}"
    );
}

#[test]
fn a_question_of_the_agent_is_named() {
    let user = User::new();
    let _server = user.serve(&["--permission-timeout", "1"]);
    let output = user.run(&["prompt", "permission"]);
    let said = text(&output.stderr);
    assert!(
        said.contains("the agent asks for permission: Run a command"),
        "{said}"
    );
    assert!(said.contains("answered: reject (nobody answered"), "{said}");
    assert_eq!(text(&output.stdout), "Permission: reject\n");
    let output = user.run(&["prompt", "--json", "permission"]);
    let said = text(&output.stderr);
    assert!(
        said.contains("session: ") && said.contains("asks for permission"),
        "{said}"
    );
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["output"], "Permission: reject");
}

/// The server has another token then.
#[test]
fn a_prompt_survives_a_restart_of_the_server() {
    let user = User::new();
    let store = user.0.path().join("sessions.db");
    let store = store.to_str().unwrap();
    let serve = |port: &str| {
        let all = ["serve", "--store", store, "--port", port];
        Server::start(user.command(&all))
    };
    let mut server = serve("0");
    let port = server.port.to_string();
    let mut command = user.command(&["prompt", "slow"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut begun = [0; 4];
    output.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"tick");
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let _server = serve(&port);
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("the turn failed: "), "{said}");
    let listed = user.run(&["sessions", "--store", store, "list"]);
    let listed = text(&listed.stdout);
    assert_eq!(listed.matches("sess_").count(), 1, "{listed}");
}

/// An agent that has forgotten says so when it is opened, before the turn.
#[cfg(unix)]
#[test]
fn what_an_agent_says_before_the_turn_is_for_people() {
    let user = User::new();
    let store = user.0.path().join("sessions.db");
    let agent = env!("CARGO_BIN_EXE_acp-server");
    let serve = || {
        let store = store.to_str().unwrap();
        let all = [
            "serve", "--store", store, "--port", "0", "--", agent, "--store", "memory",
        ];
        Server::start(user.command(&all))
    };
    let server = serve();
    let said = text(&user.run(&["prompt", "remember 42"]).stderr);
    let session = said.split_once("session: ").unwrap().1.trim().to_owned();
    drop(server);
    let _server = serve();
    let output = user.run(&["prompt", "--session", &session, "what did I say"]);
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "what did I say\n", "{said}");
    assert!(
        said.contains("before the turn: ") && said.contains("could not load"),
        "{said}"
    );
}
