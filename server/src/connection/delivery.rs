//! The task that sends a client what is new in its sessions.
//!
//! It serves the sessions that have something new in turn, a batch at a time, so that a long replay
//! does not keep the other sessions of the client waiting.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Client, Subscription};

#[derive(Default)]
pub(crate) struct Delivery {
    state: Mutex<State>,
    /// Notified when there is work. One task waits.
    work: Notify,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Subscription>>,
    closed: bool,
}

impl Delivery {
    /// Adds a subscription to the round.
    pub(super) fn add(&self, subscription: Arc<Subscription>) {
        {
            let mut state = self.state();
            if state.closed {
                return;
            }
            state.ready.push_back(subscription);
        }
        self.work.notify_one();
    }

    pub(super) fn close(&self) {
        let ready = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.ready)
        };
        drop(ready);
        self.work.notify_one();
    }

    /// Returns the next subscription with work; `None` at the end.
    async fn next(&self) -> Option<Arc<Subscription>> {
        loop {
            {
                let mut state = self.state();
                if state.closed {
                    return None;
                }
                if let Some(subscription) = state.ready.pop_front() {
                    return Some(subscription);
                }
            }
            self.work.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the task. It ends with the connection.
pub(super) fn start(client: Arc<Client>) {
    tokio::spawn(async move {
        while let Some(subscription) = client.delivery.next().await {
            match subscription.send_batch(&client).await {
                Ok(more) => {
                    if more {
                        subscription.schedule();
                    }
                }
                // The connection has ended.
                Err(_) => return,
            }
            tokio::task::consume_budget().await;
        }
    });
}
