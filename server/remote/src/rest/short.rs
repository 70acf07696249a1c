//! The routes `/session…` of Otter's code, besides messages and events.

use acp_sdk::v1::SessionId;
use acp_server::Session;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::body::Object;
use super::choices::Choices;
use super::failure::Failure;
use super::query::{Parameters, RowsQuery};
use super::state::{Id, Rest, StoredSession};
use super::times::seconds;
use crate::access::{IssueError, Token};
use crate::agents::ServedAgent;
use crate::caller::Caller;

/// Sessions in a list without a limit.
const IDS: usize = 1_000;

/// A new session.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct NewSession {
    /// The working directory, an absolute path. Default: that of the server.
    #[schema(pattern = "^/")]
    working_dir: Option<String>,
    #[serde(flatten)]
    choices: Choices,
}

/// A session that has been created.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CreatedSession {
    session_id: String,
    /// The working directory, an absolute path.
    working_dir: String,
    /// Seconds since 1970.
    created_at: f64,
    /// A token that opens this session only.
    session_token: String,
    /// The name of the agent.
    agent: String,
}

/// The ids of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionIds {
    sessions: Vec<String>,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionState {
    session_id: String,
    /// The working directory, an absolute path.
    working_dir: String,
    /// Seconds since 1970.
    created_at: f64,
    /// The time of the last activity, in seconds since 1970.
    last_touched: f64,
    /// The number of the last event.
    event_count: u64,
    /// The number of the oldest event that is still kept.
    oldest_event: u64,
    /// Whether older events were removed.
    truncated: bool,
    title: Option<String>,
    /// `idle`, `running`, `cancelling` or `closed`; `stored` if it is not in memory.
    state: String,
    /// Permissions that the running turn waits for, for `POST /tool/approve`.
    pending_permissions: Vec<String>,
    /// The name of the agent.
    agent: String,
}

/// A session's token.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionToken {
    session_token: String,
}

pub(super) async fn create_session(
    State(rest): State<Rest>,
    caller: Caller,
    Object(new): Object<NewSession>,
) -> Result<Response, Failure> {
    let (session, _) = rest
        .create(&caller, new.working_dir, None, &new.choices)
        .await?;
    let id = session.id();
    let token = match rest.issue_token(id).await {
        Ok(token) => token,
        Err(failure) => {
            // A session that nobody learns of must not stay.
            let _ = rest.delete(id).await;
            return Err(failure);
        }
    };
    let record = rest.record(id).await?;
    let body = CreatedSession {
        session_id: id.to_string(),
        working_dir: record.cwd.clone(),
        created_at: seconds(&record.created_at),
        agent: record.agent.name().to_owned(),
        session_token: token.secret().to_owned(),
    };
    Ok((StatusCode::CREATED, no_store(), Json(body)).into_response())
}

pub(super) async fn list_session_ids(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<RowsQuery>,
) -> Result<Json<SessionIds>, Failure> {
    let filters = rest.filters(&caller, &query, IDS)?;
    let sessions = rest.session_ids(&filters, "sessions_list_failed").await?;
    Ok(Json(SessionIds { sessions }))
}

pub(super) async fn get_session(
    State(rest): State<Rest>,
    Id(id): Id,
) -> Result<Json<SessionState>, Failure> {
    let record = rest.record(&id).await?;
    let session = rest.in_memory(&id);
    Ok(Json(state_of(record, session.as_ref())))
}

pub(super) async fn rotate_token(
    State(rest): State<Rest>,
    Id(id): Id,
) -> Result<Response, Failure> {
    rest.record(&id).await?;
    let token = rest.issue_token(&id).await?;
    let body = SessionToken {
        session_token: token.secret().to_owned(),
    };
    Ok((no_store(), Json(body)).into_response())
}

