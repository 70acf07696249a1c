//! Modes, options and commands.

use acp_sdk::{v1, v2};
use serde_json::{Value, json};

use crate::clients::{Answers, ClientV2, v2_then_v1};
use crate::handler::server;

#[tokio::test]
async fn a_new_session_has_options_and_commands() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let request = v2::NewSessionRequest::new("/w");
    let response = client.agent.new_session(request).await.unwrap();
    let response = serde_json::to_value(&response).unwrap();
    let mode = &response["configOptions"][0];
    assert_eq!(mode["configId"], "mode");
    assert_eq!(mode["category"], "mode");
    assert_eq!(response["configOptions"][1]["type"], "boolean");
    let command = json!({"type": "command", "name": "go", "description": "Goes"});
    assert_eq!(response["availableCommands"], json!([command]));
}

fn mode_of(options: &[Value]) -> &Value {
    &options[0]["currentValue"]
}

#[tokio::test]
async fn a_mode_of_one_version_is_an_option_of_the_other() {
    let server = server();
    let (new, old, session) = v2_then_v1(&server, Answers::Yes, Answers::Yes).await;
    let value = v2::SessionConfigOptionValueId::new("code");
    let request = v2::SetSessionConfigOptionRequest::new(session.as_str(), "mode", value);
    let response = new.agent.set_session_config_option(request).await.unwrap();
    let response = serde_json::to_value(&response).unwrap();
    assert_eq!(
        mode_of(response["configOptions"].as_array().unwrap()),
        "code"
    );
    let mode = |body: &Value| body["currentModeId"] == "code";
    old.view.wait_for(mode).await;

    let request = v1::SetSessionModeRequest::new(session.as_str(), "ask");
    old.agent.set_session_mode(request).await.unwrap();
    let asks = |body: &Value| {
        let options = body["configOptions"].as_array();
        options.is_some_and(|options| mode_of(options) == "ask")
    };
    new.view.wait_for(asks).await;
    // Each change is one update.
    assert_eq!(new.view.kinds(), ["config_option_update"; 2]);
}

#[tokio::test]
async fn an_option_that_does_not_exist_is_refused() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    let value = v2::SessionConfigOptionValueId::new("code");
    let request = v2::SetSessionConfigOptionRequest::new(session.as_str(), "none", value);
    let error = client.agent.set_session_config_option(request).await;
    let Err(acp_sdk::Error::Response { error, .. }) = error else {
        panic!("set")
    };
    assert_eq!(error.code, acp_sdk::ErrorCode::INVALID_PARAMS);
}
