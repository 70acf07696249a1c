//! Requests outside of turns.

use acp_client::{Client, Error, Event, Phase};
use acp_sdk::v1::SessionUpdate;
use serde_json::{Value, json};

use super::{connect, open, session, word};
use crate::agent::within;

#[tokio::test]
async fn both_versions_are_offered_at_once() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let builder = Client::builder().workspace(acp_client::Workspace::new());
    let connecting = tokio::spawn(builder.offer_v2().connect((reader, writer)));
    let mut line = String::new();
    let mut theirs = tokio::io::BufReader::new(theirs);
    within(tokio::io::AsyncBufReadExt::read_line(
        &mut theirs,
        &mut line,
    ))
    .await
    .unwrap();
    let params = &serde_json::from_str::<Value>(&line).unwrap()["params"];
    assert_eq!(params["protocolVersion"], 2);
    assert_eq!(params["info"]["name"], "acp-client");
    assert_eq!(
        params["capabilities"],
        json!({}),
        "there are no files and terminals"
    );
    assert_eq!(params["clientCapabilities"]["fs"]["readTextFile"], true);
    connecting.abort();
}

#[tokio::test]
async fn the_history_is_replayed_until_the_response() {
    let (client, mut agent) = connect(Client::builder()).await;
    let loading = tokio::spawn({
        let client = client.clone();
        async move { client.load_session("s", "/").await }
    });
    let params = agent.called("session/resume").await;
    let expected = json!({"sessionId": "s", "cwd": "/", "replayFrom": {"type": "start"}});
    assert_eq!(params, expected);
    agent.user("user-1").await;
    agent.say("old").await;
    agent.state("idle").await;
    let commands = json!([{"type": "command", "name": "plan", "description": "Plans"}]);
    let option = json!({"configId": "mode", "name": "Mode", "category": "mode",
        "type": "select", "currentValue": "a", "options": [{"value": "a", "name": "A"}]});
    agent
        .answer(json!({"availableCommands": commands, "configOptions": [option]}))
        .await;
    agent.say("new").await;
    let session = within(loading).await.unwrap().unwrap();
    agent.handled().await;
    let expected = [
        (true, "user"),
        (true, "old"),
        (true, "idle"),
        (false, "history"),
        (false, "new"),
    ];
    assert_eq!(
        seen(&session),
        expected.map(|(is_replayed, word)| (is_replayed, word.to_owned()))
    );
    let settings = session.settings();
    assert_eq!(settings.commands[0].name, "plan");
    assert_eq!(settings.config_options.unwrap()[0].id.as_str(), "mode");
}

/// The events of a session that are there: whether each is of the history, and its word.
fn seen(session: &acp_client::Session) -> Vec<(bool, String)> {
    let mut events = session.events();
    let events = std::iter::from_fn(|| events.next_ready());
    let seen = events.map(|event| (event.phase == Phase::Replayed, word(&event.event)));
    seen.collect()
}

/// The agent may have slow work to do after it, whose updates are no history.
#[tokio::test]
async fn the_marker_of_a_replay_ends_the_history_before_the_response() {
    let (client, mut agent) = connect(Client::builder()).await;
    let loading = tokio::spawn({
        let client = client.clone();
        async move { client.load_session("s", "/").await }
    });
    agent.called("session/resume").await;
    agent.say("old").await;
    let marker = json!({"sessionUpdate": "replay_complete", "_meta": {"a": 1}});
    agent.update(marker.clone()).await;
    agent.say("new").await;
    agent.state("idle").await;
    agent.answer(json!({})).await;
    // There is no history to end.
    agent.update(marker).await;
    let session = within(loading).await.unwrap().unwrap();
    agent.handled().await;
    let expected = [
        (true, "old"),
        (false, "history"),
        (false, "new"),
        (false, "idle"),
    ];
    assert_eq!(
        seen(&session),
        expected.map(|(is_replayed, word)| (is_replayed, word.to_owned()))
    );
}

#[tokio::test]
async fn closing_a_session_that_the_agent_does_not_know_succeeds() {
    let (client, mut agent) = connect(Client::builder()).await;
    for (code, closes) in [(-32002, true), (-32603, false)] {
        let session = open(&client, &mut agent).await;
        let (closed, ()) = tokio::join!(session.close(), async {
            agent.called("session/close").await;
            agent.refuse(code, "no").await;
        });
        assert_eq!(closed.is_ok(), closes, "{closed:?}");
    }
}

