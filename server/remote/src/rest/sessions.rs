//! The routes `/sessions…` of Otter's document, besides turns and events.

use acp_sdk::Meta;
use acp_server::event::StoredEvent;
use acp_server::internal::clock;
use acp_server::store::Pages;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answer::EndedTurn;
use super::body::Object;
use super::choices::Choices;
use super::events::DocumentedEvent;
use super::failure::Failure;
use super::long_reads::LongRead;
use super::query::{Parameters, RowsQuery};
use super::rows::Row;
use super::state::{Id, Rest, StoredSession};
use super::stream;
use super::times::seconds;
use super::turns::{AcceptedTurn, accepted, prompt};
use super::usage::{DOLLARS, Usage};
use super::wanted::Wanted;
use crate::caller::Caller;

/// Sessions in a list without a limit.
const SESSIONS: usize = 20;

/// A new session with its first prompt.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct NewRun {
    #[schema(value_type = String, required = true)]
    prompt: Option<String>,
    #[serde(flatten)]
    choices: Choices,
    /// The working directory, an absolute path. Default: that of the server.
    #[schema(pattern = "^/")]
    cwd: Option<String>,
    /// Requests to the model in the turn. Refused for agents that do not offer it.
    max_steps: Option<u64>,
    /// The tools that there are in the turn. Refused for agents that do not offer it.
    allowed_tools: Option<Vec<String>>,
    // Not in the schema, because it is refused: the store keeps every session.
    #[schema(ignore)]
    persist: Option<bool>,
}

/// What is said of a new session's turn.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "for the document")]
pub(super) enum CreatedTurn {
    Ended(Box<EndedTurn>),
    Accepted(AcceptedTurn),
}

/// Limits of a turn, as agents that declare them take them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TurnLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_tools: Option<Vec<String>>,
}

impl TurnLimits {
    fn meta(&self) -> Option<Meta> {
        let is_limited = self.max_steps.is_some() || self.allowed_tools.is_some();
        is_limited.then(|| Meta::new().with("acp-sdk", self))
    }
}

/// Sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionList {
    sessions: Vec<SessionEntry>,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionEntry {
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
    /// The time of creation: ISO 8601 in UTC.
    started_at: String,
    /// The end of the last turn: ISO 8601 in UTC; `null` before the first, while one runs, and after its
    /// server was killed until the session is opened.
    ended_at: Option<String>,
    /// `null` if the agent offers no choice, or it is not known without opening the session.
    model: Option<String>,
    /// The beginning of the conversation.
    prompt: Option<String>,
    /// Whether the last turn ended by itself, with the stop reason `end_turn`; `null` before.
    success: Option<bool>,
    /// The cost in dollars; `null` if the agent reported none.
    cost_usd: Option<f64>,
    /// Tokens of all kinds; `null` if the agent does not count them.
    total_tokens: Option<u64>,
    /// Of all turns. Those that a fork has copied count in its source.
    #[serde(flatten)]
    usage: Usage,
    /// Messages of the agent.
    steps: u64,
    tool_calls: u64,
    turns: u64,
    /// The name that the agent announces.
    source: String,
    /// The name of the agent at this server.
    agent: String,
}

/// A session with all of its events.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WholeSession {
    session_id: String,
    summary: SessionEntry,
    #[schema(value_type = Vec<Object>)]
    events: Vec<Box<RawValue>>,
}

pub(super) async fn list_sessions(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<RowsQuery>,
) -> Result<Json<SessionList>, Failure> {
    let filters = rest.filters(&caller, &query, SESSIONS)?.exactly();
    let rows = rest.rows(&filters, "sessions_list_failed").await?;
    let sessions = rows.into_iter().map(entry).collect();
    Ok(Json(SessionList { sessions }))
}

