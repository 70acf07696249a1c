//! What passes between clients and an agent, in both directions.

use acp_server::Server;
use serde_json::json;

use crate::client::{Client, Script};

#[tokio::test]
async fn clients_see_what_the_agent_announces() {
    let script = Script::new();
    let (server, agent) = script.server().await;
    let client = Client::attach(&server).await;
    let capabilities = &client.hello["agentCapabilities"];
    assert_eq!(client.hello["agentInfo"]["name"], "scripted");
    assert_eq!(client.hello["authMethods"][0]["id"], "key");
    assert_eq!(capabilities["promptCapabilities"]["image"], true);
    assert_ne!(capabilities["promptCapabilities"]["audio"], true);
    assert_eq!(capabilities["_meta"]["scripted"], true);
    assert!(capabilities["auth"]["logout"].is_null());
    assert_eq!(
        capabilities["loadSession"], true,
        "it is the server that loads"
    );
    assert_eq!(agent.name(), "scripted 7");
}

#[tokio::test]
async fn a_session_and_a_prompt_reach_the_agent_as_they_are() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::attach(&server).await;
    let params = json!({
        "cwd": "/w", "additionalDirectories": ["/x"], "_meta": { "a": { "n": 1 } },
        "mcpServers": [{ "name": "m", "command": "/bin/m", "args": ["a"], "env": [] }],
    });
    let created = client.call("session/new", params).await;
    client.session = created["result"]["sessionId"].as_str().unwrap().to_owned();
    client.skip_greeting().await;
    let received = &script.received("session/new")[0]["params"];
    assert_eq!(received["cwd"], "/w");
    assert_eq!(received["additionalDirectories"], json!(["/x"]));
    assert_eq!(received["mcpServers"][0]["command"], "/bin/m");
    assert_eq!(received["_meta"], json!({ "a": { "n": 1 } }));

    let prompt = json!([
        { "type": "text", "text": "hello", "_meta": { "b": 1 } },
        { "type": "image", "data": "AA==", "mimeType": "image/png" },
    ]);
    let params = json!({ "sessionId": client.session, "prompt": prompt, "_meta": { "p": 1 } });
    let answer = client.call("session/prompt", params).await;
    let expected =
        json!({ "stopReason": "end_turn", "usage": { "tokens": 1.5 }, "_meta": { "t": 1 } });
    assert_eq!(answer["result"], expected);
    assert_eq!(client.said(), ["hi"]);
    let received = &script.received("session/prompt")[0]["params"];
    assert_eq!(received["prompt"], prompt);
    assert_eq!(received["_meta"], json!({ "p": 1 }));
    assert_ne!(received["sessionId"], json!(client.session));
}

#[tokio::test]
async fn updates_keep_members_that_nobody_here_knows() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    let answer = client.prompt("all").await;
    assert_eq!(answer["result"], json!({ "stopReason": "of_tomorrow" }));
    let live = client.before.clone();
    assert_eq!(live.len(), 2, "an invalid update was passed on: {live:?}");
    let params = &live[0]["params"];
    assert_eq!(params["_meta"]["trace"], "x");
    assert!(params["_meta"]["acp-sdk"]["eventId"].is_u64());
    let update = &params["update"];
    assert_eq!(update["more"], json!([1.5]));
    assert_eq!(update["content"]["later"], 1);
    assert_eq!(update["_meta"], json!({ "m": 1 }));
    assert!(update["messageId"].is_string(), "as version 2 needs it");
    let update = &live[1]["params"]["update"];
    assert_eq!(*update, json!({ "n": 1e2, "sessionUpdate": "of_tomorrow" }));
    // The log has them, too.
    let mut other = Client::attach(&server).await;
    other.session.clone_from(&client.session);
    other.load().await;
    let replayed = &other.before[other.before.len() - 2..];
    assert_eq!(replayed, live);
}

#[tokio::test]
async fn errors_of_the_agent_come_as_they_are() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    let error = client.prompt("refuse").await["error"].clone();
    let expected = json!({ "code": -31000, "message": "not today", "data": { "n": 1.5 } });
    assert_eq!(error, expected);
    let error = client.prompt("odd").await["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("without stopReason"), "{message}");
    assert_eq!(
        client.prompt("hello").await["result"]["stopReason"],
        "end_turn"
    );
}

