//! Things that happen at the same time in one session.

use std::time::Duration;

use acp_reference_agent::reference_agent;
use acp_sdk::v1::*;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::editor::{Desk, Editor, everything, text};
use crate::raw::Raw;

fn chunk(entry: &Value) -> Option<&str> {
    entry["params"]["update"]["content"]["text"].as_str()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_in_the_middle_of_a_turn_is_whole_and_in_order() {
    let desk = Desk::new().await;
    let turn = desk.start("stream 3000");
    desk.editor.until("agent_message_chunk 00000100").await;
    desk.load().await.unwrap();
    turn.await.unwrap().unwrap();
    let log = desk.editor.take();
    let begin = log
        .iter()
        .position(|entry| entry["params"]["update"]["sessionUpdate"] == "user_message_chunk")
        .unwrap();
    assert!(begin > 100, "{begin}");
    // From where the replay begins the client sees the whole turn as if it had just happened.
    let numbers: Vec<usize> = log[begin + 1..]
        .iter()
        .map(|entry| chunk(entry).unwrap()[..8].parse().unwrap())
        .collect();
    assert!(numbers.into_iter().eq(0..3000));
}

#[tokio::test]
async fn a_replay_that_is_cancelled_stops() {
    let mut raw = Raw::serve(reference_agent());
    let id = raw.open_session().await;
    let prompt = [json!({ "type": "text", "text": "stream 5000" })];
    let (_, sent) = raw
        .call(
            2,
            "session/prompt",
            json!({ "sessionId": id, "prompt": prompt }),
        )
        .await;
    assert_eq!(sent, 5000);
    let load = json!({ "sessionId": id, "cwd": "/", "mcpServers": [] });
    raw.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "session/load", "params": load }))
        .await;
    raw.send(
        json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 3 } }),
    )
    .await;
    let (answer, replayed) = raw.answer(3).await;
    assert_eq!(answer["error"]["code"], -32800, "{answer}");
    assert!(replayed < 5000, "{replayed}");
    // The session is none the worse for it.
    let (answer, replayed) = raw.call(4, "session/load", load).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(replayed, 5001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_begins_after_the_answer_of_the_one_before() {
    let mut raw = Raw::serve(reference_agent());
    let session = raw.open_session().await;
    for round in 0..8 {
        // Much output, so that answers have to wait for room, and little.
        let said = if round % 2 == 0 {
            "stream 400"
        } else {
            "stream 1"
        };
        let ids: Vec<u32> = (0..15).map(|at| 100 + round * 100 + at).collect();
        for id in &ids {
            let prompt = [json!({ "type": "text", "text": said })];
            let params = json!({ "sessionId": session, "prompt": prompt });
            let request =
                json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params });
            raw.send(request).await;
        }
        let chunks = if round % 2 == 0 { 400 } else { 1 };
        for id in ids {
            for _ in 0..chunks {
                let message = raw.next().await;
                assert_eq!(
                    message["method"], "session/update",
                    "round {round}: {message}"
                );
            }
            assert_eq!(raw.next().await["id"], id, "round {round}");
        }
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

const WORDS: [&str; 8] = [
    "hello",
    "tool",
    "perm 2",
    "stream 30",
    "terminal x",
    "slow",
    "title T",
    "fail",
];

/// Does something or other, and says what kind of answer came.
async fn act(agent: AgentHandle, session: SessionId, dice: usize) -> acp_sdk::Result<()> {
    match dice {
        0..8 => {
            let request = PromptRequest::new(session, text(WORDS[dice]));
            agent.prompt(request).await.map(drop)
        }
        8..12 => agent.cancel(CancelNotification::new(session)).await,
        12 => {
            let request = CloseSessionRequest::new(session);
            agent.close_session(request).await.map(drop)
        }
        13 | 14 => {
            let request = LoadSessionRequest::new(session, "/w", vec![]);
            agent.load_session(request).await.map(drop)
        }
        15 | 16 => {
            let request = ResumeSessionRequest::new(session, "/w");
            agent.resume_session(request).await.map(drop)
        }
        17 => {
            let request = SetSessionModeRequest::new(session, "code");
            agent.set_session_mode(request).await.map(drop)
        }
        _ => {
            let request = ListSessionsRequest::new();
            agent.list_sessions(request).await.map(drop)
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_at_once_every_request_is_answered() {
    let before = Handle::current().metrics().num_alive_tasks();
    let desk = Desk::with(Editor::default(), everything()).await;
    let mut sessions = vec![desk.session.clone()];
    for _ in 0..3 {
        sessions.push(crate::editor::new_session(&desk.agent).await);
    }
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut acts = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let session = sessions[dice.roll(sessions.len())].clone();
        acts.spawn(act(desk.agent.clone(), session, dice.roll(19)));
        if acts.len() >= 40 {
            finish_one(&mut acts, &desk, &sessions).await;
        }
    }
    while !acts.is_empty() {
        finish_one(&mut acts, &desk, &sessions).await;
    }
    // Every tool call that was announced has ended.
    let mut open = std::collections::BTreeSet::new();
    for entry in desk.editor.take() {
        let update = &entry["params"]["update"];
        let key = format!("{} {}", entry["params"]["sessionId"], update["toolCallId"]);
        match (update["sessionUpdate"].as_str(), update["status"].as_str()) {
            (Some("tool_call"), _) => drop(open.insert(key)),
            (_, Some("completed" | "failed")) => drop(open.remove(&key)),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for session in &sessions {
        let request = LoadSessionRequest::new(session.clone(), "/w", vec![]);
        desk.agent.load_session(request).await.unwrap();
        let request = PromptRequest::new(session.clone(), text("ping"));
        desk.agent.prompt(request).await.unwrap();
    }
    desk.agent.peer().close_output();
    let gone = async {
        while Handle::current().metrics().num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    let left = tokio::time::timeout(Duration::from_secs(10), gone).await;
    left.expect("tasks that are left behind");
}

/// Waits for an answer; if none comes for a while, everything that is slow is cancelled.
async fn finish_one(
    acts: &mut tokio::task::JoinSet<acp_sdk::Result<()>>,
    desk: &Desk,
    sessions: &[SessionId],
) {
    for patience in 0.. {
        let next = tokio::time::timeout(Duration::from_millis(20), acts.join_next()).await;
        match next {
            Ok(Some(answer)) => {
                if let Err(error) = answer.unwrap() {
                    let expected = match error.code() {
                        Some(ErrorCode::RESOURCE_NOT_FOUND) => "closed; load or resume it first",
                        Some(ErrorCode::INVALID_REQUEST) => "too many prompts are waiting",
                        _ => "the prompt asked for a failure",
                    };
                    assert!(error.to_string().contains(expected), "{error}");
                }
                return;
            }
            Ok(None) => return,
            Err(_) => {
                assert!(patience < 500, "a request is never answered");
                for session in sessions {
                    let note = CancelNotification::new(session.clone());
                    desk.agent.cancel(note).await.unwrap();
                }
            }
        }
    }
}
