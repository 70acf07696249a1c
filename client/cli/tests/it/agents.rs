//! `acp agents`, and agents by name.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::acp::{Acp, Ended};
use super::script::script;

/// A home folder with configuration files.
pub struct Home(pub TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Configures agents in acp's own file.
    pub fn configure(&self, agents: &Value) {
        let settings = json!({ "agent_servers": agents });
        self.write("config/acp/agents.json", &settings.to_string());
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
        command.args(args).env_remove("ACP_REGISTRY");
        command.env("HOME", self.0.path());
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_DATA_HOME", self.path("data"));
        command
    }

    pub async fn acp(&self, args: &[&str]) -> Ended {
        Acp::spawn(self.command(args)).end().await
    }
}

/// An agent of a settings file that is a script.
pub fn server(agent: &str) -> Value {
    json!({"type": "custom", "command": "sh", "args": ["-c", script(agent)]})
}

const GREETER: &str = "start; prompt; say \"I am $WHO\"; end end_turn; message";

#[tokio::test]
async fn a_name_stands_for_a_command_line() {
    let home = Home::new();
    let mut agent = server(GREETER);
    agent["env"] = json!({"WHO": "Bob"});
    home.configure(&json!({ "bob": agent }));
    for args in [
        &["run", "--deny-all", "bob", "hi"][..],
        &["run", "--deny-all", "--agent", "Bob", "hi"],
    ] {
        let ended = home.acp(args).await;
        assert_eq!(ended.stdout, "I am Bob\n", "{}", ended.stderr);
        assert_eq!(ended.code, Some(0));
    }
}

#[tokio::test]
async fn an_unknown_name_is_told_with_the_known_ones() {
    let home = Home::new();
    let ended = home.acp(&["run", "codex", "hi"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("`codex`, nor any other"),
        "{}",
        ended.stderr
    );
    home.configure(&json!({"bob": {"command": "b"}, "eve": {"args": []}}));
    let ended = home.acp(&["run", "--format", "json", "codex", "hi"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("Configured are: bob, eve"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.result()["error"]["kind"], "usage");
    let ended = home.acp(&["run", "eve", "hi"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("`eve` of ") && ended.stderr.contains("no `command`"));
    assert_eq!(home.acp(&["agents", "codex"]).await.code, Some(2));
}

/// One agent in each of the four files, and one in two of them.
fn everywhere(home: &Home) {
    home.configure(&json!({"own": {"command": "sh"}, "both": {"command": "no-such-program"}}));
    home.write(
        "config/zed/settings.json",
        r#"{ // with a comment
            "agent_servers": { "both": { "command": "sh" }, "an-agent": { "type": "registry", "env": {"K": "V"} }, } }"#,
    );
    home.write(
        ".jetbrains/acp.json",
        r#"{"agent_servers": {"jet": {"command": "/bin/sh", "args": ["-c", "a b"]}}}"#,
    );
    let entry = json!({"id": "an-agent", "name": "An agent", "version": "1.2.3", "description": "It works",
        "distribution": {"npx": {"package": "an-agent@1.2.3"}}});
    home.write("data/acp/registry/an-agent/agent.json", &entry.to_string());
}

fn row<'a>(lines: &'a [Value], name: &str, source: &str) -> &'a Value {
    let mut rows = lines.iter();
    let row = rows.find(|line| line["name"] == name && line["source"] == source);
    row.unwrap_or_else(|| panic!("{name} of {source}: {lines:?}"))
}

#[tokio::test]
async fn every_file_is_read() {
    let home = Home::new();
    everywhere(&home);
    let ended = home.acp(&["agents", "--format", "json"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines = ended.lines();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(row(&lines, "own", "acp")["status"], "found");
    assert_eq!(row(&lines, "both", "acp")["status"], "missing");
    assert_eq!(row(&lines, "both", "zed")["status"], "found");
    let jet = row(&lines, "jet", "jetbrains");
    assert_eq!(jet["command"], r#"/bin/sh -c "a b""#);
    let file = home.path(".jetbrains/acp.json");
    assert_eq!(jet["file"], file.to_str().unwrap());
    let listed = row(&lines, "an-agent", "zed");
    assert_eq!(listed["version"], "1.2.3");
    assert_eq!(listed["command"], "npx --yes an-agent@1.2.3");
    // The registry is listed on request only.
    let all = home
        .acp(&["agents", "--all", "--format", "json"])
        .await
        .lines();
    assert_eq!(row(&all, "an-agent", "registry")["description"], "It works");
    // The first file has precedence.
    let ended = home.acp(&["run", "both", "hi"]).await;
    assert!(
        ended.stderr.contains("no-such-program is not found"),
        "{}",
        ended.stderr
    );
    let text = home.acp(&["agents", "jet"]).await.stdout;
    assert_eq!(
        text,
        "NAME  SOURCE     VERSION  STATUS  COMMAND\n\
         jet   jetbrains  -        found   /bin/sh -c \"a b\"\n"
    );
}

#[tokio::test]
async fn a_file_that_is_broken_spoils_no_other() {
    let home = Home::new();
    everywhere(&home);
    home.write("config/zed/settings.json", "{");
    home.write("data/acp/registry/other/agent.json", "[]");
    let ended = home.acp(&["agents"]).await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("cannot use ") && ended.stderr.contains("zed/settings.json: "));
    assert!(
        ended.stderr.contains("other/agent.json: "),
        "{}",
        ended.stderr
    );
    assert!(ended.stdout.contains("jet ") && ended.stdout.contains("own "));
    // Reading a named pipe would block.
    let pipe = home.path("config/zed/settings.json");
    std::fs::remove_file(&pipe).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let ended = home.acp(&["agents"]).await;
    assert!(
        ended.stderr.contains("it is not a file"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn a_check_starts_the_agents() {
    let home = Home::new();
    let ready =
        r#"answer '{"protocolVersion":1,"agentInfo":{"name":"a","version":"7.8"}}'; message"#;
    home.configure(&json!({
        "ready": server(ready), "silent": server("message; message"),
        "dead": server("echo 'no key' >&2; exit 1"), "none": {"command": "no-such-program"},
    }));
    let ended = home
        .acp(&["agents", "--check", "--timeout", "20", "ready"])
        .await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("7.8      ready "), "{}", ended.stdout);
    let check = &["agents", "--check", "--timeout", "2", "--format", "json"];
    let ended = home.acp(check).await;
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let lines = ended.lines();
    for (name, reason) in [
        ("silent", "within 2 s"),
        ("dead", "no key"),
        ("none", "not found in PATH"),
    ] {
        let row = row(&lines, name, "acp");
        assert_eq!(row["status"], "failed");
        assert!(row["reason"].as_str().unwrap().contains(reason), "{row}");
    }
}

#[tokio::test]
async fn the_registry_can_be_elsewhere() {
    let home = Home::new();
    everywhere(&home);
    let moved = home.path("elsewhere");
    std::fs::rename(home.path("data/acp/registry"), &moved).unwrap();
    let listed = |command: Command| async { Acp::spawn(command).end().await.stdout };
    let without = listed(home.command(&["agents", "--all"])).await;
    assert!(!without.contains("an-agent@1.2.3"), "{without}");
    let mut command = home.command(&["agents", "--all"]);
    command.env("ACP_REGISTRY", Path::new(&moved));
    let with = listed(command).await;
    assert!(with.contains("an-agent@1.2.3"), "{with}");
}
