//! `acp-conformance client --remote`: the bundled client, and clients that break the rules.
//!
//! A broken client is what the bundled one has sent, changed: the checks look at nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use acp_conformance::clients::remote::{Asked, play};
use acp_conformance::clients::{ClientEnv, Played, of_remote};
use acp_conformance::harness::Interruption;
use acp_conformance::suite::Verdict;
use acp_conformance::wire::{Schema, Version};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::host::within;

/// A way to break the bundled client.
struct Broken {
    name: &'static str,
    scenario: &'static str,
    /// The requirements of the scenario that fail because of it; no others do.
    breaks: &'static [&'static str],
    change: fn(&mut Played),
}

const fn broken(
    name: &'static str,
    scenario: &'static str,
    breaks: &'static [&'static str],
    change: fn(&mut Played),
) -> Broken {
    Broken {
        name,
        scenario,
        breaks,
        change,
    }
}

/// The requests that fit.
fn all(played: &mut Played, fits: fn(&Asked) -> bool, change: fn(&mut Asked)) {
    played
        .remote
        .requests
        .iter_mut()
        .filter(|asked| fits(asked))
        .for_each(change);
}

fn is_answer(message: &Value) -> bool {
    message.get("result").is_some()
}

const BROKEN: &[Broken] = &[
    broken(
        "opens two connections",
        "remote-http",
        &["client.remote-initialize"],
        |played| {
            // Sound but for the rule that it breaks: `initialize` has neither id nor cookie.
            let first = played.remote.requests[0].clone();
            played.remote.requests.insert(1, first);
        },
    ),
    // Sound: the server may have a WebSocket, and the client goes on without one.
    broken("tries a WebSocket first", "remote-http", &[], |played| {
        let upgrade = Asked {
            method: "GET".into(),
            headers: [("upgrade".into(), "websocket".into())].into(),
            status: 400,
            ..Asked::default()
        };
        played.remote.requests.insert(0, upgrade.clone());
        played.remote.requests.insert(2, upgrade);
    }),
    broken(
        "begins with a stream",
        "remote-http",
        &["client.remote-initialize"],
        |played| {
            let stream = Asked {
                method: "GET".into(),
                ..Asked::default()
            };
            played.remote.requests.insert(0, stream);
        },
    ),
    broken(
        "names no connection",
        "remote-http",
        &["client.remote-connection-id"],
        |played| {
            let is_post = |asked: &Asked| asked.calls() == Some("session/prompt");
            all(played, is_post, |asked| {
                drop(asked.headers.remove("acp-connection-id"))
            });
        },
    ),
    broken(
        "names no session",
        "remote-http",
        &["client.remote-session-id"],
        |played| {
            all(
                played,
                |asked| is_answer(&asked.message),
                |asked| drop(asked.headers.remove("acp-session-id")),
            );
        },
    ),
    broken(
        "posts text",
        "remote-http",
        &["client.remote-content-type"],
        |played| {
            let is_post = |asked: &Asked| asked.method == "POST";
            all(played, is_post, |asked| {
                drop(
                    asked
                        .headers
                        .insert("content-type".into(), "text/plain".into()),
                )
            });
        },
    ),
    broken(
        "accepts JSON alone",
        "remote-http",
        &["client.remote-accept"],
        |played| {
            let is_get = |asked: &Asked| asked.method == "GET";
            all(played, is_get, |asked| {
                drop(
                    asked
                        .headers
                        .insert("accept".into(), "application/json".into()),
                )
            });
        },
    ),
    broken(
        "opens the stream of the connection late",
        "remote-http",
        &["client.remote-connection-stream"],
        |played| {
            let requests = &mut played.remote.requests;
            let place = requests
                .iter()
                .position(|asked| asked.method == "GET")
                .unwrap();
            let stream = requests.remove(place);
            let place = requests
                .iter()
                .position(|asked| asked.calls() == Some("session/new"))
                .unwrap();
            requests.insert(place + 1, stream);
        },
    ),
    broken(
        "opens a stream that is refused",
        "remote-http",
        &["client.remote-connection-stream"],
        |played| {
            let is_stream =
                |asked: &Asked| asked.method == "GET" && asked.header("acp-session-id").is_none();
            all(played, is_stream, |asked| asked.status = 406);
        },
    ),
    broken(
        "opens no stream of the session",
        "remote-http",
        &["client.remote-session-stream"],
        |played| {
            let is_stream =
                |asked: &Asked| asked.method == "GET" && asked.header("acp-session-id").is_some();
            played.remote.requests.retain(|asked| !is_stream(asked));
        },
    ),
    broken(
        "posts batches",
        "remote-http",
        &["client.remote-one-message"],
        |played| {
            let mut batch = played.remote.requests[1].clone();
            batch.method = "POST".into();
            batch
                .headers
                .insert("content-type".into(), "application/json".into());
            batch.message = json!([{"jsonrpc": "2.0", "method": "x"}]);
            played.remote.requests.push(batch);
        },
    ),
    broken(
        "repeats the method in its answer",
        "remote-http",
        &["client.remote-one-message", "client.remote-answers"],
        |played| {
            all(
                played,
                |asked| is_answer(&asked.message),
                |asked| asked.message["method"] = json!("session/request_permission"),
            );
        },
    ),
    broken(
        "answers with another id",
        "remote-http",
        &["client.remote-answers"],
        |played| {
            all(
                played,
                |asked| is_answer(&asked.message),
                |asked| asked.message["id"] = json!("agent-2"),
            );
        },
    ),
    broken(
        "keeps no cookies",
        "remote-http",
        &["client.remote-cookies"],
        |played| {
            all(
                played,
                |asked| asked.method == "DELETE",
                |asked| drop(asked.headers.remove("cookie")),
            );
        },
    ),
    broken(
        "ends without a word",
        "remote-http",
        &["client.remote-delete"],
        |played| {
            played
                .remote
                .requests
                .retain(|asked| asked.method != "DELETE");
        },
    ),
    broken(
        "reads whole events only",
        "remote-stream",
        &["client.remote-event-format"],
        |played| {
            played
                .remote
                .requests
                .retain(|asked| !is_answer(&asked.message));
        },
    ),
    broken(
        "hangs after events in pieces",
        "remote-stream",
        &["client.remote-event-format"],
        |played| {
            played.exit = None;
        },
    ),
    broken(
        "forgets where it was",
        "remote-cut",
        &["client.remote-reconnect"],
        |played| {
            all(
                played,
                |asked| asked.method == "GET",
                |asked| drop(asked.headers.remove("last-event-id")),
            );
        },
    ),
    broken(
        "tries for ever without a token",
        "remote-unauthorized",
        &["client.remote-unauthorized"],
        |played| {
            let asked = played.remote.requests[0].clone();
            played.remote.requests.resize(20, asked);
        },
    ),
    broken(
        "hangs when its connection is gone",
        "remote-gone",
        &["client.remote-gone"],
        |played| {
            played.exit = None;
        },
    ),
    broken(
        "greets before initialize",
        "remote-websocket",
        &["client.remote-websocket-initialize"],
        |played| {
            played
                .remote
                .messages
                .insert(0, json!({"jsonrpc": "2.0", "method": "hello"}));
        },
    ),
    broken(
        "sends binary frames",
        "remote-websocket",
        &["client.remote-websocket-messages"],
        |played| {
            played.remote.faults.push("a frame has the opcode 2".into());
        },
    ),
    broken(
        "sends objects of its own",
        "remote-websocket",
        &["client.remote-websocket-messages"],
        |played| played.remote.messages.push(json!({"ping": 1})),
    ),
    broken(
        "hangs up",
        "remote-websocket",
        &["client.remote-websocket-close"],
        |played| {
            played.remote.closed = false;
        },
    ),
    broken(
        "reads whole messages only",
        "remote-frames",
        &["client.remote-websocket-fragments"],
        |played| {
            played.remote.messages.retain(|message| !is_answer(message));
        },
    ),
    broken(
        "answers no pings",
        "remote-frames",
        &["client.remote-websocket-ping"],
        |played| {
            played.remote.pongs.clear();
        },
    ),
];

