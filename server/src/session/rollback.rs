//! Settings, title and the handler's data as they were before changes that are not committed yet.
//!
//! A change counts at once, so that what follows builds on it. If the store refuses the commit, the
//! event of the change does not exist, and the session must be as it was before.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};

use acp_sdk::Json;

use super::{Inner, Session, Settings};
use crate::log::{Appender, Listener};

/// The changes since the last commit that is known here.
#[derive(Default)]
pub(crate) struct Uncommitted {
    /// By the number of the first event of the change.
    changes: VecDeque<(u64, Before)>,
    /// Whether the session is notified of failed commits.
    listens: bool,
}

struct Before {
    settings: Settings,
    title: Option<String>,
    data: Option<Json>,
}

impl Session {
    /// Keeps settings, title and data. Must be called under the log's lock before they are changed.
    pub(crate) fn before_change(&self, appender: &mut Appender<'_>) {
        let (committed, next) = (appender.committed(), appender.next_number());
        let mut state = self.state();
        let before = Before {
            settings: state.settings.clone(),
            title: state.title.clone(),
            data: state.data.clone(),
        };
        let uncommitted = &mut state.uncommitted;
        while let Some((number, _)) = uncommitted.changes.front()
            && *number <= committed
        {
            uncommitted.changes.pop_front();
        }
        uncommitted.changes.push_back((next, before));
        if !std::mem::replace(&mut uncommitted.listens, true) {
            let listener: Weak<Inner> = Arc::downgrade(&self.0);
            appender.subscribe(listener);
        }
    }
}

impl Listener for Inner {
    /// What is committed is dropped with the next change.
    fn committed(&self, _: u64) {}

    fn rolled_back(&self, last: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = std::mem::take(&mut state.uncommitted.changes);
        let first = changes.into_iter().find(|(number, _)| *number > last);
        if let Some((_, before)) = first {
            state.settings = before.settings;
            state.title = before.title;
            state.data = before.data;
        }
    }
}
