//! The history of a session, as the agent repeats it for `session/load`.
//!
//! A layer takes the updates before any session does, as the agent wrote them. The agent waits
//! while more than a few are unread, so a history of any length passes through little memory.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::v1::{SessionInfo, SessionNotification, SessionUpdate};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::cli::task::Failure;
use crate::client::Client;

/// Updates that wait to be read.
const WAITING: usize = 64;

/// An update of a session.
#[derive(Debug)]
pub(super) struct Update {
    /// As the agent wrote it, in one line.
    pub(super) raw: String,
    /// What was understood of it.
    pub(super) typed: Option<SessionUpdate>,
}

enum Event {
    Update(Box<Update>),
    /// Everything before is the history.
    End,
}

/// Updates as they arrive.
pub(super) struct Updates {
    arrived: mpsc::Receiver<Event>,
    arrive: mpsc::Sender<Event>,
}

/// Takes the updates of one session.
pub(super) struct Tap {
    session: Arc<str>,
    arrive: mpsc::Sender<Event>,
}

/// Returns a layer that takes the updates of a session, and where they come out.
pub(super) fn tap(session: &str) -> (Tap, Updates) {
    let (arrive, arrived) = mpsc::channel(WAITING);
    let tap = Tap {
        session: session.into(),
        arrive: arrive.clone(),
    };
    (tap, Updates { arrived, arrive })
}

impl Layer for Tap {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(Tapped {
            inner,
            session: self.session.clone(),
            arrive: self.arrive.clone(),
        })
    }
}

struct Tapped {
    inner: Arc<dyn Service>,
    session: Arc<str>,
    arrive: mpsc::Sender<Event>,
}

impl Service for Tapped {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        self.inner.request(request)
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let taken = match (notification.method(), notification.params()) {
            ("session/update", Some(params)) => read(params.get(), &self.session),
            _ => None,
        };
        let Some(update) = taken else {
            return self.inner.notification(notification);
        };
        let arrive = self.arrive.clone();
        notification.handle_ext(move |_, _, _| async move {
            // Nobody may be reading any more.
            let _ = arrive.send(Event::Update(Box::new(update))).await;
            Ok(())
        })
    }
}

/// Reads the params of an update of this session.
fn read(params: &str, session: &str) -> Option<Update> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow, rename = "sessionId")]
        session: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        update: &'a RawValue,
    }
    let raw: Raw<'_> = serde_json::from_str(params).ok()?;
    if raw.session != session {
        return None;
    }
    let typed = serde_json::from_str::<SessionNotification>(params).ok();
    Some(Update {
        // Line feeds stand only between tokens: strings have them escaped.
        raw: raw.update.get().replace(['\n', '\r'], " "),
        typed: typed.map(|notification| notification.update),
    })
}

/// Loads a session, and calls `each` for every update of its history.
///
/// # Errors
///
/// When the agent cannot load it, or `each` fails.
pub(super) async fn replay(
    client: &Client,
    id: &str,
    cwd: &Path,
    updates: Updates,
    mut each: impl AsyncFnMut(Update) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Updates {
        mut arrived,
        arrive,
    } = updates;
    let loading = async {
        let session = client.load_session(id, cwd).await?;
        // Senders wait in order, so nothing of the history comes after it.
        let _ = arrive.send(Event::End).await;
        Ok::<_, Failure>(session)
    };
    let reading = async {
        while let Some(Event::Update(update)) = arrived.recv().await {
            each(*update).await?;
        }
        Ok::<_, Failure>(())
    };
    let (session, ()) = tokio::try_join!(loading, reading)?;
    drop(session);
    Ok(())
}

/// How long a history is.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    user_messages: u64,
    agent_messages: u64,
    tool_calls: u64,
    updates: u64,
    #[serde(skip)]
    last: Option<Writer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    Agent,
}

impl Counts {
    /// Counts an update, and takes the title from it.
    pub(super) fn count(&mut self, update: &Update, info: &mut SessionInfo) {
        self.updates += 1;
        let writer = match &update.typed {
            Some(SessionUpdate::UserMessageChunk(_)) => Writer::User,
            Some(SessionUpdate::AgentMessageChunk(_)) => Writer::Agent,
            Some(SessionUpdate::ToolCall(_)) => {
                self.tool_calls += 1;
                self.last = None;
                return;
            }
            Some(SessionUpdate::SessionInfoUpdate(changed)) => {
                if let Some(title) = changed.title.value().cloned() {
                    info.title = Some(title);
                }
                return;
            }
            _ => return,
        };
        // Chunks that follow each other are one message.
        if self.last.replace(writer) != Some(writer) {
            match writer {
                Writer::User => self.user_messages += 1,
                Writer::Agent => self.agent_messages += 1,
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "user messages: {}, agent messages: {}, tool calls: {}",
            self.user_messages, self.agent_messages, self.tool_calls
        )
    }
}
