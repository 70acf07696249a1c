//! Every word of a prompt, and the methods around it.

use std::sync::{Arc, Mutex};

use acp_sdk::{Result, v1::*};
use acp_server::ReferenceAgent;
use tokio::sync::Notify;

/// Answers everything and notes what it was asked and told.
#[derive(Clone, Default)]
struct Editor {
    log: Arc<Mutex<Vec<String>>>,
    ticked: Arc<Notify>,
}

impl Editor {
    fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

impl Client for Editor {
    async fn session_update(&self, _: &ClientCx, note: SessionNotification) -> Result<()> {
        let update = serde_json::to_value(&note.update).unwrap();
        let text = update["content"]["text"].as_str().unwrap_or_default();
        if text.starts_with("tick") {
            self.ticked.notify_one();
        }
        self.note(format!(
            "{} {text}",
            update["sessionUpdate"].as_str().unwrap()
        ));
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientCx,
        req: RequestPermissionRequest,
    ) -> Result<RequestPermissionResponse> {
        let chosen = SelectedPermissionOutcome::new(req.options[0].option_id.clone());
        Ok(RequestPermissionResponse::new(
            RequestPermissionOutcome::Selected(chosen),
        ))
    }

    async fn read_text_file(
        &self,
        _: &ClientCx,
        req: ReadTextFileRequest,
    ) -> Result<ReadTextFileResponse> {
        Ok(ReadTextFileResponse::new(format!(
            "content of {}",
            req.path
        )))
    }

    async fn write_text_file(
        &self,
        _: &ClientCx,
        req: WriteTextFileRequest,
    ) -> Result<WriteTextFileResponse> {
        self.note(format!("write {} {}", req.path, req.content));
        Ok(WriteTextFileResponse::new())
    }

    async fn create_terminal(
        &self,
        _: &ClientCx,
        req: CreateTerminalRequest,
    ) -> Result<CreateTerminalResponse> {
        self.note(format!("create {} {:?}", req.command, req.args));
        Ok(CreateTerminalResponse::new("t1"))
    }

    async fn wait_for_terminal_exit(
        &self,
        _: &ClientCx,
        _: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        Ok(WaitForTerminalExitResponse::new().with_exit_code(0u32))
    }

    async fn terminal_output(
        &self,
        _: &ClientCx,
        _: TerminalOutputRequest,
    ) -> Result<TerminalOutputResponse> {
        Ok(TerminalOutputResponse::new("out\n", false))
    }

    async fn kill_terminal(
        &self,
        _: &ClientCx,
        _: KillTerminalRequest,
    ) -> Result<KillTerminalResponse> {
        self.note("kill");
        Ok(KillTerminalResponse::new())
    }

    async fn release_terminal(
        &self,
        _: &ClientCx,
        _: ReleaseTerminalRequest,
    ) -> Result<ReleaseTerminalResponse> {
        self.note("release");
        Ok(ReleaseTerminalResponse::new())
    }

