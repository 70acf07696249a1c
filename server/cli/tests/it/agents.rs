//! `acp-server serve --agents FILE`, as a process.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::serve::{Server, TOKEN, User};

/// The reference agent over stdio, after it has written its environment and its process id to files.
fn teller(user: &User, name: &str) -> String {
    let folder = user.0.path().display();
    let agent = env!("CARGO_BIN_EXE_acp-server");
    let script = format!(
        "env > '{folder}/{name}.env'; echo $$ > '{folder}/{name}.pid'; pwd > '{folder}/{name}.pwd'; \
         exec '{agent}' --store memory"
    );
    json!(["sh", "-c", script]).to_string()
}

fn agents(user: &User, text: &str) -> String {
    let path = user.0.path().join("agents.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn two(user: &User) -> String {
    fs::create_dir(user.0.path().join("project")).unwrap();
    let directory = json!(user.0.path().join("project"));
    agents(
        user,
        &format!(
            "[[agents]]\nname = \"one\"\ndescription = \"The first\"\ncommand = {}\nenv = {{ KEY = \"of-one\" }}\n\
             [[agents]]\nname = \"two\"\ncommand = {}\nenv = {{ OTHER = \"of-two\" }}\nenv_remove = [\"INHERITED\"]\n\
             directory = {directory}\nmode = \"code\"\n",
            teller(user, "one"),
            teller(user, "two"),
        ),
    )
}

fn store(user: &User) -> PathBuf {
    user.0.path().join("sessions.db")
}

fn serve(user: &User, file: &str) -> Server {
    let store = store(user);
    let args = [
        "serve",
        "--port",
        "0",
        "--store",
        store.to_str().unwrap(),
        "--agents",
        file,
    ];
    let mut command = user.command(&args);
    command
        .env("ACP_SERVER_TOKEN", TOKEN)
        .env("INHERITED", "by-both");
    Server::start(command)
}

fn call(server: &Server, path: &str, method: &str, params: Value) -> Answer {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    server.post(path, TOKEN, &request.to_string())
}

fn new_session(server: &Server, path: &str) -> Value {
    let created = call(
        server,
        path,
        "session_new",
        json!({ "cwd": "/", "mcpServers": [] }),
    );
    let created = created.json()["result"].clone();
    assert!(created["sessionId"].is_string(), "{created}");
    created
}

#[test]
fn each_agent_has_its_path_and_its_store() {
    let user = User::new();
    let server = serve(&user, &two(&user));
    let [first, second] = [("/rpc", "ask"), ("/rpc/two", "code")].map(|(path, mode)| {
        let created = new_session(&server, path);
        assert_eq!(created["modes"]["currentModeId"], mode);
        created["sessionId"].as_str().unwrap().to_owned()
    });
    for (path, known) in [
        ("/rpc", &first),
        ("/rpc/one", &first),
        ("/rpc/two", &second),
    ] {
        let listed = call(&server, path, "session_list", json!({})).json();
        let listed = listed["result"]["sessions"].as_array().unwrap().clone();
        let ids: Vec<_> = listed
            .iter()
            .map(|it| it["sessionId"].as_str().unwrap())
            .collect();
        assert_eq!(ids, [known], "{path}");
    }
    for (path, status) in [
        ("/acp", 200),
        ("/acp/one", 200),
        ("/acp/two", 200),
        ("/acp/three", 404),
    ] {
        let answer = call(&server, path, "initialize", json!({ "protocolVersion": 1 }));
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    for path in ["/acp/three", "/rpc/three"] {
        let refused = call(&server, path, "session_list", json!({}));
        assert_eq!(refused.status, 404);
        let refused = refused.json();
        assert_eq!(refused["error"], "agent_not_found");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("\"three\"") && message.ends_with("are: one, two"),
            "{message}"
        );
    }
    for name in ["sessions.one.db", "sessions.two.db"] {
        assert!(user.0.path().join(name).exists(), "{name}");
    }
    assert!(!store(&user).exists());
    let health = server.get("/healthz", None).json();
    assert_eq!(
        (&health["status"], &health["agents"]),
        (&json!("ok"), &json!(2))
    );
    let metrics = server.get("/metrics", Some(TOKEN)).body;
    for line in [
        "acp_server_sessions{agent=\"one\"} 1",
        "acp_server_store_sessions{agent=\"two\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn no_environment_leaks_to_another_agent() {
    let user = User::new();
    let file = two(&user);
    let _server = serve(&user, &file);
    let read = |name: &str| fs::read_to_string(user.0.path().join(name)).unwrap();
    let [one, two] = ["one.env", "two.env"].map(read);
    assert!(one.contains("KEY=of-one\n") && two.contains("OTHER=of-two\n"));
    assert!(one.contains("INHERITED=by-both\n"));
    for absent in ["of-two", TOKEN] {
        assert!(!one.contains(absent), "{one}");
    }
    for absent in ["of-one", TOKEN, "INHERITED"] {
        assert!(!two.contains(absent), "{two}");
    }
    assert!(read("two.pwd").ends_with("/project\n"));
    assert!(!read("one.pwd").ends_with("/project\n"));
}

#[test]
fn sessions_stay_with_their_agent_when_the_file_changes() {
    let user = User::new();
    let tables = ["one", "two"].map(|name| {
        let command = teller(&user, name);
        format!("[[agents]]\nname = \"{name}\"\ncommand = {command}\n")
    });
    let id_of = |created: Value| created["sessionId"].as_str().unwrap().to_owned();
    let [one, two] = {
        let server = serve(&user, &agents(&user, &tables.concat()));
        let ids = ["/rpc/one", "/rpc/two"].map(|path| id_of(new_session(&server, path)));
        assert!(user.run(&["stop", "--all"]).status.success());
        ids
    };
    let [first, second] = tables;
    let server = serve(&user, &agents(&user, &[second, first].concat()));
    for (id, agent) in [(&one, "one"), (&two, "two")] {
        let state = server.get(&format!("/session/{id}"), Some(TOKEN)).json();
        assert_eq!(state["agent"], agent, "{state}");
    }
    // The first one is the default now.
    let listed = call(&server, "/rpc", "session_list", json!({})).json();
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], two.as_str());
}

