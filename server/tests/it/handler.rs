//! The hooks of a handler, and what the runtime makes of its profile.

use std::sync::{Arc, Mutex};

use acp_sdk::v1::*;
use acp_sdk::{Context, Json};
use acp_server::store::SessionRecord;
use acp_server::{AgentInfo, Handler, HandlerResult, Login, Opening, Session, Settings, Turn};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::editor::{Desk, Editor, agent, connect_to, everything, others_run, text};
use crate::raw::Raw;

/// Notes which hook was called.
#[derive(Clone, Default)]
struct Diary {
    pages: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn note(&self, what: impl Into<String>) {
        self.pages.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.pages.lock().unwrap())
    }
}

impl Handler for Diary {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        self.note(format!("prompt {}", turn.prompt_text()));
        Ok(StopReason::MaxTokens)
    }

    fn info(&self) -> AgentInfo {
        AgentInfo::new("diary", "1.2.3")
            .auth_method(AuthMethod::Agent(AuthMethodAgent::new("key", "Key")))
            .require_auth()
    }

    async fn open(&self, (): &mut (), opening: &Opening) -> HandlerResult<Settings> {
        let session = &opening.session;
        assert_ne!(session.cwd(), "/cursed", "as a test wants it");
        if session.cwd() == "/forbidden" {
            return Err("that is not a place to work in".into());
        }
        self.note(format!("open {}", session.mcp_servers().len()));
        Ok(Settings::new())
    }

    async fn close(&self, (): (), session: &Session) {
        self.note(format!("close {}", session.cwd()));
    }

    async fn deleted(&self, session: &SessionRecord) {
        self.note(format!("deleted {}", session.cwd));
    }

    async fn authenticate(&self, login: &Login) -> HandlerResult<()> {
        self.note(format!("authenticate {}", login.method()));
        Ok(())
    }

    async fn logout(&self) -> HandlerResult<()> {
        self.note("logout");
        Err("the keychain is locked".into())
    }

    async fn ext_request(&self, _: &Context, method: &str, _: Option<Json>) -> HandlerResult<Json> {
        Ok(Json::new(method).unwrap())
    }
}

async fn start() -> (AgentHandle, Diary) {
    let diary = Diary::default();
    let agent = connect_to(agent(diary.clone()), &Editor::default());
    agent
        .initialize(InitializeRequest::new(ProtocolVersion::V1))
        .await
        .unwrap();
    (agent, diary)
}

#[tokio::test]
async fn hooks_are_called_when_it_is_time() {
    let (agent, diary) = start().await;
    let request = NewSessionRequest::new("/w", vec![]);
    let error = agent.new_session(request.clone()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AUTHENTICATION_REQUIRED));
    agent
        .authenticate(AuthenticateRequest::new("key"))
        .await
        .unwrap();
    let id = agent.new_session(request).await.unwrap().session_id;
    let prompt = PromptRequest::new(id.clone(), text("hello"));
    let stop = agent.prompt(prompt).await.unwrap().stop_reason;
    assert_eq!(stop, StopReason::MaxTokens);
    for _ in 0..2 {
        let close = CloseSessionRequest::new(id.clone());
        agent.close_session(close).await.unwrap();
    }
    agent
        .resume_session(ResumeSessionRequest::new(id.clone(), "/w"))
        .await
        .unwrap();
    agent
        .delete_session(DeleteSessionRequest::new(id))
        .await
        .unwrap();
    assert_eq!(
        diary.take(),
        [
            "authenticate key",
            "open 0",
            "prompt hello",
            "close /w",
            "open 0",
            "close /w",
            "deleted /w"
        ]
    );
    // A logout that fails changes nothing.
    let error = agent.logout(LogoutRequest::new()).await.unwrap_err();
    assert!(error.to_string().contains("keychain"), "{error}");
    agent
        .new_session(NewSessionRequest::new("/w", vec![]))
        .await
        .unwrap();
    let answer = agent.ext_request("_diary/read", None).await.unwrap();
    assert_eq!(answer.get(), "\"_diary/read\"");
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_does_not_exist() {
    let (agent, _) = start().await;
    agent
        .authenticate(AuthenticateRequest::new("key"))
        .await
        .unwrap();
    for (cwd, words) in [("/forbidden", "not a place"), ("/cursed", "panicked")] {
        let request = NewSessionRequest::new(cwd, vec![]);
        let error = agent.new_session(request).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let listed = agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert!(listed.sessions.is_empty());
}

/// Nothing but the required method.
struct Least;

impl Handler for Least {
    type State = ();

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn the_least_agent_announces_what_the_runtime_does() {
    let agent = connect_to(agent(Least), &Editor::default());
    let hello = InitializeRequest::new(ProtocolVersion::V1);
    let answer = json!(agent.initialize(hello).await.unwrap());
    assert_eq!(answer["agentCapabilities"]["loadSession"], true);
    assert_eq!(answer["agentCapabilities"]["auth"].get("logout"), None);
    assert_ne!(answer["agentInfo"]["name"], "");
    let error = agent.logout(LogoutRequest::new()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::METHOD_NOT_FOUND));
    let session = NewSessionRequest::new("/w", vec![]);
    let session = json!(agent.new_session(session).await.unwrap());
    assert_eq!(
        (session.get("modes"), session.get("configOptions")),
        (None, None)
    );
}

#[tokio::test]
async fn content_that_was_not_announced_is_refused() {
    let desk = Desk::at(agent(Least), Editor::default(), everything()).await;
    let image = ContentBlock::Image(ImageContent::new("aGk=", "image/png"));
    let mut prompt = text("look");
    prompt.push(image);
    let request = PromptRequest::new(desk.session.clone(), prompt);
    let error = desk.agent.prompt(request).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_PARAMS));
    assert_eq!(
        json!(error.as_response().unwrap().data)["path"],
        "/prompt/1"
    );
    let link = ContentBlock::ResourceLink(ResourceLink::new("a", "file:///a"));
    let request = PromptRequest::new(desk.session.clone(), vec![link]);
    desk.agent.prompt(request).await.unwrap();
}

