//! `acp prompt` to a session that an `acp chat` uses.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::acp::{Acp, Ended};
use super::agents::Home;
use super::mechanisms::mechanisms;
use super::pty::Terminal;
use super::script::script;
use crate::agent::within;

/// An agent that answers each prompt with what it was sent.
const ECHO: &str = r#"
answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'; answer '{"sessionId":"s"}'
while prompt; do case $line in *ask*) ask execute;; *slow*) say 'slow\n'; message;; esac; say "$(quoted)\n"; end end_turn; done"#;

fn chat(agent: &str) -> Terminal {
    let agent = script(agent);
    Terminal::acp(&["chat", "--session", "work", "--", "sh", "-c", &agent])
}

fn prompting(terminal: &Terminal, args: &[&str]) -> Acp {
    Acp::spawn(terminal.command(&[&["prompt", "--session", "work"], args].concat()))
}

async fn prompt(terminal: &Terminal, args: &[&str]) -> Ended {
    prompting(terminal, args).end().await
}

async fn leave(mut terminal: Terminal) {
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

/// The socket of the only name.
fn socket(data: &std::path::Path) -> PathBuf {
    let folder = data.join("acp/sessions").read_dir().unwrap();
    let mut files = folder.map(|file| file.unwrap().path());
    files
        .find(|file| file.extension().is_some_and(|end| end == "sock"))
        .unwrap()
}

/// Both see the turn, and what is typed in the chat stays.
#[tokio::test]
async fn a_prompt_of_another_shell_is_a_turn_of_the_chat() {
    let mut terminal = chat(ECHO);
    terminal.shows("› ").await;
    terminal.types("above\u{a}half");
    terminal.shows("half").await;
    let ended = prompt(&terminal, &["outside"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("'text':'outside'"), "{ended:?}");
    terminal.shows("a prompt of `acp prompt`:").await;
    terminal.shows("› outside").await;
    terminal.shows("'text':'outside'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› above").await;
    terminal.shows("half").await;
    terminal.types("-done\r");
    terminal.shows("'text':'above/nhalf-done'").await;
    terminal.shows(" s\r\n").await;
    let json = prompt(&terminal, &["--format", "json", "/undo"]).await;
    assert_eq!(json.lines()[0]["type"], "session");
    let result = json.result();
    assert_eq!(
        (&result["exitCode"], &result["stopReason"]),
        (&0.into(), &"end_turn".into())
    );
    assert!(
        result["text"].as_str().unwrap().contains("'text':'/undo'"),
        "no command: {result}"
    );
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

#[tokio::test]
async fn the_permissions_of_the_chat_decide() {
    let mut terminal = chat(ECHO);
    terminal.shows("› ").await;
    let mut acp = prompting(&terminal, &["ask"]);
    terminal.shows("y  allow once: Yes").await;
    terminal.types("y");
    acp.complained("allowed once").await;
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("'optionId':'2'"), "{ended:?}");
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

/// It waits for the turn that runs, in its order, and has the printed id.
#[tokio::test]
async fn a_prompt_is_accepted_without_waiting_for_it() {
    let ids = r#""loadSession":true,"_meta":{"acp-sdk":{"promptId":true}}"#;
    let mut terminal = chat(&ECHO.replace(r#""loadSession":true"#, ids));
    terminal.shows("› ").await;
    terminal.types("slow\r");
    terminal.shows("slow\r\n").await;
    let ended = prompt(&terminal, &["--no-wait", "later"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let id = ended.stdout.trim_end().to_owned();
    // The sum of those that wait is limited.
    for _ in 1..10 {
        let ended = prompt(&terminal, &["--no-wait", "--format", "json", "more"]).await;
        assert_eq!(ended.lines()[0]["type"], "accepted", "{ended:?}");
    }
    let refused = prompt(&terminal, &["more"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("too many other prompts wait"),
        "{refused:?}"
    );
    let gone = prompting(&terminal, &["more"]);
    drop(gone);
    terminal.types("\u{1b}");
    terminal.shows("› later").await;
    terminal.shows(&format!("'promptId':'{id}'")).await;
    for _ in 1..10 {
        terminal.shows("'text':'more'").await;
        terminal.shows(" s\r\n").await;
    }
    leave(terminal).await;
}

#[tokio::test]
async fn a_run_takes_no_prompts() {
    let home = Home::new();
    let agent = script(
        "answer '{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}'; answer '{\"sessionId\":\"s\"}'; prompt; say 'working\\n'; message",
    );
    let mut command = home.command(&["run", "--deny-all", "--session", "work", "hi"]);
    command.args(["--", "sh", "-c", &agent]);
    let mut acp = Acp::spawn(command);
    acp.printed("working").await;
    let refused = home.acp(&["prompt", "--session", "work", "hi"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("`acp run` ends with its turn"),
        "{refused:?}"
    );
    acp.signal(Signal::KILL);
    acp.end().await;
    let gone = home.acp(&["prompt", "--session", "work", "hi"]).await;
    assert!(gone.stderr.contains("no acp uses the session"), "{gone:?}");
}

/// Files that no `acp prompt` has just written are no prompts.
#[tokio::test]
async fn only_a_new_file_beside_the_socket_is_a_prompt() {
    let mut terminal = chat(ECHO);
    terminal.shows("› ").await;
    let socket = socket(terminal.data());
    let json = r#"{"text":"forged","format":null,"isTerminal":false,"isShared":false}"#;
    let old = socket.with_extension("old.prompt");
    std::fs::write(&old, json).unwrap();
    let hour = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(hour)
        .unwrap();
    let elsewhere = terminal.data().join("x.prompt");
    std::fs::write(&elsewhere, json).unwrap();
    for id in ["old", "none", "/../../x", ""] {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        let request = format!("prompt {id}\n");
        within(stream.write_all(request.as_bytes())).await.unwrap();
        let mut answer = String::new();
        within(stream.read_to_string(&mut answer)).await.unwrap();
        assert_eq!(answer, "", "{id}");
    }
    assert!(!old.exists() && elsewhere.exists());
}

/// It can connect to the socket, and prompts nobody.
#[tokio::test]
async fn an_agent_in_a_sandbox_prompts_no_other_session() {
    for mechanism in mechanisms() {
        let mut terminal = chat(ECHO);
        terminal.shows("› ").await;
        let (acp, here) = (env!("CARGO_BIN_EXE_acp"), std::env::current_dir().unwrap());
        let agent = script(&format!(
            "start; prompt; {acp} status --session work --cwd '{0}' >&2 && say 'seen '
            {acp} prompt --session work --cwd '{0}' --no-wait forged >&2 || say 'refused'; end end_turn",
            here.display()
        ));
        let dir = tempfile::tempdir().unwrap();
        let flag = format!("--sandbox={mechanism}");
        let mut command = terminal.command(&["run", "-v", "--approve-all", &flag, "hi"]);
        command
            .args(["--", "sh", "-c", &agent])
            .current_dir(dir.path());
        let ended = Acp::spawn(command).end().await;
        assert_eq!(
            ended.stdout.trim_end(),
            "seen refused",
            "{mechanism}: {ended:?}"
        );
        assert!(
            ended.stderr.contains("cannot write the prompt"),
            "{ended:?}"
        );
    }
}