/// The requirements of the scenario that this does not fulfil.
fn failures(played: &Played, scenario: &str) -> BTreeSet<&'static str> {
    let of_scene = of_remote(Version::V1).filter(|row| row.scenario == scenario);
    let failed = of_scene.filter(|row| Verdict::from(row.check(played)) != Verdict::Pass);
    failed.map(|row| row.id).collect()
}

fn bundled() -> ClientEnv {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let words = [
        program,
        "reference-client",
        "run",
        "--approve-all",
        "--cwd",
        "{cwd}",
        "--url",
        "{url}",
        "{prompt}",
    ];
    ClientEnv {
        command: words.map(Into::into).to_vec(),
        without_terminals: None,
        asking: None,
        listing: None,
        program: program.into(),
        prompt: "Hello, agent".into(),
        schema: Schema::of(Version::V1).unwrap(),
        timeout: Duration::from_secs(60),
        interruption: Interruption::default(),
        transcripts: None,
    }
}

#[tokio::test]
async fn broken_clients_fail_what_they_break_and_nothing_else() {
    let playing = tokio::task::spawn_blocking(|| {
        let scenarios: BTreeSet<_> = of_remote(Version::V1).map(|row| row.scenario).collect();
        let play = |scenario: &'static str| (scenario, play(&bundled(), scenario).unwrap());
        scenarios.into_iter().map(play).collect::<BTreeMap<_, _>>()
    });
    let scenarios = within(playing).await.unwrap();
    for (scenario, played) in &scenarios {
        assert_eq!(
            failures(played, scenario),
            BTreeSet::new(),
            "{scenario}: {played:#?}"
        );
    }
    for broken in BROKEN {
        let mut played = scenarios[broken.scenario].clone();
        (broken.change)(&mut played);
        let expected: BTreeSet<_> = broken.breaks.iter().copied().collect();
        assert_eq!(
            failures(&played, broken.scenario),
            expected,
            "{}",
            broken.name
        );
    }
    // One that is still running when time is over has ended nothing.
    for (scenario, id) in [
        ("remote-http", "client.remote-delete"),
        ("remote-websocket", "client.remote-websocket-close"),
    ] {
        let mut played = scenarios[scenario].clone();
        played.exit = None;
        let requests = &mut played.remote.requests;
        requests.retain(|asked| asked.method != "DELETE");
        played.remote.closed = false;
        let row = of_remote(Version::V1).find(|row| row.id == id).unwrap();
        let verdict = Verdict::from(row.check(&played));
        assert!(matches!(verdict, Verdict::Inconclusive(_)), "{verdict:?}");
    }
    // One that ends after `initialize` shows nothing of the requests that follow.
    let mut played = scenarios["remote-http"].clone();
    played.remote.requests.truncate(1);
    for id in ["client.remote-connection-id", "client.remote-cookies"] {
        let row = of_remote(Version::V1).find(|row| row.id == id).unwrap();
        let verdict = Verdict::from(row.check(&played));
        assert!(
            matches!(verdict, Verdict::Inconclusive(_)),
            "{id}: {verdict:?}"
        );
    }
    let proven: BTreeSet<_> = BROKEN
        .iter()
        .flat_map(|broken| broken.breaks)
        .copied()
        .collect();
    let rows: BTreeSet<_> = of_remote(Version::V1).map(|row| row.id).collect();
    assert_eq!(proven, rows);
}

async fn client(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    command.args(["client", "--remote"]).args(args);
    let output = within(command.env_remove("ACP_TOKEN").kill_on_drop(true).output()).await;
    let output = output.unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[tokio::test]
async fn the_bundled_client_is_conformant_over_the_remote_transport() {
    let (code, text) = client(&["--strict"]).await;
    assert_eq!(code, Some(0), "{text}");
    let none = "failed: 0 MUST, 0 derived, 0 SHOULD, 0 info; 0 inconclusive, 0 skipped";
    assert!(text.contains(none), "{text}");
}

#[tokio::test]
async fn a_client_that_connects_to_nothing_fails() {
    let only = ["--only", "client.remote-initialize", "--strict"];
    let (code, text) =
        client(&[&only[..], &["--", "sh", "-c", "echo {url}: no >&2"]].concat()).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("the client sent no request; it says: http://127.0.0.1:"),
        "{text}"
    );
}
