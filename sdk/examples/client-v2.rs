//! A whole client of protocol version 2: launches an agent, says one thing to it and shows what
//! it answers.
//!
//! ```sh
//! cargo build -p acp-sdk --features v2 --examples
//! target/debug/examples/client-v2 "one two ask three" target/debug/examples/agent-v2
//! ```
//!
//! Before that it names the sessions that the agent knows. Whatever the agent wants permission
//! for is allowed, and Ctrl-C cancels the work.
//!
//! What differs from version 1: the answer to `session/prompt` is not the end of the work. The
//! client goes on listening until a state update says that the session is idle again, and why.

use std::io::Write;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::{Error, HandlerError, HandlerResult, v2};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// What may fail on the way to a result.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An agent that always has another page of sessions is not followed for ever.
const PAGES: usize = 100;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [prompt, program, arguments @ ..] = words.as_slice() else {
        eprintln!("usage: client-v2 PROMPT AGENT [ARGUMENT]...");
        return ExitCode::from(2);
    };
    match launch(prompt, program, arguments).await {
        Ok(v2::StopReason::EndTurn | v2::StopReason::Cancelled) => ExitCode::SUCCESS,
        Ok(reason) => {
            eprintln!("client-v2: the agent stopped: {reason:?}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("client-v2: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the agent as a child, and talks to it.
async fn launch(prompt: &str, program: &str, arguments: &[String]) -> Result<v2::StopReason> {
    let failed = |error| format!("cannot launch {program}: {error}");
    let mut agent = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let (Some(reader), Some(writer)) = (agent.stdout.take(), agent.stdin.take()) else {
        return Err("the agent has no standard input or output".into());
    };
    let cwd = std::env::current_dir().map_err(failed)?;
    let user = User::new(std::io::stdout());
    let interrupt = async {
        // Without signals nothing is cancelled.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    };
    talk(
        user,
        (reader, writer),
        (&cwd.to_string_lossy(), prompt),
        interrupt,
    )
    .await
}

/// Says `prompt` in a new session in `cwd`, and cancels the work when `interrupt` comes.
pub(crate) async fn talk(
    user: User,
    (reader, writer): (
        impl AsyncRead + Send + 'static,
        impl AsyncWrite + Send + 'static,
    ),
    (cwd, prompt): (&str, &str),
    interrupt: impl Future<Output = ()>,
) -> Result<v2::StopReason> {
    let user = Arc::new(user);
    let connection = acp_sdk::connect(Window(user.clone()), (reader, writer));
    let agent = connection.handle().clone();
    tokio::select! {
        ended = connection => {
            ended?;
            Err("the agent ended before its work did".into())
        }
        done = converse(&agent, &user, (cwd, prompt), interrupt) => done,
    }
}

async fn converse(
    agent: &v2::AgentHandle,
    user: &User,
    (cwd, prompt): (&str, &str),
    interrupt: impl Future<Output = ()>,
) -> Result<v2::StopReason> {
    let info = v2::Implementation::new("client-v2", env!("CARGO_PKG_VERSION"));
    let hello = v2::InitializeRequest::new(v2::ProtocolVersion::V2, info);
    let answer = agent.initialize(hello).await?;
    if answer.protocol_version != v2::ProtocolVersion::V2 {
        let version = answer.protocol_version.into();
        return Err(Error::UnsupportedVersion { version }.into());
    }
    name_sessions(agent, user).await?;

    let session = agent.new_session(v2::NewSessionRequest::new(cwd)).await?;
    let session = session.session_id;
    let end = end_of(user.work.subscribe());
    let blocks = vec![v2::ContentBlock::from(prompt)];
    agent
        .prompt(v2::PromptRequest::new(session.clone(), blocks))
        .await?;
    tokio::pin!(end, interrupt);
    loop {
        tokio::select! {
            reason = &mut end => return reason,
            () = &mut interrupt, if !user.has_cancelled() => {
                user.cancelled.store(true, Ordering::Release);
                let note = v2::CancelSessionNotification::new(session.clone());
                agent.cancel_session(note).await?;
            }
        }
    }
}

/// Waits until the work is done. Yields why the agent stopped.
async fn end_of(mut work: watch::Receiver<Work>) -> Result<v2::StopReason> {
    loop {
        if let Work::Done(reason) = &*work.borrow_and_update() {
            return Ok(reason.clone());
        }
        work.changed().await?;
    }
}

/// Page after page: a cursor is the agent's own, and goes back as it came.
async fn name_sessions(agent: &v2::AgentHandle, user: &User) -> Result<()> {
    let mut request = v2::ListSessionsRequest::new();
    for _ in 0..PAGES {
        let page = agent.list_sessions(request).await?;
        for session in &page.sessions {
            user.show(&format!(
                "session {} in {}\n",
                session.session_id, session.cwd
            ));
        }
        let Some(cursor) = page.next_cursor else {
            break;
        };
        request = v2::ListSessionsRequest::new().with_cursor(cursor);
    }
    Ok(())
}

/// Whoever sits in front of the client.
pub(crate) struct User {
    screen: Mutex<Box<dyn Write + Send>>,
    work: watch::Sender<Work>,
    cancelled: AtomicBool,
}

/// How far the agent is with what it was told.
enum Work {
    Awaited,
    Begun,
    Done(v2::StopReason),
}

impl User {
    pub(crate) fn new(screen: impl Write + Send + 'static) -> Self {
        Self {
            screen: Mutex::new(Box::new(screen)),
            work: watch::Sender::new(Work::Awaited),
            cancelled: AtomicBool::new(false),
        }
    }

    fn show(&self, text: &str) {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody may be reading, and the work goes on.
        let _ = screen
            .write_all(text.as_bytes())
            .and_then(|()| screen.flush());
    }

    fn has_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

/// What the agent sees of the user.
struct Window(Arc<User>);

impl v2::Client for Window {
    async fn session_update(
        &self,
        _: &v2::ClientContext,
        note: v2::UpdateSessionNotification,
    ) -> HandlerResult<()> {
        match note.update {
            v2::SessionUpdate::AgentMessageChunk(chunk) => {
                if let v2::ContentBlock::Text(text) = chunk.content {
                    self.0.show(&format!("{}\n", text.text));
                }
            }
            v2::SessionUpdate::StateUpdate(v2::StateUpdate::Idle(idle)) => {
                self.0
                    .work
                    .send_modify(|work| match (&work, idle.stop_reason) {
                        (_, Some(reason)) => *work = Work::Done(reason),
                        (Work::Begun, None) => *work = Work::Done(v2::StopReason::EndTurn),
                        // Idle as it was before: a new session says so, too.
                        (_, None) => {}
                    });
            }
            v2::SessionUpdate::StateUpdate(_) => {
                self.0.work.send_replace(Work::Begun);
            }
            _ => {}
        }
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &v2::ClientContext,
        req: v2::RequestPermissionRequest,
    ) -> HandlerResult<v2::RequestPermissionResponse> {
        // By its kind: ids and places of options mean nothing.
        let allows = |option: &&v2::PermissionOption| {
            use v2::PermissionOptionKind::{AllowAlways, AllowOnce};
            matches!(option.kind, AllowOnce | AllowAlways)
        };
        // A question of work that is cancelled is answered so, too.
        let chosen = req.options.iter().find(allows);
        let outcome = match chosen.filter(|_| !self.0.has_cancelled()) {
            Some(option) => v2::SelectedPermissionOutcome::new(option.option_id.clone()).into(),
            None => v2::RequestPermissionOutcome::from(v2::CancelledPermissionOutcome::new()),
        };
        Ok(v2::RequestPermissionResponse::new(outcome))
    }

    async fn create_elicitation(
        &self,
        _: &v2::ClientContext,
        _: v2::CreateElicitationRequest,
    ) -> HandlerResult<v2::CreateElicitationResponse> {
        // No mode is declared, which the protocol refuses with this and not with "no such method".
        Err(HandlerError::invalid_params(
            "/mode",
            "this client asks no questions",
        ))
    }
}
