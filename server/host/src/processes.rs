//! The processes of an agent: which session gets which, and when they are started again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{AuthMethodId, AuthenticateRequest, methods};
use acp_server::internal::log_repeated;
use tokio_util::sync::CancellationToken;

use super::HostedError;
use super::backoff::Backoff;
use super::builder::Spec;
use super::offered::Offered;
use super::process::Process;
use super::routes::Creating;

/// Which sessions a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Those whose clients offer this.
    Shared(Offered),
    /// One session.
    Session(u64, Offered),
}

impl Key {
    fn offered(self) -> Offered {
        match self {
            Self::Shared(offered) | Self::Session(_, offered) => offered,
        }
    }
}

#[derive(Debug)]
pub(super) struct Processes {
    pub(super) spec: Spec,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    /// How the user has authenticated, for processes that are started later.
    authenticated: Mutex<Option<AuthMethodId>>,
    closed: CancellationToken,
}

/// A process that is not ended while a session is being opened there.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) process: Arc<Process>,
    _creating: Creating,
}

/// The place of a process. Whoever needs the process waits while it is being started.
#[derive(Debug, Default)]
struct Slot {
    starting: tokio::sync::Mutex<Backoff>,
    process: Mutex<Option<Arc<Process>>>,
}

impl Granted {
    fn of(process: &Arc<Process>) -> Option<Self> {
        Some(Self {
            _creating: process.routes.creating()?,
            process: process.clone(),
        })
    }
}

impl Slot {
    fn process(&self) -> Option<Arc<Process>> {
        lock(&self.process).clone()
    }
}

impl Processes {
    pub(super) fn new(spec: Spec) -> Self {
        Self {
            spec,
            slots: Mutex::default(),
            authenticated: Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Returns a process, and starts it if it does not run.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or not yet.
    pub(super) async fn get(&self, key: Key) -> Result<Granted, HostedError> {
        let slot = lock(&self.slots).entry(key).or_default().clone();
        let mut backoff = slot.starting.lock().await;
        if let Some(process) = slot.process() {
            if process.is_usable()
                && let Some(granted) = Granted::of(&process)
            {
                return Ok(granted);
            }
            lock(&slot.process).take();
            let lived = process.lived();
            let reason = process.reason().await;
            if !process.was_stopped() {
                backoff.ended(lived, &reason, self.spec.limits());
            }
        }
        backoff.wait(self.spec.limits()).await?;
        self.make_room().await?;
        let started = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(HostedError::ShutDown),
            started = Process::start(&self.spec, key.offered()) => started,
        };
        let process = match started {
            Ok(process) => Arc::new(process),
            Err(error) => {
                log_repeated!(warn, %error, "cannot start the agent");
                backoff.failed(&error.to_string(), self.spec.limits());
                return Err(error);
            }
        };
        let method = lock(&self.authenticated).clone();
        if let Some(method) = method {
            let request = AuthenticateRequest::new(method);
            // What needs it is refused by the agent, with a better error.
            if let Err(error) = process.call::<methods::Authenticate>(&request).await {
                log_repeated!(
                    warn, %error,
                    "a process of the agent refused the login of the one before"
                );
            }
        }
        // Before anybody else can see it.
        let granted = Granted::of(&process).ok_or(HostedError::ShutDown)?;
        *lock(&slot.process) = Some(process);
        Ok(granted)
    }

    /// Ends processes without sessions, so that another one may be started.
    async fn make_room(&self) -> Result<(), HostedError> {
        let running = self.running();
        let (idle, used): (Vec<_>, Vec<_>) = running
            .into_iter()
            .partition(|process| process.routes.close_if_empty());
        let limit = self.spec.limits().processes;
        if used.len() >= limit {
            return Err(HostedError::Full { limit });
        }
        for process in idle {
            process.shut_down().await;
        }
        Ok(())
    }

    /// Returns the processes that run.
    pub(super) fn running(&self) -> Vec<Arc<Process>> {
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let processes = slots.iter().filter_map(|slot| slot.process());
        processes.filter(|process| process.is_running()).collect()
    }

    /// Forgets a process of a session that is closed.
    pub(super) async fn end(&self, key: Key) {
        let slot = match key {
            Key::Session(..) => lock(&self.slots).remove(&key),
            Key::Shared(_) => None,
        };
        if let Some(process) = slot.and_then(|slot| slot.process()) {
            process.shut_down().await;
        }
    }

    /// Remembers how the user has authenticated.
    pub(super) fn set_authenticated(&self, method: Option<AuthMethodId>) {
        *lock(&self.authenticated) = method;
    }

    /// Ends all processes, and starts no more.
    pub(super) async fn shut_down(&self) {
        self.closed.cancel();
        let mut ending = tokio::task::JoinSet::new();
        for process in self.running() {
            ending.spawn(async move { process.shut_down().await });
        }
        while ending.join_next().await.is_some() {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
