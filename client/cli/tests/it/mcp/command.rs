//! The command `acp mcp`, as a process.

use std::process::Stdio;

use rmcp::ServiceExt as _;
use tokio::process::{Child, Command};

use crate::agent::within;
use crate::host::{Connected, Host, call, texts};

async fn start(args: &[&str], agent: &str) -> (Connected, Child) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
    command.arg("mcp").args(args).args(["--", "sh", "-c"]);
    command.arg(crate::script::script(agent));
    connect(command).await
}

async fn connect(mut command: Command) -> (Connected, Child) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let host = within(Host::default().serve(streams)).await.unwrap();
    (host, child)
}

async fn leave(host: Connected, mut child: Child) -> Option<i32> {
    within(host.cancel()).await.unwrap();
    within(child.wait()).await.unwrap().code()
}

#[tokio::test]
async fn only_reading_is_allowed_unless_somebody_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("rules.toml");
    std::fs::write(&rules, "[[rule]]\neffect = \"allow\"\nkind = \"fetch\"\n").unwrap();
    let rules = ["--rules", rules.to_str().unwrap()];
    for (args, kind, id) in [
        (&[][..], "read", 2),
        (&[], "edit", 1),
        (&["--approve-all"], "edit", 2),
        (&["--deny-all"], "read", 1),
        (&rules, "fetch", 2),
        (&rules, "execute", 1),
    ] {
        let agent = format!("start; prompt; ask {kind}; say \"$(quoted)\"; end end_turn; message");
        let (host, child) = start(args, &agent).await;
        let tools = within(host.list_all_tools()).await.unwrap();
        assert_eq!(tools[0].name, "sh");
        let result = call(&host, "hi").await.unwrap();
        let chosen = format!("'outcome':'selected','optionId':'{id}'");
        assert!(
            texts(&result)[0].contains(&chosen),
            "{args:?} {kind}: {result:?}"
        );
        assert_eq!(leave(host, child).await, Some(0));
    }
}

#[tokio::test]
async fn an_agent_that_dies_is_started_again_by_the_next_call() {
    let agent = "start; prompt; say \"$$\"; end end_turn";
    let (host, child) = start(&["--name", "worker"], agent).await;
    let mut processes = Vec::new();
    for _ in 0..3 {
        let result = call(&host, "hi").await.unwrap();
        assert_eq!(result.is_error, Some(false), "{result:?}");
        processes.push(texts(&result)[0].to_owned());
    }
    processes.dedup();
    assert_eq!(processes.len(), 3, "{processes:?}");
    assert_eq!(leave(host, child).await, Some(0));
}

#[tokio::test]
async fn the_agent_ends_with_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .await
            .unwrap()
            .success()
    );
    // The pipe ends when the agent exits, for any reason.
    let agent = format!(
        "exec 3>'{}'; start; prompt; say begun; while message; do :; done",
        fifo.display()
    );
    let (host, child) = start(&[], &agent).await;
    let calling = {
        let peer = host.peer().clone();
        tokio::spawn(async move {
            let task = crate::host::params("sh", &serde_json::json!({"task": "hi"}));
            peer.call_tool(task).await
        })
    };
    let mut open = within(tokio::fs::File::open(&fifo)).await.unwrap();
    assert_eq!(leave(host, child).await, Some(0));
    let mut rest = Vec::new();
    within(tokio::io::AsyncReadExt::read_to_end(&mut open, &mut rest))
        .await
        .unwrap();
    assert!(within(calling).await.unwrap().is_err());
}

#[tokio::test]
async fn a_configured_agent_is_offered_under_its_name() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("acp")).unwrap();
    let agent = crate::script::script("start; prompt; say \"I am $WHO\"; end end_turn; message");
    let server = serde_json::json!({"command": "sh", "args": ["-c", agent], "env": {"WHO": "Bob"}});
    let settings = serde_json::json!({ "agent_servers": { "my bob": server } });
    std::fs::write(home.path().join("acp/agents.json"), settings.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
    command
        .args(["mcp", "my bob"])
        .env("XDG_CONFIG_HOME", home.path());
    let (host, child) = connect(command).await;
    let tools = within(host.list_all_tools()).await.unwrap();
    assert_eq!(tools[0].name, "my_bob");
    let result = call(&host, "hi").await.unwrap();
    assert_eq!(texts(&result)[0], "I am Bob");
    assert_eq!(leave(host, child).await, Some(0));
}