#[tokio::test]
async fn updates_outside_of_turns_are_events() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    client.prompt("hello").await;
    client.notify("_theirs/later", json!({})).await;
    let message = client.next().await;
    let params = &message["params"];
    assert_eq!(params["update"]["content"]["text"], "on its own");
    assert!(params["_meta"]["acp-sdk"]["eventId"].is_u64());
}

#[tokio::test]
async fn requests_of_clients_outside_of_the_protocol_reach_the_agent() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    let params = json!({ "sessionId": client.session });
    let answer = client.call("_theirs/echo", params).await;
    let theirs = answer["result"]["session"].as_str().unwrap();
    assert!(theirs.starts_with("theirs-"), "{theirs}");
    let answer = client.call("_theirs/refuse", json!({})).await;
    let expected = json!({ "code": -31999, "message": "never", "data": { "n": 1.5 } });
    assert_eq!(answer["error"], expected);
    let params = json!({ "sessionId": "nobody's" });
    let answer = client.call("_theirs/echo", params).await;
    assert_eq!(answer["error"]["code"], -32002);
    let answer = client.call("no/such", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601);
}

/// Prompts, expects a request of a method after some updates, and answers it.
async fn asked(
    client: &mut Client,
    prompt: &str,
    method: &str,
    answer: serde_json::Value,
) -> serde_json::Value {
    let id = client.begin_prompt(prompt).await;
    let mut asked = client.next().await;
    while asked["method"] == "session/update" {
        asked = client.next().await;
    }
    assert_eq!(asked["method"], method, "{asked}");
    assert_eq!(asked["params"]["sessionId"], json!(client.session));
    let mut message = answer;
    message["jsonrpc"] = json!("2.0");
    message["id"] = asked["id"].clone();
    client.send(message).await;
    assert_eq!(client.answer(id).await["result"]["stopReason"], "end_turn");
    asked["params"].clone()
}

#[tokio::test]
async fn requests_of_the_agent_reach_the_client_and_its_answers_the_agent() {
    let script = Script::new();
    let agent = script.agent().start().await.unwrap();
    let server = Server::new(agent);
    let offered = json!({ "fs": { "readTextFile": true } });
    let mut client = Client::offering(&server, offered).await;
    client.create().await;
    client.skip_greeting().await;

    let chosen = json!({ "result": { "outcome": { "outcome": "selected", "optionId": "yes" } } });
    let params = asked(
        &mut client,
        "permission",
        "session/request_permission",
        chosen,
    )
    .await;
    assert_eq!(params["_meta"], json!({ "q": 1 }));
    assert_eq!(params["toolCall"]["_meta"], json!({ "a": 1 }));
    assert!(
        client.said()[0].contains(r#""optionId":"yes""#),
        "{:?}",
        client.said()
    );

    let content = json!({ "result": { "content": "text", "_meta": { "r": 1 } } });
    let params = asked(&mut client, "read", "fs/read_text_file", content).await;
    assert_eq!(
        (&params["path"], &params["more"]),
        (&json!("/w/a"), &json!(1.5))
    );
    assert!(
        client.said()[0].contains(r#""_meta":{"r":1}"#),
        "{:?}",
        client.said()
    );

    let error = json!({ "error": { "code": -32002, "message": "gone", "data": 1 } });
    asked(&mut client, "read", "fs/read_text_file", error).await;
    let said = client.said().remove(0);
    assert!(said.contains("-32002") && said.contains("gone"), "{said}");

    let error = json!({ "error": { "code": -5, "message": "no" } });
    let params = asked(&mut client, "ask", "_theirs/question", error).await;
    assert_eq!(params["n"], 1.5);
    assert!(
        client.said()[0].contains(r#""code":-5"#),
        "{:?}",
        client.said()
    );
}

#[tokio::test]
async fn files_that_no_client_offers_are_refused_as_a_client_would() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    assert_eq!(
        client.prompt("read").await["result"]["stopReason"],
        "end_turn"
    );
    assert!(client.said()[0].contains("-32601"), "{:?}", client.said());
    let hello = &script.received("initialize")[0]["params"];
    assert_ne!(hello["clientCapabilities"]["fs"]["readTextFile"], true);
}

#[tokio::test]
async fn a_permission_is_withdrawn_when_its_turn_is_cancelled() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    let id = client.begin_prompt("permission").await;
    client.update().await;
    assert_eq!(client.next().await["method"], "session/request_permission");
    client.cancel().await;
    assert_eq!(client.answer(id).await["result"]["stopReason"], "cancelled");
    assert_eq!(script.received("session/cancel").len(), 1);
}

#[tokio::test]
async fn a_cancelled_turn_ends_as_the_agent_ends_it() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    let id = client.begin_prompt("wait").await;
    assert_eq!(client.update().await["content"]["text"], "waiting");
    client.cancel().await;
    assert_eq!(client.answer(id).await["result"]["stopReason"], "cancelled");
    client.prompt("hello").await;
    assert_eq!(client.said(), ["hi"]);
    assert_eq!(script.starts().len(), 1, "it was not restarted");
}

