//! Agents of version 2 and of both, asked by a client that writes raw bytes.

use acp_sdk::MultiVersion;
use serde_json::{Value, json};

use crate::support::{Log, New, Old, Raw, agent};

/// Both agents, with one log.
fn both() -> (Raw, Log) {
    let log = Log::default();
    let (raw, _) = agent(
        MultiVersion::agent()
            .version(Old(log.clone()))
            .version(New(log.clone())),
    );
    (raw, log)
}

fn info() -> Value {
    json!({"name": "raw", "version": "0"})
}

/// The code of an error answer, with what it says in `data`.
fn refusal(answer: &Value) -> (i64, Value) {
    let error = &answer["error"];
    let code = error["code"].as_i64();
    (
        code.unwrap_or_else(|| panic!("{answer}")),
        error["data"].clone(),
    )
}

async fn session(raw: &mut Raw) -> Value {
    let params = json!({"cwd": "/", "mcpServers": []});
    raw.ask(90, "session/new", params).await["result"]["sessionId"].clone()
}

#[tokio::test]
async fn a_client_is_answered_in_the_version_it_asks_for() {
    // What is asked, what is answered, and which agent has the connection.
    for (asked, answered, session_id) in [
        (0, 1, "old"),
        (1, 1, "old"),
        (2, 2, "new"),
        (3, 2, "new"),
        (65535, 2, "new"),
    ] {
        let (mut raw, log) = both();
        let params = json!({"protocolVersion": asked, "info": info(), "clientInfo": info()});
        let answer = raw.ask(1, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], answered, "{answer}");
        assert_eq!(session(&mut raw).await, session_id);
        assert_eq!(log.all(), [format!("v{answered} initialize {asked} raw")]);
    }
}

#[tokio::test]
async fn a_version_that_is_no_version_names_the_place() {
    for version in [
        json!(null),
        json!("2"),
        json!(-1),
        json!(65536),
        json!(1.5),
        json!([2]),
        json!({}),
        json!(true),
    ] {
        let (mut raw, log) = both();
        let params = json!({"protocolVersion": version, "info": info()});
        let (code, data) = refusal(&raw.ask(1, "initialize", params).await);
        assert_eq!(
            (code, &data["path"]),
            (-32602, &json!("/protocolVersion")),
            "{version}"
        );
        // It can try again.
        let params = json!({"protocolVersion": 2, "info": info()});
        assert!(raw.ask(2, "initialize", params).await["result"].is_object());
        assert_eq!(log.all().len(), 1);
    }
    for params in [json!({}), json!({"info": info()}), json!(null)] {
        let (mut raw, _) = both();
        let (code, data) = refusal(&raw.ask(1, "initialize", params.clone()).await);
        assert_eq!(
            (code, &data["path"]),
            (-32602, &json!("/protocolVersion")),
            "{params}"
        );
    }
    let (mut raw, _) = both();
    assert_eq!(
        refusal(&raw.ask(1, "initialize", json!([2])).await).0,
        -32602
    );
    raw.send(json!({"jsonrpc": "2.0", "id": 2, "method": "initialize"}))
        .await;
    assert_eq!(refusal(&raw.expect().await).0, -32602);
}

#[tokio::test]
async fn nothing_is_served_before_the_version_is_settled() {
    let (mut raw, log) = both();
    for method in ["session/new", "session/prompt", "_extension"] {
        let answer = raw.ask(1, method, json!({})).await;
        assert_eq!(refusal(&answer).0, -32600, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains(method)
        );
    }
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
    raw.send(cancel.clone()).await;
    let params = json!({"protocolVersion": 1});
    assert!(raw.ask(2, "initialize", params).await["result"].is_object());
    raw.send(cancel).await;
    assert_eq!(session(&mut raw).await, "old");
    assert_eq!(log.all(), ["v1 initialize 1 nobody", "v1 cancel"]);
}

#[tokio::test]
async fn an_initialize_that_fails_leaves_the_version_open() {
    let (mut raw, log) = both();
    // Version 2 cannot do without `info`.
    let (code, data) = refusal(
        &raw.ask(1, "initialize", json!({"protocolVersion": 2}))
            .await,
    );
    assert_eq!((code, &data["path"]), (-32602, &json!("/info")));
    let forbidden = json!({"name": "forbidden", "version": "0"});
    let params = json!({"protocolVersion": 2, "info": forbidden});
    assert_eq!(refusal(&raw.ask(2, "initialize", params).await).0, -32000);
    let early = raw
        .ask(3, "session/new", json!({"cwd": "/", "mcpServers": []}))
        .await;
    assert_eq!(refusal(&early).0, -32600);
    let params = json!({"protocolVersion": 1});
    assert_eq!(
        raw.ask(4, "initialize", params).await["result"]["protocolVersion"],
        1
    );
    assert_eq!(session(&mut raw).await, "old");
    assert_eq!(
        log.all(),
        ["v2 initialize 2 forbidden", "v1 initialize 1 nobody"]
    );
}