#[tokio::test]
async fn late_updates_are_part_of_the_result_if_they_are_awaited() {
    let agent = "start; prompt; say early; end end_turn; say late";
    for args in [&["--late-updates", "30"][..], &[]] {
        let (host, child) = start(args, agent).await;
        let result = call(&host, "hi").await;
        let result = result.unwrap();
        // The end of the agent ends the wait.
        match args.is_empty() {
            false => assert_eq!(texts(&result)[0], "earlylate"),
            true => assert!(texts(&result)[0].starts_with("early")),
        }
        assert_eq!(leave(host, child).await, Some(0));
    }
}

#[tokio::test]
async fn the_agents_of_a_file_are_a_tool_each() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let agent = |name: &str| {
        let script = format!("start; prompt; say \"{name} in $PWD\"; end end_turn; message");
        serde_json::json!(["sh", "-c", crate::script::script(&script)]).to_string()
    };
    let text = format!(
        "model = \"x\"\n[[agents]]\nname = \"one\"\ndescription = \"The first\"\ncommand = {}\n\
         [[agents]]\nname = \"two\"\nworkdir = \"sub\"\ncommand = {}\n",
        agent("one"),
        agent("two")
    );
    let file = dir.path().join("agents.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
    command.args(["mcp", "--approve-all", "--cwd"]);
    command.arg(dir.path()).arg("--agents").arg(&file);
    let (host, child) = connect(command).await;
    let tools = within(host.list_all_tools()).await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(tools[0].description.as_deref(), Some("The first"));
    for (name, place) in [("one", ""), ("two", "/sub")] {
        let task = crate::host::params(name, &serde_json::json!({"task": "hi"}));
        let result = within(host.call_tool(task)).await.unwrap();
        let text = texts(&result)[0];
        assert!(text.starts_with(&format!("{name} in ")), "{text}");
        assert_eq!(text.ends_with("/sub"), place == "/sub", "{text}");
    }
    let unknown = crate::host::params("three", &serde_json::json!({"task": "hi"}));
    let error = within(host.call_tool(unknown)).await.unwrap_err();
    assert!(error.to_string().contains("unknown tool: three"), "{error}");
    assert_eq!(leave(host, child).await, Some(0));
}

#[tokio::test]
async fn a_wrong_file_of_agents_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agents.toml");
    for (text, part) in [
        ("", "no table [[agents]]"),
        ("agents = []", "no table [[agents]]"),
        ("[[agents]]\nname = \"a\"", "either `command` or `agent`"),
        (
            "[[agents]]\nname = \"a b\"\ncommand = \"sh\"",
            "letters, digits",
        ),
        (
            "[[agents]]\nname = \"a\"\ncommand = \" \"",
            "member `command`: it is empty",
        ),
        (
            "[[agents]]\nname = \"a\"\ncommand = \"'\"",
            "cannot be split into words",
        ),
        ("[[agents]]\nname = \"a\"\nagent = \"missing\"", "agent `a`"),
        ("[[agents]]\nname = \"a\"\ncomand = \"sh\"", "comand"),
        (
            "[[agents]]\nname = \"a\"\ncommand = \"sh\"\ndirectory = \"/nonexistent\"",
            "/nonexistent",
        ),
        (
            "[[agents]]\nname = \"a\"\ncommand = \"sh\"\n[[agents]]\nname = \"a\"\ncommand = \"sh\"",
            "two agents have the name `a`",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
        command.args(["mcp", "--agents"]).arg(&file);
        let output = within(command.output()).await.unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {error}");
        assert!(
            error.contains(part) && error.contains("agents.toml"),
            "{text}: {error}"
        );
    }
}

#[tokio::test]
async fn wrong_usage_is_an_error_at_once() {
    for (args, part) in [
        (&["--rules", "/nonexistent", "--", "x"][..], "/nonexistent"),
        (&["--cwd", "/nonexistent", "--", "x"], "/nonexistent"),
        (&["--name", "a b", "--", "x"], "letters, digits"),
        (&["--max-concurrent", "0", "--", "x"], "from 1 on"),
        (&["no-such-agent"], "`no-such-agent`"),
        (&[], "no agent is given"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
        let output = within(command.arg("mcp").args(args).output())
            .await
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(part), "{args:?}: {error}");
        assert!(output.stdout.is_empty());
    }
}
