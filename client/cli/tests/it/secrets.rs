//! Tokens of `acp` do not reach the processes that it starts, and its files no other users.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use super::acp::{Acp, Ended, command};
use super::agents::{Home, server};
use super::pty::Terminal;
use super::script::script;

const TOKENS: [&str; 3] = ["ACP_TOKEN", "ACP_MCP_TOKEN", "ACP_SERVER_TOKEN"];

async fn run(mut command: tokio::process::Command) -> Ended {
    for name in TOKENS {
        command.env(name, "s3cret-that-is-long-enough");
    }
    Acp::spawn(command).end().await
}

#[tokio::test]
async fn agents_and_terminals_do_not_inherit_them() {
    let agent = r#"start; prompt; say "agent: $(env | grep -c s3cret)\n"
        call terminal/create '{"sessionId":"s","command":"sh","args":["-c","echo terminal: $(env | grep -c s3cret)"]}'
        terminal=${line#*'"terminalId":"'}; terminal='{"sessionId":"s","terminalId":"'${terminal%%\"*}'"}'
        call terminal/wait_for_exit "$terminal"; call terminal/output "$terminal"; say "$(quoted)"; end end_turn; message"#;
    let ended = run(command(&["--approve-all", "hi"], agent)).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("agent: 0\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("terminal: 0"), "{}", ended.stdout);
}

#[tokio::test]
async fn a_variable_that_the_user_sets_for_an_agent_is_passed() {
    let home = Home::new();
    let mut agent =
        server("start; prompt; say \"$ACP_TOKEN $ACP_MCP_TOKEN\"; end end_turn; message");
    agent["env"] = json!({"ACP_TOKEN": "the agent's own"});
    home.configure(&json!({ "bob": agent }));
    let ended = run(home.command(&["run", "--deny-all", "bob", "hi"])).await;
    assert_eq!(ended.stdout, "the agent's own \n", "{}", ended.stderr);
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// Returns the mode of each file and folder below a folder.
fn modes(folder: &Path) -> Vec<(std::path::PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        found.push((path.clone(), mode(&path)));
        if path.is_dir() {
            found.extend(modes(&path));
        }
    }
    found
}

#[tokio::test]
async fn folders_and_files_are_those_of_the_user_alone() {
    let agent = script(
        "answer '{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}'
        answer '{\"sessionId\":\"s\"}'; prompt; end end_turn; message",
    );
    // A folder that exists keeps its rights; what is created in it has those of the user.
    for is_open in [false, true] {
        let home = Home::new();
        let (data, opened) = (home.path("data"), home.path("data/acp/sessions"));
        if is_open {
            std::fs::create_dir_all(&opened).unwrap();
            for folder in [&opened, opened.parent().unwrap()] {
                std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        } else {
            std::fs::create_dir(&data).unwrap();
        }
        let args = [
            "run",
            "--deny-all",
            "--session",
            "a",
            "hi",
            "--",
            "sh",
            "-c",
        ];
        let mut command = home.command(&args);
        command.arg(&agent);
        let ended = Acp::spawn(command).end().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let found = modes(&data);
        assert!(found.len() >= 4, "a name and its lock: {found:?}");
        for (path, mode) in found {
            let expected = match path.is_dir() {
                true if is_open => 0o755,
                true => 0o700,
                false => 0o600,
            };
            assert_eq!(mode, expected, "{} has {mode:o}", path.display());
        }
        let transcript = home.path("transcript.jsonl");
        let mut command = home.command(&["record"]);
        command.arg(&transcript).args(["--", "true"]);
        assert_eq!(Acp::spawn(command).end().await.code, Some(0));
        assert_eq!(mode(&transcript), 0o600);
    }
}

#[tokio::test]
async fn prompts_of_a_chat_are_kept_in_a_file_of_the_user_alone() {
    let mut terminal = Terminal::start("start; prompt; say 'Hello.\\n'; end end_turn; message");
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("Hello.").await;
    terminal.shows("› ").await;
    let history = terminal.data().join("acp/chat-history");
    assert_eq!(mode(&history), 0o600);
    assert_eq!(mode(history.parent().unwrap()), 0o700);
}
