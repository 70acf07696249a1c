//! The end of an agent that no call uses.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::slot::{Slot, take_if};

/// The number of calls that use an agent.
#[derive(Debug, Default)]
pub(super) struct Users {
    active: watch::Sender<usize>,
    /// Ends the agent when it is idle for long enough.
    timer: Mutex<Option<AbortHandle>>,
}

impl Users {
    /// Waits until no call uses the agent.
    pub(super) async fn none(&self) {
        let mut active = self.active.subscribe();
        // The sender is not dropped meanwhile.
        let _ = active.wait_for(|active| *active == 0).await;
    }

    fn set_timer(&self, timer: Option<AbortHandle>) {
        let mut current = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *current, timer) {
            before.abort();
        }
    }
}

/// The use of an agent by one call. The agent may end a while after the last one is dropped.
#[derive(Debug)]
pub(super) struct Use {
    users: Arc<Users>,
    slot: Slot,
    idle: Option<Duration>,
}

impl Use {
    pub(super) fn begin(users: Arc<Users>, slot: Slot, idle: Option<Duration>) -> Self {
        users.active.send_modify(|active| *active += 1);
        users.set_timer(None);
        Self { users, slot, idle }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.users.active.send_modify(|active| *active -= 1);
        let (Some(idle), Ok(runtime)) = (self.idle, Handle::try_current()) else {
            return;
        };
        if *self.users.active.borrow() > 0 {
            return;
        }
        // The application's own connection does not end.
        let Some(slot) = self.slot.downgrade() else {
            return;
        };
        let users = Arc::downgrade(&self.users);
        let timer = runtime.spawn(async move {
            sleep(idle).await;
            let is_idle = || {
                users
                    .upgrade()
                    .is_some_and(|users| *users.active.borrow() == 0)
            };
            if let Some(client) = take_if(&slot, is_idle).await {
                // Another call may abort the timer, but not the end of this process.
                tokio::spawn(async move { client.shutdown().await });
            }
        });
        self.users.set_timer(Some(timer.abort_handle()));
    }
}
