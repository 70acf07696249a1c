//! Clients of both versions, answered by an agent that writes raw bytes.

use acp_sdk::{Error, MultiVersion, Negotiated, Offer, V1, V2, v1, v2};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Log, NewClient, OldClient, Raw, ask_v1, ask_v2, client};

type Answer = JoinHandle<acp_sdk::Result<Negotiated>>;

/// A client that has sent `initialize`, and what it sent.
async fn asking(log: &Log) -> (Answer, Raw, Value) {
    let (agent, mut raw, _) = client(
        MultiVersion::client()
            .version(OldClient(log.clone()))
            .version(NewClient(log.clone())),
    );
    let answer = tokio::spawn(async move { agent.initialize(offer()).await });
    let request = raw.expect().await;
    assert_eq!(request["method"], "initialize");
    (answer, raw, request)
}

fn offer() -> Offer {
    Offer::new()
        .version::<V1>(&ask_v1())
        .version::<V2>(&ask_v2())
}

fn result(version: Value) -> Value {
    let info = json!({"name": "raw", "version": "0"});
    json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": version, "info": info}})
}

/// An update that is valid in both versions.
fn update(session: &str) -> Value {
    let update = json!({"sessionUpdate": "usage_update", "used": 1, "size": 2});
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

#[tokio::test]
async fn the_request_can_be_read_as_either_version() {
    let (agent, mut raw, _driver) = client(
        MultiVersion::client()
            .version(OldClient::default())
            .version(NewClient::default()),
    );
    let meta = |text: &str| serde_json::from_str::<acp_sdk::Meta>(text).unwrap();
    let capabilities = v1::ClientCapabilities::new().with_terminal(true);
    let old = ask_v1()
        .with_client_capabilities(capabilities)
        .with_meta(meta(r#"{"a":1,"both":"old"}"#));
    let new = ask_v2().with_meta(meta(r#"{"b":2,"both":"new"}"#));
    tokio::spawn(async move {
        agent
            .initialize(Offer::new().version::<V2>(&new).version::<V1>(&old))
            .await
    });
    let params = raw.expect().await["params"].clone();
    assert_eq!(params["protocolVersion"], 2);
    assert_eq!(params["_meta"], json!({"a": 1, "b": 2, "both": "new"}));

    let old: v1::InitializeRequest = serde_json::from_value(params.clone()).unwrap();
    assert!(old.client_capabilities.terminal);
    assert_eq!(old.client_info.unwrap().name, "editor");
    let new: v2::InitializeRequest = serde_json::from_value(params.clone()).unwrap();
    assert_eq!(new.info.name, "editor");
    // The official types read it too.
    use agent_client_protocol_schema as official;
    serde_json::from_value::<official::v1::InitializeRequest>(params.clone()).unwrap();
    serde_json::from_value::<official::v2::InitializeRequest>(params).unwrap();
}

#[tokio::test]
async fn the_answer_decides_and_so_does_what_follows_it_in_the_same_bytes() {
    for version in [1, 2] {
        let log = Log::default();
        let (answer, mut raw, _) = asking(&log).await;
        let ask = json!({"jsonrpc": "2.0", "id": 5, "method": "_any"});
        // Read in one go: the caller of `initialize` has not run in between.
        raw.send_all(&[update("early"), result(json!(version)), update("late"), ask])
            .await;
        let negotiated = answer.await.unwrap().unwrap();
        assert_eq!(negotiated.version(), version);
        assert_eq!(negotiated.as_version::<V1>().is_some(), version == 1);
        assert_eq!(negotiated.as_version::<V2>().is_some(), version == 2);
        assert_eq!(raw.expect().await["error"]["code"], -32601);
        assert_eq!(log.all(), [format!("v{version} update of late")]);
    }
}

#[tokio::test]
async fn a_request_before_the_answer_is_refused() {
    let log = Log::default();
    let (answer, mut raw, _) = asking(&log).await;
    let refusal = raw.ask(7, "session/request_permission", json!({})).await;
    assert_eq!(refusal["error"]["code"], -32600, "{refusal}");
    raw.send(result(json!(2))).await;
    assert_eq!(answer.await.unwrap().unwrap().version(), 2);
}

#[tokio::test]
async fn a_version_that_the_client_does_not_speak_closes_the_connection() {
    for version in [0, 3, 65535] {
        let (answer, mut raw, _) = asking(&Log::default()).await;
        raw.send(result(json!(version))).await;
        let error = answer.await.unwrap().unwrap_err();
        assert!(
            matches!(error, Error::UnsupportedVersion { version: found } if found == version),
            "{error}"
        );
        assert_eq!(raw.next().await, None, "the client writes nothing more");
    }
}

#[tokio::test]
async fn an_answer_without_a_version_names_the_place() {
    for version in [json!(null), json!("2"), json!(-1), json!(65536), json!([1])] {
        let (answer, mut raw, _) = asking(&Log::default()).await;
        raw.send(result(version.clone())).await;
        let error = answer.await.unwrap().unwrap_err();
        assert!(
            matches!(&error, Error::Decode { path, .. } if path == "/protocolVersion"),
            "{version}: {error}"
        );
    }
}

#[tokio::test]
async fn an_agent_that_refuses_can_be_asked_again() {
    let (agent, mut raw, _driver) = client(
        MultiVersion::client()
            .version(OldClient::default())
            .version(NewClient::default()),
    );
    let answers = tokio::spawn(async move {
        let refused = agent.initialize(offer()).await.unwrap_err();
        (refused, agent.initialize(offer()).await)
    });
    raw.expect().await;
    let error = json!({"code": -32603, "message": "not yet"});
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "error": error}))
        .await;
    raw.expect().await;
    let mut second = result(json!(1));
    second["id"] = json!(1);
    raw.send(second).await;
    let (refused, second) = answers.await.unwrap();
    assert_eq!(refused.code(), Some(v1::ErrorCode::INTERNAL_ERROR));
    assert_eq!(second.unwrap().version(), 1);
}

#[tokio::test]
async fn a_client_of_one_version_says_which_other_one_the_agent_speaks() {
    let (agent, mut raw, _driver) = client(NewClient::default());
    let answer = tokio::spawn(async move { agent.initialize(ask_v2()).await });
    assert_eq!(raw.expect().await["params"]["protocolVersion"], 2);
    // An answer in the form of version 1.
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}}))
        .await;
    let error = answer.await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::UnsupportedVersion { version: 1 }),
        "{error}"
    );

    // One of version 2 that is malformed is just that.
    let (agent, mut raw, _driver) = client(NewClient::default());
    let answer = tokio::spawn(async move { agent.initialize(ask_v2()).await });
    raw.expect().await;
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 2}}))
        .await;
    let error = answer.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::Decode { path, .. } if path == "/info"),
        "{error}"
    );
}

#[tokio::test]
async fn a_client_of_version_2_takes_no_null_id() {
    let request = json!({"jsonrpc": "2.0", "id": null, "method": "_any", "params": {}});
    let (_old, raw_of_old, _driver_of_old) = client(OldClient(Log::default()));
    let (_new, raw_of_new, _driver_of_new) = client(NewClient(Log::default()));
    for (mut raw, code) in [(raw_of_old, -32601), (raw_of_new, -32600)] {
        raw.send(request.clone()).await;
        let answer = raw.expect().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(null), &json!(code))
        );
    }
}