impl Rest {
    /// Creates a session; with a key, once. Returns whether it is new.
    ///
    /// # Errors
    ///
    /// 400 for a path that is not absolute; those of [`Choices::apply`]; 500 when the agent or the store fails.
    pub(super) async fn create(
        &self,
        caller: &Caller,
        directory: Option<String>,
        key: Option<&str>,
        choices: &Choices,
    ) -> Result<(Session, bool), Failure> {
        let agent = self.agent(choices.agent())?;
        if agent.requires_login(&caller.access) {
            return Err(Failure::login_required());
        }
        let server = agent.server();
        let directory = match directory {
            Some(directory) => directory,
            None => self.directory(agent)?,
        };
        if !std::path::Path::new(&directory).is_absolute() {
            let failure = Failure::bad_request("invalid_working_dir");
            return Err(failure.message(format!("{directory:?} is not an absolute path")));
        }
        let created = match key {
            // The id stands for the key, so a restart or another process finds it.
            Some(key) => {
                let among = self.agents().are_several().then(|| agent.name());
                let id = SessionId::from(once_id(key, among));
                server.create_session_once(id, directory).await
            }
            None => {
                let created = server.create_session(directory).await;
                created.map(|session| (session, true))
            }
        };
        let (session, is_new) =
            created.map_err(|error| Failure::agent("session_create_failed", &error))?;
        if is_new && let Err(failure) = choices.apply(&session).await {
            // A session that nobody learns of must not stay.
            let _ = self.delete(session.id()).await;
            return Err(failure);
        }
        Ok((session, is_new))
    }

    /// Returns the working directory of an agent, which is that of the server unless it has its own.
    ///
    /// # Errors
    ///
    /// 500 if there is none.
    pub(super) fn directory(&self, agent: &ServedAgent) -> Result<String, Failure> {
        agent.session_directory().map_err(|error| {
            let detail = format!("the server has no working directory: {error}");
            Failure::internal("no_working_dir", detail)
        })
    }

    /// Issues the token of a session, elsewhere: the file that keeps it may be written.
    ///
    /// # Errors
    ///
    /// 503, or 500 when the file cannot be written.
    async fn issue_token(&self, id: &SessionId) -> Result<Token, Failure> {
        let (tokens, id) = (self.tokens().clone(), id.clone());
        let issued = tokio::task::spawn_blocking(move || tokens.issue(&id)).await;
        let failed = |reason: String| Failure::internal("no_session_token", reason);
        match issued.map_err(|error| failed(error.to_string()))? {
            Ok(token) => Ok(token),
            Err(error @ IssueError::File(_)) => Err(failed(error.to_string())),
            Err(error) => Err(Failure::overloaded("no_session_token").message(error.to_string())),
        }
    }

    /// Deletes a session. [`Rest`] is notified and ends its token.
    ///
    /// # Errors
    ///
    /// 404, or 500 when the store fails.
    pub(super) async fn delete(&self, id: &SessionId) -> Result<StatusCode, Failure> {
        let agent = self.agent_of(id).await?;
        let deleted = agent.server().delete_session(id).await;
        let deleted = deleted.map_err(|error| Failure::agent("session_delete_failed", &error))?;
        if !deleted {
            return Err(Failure::session_not_found());
        }
        Ok(StatusCode::NO_CONTENT)
    }
}

/// Returns the id of the session that a request with this key creates; with the name of its agent among
/// several, because ids are unique in all stores.
fn once_id(key: &str, agent: Option<&str>) -> String {
    let hash = match agent {
        Some(agent) => Sha256::digest(format!("session of {key} at {agent}")),
        None => Sha256::digest(format!("session of {key}")),
    };
    let digits = hash.iter().take(16).map(|byte| format!("{byte:02x}"));
    format!("sess_{}", digits.collect::<String>())
}

fn state_of(stored: StoredSession, session: Option<&Session>) -> SessionState {
    let StoredSession { record, agent } = stored;
    let truncated = record.is_truncated();
    let state = session.map_or("stored", |session| session.phase().name());
    let pending = session
        .map(Session::pending_permissions)
        .unwrap_or_default();
    let pending = pending.iter().map(|pending| pending.question.0.to_string());
    SessionState {
        session_id: record.id.to_string(),
        working_dir: record.cwd,
        created_at: seconds(&record.created_at),
        last_touched: seconds(&record.updated_at),
        event_count: record.last_event,
        oldest_event: record.oldest_event,
        truncated,
        title: record.title,
        state: state.to_owned(),
        pending_permissions: pending.collect(),
        agent: agent.name().to_owned(),
    }
}

fn no_store() -> [(header::HeaderName, HeaderValue); 1] {
    [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))]
}
