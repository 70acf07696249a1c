//! A session in a temporary directory, and its turn in the hands of a test.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::*;
use acp_sdk::{HandlerResult, Result};
use acp_server::{Error, Handler, Limits, Link, Policies, Server, ServerBuilder, Turn};
use tokio::sync::{Mutex, Notify, mpsc};

/// Nothing waits this long when all is well.
pub const GUARD: Duration = Duration::from_secs(30);

/// Gives its turns away, and ends each when it is told to.
pub struct Lender {
    turns: mpsc::UnboundedSender<Turn>,
    done: Arc<Notify>,
}

impl Handler for Lender {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        self.turns.send(turn.clone())?;
        self.done.notified().await;
        Ok(StopReason::EndTurn)
    }
}

/// A client that offers what a test wants, and answers nothing.
#[derive(Clone, Default)]
pub struct Silent {
    pub updates: Arc<std::sync::Mutex<Vec<SessionUpdate>>>,
}

impl Client for Silent {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        self.updates.lock().unwrap().push(note.update);
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        Err("no".into())
    }

    async fn read_text_file(
        &self,
        _: &ClientContext,
        _: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        Ok(ReadTextFileResponse::new("from the client"))
    }
}

/// The session works in `in`, and in `extra` besides; `out` is neither's.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub server: Server,
    pub agent: AgentHandle,
    pub client: Silent,
    pub session: SessionId,
    turns: Mutex<mpsc::UnboundedReceiver<Turn>>,
    done: Arc<Notify>,
}

impl Bench {
    pub async fn new() -> Self {
        Self::with(|server| server).await
    }

    pub async fn with_limits(limits: Limits) -> Self {
        Self::with(|server| server.limits(limits)).await
    }

    pub async fn with(settings: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        Self::linked(Link::Stdio, ClientCapabilities::new(), settings).await
    }

    pub async fn linked(
        link: Link,
        offered: ClientCapabilities,
        settings: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["in", "extra", "out"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let (sender, turns) = mpsc::unbounded_channel();
        let done = Arc::<Notify>::default();
        let lender = Lender {
            turns: sender,
            done: done.clone(),
        };
        let policies = {
            let mut policies = Policies::default();
            policies.cancel_deadline = Duration::from_millis(10);
            policies
        };
        let server = settings(Server::builder(lender).policies(policies)).build();
        let client = Silent::default();
        let agent = connect(&server, link, &client, offered).await;
        let request = NewSessionRequest::new(dir.path().join("in").to_str().unwrap(), vec![])
            .with_additional_directories(vec![
                dir.path().join("extra").to_str().unwrap().to_owned(),
            ]);
        let session = agent.new_session(request).await.unwrap().session_id;
        Self {
            dir,
            server,
            agent,
            client,
            session,
            turns: Mutex::new(turns),
            done,
        }
    }

    /// Begins a turn.
    pub async fn begin(&self) -> (Turn, tokio::task::JoinHandle<Result<PromptResponse>>) {
        let block = ContentBlock::Text(TextContent::new("go"));
        let request = PromptRequest::new(&self.session, vec![block]);
        let agent = self.agent.clone();
        let prompt = tokio::spawn(async move { agent.prompt(request).await });
        (self.next_turn().await, prompt)
    }

    pub async fn turn(&self) -> Turn {
        self.begin().await.0
    }

    /// The turn of a prompt that was sent another way.
    pub async fn next_turn(&self) -> Turn {
        self.turns.lock().await.recv().await.unwrap()
    }

    /// Ends the turn.
    pub async fn end(&self, prompt: tokio::task::JoinHandle<Result<PromptResponse>>) {
        self.done.notify_one();
        let ended = tokio::time::timeout(GUARD, prompt).await;
        ended.expect("the turn did not end").unwrap().unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn named(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn link(&self, from: &str, to: &str) {
        std::os::unix::fs::symlink(self.path(to), self.path(from)).unwrap();
    }
}

/// Connects and initializes a client.
pub async fn connect(
    server: &Server,
    link: Link,
    client: &Silent,
    offered: ClientCapabilities,
) -> AgentHandle {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(acp_sdk::serve(
        server.connection(link),
        tokio::io::split(theirs),
    ));
    let driver = acp_sdk::connect(client.clone(), tokio::io::split(ours));
    let agent = driver.handle().clone();
    tokio::spawn(driver);
    let hello = InitializeRequest::new(ProtocolVersion::V1).with_client_capabilities(offered);
    agent.initialize(hello).await.unwrap();
    agent
}

/// Checks the error of a local call.
#[track_caller]
pub fn fails<T: std::fmt::Debug>(result: acp_server::Result<T>, code: ErrorCode, words: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Local { .. }), "{error}");
    assert_eq!(error.code(), Some(code), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}
