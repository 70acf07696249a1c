//! Tokens of `acp` do not reach the processes that it starts.

use serde_json::json;

use super::acp::{Acp, Ended, command};
use super::agents::{Home, server};

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
