//! Otter's ACP server, rule by rule of its text; see `docs/dialects.md`.

use std::sync::Arc;

use acp_server::Server;
use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_server_dialects::otter_acp::OtterAcp;
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};
use serde_json::{Value, json};

use crate::client::{Client, LONGEST};
use crate::script::Script;

fn server() -> Server {
    Server::new(Script)
}

async fn client(server: &Server) -> Client {
    let mut client = Client::of(OtterAcp::new(server.clone()));
    client.result("initialize", json!({})).await;
    client
}

/// Returns a client with a new session.
async fn started() -> (Client, Value) {
    let mut client = client(&server()).await;
    let session = created(&mut client).await;
    (client, session)
}

async fn created(client: &mut Client) -> Value {
    let (created, _) = client.result("session/new", json!({ "cwd": "/w" })).await;
    created["sessionId"].clone()
}

async fn say(client: &mut Client, session: &Value, text: &str) -> (Value, Vec<Value>) {
    let params = json!({ "sessionId": session, "message": text });
    client.result("session/message", params).await
}

async fn start(client: &mut Client, session: &Value, text: &str) -> u64 {
    let params = json!({ "sessionId": session, "message": text });
    client.send("session/message", params).await
}

async fn resume(client: &mut Client, session: &Value, since: Value) -> (Value, Vec<u64>) {
    let params = json!({ "sessionId": session, "sinceEventId": since });
    let (resumed, replayed) = client.result("session/resume", params).await;
    (resumed, ids(&replayed))
}

fn ids(updates: &[Value]) -> Vec<u64> {
    let ids = updates
        .iter()
        .map(|update| update["params"]["eventId"].as_u64());
    ids.map(Option::unwrap).collect()
}

fn kinds(updates: &[Value]) -> Vec<&str> {
    let kinds = updates.iter().map(|update| &update["params"]["update"]);
    kinds
        .map(|update| update["sessionUpdate"].as_str().unwrap())
        .collect()
}

/// Reads until an update of this kind, and returns it.
async fn until(client: &mut Client, kind: &str) -> Value {
    loop {
        let message = client.next().await;
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == kind {
            return update.clone();
        }
    }
}

#[tokio::test]
async fn initialize_needs_no_params_and_names_the_capabilities() {
    let mut client = Client::of(OtterAcp::new(server()));
    client
        .write(r#"{"jsonrpc":"2.0","id":100,"method":"initialize"}"#)
        .await;
    let (answer, _) = client.answer(100).await;
    let result = &answer["result"];
    assert_eq!(result["protocolVersion"], 2);
    assert_eq!(result["clientProtocolVersion"], Value::Null);
    assert_eq!(result["serverInfo"]["name"], "otter-acp");
    let capabilities = json!({
        "sessionFork": true, "sessionList": true, "permissionRequest": true, "thinking": false, "vision": false,
    });
    assert_eq!(result["capabilities"], capabilities);
    let capabilities = json!({
        "promptCapabilities": { "text": true },
        "sessionCapabilities": { "cancel": true, "resume": true },
        "toolApproval": true,
        "eventIds": true,
    });
    assert_eq!(result["agentCapabilities"], capabilities);
}

#[tokio::test]
async fn a_client_of_each_version_is_answered_with_a_version() {
    for (sent, answered, repeated) in [
        (json!("0.1"), json!("0.1"), json!("0.1")),
        (json!(1), json!(2), json!(1)),
        (json!(2), json!(2), json!(2)),
        (json!("0.2"), json!(2), json!("0.2")),
        (json!({}), json!(2), Value::Null),
    ] {
        let mut client = Client::of(OtterAcp::new(server()));
        let (result, _) = client
            .result("initialize", json!({ "protocolVersion": sent }))
            .await;
        assert_eq!(result["protocolVersion"], answered);
        assert_eq!(result["clientProtocolVersion"], repeated);
    }
}

#[tokio::test]
async fn nothing_but_initialize_comes_first() {
    let mut client = Client::of(OtterAcp::new(server()));
    for (method, params) in [
        ("session/new", json!({ "cwd": "." })),
        ("session/list", json!({})),
        (
            "session/message",
            json!({ "sessionId": "x", "message": "x" }),
        ),
        ("session/cancel", json!({ "sessionId": "x" })),
        ("session/load", json!({ "sessionId": "x" })),
        ("session/fork", json!({ "sessionId": "x" })),
        ("session/resume", json!({ "sessionId": "x" })),
        ("session/setMode", json!({ "sessionId": "x", "mode": "x" })),
        (
            "session/setModel",
            json!({ "sessionId": "x", "model": "x" }),
        ),
        (
            "permission/respond",
            json!({ "requestId": "x", "reply": "allow" }),
        ),
        (
            "tool/approve",
            json!({ "sessionId": "x", "permissionId": "x", "decision": "approve" }),
        ),
    ] {
        let error = client.error(method, params).await;
        assert_eq!(error["code"], -32002, "{method}: {error}");
    }
}

#[tokio::test]
async fn bad_messages_are_answered_and_the_stream_stays_alive() {
    let (mut client, session) = started().await;
    assert_eq!(client.error("no/such", json!({})).await["code"], -32601);
    client.write("{\"jsonrpc\": nonsense").await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&Value::Null, &json!(-32700))
    );
    assert!(answer.as_object().unwrap().contains_key("id"), "{answer}");
    client.write("7").await;
    assert_eq!(client.next().await["error"]["code"], -32600);
    let params = json!({ "sessionId": session, "message": 7 });
    assert_eq!(
        client.error("session/message", params).await["code"],
        -32602
    );
    for method in [
        "session/message",
        "session/load",
        "session/cancel",
        "session/resume",
        "session/fork",
    ] {
        let error = client
            .error(method, json!({ "sessionId": "nope", "message": "x" }))
            .await;
        assert_eq!(error["code"], -32602, "{method}: {error}");
    }
    // A notification has no answer.
    client
        .write(r#"{"jsonrpc":"2.0","method":"client/heartbeat","params":{"ts":0}}"#)
        .await;
    let (_, before) = client.result("session/list", json!({})).await;
    assert!(before.is_empty(), "{before:?}");
    assert_eq!(say(&mut client, &session, "say Hi").await.0["output"], "Hi");
}

