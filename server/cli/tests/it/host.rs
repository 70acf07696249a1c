//! `acp-server host` and `acp-server serve -- COMMAND`, as processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::serve::{Server, TOKEN, User};

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-server"));
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The one client of `acp-server host`.
struct Editor {
    host: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u32,
}

impl Editor {
    fn of(mut host: Command, agent: &[&str]) -> Self {
        host.args(["host", "--store", "memory"]).args(agent);
        let mut host = host.stdout(Stdio::piped()).spawn().unwrap();
        Self {
            input: host.stdin.take().unwrap(),
            output: BufReader::new(host.stdout.take().unwrap()),
            host,
            last: 0,
        }
    }

    /// Calls a method. Returns the result, and the text that came before it.
    fn call(&mut self, method: &str, params: Value) -> (Value, String) {
        self.last += 1;
        let id = self.last;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{request}").unwrap();
        let mut said = String::new();
        let mut numbers = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "closed");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                assert!(numbers.is_sorted(), "{numbers:?}");
                if let Some(error) = message["error"].as_object() {
                    assert!(error.get("data").is_none(), "{message}");
                    return (Value::Null, error["message"].to_string());
                }
                return (message["result"].clone(), said);
            }
            numbers.extend(message["params"]["_meta"]["acp-sdk"]["eventId"].as_u64());
            said += message["params"]["update"]["content"]["text"]
                .as_str()
                .unwrap_or("");
        }
    }

    fn open(&mut self) -> Value {
        let offered = json!({ "fs": { "readTextFile": true }, "terminal": true });
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": offered });
        let (hello, _) = self.call("initialize", hello);
        assert_eq!(hello["agentInfo"]["title"], "ACP reference agent");
        let (created, _) = self.call("session/new", json!({ "cwd": "/", "mcpServers": [] }));
        created["sessionId"].clone()
    }

    fn try_prompt(&mut self, session: &Value, words: &str) -> (Value, String) {
        let prompt = json!([{ "type": "text", "text": words }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.call("session/prompt", params)
    }

    fn prompt(&mut self, session: &Value, words: &str) -> String {
        let (answer, said) = self.try_prompt(session, words);
        assert_eq!(answer["stopReason"], "end_turn");
        said
    }

    fn end(self) {
        let Self {
            mut host, input, ..
        } = self;
        drop(input);
        assert!(host.wait().unwrap().success());
    }
}

/// Has `acp-server host` serve one client.
fn is_served_by(host: Command, agent: &[&str]) {
    let mut editor = Editor::of(host, agent);
    let session = editor.open();
    assert!(!editor.prompt(&session, "hello").is_empty());
    assert!(!editor.prompt(&session, "hello again").is_empty());
    editor.end();
}

#[test]
fn the_reference_agent_can_be_hosted_over_stdio_and_is_started_once() {
    let agent = env!("CARGO_BIN_EXE_acp-server");
    for processes in ["shared", "session"] {
        let folder = tempfile::tempdir().unwrap();
        let starts = folder.path().join("starts");
        let counted = "echo started >> \"$STARTS\"; exec \"$0\" --store memory";
        let mut host = binary();
        host.env("STARTS", &starts)
            .env("ACP_SERVER_TOKEN", "a-secret-of-some-length");
        let agent = ["--", "sh", "-c", counted, agent];
        is_served_by(
            host,
            &[&["--agent-process", processes][..], &agent].concat(),
        );
        let starts = std::fs::read_to_string(&starts).unwrap();
        assert_eq!(starts, "started\n", "one client started it more than once");
    }
}

#[test]
fn the_agent_of_another_server_can_be_hosted() {
    let user = User::new();
    let server = user.serve(&[]);
    let token = user.token(&server);
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://127.0.0.1:{}/acp", server.port);
        let mut host = binary();
        host.env("ACP_TOKEN", &token);
        is_served_by(host, &["--url", &url]);
    }
}

#[test]
fn a_session_goes_on_after_a_restart_of_the_other_server() {
    let user = User::new();
    let store = user.0.path().join("store.sqlite");
    let store = store.to_str().unwrap();
    let start = |port: u16| {
        let port = port.to_string();
        let args = ["serve", "--store", store, "--port", &port];
        let mut command = user.command(&args);
        command.env("ACP_SERVER_TOKEN", TOKEN);
        Server::start(command)
    };
    let first = start(0);
    let url = format!("http://127.0.0.1:{}/acp", first.port);
    let mut host = binary();
    host.env("ACP_TOKEN", TOKEN);
    let mut editor = Editor::of(host, &["--url", &url]);
    let session = editor.open();
    editor.prompt(&session, "hello");
    let port = first.port;
    drop(first);
    let second = start(port);
    // It may be on its way to the first one. Then it is sent again, and has one turn by its key.
    let answered = editor.try_prompt(&session, "think");
    assert_eq!(answered.0["stopReason"], "end_turn");
    assert!(!answered.1.contains("could not load"), "{answered:?}");
    let sessions = second.get("/sessions", Some(TOKEN)).json();
    assert_eq!(
        sessions["sessions"].as_array().unwrap().len(),
        1,
        "{sessions}"
    );
    let turns = &sessions["sessions"][0]["turns"];
    assert_eq!(turns, 2, "{sessions}");
    editor.end();
}

