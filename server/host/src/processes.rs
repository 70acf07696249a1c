//! The processes of an agent: which session gets which, and when they are started again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use acp_sdk::v1::{AuthMethodId, AuthenticateRequest, methods};
use acp_server::internal::log_repeated;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backoff::Backoff;
use super::builder::Spec;
use super::process::{Key, Place, Process};
use super::routes::Creating;
use super::uses::InUse;
use super::{HostedError, opened};

#[derive(Debug)]
pub(super) struct Processes {
    pub(super) spec: Spec,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    /// All that were started, also those that have left their slot and still run.
    started: Mutex<Vec<Weak<Process>>>,
    /// A permit for each process that may run.
    room: Arc<Semaphore>,
    /// The owners of processes, and starts.
    supervisors: TaskTracker,
    /// How the user has authenticated, for processes that are started later.
    authenticated: Mutex<Option<AuthMethodId>>,
    pub(super) closed: CancellationToken,
}

/// A process that is not ended for being idle, because a session is being opened there.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) process: Arc<Process>,
    pub(super) used: InUse,
    _creating: Creating,
}

/// The place of a process. Whoever needs the process waits while it is being started.
#[derive(Debug, Default)]
struct Slot {
    starting: tokio::sync::Mutex<Starting>,
    /// Starts that have failed.
    failed: AtomicU64,
    process: Mutex<Option<Arc<Process>>>,
}

#[derive(Debug, Default)]
struct Starting {
    backoff: Backoff,
    /// Why the last start has failed.
    error: Option<HostedError>,
}

impl Granted {
    fn of(process: &Arc<Process>) -> Option<Self> {
        Some(Self {
            used: process.begin_use()?,
            _creating: process.routes.creating(),
            process: process.clone(),
        })
    }
}