#[tokio::test]
async fn a_session_has_an_id_and_a_working_directory() {
    let mut client = client(&server()).await;
    let (created, _) = client.result("session/new", json!({ "cwd": "/w" })).await;
    assert!(
        created["sessionId"].as_str().unwrap().starts_with("otter-"),
        "{created}"
    );
    assert_eq!(created["cwd"], "/w");
    let here = std::env::current_dir().unwrap();
    for params in [json!({}), json!({ "cwd": "." })] {
        let (created, _) = client.result("session/new", params).await;
        assert_eq!(created["cwd"], here.to_str().unwrap());
    }
}

#[tokio::test]
async fn a_message_is_answered_with_the_final_message_after_numbered_updates() {
    let (mut client, session) = started().await;
    let (result, updates) = say(&mut client, &session, "say Hel|lo").await;
    let expected = json!({ "sessionId": session, "stopReason": "end_turn", "output": "Hello" });
    assert_eq!(result, expected);
    let expected = [
        "turn_start",
        "agent_message_chunk",
        "agent_message_chunk",
        "turn_end",
    ];
    assert_eq!(kinds(&updates), expected);
    assert_eq!(ids(&updates), [1, 2, 3, 4]);
    let content = json!({ "type": "text", "text": "Hel" });
    assert_eq!(updates[1]["params"]["update"]["content"], content);
    assert_eq!(updates[1]["params"]["sessionId"], session);
    // Reasoning has no kind of update, and no number.
    let (result, updates) = say(&mut client, &session, "think").await;
    assert_eq!(result["output"], "Yes.");
    assert_eq!(ids(&updates), [5, 6, 7]);
}

