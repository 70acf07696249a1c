//! What a session takes back when a commit fails: changes and questions.
//!
//! A change of settings, title or the handler's data counts at once, so that what follows builds on
//! it. If the store refuses the commit, the event of the change does not exist, and the session must
//! be as it was before. A question whose event does not exist ends with the store's error. If nothing
//! can be committed any more, the session is closed.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::Json;

use super::{Question, Session, SessionInner, Settings};
use crate::connection::send_state_of;
use crate::log::{Appender, Listener};
use crate::store::StoreError;

/// The changes since the last commit that is known here.
#[derive(Default)]
pub(crate) struct Uncommitted {
    /// By the number of the first event of the change.
    changes: VecDeque<(u64, Before)>,
    /// Questions whose events could not be committed.
    lost: Vec<Arc<Question>>,
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
    }
}

impl Listener for SessionInner {
    /// What is committed is dropped with the next change.
    fn committed(&self) {}

    fn rolled_back(&self, last: u64) {
        let mut state = self.state();
        state.queue.rolled_back(last);
        let lost = state.questions.split_off(&(last + 1));
        state.uncommitted.lost.extend(lost.into_values());
        let changes = std::mem::take(&mut state.uncommitted.changes);
        let first = changes.into_iter().find(|(number, _)| *number > last);
        if let Some((_, before)) = first {
            state.settings = before.settings;
            state.title = before.title;
            state.data = before.data;
        }
    }

    fn failed(&self, error: &StoreError) {
        let lost = std::mem::take(&mut self.state().uncommitted.lost);
        for question in lost {
            question.fail(error.clone().into());
        }
        let clients = self.state().clients.clone();
        clients.iter().for_each(send_state_of);
        if self.log.ended().is_some() {
            self.core.close_ended(&self.id);
        }
    }
}
