//! The servers that were declared as programs, and the requests to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use acp_sdk::{ErrorCode, HandlerError, HandlerResult};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::Endpoint;
use crate::mcp::wire::Inner;
use crate::shared::lock;

/// The maximum number of servers.
const MOST_SERVERS: usize = 10_000;

/// A server that was declared as a program.
pub(super) struct Binding {
    pub(super) server: String,
    /// Who has declared it.
    pub(super) client: Endpoint,
    pub(super) ended: CancellationToken,
    /// Held by the connection of the program: there is one at a time.
    pub(super) use_of: Semaphore,
}

impl Binding {
    pub(super) fn new(server: String, client: Endpoint) -> Self {
        Self {
            server,
            client,
            ended: CancellationToken::new(),
            use_of: Semaphore::new(1),
        }
    }
}

/// The bindings of one connection's sessions.
#[derive(Default)]
pub(super) struct Bindings(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    /// By secret.
    bindings: HashMap<String, Arc<Binding>>,
    /// The secrets of each session.
    sessions: HashMap<String, Vec<String>>,
    /// Where the notifications of requests go that are not answered, by their id in MCP.
    active: HashMap<String, mpsc::Sender<Inner>>,
}

impl Bindings {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        lock(&self.0)
    }

    pub(super) fn add(self: &Arc<Self>, secret: String, binding: Binding) -> HandlerResult<Added> {
        let bindings = &mut self.lock().bindings;
        if bindings.len() >= MOST_SERVERS {
            let message = format!("there are {MOST_SERVERS} MCP servers inside of this connection");
            return Err(HandlerError::new(ErrorCode::INVALID_REQUEST, message));
        }
        bindings.insert(secret.clone(), Arc::new(binding));
        Ok(Added {
            bindings: self.clone(),
            secret,
            is_kept: false,
        })
    }

    pub(super) fn find(&self, secret: &str) -> Option<Arc<Binding>> {
        self.lock().bindings.get(secret).cloned()
    }

    fn end(&self, secret: &str) {
        let binding = self.lock().bindings.remove(secret);
        if let Some(binding) = binding {
            binding.ended.cancel();
        }
    }

    /// Ends the programs of a session.
    pub(super) fn end_session(&self, session: &str) {
        let secrets = self.lock().sessions.remove(session);
        for secret in secrets.into_iter().flatten() {
            self.end(&secret);
        }
    }

    /// Ends all programs.
    pub(super) fn end_all(&self) {
        let bindings = std::mem::take(&mut self.lock().bindings);
        for binding in bindings.values() {
            binding.ended.cancel();
        }
    }

    /// Returns what a request's notifications are received from while this is held.
    pub(super) fn activate(self: &Arc<Self>, request: &str, sender: mpsc::Sender<Inner>) -> Active {
        self.lock().active.insert(request.to_owned(), sender);
        Active {
            bindings: self.clone(),
            request: request.to_owned(),
        }
    }

    /// Returns where the notifications of a request go, until it is answered.
    pub(super) fn active(&self, request: &str) -> Option<mpsc::Sender<Inner>> {
        self.lock().active.get(request).cloned()
    }
}

/// A binding that ends when this is dropped, unless a session keeps it.
pub(super) struct Added {
    bindings: Arc<Bindings>,
    secret: String,
    is_kept: bool,
}

impl Added {
    pub(super) fn keep_for(mut self, session: &str) {
        self.is_kept = true;
        let mut tables = self.bindings.lock();
        let of_session = tables.sessions.entry(session.to_owned()).or_default();
        of_session.push(self.secret.clone());
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        if !self.is_kept {
            self.bindings.end(&self.secret);
        }
    }
}

/// A request that is not answered.
pub(super) struct Active {
    bindings: Arc<Bindings>,
    request: String,
}

impl Drop for Active {
    fn drop(&mut self) {
        self.bindings.lock().active.remove(&self.request);
    }
}
