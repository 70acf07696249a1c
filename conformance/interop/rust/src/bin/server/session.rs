//! The sessions of all connections.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use agent_client_protocol::v1::schema::{
    ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo, SessionUpdate,
};
use agent_client_protocol::{Error, Result};
use tokio::sync::watch;

static SESSIONS: Mutex<BTreeMap<String, Arc<Session>>> = Mutex::new(BTreeMap::new());

pub struct Session {
    pub cwd: PathBuf,
    /// All updates but those of `stream`, for replay.
    pub history: Mutex<Vec<SessionUpdate>>,
    /// Changes with each cancel.
    pub cancels: watch::Sender<u64>,
    /// Held by the turn that runs.
    pub turn: tokio::sync::Mutex<()>,
}

impl Session {
    pub fn cancel(&self) {
        self.cancels.send_modify(|count| *count += 1);
    }
}

pub fn create(cwd: PathBuf) -> SessionId {
    let mut sessions = SESSIONS.lock().unwrap();
    let id = format!("session-{:08}", sessions.len());
    let session = Session {
        cwd,
        history: Mutex::default(),
        cancels: watch::Sender::new(0),
        turn: tokio::sync::Mutex::default(),
    };
    sessions.insert(id.clone(), Arc::new(session));
    SessionId::new(id)
}

pub fn find(id: &SessionId) -> Result<Arc<Session>> {
    let found = SESSIONS.lock().unwrap().get(&*id.0).cloned();
    found.ok_or_else(|| Error::new(-32002, "Resource not found").data(id.to_string()))
}

pub fn absolute(cwd: &Path) -> Result<()> {
    if cwd.is_absolute() {
        return Ok(());
    }
    Err(Error::invalid_params().data(format!("{} is not an absolute path", cwd.display())))
}

pub fn list(request: &ListSessionsRequest) -> Result<ListSessionsResponse> {
    if request.cursor.is_some() {
        return Err(Error::invalid_params().data("there is one page only"));
    }
    let sessions = SESSIONS.lock().unwrap();
    let asked = sessions
        .iter()
        .filter(|(_, session)| request.cwd.as_ref().is_none_or(|cwd| *cwd == session.cwd));
    Ok(ListSessionsResponse::new(
        asked
            .map(|(id, session)| SessionInfo::new(id.clone(), session.cwd.clone()))
            .collect(),
    ))
}