#[tokio::test]
async fn a_second_initialize_cannot_change_the_version() {
    let (mut raw, log) = both();
    let ask = |version: u16| json!({"protocolVersion": version, "info": info()});
    raw.ask(1, "initialize", ask(2)).await;
    let answer = raw.ask(2, "initialize", ask(1)).await;
    let (code, data) = refusal(&answer);
    assert_eq!(
        (code, data),
        (-32022, json!({"requested": 1, "supported": [2]}))
    );
    assert_eq!(
        raw.ask(3, "initialize", ask(7)).await["result"]["protocolVersion"],
        2
    );
    assert_eq!(session(&mut raw).await, "new");
    assert_eq!(log.all(), ["v2 initialize 2 raw", "v2 initialize 7 raw"]);

    let (mut raw, log) = both();
    raw.ask(1, "initialize", ask(1)).await;
    assert_eq!(session(&mut raw).await, "old");
    assert_eq!(
        raw.ask(2, "initialize", ask(2)).await["result"]["protocolVersion"],
        1
    );
    assert_eq!(
        log.all(),
        ["v1 initialize 1 nobody", "v1 initialize 2 nobody"]
    );
}

#[tokio::test]
async fn version_2_is_not_initialized_again_after_another_request() {
    let log = Log::default();
    let both = MultiVersion::agent()
        .version(Old::default())
        .version(New(log.clone()));
    for (mut raw, _driver) in [agent(New(log.clone())), agent(both)] {
        let before = log.all().len();
        let ask = json!({"protocolVersion": 2, "info": info()});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel",
            "params": {"sessionId": "s"}});
        // Neither a request before nor a notification is a reason to refuse.
        raw.ask(1, "session/new", json!({"cwd": "/"})).await;
        raw.ask(2, "initialize", ask.clone()).await;
        raw.send(cancel).await;
        let again = raw.ask(3, "initialize", ask.clone()).await;
        assert_eq!(again["result"]["protocolVersion"], 2, "{again}");
        // Nor is one that is refused less of a request.
        raw.ask(4, "_unknown", json!({})).await;
        assert_eq!(refusal(&raw.ask(5, "initialize", ask).await).0, -32600);
        assert_eq!(session(&mut raw).await, "new");
        let initialized = "v2 initialize 2 raw".to_owned();
        assert_eq!(
            log.all()[before..],
            [initialized.clone(), "v2 cancel".to_owned(), initialized]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_null_id_is_one_of_version_1_alone() {
    let log = Log::default();
    let both = || {
        MultiVersion::agent()
            .version(Old(log.clone()))
            .version(New(log.clone()))
    };
    let request = |id: Value, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    for ((mut raw, _driver), version) in [
        (agent(Old(log.clone())), 1),
        (agent(both()), 1),
        (agent(both()), 2),
        (agent(New(log.clone())), 2),
    ] {
        let before = log.all().len();
        let ask = json!({"protocolVersion": version, "info": info()});
        let new = json!({"cwd": "/", "mcpServers": []});
        let mut outcomes = Vec::new();
        for (id, method, params) in [
            (json!(null), "initialize", &ask),
            (json!(1), "initialize", &ask),
            (json!(null), "session/new", &new),
            (json!(null), "initialize", &ask),
            (json!(2), "session/new", &new),
        ] {
            raw.send(request(id.clone(), method, params.clone())).await;
            let answer = raw.expect().await;
            assert_eq!(answer["id"], id, "{answer}");
            outcomes.push(answer["error"]["code"].as_i64());
        }
        let refused = (version == 2).then_some(-32600);
        assert_eq!(outcomes, [refused, None, refused, refused, None]);
        let handled = if version == 2 { 1 } else { 3 };
        assert_eq!(log.all().len(), before + handled);
    }
}

#[tokio::test]
async fn what_an_agent_does_not_have_cannot_be_cancelled() {
    let (mut raw, _driver) = agent(New::default());
    let ask = json!({"protocolVersion": 2, "info": info()});
    raw.ask(1, "initialize", ask).await;
    for (method, member) in [
        ("tool_call/cancel", "toolCallId"),
        ("terminal/cancel", "terminalId"),
    ] {
        let mut params = json!({"sessionId": "new"});
        params[member] = json!("unknown");
        let (code, _) = refusal(&raw.ask(2, method, params).await);
        assert_eq!(code, -32602, "{method}");
    }
}

#[tokio::test]
async fn a_client_of_a_later_version_is_read_as_far_as_possible() {
    for (params, name) in [
        (json!({"protocolVersion": 3}), "unknown"),
        (json!({"protocolVersion": 3, "info": "me"}), "unknown"),
        (
            json!({"protocolVersion": 3, "info": info(), "capabilities": 5}),
            "raw",
        ),
    ] {
        let (mut raw, log) = both();
        let answer = raw.ask(1, "initialize", params.clone()).await;
        assert_eq!(answer["result"]["protocolVersion"], 2, "{params}: {answer}");
        assert_eq!(log.all(), [format!("v2 initialize 3 {name}")]);
    }
}

#[tokio::test]
async fn an_agent_of_the_second_version_alone_refuses_the_first() {
    for asked in [0, 1] {
        let log = Log::default();
        let (mut raw, _driver) = agent(New(log.clone()));
        let early = raw.ask(1, "session/new", json!({"cwd": "/"})).await;
        assert_eq!(refusal(&early).0, -32600);
        // In the form of version 1, which has no `info`.
        let (code, data) = refusal(
            &raw.ask(2, "initialize", json!({"protocolVersion": asked}))
                .await,
        );
        assert_eq!(
            (code, data),
            (-32022, json!({"requested": asked, "supported": [2]}))
        );
        let params = json!({"protocolVersion": 2, "info": info()});
        assert_eq!(
            raw.ask(3, "initialize", params).await["result"]["protocolVersion"],
            2
        );
        assert_eq!(log.all(), ["v2 initialize 2 raw"]);
    }
}
