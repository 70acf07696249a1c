//! Oddities of the wire that are no faults, or that cost their own message and no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acp_sdk::v1::StopReason;
use acp_sdk::{ConnectionBuilder, Observer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{TestAgent, TestClient, agent, chunk, client, prompt};

/// What an agent answers to some lines, the end included.
async fn answers(input: impl AsRef<[u8]>) -> Vec<String> {
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let driver = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
    theirs.write_all(input.as_ref()).await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut output = String::new();
    theirs.read_to_string(&mut output).await.unwrap();
    driver.await.unwrap().unwrap();
    output.lines().map(str::to_owned).collect()
}

fn ping(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"_alive\"}}")
}

fn pong(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"yes\"}}")
}

async fn every_kind_of_id_comes_back_to_the_letter() {
    for id in [
        "0",
        "-9223372036854775808",
        "18446744073709551616",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\\/b\\u0041\"",
        "\"\\ud800\"",
        "\"ü\u{2028}\"",
        "null",
    ] {
        assert_eq!(answers(ping(id)).await, [pong(id)]);
    }
}

async fn line_endings_and_marks_of_all_sorts_are_put_up_with() {
    let input = format!(
        "\u{feff}{}\r\n\r\n \t\n\n  {}  \r\n{}",
        ping("1"),
        ping("\"\u{2028}\""),
        ping("3")
    );
    assert_eq!(
        answers(input).await,
        [pong("1"), pong("\"\u{2028}\""), pong("3")]
    );
    // A second mark is none, and a bare CR ends no line.
    let second = answers(format!("{}\n\u{feff}{}\n", ping("1"), ping("2"))).await;
    assert!(
        second[1].contains("-32700") && second.len() == 2,
        "{second:?}"
    );
    let bare = answers(format!("{}\r{}\n", ping("1"), ping("2"))).await;
    assert!(bare[0].contains("-32700") && bare.len() == 1, "{bare:?}");
}

async fn envelopes_that_break_the_rules_are_refused_by_their_id() {
    for (line, code, id) in [
        (r#"{"id":3,"method":"_alive"}"#, -32600, json!(3)),
        (
            r#"{"jsonrpc":"1.0","id":3,"method":"_alive"}"#,
            -32600,
            json!(3),
        ),
        (
            r#"{"jsonrpc":2.0,"id":"x","method":"_alive"}"#,
            -32600,
            json!("x"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"_alive"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"_alive"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"_alive"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.0,"method":"_alive"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"_alive"}]"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"_alive"}}"#,
            -32700,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":01,"method":"_alive"}"#,
            -32700,
            json!(null),
        ),
    ] {
        let answers = answers(format!("{line}\n{}\n", ping("9"))).await;
        let error: Value = serde_json::from_str(&answers[0]).unwrap();
        assert_eq!(
            (&error["error"]["code"], &error["id"]),
            (&json!(code), &id),
            "{line}"
        );
        assert_eq!(answers[1..], [pong("9")], "{line}");
    }
    let notes = concat!(
        r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#,
        "\n",
        r#"{"jsonrpc":"1.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
    );
    assert_eq!(
        answers(notes).await,
        Vec::<String>::new(),
        "notifications are never answered"
    );
}

async fn params_may_be_absent_or_null_where_nothing_is_required() {
    for params in ["", r#","params":null"#, r#","params":{}"#] {
        let logout = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"logout"{params}}}"#);
        let answers = answers(logout).await;
        // The agent does not serve it, which it only says of params that it could read.
        assert!(answers[0].contains("-32601"), "{answers:?}");
        let prompt = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt"{params}}}"#);
        let answers = self::answers(prompt).await;
        assert!(answers[0].contains("-32602"), "{answers:?}");
    }
}

async fn what_no_string_or_number_can_hold_costs_its_own_request() {
    let request = |id: u32, text: &str| {
        let params = format!(r#"{{"sessionId":"s","prompt":[{{"type":"text","text":{text}}}]}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{params}}}"#)
    };
    let input = [
        request(1, "\"\\ud800\""),
        request(2, "1e999"),
        request(3, "\"fine\""),
    ];
    let answers = answers(input.join("\n")).await;
    let path = r#""path":"/prompt/0/text""#;
    assert!(
        answers[0].contains("-32602") && answers[0].contains(path),
        "{answers:?}"
    );
    assert!(
        answers[1].contains("-32602") && answers[1].contains(path),
        "{answers:?}"
    );
    assert!(
        answers[2].contains("fine") && answers[3].contains("end_turn"),
        "{answers:?}"
    );
}

async fn answers_to_nobody_and_second_answers_change_nothing() {
    let (handle, mut raw, _driver) = client(TestClient::default());
    let first = tokio::spawn({
        let handle = handle.clone();
        async move { handle.prompt(prompt("a", "x")).await }
    });
    raw.expect().await;
    let end = json!({"stopReason": "end_turn"});
    let refusal = json!({"stopReason": "refusal"});
    for (id, result) in [
        (json!(7), &refusal),
        (json!("0"), &refusal),
        (json!(-1), &refusal),
        (json!(null), &refusal),
        (json!(0), &end),
        (json!(0), &refusal),
    ] {
        raw.send(json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }
    assert_eq!(
        first.await.unwrap().unwrap().stop_reason,
        StopReason::EndTurn
    );
    let second = tokio::spawn(async move { handle.prompt(prompt("a", "x")).await });
    // Nothing was said to all that, and the next request has a new id.
    assert_eq!(raw.expect().await["id"], 1);
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": refusal}))
        .await;
    raw.send(json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}}))
        .await;
    raw.send(json!({"jsonrpc": "2.0", "id": 1, "result": end}))
        .await;
    assert_eq!(
        second.await.unwrap().unwrap().stop_reason,
        StopReason::EndTurn
    );
}