#[tokio::test]
async fn a_tool_call_and_its_result_have_one_id() {
    let (mut client, session) = started().await;
    let (result, updates) = say(&mut client, &session, "tool works").await;
    assert_eq!(result["output"], "After.");
    let expected = [
        "turn_start",
        "agent_message_chunk",
        "tool_call",
        "tool_result",
        "agent_message_chunk",
        "turn_end",
    ];
    assert_eq!(kinds(&updates), expected);
    let call = &updates[2]["params"]["update"];
    assert_eq!(
        (&call["tool"], &call["title"]),
        (&json!("execute"), &json!("List files"))
    );
    assert_eq!(call["input"], json!({ "cmd": "ls" }));
    let expected = json!({
        "sessionUpdate": "tool_result", "callId": call["callId"], "success": true, "output": "a b",
    });
    assert_eq!(updates[3]["params"]["update"], expected);

    let (_, updates) = say(&mut client, &session, "tool fails").await;
    let result = &updates[3]["params"]["update"];
    assert_eq!(
        (&result["success"], &result["error"]),
        (&json!(false), &json!("no such command"))
    );
    let (_, updates) = say(&mut client, &session, "tool raw").await;
    assert_eq!(updates[3]["params"]["update"]["output"], r#"{"files":2}"#);
    // A call that has ended when it is announced has a result, too.
    let (_, updates) = say(&mut client, &session, "tool named").await;
    assert_eq!(updates[3]["params"]["update"]["tool"], "read");
    assert_eq!(kinds(&updates)[3..5], ["tool_call", "tool_result"]);
}

#[tokio::test]
async fn usage_has_tokens_and_cost() {
    let (mut client, session) = started().await;
    let (_, updates) = say(&mut client, &session, "usage").await;
    assert_eq!(
        kinds(&updates),
        ["turn_start", "usage_update", "usage_update", "turn_end"]
    );
    let expected = json!({
        "sessionUpdate": "usage_update", "used": 1_000, "size": 200_000, "cost": 0.5, "currency": "USD",
    });
    assert_eq!(updates[1]["params"]["update"], expected);
    let expected = json!({
        "sessionUpdate": "usage_update", "inputTokens": 10, "outputTokens": 5, "totalTokens": 15,
    });
    assert_eq!(updates[2]["params"]["update"], expected);
}

#[tokio::test]
async fn a_permission_is_asked_and_the_reply_decides() {
    let all = "allow_once allow_always reject_once";
    for (kinds, reply, expected) in [
        (all, "allow", "Chosen: allow_once."),
        (all, "always", "Chosen: allow_always."),
        (all, "deny", "Chosen: reject_once."),
        ("allow_once reject_once", "always", "Chosen: allow_once."),
    ] {
        let (mut client, session) = started().await;
        let message = start(&mut client, &session, &format!("ask {kinds}")).await;
        let asked = until(&mut client, "permission_request").await;
        assert_eq!(
            (&asked["tool"], &asked["input"]),
            (&json!("execute"), &json!({ "cmd": "rm" }))
        );
        let options = match kinds == all {
            true => json!(["allow", "always", "deny"]),
            false => json!(["allow", "deny"]),
        };
        assert_eq!(asked["options"], options);
        let params = json!({ "requestId": asked["requestId"], "reply": reply });
        let id = client.send("permission/respond", params.clone()).await;
        // The turn goes on at once, so its updates may come first.
        let (mut applied, mut answered) = (Value::Null, Value::Null);
        while applied.is_null() || answered.is_null() {
            let answer = client.next().await;
            if answer["id"] == id {
                applied = answer["result"]["applied"].clone();
            } else if answer["id"] == message {
                answered = answer["result"]["output"].clone();
            }
        }
        assert_eq!((&applied, &answered), (&json!(true), &json!(expected)));
        // It is answered once.
        let (again, _) = client.result("permission/respond", params).await;
        assert_eq!(again["applied"], false);
    }
}

#[tokio::test]
async fn a_reply_that_does_not_fit_leaves_the_request_open() {
    let (mut client, session) = started().await;
    let message = start(&mut client, &session, "ask allow_always").await;
    let asked = until(&mut client, "permission_request").await;
    let id = &asked["requestId"];
    for reply in ["perhaps", "allow"] {
        let error = client
            .error(
                "permission/respond",
                json!({ "requestId": id, "reply": reply }),
            )
            .await;
        assert_eq!(error["code"], -32602, "{error}");
    }
    for unknown in [
        json!("r1"),
        json!(format!("{}/x", session.as_str().unwrap())),
        json!("no/7"),
    ] {
        let params = json!({ "requestId": unknown, "reply": "allow" });
        assert_eq!(
            client.result("permission/respond", params).await.0["applied"],
            false
        );
    }
    // Without an option that rejects, the turn is cancelled.
    client
        .send(
            "permission/respond",
            json!({ "requestId": id, "reply": "deny" }),
        )
        .await;
    let (answer, _) = client.answer(message).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
}

/// The names that Otter's code has for the round trip.
#[tokio::test]
async fn tool_approve_answers_a_permission_request() {
    for (decision, expected) in [("approve", "allow_once"), ("deny", "reject_once")] {
        let (mut client, session) = started().await;
        let message = start(&mut client, &session, "ask allow_once reject_once").await;
        let asked = until(&mut client, "permission_request").await;
        let params = json!({
            "sessionId": session, "permissionId": asked["permissionId"], "decision": decision,
        });
        client.send("tool/approve", params).await;
        let (answer, _) = client.answer(message).await;
        assert_eq!(answer["result"]["output"], format!("Chosen: {expected}."));
    }
}

#[tokio::test]
async fn messages_of_a_session_queue_and_those_of_another_do_not() {
    let (mut client, session) = started().await;
    let other = created(&mut client).await;
    let first = start(&mut client, &session, "hold A").await;
    until(&mut client, "agent_message_chunk").await;
    let second = start(&mut client, &session, "say B").await;
    assert_eq!(say(&mut client, &other, "say C").await.0["output"], "C");
    client
        .send("session/cancel", json!({ "sessionId": session }))
        .await;
    // A cancellation is for all messages that have arrived; one that waits is answered at once.
    let (answer, _) = client.answer(second).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert_eq!(answer["result"]["output"], "");
    let (answer, _) = client.answer(first).await;
    assert_eq!(answer["result"]["output"], "A");
    assert_eq!(say(&mut client, &session, "say D").await.0["output"], "D");
}

#[tokio::test]
async fn an_answer_precedes_the_updates_of_the_next_message() {
    let (mut client, session) = started().await;
    let messages = ["ask allow_once", "say B|C", "say D", "say E"];
    let mut sent = Vec::new();
    for text in messages {
        sent.push(start(&mut client, &session, text).await);
    }
    let asked = until(&mut client, "permission_request").await;
    client
        .send(
            "permission/respond",
            json!({ "requestId": asked["requestId"], "reply": "allow" }),
        )
        .await;
    let (answer, _) = client.answer(sent[0]).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    for (id, chunks) in [(sent[1], 2), (sent[2], 1), (sent[3], 1)] {
        let (_, before) = client.answer(id).await;
        let kinds = kinds(&before);
        assert_eq!(kinds.len(), chunks + 2, "{before:?}");
        assert_eq!(
            (kinds[0], kinds[kinds.len() - 1]),
            ("turn_start", "turn_end")
        );
    }
}

#[tokio::test]
async fn a_cancelled_turn_has_the_partial_text_and_a_marker() {
    let (mut client, session) = started().await;
    let message = start(&mut client, &session, "hold Half").await;
    until(&mut client, "agent_message_chunk").await;
    let cancel = client
        .send("session/cancel", json!({ "sessionId": session }))
        .await;
    let (answer, before) = client.answer(message).await;
    let expected = json!({
        "sessionId": session, "stopReason": "cancelled", "output": "Half", "cancelled": true,
    });
    assert_eq!(answer["result"], expected);
    let cancelled = before
        .iter()
        .find(|message| message["id"] == cancel)
        .unwrap();
    assert_eq!(
        cancelled["result"],
        json!({ "sessionId": session, "cancelled": true })
    );
    let updates: Vec<_> = before
        .iter()
        .filter(|message| message["id"].is_null())
        .collect();
    let marker = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": "" },
        "cancelled": true,
        "output": "Half",
    });
    assert_eq!(updates[0]["params"]["update"], marker);
    let end = json!({ "sessionUpdate": "turn_end", "stopReason": "cancelled" });
    assert_eq!(updates[1]["params"]["update"], end);
    // Nothing is running, and the next message is not cancelled.
    client
        .result("session/cancel", json!({ "sessionId": session }))
        .await;
    assert_eq!(
        say(&mut client, &session, "say On").await.0["stopReason"],
        "end_turn"
    );
}

