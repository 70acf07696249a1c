//! Recordings as text, and what the check makes of them.

use super::*;
use crate::judge::Level;

fn run(text: &str, options: &CheckOptions) -> (Summary, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let mut bytes = 0;
    let summary = check(
        text.as_bytes(),
        Schemas::any().unwrap(),
        options,
        |finding| findings.push(finding),
        |read| bytes += read,
    )
    .unwrap();
    assert_eq!(bytes, text.len() as u64);
    (summary, findings)
}

fn checked(text: &str) -> (Summary, Vec<Diagnostic>) {
    run(text, &CheckOptions::default())
}

const TURN: &str = r#"
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}}
"#;

#[test]
fn a_clean_turn_has_no_finding() {
    let (summary, findings) = checked(TURN);
    assert_eq!(findings, []);
    assert_eq!((summary.agent.valid, summary.client.valid), (2, 1));
    assert_eq!((summary.lines, summary.messages()), (4, 3));
}

#[test]
fn a_broken_field_has_a_line_a_method_and_a_pointer() {
    let (summary, findings) = checked(&TURN.replace(r#""text":"hi""#, r#""text":7"#));
    assert_eq!(summary.errors, 1);
    assert_eq!(summary.agent.invalid, 1);
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!(finding.finding.place, 3);
    assert_eq!(finding.finding.method.as_deref(), Some("session/update"));
    assert_eq!(finding.finding.pointer, "/params/update/content/text");
}

#[test]
fn plain_messages_are_checked_alike() {
    let plain = TURN
        .replace(r#"{"dir":"c2a","msg":"#, "")
        .replace(r#"{"dir":"a2c","msg":"#, "")
        .replace("}}\n", "}\n");
    let (summary, findings) = checked(&plain);
    assert_eq!(findings, []);
    assert_eq!((summary.agent.valid, summary.client.valid), (2, 1));

    let broken = plain.replace("end_turn", "done");
    let (_, findings) = checked(&broken);
    assert_eq!(findings[0].finding.pointer, "/result/stopReason");
}

#[test]
fn one_partys_messages_alone_are_checked_when_told_whose_they_are() {
    let line = r#"{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}"#;
    let (summary, findings) = checked(line);
    assert_eq!((summary.unknown, findings.len()), (1, 0));
    let options = CheckOptions {
        from: Some(Party::Agent),
        ..CheckOptions::default()
    };
    let (summary, findings) = run(line, &options);
    assert_eq!((summary.agent.open, findings.len()), (1, 0));
}

#[test]
fn lines_that_are_no_messages_are_errors() {
    let (summary, findings) = checked("oops\n{\"dir\":\"up\"}\n[]\n7\n");
    assert_eq!(summary.errors, 4);
    let rules: Vec<FindingKind> = findings.iter().map(|found| found.finding.rule).collect();
    assert_eq!(
        rules,
        [
            FindingKind::NotJson,
            FindingKind::Record,
            FindingKind::Envelope,
            FindingKind::Envelope
        ]
    );
    assert!(
        findings[3]
            .finding
            .message
            .contains("an integer is no message")
    );
}

#[test]
fn the_agents_noise_is_an_error_and_the_clients_is_a_probe() {
    let noise = r#"{"dir":"a2c","raw":"Listening on stdio"}"#;
    let (summary, findings) = checked(noise);
    assert_eq!(summary.agent.raw, 1);
    assert_eq!(
        (findings[0].finding.rule, findings[0].level),
        (FindingKind::NotJson, Level::Error)
    );
    let probe = noise.replace("a2c", "c2a");
    let (summary, findings) = checked(&probe);
    assert_eq!((summary.client.raw, findings.len()), (1, 0));
}

#[test]
fn an_answer_to_a_raw_line_finds_its_request() {
    let text = r#"{"dir":"c2a","raw":"{\"jsonrpc\":\"1.0\",\"id\":901,\"method\":\"session/list\"}"}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":901,"result":{"sessions":[]}}}
"#;
    let (summary, findings) = checked(text);
    assert_eq!(findings, []);
    assert_eq!(summary.agent.valid, 1);
}

#[test]
fn a_last_line_cut_off_is_a_warning_and_a_whole_one_is_checked() {
    let cut = TURN.trim_end();
    let (summary, _) = checked(cut);
    assert_eq!(
        (summary.errors, summary.warnings, summary.agent.valid),
        (0, 0, 2)
    );
    let (summary, findings) = checked(&cut[..cut.len() - 9]);
    assert_eq!((summary.errors, summary.warnings), (0, 1));
    assert_eq!(
        (findings[0].finding.place, findings[0].finding.rule),
        (4, FindingKind::Lost)
    );
}

#[test]
fn a_line_over_the_limit_is_passed_over() {
    let options = CheckOptions {
        line_limit: 120,
        ..CheckOptions::default()
    };
    let (summary, findings) = run(TURN, &options);
    assert_eq!(findings[0].finding.rule, FindingKind::TooLong);
    assert_eq!((findings[0].finding.place, summary.lines), (3, 4));
    assert_eq!(summary.agent.valid, 1);
}

#[test]
fn requests_without_an_answer_come_out_at_the_end() {
    let text =
        r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{}}}"#;
    let (summary, findings) = checked(text);
    assert_eq!(summary.errors, 2);
    assert!(findings.iter().all(|found| found.finding.place == 1));
}

const HANDSHAKE: &str = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true},"clientInfo":{"name":"c","version":"1"}}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}}
"#;