/// Opens and closes one session for each permit.
#[derive(Clone)]
struct Sluggish {
    diary: Diary,
    permits: Arc<Semaphore>,
}

impl Sluggish {
    async fn take_time(&self, what: &str) {
        self.diary.note(format!("{what} begins"));
        self.permits.acquire().await.unwrap().forget();
        self.diary.note(format!("{what} ends"));
    }
}

impl Handler for Sluggish {
    type State = ();

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        self.take_time("open").await;
        Ok(Settings::new())
    }

    async fn close(&self, (): (), _: &Session) {
        self.take_time("close").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_and_closed_by_turns() {
    let sluggish = Sluggish {
        diary: Diary::default(),
        permits: Arc::new(Semaphore::new(1)),
    };
    let runtime = agent(sluggish.clone());
    let desk = Desk::at(runtime, Editor::default(), everything()).await;
    let close = CloseSessionRequest::new(desk.session.clone());
    let resume = ResumeSessionRequest::new(desk.session.clone(), "/w");
    let both = async {
        tokio::join!(
            desk.agent.close_session(close),
            desk.agent.resume_session(resume.clone()),
            desk.agent.resume_session(resume),
            desk.load(),
        )
    };
    let mut both = std::pin::pin!(both);
    // Paused time goes on when nothing else can.
    let early = tokio::time::timeout(std::time::Duration::from_secs(1), &mut both).await;
    assert!(early.is_err());
    sluggish.permits.add_permits(2);
    let (closed, resumed, again, loaded) = both.await;
    closed.unwrap();
    resumed.unwrap();
    again.unwrap();
    loaded.unwrap();
    assert_eq!(
        sluggish.diary.take(),
        [
            "open begins",
            "open ends",
            "close begins",
            "close ends",
            "open begins",
            "open ends"
        ]
    );
    desk.prompt("ping").await.unwrap();
}

/// Sends much in the first prompt, and notes which prompts have begun.
#[derive(Clone, Default)]
struct Talker {
    begun: Arc<Mutex<Vec<String>>>,
}

impl Handler for Talker {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        self.begun.lock().unwrap().push(turn.prompt_text());
        if turn.prompt_text() == "first" {
            // The second text stays behind the first, and the answer behind it.
            for _ in 0..2 {
                turn.send_content(ContentBlock::from("x".repeat(200_000)))
                    .await?;
            }
        } else {
            turn.send_text("second").await?;
        }
        Ok(StopReason::EndTurn)
    }
}

/// A turn does not wait for the client. What it sends does.
#[tokio::test]
async fn what_a_turn_sends_comes_behind_the_answer_of_the_one_before() {
    let talker = Talker::default();
    let mut raw = Raw::serve(agent(talker.clone()));
    let session = raw.open_session().await;
    for (id, said) in [(2, "first"), (3, "second")] {
        let params = json!({ "sessionId": session, "prompt": text(said) });
        raw.send(
            json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params }),
        )
        .await;
    }
    // Nothing else can run, so both handlers have ended, and the first answer waits for room.
    others_run().await;
    assert_eq!(*talker.begun.lock().unwrap(), ["first", "second"]);
    assert_eq!(raw.answer(2).await.1, 2);
    assert_eq!(raw.answer(3).await.1, 1);
}
