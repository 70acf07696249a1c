//! Child sessions that an agent announces by `subagent_update`.

use acp_client::{Client, Decision, Error, Event, PermissionRequest, Permissions, Phase};
use acp_sdk::v1::SessionId;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Agent, connect, open, word};
use crate::agent::within;

/// Allows everything, and passes on what was asked.
struct Seen(mpsc::UnboundedSender<PermissionRequest>);

impl Permissions for Seen {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.0.send(question.clone()).unwrap();
        Decision::AllowOnce
    }
}

async fn announce(agent: &mut Agent, child: &str, more: Value) {
    let mut update = json!({"sessionUpdate": "subagent_update", "sessionId": child});
    for (name, value) in more.as_object().unwrap() {
        update[name] = value.clone();
    }
    agent.update(update).await;
}

#[tokio::test]
async fn the_questions_and_updates_of_many_children_name_them() {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let (client, mut agent) = connect(Client::builder().permissions(Seen(asked))).await;
    let session = open(&client, &mut agent).await;
    let mut events = session.events();
    // More than there may be sessions that nobody knows.
    for number in 0..20 {
        let id = format!("child-{number}");
        announce(
            &mut agent,
            &id,
            json!({"title": format!("Helper {number}")}),
        )
        .await;
        let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c",
            "title": format!("Look {number}"), "kind": "read"});
        agent.update_of(&id, call).await;
    }
    let question = json!({"sessionId": "child-0", "title": "May it?",
        "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c"}},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]});
    let answer = agent.ask("session/request_permission", question).await;
    assert_eq!(answer["outcome"]["optionId"], "yes", "{answer}");
    let question = within(questions.recv()).await.unwrap();
    let child = question.child.expect("a child asks");
    assert_eq!(child.session.as_str(), "child-0");
    assert_eq!(child.parent.as_str(), "s");
    assert_eq!(child.title.as_deref(), Some("Helper 0"));
    assert_eq!(
        question.kind.unwrap().as_str(),
        "read",
        "from its tool call"
    );
    let mut shown = Vec::new();
    while shown.len() < 20 {
        if let Event::ChildSession(child) = within(events.next()).await.unwrap().event {
            shown.push(child.title.unwrap().to_string());
        }
    }
    let expected: Vec<_> = (0..20).map(|number| format!("Helper {number}")).collect();
    assert_eq!(shown, expected);
    assert_eq!(session.children().len(), 20);
}

#[tokio::test]
async fn a_child_is_cancelled_only_if_the_agent_allows_it() {
    let (client, mut agent) = connect(Client::builder()).await;
    let session = open(&client, &mut agent).await;
    let id = SessionId::from("child");
    assert!(session.child(&id).is_none());
    announce(&mut agent, "child", json!({})).await;
    agent.handled().await;
    let child = session.child(&id).expect("it was announced");
    let refused = child.cancel().await.unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");

    announce(&mut agent, "child", json!({"capabilities": {"cancel": {}}})).await;
    // What is absent is unchanged.
    announce(&mut agent, "child", json!({"title": "Helper"})).await;
    agent.handled().await;
    assert!(session.child(&id).unwrap().info().can_cancel);
    child.cancel().await.unwrap();
    let cancel = agent.raw.next().await;
    assert_eq!(cancel["method"], "session/cancel", "{cancel}");
    assert_eq!(cancel["params"], json!({"sessionId": "child"}));

    announce(
        &mut agent,
        "child",
        json!({"capabilities": null, "title": null}),
    )
    .await;
    agent.handled().await;
    assert_eq!(session.child(&id).unwrap().info().title, None);
    child.cancel().await.unwrap_err();
    // Nothing was sent for the refused ones.
    agent.handled().await;
}

#[tokio::test]
async fn the_history_of_a_child_is_no_live_event() {
    let (client, mut agent) = connect(Client::builder()).await;
    let replayed = async {
        agent.called("session/resume").await;
        announce(&mut agent, "child", json!({"title": "Helper"})).await;
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
            "content": {"type": "text", "text": "found"}});
        agent.update_of("child", chunk).await;
        let complete = json!({"sessionUpdate": "replay_complete"});
        agent.update_of("child", complete.clone()).await;
        agent.update(complete).await;
        agent.state("idle").await;
        agent.answer(json!({})).await;
    };
    let (session, ()) =
        within(async { tokio::join!(client.load_session("s", "/"), replayed) }).await;
    let session = session.unwrap();
    let mut events = session.events();
    let mut seen = Vec::new();
    while let Some(event) = events.next_ready() {
        seen.push(match event.event {
            Event::ChildSession(child) => {
                assert_eq!(event.phase, Phase::Replayed);
                format!("{}: {}", child.session, word(&Event::Update(child.update)))
            }
            other => word(&other),
        });
    }
    assert_eq!(seen, ["subagent_update", "child: found", "history", "idle"]);
}