#[tokio::test]
async fn input_during_a_turn_reaches_an_agent_that_takes_it() {
    for (steers, method) in [
        ("own", "_acp-sdk/session/steer"),
        ("common", "_session/steering"),
    ] {
        let script = Script::new();
        let agent = script.agent().env("STEERS", steers);
        let server = Server::new(agent.start().await.unwrap());
        let mut client = Client::with_session(&server).await;
        let ours = &client.hello["agentCapabilities"]["_meta"]["acp-sdk"];
        assert_eq!(ours["session"]["steer"], true);
        let mut other = Client::attach(&server).await;
        other.session.clone_from(&client.session);
        other.load().await;

        let turn = client.begin_prompt("wait").await;
        assert_eq!(client.update().await["content"]["text"], "waiting");
        let steer = |text: &str| {
            let prompt = json!([{ "type": "text", "text": text }]);
            json!({ "sessionId": client.session, "prompt": prompt, "promptId": text })
        };
        let params = ["left", "no", "fail", "end"].map(steer);
        let [left, no, fail, end] = params;
        let steer = "_acp-sdk/session/steer";
        let answer = client.call(steer, left).await["result"].take();
        assert_eq!(answer["outcome"], "injected", "{answer}");
        for params in [no, fail] {
            let answer = client.call(steer, params).await["result"].take();
            assert_eq!(answer["reason"], "turn_ended", "{answer}");
        }
        client.begin(steer, end).await;
        client.answer(turn).await;
        let mut seen = Vec::new();
        while seen.last().is_none_or(|text| text != "steered") {
            seen.push(other.update().await["content"]["text"].clone());
        }
        // Commands have no text. Input is where the agent says that it has it.
        seen.retain(|text| !text.is_null());
        assert_eq!(
            seen,
            [
                "wait", "waiting", "before", "left", "after", "end", "steered"
            ]
        );
        let received = script.received(method);
        assert_eq!(received.len(), 4);
        assert_ne!(received[0]["params"]["sessionId"], client.session.as_str());
        assert_eq!(received[0]["params"]["prompt"][0]["text"], "left");
        // Sent again by its name, it does not reach the agent again.
        let params = json!({ "sessionId": client.session, "prompt": [], "promptId": "left" });
        assert_eq!(client.call(steer, params).await["result"], answer);
        assert_eq!(script.received(method).len(), 4);
    }
}

#[tokio::test]
async fn an_agent_that_takes_no_input_during_turns_is_sent_none() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    let ours = &client.hello["agentCapabilities"]["_meta"]["acp-sdk"];
    assert!(ours["session"]["steer"].is_null());
    client.begin_prompt("wait").await;
    let prompt = json!([{ "type": "text", "text": "left" }]);
    let params = json!({ "sessionId": client.session, "prompt": prompt });
    let answer = client.call("_acp-sdk/session/steer", params).await;
    assert_eq!(answer["result"]["reason"], "not_supported");
    assert!(script.received("_session/steering").is_empty());
}

#[tokio::test]
async fn an_update_of_settings_does_not_divide_a_message() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    client.prompt("interrupted").await;
    let chunks = client.before.iter().filter_map(|message| {
        let update = &message["params"]["update"];
        let text = update["content"]["text"].as_str()?;
        Some((text, update["messageId"].as_str()?))
    });
    let chunks: Vec<_> = chunks.collect();
    let [(_, one), (_, two), (_, three)] = chunks[..] else {
        panic!("{chunks:?}");
    };
    assert_eq!(one, two);
    assert_ne!(two, three);
}

#[tokio::test]
async fn the_words_of_a_prompt_are_in_the_conversation_once() {
    let script = Script::new();
    let (server, _agent) = script.server().await;
    let mut client = Client::with_session(&server).await;
    client.prompt("repeat").await;
    client.load().await;
    // The prompt, and what the agent says in the user's name besides.
    assert_eq!(client.said()[1..], ["repeat", "repeat"]);
}
