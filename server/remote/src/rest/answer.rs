//! Answers to prompts: that one is accepted, the result of its turn, or the turn's events.

use acp_sdk::v1::ToolCall;
use acp_server::event::{StoredEvent, TurnId};
use acp_server::{PromptHandle, Session, usage};
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::events::{self, Dialect, View};
use super::failure::Failure;
use super::runs::Run;
use super::state::Rest;
use super::summary::{History, TurnSummary};
use super::wanted::{Answer, Wanted};
use crate::access::Share;
use crate::caller::Caller;

/// A turn that has ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EndedTurn {
    /// `completed`; `cancelled`; `failed` if the agent answered with an error, see `error`.
    status: String,
    message_id: String,
    /// The agent's last message, the latest 1 MiB.
    output: String,
    /// The bytes of that message that are missing at its beginning.
    output_omitted_bytes: usize,
    /// The tool calls, in order.
    calls: Vec<Call>,
    /// The number of the turn's last event.
    last_event: u64,
    #[serde(flatten)]
    run: Run,
}

/// A tool call of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Call {
    tool_call_id: String,
    title: String,
    /// The protocol's kind, such as `edit`.
    kind: String,
    /// `pending`, `in_progress`, `completed` or `failed`.
    status: String,
    /// The files that it names, absolute paths.
    paths: Vec<String>,
}

impl Call {
    fn of(call: &ToolCall) -> Self {
        let text = |json: serde_json::Result<serde_json::Value>| {
            let text = json.ok().and_then(|json| json.as_str().map(str::to_owned));
            text.unwrap_or_default()
        };
        let paths = call.locations.iter().map(|place| place.path.clone());
        Self {
            tool_call_id: call.tool_call_id.to_string(),
            title: call.title.clone(),
            kind: text(serde_json::to_value(&call.kind)),
            status: text(serde_json::to_value(&call.status)),
            paths: paths.collect(),
        }
    }
}

/// The place of a sender that waits.
pub(super) struct Waiting(Option<Share>);

/// What a route says of a prompt.
pub(super) struct Accepted {
    /// Of one that has not ended.
    pub(super) response: Response,
    /// The status of the result.
    pub(super) ended: StatusCode,
    /// The vocabulary of the events.
    pub(super) dialect: Dialect,
    /// The session's last event before it was opened, if the request has opened it.
    pub(super) opened_after: Option<u64>,
}

impl Rest {
    /// Takes what an answer needs, before anything is begun for it.
    ///
    /// # Errors
    ///
    /// 503, when as many wait as may.
    pub(super) fn waiting(&self, caller: &Caller, wanted: &Wanted) -> Result<Waiting, Failure> {
        if wanted.answer == Answer::Accepted {
            return Ok(Waiting(None));
        }
        events::place(self, caller).map(|place| Waiting(Some(place)))
    }

    /// Answers a prompt as its sender wants it. `accepted` is what is said of one that has not ended.
    ///
    /// # Errors
    ///
    /// 409, when the prompt was cancelled before its turn; 503 when its turn could not be committed; 500 when
    /// the log cannot be read.
    pub(super) async fn answer(
        &self,
        caller: Caller,
        session: Session,
        mut prompt: PromptHandle,
        wanted: Wanted,
        waiting: Waiting,
        accepted: Accepted,
    ) -> Result<Response, Failure> {
        match (wanted.answer, waiting.0) {
            (Answer::Events, Some(place)) => {
                let dialect = accepted.dialect;
                let reader = events::of_prompt(self, caller, session, prompt, dialect, place);
                Ok(events::response(reader.also_after(accepted.opened_after)))
            }
            (Answer::Result { wait, preferred }, _) => {
                let ended = async {
                    let turn = prompt.started().await;
                    let message = prompt.message_id().to_string();
                    (turn, message, prompt.result().await)
                };
                let ended = tokio::select! {
                    ended = timeout(wait, ended) => ended.ok(),
                    () = caller.ended.cancelled() => None,
                    () = self.settings().stop.cancelled() => None,
                };
                let mut response = match ended {
                    None => accepted.response,
                    // Neither its end nor, perhaps, its beginning is in the log.
                    Some((Some(_), _, result)) if result.last_event == 0 => {
                        let reason = result.stop.err().map(|error| error.to_string());
                        let reason = reason.unwrap_or_else(|| "it was cancelled".to_owned());
                        let message = format!(
                            "the turn could not be committed: {reason}. Send the prompt again with its \
                             Idempotency-Key"
                        );
                        return Err(Failure::overloaded("turn_lost").message(message));
                    }
                    Some((Some(turn), message, result)) => {
                        let last = result.last_event;
                        let ended = self.ended_turn(&session, turn, last, message).await?;
                        (accepted.ended, Json(ended)).into_response()
                    }
                    Some((None, _, result)) => {
                        let message = events::no_turn(&result);
                        return Err(Failure::new(StatusCode::CONFLICT, "no_turn").message(message));
                    }
                };
                if preferred && let Ok(applied) = format!("wait={}", wait.as_secs()).parse() {
                    let applied: HeaderValue = applied;
                    let name = HeaderName::from_static("preference-applied");
                    response.headers_mut().insert(name, applied);
                }
                Ok(response)
            }
            _ => Ok(accepted.response),
        }
    }

    /// Reads what a turn did.
    async fn ended_turn(
        &self,
        session: &Session,
        turn: TurnId,
        last: u64,
        message_id: String,
    ) -> Result<EndedTurn, Failure> {
        let failed =
            |error: acp_server::Error| Failure::internal("session_read_failed", error.to_string());
        let (mut history, mut view) = (History::default(), View::default());
        let visit = |stored: StoredEvent<'_>| {
            history.observe(stored);
            view.observe(&stored.parse());
        };
        let usage = usage::of_turn_with_events(session, turn, last, visit).await;
        let usage = usage.map_err(failed)?.ok_or_else(|| {
            let message = "the turn has ended, and its events are no longer kept";
            Failure::new(StatusCode::GONE, "turn_not_kept").message(message)
        })?;
        let mut details = Default::default();
        history.each(|turn| details = turn.details.clone());
        let summary = TurnSummary { usage, details };
        let record = self.record(session.id()).await?;
        let model = self.current_model(&record);
        let model = summary.details.model.clone().or(model);
        let run = self.run(&record, &summary, model.as_deref());
        Ok(EndedTurn {
            status: run.ending().to_owned(),
            message_id,
            output: view.output().into_owned(),
            output_omitted_bytes: view.output_omitted(),
            calls: view.calls().map(Call::of).collect(),
            last_event: last,
            run,
        })
    }
}
