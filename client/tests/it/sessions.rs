//! Requests outside of turns.

use std::time::Duration;

use acp_client::{Client, Error, Event, Events, Phase};
use acp_sdk::v1::SessionUpdate;
use serde_json::json;

use crate::agent::{Raw, TestAgent, connect, said, within};

/// Returns the queued updates.
fn ready(events: &mut Events) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    while let Some(event) = events.next_ready() {
        if let Event::Update(update) = event.event {
            updates.push(update);
        }
    }
    updates
}

#[tokio::test]
async fn updates_that_come_before_the_session_is_known_are_kept() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let session = within(client.new_session("/")).await.unwrap();
    assert_eq!(ready(&mut session.events()), [said("early")]);
    assert!(ready(&mut session.events()).is_empty(), "it is given once");
}

#[tokio::test]
async fn what_comes_between_turns_is_no_part_of_the_next_one() {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    let session = session.unwrap();
    raw.say("s", "between").await;
    raw.say("other", "for nobody").await;
    // The response means that all earlier messages were handled.
    let (listed, ()) = tokio::join!(
        client
            .agent()
            .authenticate(acp_sdk::v1::AuthenticateRequest::new("x")),
        raw.answer("authenticate", json!({}))
    );
    listed.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    let prompting = async {
        let request = raw.next().await;
        raw.say("s", "within").await;
        raw.say("other", "of another session").await;
        let result = json!({"stopReason": "end_turn"});
        raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    };
    let (outcome, ()) = within(async { tokio::join!(turn.outcome(), prompting) }).await;
    assert_eq!(outcome.unwrap().text, "within");
    assert_eq!(ready(&mut session.events()), [said("between")]);
}

#[tokio::test]
async fn a_loaded_session_brings_its_history() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let session = within(client.load_session("known", "/")).await.unwrap();
    let mut events = session.events();
    for word in ["first", "second"] {
        let event = events.next_ready().unwrap();
        assert_eq!((event.phase, event.turn), (Phase::Replayed, None));
        assert!(matches!(event.event, Event::Update(update) if update == said(word)));
    }
    let end = events.next_ready().unwrap();
    assert!(matches!(end.event, Event::HistoryEnd), "{end:?}");
    let turn = session.prompt("echo").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "echo");
}

#[tokio::test]
async fn a_session_that_cannot_be_loaded_is_no_new_one() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let error = within(client.load_session("lost", "/")).await.unwrap_err();
    assert_eq!(
        error.code(),
        Some(acp_sdk::v1::ErrorCode::RESOURCE_NOT_FOUND)
    );
    assert!(error.to_string().contains("lost"), "{error}");
    // It does not count as open afterwards.
    let again = within(client.load_session("lost", "/")).await.unwrap_err();
    assert!(matches!(again, Error::Sdk(_)), "{again}");
}

#[tokio::test]
async fn a_session_is_open_once() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let session = within(client.load_session("known", "/")).await.unwrap();
    let error = within(client.load_session("known", "/")).await.unwrap_err();
    assert_eq!(error.to_string(), "session known is already open");
    drop(session);
    within(client.load_session("known", "/")).await.unwrap();
}

#[tokio::test]
async fn sessions_are_listed_page_by_page() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let sessions = within(client.list_sessions(None)).await.unwrap();
    let ids: Vec<_> = sessions.iter().map(|s| s.session_id.as_str()).collect();
    assert_eq!(
        ids,
        ["1", "2", "3", "3"],
        "until the agent repeats its cursor"
    );
}

#[tokio::test]
async fn what_the_agent_does_not_declare_is_not_asked_of_it() {
    let (client, _raw) = Raw::connect(Client::builder()).await;
    let error = within(client.load_session("s", "/")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent does not support session/load: its capability loadSession is not set"
    );
    let error = within(client.resume_session("s", "/")).await.unwrap_err();
    assert!(error.to_string().contains("session/resume"), "{error}");
    let error = within(client.list_sessions(None)).await.unwrap_err();
    assert!(error.to_string().contains("session/list"), "{error}");
}

