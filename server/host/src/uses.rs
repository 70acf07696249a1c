//! Who uses a process, and since when nobody does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The uses of a process: turns, requests in both directions, sessions that are being opened, logins.
#[derive(Debug)]
pub(super) struct Uses(Mutex<UseState>);

#[derive(Debug)]
struct UseState {
    running: usize,
    /// The last end of a use, or update outside of turns.
    last: Instant,
    /// No use begins any more.
    closed: bool,
}

/// One use. The process is not ended for being idle until it is dropped.
#[derive(Debug)]
pub(super) struct InUse(Arc<Uses>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        state.last = Instant::now();
    }
}

impl Default for Uses {
    fn default() -> Self {
        Self(Mutex::new(UseState {
            running: 0,
            last: Instant::now(),
            closed: false,
        }))
    }
}

impl Uses {
    /// Begins a use; `None` once the process gets no further ones.
    pub(super) fn begin(self: &Arc<Self>) -> Option<InUse> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        state.running += 1;
        Some(InUse(self.clone()))
    }

    /// The agent does something that nobody has asked for.
    pub(super) fn touch(&self) {
        self.state().last = Instant::now();
    }

    /// Lets no further use begin.
    pub(super) fn close(&self) {
        self.state().closed = true;
    }

    /// Lets no further use begin, if there is none, and this accepts the time since the last one. Returns
    /// whether it was closed by this call.
    pub(super) fn close_if(&self, may: impl FnOnce(Duration) -> bool) -> bool {
        let mut state = self.state();
        let closes = !state.closed && state.running == 0 && may(state.last.elapsed());
        state.closed |= closes;
        closes
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Returns the time since the last use, if there is none.
    pub(super) fn idle(&self) -> Option<Duration> {
        let state = self.state();
        (state.running == 0).then(|| state.last.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, UseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_process_is_idle_from_its_last_use_on() {
        const LONG: Duration = Duration::from_secs(60);
        let uses = Arc::new(Uses::default());
        let long_enough = |idle| idle >= LONG;
        tokio::time::advance(LONG).await;
        let turn = uses.begin().unwrap();
        assert_eq!(uses.idle(), None);
        assert!(!uses.close_if(|_| true), "it is in use");
        drop(turn);
        assert!(!uses.close_if(long_enough), "the use has just ended");
        tokio::time::advance(LONG / 2).await;
        uses.touch();
        tokio::time::advance(LONG / 2).await;
        assert!(!uses.close_if(long_enough), "an update came in between");
        tokio::time::advance(LONG / 2).await;
        assert!(uses.close_if(long_enough));
        assert!(uses.begin().is_none());
        assert!(!uses.close_if(|_| true), "another one has closed it");
    }
}
