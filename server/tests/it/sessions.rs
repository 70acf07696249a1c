//! New, load, resume, list, close, delete.

use acp_reference_agent::Reference;
use acp_sdk::{Error, Meta, v1::*};
use acp_server::Server;
use serde_json::json;

use crate::editor::{Desk, Editor, everything, new_session, text};

fn path(error: &Error) -> serde_json::Value {
    assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS), "{error}");
    json!(error.as_response().unwrap().data)["path"].clone()
}

#[tokio::test]
async fn loading_replays_the_conversation_before_it_answers() {
    let desk = Desk::new().await;
    desk.prompt("hello").await.unwrap();
    desk.prompt("think").await.unwrap();
    desk.editor.take();
    desk.load().await.unwrap();
    assert_eq!(
        desk.editor.told(),
        [
            "user_message_chunk hello",
            "agent_message_chunk hello",
            "user_message_chunk think",
            "agent_thought_chunk Let me think.",
            "agent_message_chunk I have thought.",
        ]
    );
    let resume = ResumeSessionRequest::new(desk.session.clone(), "/w");
    desk.agent.resume_session(resume).await.unwrap();
    assert!(desk.editor.take().is_empty());
}

#[tokio::test]
async fn a_replay_repeats_what_was_sent_except_for_live_notices() {
    let desk = Desk::new().await;
    for word in ["tool", "content", "notice", "plan", "compact", "stream 3"] {
        desk.prompt(word).await.unwrap();
    }
    let is_update = |entry: &serde_json::Value| entry["method"] == "session/update";
    let mut live = desk.editor.take();
    live.retain(|entry| is_update(entry) && entry["params"]["update"]["sessionUpdate"] != "notice");
    desk.load().await.unwrap();
    let mut again = desk.editor.take();
    again.retain(|entry| entry["params"]["update"]["sessionUpdate"] != "user_message_chunk");
    assert_eq!(again, live);
}

#[tokio::test]
async fn every_block_of_a_prompt_is_replayed() {
    let desk = Desk::new().await;
    let mut prompt = text("look at");
    prompt.push(ContentBlock::ResourceLink(ResourceLink::new(
        "a.rs",
        "file:///w/a.rs",
    )));
    prompt.push(ContentBlock::Image(ImageContent::new("aGk=", "image/png")));
    desk.agent
        .prompt(PromptRequest::new(desk.session.clone(), prompt.clone()))
        .await
        .unwrap();
    desk.editor.take();
    desk.load().await.unwrap();
    let replayed: Vec<_> = desk
        .editor
        .take()
        .into_iter()
        .filter(|entry| entry["params"]["update"]["sessionUpdate"] == "user_message_chunk")
        .map(|entry| entry["params"]["update"]["content"].clone())
        .collect();
    assert_eq!(json!(replayed), json!(prompt));
}

#[tokio::test]
async fn an_unknown_session_is_named() {
    let desk = Desk::new().await;
    let (agent, id) = (&desk.agent, || SessionId::from("nobody"));
    let errors = [
        agent
            .load_session(LoadSessionRequest::new(id(), "/w", vec![]))
            .await
            .unwrap_err(),
        agent
            .resume_session(ResumeSessionRequest::new(id(), "/w"))
            .await
            .unwrap_err(),
        agent
            .close_session(CloseSessionRequest::new(id()))
            .await
            .unwrap_err(),
        agent
            .prompt(PromptRequest::new(id(), text("hi")))
            .await
            .unwrap_err(),
        agent
            .set_session_mode(SetSessionModeRequest::new(id(), "ask"))
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND), "{error}");
        assert!(error.to_string().contains("nobody"), "{error}");
    }
    // Gone is gone; and there is nobody to answer a notification.
    agent
        .delete_session(DeleteSessionRequest::new(id()))
        .await
        .unwrap();
    agent.cancel(CancelNotification::new(id())).await.unwrap();
    desk.prompt("ping").await.unwrap();
}

