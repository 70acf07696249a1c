//! Modes and options of the agent, as those of the session.

use acp_server::{InitialSettings, Server};
use serde_json::{Value, json};

use crate::client::{Client, Script};

fn value(options: &Value) -> &str {
    options[0]["currentValue"].as_str().unwrap()
}

#[tokio::test]
async fn modes_and_options_are_those_of_the_agent() {
    let script = Script::new();
    let agent = script.agent().env("MODES", "1").env("CAN", "load");
    let agent = agent.start().await.unwrap();
    let server = Server::new(agent);
    let mut client = Client::attach(&server).await;
    let created = client.create().await["result"].clone();
    client.skip_greeting().await;
    assert_eq!(created["modes"]["currentModeId"], "ask");
    let options = &created["configOptions"];
    assert_eq!(
        options.as_array().unwrap().len(),
        1,
        "no option was added: {options}"
    );

    let params = json!({ "sessionId": client.session, "configId": "model", "value": "large" });
    let answer = client.call("session/set_config_option", params).await;
    assert_eq!(value(&answer["result"]["configOptions"]), "large");
    assert_eq!(
        answer["result"]["configOptions"].as_array().unwrap().len(),
        2,
        "{answer}"
    );
    assert_eq!(
        client.before.len(),
        1,
        "announced once: {:?}",
        client.before
    );
    let params = json!({ "sessionId": client.session, "modeId": "code" });
    client.call("session/set_mode", params).await;
    let set = &script.received("session/set_mode")[0]["params"];
    assert_eq!(set["modeId"], "code");
    assert_eq!(
        client.before[0]["params"]["update"]["currentModeId"],
        "code"
    );

    // The agent forgets what was set, and it is set again.
    client.prompt("die").await;
    client.prompt("hello").await;
    let set = script.received("session/set_config_option");
    assert_eq!(set.len(), 2);
    assert_eq!(set[1]["params"]["value"], "large");
    assert_eq!(script.received("session/set_mode").len(), 2);
    client.close().await;
    let loaded = client.load().await;
    assert_eq!(value(&loaded["result"]["configOptions"]), "large");
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "code");
}

#[tokio::test]
async fn new_sessions_begin_with_the_settings_of_the_server() {
    let script = Script::new();
    let agent = script.agent().env("MODES", "1").start().await.unwrap();
    let mut initial = InitialSettings::default();
    (initial.model, initial.mode) = (Some("large".into()), Some("code".into()));
    let server = Server::builder(agent).initial_settings(initial);
    let mut client = Client::attach(&server.build()).await;
    let created = client.create().await["result"].clone();
    assert_eq!(created["modes"]["currentModeId"], "code");
    assert_eq!(value(&created["configOptions"]), "large");
    let set = &script.received("session/set_config_option")[0]["params"];
    assert_eq!(set["value"], "large");
    let set = &script.received("session/set_mode")[0]["params"];
    assert_eq!(set["modeId"], "code");
}

#[tokio::test]
async fn an_option_that_the_agent_does_not_have_is_refused_here() {
    let script = Script::new();
    let agent = script.agent().env("MODES", "1").start().await.unwrap();
    let server = Server::new(agent);
    let mut client = Client::with_session(&server).await;
    let params = json!({ "sessionId": client.session, "configId": "none", "value": "x" });
    let answer = client.call("session/set_config_option", params).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(script.received("session/set_config_option").is_empty());
}
