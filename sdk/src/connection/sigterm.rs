//! `SIGTERM`: handled while a connection runs that asked for it, and the system's default otherwise.
//!
//! A handler that tokio has installed stays for the life of the process, and would swallow the
//! signal after the connection has ended.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::SIGTERM;
use signal_hook::flag::register_conditional_default;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The process has one disposition of the signal, whatever its connections are.
static STATE: Mutex<State> = Mutex::new(State {
    handlers: 0,
    is_unhandled: None,
});

struct State {
    /// Connections that handle the signal.
    handlers: usize,
    /// Whether there is none, so that the default applies; once it is registered.
    is_unhandled: Option<Arc<AtomicBool>>,
}

impl State {
    fn lock() -> MutexGuard<'static, Self> {
        STATE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&mut self, change: isize) {
        self.handlers = self.handlers.saturating_add_signed(change);
        if let Some(is_unhandled) = &self.is_unhandled {
            is_unhandled.store(self.handlers == 0, Ordering::SeqCst);
        }
    }
}

/// Receives the signal. Dropping the last one restores the default: the signal ends the process.
#[derive(Debug)]
pub(super) struct Sigterm {
    pub(super) received: Signal,
}

impl Sigterm {
    /// # Errors
    ///
    /// Fails when the system refuses the handler.
    pub(super) fn handle() -> io::Result<Self> {
        let mut state = State::lock();
        if state.is_unhandled.is_none() {
            let is_unhandled = Arc::new(AtomicBool::new(false));
            register_conditional_default(SIGTERM, is_unhandled.clone())?;
            state.is_unhandled = Some(is_unhandled);
        }
        let received = signal(SignalKind::terminate())?;
        state.add(1);
        Ok(Self { received })
    }
}

impl Drop for Sigterm {
    fn drop(&mut self) {
        State::lock().add(-1);
    }
}
