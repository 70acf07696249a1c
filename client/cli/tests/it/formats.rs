//! The output of each format, and the exit code of each stop reason.

use serde_json::json;

use super::acp::{Acp, Gate, run};
use super::pty::Terminal;
use super::script::script;
use crate::agent::within;

#[tokio::test]
async fn text_is_printed_as_it_arrives() {
    let gate = Gate::new();
    let agent = format!(
        "start; prompt; say one; {}; say ' two'; end end_turn",
        gate.pass()
    );
    let mut acp = Acp::start(&["--deny-all", "hi"], &agent);
    acp.printed("one").await;
    // The agent continues only now, so the earlier output was not buffered until more followed.
    gate.open();
    let ended = acp.end().await;
    assert_eq!(ended.stdout, "one two\n");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
}

/// A turn with updates of each kind.
const FULL: &str = r#"start; prompt
update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Let me"}}'
update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":" see.\nWell"}}'
say 'First.'
update '{"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"in_progress"}]}'
update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read it","kind":"read"}'
update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}'
ask edit
update '{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.5,"currency":"EUR"}}'
update '{"sessionUpdate":"of_the_future","x":[1,2]}'
say 'Second'; say '.'
end end_turn"#;

#[tokio::test]
async fn text_goes_to_stdout_and_all_else_to_stderr() {
    let ended = run(&["--approve-all", "hi"], FULL).await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stdout, "First.\n\nSecond.\n");
    let expected = "thinking: Let me see.\nthinking: Well\nplan:\n  [>] Read\n\
                    tool: Read it (read)\ntool: Read it (read): completed\n\
                    permission: Do it (edit): allowed once\n\
                    usage: 10 of 100 tokens, 0.5 EUR\n";
    assert_eq!(ended.stderr, expected);
}

/// A turn with a subagent in a session of its own, which has a name and names its parent.
const SUBAGENT: &str = r#"start; prompt
child() { send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child","update":'"$1"',"_meta":{"parentSessionId":"s"}}}'; }
say 'Own.'
update '{"sessionUpdate":"subagent_update","sessionId":"child","title":"Finder"}'
child '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Only for the parent."}}'
child '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Find it","kind":"search"}'
child '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}'
end end_turn"#;

#[tokio::test]
async fn tool_calls_of_a_subagent_are_shown_and_its_text_is_no_answer() {
    let ended = run(&["--deny-all", "hi"], SUBAGENT).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "Own.\n");
    let expected = "subagent Finder: tool: Find it (search)\nsubagent Finder: tool: Find it (search): completed\n";
    assert_eq!(ended.stderr, expected);
    let ended = run(&["--format", "json", "--deny-all", "hi"], SUBAGENT).await;
    let lines = ended.lines();
    let of_child = lines.iter().filter(|line| line["type"] == "child_update");
    let of_child: Vec<_> = of_child.collect();
    assert_eq!(of_child.len(), 3);
    for line in of_child {
        assert_eq!(
            (&line["sessionId"], &line["title"]),
            (&json!("child"), &json!("Finder"))
        );
    }
    assert_eq!(lines.last().unwrap()["text"], "Own.");
}

#[tokio::test]
async fn where_both_streams_go_to_one_place_lines_stay_apart() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let both = |file: &std::fs::File| std::process::Stdio::from(file.try_clone().unwrap());
    let agent = r#"start; prompt; say One; say .
        update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read it"}'
        update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}'
        say Two; end refusal"#;
    let status = tokio::process::Command::new(env!("CARGO_BIN_EXE_acp"))
        .args(["run", "--deny-all", "hi", "--", "sh", "-c", &script(agent)])
        .stdin(std::process::Stdio::null())
        .stdout(both(file.as_file()))
        .stderr(both(file.as_file()))
        .status();
    assert_eq!(within(status).await.unwrap().code(), Some(4));
    let printed = std::fs::read_to_string(file.path()).unwrap();
    let expected = "One.\ntool: Read it\ntool: Read it: failed\n\nTwo\n\
                    acp: the turn ended with refusal\n";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn quiet_prints_the_text_alone() {
    let ended = run(&["--format", "quiet", "--deny-all", "hi"], FULL).await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stdout, "First.\n\nSecond.\n");
    assert_eq!(ended.stderr, "");
}

