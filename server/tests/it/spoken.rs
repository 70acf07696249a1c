//! What an author says and changes in a turn, and what the client makes of the errors in it.

use acp_sdk::v1::*;
use acp_server::{Error, Handler, HandlerResult, Link, Opening, Settings, Turn};
use serde_json::{Value, json};

use crate::editor::{Desk, Editor, agent, everything};

/// Does what the prompt says.
struct Author;

impl Handler for Author {
    type State = ();

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        let modes = [
            SessionMode::new("plan", "Plan"),
            SessionMode::new("do", "Do"),
        ];
        let web = SessionConfigBoolean::new(false);
        Ok(Settings::new()
            .modes(SessionModeState::new("plan", modes.to_vec()))
            .option(SessionConfigOption::new("web", "Web", web))
            .commands(vec![AvailableCommand::new("plan", "Makes a plan")]))
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        match turn.prompt_text().as_str() {
            "long" => turn.send_text("äöü".repeat(20_000)).await?,
            "go" => turn.set_mode("do").await?,
            "go by update" => {
                let update = CurrentModeUpdate::new("do");
                turn.send(SessionUpdate::CurrentModeUpdate(update)).await?;
            }
            "nowhere" => turn.set_mode("nowhere").await?,
            "web" => {
                turn.set_boolean_option("web", true).await?;
                // The mode is an option, too.
                turn.set_option("mode", "do").await?;
            }
            "learn" => {
                let learned = AvailableCommand::new("test", "Runs the tests");
                turn.set_commands(vec![learned]).await?;
            }
            "read" => drop(turn.read_file("/missing").await?),
            "refuse" => return Err(acp_sdk::HandlerError::resource_not_found("the model")),
            _ => {}
        }
        Ok(StopReason::EndTurn)
    }
}

async fn desk() -> Desk {
    let desk = Desk::at(agent(Author), Editor::default(), everything()).await;
    desk.editor.until("available_commands_update").await;
    desk
}

fn updates(log: &[Value], kind: &str) -> Vec<Value> {
    let updates = log.iter().map(|entry| &entry["params"]["update"]);
    let of_kind = updates.filter(|update| update["sessionUpdate"] == kind);
    of_kind.cloned().collect()
}

#[tokio::test]
async fn commands_are_told_when_the_session_is_open() {
    let desk = desk().await;
    let told = updates(&desk.editor.take(), "available_commands_update");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["availableCommands"][0]["name"], "plan");
    desk.prompt("learn").await.unwrap();
    desk.editor.take();
    // Whoever opens the session again is told of those that there are now.
    let resume = ResumeSessionRequest::new(desk.session.clone(), "/w");
    desk.agent.resume_session(resume).await.unwrap();
    desk.editor.until("available_commands_update").await;
    let told = updates(&desk.editor.take(), "available_commands_update");
    assert_eq!(told[0]["availableCommands"][0]["name"], "test");
}

#[tokio::test]
async fn a_mode_that_the_agent_changes_is_the_session_s() {
    for words in ["go", "go by update"] {
        let desk = desk().await;
        desk.editor.take();
        desk.prompt(words).await.unwrap();
        let told = updates(&desk.editor.take(), "current_mode_update");
        assert_eq!(told[0]["currentModeId"], "do", "{words}");
        let loaded = json!(desk.load().await.unwrap());
        assert_eq!(loaded["modes"]["currentModeId"], "do", "{words}");
        assert_eq!(loaded["configOptions"][0]["currentValue"], "do", "{words}");
    }
}

#[tokio::test]
async fn an_option_that_the_agent_changes_is_the_session_s() {
    let desk = desk().await;
    desk.prompt("web").await.unwrap();
    let told = updates(&desk.editor.take(), "config_option_update");
    assert_eq!(told[0]["configOptions"][1]["currentValue"], true);
    let loaded = json!(desk.load().await.unwrap());
    assert_eq!(loaded["configOptions"][1]["currentValue"], true);
    assert_eq!(loaded["modes"]["currentModeId"], "do");
    // No client asked for a mode that there is not.
    let error = desk.prompt("nowhere").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR));
    assert!(error.to_string().contains("\"nowhere\""), "{error}");
}

