//! The history of a session, as replayed for `session/load`.
//!
//! A layer receives the unmodified updates before the session does. The agent waits while 64
//! updates are unread, so a history of any length needs little memory.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::conversation::{Change, Conversation, ItemKind, Role};
use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::v1::{ProtocolVersion, SessionInfo, SessionUpdate};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::task::Failure;
use acp_client::Client;
use acp_client::internal::Converter;

/// Capacity of the queue of updates.
const WAITING: usize = 64;

/// Limit in bytes of the conversation that is counted.
const REMEMBERED: usize = 4 << 20;

/// An update of a session.
#[derive(Debug)]
pub(super) struct Update {
    /// The unmodified JSON, in one line.
    pub(super) raw: String,
    /// The deserialized update. An update of version 2 may become several.
    pub(super) typed: Vec<SessionUpdate>,
}

enum Event {
    Update(Box<Update>),
    /// The end of the history.
    End,
}

/// Receives the updates.
pub(super) struct Updates {
    arrived: mpsc::Receiver<Event>,
    tap: Tap,
}

/// Intercepts the updates of one session.
#[derive(Clone)]
pub(super) struct Tap {
    session: Arc<str>,
    arrive: mpsc::Sender<Event>,
    /// Converts the updates of an agent of version 2.
    converter: Arc<Mutex<Option<Converter>>>,
}

/// Returns a layer that intercepts the updates of a session, and their receiver.
pub(super) fn tap(session: &str) -> (Tap, Updates) {
    let (arrive, arrived) = mpsc::channel(WAITING);
    let tap = Tap {
        session: session.into(),
        arrive,
        converter: Arc::default(),
    };
    let updates = Updates {
        arrived,
        tap: tap.clone(),
    };
    (tap, updates)
}

impl Layer for Tap {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(Tapped {
            inner,
            tap: self.clone(),
        })
    }
}

struct Tapped {
    inner: Arc<dyn Service>,
    tap: Tap,
}

impl Service for Tapped {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        self.inner.request(request)
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        let taken = match (notification.method(), notification.params()) {
            ("session/update", Some(params)) => self.tap.read(params.get()),
            _ => None,
        };
        let Some(update) = taken else {
            return self.inner.notification(notification);
        };
        let arrive = self.tap.arrive.clone();
        notification.handle_ext(move |_, _, _| async move {
            // The receiver may have been dropped.
            let _ = arrive.send(Event::Update(Box::new(update))).await;
            Ok(())
        })
    }
}

impl Tap {
    /// Parses the params of an update of this session.
    fn read(&self, params: &str) -> Option<Update> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow, rename = "sessionId")]
            session: std::borrow::Cow<'a, str>,
            #[serde(borrow)]
            update: &'a RawValue,
        }
        let raw: Raw<'_> = serde_json::from_str(params).ok()?;
        if *raw.session != *self.session {
            return None;
        }
        let update = raw.update.get();
        let mut converter = self
            .converter
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let typed = match &mut *converter {
            Some(converter) => {
                let update = serde_json::from_str(update).ok();
                let converted = update.map(|update| converter.update(update));
                converted.into_iter().flatten().collect()
            }
            None => serde_json::from_str(update).into_iter().collect(),
        };
        Some(Update {
            // Line feeds are only between tokens, because strings escape them.
            raw: update.replace(['\n', '\r'], " "),
            typed,
        })
    }
}

/// Loads a session, and calls `each` for every update of its history.
///
/// # Errors
///
/// Fails when the agent cannot load the session, or `each` fails.
pub(super) async fn replay(
    client: &Client,
    id: &str,
    cwd: &Path,
    updates: Updates,
    mut each: impl AsyncFnMut(Update) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Updates { mut arrived, tap } = updates;
    if client.protocol_version() != ProtocolVersion::V1 {
        let mut converter = tap.converter.lock().unwrap_or_else(PoisonError::into_inner);
        *converter = Some(Converter::default());
    }
    let arrive = tap.arrive;
    let loading = async {
        let session = client.load_session(id, cwd).await?;
        // Senders wait in order, so all updates of the history precede this.
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

/// The length of a history.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    user_messages: u64,
    agent_messages: u64,
    tool_calls: u64,
    updates: u64,
    #[serde(skip)]
    conversation: Conversation,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            user_messages: 0,
            agent_messages: 0,
            tool_calls: 0,
            updates: 0,
            conversation: Conversation::with_limit(REMEMBERED),
        }
    }
}

impl Counts {
    /// Counts an update and records the title in it.
    pub(super) fn count(&mut self, update: &Update, info: &mut SessionInfo) {
        self.updates += 1;
        for update in &update.typed {
            for change in self.conversation.apply(update) {
                self.count_one(change, info);
            }
        }
    }

    fn count_one(&mut self, change: Change, info: &mut SessionInfo) {
        let settings = self.conversation.settings();
        let added = match change {
            Change::Added(id) => self.conversation.item(id),
            Change::Info if settings.title.is_some() => {
                info.title.clone_from(&settings.title);
                return;
            }
            _ => return,
        };
        match added.map(|item| &item.kind) {
            Some(ItemKind::Message(message)) => match message.role {
                Role::User => self.user_messages += 1,
                Role::Agent => self.agent_messages += 1,
                _ => {}
            },
            Some(ItemKind::ToolCall(_)) => self.tool_calls += 1,
            _ => {}
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
