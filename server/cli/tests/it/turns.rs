//! Time, tokens and cost of turns in `acp-server sessions`.

use std::sync::Arc;

use acp_server::event::Batch;
use acp_server::store::{Commit, MemoryStore, SessionRecord, Store};
use acp_server_cli::sessions::{self, Format, Listed};
use serde_json::{Value, json};

const EVENTS: [&str; 8] = [
    r#"{"event":"turn_started","turn":1}"#,
    r#"{"sessionUpdate":"usage_update","used":5,"size":9,"cost":{"amount":0.1,"currency":"USD"}}"#,
    r#"{"event":"turn_ended","turn":1,"stopReason":"end_turn","usage":{"totalTokens":15,"inputTokens":10,"outputTokens":5}}"#,
    r#"{"event":"turn_started","turn":4,"client":"editor 1.2"}"#,
    r#"{"sessionUpdate":"usage_update","used":5,"size":9,"cost":{"amount":0.3,"currency":"USD"}}"#,
    r#"{"sessionUpdate":"usage_update","used":5,"size":9,"cost":{"amount":2,"currency":"EUR"}}"#,
    r#"{"event":"turn_ended","turn":4,"error":"no\nmodel","usage":{"totalTokens":7,"thoughtTokens":3}}"#,
    r#"{"event":"turn_started","turn":8}"#,
];

/// The time of the first event, in milliseconds since 1970.
const START: u64 = 1_735_689_599_250;

/// A store with the session `s`, whose events follow each other after 1.5 s.
async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    let record = SessionRecord::new("s", "/s");
    let lease = store.create(&record).await.unwrap();
    for (number, event) in (1..).zip(EVENTS) {
        let mut batch = Batch::new(number);
        batch.push(event);
        let mut commit = Commit::default();
        commit.events = Some(Arc::new(
            batch.with_time(Some(START + (number - 1) * 1_500)),
        ));
        store.commit(&lease, commit).await.unwrap();
    }
    store
}

fn text(output: Vec<u8>) -> String {
    String::from_utf8(output).unwrap()
}

fn values(output: Vec<u8>) -> Vec<Value> {
    let text = text(output);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn turns(store: &MemoryStore, session: &str, format: Format) -> Vec<u8> {
    let mut output = Vec::new();
    sessions::turns(store, session, format, &mut output)
        .await
        .unwrap();
    output
}

#[tokio::test]
async fn turns_are_listed_with_time_tokens_and_cost() {
    let store = store().await;
    let listed = values(turns(&store, "s", Format::Json).await);
    assert_eq!(
        listed[0],
        json!({
            "turn": 1,
            "client": null,
            "startedAt": "2024-12-31T23:59:59.250Z",
            "endedAt": "2025-01-01T00:00:02.250Z",
            "durationMs": 3_000,
            "stopReason": "end_turn",
            "error": null,
            "tokens": { "totalTokens": 15, "inputTokens": 10, "outputTokens": 5 },
            "costs": { "USD": 0.1 },
        })
    );
    assert_eq!(
        (&listed[1]["error"], &listed[1]["costs"]),
        (&json!("no\nmodel"), &json!({ "EUR": 2.0, "USD": 0.2 }))
    );
    assert_eq!(
        (&listed[2]["endedAt"], &listed[2]["costs"]),
        (&Value::Null, &json!({}))
    );
    let listed = text(turns(&store, "s", Format::Text).await);
    let lines: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = [
        "TURN STARTED DURATION TOKENS COST CLIENT END",
        "1 2024-12-31T23:59:59.250Z 3.000 s 15 0.1 USD - end_turn",
        "4 2025-01-01T00:00:03.750Z 4.500 s 7 2 EUR, 0.2 USD editor 1.2 failed: no model",
        "8 2025-01-01T00:00:09.750Z - - - - running",
    ];
    let lines: Vec<_> = lines.iter().map(|words| words.join(" ")).collect();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn sessions_have_the_sums_of_their_turns() {
    let store = store().await;
    let expected = json!({
        "turns": 3,
        "durationMs": 7_500,
        "tokens": { "totalTokens": 22, "inputTokens": 10, "outputTokens": 5, "thoughtTokens": 3 },
        "costs": { "EUR": 2.0, "USD": 0.3 },
    });
    let mut output = Vec::new();
    sessions::show(&store, "s", Format::Json, &mut output)
        .await
        .unwrap();
    assert_eq!(values(output)[0]["usage"], expected);
    let list = async |usage, format| {
        let mut output = Vec::new();
        let listed = Listed { cwd: None, usage };
        sessions::list(&store, listed, format, &mut output)
            .await
            .unwrap();
        output
    };
    assert_eq!(values(list(true, Format::Json).await)[0]["usage"], expected);
    assert_eq!(
        values(list(false, Format::Json).await)[0].get("usage"),
        None
    );
    let listed = text(list(true, Format::Text).await);
    assert!(
        listed
            .lines()
            .any(|line| line.contains(" 22   2 EUR, 0.3 USD  -, /s")),
        "{listed}"
    );
    let mut output = Vec::new();
    sessions::show(&store, "s", Format::Text, &mut output)
        .await
        .unwrap();
    let shown = text(output);
    for line in [
        "turns:       3\n",
        "time:        7.500 s\n",
        "tokens:      22 in all, 10 input, 5 output, 3 thought\n",
        "cost:        2 EUR, 0.3 USD\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[tokio::test]
async fn a_turn_that_a_fork_has_copied_counts_in_its_source() {
    let store = store().await;
    let mut output = Vec::new();
    sessions::fork(&store, "s", Some(4), &mut output)
        .await
        .unwrap();
    let fork = text(output).trim_end().to_owned();
    let listed = values(turns(&store, &fork, Format::Json).await);
    assert_eq!(listed, [] as [Value; 0]);
    let (_, lease) = store.acquire(&fork.as_str().into()).await.unwrap();
    let mut batch = Batch::new(5);
    batch.push(r#"{"event":"turn_ended","turn":4,"error":"killed"}"#);
    batch.push(r#"{"event":"turn_started","turn":6}"#);
    batch.push(EVENTS[4]);
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(batch));
    store.commit(&lease, commit).await.unwrap();
    let listed = values(turns(&store, &fork, Format::Json).await);
    assert_eq!(listed.len(), 1);
    // The agent goes on with the total of the source.
    assert_eq!(
        (&listed[0]["turn"], &listed[0]["costs"]),
        (&json!(6), &json!({ "USD": 0.2 }))
    );
}