#[tokio::test]
async fn json_is_one_object_a_line_and_a_result_last() {
    let ended = run(&["--format", "json", "--deny-all", "hi"], FULL).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines = ended.lines();
    let types: Vec<_> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    let mut expected = vec!["session"];
    expected.extend(["update"; 6]);
    expected.push("permission");
    expected.extend(["update"; 4]);
    expected.push("result");
    assert_eq!(types, expected);

    assert_eq!(lines[0]["sessionId"], "s");
    assert_eq!(lines[0]["agent"]["protocolVersion"], 1);
    assert_eq!(lines[3]["update"]["content"]["text"], "First.");
    assert_eq!(lines[3]["sessionId"], "s");
    assert_eq!(lines[7]["toolCall"]["title"], "Do it");
    assert_eq!(lines[7]["kind"], "edit");
    let chosen = json!({"outcome": "selected", "optionId": "1"});
    assert_eq!(lines[7]["outcome"], chosen);
    let future = json!({"sessionUpdate": "of_the_future", "x": [1, 2]});
    assert_eq!(lines[9]["update"], future, "what is not known is passed on");

    let mut result = ended.result();
    let calls = result["toolCalls"].take();
    assert_eq!(calls[0]["toolCallId"], "c");
    assert_eq!(calls[0]["status"], "completed");
    assert_eq!(
        result,
        json!({
            "type": "result", "exitCode": 0, "sessionId": "s", "stopReason": "end_turn",
            "text": "First.\n\nSecond.", "thoughts": "Let me see.\nWell", "toolCalls": null,
            "plan": {"entries": [{"content": "Read", "priority": "high", "status": "in_progress"}]},
            "usage": {"used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "EUR"}},
            "turnCost": {"amount": 0.5, "currency": "EUR"},
            "truncated": false
        })
    );
}

#[tokio::test]
async fn the_exit_code_tells_why_the_turn_ended() {
    let codes = [
        ("end_turn", 0),
        ("max_tokens", 5),
        ("max_turn_requests", 5),
        ("refusal", 4),
        ("cancelled", 130),
        ("error", 1),
    ];
    for (reason, code) in codes {
        let agent = format!("start; prompt; say text; end {reason}");
        let ended = run(&["--deny-all", "hi"], &agent).await;
        assert_eq!(ended.code, Some(code), "{reason}");
        assert_eq!(ended.stdout, "text\n");
        let told = ended.stderr.contains(reason);
        assert_eq!(told, code != 0, "{}", ended.stderr);
        let ended = run(&["--format", "json", "--deny-all", "hi"], &agent).await;
        assert_eq!(ended.code, Some(code));
        assert_eq!(ended.result()["exitCode"], code);
        assert_eq!(ended.result()["stopReason"], reason);
    }
}

#[tokio::test]
async fn a_prompt_comes_from_standard_input_if_so_wanted() {
    let agent = "start; prompt; l=${line#*'\"text\":\"'}; say \"<${l%%'\"'*}>\"; end end_turn";
    let mut acp = Acp::start(&["--deny-all", "-"], agent);
    acp.types("line one\nline two").await;
    let ended = acp.end().await;
    assert_eq!(ended.stdout, "<line one\nline two>\n");
    assert_eq!(ended.code, Some(0));
    let ended = run(&["--deny-all", "-"], agent).await;
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.stderr,
        "acp: cannot take the prompt from standard input: it is empty\n"
    );
}

#[tokio::test]
async fn the_agent_works_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let agent = "answer '{\"protocolVersion\":1}'; message; asked=$(quoted)
        send '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"sessionId\":\"s\"}}'
        prompt; say \"$asked\"; say \"$(pwd -P)\"; end end_turn";
    let ended = run(
        &["--deny-all", "--cwd", path.to_str().unwrap(), "hi"],
        agent,
    )
    .await;
    let expected = format!("'cwd':'{}'", path.display());
    assert!(ended.stdout.contains(&expected), "{ended:?}");
    assert!(
        ended.stdout.ends_with(&format!("{}\n", path.display())),
        "{ended:?}"
    );
}

#[tokio::test]
async fn updates_outside_of_the_turn_are_not_lost() {
    let agent = "start
        update '{\"sessionUpdate\":\"current_mode_update\",\"currentModeId\":\"plan\"}'
        prompt; say text; end end_turn";
    let ended = run(&["--format", "json", "--deny-all", "hi"], agent).await;
    let modes = ended.lines();
    let modes = modes
        .iter()
        .filter(|line| line["update"]["currentModeId"] == "plan");
    assert_eq!(modes.count(), 1);
}

/// JSON has no escapes for these unless somebody writes them.
#[tokio::test]
async fn json_on_a_terminal_has_escapes_for_what_would_control_it() {
    let agent = script(
        "start; prompt; say \"$(printf 'a\\302\\233b\\342\\200\\256c')\"; end end_turn; message",
    );
    let args = ["--format", "json", "--deny-all", "hi"];
    let mut terminal = Terminal::acp(&[&["run"][..], &args, &["--", "sh", "-c", &agent]].concat());
    terminal.shows(r#""text":"a\u009bb\u202ec""#).await;
    assert_eq!(terminal.code().await, Some(0));
    let ended = run(
        &args,
        "start; prompt; say \"$(printf 'a\\302\\233b')\"; end end_turn; message",
    )
    .await;
    assert!(ended.stdout.contains("a\u{9b}b"), "{}", ended.stdout);
}

/// Each character is a chunk, so every sequence is split everywhere.
#[tokio::test]
async fn sequences_in_several_chunks_do_not_reach_a_terminal() {
    let text = "one\u{1b}[1;31mred\u{1b}]0;title\u{7}\u{9b}2J\u{1b}]8;;http://x\u{1b}\\link\u{90}q\u{9c}\u{202e}end\n";
    let chunks = text
        .chars()
        .map(|c| format!(r"say '\u{:04x}'", u32::from(c)));
    let chunks = chunks.collect::<Vec<_>>().join("; ");
    let agent = format!("start; prompt; {chunks}; end end_turn; message");
    let words = ["run", "--deny-all", "hi", "--", "sh", "-c", &script(&agent)];
    let mut terminal = Terminal::acp(&words);
    terminal.shows("oneredlinkend\r\n").await;
    assert_eq!(terminal.code().await, Some(0));
    let ended = run(&["--deny-all", "hi"], &agent).await;
    assert_eq!(ended.stdout, text);
}
