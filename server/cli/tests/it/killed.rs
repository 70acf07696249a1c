//! The command and an example with a store on disk, killed at any moment.
//!
//! `ACP_KILL_ROUNDS` sets the number of rounds (default 8).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::{Server, TOKEN, User, token_file};

struct Agent {
    child: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<Value>,
    id: u64,
}

impl Agent {
    fn start(program: &Path, arguments: &[&Path]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        // As many as a round can have: nothing waits for this test.
        let (sender, lines) = mpsc::sync_channel(1 << 20);
        std::thread::spawn(move || {
            // The last line may be cut by the kill.
            for line in output.lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str(&line) else {
                    break;
                };
                let _ = sender.try_send(message);
            }
        });
        let mut agent = Self {
            input: child.stdin.take().unwrap(),
            child,
            lines,
            id: 0,
        };
        agent.call("initialize", json!({ "protocolVersion": 1 }));
        agent
    }

    fn send(&mut self, method: &str, params: Value) {
        self.id += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        writeln!(self.input, "{message}").unwrap();
    }

    /// Calls, and returns the result after the updates before it.
    fn call(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        self.send(method, params);
        let mut updates = Vec::new();
        loop {
            let message = self.lines.recv_timeout(Duration::from_secs(60)).unwrap();
            if message["id"] == self.id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return (updates, message["result"].clone());
            }
            updates.push(message);
        }
    }

    fn prompt(&mut self, session: &Value, text: &str) {
        let prompt = [json!({ "type": "text", "text": text })];
        self.send(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        );
    }

    fn kill(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut rest = Vec::new();
        // The reading thread ends with the pipe, and drops its end of the channel.
        while let Ok(message) = self.lines.recv_timeout(deadline - Instant::now()) {
            rest.push(message);
        }
        rest
    }
}

fn place(session: &Value) -> Value {
    json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })
}

/// The number and text of an update.
fn numbered(message: &Value) -> Option<(u64, String)> {
    let number = message["params"]["_meta"]["acp-sdk"]["eventId"].as_u64()?;
    Some((number, message["params"]["update"].to_string()))
}