#[test]
fn a_url_without_an_agent_is_wrong_usage() {
    let user = User::new();
    let server = user.serve(&[]);
    let url = format!("http://127.0.0.1:{}/acp", server.port);
    let gone = "http://127.0.0.1:1/acp";
    for (args, reason) in [
        (&["host", "--url", &url][..], "401"),
        (&["host", "--url", gone], gone),
        (&["host", "--url", "ftp://host/acp"], "--url: "),
        (&["host", "--url", &url, "--", "sh"], "cannot be used with"),
        (&["host", "--url-insecure", "--", "sh"], "--url URL"),
    ] {
        let (code, said) = user.fails(args);
        assert!(
            code == 2 && said.contains(reason),
            "{args:?}: {code} {said}"
        );
    }
}

/// The agent is no agent, so hosting fails; before that it tries to write.
#[cfg(target_os = "linux")]
#[test]
fn a_confined_agent_writes_where_it_may() {
    let script = "echo x > own; echo x > ../outside/own; echo x > ../added/own; exit 4";
    for (flags, outside) in [
        (&[][..], true),
        (&["--sandbox", "--sandbox-write", "../added"], false),
        (
            &["--sandbox=bubblewrap", "--sandbox-write", "../added"],
            false,
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["project", "outside", "added"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let mut command = binary();
        command
            .arg("host")
            .args(flags)
            .args(["--", "sh", "-c", script]);
        command.current_dir(path("project")).stdout(Stdio::piped());
        let ended = command.output().unwrap();
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{text}");
        if text.contains("--sandbox: ") {
            eprintln!("not tested: {text}");
            continue;
        }
        assert!(path("project/own").exists(), "{text}");
        assert!(path("added/own").exists(), "{text}");
        assert_eq!(path("outside/own").exists(), outside, "{text}");
    }
}

#[test]
fn an_agent_does_not_inherit_the_token() {
    let look = "echo token ${ACP_SERVER_TOKEN:-none} >&2; exit 4";
    let ended = binary()
        .args(["host", "--", "sh", "-c", look])
        .env("ACP_SERVER_TOKEN", "a-secret-of-some-length")
        .output()
        .unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert!(text.contains("last lines: token none"), "{text}");
}

/// It looks where processes of the same user can look: in the environment of all processes, and in
/// memory and descriptors of its parent.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_cannot_read_the_token_from_the_process_of_its_server() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let look = "for process in /proc/[0-9]*; do \
            grep -qs a-secret-of-some-length $process/environ && found=environment; \
        done; \
        (: < /proc/$PPID/mem) 2>/dev/null && found=\"$found memory\"; \
        ls /proc/$PPID/fd >/dev/null 2>&1 && found=\"$found descriptors\"; \
        grep -q acp-server /proc/$PPID/cmdline || found=\"$found no parent\"; \
        echo \"found ${found:-nothing}.\" >&2; exit 4";
    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let is_root = folder.path().metadata().unwrap().uid() == 0;
    let mut server = vec![env!("CARGO_BIN_EXE_acp-server").to_owned()];
    if is_root {
        // The administrator may read everything, and another user may not reach the program.
        let copy = folder.path().join("acp-server");
        std::fs::copy(&server[0], &copy).unwrap();
        let user = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        server = user.map(str::to_owned).into();
        server.push(copy.into_os_string().into_string().unwrap());
        let mut version = Command::new(&server[0]);
        let version = version.args(&server[1..]).arg("--version").output();
        if !version.is_ok_and(|output| output.status.success()) {
            eprintln!("not tested: no program can be started as another user here");
            return;
        }
    }
    for args in [
        &["host"][..],
        &["serve", "--port", "0", "--store", "memory"],
    ] {
        let mut command = Command::new(&server[0]);
        command.args(&server[1..]);
        let ended = command.args(args).args(["--", "sh", "-c", look]);
        let ended = ended.env("ACP_SERVER_TOKEN", "a-secret-of-some-length");
        let ended = ended.env("XDG_RUNTIME_DIR", folder.path());
        let ended = ended.env("HOME", folder.path()).current_dir(folder.path());
        let ended = ended.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        assert!(text.contains("found nothing."), "{args:?}: {text}");
    }
}

#[test]
fn a_command_that_is_no_agent_is_wrong_usage() {
    for (command, reason) in [
        (&["host"][..], "needs the command of an agent"),
        (&["host", "--", "/no/such/agent"], "/no/such/agent"),
        (
            &["host", "--", "sh", "-c", "echo sorry >&2; exit 4"],
            "exited with code 4; its last lines: sorry",
        ),
    ] {
        let ended = binary()
            .args(command)
            .args::<[&str; 0], _>([])
            .output()
            .unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}
