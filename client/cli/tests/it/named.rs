//! `acp run --session`, `--resume` and `--mcp-server`.

use super::acp::{Acp, Ended, Gate};
use super::agents::Home;
use super::script::script;

/// `acp run --deny-all ARGS hi -- sh -c AGENT`
async fn run(home: &Home, args: &[&str], agent: &str) -> Ended {
    started(home, args, agent).end().await
}

fn started(home: &Home, args: &[&str], agent: &str) -> Acp {
    let mut command = home.command(&["run", "--deny-all"]);
    command
        .args(args)
        .args(["hi", "--", "sh", "-c", &script(agent)]);
    Acp::spawn(command)
}

/// Reports the method that opened the session, with its id or its servers.
const OPENS: &str = r#"
case $line in *'"method":"session/new"'*) send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"s"}}'; how=new;;
*'"method":"session/load"'*'"sessionId":"s"'*) how=load; say 'old words'; send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}';;
*'"method":"session/resume"'*'"sessionId":"s"'*) how=resume; send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}';;
*) send '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32002,"message":"Not here"}}'; message; exit;; esac
prompt; say "$how"; end end_turn; message
"#;

const LOADS: &str =
    r#"answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'; message"#;
const RESUMES: &str = r#"answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}'; message"#;

#[tokio::test]
async fn a_name_continues_its_session() {
    for (hello, how) in [(LOADS, "load\n"), (RESUMES, "resume\n")] {
        let home = Home::new();
        let agent = format!("{hello}; {OPENS}");
        let first = run(&home, &["--session", "a b"], &agent).await;
        assert_eq!(
            (first.code, first.stdout.as_str()),
            (Some(0), "new\n"),
            "{}",
            first.stderr
        );
        // The history is not printed again.
        let second = run(&home, &["--session", "a b"], &agent).await;
        assert_eq!(
            (second.code, second.stdout.as_str()),
            (Some(0), how),
            "{}",
            second.stderr
        );
        let other = run(&home, &["--session", "other"], &agent).await;
        assert_eq!(other.stdout, "new\n");
        let new = run(&home, &["--session", "a b", "--new-session"], &agent).await;
        assert_eq!(new.stdout, "new\n");
        let by_id = run(&home, &["--resume", "s"], &agent).await;
        assert_eq!(by_id.stdout, how);
    }
}

#[tokio::test]
async fn what_cannot_be_continued_is_never_replaced() {
    let home = Home::new();
    let plain = format!("answer '{{\"protocolVersion\":1}}'; message; {OPENS}");
    for args in [&["--session", "n"][..], &["--resume", "s"]] {
        let ended = run(&home, args, &plain).await;
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(1), ""),
            "{args:?}"
        );
        assert!(
            ended
                .stderr
                .contains("neither session/resume nor session/load"),
            "{}",
            ended.stderr
        );
    }
    // The agent loses its sessions. Its state is in a file, so its command line is unchanged.
    let mood = home.path("mood");
    let agent = format!(
        "{LOADS}; if [ -e '{}' ]; then line=; fi; {OPENS}",
        mood.display()
    );
    assert_eq!(
        run(&home, &["--session", "n"], &agent).await.stdout,
        "new\n"
    );
    std::fs::write(&mood, "").unwrap();
    let ended = run(&home, &["--session", "n", "--format", "json"], &agent).await;
    assert_eq!(ended.code, Some(1));
    let error = ended.result()["error"].clone();
    assert_eq!(error["kind"], "session");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("Not here") && message.contains("--new-session"),
        "{message}"
    );
    let ended = run(&home, &["--resume", "gone"], &agent).await;
    assert!(
        ended.stderr.contains("acp sessions list"),
        "{}",
        ended.stderr
    );
    // The name is still stored when the agent has its sessions again.
    std::fs::remove_file(&mood).unwrap();
    assert_eq!(
        run(&home, &["--session", "n"], &agent).await.stdout,
        "load\n"
    );
}

#[tokio::test]
async fn one_run_at_a_time_uses_a_name() {
    let home = Home::new();
    let gate = Gate::new();
    let waits = format!(
        "{LOADS}; send '{{\"jsonrpc\":\"2.0\",\"id\":'\"$id\"',\"result\":{{\"sessionId\":\"s\"}}}}'; prompt; say here; {}; end end_turn; message",
        gate.pass()
    );
    let mut first = started(&home, &["--session", "n"], &waits);
    first.printed("here").await;
    let second = run(&home, &["--session", "n"], &waits).await;
    assert_eq!(second.code, Some(1));
    assert!(
        second.stderr.contains("another acp uses the session"),
        "{}",
        second.stderr
    );
    gate.open();
    assert_eq!(first.end().await.code, Some(0));
}

