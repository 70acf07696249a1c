//! Modes, config options and authentication.

use acp_reference_agent::Reference;
use acp_sdk::v1::*;
use acp_server::{InitialSettings, Link, Server};
use serde_json::json;

use crate::editor::{Desk, Editor, connect_to};

#[tokio::test]
async fn a_mode_is_one_of_those_announced() {
    let desk = Desk::new().await;
    let mode = |mode| SetSessionModeRequest::new(desk.session.clone(), mode);
    desk.agent.set_session_mode(mode("code")).await.unwrap();
    assert!(
        desk.editor
            .told()
            .contains(&"current_mode_update".to_owned())
    );
    assert_eq!(
        desk.load()
            .await
            .unwrap()
            .modes
            .unwrap()
            .current_mode_id
            .as_str(),
        "code"
    );
    let error = desk
        .agent
        .set_session_mode(mode("nonsense"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS));
    assert!(error.to_string().contains("nonsense"), "{error}");
}

#[tokio::test]
async fn an_option_takes_a_value_of_its_kind() {
    let desk = Desk::new().await;
    let set = |id: &str, value: SessionConfigOptionValue| {
        let request = SetSessionConfigOptionRequest::new(desk.session.clone(), id, value);
        desk.agent.set_session_config_option(request)
    };
    let id = |value: &str| {
        SessionConfigOptionValue::ValueId(SessionConfigOptionValueValueId::new(value))
    };
    let flag = SessionConfigOptionValue::Boolean(SessionConfigOptionValueBoolean::new(true));

    let options = set("model", id("large")).await.unwrap().config_options;
    assert!(
        json!(options)
            .to_string()
            .contains(r#""currentValue":"large""#)
    );
    let options = set("verbose", flag.clone()).await.unwrap().config_options;
    assert!(
        json!(options)
            .to_string()
            .contains(r#""currentValue":true"#)
    );
    for (option, value, path) in [
        ("model", flag, "/value"),
        ("model", id("nonsense"), "/value"),
        ("verbose", id("large"), "/value"),
        ("nonsense", id("large"), "/configId"),
    ] {
        let error = set(option, value).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS));
        assert_eq!(
            json!(error.as_response().unwrap().data)["path"],
            path,
            "{option}"
        );
    }
}

#[tokio::test]
async fn the_mode_is_an_option_too_and_both_agree() {
    let desk = Desk::new().await;
    let code = SessionConfigOptionValueValueId::new("code");
    let request = SetSessionConfigOptionRequest::new(desk.session.clone(), "mode", code);
    let options = desk
        .agent
        .set_session_config_option(request)
        .await
        .unwrap()
        .config_options;
    assert_eq!(json!(options[0])["currentValue"], "code");
    assert_eq!(json!(options[0])["category"], "mode");
    assert!(
        desk.editor
            .told()
            .contains(&"current_mode_update".to_owned())
    );

    let ask = SetSessionModeRequest::new(desk.session.clone(), "ask");
    desk.agent.set_session_mode(ask).await.unwrap();
    assert!(
        desk.editor
            .told()
            .contains(&"config_option_update".to_owned())
    );
    let loaded = desk.load().await.unwrap();
    assert_eq!(json!(loaded.config_options)[0]["currentValue"], "ask");
}

#[tokio::test]
async fn after_a_logout_new_sessions_need_authentication() {
    let desk = Desk::new().await;
    let unknown = desk
        .agent
        .authenticate(AuthenticateRequest::new("password"))
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Some(ErrorCode::INVALID_PARAMS));
    desk.agent.logout(LogoutRequest::new()).await.unwrap();
    let request = NewSessionRequest::new("/w", vec![]);
    let refused = desk.agent.new_session(request.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::AUTHENTICATION_REQUIRED));
    // What runs already goes on.
    desk.prompt("ping").await.unwrap();
    desk.agent
        .authenticate(AuthenticateRequest::new("none"))
        .await
        .unwrap();
    desk.agent.new_session(request).await.unwrap();
}

#[tokio::test]
async fn new_sessions_begin_with_the_settings_of_the_server() {
    let mut initial = InitialSettings::default();
    (initial.model, initial.mode) = (Some("large".into()), Some("code".into()));
    initial.options = vec![("verbose".into(), "on".into())];
    let server = Server::builder(Reference).initial_settings(initial).build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    let check = |settings: acp_server::Settings| {
        assert_eq!(settings.mode(), Some("code"));
        assert_eq!(settings.selected("model"), Some("large"));
        assert_eq!(settings.is_on("verbose"), Some(true));
    };
    check(session.settings());
    let created = server.create_session("/w").await.unwrap();
    check(created.settings());

    for (model, option) in [(Some("huge"), None), (None, Some("speed"))] {
        let mut initial = InitialSettings::default();
        initial.model = model.map(str::to_owned);
        initial.options = option
            .map(|id: &str| (id.into(), "1".into()))
            .into_iter()
            .collect();
        let server = Server::builder(Reference).initial_settings(initial).build();
        let agent = connect_to(server.connection(Link::Stdio), &Editor::default());
        let hello = InitializeRequest::new(ProtocolVersion::V1);
        agent.initialize(hello).await.unwrap();
        let new = NewSessionRequest::new("/w", vec![]);
        let error = agent.new_session(new).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR));
        let known = if model.is_some() { "small" } else { "verbose" };
        assert!(error.to_string().contains(known), "{error}");
        assert!(server.stored_sessions().next().await.unwrap().is_none());
        assert!(server.open_sessions().is_empty());
    }
}