#[tokio::test]
async fn a_session_is_resumed_without_its_history() {
    let (client, mut agent) = connect(Client::builder()).await;
    let (session, params) = within(async {
        tokio::join!(
            client.resume_session("s", "/"),
            agent.call("session/resume", json!({}))
        )
    })
    .await;
    assert_eq!(params, json!({"sessionId": "s", "cwd": "/"}));
    assert!(session.unwrap().events().next_ready().is_none());
}

#[tokio::test]
async fn requests_have_their_names_of_version_2() {
    let (client, mut agent) = connect(Client::builder()).await;
    let (done, params) = tokio::join!(
        client.authenticate("key"),
        agent.call("auth/login", json!({}))
    );
    done.unwrap();
    assert_eq!(params, json!({"methodId": "key"}));
    let (done, _) = tokio::join!(client.logout(), agent.call("auth/logout", json!({})));
    done.unwrap();
    let page = json!({"sessions": [{"sessionId": "old", "cwd": "/w"}]});
    let (sessions, _) = tokio::join!(client.list_sessions(None), agent.call("session/list", page));
    assert_eq!(sessions.unwrap()[0].session_id.as_str(), "old");
    let error = within(client.delete_session("old")).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let forked = json!({"sessionId": "copy", "configOptions": [{"configId": "fast",
        "name": "Fast", "type": "boolean", "currentValue": true}]});
    let (copy, _) = tokio::join!(
        client.fork_session("old", "/"),
        agent.call("session/fork", forked)
    );
    let copy = copy.unwrap();
    let (options, params) = tokio::join!(
        copy.set_config_option("fast", false),
        agent.call("session/set_config_option", json!({"configOptions": []}))
    );
    let expected =
        json!({"sessionId": "copy", "configId": "fast", "type": "boolean", "value": false});
    assert_eq!((options.unwrap().len(), params), (0, expected));
    let (done, params) = tokio::join!(copy.close(), agent.call("session/close", json!({})));
    done.unwrap();
    assert_eq!(params, json!({"sessionId": "copy"}));
}

#[tokio::test]
async fn there_are_no_modes_and_the_error_names_the_option() {
    let (session, mut agent) = session().await;
    let error = within(session.set_mode("code")).await.unwrap_err();
    let words = "protocol version 2 has no session/set_mode; modes are values of a config option, \
        and this session has none for them";
    assert_eq!(error.to_string(), words);
    let option = json!({"configId": "agent-mode", "name": "Mode", "category": "mode",
        "type": "select", "currentValue": "a", "options": [{"value": "a", "name": "A"}]});
    agent
        .update(json!({"sessionUpdate": "config_option_update", "configOptions": [option]}))
        .await;
    agent.handled().await;
    let error = within(session.set_mode("code")).await.unwrap_err();
    let words = "protocol version 2 has no session/set_mode; set the config option `agent-mode`";
    assert_eq!(error.to_string(), words);
}

#[tokio::test]
async fn an_agent_without_sessions_is_not_asked_for_old_ones() {
    let hello = json!({"protocolVersion": 2, "info": {"name": "agent", "version": "1"}});
    let (client, _raw) =
        crate::agent::Raw::connect_saying(Client::builder().offer_v2(), hello).await;
    let error = within(client.load_session("s", "/")).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let error = within(client.logout()).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[tokio::test]
async fn updates_before_the_answer_belong_to_the_new_session() {
    let (client, mut agent) = connect(Client::builder()).await;
    agent.say("early").await;
    agent.handled().await;
    let session = open(&client, &mut agent).await;
    let event = session.events().next_ready().unwrap();
    assert_eq!(word(&event.event), "early");
}

#[tokio::test]
async fn updates_of_a_child_session_are_shown_with_its_parent() {
    let (session, mut agent) = session().await;
    let mut events = session.events();
    let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": {"type": "text", "text": "Hi"}});
    let meta = json!({"parentSessionId": "s"});
    let params = json!({"sessionId": "child", "update": update, "_meta": meta});
    let note = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    agent.raw.send(note).await;
    let event = within(events.next()).await.unwrap();
    let Event::ChildSession(child) = &event.event else {
        panic!("{event:?}");
    };
    assert_eq!(child.session.as_str(), "child");
    let is_text = matches!(child.update, SessionUpdate::AgentMessageChunk(_));
    assert!(is_text, "{child:?}");
}