#[tokio::test]
async fn directories_are_absolute() {
    let desk = Desk::new().await;
    let agent = &desk.agent;
    let error = agent
        .new_session(NewSessionRequest::new(".", vec![]))
        .await
        .unwrap_err();
    assert_eq!(path(&error), "/cwd");
    let id = desk.session.clone();
    let error = agent
        .load_session(LoadSessionRequest::new(id.clone(), "w", vec![]))
        .await;
    assert_eq!(path(&error.unwrap_err()), "/cwd");
    let error = agent
        .resume_session(ResumeSessionRequest::new(id, ""))
        .await;
    assert_eq!(path(&error.unwrap_err()), "/cwd");
    let error = agent
        .list_sessions(ListSessionsRequest::new().with_cwd("w"))
        .await;
    assert_eq!(path(&error.unwrap_err()), "/cwd");
    let relative = NewSessionRequest::new("/w", vec![])
        .with_additional_directories(vec!["/a".to_owned(), "b".to_owned()]);
    let error = agent.new_session(relative).await.unwrap_err();
    assert_eq!(path(&error), "/additionalDirectories/1");
}

#[tokio::test]
async fn roots_are_listed_and_replaced_by_loading() {
    let desk = Desk::new().await;
    let request =
        NewSessionRequest::new("/r", vec![]).with_additional_directories(vec!["/a".to_owned()]);
    let id = desk.agent.new_session(request).await.unwrap().session_id;
    let listed = || async {
        let request = ListSessionsRequest::new().with_cwd("/r");
        json!(desk.agent.list_sessions(request).await.unwrap().sessions)
    };
    assert_eq!(listed().await[0]["additionalDirectories"], json!(["/a"]));
    let resume = ResumeSessionRequest::new(id.clone(), "/r");
    desk.agent.resume_session(resume).await.unwrap();
    assert_eq!(listed().await[0].get("additionalDirectories"), None);
}

#[tokio::test]
async fn a_session_that_is_opened_from_another_directory_keeps_its_own() {
    let desk = Desk::new().await;
    let id = || desk.session.clone();
    let kept = |meta: Option<Meta>| json!(meta)["acp-sdk"]["cwd"].clone();
    let load = LoadSessionRequest::new(id(), "/elsewhere", vec![]);
    let loaded = desk.agent.load_session(load).await.unwrap();
    assert_eq!(kept(loaded.meta), "/w");
    // From the store, too.
    let close = CloseSessionRequest::new(id());
    desk.agent.close_session(close).await.unwrap();
    let resume = ResumeSessionRequest::new(id(), "/elsewhere");
    let resumed = desk.agent.resume_session(resume).await.unwrap();
    assert_eq!(kept(resumed.meta), "/w");
    let request = ListSessionsRequest::new().with_cwd("/w");
    let listed = desk.agent.list_sessions(request).await.unwrap().sessions;
    assert_eq!(listed[0].session_id, id());
    let resume = ResumeSessionRequest::new(id(), "/w");
    let resumed = desk.agent.resume_session(resume).await.unwrap();
    assert_eq!(resumed.meta, None);
}

#[tokio::test]
async fn another_directory_is_refused_if_the_server_is_set_to() {
    let server = Server::builder(Reference).require_same_cwd(true).build();
    let desk = Desk::of(&server).await;
    let id = || desk.session.clone();
    for is_open in [true, false] {
        let load = LoadSessionRequest::new(id(), "/elsewhere", vec![]);
        let error = desk.agent.load_session(load).await.unwrap_err();
        assert_eq!(path(&error), "/cwd", "{is_open}");
        let resume = ResumeSessionRequest::new(id(), "/elsewhere");
        let error = desk.agent.resume_session(resume).await.unwrap_err();
        assert_eq!(path(&error), "/cwd", "{is_open}");
        // The second time there is nothing to close.
        let _ = desk
            .agent
            .close_session(CloseSessionRequest::new(id()))
            .await;
    }
    desk.load().await.unwrap();
}

#[tokio::test]
async fn roots_with_which_a_closed_session_is_loaded_are_kept() {
    let desk = Desk::new().await;
    let close = || {
        let close = CloseSessionRequest::new(desk.session.clone());
        desk.agent.close_session(close)
    };
    close().await.unwrap();
    let load = LoadSessionRequest::new(desk.session.clone(), "/w", vec![]);
    let load = load.with_additional_directories(vec!["/more".to_owned()]);
    desk.agent.load_session(load).await.unwrap();
    close().await.unwrap();
    let list = desk.agent.list_sessions(ListSessionsRequest::new()).await;
    let sessions = list.unwrap().sessions;
    assert_eq!(sessions[0].additional_directories, ["/more"]);
}