    async fn create_elicitation(
        &self,
        _: &ClientCx,
        req: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        let kind = if matches!(req.mode, ElicitationMode::Url(_)) {
            "url"
        } else {
            "form"
        };
        self.note(format!("elicit {kind}"));
        Ok(serde_json::from_str(r#"{"action":"decline"}"#).unwrap())
    }

    async fn complete_elicitation(
        &self,
        _: &ClientCx,
        note: CompleteElicitationNotification,
    ) -> Result<()> {
        self.note(format!("complete {}", note.elicitation_id));
        Ok(())
    }
}

async fn start() -> (AgentHandle, Editor, SessionId) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(acp_sdk::serve(ReferenceAgent::default(), reader, writer));
    let (reader, writer) = tokio::io::split(ours);
    let editor = Editor::default();
    let (agent, driver) = acp_sdk::connect(editor.clone(), reader, writer);
    tokio::spawn(driver);
    agent
        .initialize(InitializeRequest::new(ProtocolVersion::V1))
        .await
        .unwrap();
    let session = agent
        .new_session(NewSessionRequest::new("/w", vec![]))
        .await
        .unwrap();
    (agent, editor, session.session_id)
}

fn text(said: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::Text(TextContent::new(said))]
}

#[tokio::test]
async fn every_word_does_what_help_says() {
    let (agent, editor, session) = start().await;
    let cases: &[(&str, &[&str])] = &[
        ("hello", &["agent_message_chunk hello"]),
        (
            "think",
            &[
                "agent_thought_chunk Let me think.",
                "agent_message_chunk I have thought.",
            ],
        ),
        ("plan", &["plan "]),
        (
            "tool",
            &["tool_call ", "tool_call_update ", "tool_call_update "],
        ),
        ("permission", &["agent_message_chunk Permission: allow"]),
        ("read /w/a", &["agent_message_chunk content of /w/a"]),
        (
            "write /w/a b c",
            &["write /w/a b c", "agent_message_chunk Wrote /w/a"],
        ),
        (
            "terminal echo hi",
            &[
                "create echo [\"hi\"]",
                "tool_call ",
                "kill",
                "release",
                "tool_call_update ",
                "agent_message_chunk out\nexit code: Some(0)",
            ],
        ),
        ("usage", &["usage_update "]),
        ("commands", &["available_commands_update "]),
        ("title Mine", &["session_info_update "]),
        ("mode", &["current_mode_update "]),
        ("config", &["config_option_update "]),
        ("notice", &["notice "]),
        (
            "compact",
            &[
                "compaction_update ",
                "compaction_summary_chunk A summary.",
                "compaction_update ",
            ],
        ),
        ("ping", &[]),
        ("perm 3", &[]),
    ];
    for (said, expected) in cases {
        let answer = agent
            .prompt(PromptRequest::new(session.clone(), text(said)))
            .await
            .unwrap();
        assert_eq!(answer.stop_reason, StopReason::EndTurn, "{said}");
        assert_eq!(editor.take(), *expected, "{said}");
    }
    for kind in ["form", "url"] {
        let prompt = PromptRequest::new(session.clone(), text(&format!("elicit {kind}")));
        agent.prompt(prompt).await.unwrap();
        assert_eq!(editor.take()[0], format!("elicit {kind}"));
    }
    agent
        .prompt(PromptRequest::new(session.clone(), text("stream 100")))
        .await
        .unwrap();
    assert_eq!(editor.take().len(), 100);
    let failed = agent
        .prompt(PromptRequest::new(session, text("fail")))
        .await
        .unwrap_err();
    assert_eq!(failed.code(), Some(ErrorCode::INTERNAL_ERROR));
}

#[tokio::test]
async fn a_cancel_ends_the_turn_and_not_the_next_one() {
    let (agent, editor, session) = start().await;
    agent
        .cancel(CancelNotification::new(session.clone()))
        .await
        .unwrap();
    let turn = tokio::spawn({
        let (agent, session) = (agent.clone(), session.clone());
        async move {
            agent
                .prompt(PromptRequest::new(session, text("slow")))
                .await
        }
    });
    editor.ticked.notified().await;
    agent
        .cancel(CancelNotification::new(session.clone()))
        .await
        .unwrap();
    assert_eq!(
        turn.await.unwrap().unwrap().stop_reason,
        StopReason::Cancelled
    );
    let next = agent
        .prompt(PromptRequest::new(session, text("ping")))
        .await
        .unwrap();
    assert_eq!(next.stop_reason, StopReason::EndTurn);
}

#[tokio::test]
async fn loading_replays_the_conversation_before_it_answers() {
    let (agent, editor, session) = start().await;
    agent
        .prompt(PromptRequest::new(session.clone(), text("hello")))
        .await
        .unwrap();
    editor.take();
    agent
        .load_session(LoadSessionRequest::new(vec![], "/w", session.clone()))
        .await
        .unwrap();
    assert_eq!(
        editor.take(),
        ["user_message_chunk hello", "agent_message_chunk hello"]
    );
    agent
        .resume_session(ResumeSessionRequest::new(session, "/w"))
        .await
        .unwrap();
    assert!(editor.take().is_empty());
    let unknown = LoadSessionRequest::new(vec![], "/w", "nobody");
    let error = agent.load_session(unknown).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::RESOURCE_NOT_FOUND));
}

#[tokio::test]
async fn listing_goes_page_by_page_and_forgets_the_deleted() {
    let (agent, _, first) = start().await;
    for _ in 0..24 {
        agent
            .new_session(NewSessionRequest::new("/other", vec![]))
            .await
            .unwrap();
    }
    let page = agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert_eq!(page.sessions.len(), 20);
    let rest = ListSessionsRequest::new().with_cursor(page.next_cursor.unwrap());
    let rest = agent.list_sessions(rest).await.unwrap();
    assert_eq!((rest.sessions.len(), rest.next_cursor), (5, None));

    agent
        .close_session(CloseSessionRequest::new(first.clone()))
        .await
        .unwrap();
    agent
        .delete_session(DeleteSessionRequest::new(first))
        .await
        .unwrap();
    let mine = agent
        .list_sessions(ListSessionsRequest::new().with_cwd("/w"))
        .await
        .unwrap();
    assert!(mine.sessions.is_empty());
}

#[tokio::test]
async fn modes_options_and_authentication_check_their_values() {
    let (agent, editor, session) = start().await;
    let mode = |mode| SetSessionModeRequest::new(session.clone(), mode);
    agent.set_session_mode(mode("code")).await.unwrap();
    assert_eq!(editor.take(), ["current_mode_update "]);
    assert!(agent.set_session_mode(mode("nonsense")).await.is_err());

    let model = SessionConfigOptionValueValueId::new("large");
    let request = SetSessionConfigOptionRequest::new(session.clone(), "model", model);
    let options = agent
        .set_session_config_option(request)
        .await
        .unwrap()
        .config_options;
    assert!(
        serde_json::to_string(&options)
            .unwrap()
            .contains(r#""currentValue":"large""#)
    );
    let verbose = SessionConfigOptionValueBoolean::new(true);
    let request = SetSessionConfigOptionRequest::new(session.clone(), "verbose", verbose.clone());
    let options = agent
        .set_session_config_option(request)
        .await
        .unwrap()
        .config_options;
    assert!(
        serde_json::to_string(&options)
            .unwrap()
            .contains(r#""currentValue":true"#)
    );
    let wrong = SetSessionConfigOptionRequest::new(session, "model", verbose);
    assert!(agent.set_session_config_option(wrong).await.is_err());

    agent
        .authenticate(AuthenticateRequest::new("none"))
        .await
        .unwrap();
    assert!(
        agent
            .authenticate(AuthenticateRequest::new("password"))
            .await
            .is_err()
    );
    agent.logout(LogoutRequest::new()).await.unwrap();
}