#[test]
fn a_prompt_names_its_agent() {
    let user = User::new();
    let file = two(&user);
    let _server = serve(&user, &file);
    let prompt = |agent: &str| {
        let mut command = user.command(&["prompt", "--json", "--agent", agent, "hello"]);
        command.env("ACP_SERVER_TOKEN", TOKEN).output().unwrap()
    };
    let answer = prompt("two");
    let result: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(
        (&result["agent"], &result["output"]),
        (&json!("two"), &json!("hello"))
    );
    let refused = prompt("three");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("400: agent_not_found: ") && said.contains("one, two"),
        "{said}"
    );
}

#[test]
fn a_failing_agent_touches_no_other() {
    let user = User::new();
    let dies = "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}'; read line; exit 3";
    let file = agents(
        &user,
        &format!(
            "[[agents]]\nname = \"dies\"\ncommand = {}\n[[agents]]\nname = \"lives\"\ncommand = {}\n",
            json!(["sh", "-c", dies]),
            teller(&user, "lives")
        ),
    );
    let server = serve(&user, &file);
    let failed = call(
        &server,
        "/rpc/dies",
        "session_new",
        json!({ "cwd": "/", "mcpServers": [] }),
    );
    assert!(failed.json()["error"].is_object(), "{failed:?}");
    let session = new_session(&server, "/rpc/lives");
    let prompt = json!({ "sessionId": session["sessionId"], "prompt": [{ "type": "text", "text": "hello" }] });
    let answer = call(&server, "/rpc/lives", "session_prompt", prompt).json();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

#[cfg(target_os = "linux")]
#[test]
fn all_agents_end_with_the_server() {
    let user = User::new();
    let file = two(&user);
    let mut server = serve(&user, &file);
    let processes = ["one.pid", "two.pid"].map(|name| {
        let id = fs::read_to_string(user.0.path().join(name)).unwrap();
        PathBuf::from(format!("/proc/{}", id.trim()))
    });
    assert!(processes.iter().all(|process| process.exists()));
    let ended = user.run(&["stop", "--port", &server.port.to_string()]);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(server.end(), Some(0), "{}", server.said);
    assert!(!processes.iter().any(|process| process.exists()));
}

#[test]
fn a_wrong_file_is_found_before_anything_is_served() {
    let user = User::new();
    let good = "[[agents]]\nname = \"good\"\ncommand = \"sleep 60\"\n";
    for (entry, parts) in [
        (
            "command = \"no-such-program\"",
            ["member `command`", "no-such-program"],
        ),
        (
            "command = \"sh -c 'echo lost >&2; exit 3'\"",
            ["member `command`", "lost"],
        ),
        ("agent = \"codex\"", ["member `agent`", "name the command"]),
        (
            "command = \"sh\"\nuser = \"no-such-user\"",
            ["member `user`", "no user \"no-such-user\""],
        ),
        (
            "command = \"sh\"\nuser = \"x\"\nsandbox = \"landlock\"",
            ["member `user`", "confined as well"],
        ),
        (
            "command = \"sh\"\ndirectory = \"/nonexistent\"",
            ["member `directory`", "/nonexistent"],
        ),
        (
            "command = \"sh\"\nstore = \"sessions.good.db\"",
            ["member `store`", "another agent"],
        ),
        ("command = \"sh\"\nlimit = 3", ["member `limit`", "unknown"]),
    ] {
        let file = agents(
            &user,
            &format!("{good}[[agents]]\nname = \"bad\"\n{entry}\n"),
        );
        let store = store(&user);
        let (code, said) = user.fails(&[
            "serve",
            "--port",
            "0",
            "--store",
            store.to_str().unwrap(),
            "--agents",
            &file,
        ]);
        assert_eq!(code, 2, "{entry}: {said}");
        for part in parts.iter().copied().chain(["agents.toml", "agent `bad`"]) {
            assert!(said.contains(part), "{entry}: {part}: {said}");
        }
        assert!(
            !store.with_file_name("sessions.good.db").exists(),
            "{entry}"
        );
    }
    for args in [
        &["--agents", "/nonexistent"][..],
        &["--agents", "x", "--model", "fast"],
        &["--agents", "x", "--sandbox"],
        &["--agents", "x", "--", "sh"],
    ] {
        let all = [&["serve", "--port", "0"][..], args].concat();
        let (code, said) = user.fails(&all);
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(
            said.contains("--agents") || said.contains("/nonexistent"),
            "{said}"
        );
    }
}

#[test]
fn a_store_without_a_disk_names_file_agent_and_member() {
    let user = User::new();
    let file = agents(
        &user,
        "[[agents]]\nname = \"one\"\ncommand = \"none\"\nstore = \"one.db\"\n",
    );
    let refused = user.run(&[
        "serve", "--port", "0", "--store", "memory", "--agents", &file,
    ]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8_lossy(&refused.stderr);
    let expected = "agents.toml: agent `one`: member `store`: with `--store memory`";
    assert!(error.contains(expected), "{error}");
}

/// A limit that nothing obeys is an error: the operator would rely on it.
#[test]
fn options_of_a_process_need_a_command() {
    let user = User::new();
    // Without the error, it would serve; the taken port ends it.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for option in [
        "--agent-max-age=60",
        #[cfg(target_os = "linux")]
        "--agent-max-memory=512",
        "--agent-process=session",
    ] {
        let refused = user.run(&["serve", "--port", &port, "--store", "memory", option]);
        assert_eq!(refused.status.code(), Some(2), "{option}");
        let error = String::from_utf8_lossy(&refused.stderr);
        let (name, _) = option.split_once('=').unwrap();
        assert!(
            error.contains(name) && error.contains("after --"),
            "{error}"
        );
    }
}
