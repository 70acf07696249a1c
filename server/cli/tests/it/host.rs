//! `acp-server host` and `acp-server serve -- COMMAND`, as processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-server"));
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn the_reference_agent_can_be_hosted_over_stdio() {
    let agent = env!("CARGO_BIN_EXE_acp-server");
    for processes in ["shared", "session"] {
        let mut host = binary()
            .args(["host", "--store", "memory", "--agent-process", processes])
            .args(["--", agent, "--store", "memory"])
            .env("ACP_SERVER_TOKEN", "a-secret-of-some-length")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = host.stdin.take().unwrap();
        let mut output = BufReader::new(host.stdout.take().unwrap());
        let mut call = |id: u32, method: &str, params: Value| {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            writeln!(input, "{request}").unwrap();
            let mut said = String::new();
            loop {
                let mut line = String::new();
                assert_ne!(output.read_line(&mut line).unwrap(), 0, "closed");
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["id"] == id {
                    return (message["result"].clone(), said);
                }
                said += message["params"]["update"]["content"]["text"]
                    .as_str()
                    .unwrap_or("");
            }
        };
        let (hello, _) = call(0, "initialize", json!({ "protocolVersion": 1 }));
        assert_eq!(hello["agentInfo"]["title"], "ACP reference agent");
        let (created, _) = call(1, "session/new", json!({ "cwd": "/", "mcpServers": [] }));
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        let params = json!({ "sessionId": created["sessionId"], "prompt": prompt });
        let (answer, said) = call(2, "session/prompt", params);
        assert_eq!(answer["stopReason"], "end_turn");
        assert!(!said.is_empty());
        drop(input);
        assert!(host.wait().unwrap().success());
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
