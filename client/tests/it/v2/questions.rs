//! Requests of an agent of version 2 to its client.

use acp_client::{Client, Elicitation, Event, Policy, SessionContext};
use acp_sdk::v1::{
    CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction, ElicitationContentValue,
    StopReason,
};
use acp_sdk::v2::CLIENT_METHODS;
use serde_json::{Value, json};

use super::{connect, ends, open, session};
use crate::agent::within;
use crate::hooks::UNANSWERED;

fn question() -> Value {
    json!({"sessionId": "s", "title": "Try it?",
        "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c"}},
        "options": [{"optionId": "no", "name": "No", "kind": "reject_once"},
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"}]})
}

#[tokio::test]
async fn permission_is_decided_by_what_the_tool_call_was_announced_as() {
    let (client, mut agent) = connect(Client::builder().permissions(Policy::ApproveReads)).await;
    let session = open(&client, &mut agent).await;
    let mut events = session.events();
    for (kind, option) in [("read", "yes"), ("execute", "no")] {
        agent
            .update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "c",
                "title": "Do it", "kind": kind}),
            )
            .await;
        let answer = agent.ask("session/request_permission", question()).await;
        assert_eq!(
            answer,
            json!({"outcome": {"outcome": "selected", "optionId": option}})
        );
        let asked = loop {
            if let Event::Permission(asked) = within(events.next()).await.unwrap().event {
                break asked;
            }
        };
        assert_eq!(asked.question.kind.unwrap().as_str(), kind);
    }
    let mut command = question();
    command["subject"] = json!({"type": "command", "command": "ls", "cwd": "/"});
    let answer = agent.ask("session/request_permission", command).await;
    assert_eq!(answer["outcome"]["optionId"], "no");
}

#[tokio::test]
async fn a_question_of_a_cancelled_turn_is_cancelled() {
    let (session, mut agent) = session().await;
    let turn = session.prompt("hi").await.unwrap();
    agent.start_work().await;
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Do it"});
    agent.update(call).await;
    agent.handled().await;
    turn.cancel();
    assert_eq!(agent.raw.next().await["method"], "session/cancel");
    let answer = agent.ask("session/request_permission", question()).await;
    assert_eq!(answer, json!({"outcome": {"outcome": "cancelled"}}));
    agent.idle("cancelled").await;
    ends(turn, StopReason::Cancelled, "").await;
}

/// Background work goes on after `session/cancel`, and so do its questions; the agent cancels those
/// that it no longer needs.
#[tokio::test]
async fn other_questions_survive_the_cancellation_of_a_turn() {
    let (client, mut agent) = connect(Client::builder().permissions(Policy::ApproveReads)).await;
    let session = open(&client, &mut agent).await;
    let turn = session.prompt("hi").await.unwrap();
    agent.start_work().await;
    agent
        .update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "kind": "read",
            "title": "Do it"}),
        )
        .await;
    let background = json!([{"type": "tool_call", "toolCallId": "c"}]);
    agent
        .update(json!({"sessionUpdate": "state_update", "state": "running",
            "background": background}))
        .await;
    agent.handled().await;
    turn.cancel();
    assert_eq!(agent.raw.next().await["method"], "session/cancel");
    let answer = agent.ask("session/request_permission", question()).await;
    assert_eq!(answer["outcome"]["optionId"], "yes", "{answer}");
    let mut unknown = question();
    unknown["subject"]["toolCall"]["toolCallId"] = json!("other");
    let answer = agent.ask("session/request_permission", unknown).await;
    assert_eq!(answer["outcome"]["optionId"], "no", "{answer}");
    agent.idle("cancelled").await;
    ends(turn, StopReason::Cancelled, "").await;
}

struct Form;

impl Elicitation for Form {
    async fn ask(
        &self,
        session: Option<&SessionContext>,
        request: &CreateElicitationRequest,
    ) -> ElicitationAction {
        assert_eq!(session.map(|session| session.id().as_str()), Some("s"));
        let name = ElicitationContentValue::String(request.message.clone());
        let content = [("name".to_owned(), name)].into_iter().collect();
        ElicitationAction::Accept(ElicitationAcceptAction::new().with_content(content))
    }
}

fn form() -> Value {
    json!({"sessionId": "s", "mode": "form", "message": "Ada", "requestedSchema":
        {"type": "object", "properties": {"name": {"type": "string"}}}})
}

#[tokio::test]
async fn a_form_is_filled_in() {
    let (client, mut agent) = connect(Client::builder().elicitation(Form)).await;
    let _session = open(&client, &mut agent).await;
    let answer = agent.ask("elicitation/create", form()).await;
    assert_eq!(
        answer,
        json!({"action": "accept", "content": {"name": "Ada"}})
    );
    let mut odd = form();
    odd["requestedSchema"]["properties"]["name"] = json!({"type": "_colour"});
    let refused = agent.ask("elicitation/create", odd).await;
    assert!(
        refused["code"] == -32602 || refused["action"] == "accept",
        "{refused}"
    );
}

#[tokio::test]
async fn what_is_not_offered_is_refused_with_the_code_of_version_2() {
    let (_session, mut agent) = session().await;
    let refused = agent.ask("elicitation/create", form()).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    let read = json!({"sessionId": "s", "path": "/a"});
    let refused = agent.ask("fs/read_text_file", read).await;
    assert_eq!(refused["code"], -32601, "{refused}");
}

/// A method that is added to the documents must be handled in version 2, too, or be listed.
#[tokio::test]
async fn every_request_of_the_documents_is_handled_or_listed() {
    let builder = Client::builder().elicitation(Form);
    let (client, mut agent) = connect(builder).await;
    let _session = open(&client, &mut agent).await;
    let mut params = form();
    for (name, value) in question().as_object().unwrap() {
        params[name] = value.clone();
    }
    let mut unanswered = Vec::new();
    for facts in CLIENT_METHODS.iter() {
        let answer = agent.ask(facts.name, params.clone()).await;
        if answer["code"] == -32601 || answer["code"] == -32602 {
            unanswered.push(facts.name);
        }
    }
    assert_eq!(unanswered, UNANSWERED);
}