impl Slot {
    fn process(&self) -> Option<Arc<Process>> {
        lock(&self.process).clone()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Processes {
    pub(super) fn new(spec: Spec) -> Self {
        let room = spec.limits().processes.min(Semaphore::MAX_PERMITS);
        Self {
            spec,
            slots: Mutex::default(),
            started: Mutex::default(),
            room: Arc::new(Semaphore::new(room)),
            supervisors: TaskTracker::new(),
            authenticated: Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Returns a process, and starts it if it does not run.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or not yet. All that wait for a start fail with it.
    pub(super) async fn get(&self, key: Key) -> Result<Granted, HostedError> {
        let slot = lock(&self.slots).entry(key).or_default().clone();
        let failed = slot.failed.load(Ordering::Acquire);
        let mut starting = slot.starting.lock().await;
        let granted = slot.process().as_ref().and_then(Granted::of);
        if let Some(granted) = granted {
            return Ok(granted);
        }
        if slot.failed.load(Ordering::Acquire) != failed
            && let Some(error) = &starting.error
        {
            return Err(error.clone());
        }
        let before = lock(&slot.process).take();
        if let Some(process) = before {
            let lived = process.lived();
            // One that ignores a cancellation stays until the turns of other sessions have ended.
            let reason = match process.is_running() {
                true => "it ignored a cancellation".into(),
                false => process.reason().await,
            };
            if !process.was_stopped() {
                let limits = self.spec.limits();
                starting.backoff.ended(lived, &reason, limits);
            }
        }
        starting.backoff.wait(self.spec.limits()).await?;
        let permit = self.make_room().await?;
        let started = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(HostedError::ShutDown),
            started = self.start(key, permit) => started,
        };
        match started {
            Ok(process) => {
                // Before anybody else can see it.
                let granted = Granted::of(&process).ok_or(HostedError::ShutDown)?;
                *lock(&slot.process) = Some(process);
                Ok(granted)
            }
            Err(error) => {
                log_repeated!(warn, %error, "cannot start the agent");
                let limits = self.spec.limits();
                starting.backoff.failed(&error.to_string(), limits);
                starting.error = Some(error.clone());
                slot.failed.fetch_add(1, Ordering::AcqRel);
                Err(error)
            }
        }
    }

    /// Starts a process, and logs the user in there.
    async fn start(
        &self,
        key: Key,
        permit: OwnedSemaphorePermit,
    ) -> Result<Arc<Process>, HostedError> {
        let place = Place {
            stop: self.closed.child_token(),
            supervisors: self.supervisors.clone(),
            permit,
        };
        let starting = opened::start(&self.spec, key.offered(), place);
        let process = Arc::new(self.supervisors.track_future(starting).await?);
        {
            let mut started = lock(&self.started);
            started.retain(|process| process.strong_count() > 0);
            started.push(Arc::downgrade(&process));
        }
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
        Ok(process)
    }

    /// Ends processes without sessions, and returns the permit for another one. If there is none, the
    /// process that was idle the longest makes room.
    async fn make_room(&self) -> Result<OwnedSemaphorePermit, HostedError> {
        let mut used = Vec::new();
        for process in self.usable() {
            match process.end_if_empty() {
                true => process.shut_down().await,
                false => used.push(process),
            }
        }
        loop {
            if let Ok(permit) = self.room.clone().try_acquire_owned() {
                return Ok(permit);
            }
            used.sort_by_cached_key(|process| process.uses.idle());
            let idle =
                std::iter::from_fn(|| used.pop()).find(|process| process.end_if_idle(|_| true));
            let Some(idle) = idle else {
                let limit = self.spec.limits().processes;
                return Err(HostedError::Full { limit });
            };
            idle.shut_down().await;
        }
    }

    /// Returns all processes that were started and have not been dropped.
    pub(super) fn all(&self) -> Vec<Arc<Process>> {
        let started = lock(&self.started);
        started.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the processes that can be given work.
    pub(super) fn usable(&self) -> Vec<Arc<Process>> {
        let mut processes = self.all();
        processes.retain(|process| process.is_usable());
        processes
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

    /// Ends all processes, also those that are being started or ended, and starts no more.
    pub(super) async fn shut_down(&self) {
        self.closed.cancel();
        self.supervisors.close();
        let ended = self.supervisors.wait();
        // No process takes so long.
        let _ = tokio::time::timeout(ENDING, ended).await;
    }
}

/// Time for all processes to end.
const ENDING: Duration = Duration::from_secs(20);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::HostedAgent;
    use crate::offered::Offered;

    /// It dies when the test says so.
    const SCRIPT: &str =
        r#"echo start >> "$0/starts"; until [ -e "$0/die" ]; do sleep 0.01; done; exit 3"#;

    #[tokio::test]
    async fn a_start_that_fails_is_not_repeated_for_those_that_wait_for_it() {
        const WAITING: usize = 100;
        let folder = tempfile::tempdir().unwrap();
        let agent = HostedAgent::builder("sh").args(["-c", SCRIPT]);
        let spec = agent.arg(folder.path()).spec().await.unwrap();
        let processes = Rc::new(Processes::new(spec));
        let began = Rc::new(Cell::new(0));
        let get = async {
            let mut waiting = tokio::task::JoinSet::new();
            for _ in 0..WAITING {
                let (processes, began) = (processes.clone(), began.clone());
                waiting.spawn_local(async move {
                    // Nothing is awaited before it waits for the start.
                    began.set(began.get() + 1);
                    let key = Key::Shared(Offered::default());
                    processes.get(key).await.unwrap_err().to_string()
                });
            }
            while began.get() < WAITING {
                tokio::task::yield_now().await;
            }
            std::fs::write(folder.path().join("die"), "").unwrap();
            waiting.join_all().await
        };
        let errors = tokio::task::LocalSet::new().run_until(get).await;
        assert_eq!(errors.len(), WAITING);
        for error in errors {
            assert!(error.contains("exited with code 3"), "{error}");
        }
        let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
        assert_eq!(starts.lines().count(), 1);
    }
}