pub(super) async fn create_run(
    State(rest): State<Rest>,
    caller: Caller,
    wanted: Wanted,
    Object(new): Object<NewRun>,
) -> Result<Response, Failure> {
    let text = new
        .prompt
        .ok_or_else(|| Failure::bad_request("missing_prompt"))?;
    // What would be ignored must not seem to hold: a list of tools is a restriction.
    let limits = TurnLimits {
        max_steps: new.max_steps,
        allowed_tools: new.allowed_tools,
    };
    let agent = rest.agent(new.choices.agent())?;
    let takes_limits = agent.server().info().turn_limits;
    let unsupported = [
        ("max_steps", limits.max_steps.is_some() && !takes_limits),
        (
            "allowed_tools",
            limits.allowed_tools.is_some() && !takes_limits,
        ),
        ("persist", new.persist == Some(false)),
    ];
    if let Some((field, _)) = unsupported.iter().find(|(_, is_asked)| *is_asked) {
        let message = format!("`{field}` is not offered by this agent; leave it out");
        return Err(Failure::bad_request("unsupported_field").message(message));
    }
    let waiting = rest.waiting(&caller, &wanted)?;
    let key = wanted.key.as_deref();
    let (session, is_new) = rest.create(&caller, new.cwd, key, &new.choices).await?;
    match prompt(&session, vec![text.into()], key, limits.meta()).await {
        Ok(queued) => {
            let status = StatusCode::CREATED;
            let accepted = accepted(&queued, session.id(), status, status);
            let place = HeaderValue::from_str(&format!("/sessions/{}", session.id()));
            let answer = rest.answer(caller, session, queued.prompt, wanted, waiting, accepted);
            let mut response = answer.await?;
            // A stream of events does not name its session before its end.
            if let Ok(place) = place {
                response.headers_mut().insert(header::LOCATION, place);
            }
            Ok(response)
        }
        Err(failure) => {
            if is_new {
                // A session that nobody learns of must not stay.
                let _ = rest.delete(session.id()).await;
            }
            Err(failure)
        }
    }
}

pub(super) async fn get_whole_session(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, Failure> {
    let record = rest.record(&id).await?;
    let read = rest.long_reads().begin(&caller)?;
    whole(&rest, record, read).await
}

pub(super) async fn delete_session(
    State(rest): State<Rest>,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    rest.delete(&id).await
}

/// Returns a session with its events as a response that is written as it is read.
pub(super) async fn whole(
    rest: &Rest,
    record: StoredSession,
    read: LongRead,
) -> Result<Response, Failure> {
    let pages = Pages::new(
        record.agent.server().store().clone(),
        &record.id,
        0,
        record.last_event,
    );
    let row = rest.row(record, "session_read_failed").await?;
    let whole = WholeSession {
        session_id: row.record.id.to_string(),
        summary: entry(row),
        events: Vec::new(),
    };
    let mut head = serde_json::to_string(&whole)
        .map_err(|error| Failure::internal("session_read_failed", error.to_string()))?;
    // The list of events is the last member.
    head.truncate(head.len() - "]}".len());
    let mut is_first = true;
    let event = move |event: StoredEvent<'_>, output: &mut String| {
        if !std::mem::take(&mut is_first) {
            output.push(',');
        }
        output.push_str(&DocumentedEvent::json(event));
    };
    let body = Body::from_stream(stream::pieces(read, pages, head, event, "]}".to_owned()));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn entry(row: Row) -> SessionEntry {
    let Row {
        record: StoredSession { record, agent },
        model,
        summary,
    } = row;
    let totals = &summary.totals;
    SessionEntry {
        session_id: record.id.to_string(),
        created_at: seconds(&record.created_at),
        last_touched: seconds(&record.updated_at),
        event_count: record.last_event,
        oldest_event: record.oldest_event,
        truncated: record.is_truncated(),
        ended_at: summary.ended_at.map(clock::text),
        working_dir: record.cwd,
        title: record.title,
        started_at: record.created_at,
        model,
        prompt: summary.prompt,
        success: summary.success,
        cost_usd: totals.costs.get(DOLLARS),
        total_tokens: totals.tokens.total_tokens,
        usage: Usage::of_turns(totals),
        steps: summary.steps,
        tool_calls: summary.tool_calls,
        turns: totals.turns,
        source: agent.announced_name().to_owned(),
        agent: agent.name().to_owned(),
    }
}
