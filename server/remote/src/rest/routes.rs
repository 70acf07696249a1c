//! All routes of the REST interface.
//!
//! Those of Otter's code (`/session…`) and those that Otter's document adds (`/sessions…`) are over the
//! same operations.

use acp_server::UndoDirection;
use utoipa::openapi::HttpMethod::{Delete, Get, Post};
use utoipa::openapi::Required::{False, True};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::answer::EndedTurn;
use super::commands::{CommandList, CommandPath, Invocation, Invoked, OfSession};
use super::events::{From, LastEventId};
use super::query::RowsQuery;
use super::route::{Right, Route};
use super::transcript::FormatQuery;
use super::turns::{AcceptedMessage, AcceptedTurn, CancelQuery, Message, NewTurn};
use super::wanted::{KeyHeader, PromptHeaders, WaitQuery};
use super::{
    agent, approve, commands, cost, events, runs, sessions, share, short, steer, transcript, turns,
    undo,
};
use crate::health::Health;

const EVENTS: &str = "text/event-stream";

pub(super) fn all() -> Vec<Route> {
    vec![
        Route::new(Post, "/session", Right::Full, short::create_session)
            .about("session", "create_session", "Creates a session, and issues a token that opens nothing else.")
            .body::<short::NewSession>(False)
            .answers::<short::CreatedSession>(201, "The session and its token")
            .refuses(400, "No JSON object, no absolute path, `agent_not_found`, or `invalid_setting`")
            .refuses(404, "`model_not_found`: the agent does not offer it"),
        Route::new(Get, "/session", Right::Read, short::list_session_ids)
            .about("session", "list_session_ids", "Lists the ids of the sessions, the latest activity first.")
            .takes::<RowsQuery>()
            .answers::<short::SessionIds>(200, "The ids")
            .refuses(400, "`agent_not_found`, or a parameter cannot be understood"),
        Route::new(Get, "/session/{id}", Right::ReadSession, short::get_session)
            .about("session", "get_session", "Returns a session.")
            .answers::<short::SessionState>(200, "The session"),
        delete("/session/{id}").about("session", "delete_session", DELETE),
        prompt(Route::new(Post, "/session/{id}/message", Right::WriteSession, turns::send_message))
            .about("session", "send_message", "Sends a message. It is answered in a turn, after those that wait already.")
            .body::<Message>(True)
            .answers::<AcceptedMessage>(202, "The message")
            .refuses(400, "`missing_text`, or no JSON object"),
        cancel("/session/{id}/cancel").about("session", "cancel_session", CANCEL),
        stream("/session/{id}/events")
            .about(
                "session",
                "session_events",
                "Streams the events of a session. The stream stays open over turns, and ends with the session.",
            )
            .answers_text(200, "Events `user_message`, `loop_event`, `result`, `error`, `permission_request`, `gap`", EVENTS),
        Route::new(Post, "/session/{id}/rotate-token", Right::Admin, short::rotate_token)
            .about(
                "session",
                "rotate_token",
                "Replaces the token of a session. The earlier one ends, and the streams that it opened.",
            )
            .answers::<short::SessionToken>(200, "The new token")
            .refuses(403, "`admin_only`: this needs the server's token"),
        Route::new(Post, "/tool/approve", Right::Full, approve::approve_tool)
            .about("session", "approve_tool", "Answers a permission request. The first answer counts, whoever gives it.")
            .body::<approve::Approval>(True)
            .answers::<approve::Resolved>(200, "The request is answered")
            .refuses(400, "`missing_session_id_or_permission_id`, `missing_approved`, `unknown_option`, or no JSON object")
            .refuses(
                404,
                "`session_not_found`; `permission_not_found`: there is no such request, or it is answered or \
                 withdrawn already",
            )
            .refuses(409, "`no_option`: no option allows, or none rejects"),
        Route::new(Post, "/sessions", Right::Full, sessions::create_run)
            .about("sessions", "create_run", "Creates a session and begins its first turn.")
            .takes::<WaitQuery>()
            .takes::<PromptHeaders>()
            .body::<sessions::NewRun>(True)
            .answers_text(200, "The events of the turn", EVENTS)
            .answers::<sessions::CreatedTurn>(
                201,
                "The session and its turn; or the result of the turn, if it was waited for",
            )
            .refuses(
                400,
                "`missing_prompt`, `agent_not_found`, `invalid_working_dir`, `invalid_setting`, or no JSON object; \
                 `unsupported_field` for `persist: false`, and for `max_steps` and `allowed_tools` \
                 at agents that do not offer them",
            )
            .refuses(404, "`model_not_found`: the agent does not offer it"),
        Route::new(Get, "/sessions", Right::Read, sessions::list_sessions)
            .about("sessions", "list_sessions", "Lists sessions, the latest activity first.")
            .takes::<RowsQuery>()
            .answers::<sessions::SessionList>(200, "The sessions; 20 unless `limit` says otherwise")
            .refuses(400, "`agent_not_found`, or a parameter cannot be understood"),
        Route::new(Get, "/sessions/{id}", Right::ReadSession, sessions::get_whole_session)
            .about("sessions", "get_whole_session", "Returns a session with all of its events.")
            .answers::<sessions::WholeSession>(200, "The session")
            .refuses(503, "`too_many_reads`"),
        delete("/sessions/{id}").about("sessions", "delete_whole_session", DELETE),
        prompt(Route::new(Post, "/sessions/{id}/turns", Right::WriteSession, turns::create_turn))
            .about("sessions", "create_turn", "Begins a turn, after those that wait already.")
            .body::<NewTurn>(True)
            .answers::<AcceptedTurn>(202, "The turn")
            .refuses(400, "`missing_prompt`, or no JSON object"),
        Route::new(Post, "/sessions/{id}/steer", Right::WriteSession, steer::steer_turn)
            .about(
                "sessions",
                "steer_turn",
                "Gives the running turn further input. The answer comes when the turn has it, or has ended. \
                 Hanging up takes it back, unless the turn has it.",
            )
            .takes::<KeyHeader>()
            .body::<steer::MoreInput>(True)
            .answers::<steer::SteeredTurn>(200, "The turn has it")
            .answers::<steer::SteeredTurn>(202, "It is a prompt that waits")
            .refuses(400, "`missing_prompt`, or no JSON object")
            .refuses(409, "`no_turn`, `turn_ended`, `cancelled` or `not_supported`: it was not used"),
        restore("/sessions/{id}/undo", UndoDirection::Undo).about(
            "sessions",
            "undo_turn",
            "Restores the files that the newest turn has changed. The conversation stays as it is.",
        ),
        restore("/sessions/{id}/redo", UndoDirection::Redo).about(
            "sessions",
            "redo_turn",
            "Restores the files that the latest undo has replaced.",
        ),
        cancel("/sessions/{id}/cancel").about("sessions", "cancel_turn", CANCEL),
        Route::new(Post, "/sessions/{id}/close", Right::WriteSession, turns::close_session)
            .about(
                "sessions",
                "close_session",
                "Closes a session, as `session/close` does for a client at `/acp`: its turn and the queued \
                 prompts of REST and `/rpc` end, and it leaves memory. With a client attached only the \
                 latter end.",
            )
            .answers_nothing(204, "The session is closed, or a client keeps it open"),
        stream("/sessions/{id}/events")
            .about(
                "sessions",
                "turn_events",
                "Streams the events of a session up to the end of its turns, then an event `end`.",
            )
            .answers_text(200, "Events named as in docs/rest.md, and `end`", EVENTS),
        Route::new(Get, "/sessions/{id}/transcript", Right::ReadSession, transcript::transcript)
            .about("sessions", "transcript", "Renders a session for people, or as `GET /sessions/{id}` has it.")
            .takes::<FormatQuery>()
            .answers_text(200, "The conversation", "text/html")
            .answers_text(200, "The conversation", "text/markdown")
            .content(
                200,
                "The conversation",
                "application/json",
                ObjectBuilder::new().schema_type(Type::Object).build().into(),
            )
            .refuses(400, "`invalid_query`")
            .refuses(503, "`too_many_reads`"),
        Route::new(Post, "/sessions/{id}/share", Right::WriteSession, share::share)
            .about("sessions", "share", "Hands a transcript out.")
            .body::<share::Sink>(True)
            .answers::<share::Shared>(200, "Where it is")
            .refuses(400, "`invalid_sink`, `invalid_format`, `invalid_url`, or no JSON object")
            .refuses(403, "`sink_disabled`, `url_not_allowed`, `forbidden`")
            .refuses(413, "`too_large`: ask for `/transcript`")
            .refuses(502, "`upstream_failed`: the other server"),
        Route::new(Get, "/commands", Right::Read, commands::list_commands)
            .about("agent", "list_commands", "Lists the agent's slash commands.")
            .takes::<OfSession>()
            .answers::<CommandList>(200, "The commands")
            .refuses(400, "`agent_not_found`")
            .refuses(404, "`session_not_found`")
            .refuses(409, "`session_not_open`, to readers"),
        Route::new(Post, "/commands/{name}/invoke", Right::Full, commands::invoke_command)
            .about("agent", "invoke_command", "Sends a slash command as a message.")
            .takes::<CommandPath>()
            .body::<Invocation>(True)
            .answers::<Invoked>(202, "The message")
            .refuses(400, "`missing_session_id`, `args_must_be_list`, `kwargs_must_be_object`, or no JSON object")
            .refuses(404, "`session_not_found`, `command_not_found`"),
        Route::new(Get, "/runs", Right::Read, runs::list_runs)
            .about("runs", "list_runs", "Lists runs, the latest start first.")
            .takes::<RowsQuery>()
            .answers::<runs::RunList>(200, "The runs; 1,000 unless `limit` says otherwise")
            .refuses(400, "`agent_not_found`, `invalid_query`"),
        Route::new(Get, "/runs/cost", Right::Read, cost::cost_of_runs)
            .about("runs", "cost_of_runs", "Adds up what runs cost.")
            .takes::<RowsQuery>()
            .answers::<cost::RunCosts>(200, "The costs of all runs; with `limit`, of those that `/runs` lists")
            .refuses(400, "`agent_not_found`, `invalid_query`"),
        Route::new(Get, "/providers", Right::Read, agent::list_providers)
            .about("agent", "list_providers", "Lists the models that can be chosen.")
            .takes::<OfSession>()
            .answers::<agent::Providers>(200, "The models, from the config options of the sessions")
            .refuses(400, "`agent_not_found`")
            .refuses(404, "`session_not_found`")
            .refuses(409, "`session_not_open`, to readers"),
        Route::new(Get, "/info", Right::Read, agent::server_info)
            .about("agent", "server_info", "Describes the server and its agent.")
            .without_login()
            .answers::<agent::ServerInfo>(200, "The description"),
        Route::new(Get, "/agents", Right::Read, agent::list_agents)
            .about("agent", "list_agents", "Lists the agents, the default first.")
            .without_login()
            .answers::<agent::AgentList>(200, "The agents"),
        Route::new(Get, "/tools", Right::Read, agent::list_tools)
            .about("agent", "list_tools", "Lists the tools of the agents.")
            .without_login()
            .answers::<agent::ToolList>(200, "The tools of agents that name theirs, and the names of the others"),
        Route::new(Get, "/health", Right::Everybody, agent::health)
            .about("agent", "health", "Says that the server runs. Needs no token.")
            .without_login()
            .answers::<Health>(200, "It runs"),
    ]
}