#[tokio::test]
async fn a_session_is_idle_running_or_cancelled() {
    let (mut client, session) = started().await;
    async fn state(client: &mut Client) -> Value {
        let (list, _) = client.result("session/list", json!({})).await;
        list["sessions"][0]["state"].clone()
    }
    assert_eq!(state(&mut client).await, "idle");
    let message = start(&mut client, &session, "stubborn").await;
    until(&mut client, "agent_message_chunk").await;
    assert_eq!(state(&mut client).await, "running");
    client
        .result("session/cancel", json!({ "sessionId": session }))
        .await;
    assert_eq!(state(&mut client).await, "cancelled");
    Script::go();
    client.answer(message).await;
    assert_eq!(state(&mut client).await, "idle");
}

#[tokio::test]
async fn sessions_are_listed_loaded_and_forked() {
    let server = server();
    let mut first = client(&server).await;
    let session = created(&mut first).await;
    say(&mut first, &session, "say A").await;

    let mut client = client(&server).await;
    let (list, _) = client.result("session/list", json!({})).await;
    let entry = &list["sessions"][0];
    assert_eq!(
        (&entry["sessionId"], &entry["cwd"]),
        (&session, &json!("/w"))
    );
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    let (loaded, before) = client
        .result("session/load", json!({ "sessionId": session }))
        .await;
    let expected = json!({ "sessionId": session, "cwd": "/w", "state": "idle", "lastEventId": 3 });
    assert_eq!(loaded, expected);
    assert!(before.is_empty(), "{before:?}");
    let (forked, _) = client
        .result("session/fork", json!({ "sessionId": session }))
        .await;
    let copy = &forked["sessionId"];
    assert_ne!(copy, &session);
    assert_eq!(resume(&mut client, copy, json!(0)).await.1, [1, 2, 3]);
    // The copy goes on by itself.
    let (_, updates) = say(&mut client, copy, "say B").await;
    assert_eq!(ids(&updates), [4, 5, 6]);
    assert_eq!(resume(&mut client, &session, json!(0)).await.1, [1, 2, 3]);
}

