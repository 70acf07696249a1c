//! Recipes for authors of agents.

use acp_client::{Client, Elicitation, Event, Policy, SessionContext, Workspace};
use acp_cookbook::*;
use acp_sdk::v1::{
    CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction, PlanEntryStatus,
    SessionUpdate, StopReason, ToolCallStatus,
};
use acp_server::Server;
use serde_json::json;

use crate::support::{allowing, both_runtimes, connect, say};

/// A user who fills in each form in the same way.
struct User(serde_json::Value);

impl Elicitation for User {
    async fn ask(
        &self,
        _: Option<&SessionContext>,
        _: &CreateElicitationRequest,
    ) -> ElicitationAction {
        let content = serde_json::from_value(self.0.clone()).unwrap();
        ElicitationAction::Accept(ElicitationAcceptAction::new().with_content(content))
    }
}

both_runtimes! {
    async fn a_plan_is_replaced_at_each_step() {
        let client = connect(&Server::new(show_a_plan::Planner), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        let mut turn = session.prompt("work").await.unwrap();
        let mut done = Vec::new();
        while let Some(event) = turn.next().await {
            if let Event::Update(SessionUpdate::Plan(plan)) = event.event {
                let completed = |entry: &&_| matches!(entry, PlanEntryStatus::Completed);
                done.push(plan.entries.iter().map(|entry| &entry.status).filter(completed).count());
            }
        }
        assert_eq!(done, [0, 1, 2, 3]);
        assert_eq!(turn.outcome().await.unwrap().plan.unwrap().entries.len(), 3);
    }

    async fn a_file_is_written_only_with_permission() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes.txt");
        let server = Server::new(ask_before_writing::NoteTaker);
        for (policy, answer, text) in [
            (Policy::ApproveReads, "I may not write the note.", None),
            (Policy::ApproveAll, "Noted.", Some("milk\n")),
        ] {
            let builder = Client::builder().workspace(Workspace::new()).permissions(policy);
            let client = connect(&server, builder).await;
            let session = client.new_session(folder.path()).await.unwrap();
            let outcome = say(&session, "milk").await;
            assert_eq!(outcome.text, answer);
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), text);
            let status = outcome.tool_calls[0].status.clone();
            let expected = if text.is_some() { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
            assert_eq!(status, Some(expected));
        }
    }

    async fn a_form_is_a_struct() {
        let server = Server::new(ask_the_user::Publisher);
        let user = User(json!({ "version": "1.4.0", "channel": "Beta" }));
        let client = connect(&server, Client::builder().elicitation(user)).await;
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "release").await.text, "1.4.0 to Beta.");
        // A client without forms.
        let client = connect(&server, Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "release").await.text, "Which version, and to which channel?");
    }

    async fn a_command_runs_in_the_terminal_of_the_client() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::new(run_a_command::Tester);
        let client = connect(&server, allowing().workspace(Workspace::new())).await;
        let session = client.new_session(folder.path()).await.unwrap();
        assert_eq!(say(&session, "printf ok").await.text, "It passed: ok");
        let failed = say(&session, "exit 3").await;
        assert!(failed.text.starts_with("It failed, ") && failed.text.contains('3'), "{}", failed.text);
        assert_eq!(failed.tool_calls[0].status, Some(ToolCallStatus::Failed));
        let denying = Client::builder().workspace(Workspace::new()).permissions(Policy::DenyAll);
        for (builder, answer) in [
            (denying, "I may not run it."),
            (Client::builder(), "Your editor has no terminal for me."),
        ] {
            let client = connect(&server, builder).await;
            let session = client.new_session(folder.path()).await.unwrap();
            assert_eq!(say(&session, "true").await.text, answer);
        }
    }

    async fn modes_and_options_are_those_of_the_user() {
        let client = connect(&Server::new(modes_and_models::Coder), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "go").await.text, "I ask the small model.");
        let modes = session.settings().modes.unwrap();
        assert_eq!(modes.current_mode_id.as_str(), "code");
        session.set_config_option("model", "large").await.unwrap();
        session.set_mode("plan").await.unwrap();
        assert_eq!(say(&session, "go").await.text, "I ask the large model.");
        let error = session.set_config_option("model", "huge").await.unwrap_err();
        assert_eq!(error.code(), Some(acp_sdk::ErrorCode::INVALID_PARAMS), "{error}");
    }

    async fn a_command_is_a_prompt_with_its_name() {
        let client = connect(&Server::new(slash_commands::Reviewer), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "/review abc123").await.text, "I review abc123.");
        assert_eq!(say(&session, "/review").await.text, "Which commit?");
        let commands = session.settings().commands;
        assert_eq!(commands[0].name, "review");
    }

    async fn a_cancelled_turn_ends_at_once_and_keeps_its_text() {
        let client = connect(&Server::new(stop_cleanly::Patient), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        let mut turn = session.prompt("think").await.unwrap();
        while !turn.so_far().text.starts_with("I think.") {
            turn.next().await.unwrap();
        }
        session.cancel();
        let outcome = turn.outcome().await.unwrap();
        assert_eq!(outcome.stop_reason, StopReason::Cancelled);
        assert_eq!(outcome.text, "I think. Stopped.");
    }

    async fn a_running_turn_takes_input() {
        let client = connect(&Server::new(steer_a_turn::Steerable), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        assert!(session.can_steer());
        let turn = session.prompt("work").await.unwrap();
        assert!(steer_a_turn::correct(&session, "the other one").await.unwrap());
        let outcome = turn.outcome().await.unwrap();
        assert!(outcome.text.contains("Then: the other one"), "{}", outcome.text);
    }

    async fn tools_of_mcp_servers_are_called() {
        let server = r#"
            while IFS= read -r line; do
                id=${line#*'"id":'}; id=${id%%[,\}]*}
                case $line in
                    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
                    *'"tools/list"'*) result='{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}' ;;
                    *'"tools/call"'*) result='{"content":[{"type":"text","text":"hello"}]}' ;;
                    *) continue ;;
                esac
                printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
            done"#;
        let client = connect(&Server::new(use_mcp_servers::ToolUser), Client::builder()).await;
        let args = vec!["-c".to_owned(), server.to_owned()];
        let server = acp_sdk::v1::McpServerStdio::new("desk", "/bin/sh", args, Vec::new());
        let request = acp_sdk::v1::NewSessionRequest::new("/", vec![server.into()]);
        let session = client.new_session_with(request).await.unwrap();
        assert_eq!(say(&session, "go").await.text, "desk__greet: hello");
        session.close().await.unwrap();
    }

    async fn an_agent_speaks_the_version_of_its_client() {
        let server = Server::new(both_versions::Greeter);
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let agent = server.clone();
        tokio::spawn(async move { both_versions::serve(&agent, tokio::io::split(theirs)).await });
        let v2 = both_versions::connect(tokio::io::split(ours)).await.unwrap();
        let v1 = connect(&server, Client::builder()).await;
        for (client, version) in [(v2, 2), (v1, 1)] {
            assert_eq!(client.protocol_version(), version.into());
            let session = client.new_session("/").await.unwrap();
            assert_eq!(say(&session, "hi").await.text, "Hello!");
        }
    }

    async fn extension_methods_have_results_and_errors() {
        let client = connect(&Server::new(extension_methods::Librarian), Client::builder()).await;
        let counted = extension_methods::count_words(&client, "one two three").await.unwrap();
        assert_eq!(counted.get(), r#"{"words":3}"#);
        let error = client.extension_request("_example.com/other", None).await.unwrap_err();
        assert_eq!(error.code(), Some(acp_sdk::ErrorCode::METHOD_NOT_FOUND));
        let error = client.extension_request("_example.com/count_words", None).await.unwrap_err();
        assert!(error.to_string().contains("a text is required"), "{error}");
    }
}

#[tokio::test]
async fn a_session_is_resumed_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.db");
    let agent = || resume_a_session::keeping(acp_reference_agent::Reference, &file).unwrap();
    let server = agent();
    let client = connect(&server, Client::builder()).await;
    let session = client.new_session(folder.path()).await.unwrap();
    say(&session, "remember this").await;
    let id = session.id().to_string();
    drop((session, client));
    server.shutdown().await;
    // The second process.
    let server = agent();
    let client = connect(&server, Client::builder()).await;
    let reopened = resume_a_session::reopen(&client, &id, folder.path()).await;
    let (session, panel) = reopened.unwrap();
    let texts: Vec<_> = panel
        .conversation()
        .items()
        .filter_map(|item| item.as_message())
        .map(|m| m.text())
        .collect();
    assert_eq!(texts, ["remember this", "remember this"]);
    assert_eq!(say(&session, "go on").await.text, "go on");
    let error = resume_a_session::reopen(&client, "unknown", folder.path())
        .await
        .unwrap_err();
    assert_eq!(
        error.code(),
        Some(acp_sdk::ErrorCode::RESOURCE_NOT_FOUND),
        "{error}"
    );
}