#[tokio::test]
async fn a_session_is_closed_where_the_agent_can() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let session = within(client.new_session("/")).await.unwrap();
    within(session.close()).await.unwrap();
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    let error = within(session.unwrap().close()).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[tokio::test]
async fn a_directory_is_checked_before_the_agent_is_asked() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let error = within(client.new_session("/no/such/directory")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("cannot use /no/such/directory as a working directory"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = within(client.new_session(file.path())).await.unwrap_err();
    assert!(
        error.to_string().ends_with("it is not a directory"),
        "{error}"
    );
    let session = within(client.new_session(".")).await.unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        session.id().as_str(),
        here.to_str().unwrap(),
        "it is absolute"
    );
}

#[tokio::test]
async fn an_agent_that_wants_authentication_says_how() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let error = within(client.authenticate("key")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent requires authentication before authenticate; its methods:\n  key: A key"
    );
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("locked").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err().to_string();
    assert!(
        error.contains("before session/prompt; its methods:\n  key: A key"),
        "{error}"
    );
}

#[tokio::test]
async fn another_version_of_the_protocol_is_refused() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let agent = tokio::spawn(async move {
        use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
        let mut stream = BufReader::new(theirs);
        stream.read_line(&mut String::new()).await.unwrap();
        let answer = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":7}}\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await
    });
    let (reader, writer) = tokio::io::split(ours);
    let error = within(Client::builder().connect((reader, writer))).await;
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "unsupported protocol version: expected 1, the agent answered 7"
    );
    within(agent)
        .await
        .unwrap()
        .expect("the connection is closed");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_is_given_up() {
    let (ours, mut theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    tokio::io::AsyncWriteExt::write_all(&mut theirs, b"Welcome to the tool!\n")
        .await
        .unwrap();
    let builder = Client::builder().answer_within(Duration::from_secs(3));
    let error = builder.connect((reader, writer)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent did not answer initialize within 3 s (is the command an ACP agent?); \
         its standard output has invalid messages:\n  Welcome to the tool!"
    );
}

#[tokio::test]
async fn options_are_set_by_choice_and_by_switch() {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    let session = session.unwrap();
    let options = json!([{ "id": "web", "name": "Web", "type": "boolean", "currentValue": true }]);
    let answer = || json!({ "configOptions": options });
    const METHOD: &str = "session/set_config_option";
    let (set, params) = tokio::join!(
        session.set_config_option("model", "large"),
        raw.params(METHOD, answer())
    );
    assert_eq!(json!(set.unwrap()), options);
    let expected = json!({ "sessionId": "s", "configId": "model", "value": "large" });
    assert_eq!(params, expected);
    let (set, params) = tokio::join!(
        session.set_config_option("web", true),
        raw.params(METHOD, answer())
    );
    assert_eq!(json!(set.unwrap()), options);
    assert_eq!(
        (&params["type"], &params["value"]),
        (&json!("boolean"), &json!(true))
    );
}

#[tokio::test]
async fn a_session_is_deleted_and_a_user_forgotten_where_the_agent_can() {
    let hello = json!({ "protocolVersion": 1, "agentCapabilities": {
        "auth": { "logout": {} }, "sessionCapabilities": { "delete": {} } } });
    let (client, mut raw) = Raw::connect_saying(Client::builder(), hello).await;
    let (deleted, params) = tokio::join!(
        client.delete_session("s"),
        raw.params("session/delete", json!({}))
    );
    deleted.unwrap();
    assert_eq!(params, json!({ "sessionId": "s" }));
    let (gone, ()) = tokio::join!(client.logout(), raw.answer("logout", json!({})));
    gone.unwrap();
    let (client, _raw) = Raw::connect(Client::builder()).await;
    let error = within(client.delete_session("s")).await.unwrap_err();
    assert!(
        error.to_string().contains("sessionCapabilities.delete"),
        "{error}"
    );
    let error = within(client.logout()).await.unwrap_err();
    assert!(error.to_string().contains("auth.logout"), "{error}");
}

#[tokio::test]
async fn events_are_waited_for_until_the_agent_is_gone() {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    let session = session.unwrap();
    let mut events = session.events();
    let (first, ()) = tokio::join!(within(events.next()), raw.say("s", "first"));
    assert!(matches!(first.unwrap().event, Event::Update(update) if update == said("first")));
    raw.send(
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": "s", "update": said("last words"), "_meta": {"acp-sdk": {"eventId": 7}}}}),
    )
    .await;
    drop(raw);
    let last = within(events.next()).await.unwrap();
    assert_eq!(last.number, Some(7));
    assert!(matches!(last.event, Event::Update(update) if update == said("last words")));
    assert!(within(events.next()).await.is_none());
    assert!(within(session.events().next()).await.is_none());
}

/// Modes and options are those of the response, then those of the latest update: the position of
/// the response among the updates decides, not the task that runs first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_follow_the_order_of_messages() {
    let mode = |id: &str| {
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
        let params = json!({"sessionId": "s", "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    };
    for _ in 0..100 {
        let (client, mut raw) = Raw::connect(Client::builder()).await;
        let opening = tokio::spawn(async move { (client.new_session("/").await, client) });
        let request = raw.next().await;
        let modes = json!({"currentModeId": "ask", "availableModes": [
            {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
        let result = json!({"sessionId": "s", "modes": modes});
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        raw.line(&format!("{answer}\n{}", mode("code"))).await;
        let (session, _client) = opening.await.unwrap();
        let session = session.unwrap();
        let mut events = session.events();
        within(events.next()).await.unwrap();
        let current = || session.settings().modes.unwrap().current_mode_id;
        assert_eq!(current().as_str(), "code");
        let (set, ()) = tokio::join!(session.set_mode("ask"), async {
            let request = raw.next().await;
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {}});
            raw.line(&format!("{answer}\n{}", mode("code"))).await;
            within(events.next()).await.unwrap();
        });
        set.unwrap();
        assert_eq!(current().as_str(), "code", "the update came later");
    }
}

/// The last reference to the session is dropped before the outcome of its last turn is returned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_can_be_opened_again_as_soon_as_its_turn_is_over() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    for _ in 0..300 {
        let session = within(client.load_session("known", "/")).await.unwrap();
        let turn = within(session.prompt("hello")).await.unwrap();
        drop(session);
        within(turn.outcome()).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_is_copied_where_the_agent_can() {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (forked, params) = tokio::join!(
        client.fork_session("s", "/"),
        raw.params(
            "session/fork",
            json!({"sessionId": "copy", "modes":
            {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}})
        )
    );
    assert_eq!(
        params,
        json!({"sessionId": "s", "cwd": "/", "mcpServers": []})
    );
    let session = forked.unwrap();
    assert_eq!(session.id().as_str(), "copy");
    assert_eq!(
        session.settings().modes.unwrap().current_mode_id.as_str(),
        "ask"
    );
    raw.say("copy", "hello").await;
    let event = within(session.events().next()).await.unwrap();
    assert!(matches!(event.event, Event::Update(update) if update == said("hello")));

    let forking = async {
        let request = raw.next().await;
        let error = json!({"code": -32601, "message": "no"});
        raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
    };
    let (refused, ()) = tokio::join!(client.fork_session("s", "/"), forking);
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[tokio::test]
async fn messages_of_both_sides_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transcript.jsonl");
    let transcript = acp_sdk::Transcript::file(&path).unwrap();
    let client = connect(
        TestAgent::default(),
        Client::builder().transcript(transcript),
    )
    .await;
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("echo").await.unwrap();
    within(turn.outcome()).await.unwrap();
    drop(session);
    within(client.shutdown()).await;
    drop(client);
    let recorded = async {
        loop {
            let text = std::fs::read_to_string(&path).unwrap();
            if [
                "initialize",
                "session/new",
                "session/prompt",
                "session/update",
            ]
            .iter()
            .all(|method| text.contains(method))
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    within(recorded).await;
}