#[tokio::test]
async fn mcp_servers_of_every_transport_are_accepted() {
    let desk = Desk::new().await;
    let servers: Vec<McpServer> = serde_json::from_value(json!([
        { "name": "a", "command": "/bin/a", "args": [], "env": [{ "name": "K", "value": "v" }] },
        { "type": "http", "name": "b", "url": "https://example.com/mcp", "headers": [] },
        { "type": "sse", "name": "c", "url": "https://example.com/sse", "headers": [] },
    ]))
    .unwrap();
    let id = desk
        .agent
        .new_session(NewSessionRequest::new("/w", servers))
        .await
        .unwrap();
    let request = PromptRequest::new(id.session_id, text("servers"));
    desk.agent.prompt(request).await.unwrap();
    assert_eq!(desk.editor.said(), "MCP servers: a, b, c");
}

#[tokio::test]
async fn listing_goes_page_by_page_and_refuses_what_is_no_cursor() {
    let desk = Desk::new().await;
    for _ in 0..44 {
        new_session(&desk.agent).await;
    }
    let mut ids = std::collections::BTreeSet::new();
    let mut request = ListSessionsRequest::new();
    let mut sizes = vec![];
    loop {
        let page = desk.agent.list_sessions(request).await.unwrap();
        sizes.push(page.sessions.len());
        ids.extend(page.sessions.into_iter().map(|session| session.session_id));
        match page.next_cursor {
            Some(cursor) => request = ListSessionsRequest::new().with_cursor(cursor),
            None => break,
        }
    }
    assert_eq!((sizes, ids.len()), (vec![20, 20, 5], 45));
    for wrong in [
        "nonsense",
        "",
        "99999999999999999999999",
        desk.session.as_str(),
    ] {
        let request = ListSessionsRequest::new().with_cursor(wrong);
        let error = desk.agent.list_sessions(request).await.unwrap_err();
        assert_eq!(path(&error), "/cursor", "{wrong}");
    }
}

#[tokio::test]
async fn a_closed_session_is_over_until_it_is_loaded_or_resumed() {
    let desk = Desk::new().await;
    let turn = desk.start("slow");
    desk.editor.until("agent_message_chunk tick").await;
    let close = || {
        desk.agent
            .close_session(CloseSessionRequest::new(desk.session.clone()))
    };
    close().await.unwrap();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);

    let error = desk.prompt("ping").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND), "{error}");
    assert!(error.to_string().contains("closed"), "{error}");
    // Once more does no harm, and what is closed is still listed.
    close().await.unwrap();
    let listed = desk
        .agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert_eq!(listed.sessions.len(), 1);

    desk.editor.take();
    desk.load().await.unwrap();
    assert_eq!(desk.editor.told()[0], "user_message_chunk slow");
    desk.prompt("ping").await.unwrap();
    close().await.unwrap();
    let resume = ResumeSessionRequest::new(desk.session.clone(), "/w");
    desk.agent.resume_session(resume).await.unwrap();
    desk.prompt("ping").await.unwrap();
}

#[tokio::test]
async fn closing_sends_the_end_of_the_turn_before_it_answers() {
    let editor = Editor {
        endless: true,
        ..Editor::default()
    };
    let desk = Desk::with(editor, everything()).await;
    let turn = desk.start("tool");
    desk.editor.until("terminal/wait_for_exit").await;
    desk.agent
        .close_session(CloseSessionRequest::new(desk.session.clone()))
        .await
        .unwrap();
    let told = desk.editor.told();
    assert!(
        told.contains(&"tool_call_update failed".to_owned()),
        "{told:?}"
    );
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let desk = Desk::new().await;
    let turn = desk.start("slow");
    desk.editor.until("agent_message_chunk tick").await;
    let delete = || {
        desk.agent
            .delete_session(DeleteSessionRequest::new(desk.session.clone()))
    };
    delete().await.unwrap();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    delete().await.unwrap();
    let listed = desk
        .agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert!(listed.sessions.is_empty());
    let error = desk.load().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND));
}

#[tokio::test]
async fn titles_are_listed() {
    let desk = Desk::new().await;
    desk.prompt("title Mine").await.unwrap();
    let listed = desk
        .agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert_eq!(listed.sessions[0].title.as_deref(), Some("Mine"));
}