#[test]
fn no_event_that_a_client_has_seen_is_lost_or_doubled() {
    let rounds = std::env::var("ACP_KILL_ROUNDS");
    let rounds: usize = rounds.map_or(8, |rounds| rounds.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("sessions.db");
    let arguments = [Path::new("--store"), &store];
    let program = Path::new(env!("CARGO_BIN_EXE_acp-server"));
    let mut agent = Agent::start(program, &arguments);
    let opened = agent
        .call("session/new", json!({ "cwd": "/", "mcpServers": [] }))
        .1;
    let session = &opened["sessionId"];
    let mut seen = BTreeMap::new();
    let (mut cursor, mut total) = (0, 0);
    for round in 0..rounds {
        agent.prompt(session, "stream 400");
        agent.prompt(session, "tool");
        agent.prompt(session, "stream 4000");
        // From the beginning of the first turn to some thousand events later.
        std::thread::sleep(Duration::from_micros(getrandom::u64().unwrap() % 60_000));
        for (number, text) in agent.kill().iter().filter_map(numbered) {
            let doubled = seen.insert(number, text);
            assert_eq!(doubled, None, "event {number} came twice");
            total += 1;
        }
        agent = Agent::start(program, &arguments);
        let loaded = json!({ "sessionId": session, "sinceEventId": cursor });
        // A load attaches; the resume then replays everything since the last round.
        agent.call("session/resume", place(session));
        let (updates, answer) = agent.call("_acp-sdk/session/resume", loaded);
        let kept: BTreeMap<_, _> = updates.iter().filter_map(numbered).collect();
        for (number, text) in &seen {
            assert_eq!(
                kept.get(number),
                Some(text),
                "round {round}: event {number}"
            );
        }
        cursor = answer["lastEventId"].as_u64().unwrap();
        seen.clear();
    }
    assert!(total > 0, "nothing was seen before a kill");
    let exported = Command::new(program)
        .args(["sessions", "export", "--json", "--store"])
        .arg(&store)
        .arg(session.as_str().unwrap())
        .output()
        .unwrap();
    let numbers = exported
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let numbers =
        numbers.map(|line| serde_json::from_slice::<Value>(line).unwrap()["eventId"].as_u64());
    for (expected, number) in (1..).zip(numbers) {
        assert_eq!(number, Some(expected), "a hole in the numbers");
    }
    agent.kill();
}

/// Prompts that were answered 202 and waited behind a turn, whose server is killed at any moment: each has
/// one turn with one end, in their order.
#[test]
fn prompts_that_were_accepted_have_one_turn_each() {
    let user = User::new();
    let (store, token) = (user.0.path().join("sessions.db"), token_file(&user));
    let serve = || {
        let store = store.to_str().unwrap();
        let args = [
            "serve",
            "--store",
            store,
            "--port",
            "0",
            "--token-file",
            &token,
        ];
        Server::start(user.command(&args))
    };
    let mut server = serve();
    let created = server.post("/sessions", TOKEN, r#"{"prompt":"hello"}"#);
    let created: Value = serde_json::from_str(&created.body).unwrap();
    let session = created["session_id"].as_str().unwrap().to_owned();
    let mut accepted = vec![created["message_id"].clone()];
    for round in 0..4 {
        for prompt in ["stream 3000", "one", "two", "stream 50"] {
            let key = format!("{round}-{prompt}").replace(' ', "-");
            let body = json!({ "prompt": prompt }).to_string();
            let path = format!("/sessions/{session}/turns");
            let send = |server: &Server| {
                let answer = server.post_once(&path, TOKEN, &key, &body);
                assert!(matches!(answer.status, 200 | 202), "{}", answer.body);
                let answer: Value = serde_json::from_str(&answer.body).unwrap();
                answer["message_id"].clone()
            };
            let message = send(&server);
            // The same, whoever is asked.
            if prompt == "two" && round % 2 == 0 {
                server.child.kill().unwrap();
                server.child.wait().unwrap();
                server = serve();
                assert_eq!(send(&server), message, "{key}");
            }
            accepted.push(message);
        }
        std::thread::sleep(Duration::from_micros(getrandom::u64().unwrap() % 60_000));
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        server = serve();
    }
    // Whoever asks opens the session; without that, the server would do so in some seconds.
    server.get(&format!("/commands?session_id={session}"), Some(TOKEN));
    let deadline = Instant::now() + Duration::from_secs(60);
    let exported = loop {
        let exported = Command::new(env!("CARGO_BIN_EXE_acp-server"))
            .args(["sessions", "export", "--json", "--store"])
            .arg(&store)
            .arg(&session)
            .output();
        let lines = String::from_utf8(exported.unwrap().stdout).unwrap();
        let events = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let events: Vec<Value> = events.collect();
        let ends = events.iter();
        let ends = ends.filter(|line| line["event"]["event"] == "turn_ended");
        if ends.count() >= accepted.len() {
            break events;
        }
        assert!(Instant::now() < deadline, "{lines}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let (mut began, mut turns, mut ends) = (Vec::new(), 0, 0);
    for line in exported {
        let event = &line["event"];
        match event["event"].as_str() {
            Some("turn_started") => turns += 1,
            Some("turn_ended") => ends += 1,
            _ => {}
        }
        if event["sessionUpdate"] == "user_message_chunk" {
            began.push(event["messageId"].clone());
        }
    }
    assert_eq!(began, accepted, "the turns, in order");
    assert_eq!((turns, ends), (accepted.len(), accepted.len()));
}

#[test]
fn a_model_continues_where_its_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("sessions.db");
    // Examples are built with the tests, beside them.
    let mut program: PathBuf = std::env::current_exe().unwrap();
    program.pop();
    program.set_file_name("examples");
    let program = program.join("word-count");
    let advice = "build the examples first, as `cargo test -p acp-server` does";
    assert!(
        program.exists(),
        "{} is missing: {advice}",
        program.display()
    );
    let mut agent = Agent::start(&program, &[&store]);
    let opened = agent
        .call("session/new", json!({ "cwd": "/", "mcpServers": [] }))
        .1;
    let session = &opened["sessionId"];
    let say = |agent: &mut Agent, text: &str| {
        let prompt = [json!({ "type": "text", "text": text })];
        let params = json!({ "sessionId": session, "prompt": prompt });
        let (updates, _) = agent.call("session/prompt", params);
        let text = &updates[0]["params"]["update"]["content"]["text"];
        text.as_str().unwrap().to_owned()
    };
    assert_eq!(say(&mut agent, "one two three"), "You have said 3 words.");
    agent.kill();
    let mut agent = Agent::start(&program, &[&store]);
    agent.call("session/resume", place(session));
    assert_eq!(say(&mut agent, "four five"), "You have said 5 words.");
    agent.kill();
}

/// A process that an agent has started lives on when its server is killed, and the agent with it.
#[cfg(target_os = "linux")]
#[test]
fn a_restart_ends_what_a_killed_server_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let (store, ids) = (folder.path().join("sessions.db"), folder.path().join("id"));
    let program = env!("CARGO_BIN_EXE_acp-server");
    // It does not react to the end of its input.
    let script = format!("sleep 1000 & echo $! >> {ids:?}; exec {program} --store memory");
    let mut arguments: Vec<_> = ["host", "--store"].map(Path::new).into();
    arguments.push(&store);
    arguments.extend(["--", "sh", "-c", &script].map(Path::new));
    let is_alive = |id: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        state.is_some_and(|state| state != 'Z')
    };
    let started = || -> Vec<String> {
        let ids = std::fs::read_to_string(&ids).unwrap();
        ids.lines().map(str::to_owned).collect()
    };
    let first = Agent::start(Path::new(program), &arguments);
    let left = started();
    first.kill();
    assert!(left.iter().all(|id| is_alive(id)), "{left:?}");
    let second = Agent::start(Path::new(program), &arguments);
    assert!(!left.iter().any(|id| is_alive(id)), "{left:?}");
    let own = &started()[left.len()..];
    assert!(
        !own.is_empty() && own.iter().all(|id| is_alive(id)),
        "{own:?}"
    );
    // Its end by the end of its input leaves nothing.
    let Agent {
        mut child, input, ..
    } = second;
    drop(input);
    child.wait().unwrap();
    assert!(!own.iter().any(|id| is_alive(id)), "{own:?}");
    let folder = store.with_extension("db.agents");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}