async fn a_response_that_is_none_is_an_error_of_its_call() {
    for (answer, expected) in [
        (
            json!({"result": {"stopReason": "end_turn"}, "error": {"code": 1, "message": "x"}}),
            "both",
        ),
        (json!({"error": "just text"}), "unknown form: \"just text\""),
        (
            json!({"error": {"code": -32000, "message": "who?", "data": [1]}}),
            "who?",
        ),
    ] {
        let (handle, mut raw, _driver) = client(TestClient::default());
        let call = tokio::spawn(async move { handle.prompt(prompt("a", "x")).await });
        raw.expect().await;
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = json!(0);
        raw.send(answer).await;
        let error = call.await.unwrap().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

async fn updates_in_writes_of_one_byte_are_handled_before_the_answer() {
    let watcher = TestClient::default();
    let (handle, mut raw, _driver) = client(watcher.clone());
    let call = tokio::spawn(async move { handle.prompt(prompt("s", "go")).await });
    raw.expect().await;
    let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}});
    for byte in format!(
        "{}\n{}\n{answer}\n",
        chunk("s", "ü"),
        chunk("s", "\u{1f980}")
    )
    .bytes()
    {
        raw.write([byte]).await;
        tokio::task::yield_now().await;
    }
    call.await.unwrap().unwrap();
    assert_eq!(watcher.texts(), ["ü", "\u{1f980}"]);
}

#[derive(Clone, Default)]
struct TooLong(Arc<AtomicU64>);

impl Observer for TooLong {
    fn message_too_long(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

async fn a_line_at_the_limit_is_accepted_and_a_longer_one_is_not() {
    const MAX: usize = acp_sdk::limits::MAX_MESSAGE_BYTES;
    let too_long = TooLong::default();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new()
        .observer(too_long.clone())
        .agent(TestAgent::default(), (reader, writer));
    let driver = tokio::spawn(driver);
    let (mut output, mut input) = tokio::io::split(theirs);
    let writing = tokio::spawn(async move {
        for length in [MAX, MAX + 1] {
            let head = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{length},\"method\":\"_alive\",\"params\":[\""
            );
            let fill = "x".repeat(length - head.len() - 3);
            let line = format!("{head}{fill}\"]}}\n");
            assert_eq!(line.len(), length + 1);
            input.write_all(line.as_bytes()).await.unwrap();
        }
        input.shutdown().await.unwrap();
    });
    let mut answers = String::new();
    output.read_to_string(&mut answers).await.unwrap();
    writing.await.unwrap();
    driver.await.unwrap().unwrap();
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers[0], pong(&MAX.to_string()));
    let refusal = format!("{} bytes exceeds the limit of {MAX}", MAX + 1);
    assert!(answers[1].contains(&refusal), "{answers:?}");
    assert_eq!(answers.len(), 2);
    assert_eq!(too_long.0.load(Ordering::Relaxed), MAX as u64 + 1);
}

async fn numbers_and_members_nobody_knows_pass_through_unharmed() {
    let (mut raw, _driver) = agent(TestAgent::default());
    let prompt = r#"{"sessionId":"s","prompt":[{"type":"hologram","n":123456789012345678901234567890.5e400,"a":{"b":1,"b":2}}]}"#;
    raw.write(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{prompt}}}\n"
    ))
    .await;
    // The agent echoes what is text; here it takes the block for empty and ends the turn.
    assert_eq!(raw.expect().await["method"], "session/update");
    assert_eq!(raw.expect().await["result"]["stopReason"], "end_turn");
}

crate::on_every_runtime!(
    every_kind_of_id_comes_back_to_the_letter,
    line_endings_and_marks_of_all_sorts_are_put_up_with,
    envelopes_that_break_the_rules_are_refused_by_their_id,
    params_may_be_absent_or_null_where_nothing_is_required,
    what_no_string_or_number_can_hold_costs_its_own_request,
    answers_to_nobody_and_second_answers_change_nothing,
    a_response_that_is_none_is_an_error_of_its_call,
    updates_in_writes_of_one_byte_are_handled_before_the_answer,
    a_line_at_the_limit_is_accepted_and_a_longer_one_is_not,
    numbers_and_members_nobody_knows_pass_through_unharmed,
);
