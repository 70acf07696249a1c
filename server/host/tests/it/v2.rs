//! An agent that speaks version 2 only.

use serde_json::json;

use acp_server::Server;

use crate::client::{Client, Script};

async fn started(script: &Script) -> (Server, acp_server_host::HostedAgent) {
    let agent = script.second_agent().start().await.unwrap();
    (Server::new(agent.clone()), agent)
}

#[tokio::test]
async fn an_agent_without_version_1_is_hosted() {
    let script = Script::new();
    let (server, agent) = started(&script).await;
    assert_eq!(agent.name(), "second 2");
    let mut client = Client::attach(&server).await;
    assert_eq!(client.hello["authMethods"][0]["id"], "key");
    let created = client.create().await["result"].clone();
    let option = &created["configOptions"][0];
    assert_eq!(
        (&option["id"], &option["currentValue"]),
        (&json!("mode"), &json!("ask"))
    );
    assert_eq!(client.update().await["availableCommands"][0]["name"], "do");

    let answer = client.prompt("hello").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(answer["result"]["usage"]["inputTokens"], 7, "{answer}");
    assert_eq!(
        client.said(),
        ["hel", "lo"],
        "once, and without the user's words"
    );
    let kinds: Vec<_> = client
        .before
        .iter()
        .map(|message| message["params"]["update"]["sessionUpdate"].clone())
        .collect();
    let calls = kinds.iter().filter(|kind| *kind == "tool_call").count();
    assert_eq!(calls, 1, "{kinds:?}");
    assert!(!kinds.contains(&json!("state_update")), "{kinds:?}");
    // Once to find out, and once to stay.
    assert_eq!(script.starts().len(), 2);
}

#[tokio::test]
async fn a_question_of_version_2_is_answered_in_version_2() {
    let script = Script::new();
    let (server, _agent) = started(&script).await;
    let mut client = Client::attach(&server).await;
    client.create().await;
    let id = client.begin_prompt("permission").await;
    let question = loop {
        let message = client.next().await;
        if message["method"] == "session/request_permission" {
            break message;
        }
    };
    assert_eq!(
        question["params"]["toolCall"]["title"], "Go on?",
        "{question}"
    );
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome });
    client.send(answer).await;
    client.answer(id).await;
    let said = client.said().concat();
    assert!(
        said.contains(r#""outcome":"selected""#) && said.contains(r#""optionId":"yes""#),
        "{said}"
    );
}

#[tokio::test]
async fn a_turn_of_version_2_is_cancelled() {
    let script = Script::new();
    let (server, _agent) = started(&script).await;
    let mut client = Client::attach(&server).await;
    client.create().await;
    let id = client.begin_prompt("wait").await;
    while client.update().await["content"]["text"] != "waiting" {}
    client.cancel().await;
    assert_eq!(client.answer(id).await["result"]["stopReason"], "cancelled");
    assert_eq!(script.received("session/cancel").len(), 1);
}

#[tokio::test]
async fn a_session_of_version_2_survives_its_process() {
    let script = Script::new();
    let (server, _agent) = started(&script).await;
    let mut client = Client::attach(&server).await;
    client.create().await;
    let params = json!({ "sessionId": client.session, "configId": "mode", "value": "code" });
    let set = client.call("session/set_config_option", params).await;
    assert_eq!(
        set["result"]["configOptions"][0]["currentValue"], "code",
        "{set}"
    );

    let died = client.prompt("die").await;
    assert!(
        died["error"]["message"]
            .as_str()
            .unwrap()
            .contains("exited with code 9"),
        "{died}"
    );
    let answer = client.prompt("hello").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(client.said(), ["hel", "lo"], "the replay is not said again");
    // What the user has set is set again.
    assert_eq!(script.received("session/set_config_option").len(), 2);
    assert_eq!(script.starts().len(), 3);
}
