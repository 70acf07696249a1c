//! Much at once, much in a row, and clients that leave without a word.

use std::collections::BTreeMap;
use std::time::Duration;

use acp_reference_agent::reference_agent;
use acp_sdk::v1::*;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::editor::{Desk, Editor, Permission, everything, new_session, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_sessions_stream_side_by_side() {
    let desk = Desk::new().await;
    let mut turns = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let session = new_session(&desk.agent).await;
        let agent = desk.agent.clone();
        turns.spawn(async move {
            for word in ["stream 50", "tool", "perm 5", "stream 50"] {
                let request = PromptRequest::new(session.clone(), text(word));
                let stop = agent.prompt(request).await.unwrap().stop_reason;
                assert_eq!(stop, StopReason::EndTurn);
            }
        });
    }
    while let Some(turn) = turns.join_next().await {
        turn.unwrap();
    }
    let mut chunks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in desk.editor.take() {
        if let Some(said) = entry["params"]["update"]["content"]["text"].as_str() {
            let session = entry["params"]["sessionId"].as_str().unwrap().to_owned();
            chunks
                .entry(session)
                .or_default()
                .push(said[..8].to_owned());
        }
    }
    let expected: Vec<_> = (0..50)
        .chain(0..50)
        .map(|number| format!("{number:08}"))
        .collect();
    assert_eq!(chunks.len(), 100);
    assert!(chunks.values().all(|said| *said == expected));
}

#[tokio::test]
async fn ten_thousand_cancels_hit_what_they_are_for() {
    let editor = Editor {
        permission: Permission::Never,
        ..Editor::default()
    };
    let desk = Desk::with(editor, everything()).await;
    for round in 0..100 {
        let turn = desk.start("permission");
        desk.editor.until("session/request_permission").await;
        for _ in 0..100 {
            desk.cancel().await;
        }
        assert_eq!(
            turn.await.unwrap().unwrap(),
            StopReason::Cancelled,
            "{round}"
        );
        assert_eq!(
            desk.prompt("ping").await.unwrap(),
            StopReason::EndTurn,
            "{round}"
        );
        desk.editor.take();
    }
}

#[tokio::test]
async fn a_flood_of_prompts_leaves_a_session_that_works() {
    let desk = Desk::new().await;
    let prompts: Vec<_> = (0..5_000).map(|_| desk.start("hello")).collect();
    let mut answered = 0;
    for prompt in prompts {
        match prompt.await.unwrap() {
            Ok(stop) => {
                assert_eq!(stop, StopReason::EndTurn);
                answered += 1;
            }
            Err(error) => assert_eq!(error.code(), Some(ErrorCode::INVALID_REQUEST), "{error}"),
        }
    }
    assert!(answered >= 17, "{answered}");
    assert_eq!(desk.editor.take().len(), answered);
    desk.prompt("ping").await.unwrap();
}

#[tokio::test]
async fn a_huge_prompt_is_echoed_and_replayed() {
    let words = "λ and more, \"quoted\"\n".repeat(100_000);
    let desk = Desk::new().await;
    desk.prompt(&words).await.unwrap();
    assert!(desk.editor.said() == words);
    desk.load().await.unwrap();
    let log = desk.editor.take();
    let said = &log[0]["params"]["update"]["content"]["text"];
    assert!(said.as_str() == Some(&words));
    desk.prompt("ping").await.unwrap();
}

/// What a client may be in the middle of when it dies, and how the agent shows that it is there.
const STAGES: [(&str, &str); 6] = [
    ("slow", "agent_message_chunk tick"),
    ("permission", "session/request_permission"),
    ("tool", "terminal/wait_for_exit"),
    ("terminal sleep", "terminal/wait_for_exit"),
    ("stream 100000000", "agent_message_chunk"),
    ("kill sleep", "terminal/wait_for_exit"),
];

#[tokio::test]
async fn a_client_that_dies_leaves_nothing_behind() {
    let before = Handle::current().metrics().num_alive_tasks();
    for (word, shown) in STAGES {
        let editor = Editor {
            permission: Permission::Never,
            endless: true,
            ..Editor::default()
        };
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let served = tokio::spawn(acp_sdk::serve(reference_agent(), (reader, writer)));
        let (reader, writer) = tokio::io::split(ours);
        let driver = acp_sdk::connect(editor.clone(), (reader, writer));
        let agent = driver.handle().clone();
        let client = tokio::spawn(driver);
        let hello = InitializeRequest::new(ProtocolVersion::V1);
        agent
            .initialize(hello.with_client_capabilities(everything()))
            .await
            .unwrap();
        let session = new_session(&agent).await;
        let turn = tokio::spawn({
            let (agent, session) = (agent.clone(), session.clone());
            async move { agent.prompt(PromptRequest::new(session, text(word))).await }
        });
        let queued = tokio::spawn({
            let agent = agent.clone();
            async move {
                agent
                    .prompt(PromptRequest::new(session, text("ping")))
                    .await
            }
        });
        editor.until(shown).await;
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        assert!(turn.await.unwrap().unwrap_err().is_closed(), "{word}");
        assert!(queued.await.unwrap().unwrap_err().is_closed(), "{word}");
        // Ends well or with a broken pipe, but soon.
        let ended = tokio::time::timeout(Duration::from_secs(5), served).await;
        let _ = ended.expect(word).unwrap();
    }
    while Handle::current().metrics().num_alive_tasks() > before {
        tokio::task::yield_now().await;
    }
}

/// A talk in raw lines, to be broken off anywhere.
fn lines() -> Vec<u8> {
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": "/", "mcpServers": [] } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "x" } }),
    ];
    messages
        .iter()
        .flat_map(|message| format!("{message}\n").into_bytes())
        .collect()
}

#[tokio::test]
async fn input_that_ends_anywhere_is_answered_up_to_there() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let all = lines();
    for end in 0..=all.len() {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let served = tokio::spawn(acp_sdk::serve(reference_agent(), (reader, writer)));
        ours.write_all(&all[..end]).await.unwrap();
        ours.shutdown().await.unwrap();
        let mut output = String::new();
        ours.read_to_string(&mut output).await.unwrap();
        served.await.unwrap().unwrap();
        let results = output
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|answer| answer.get("result").is_some())
            .count();
        let whole = all[..end].iter().filter(|byte| **byte == b'\n').count();
        // A last line without its end may be whole.
        assert!((whole.min(3)..=3).contains(&results), "{end}: {output}");
    }
}