#[tokio::test]
async fn sessions_begin_in_the_directory_and_with_the_model_of_the_flags() {
    let with = |model: &str| {
        let mut settings = acp_server::InitialSettings::default();
        settings.model = Some(model.to_owned());
        let server = Server::builder(Script).initial_settings(settings).build();
        Client::of(OtterAcp::new(server).with_cwd("/w"))
    };
    let mut client = with("large");
    client.result("initialize", json!({})).await;
    for (cwd, expected) in [
        (json!(null), "/w"),
        (json!("a"), "/w/a"),
        (json!("/b"), "/b"),
    ] {
        let (created, _) = client.result("session/new", json!({ "cwd": cwd })).await;
        assert_eq!(created["cwd"], expected);
        let (result, _) = say(&mut client, &created["sessionId"], "settings").await;
        assert_eq!(result["output"], "Some(\"build\") Some(\"large\")");
    }
    let mut client = with("huge");
    client.result("initialize", json!({})).await;
    let error = client.error("session/new", json!({})).await;
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("--model") && message.contains("large"),
        "{message}"
    );
}

#[tokio::test]
async fn mode_and_model_are_switched() {
    let (mut client, session) = started().await;
    let set = json!({ "sessionId": session, "mode": "plan" });
    assert_eq!(
        client.result("session/setMode", set).await.0["mode"],
        "plan"
    );
    let set = json!({ "sessionId": session, "model": "large" });
    assert_eq!(
        client.result("session/setModel", set).await.0["model"],
        "large"
    );
    let (result, _) = say(&mut client, &session, "settings").await;
    assert_eq!(result["output"], r#"Some("plan") Some("large")"#);
    for (method, member) in [("session/setMode", "mode"), ("session/setModel", "model")] {
        let error = client
            .error(method, json!({ "sessionId": session, member: "none" }))
            .await;
        assert_eq!(error["code"], -32602, "{error}");
    }
}

#[tokio::test]
async fn a_failure_is_an_application_error_without_a_place() {
    let (mut client, session) = started().await;
    for (text, reason) in [
        ("fail", "no model answers"),
        ("panic", "as the test wants it"),
    ] {
        let message = start(&mut client, &session, text).await;
        let (answer, updates) = client.answer(message).await;
        let error = &answer["error"];
        assert_eq!(error["code"], -32000);
        assert!(
            error["message"].as_str().unwrap().contains(reason),
            "{error}"
        );
        let data = json!({ "name": "Internal error", "message": error["message"], "stack": "" });
        assert_eq!(error["data"], data);
        assert!(!answer.to_string().contains(".rs"), "{answer}");
        let end = &updates[updates.len() - 1]["params"]["update"];
        assert_eq!(
            (&end["sessionUpdate"], &end["stopReason"]),
            (&json!("turn_end"), &json!("error"))
        );
    }
    assert_eq!(say(&mut client, &session, "say On").await.0["output"], "On");
}

#[tokio::test]
async fn a_cursor_decides_what_is_replayed() {
    let server = server();
    let mut first = client(&server).await;
    let session = created(&mut first).await;
    let (_, live) = say(&mut first, &session, "say A|B|C").await;
    assert_eq!(ids(&live), [1, 2, 3, 4, 5]);

    let mut client = client(&server).await;
    for (since, first) in [
        (json!(2), 3),
        (json!(0), 1),
        (Value::Null, 1),
        (json!(-3), 1),
        (json!("2"), 1),
        (json!(2.5), 1),
        (json!(5), 6),
        (json!(99), 6),
    ] {
        let params = json!({ "sessionId": session, "sinceEventId": since });
        let (resumed, replayed) = client.result("session/resume", params).await;
        let expected: Vec<u64> = (first..6).collect();
        assert_eq!(ids(&replayed), expected, "{since}");
        // As they were live.
        assert!(
            replayed.iter().all(|update| live.contains(update)),
            "{replayed:?}"
        );
        let expected = json!({
            "sessionId": session, "replayed": expected.len(), "lastEventId": 5, "truncated": false,
        });
        assert_eq!(resumed, expected, "{since}");
    }
    let (resumed, _) = client
        .result("session/resume", json!({ "sessionId": session }))
        .await;
    assert_eq!(resumed["replayed"], 5);
    // What follows is live, for both clients.
    let (_, updates) = say(&mut client, &session, "say D").await;
    assert_eq!(ids(&updates), [6, 7, 8]);
    assert_eq!(first.next().await["params"]["eventId"], 6);
}

#[tokio::test]
async fn a_replay_during_a_turn_precedes_what_is_new() {
    let (mut client, session) = started().await;
    say(&mut client, &session, "say A|B").await;
    let message = start(&mut client, &session, "ask allow_once").await;
    let asked = until(&mut client, "permission_request").await;
    let (resumed, replayed) = resume(&mut client, &session, json!(1)).await;
    assert_eq!(replayed, [2, 3, 4, 5, 6, 7]);
    assert_eq!(resumed["lastEventId"], 7);
    client
        .send(
            "permission/respond",
            json!({ "requestId": asked["requestId"], "reply": "allow" }),
        )
        .await;
    let (_, before) = client.answer(message).await;
    let updates: Vec<_> = before
        .into_iter()
        .filter(|message| message["id"].is_null())
        .collect();
    assert_eq!(ids(&updates), [8, 9, 10]);
}

#[tokio::test]
async fn the_latest_1024_updates_are_kept() {
    let (mut client, session) = started().await;
    let (_, updates) = say(&mut client, &session, "count 1022").await;
    assert_eq!(updates.len(), 1_024);
    let (resumed, replayed) = resume(&mut client, &session, json!(0)).await;
    assert_eq!(
        (replayed.len(), &resumed["truncated"]),
        (1_024, &json!(false))
    );
    say(&mut client, &session, "say A").await;
    for (since, truncated) in [(0, true), (2, true), (3, false)] {
        let (resumed, replayed) = resume(&mut client, &session, json!(since)).await;
        assert_eq!((replayed[0], replayed.len()), (4, 1_024), "{since}");
        assert_eq!(resumed["truncated"], truncated, "{since}");
        assert_eq!(resumed["lastEventId"], 1_027);
    }
}

#[tokio::test]
async fn the_history_has_a_limit_over_many_turns() {
    let mut client = Client::of(OtterAcp::with_history(server(), 3));
    client.result("initialize", json!({})).await;
    let session = created(&mut client).await;
    for _ in 0..5 {
        say(&mut client, &session, "say A|B").await;
    }
    let (resumed, replayed) = resume(&mut client, &session, json!(1)).await;
    assert_eq!(replayed, [18, 19, 20]);
    assert_eq!(resumed["truncated"], true);
    let (resumed, replayed) = resume(&mut client, &session, json!(18)).await;
    assert_eq!(
        (replayed.as_slice(), &resumed["truncated"]),
        (&[19, 20][..], &json!(false))
    );
}

/// A server whose sessions keep this many events.
pub fn keeping(events: u64) -> Server {
    let mut limits = acp_server::Limits::default();
    limits.log.max_events = Some(events);
    Server::builder(Script).limits(limits).build()
}

#[tokio::test]
async fn ids_go_on_after_the_log_was_trimmed() {
    let server = keeping(6);
    let mut first = client(&server).await;
    let session = created(&mut first).await;
    assert_eq!(
        ids(&say(&mut first, &session, "say A|B|C").await.1),
        [1, 2, 3, 4, 5]
    );
    let last = *ids(&say(&mut first, &session, "say D").await.1)
        .last()
        .unwrap();
    assert_eq!(last, 8);
    // Another feed cannot count what is gone.
    let mut client = client(&server).await;
    let (resumed, replayed) = resume(&mut client, &session, json!(last)).await;
    assert_eq!(resumed["truncated"], true);
    assert!(replayed[0] > last, "{replayed:?}");
    let (_, updates) = say(&mut client, &session, "say E").await;
    assert_eq!(ids(&updates)[0], replayed[replayed.len() - 1] + 1);
}

#[tokio::test]
async fn a_message_is_answered_although_the_log_has_lost_its_turn() {
    let mut client = client(&keeping(1)).await;
    let session = created(&mut client).await;
    let (result, _) = say(&mut client, &session, "count 500").await;
    assert_eq!(result["stopReason"], "end_turn");
}

#[tokio::test]
async fn the_ids_of_a_session_that_left_memory_go_on() {
    let server = server();
    let mut client = client(&server).await;
    let session = created(&mut client).await;
    say(&mut client, &session, "say A").await;
    server
        .close_session(&session.as_str().unwrap().into())
        .await
        .unwrap();
    let (_, updates) = say(&mut client, &session, "say B").await;
    assert_eq!(ids(&updates), [4, 5, 6]);
    assert_eq!(
        resume(&mut client, &session, json!(2)).await.1,
        [3, 4, 5, 6]
    );
}

#[tokio::test]
async fn a_turn_ends_with_the_connection() {
    let server = server();
    let mut client = client(&server).await;
    let session = created(&mut client).await;
    start(&mut client, &session, "hold A").await;
    until(&mut client, "agent_message_chunk").await;
    drop(client);
    let ended = tokio::time::timeout(LONGEST, server.drain()).await;
    ended.expect("the turn goes on");
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_nothing() {
    let server = server();
    let mut client = client(&server).await;
    let session = created(&mut client).await;
    let message = start(&mut client, &session, "count 2000").await;
    // The request is handled before this one, and the answer is all that is read.
    client.result("session/list", json!({})).await;
    let ended = tokio::time::timeout(LONGEST, server.drain()).await;
    ended.expect("the turn waits for the client");
    let (answer, _) = client.answer(message).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let last = client.lines.iter().rev().nth(1).unwrap();
    assert!(last.contains(r#""eventId":2002,"#), "{last}");
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_read_again_later() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let mut limits = acp_server::Limits::default();
    (limits.log.memory_events, limits.log.memory_bytes) = (1, 1);
    let server = Server::builder(Script).store(store.clone()).limits(limits);
    let mut client = client(&server.build()).await;
    let session = created(&mut client).await;
    say(&mut client, &session, "say A|B").await;
    say(&mut client, &session, "think").await;
    store.inject(
        Operation::Read,
        1,
        When::Before,
        Fault::Fail(StoreErrorKind::Unavailable),
    );
    let params = json!({ "sessionId": session, "sinceEventId": 0 });
    let error = client.error("session/resume", params).await;
    assert_eq!(error["code"], -32000, "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("cannot be read"),
        "{error}"
    );
    assert_eq!(
        resume(&mut client, &session, json!(0)).await.1,
        [1, 2, 3, 4, 5, 6, 7]
    );
    assert_eq!(
        ids(&say(&mut client, &session, "say C").await.1),
        [8, 9, 10]
    );
}