const DELETE: &str =
    "Deletes a session with its events and its token. Its turns are cancelled, its streams end.";

fn delete(path: &'static str) -> Route {
    Route::new(Delete, path, Right::WriteSession, sessions::delete_session)
        .answers_nothing(204, "The session is gone")
}

const CANCEL: &str = "Cancels the running turn, and the queued ones that no client at `/acp` has sent. \
     Without any, does nothing.";

fn cancel(path: &'static str) -> Route {
    Route::new(Post, path, Right::WriteSession, turns::cancel)
        .takes::<CancelQuery>()
        .answers_nothing(204, "The turns will end with the stop reason `cancelled`")
        .refuses(400, "`invalid_query`")
        .refuses(403, "`forbidden`: `all` needs the server's token")
}

fn restore(path: &'static str, direction: UndoDirection) -> Route {
    let handler = move |rest, caller, id, how| undo::restore(direction, rest, caller, id, how);
    Route::new(Post, path, Right::WriteSession, handler)
        .body::<undo::Restoring>(False)
        .answers::<undo::Restored>(200, "What happened to the files")
        .answers::<undo::Restored>(
            409,
            "`not_applied`: what stands in the way; or `not_possible`: there is nothing to restore or a turn \
             is running, or `not_supported`",
        )
}

/// A route that takes a prompt for a session.
fn prompt(route: Route) -> Route {
    route
        .takes::<WaitQuery>()
        .takes::<PromptHeaders>()
        .answers::<EndedTurn>(200, "The result, if it was waited for; or the events")
        .answers_text(200, "", EVENTS)
        .refuses(409, "`no_turn`: the prompt was cancelled before its turn")
        .refuses(
            422,
            "`idempotency_key_reused`: the key is that of another prompt",
        )
}

fn stream(path: &'static str) -> Route {
    Route::new(Get, path, Right::ReadSession, events::stream)
        .takes::<LastEventId>()
        .takes::<From>()
        .refuses(400, "`invalid_query`")
        .refuses(409, "`session_not_open`, to readers")
        .refuses(503, "`too_many_streams`")
}