const RELEASE: &str = r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":9,"method":"terminal/release","params":{"sessionId":"s","terminalId":"t"}}}
"#;

fn rules(text: &str) -> Vec<(u64, &'static str, Level)> {
    let (_, findings) = checked(text);
    let known = findings.iter();
    known
        .map(|found| {
            let finding = &found.finding;
            (finding.place, finding.rule.as_str(), found.level)
        })
        .collect()
}

#[test]
fn a_message_that_is_valid_and_out_of_place_is_found_at_its_line() {
    let found = rules(&format!("{HANDSHAKE}{RELEASE}"));
    assert_eq!(
        found,
        [
            (3, "session-setup.known-session", Level::Warning),
            (3, "terminals.known-id", Level::Warning)
        ]
    );
}

/// An agent of version 2 with a child session: announced and at work, then replayed.
#[test]
fn an_announced_child_session_is_known() {
    const CLIENT: [&str; 2] = [
        r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}}}"#,
        r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w"}}}"#,
    ];
    let setup = [
        CLIENT[0],
        r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}}"#,
        CLIENT[1],
        r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}}"#,
    ];
    let update = |session: &str, update: &str| {
        format!(
            r#"{{"dir":"a2c","msg":{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":{update}}}}}}}}}"#
        )
    };
    let announced = update(
        "s",
        r#""subagent_update","sessionId":"child","title":"Find it""#,
    );
    let call = |status| {
        let call =
            format!(r#""tool_call_update","toolCallId":"c","title":"t","status":"{status}""#);
        update("child", &call)
    };
    let work = ["pending", "in_progress", "completed"].map(call).join("\n");
    let setup = setup.join("\n");
    let found = rules(&format!("{setup}\n{announced}\n{work}\n"));
    assert_eq!(found, []);
    // A replay repeats it.
    let resume = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":2,"method":"session/resume","params":{"sessionId":"s","cwd":"/w","replayFrom":{"type":"start"}}}}"#;
    let state = update("s", r#""state_update","state":"idle""#);
    let resumed = r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":2,"result":{}}}"#;
    let replay = format!("{resume}\n{announced}\n{work}\n{state}\n{resumed}\n");
    let found = rules(&format!("{setup}\n{announced}\n{work}\n{replay}"));
    assert_eq!(found, []);
    let found = rules(&format!("{setup}\n{work}\n"));
    assert_eq!(found[0], (5, "session-setup.known-session", Level::Warning));
}

#[test]
fn what_was_not_seen_is_held_against_nobody() {
    assert_eq!(rules(RELEASE), []);
    let lost = r#"{"dir":"c2a","lost":1}"#;
    let found = rules(&format!("{HANDSHAKE}{lost}\n{RELEASE}"));
    assert_eq!(found, [(3, "lost", Level::Warning)]);
}

#[test]
fn what_was_not_done_until_the_end_is_found_where_it_began() {
    let turn = r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"sessionId":"s","command":"ls"}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":1,"result":{"terminalId":"t"}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":2,"method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"t"}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":2,"result":{"exitCode":0}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":3,"method":"terminal/output","params":{"sessionId":"s","terminalId":"t"}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":3,"result":{"output":"","truncated":false}}}"#;
    let prompt = TURN.trim().lines().next().unwrap();
    let end = TURN.trim().lines().last().unwrap();
    let text = format!("{HANDSHAKE}{prompt}\n{turn}\n{end}\n");
    let found = rules(&text);
    assert_eq!(found, [(5, "terminals.released", Level::Error)]);
    assert_eq!(rules(&format!("{text}{RELEASE}")), []);
}