#[tokio::test]
async fn mcp_servers_are_sent_as_far_as_the_agent_can_use_them() {
    let home = Home::new();
    let agent = r#"answer '{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}'; message
        servers=$(quoted); send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"s"}}'; prompt; say "$servers"; end end_turn; message"#;
    let servers = [
        "--mcp-server",
        "files=sh -c 'a b'",
        "--mcp-server",
        "web=https://host/mcp",
    ];
    let ended = run(&home, &servers, agent).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let said = ended.stdout;
    assert!(
        said.contains("'name':'files'") && said.contains("'args':['-c','a b']"),
        "{said}"
    );
    assert!(
        said.contains("/sh'") && said.contains("'url':'https://host/mcp'"),
        "{said}"
    );
    home.write(
        "mcp.json",
        r#"{"mcpServers": {"old": {"type": "sse", "url": "https://host/sse"}}}"#,
    );
    let file = home.path("mcp.json");
    let ended = run(&home, &["--mcp-server", file.to_str().unwrap()], agent).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("mcpCapabilities.sse"),
        "{}",
        ended.stderr
    );
    let ended = run(&home, &["--mcp-server", "files=no-such-program"], agent).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("no-such-program is not found"),
        "{}",
        ended.stderr
    );
}

/// An agent with one session that repeats the prompt.
const KEEPS: &str = r#"
answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"delete":{},"fork":{},"resume":{}}}}'
while message; do case $line in
*session/new*) send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"the-id"}}';;
*session/list*) send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessions":[{"sessionId":"the-id","cwd":"/","title":"T"},{"sessionId":"u","cwd":"/"}]}}';;
*session/prompt*) prompt=$id; end end_turn;;
*session/fork*'"the-id"'*) send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"copy"}}';;
*'"the-id"'*) send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"the-id","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Old"}}}}'
    send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}';;
*) send '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32002,"message":"No such session"}}';; esac; done
"#;

#[tokio::test]
async fn a_name_stands_for_its_session_in_other_commands() {
    let home = Home::new();
    home.configure(&serde_json::json!({ "keeper": super::agents::server(KEEPS) }));
    let run = ["run", "--deny-all", "--session", "fix it", "keeper", "hi"];
    let ended = home.acp(&run).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = home.acp(&["sessions", "list", "keeper"]).await;
    assert_eq!(
        ended.stdout, "the-id  -  /  T  [fix it]\nu  -  /  -\n",
        "{}",
        ended.stderr
    );
    let listed = home
        .acp(&["sessions", "list", "--agent", "keeper", "--format", "json"])
        .await;
    assert_eq!(listed.lines()[0]["names"], serde_json::json!(["fix it"]));
    assert_eq!(listed.lines()[1].get("names"), None);
    let shown = home.acp(&["sessions", "show", "keeper", "fix it"]).await;
    assert!(shown.stdout.contains("session:   the-id\n"), "{shown:?}");
    let exported = home
        .acp(&["sessions", "export", "--agent", "keeper", "fix it"])
        .await;
    assert!(exported.stdout.contains("Old"), "{exported:?}");
    let forked = home.acp(&["sessions", "fork", "keeper", "fix it"]).await;
    assert_eq!(forked.stdout, "copy\n", "{forked:?}");
    // An id is still accepted, and another directory has other names.
    assert_eq!(
        home.acp(&["sessions", "export", "keeper", "the-id"])
            .await
            .code,
        Some(0)
    );
    let elsewhere = ["sessions", "delete", "--cwd", "/", "keeper", "fix it"];
    let unknown = home.acp(&elsewhere).await;
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("there is no session \"fix it\""),
        "{unknown:?}"
    );
    let deleted = home.acp(&["sessions", "delete", "keeper", "fix it"]).await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    let gone = home.acp(&["sessions", "delete", "keeper", "fix it"]).await;
    assert_eq!(gone.code, Some(1), "the name went with its session");
    let ended = home.acp(&["sessions", "list"]).await;
    assert!(
        ended.stderr.contains("no agent is given"),
        "{}",
        ended.stderr
    );
}