#[tokio::test]
async fn a_long_text_comes_in_pieces_of_one_message() {
    let desk = desk().await;
    desk.editor.take();
    desk.prompt("long").await.unwrap();
    let told = updates(&desk.editor.take(), "agent_message_chunk");
    assert!(told.len() > 1);
    let text = |update: &Value| update["content"]["text"].as_str().unwrap().to_owned();
    assert!(told.iter().all(|update| text(update).len() <= 32 << 10));
    assert!(
        told.iter()
            .all(|update| update["messageId"] == told[0]["messageId"])
    );
    let whole: String = told.iter().map(text).collect();
    assert!(whole == "äöü".repeat(20_000));
}

/// A file that is missing is no missing session: only what the handler refuses itself is the
/// answer as it stands.
#[tokio::test]
async fn the_answer_to_a_call_is_not_the_answer_to_the_prompt() {
    let desk = desk().await;
    let error = desk.prompt("read").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR));
    assert!(
        error.to_string().contains("`fs/read_text_file` failed: "),
        "{error}"
    );
    assert!(error.to_string().contains("-32002"), "{error}");
    let error = desk.prompt("refuse").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND));
    assert_eq!(
        acp_sdk::HandlerError::from(Error::Cancelled).code(),
        ErrorCode::INTERNAL_ERROR
    );
}

#[tokio::test]
async fn chunks_for_a_slow_client_are_joined_if_the_server_is_set_to() {
    let mut joined = Vec::new();
    for join in [false, true] {
        let server = acp_reference_agent::Reference::server()
            .coalesce_chunks(join)
            .build();
        let mut raw = crate::raw::Raw::serve(server.connection(Link::Stdio));
        let session = raw.open_session().await;
        let prompt = [json!({ "type": "text", "text": "stream 1000" })];
        let params = json!({ "sessionId": session, "prompt": prompt });
        raw.send(
            json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params }),
        )
        .await;
        let (mut said, mut last, mut updates) = (String::new(), 0, 0);
        loop {
            let message = raw.next().await;
            if message["id"] == 2 {
                break;
            }
            let params = &message["params"];
            said.push_str(params["update"]["content"]["text"].as_str().unwrap());
            let number = params["_meta"]["acp-sdk"]["eventId"].as_u64().unwrap();
            assert!(number > last, "{number} after {last}");
            (last, updates) = (number, updates + 1);
        }
        // One event starts the turn, one is what the user said.
        assert_eq!(last, 1002, "the number of the last chunk");
        joined.push((said, updates));
    }
    let [(plain, all), (text, fewer)] = &joined[..] else {
        panic!("two runs");
    };
    assert_eq!(plain, text);
    assert_eq!(*all, 1000);
    assert!(*fewer < 200, "{fewer} updates");
}

#[tokio::test]
async fn a_client_that_attaches_again_is_sent_what_it_had_not_been_sent_yet() {
    let mut raw = crate::raw::Raw::serve(acp_reference_agent::reference_agent());
    let session = raw.open_session().await;
    let prompt = [json!({ "type": "text", "text": "stream 2000" })];
    let params = json!({ "sessionId": session, "prompt": prompt });
    raw.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params }))
        .await;
    // It is behind when it attaches again: one of many updates has been read.
    raw.next().await;
    let place = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    raw.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "session/resume", "params": place }))
        .await;
    let (mut numbers, mut answers) = (Vec::new(), Vec::new());
    while answers.len() < 2 {
        let message = raw.next().await;
        if let Some(id) = message["id"].as_u64() {
            assert!(message["error"].is_null(), "{message}");
            answers.push(id);
        }
        numbers.extend(message["params"]["_meta"]["acp-sdk"]["eventId"].as_u64());
    }
    assert_eq!(numbers, (4..2003).collect::<Vec<_>>(), "a gap or a double");
}
