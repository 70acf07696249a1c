//! Turns that have tasks done by another agent.

use std::sync::{Arc, Mutex};

use acp_sdk::HandlerResult;
use acp_sdk::v1::*;
use acp_server::{Error, Handler, Server, Turn};
use acp_server_host::Delegate as _;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client::Client;

/// The agent that does the tasks. The first word says what to do.
#[derive(Clone, Default)]
struct Worker {
    cancelled: Arc<Notify>,
    chosen: Arc<Mutex<Option<Value>>>,
}

impl Worker {
    async fn update(cx: &AgentContext, id: &SessionId, update: SessionUpdate) -> HandlerResult<()> {
        let note = SessionNotification::new(id.clone(), update);
        Ok(cx.client().session_update(note).await?)
    }

    async fn say(cx: &AgentContext, id: &SessionId, text: &str) -> HandlerResult<()> {
        let chunk = ContentChunk::new(ContentBlock::from(text));
        Self::update(cx, id, SessionUpdate::AgentMessageChunk(chunk)).await
    }

    async fn ask(&self, cx: &AgentContext, id: &SessionId) -> HandlerResult<()> {
        let call = ToolCall::new("c", "Do it").with_kind(ToolKind::Edit);
        Self::update(cx, id, SessionUpdate::ToolCall(call)).await?;
        let options = vec![
            PermissionOption::new("theirs-1", "No", PermissionOptionKind::RejectOnce),
            PermissionOption::new("theirs-2", "Yes", PermissionOptionKind::AllowOnce),
        ];
        let request = RequestPermissionRequest::new(id.clone(), ToolCallUpdate::new("c"), options);
        let answer = cx.client().request_permission(request).await?;
        *self.chosen.lock().unwrap() = serde_json::to_value(&answer.outcome).ok();
        let status = match &answer.outcome {
            RequestPermissionOutcome::Selected(chosen)
                if chosen.option_id.as_str() == "theirs-2" =>
            {
                ToolCallStatus::Completed
            }
            _ => ToolCallStatus::Failed,
        };
        let done = ToolCallUpdate::new("c").with_status(status);
        Self::update(cx, id, SessionUpdate::ToolCallUpdate(done)).await
    }
}

impl Agent for Worker {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        Ok(InitializeResponse::new(ProtocolVersion::V1))
    }

    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("inner"))
    }

    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let id = &req.session_id;
        let task = match req.prompt.first() {
            Some(ContentBlock::Text(text)) => text.text.clone(),
            _ => String::new(),
        };
        match task.as_str() {
            "ask" => self.ask(cx, id).await?,
            "leave open" => {
                let call = ToolCallUpdate::new("never announced").with_title("Try");
                Self::update(cx, id, SessionUpdate::ToolCallUpdate(call)).await?;
            }
            "wait" => {
                Self::say(cx, id, "waiting").await?;
                self.cancelled.notified().await;
                return Ok(PromptResponse::new(StopReason::Cancelled));
            }
            "fail" => return Err(acp_sdk::HandlerError::internal("as you wish")),
            text => Self::say(cx, id, text).await?,
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        self.cancelled.notify_one();
        Ok(())
    }
}

/// Delegates each prompt.
#[derive(Clone, Default)]
struct Delegating {
    worker: Worker,
    ended: Arc<Mutex<Vec<Result<StopReason, String>>>>,
}

impl Handler for Delegating {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> acp_server::HandlerResult<StopReason> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(acp_sdk::serve(
            self.worker.clone(),
            tokio::io::split(theirs),
        ));
        let connect = |builder: acp_client::ClientBuilder| builder.connect(tokio::io::split(ours));
        let outcome = turn.delegate_with(connect, turn.prompt_text()).await;
        let ended = match &outcome {
            Ok(outcome) => Ok(outcome.stop_reason.clone()),
            Err(error) => Err(error.to_string()),
        };
        self.ended.lock().unwrap().push(ended);
        match outcome {
            Ok(outcome) => {
                if outcome.stop_reason == StopReason::EndTurn {
                    turn.send_text("That was it.").await?;
                }
                Ok(outcome.stop_reason)
            }
            Err(error @ Error::Delegate(_)) => {
                turn.send_text(error.to_string()).await?;
                Ok(StopReason::EndTurn)
            }
            Err(error) => Err(error.into()),
        }
    }
}

