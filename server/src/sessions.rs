//! The sessions of the reference agent, in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::*;
use acp_sdk::{Error, Result};
use tokio_util::sync::CancellationToken;

/// Updates kept for replay; the oldest go first.
const HISTORY: usize = 10_000;

/// One session. Its prompts are handled one after the other, in the order of arrival.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) cwd: String,
    /// Held by the prompt that is being handled; tokio's mutex is fair.
    pub(crate) turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    mode: String,
    model: String,
    verbose: bool,
    history: VecDeque<SessionUpdate>,
    /// Cancels every prompt that has arrived so far; later ones get a new token.
    cancel: CancellationToken,
}

impl Session {
    fn new(id: SessionId, cwd: String) -> Self {
        let state = State {
            mode: "ask".to_owned(),
            model: "small".to_owned(),
            verbose: false,
            history: VecDeque::new(),
            cancel: CancellationToken::new(),
        };
        Self {
            id,
            cwd,
            turn: tokio::sync::Mutex::new(()),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of a prompt that arrives now.
    pub(crate) fn cancellation(&self) -> CancellationToken {
        self.state().cancel.clone()
    }

    /// Cancels what has arrived; a cancel while nothing runs does not hit the next prompt.
    pub(crate) fn cancel(&self) {
        std::mem::take(&mut self.state().cancel).cancel();
    }

    pub(crate) fn remember(&self, update: SessionUpdate) {
        let history = &mut self.state().history;
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(update);
    }

    pub(crate) fn history(&self) -> Vec<SessionUpdate> {
        self.state().history.iter().cloned().collect()
    }

    pub(crate) fn modes(&self) -> SessionModeState {
        let modes = vec![
            SessionMode::new("ask", "Ask"),
            SessionMode::new("code", "Code"),
        ];
        SessionModeState::new(self.state().mode.as_str(), modes)
    }

    pub(crate) fn set_mode(&self, mode: &str) -> Result<()> {
        if !["ask", "code"].contains(&mode) {
            let reason = format!("unknown mode {mode:?}; there are \"ask\" and \"code\"");
            return Err(Error::invalid_params("/modeId", reason));
        }
        mode.clone_into(&mut self.state().mode);
        Ok(())
    }

    pub(crate) fn config(&self) -> Vec<SessionConfigOption> {
        let state = self.state();
        let models = vec![
            SessionConfigSelectOption::new("small", "Small"),
            SessionConfigSelectOption::new("large", "Large"),
        ];
        let options = SessionConfigSelectOptions::Ungrouped(models);
        let model = SessionConfigSelect::new(state.model.as_str(), options);
        let verbose = SessionConfigBoolean::new(state.verbose);
        vec![
            SessionConfigOption::new("model", "Model", model)
                .with_category(SessionConfigOptionCategory::Model),
            SessionConfigOption::new("verbose", "Verbose", verbose),
        ]
    }

    pub(crate) fn set_config(&self, id: &str, value: &SessionConfigOptionValue) -> Result<()> {
        let mut state = self.state();
        match (id, value) {
            ("verbose", SessionConfigOptionValue::Boolean(value)) => state.verbose = value.value,
            ("model", SessionConfigOptionValue::ValueId(value))
                if ["small", "large"].contains(&value.value.as_str()) =>
            {
                value.value.as_str().clone_into(&mut state.model);
            }
            ("verbose" | "model", _) => {
                let reason = format!("the option {id:?} does not take this value");
                return Err(Error::invalid_params("/value", reason));
            }
            _ => {
                return Err(Error::invalid_params(
                    "/configId",
                    format!("no option {id:?}"),
                ));
            }
        }
        Ok(())
    }
}

/// Every session by its id, in the order of creation.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    created: u64,
    sessions: BTreeMap<String, Arc<Session>>,
}

/// Sessions to a page of `session/list`.
const PAGE: usize = 20;

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn create(&self, cwd: String) -> Arc<Session> {
        let mut table = self.table();
        table.created += 1;
        let id = format!("session-{:08}", table.created);
        let session = Arc::new(Session::new(SessionId::from(id.as_str()), cwd));
        table.sessions.insert(id, session.clone());
        session
    }

    pub(crate) fn find(&self, id: &SessionId) -> Result<Arc<Session>> {
        let session = self.table().sessions.get(id.as_str()).cloned();
        session.ok_or_else(|| Error::resource_not_found(format!("session {id}")))
    }

    pub(crate) fn remove(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.table().sessions.remove(id.as_str())
    }

    /// One page and the cursor of the next. A cursor is the id of the last session seen.
    pub(crate) fn page(
        &self,
        cwd: Option<&str>,
        cursor: Option<&str>,
    ) -> (Vec<SessionInfo>, Option<String>) {
        let table = self.table();
        let mut matching = table
            .sessions
            .values()
            .filter(|session| cursor.is_none_or(|cursor| session.id.as_str() > cursor))
            .filter(|session| cwd.is_none_or(|cwd| session.cwd == cwd));
        let page: Vec<_> = matching.by_ref().take(PAGE).collect();
        let next = matching
            .next()
            .and(page.last())
            .map(|last| last.id.to_string());
        let infos = page
            .iter()
            .map(|s| SessionInfo::new(s.id.clone(), s.cwd.clone()))
            .collect();
        (infos, next)
    }
}
