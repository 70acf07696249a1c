//! `acp --dialect`.

use rustix::process::Signal;

use super::acp::{Acp, acp, run};

/// Functions of agents for Chimera's client, after those of the prelude. The session is always `s`.
const CHIMERA: &str = r#"start() { answer '{"session_id":"s"}'; }
tell() { send '{"jsonrpc":"2.0","method":"agent/'"$1"'","params":'"$2"'}'; }
end() { send '{"jsonrpc":"2.0","id":'"$prompt"',"result":{}}'; }
"#;

#[tokio::test]
async fn an_agent_of_chimera_is_run() {
    let agent = r#"start; prompt; tell messageChunk '{"text":"Hello "}'
        tell usageUpdate '{"total_cost":0.05,"input_tokens":10,"output_tokens":5}'
        case $line in *'"message":"hi"'*) tell messageChunk '{"text":"world"}';; esac
        end; cat >/dev/null"#;
    let args = [
        "--dialect",
        "chimera",
        "--format",
        "json",
        "--deny-all",
        "hi",
    ];
    let ended = run(&args, &format!("{CHIMERA}{agent}")).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result = ended.result();
    assert_eq!(result["text"], "Hello world");
    assert_eq!(result["turnCost"]["amount"], 0.05, "{result}");
    assert_eq!(result["tokens"]["inputTokens"], 10, "{result}");
}

#[tokio::test]
async fn an_interrupt_ends_an_agent_of_chimera() {
    let agent = r#"start; prompt; tell messageChunk '{"text":"working"}'; exec sleep 1000"#;
    let args = ["--dialect", "chimera", "--deny-all", "hi"];
    let mut acp = Acp::start(&args, &format!("{CHIMERA}{agent}"));
    acp.printed("working").await;
    acp.signal(Signal::INT);
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(
        ended.stderr.ends_with("acp: the turn was cancelled\n"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_dialect_is_of_a_command() {
    for args in [
        &[
            "run",
            "--dialect",
            "chimera",
            "--url",
            "http://localhost",
            "hi",
        ][..],
        &["run", "--dialect", "otter", "hi", "--", "sh"],
        &["record", "--dialect", "chimera", "/no/file", "--", "sh"],
    ] {
        let ended = acp(args).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("--dialect"), "{ended:?}");
    }
}