async fn begin(handler: &Delegating) -> (Server, Client) {
    let server = Server::new(handler.clone());
    let mut client = Client::attach(&server).await;
    let params = json!({ "cwd": "/", "mcpServers": [] });
    let answer = client.call("session/new", params).await;
    client.session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    (server, client)
}

#[tokio::test]
async fn text_of_the_other_agent_is_that_of_the_turn() {
    let handler = Delegating::default();
    let (_server, mut client) = begin(&handler).await;
    let id = client.begin_prompt("hello").await;
    assert_eq!(client.update().await["content"]["text"], "hello");
    assert_eq!(client.update().await["content"]["text"], "That was it.");
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn its_tool_calls_are_shown_and_its_questions_asked() {
    let handler = Delegating::default();
    let (_server, mut client) = begin(&handler).await;
    for (option, status) in [("theirs-2", "completed"), ("theirs-1", "failed")] {
        let id = client.begin_prompt("ask").await;
        let announced = client.update().await;
        assert_eq!(announced["sessionUpdate"], "tool_call");
        assert_eq!(announced["title"], "Do it");
        let call = announced["toolCallId"].as_str().unwrap().to_owned();
        assert!(
            call.starts_with("delegate-") && call.ends_with("-c"),
            "{call}"
        );
        let asked = client.next().await;
        assert_eq!(asked["method"], "session/request_permission", "{asked}");
        let params = &asked["params"];
        assert_eq!(params["sessionId"], client.session);
        assert_eq!(params["toolCall"]["toolCallId"], call);
        assert_eq!(params["toolCall"]["kind"], "edit");
        let outcome = json!({ "outcome": "selected", "optionId": option });
        let result = json!({ "outcome": outcome });
        client
            .send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }))
            .await;
        let done = client.update().await;
        assert_eq!(
            (&done["toolCallId"], &done["status"]),
            (&json!(call), &json!(status))
        );
        client.answer(id).await;
        let chosen = handler.worker.chosen.lock().unwrap().clone().unwrap();
        assert_eq!(chosen["optionId"], option);
    }
}

#[tokio::test]
async fn a_tool_call_that_it_leaves_open_has_failed() {
    let handler = Delegating::default();
    let (_server, mut client) = begin(&handler).await;
    let id = client.begin_prompt("leave open").await;
    let announced = client.update().await;
    assert_eq!(announced["sessionUpdate"], "tool_call", "{announced}");
    assert_eq!(announced["title"], "Try");
    let failed = client.update().await;
    assert_eq!(failed["toolCallId"], announced["toolCallId"]);
    assert_eq!(failed["status"], "failed");
    assert_eq!(client.update().await["content"]["text"], "That was it.");
    client.answer(id).await;
}

#[tokio::test]
async fn cancelling_the_turn_cancels_the_other_one() {
    let handler = Delegating::default();
    let (_server, mut client) = begin(&handler).await;
    let id = client.begin_prompt("wait").await;
    assert_eq!(client.update().await["content"]["text"], "waiting");
    client.cancel().await;
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    // The other agent has ended its turn itself.
    assert_eq!(*handler.ended.lock().unwrap(), [Ok(StopReason::Cancelled)]);
}

#[tokio::test]
async fn cancelling_while_it_asks_withdraws_the_question() {
    let handler = Delegating::default();
    let (_server, mut client) = begin(&handler).await;
    let id = client.begin_prompt("ask").await;
    client.update().await;
    let asked = client.next().await;
    assert_eq!(asked["method"], "session/request_permission");
    client.cancel().await;
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    let chosen = handler.worker.chosen.lock().unwrap().clone().unwrap();
    assert_eq!(chosen["outcome"], "cancelled");
}

#[tokio::test]
async fn what_it_fails_with_is_an_error_of_its_own() {
    let handler = Delegating::default();
    let (_server, mut client) = begin(&handler).await;
    let id = client.begin_prompt("fail").await;
    let text = client.update().await["content"]["text"].clone();
    let text = text.as_str().unwrap();
    assert!(text.starts_with("the delegated task failed: "), "{text}");
    assert!(text.contains("as you wish"), "{text}");
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
}
