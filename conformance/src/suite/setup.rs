//! The steps that most checks depend on, tried once: login, session, prompt.
//!
//! A step that fails blocks what depends on it, because its cause is one, and often not the agent:
//! a missing login, a missing model. It is a failure only where no circumstance excuses it.

use std::time::{Duration, Instant};

use acp_sdk::ErrorCode;
use serde_json::Value;

use super::report::RootCause;
use super::trouble;
use crate::harness::{Conditions, Conn, Stop};

/// How much of the setup the chosen requirements need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Nothing after `initialize`.
    #[default]
    Handshake,
    /// A session.
    Session,
    /// A prompt.
    Turn,
}

/// What the steps have shown.
#[derive(Debug, Default)]
pub(super) struct Setup {
    pub(super) conditions: Conditions,
    /// The step that failed.
    pub(super) cause: Option<RootCause>,
    /// The requirement that the failed step breaks.
    pub(super) breaks: Option<&'static str>,
    /// How long the agent took to open a session.
    pub(super) session: Option<Duration>,
    /// How long the first turn took.
    pub(super) turn: Option<Duration>,
}

/// Requires that `session/new` names a session.
const OPENS: &str = "session-setup.session-id";

/// Requires that a login suffices for it.
const LOGGED_IN: &str = "authentication.opens-sessions";

/// Requires that a request is answered, which an agent that ends in a turn does not do.
pub(super) const ANSWERED: &str = "jsonrpc.answers-once";

/// JSON-RPC's errors about the request itself, which a sound one never gets.
const REFUSALS: [ErrorCode; 4] = [
    ErrorCode::PARSE_ERROR,
    ErrorCode::INVALID_REQUEST,
    ErrorCode::METHOD_NOT_FOUND,
    ErrorCode::INVALID_PARAMS,
];

/// Tries the steps on a connection that is initialized.
pub(super) fn run(conn: &mut Conn, depth: Depth, turn_timeout: Duration) -> Setup {
    let mut setup = Setup::default();
    if depth >= Depth::Session
        && let Some(session) = setup.open(conn)
        && depth >= Depth::Turn
    {
        setup.prompt(conn, &session, turn_timeout);
    }
    setup
}

impl Setup {
    /// Opens a session, after a login if the agent demands one.
    fn open(&mut self, conn: &mut Conn) -> Option<String> {
        let started = Instant::now();
        let params = conn.setup(None);
        let mut reply = conn.call("session/new", params.clone());
        if let Ok(refused) = &reply
            && refused.code() == Some(ErrorCode::AUTHENTICATION_REQUIRED)
        {
            self.conditions.needs_login = true;
            let index = refused.index;
            match conn.login() {
                Ok(true) => reply = conn.call("session/new", params),
                Ok(false) => {
                    let evidence = conn.at(index, "");
                    let reason = "the agent refuses session/new without a login (error -32000)";
                    self.block_sessions("login", reason, &methods(conn), &evidence);
                    return None;
                }
                Err(stop) => {
                    let remedy = format!("Check the method and its credentials. {}", methods(conn));
                    self.block_sessions("login", "the login failed", &remedy, &stop);
                    return None;
                }
            }
        }
        let reply = match reply {
            Ok(reply) => reply,
            Err(stop) => {
                let remedy = "Start the agent by hand and look at its output; \
                              --turn-timeout sets how long it may take.";
                self.block_sessions(
                    "session",
                    "expected an answer to session/new, got none",
                    remedy,
                    &stop,
                );
                self.breaks = Some(OPENS);
                return None;
            }
        };
        let evidence = conn.at(reply.index, "");
        match (reply.code(), &reply.answer) {
            (_, Ok(result)) => {
                if let Some(id) = session_id(result) {
                    self.session = Some(started.elapsed());
                    return Some(id);
                }
                let reason = "expected `sessionId` in the result of session/new, got none";
                self.block_sessions("session", reason, "", &evidence);
                self.breaks = Some(OPENS);
            }
            (Some(ErrorCode::AUTHENTICATION_REQUIRED), _) => {
                let reason = "the agent still demands a login after it";
                self.block_sessions("login", reason, &methods(conn), &evidence);
                self.breaks = Some(LOGGED_IN);
            }
            (code, Err(error)) => {
                let message = trouble::message(error);
                let reason = format!("expected a result of session/new, got the error: {message}");
                let remedy = "Make sure that the agent opens sessions in an empty folder: its \
                              configuration (--env, --cwd), its network, its login (--auth-method).";
                self.block_sessions("session", &reason, remedy, &evidence);
                if code.is_some_and(|code| REFUSALS.contains(&code)) {
                    self.breaks = Some(OPENS);
                }
            }
        }
        None
    }

    /// Sends the prompt `hello`, and waits for the end of its turn.
    fn prompt(&mut self, conn: &mut Conn, session: &str, limit: Duration) {
        let Ok(request) = conn.begin(session, "hello") else {
            // A profile without the word decides nothing.
            return;
        };
        let started = Instant::now();
        let (place, result) = match conn.turn_reply_within(request, limit) {
            Ok(reply) => (reply.index, reply.answer),
            Err(stop) if conn.has_ended() => {
                let reason = "expected the end of the first turn, got the end of the agent";
                self.block_turns(reason, "Look at its standard error.", &stop);
                self.breaks = Some(ANSWERED);
                return;
            }
            // The model works, so the end is for the agent to report: the checks judge that.
            Err(_) if has_output(conn, session, request) => return,
            Err(stop) => {
                let (what, remedy) = match conn.heard_since(request).is_empty() {
                    true => (
                        "the agent sent nothing for session/prompt",
                        "Look at its log, or set --turn-timeout.",
                    ),
                    false => (
                        "the first turn had no output",
                        "Use a faster model, or set --turn-timeout.",
                    ),
                };
                self.block_turns(&format!("{what} within {limit:?}"), remedy, &stop);
                return;
            }
        };
        if self.ends_by_itself(conn) {
            return;
        }
        let evidence = conn.at(place, "");
        match result {
            Ok(state) if state.get("stopReason").and_then(Value::as_str) == Some("refusal") => {
                let remedy = "Set another text by --prompt.";
                self.block_turns("the model refused the first prompt", remedy, &evidence);
            }
            Ok(_) => self.turn = Some(started.elapsed()),
            Err(error) => {
                let code = crate::wire::error_code(&error);
                if code.is_some_and(|code| REFUSALS.contains(&code)) {
                    // The checks of prompts say more about it.
                    return;
                }
                let reason = format!("the first prompt failed: {}", trouble::message(&error));
                let remedy = match trouble::of_model(&error) {
                    true => "The model is in trouble: try again later, or use another one.",
                    false => {
                        "Check the agent's model and its credentials (--env, --auth-method); \
                         --prompt sets another text."
                    }
                };
                self.block_turns(&reason, remedy, &evidence);
            }
        }
    }

    /// Whether the agent has ended after its first turn, as one does that serves a single prompt: every
    /// later request of a connection would fail, each time another one.
    fn ends_by_itself(&mut self, conn: &mut Conn) -> bool {
        let mut meanwhile = "";
        let mut ended = conn.ended_by_itself();
        // An agent that is about to end does not answer any more.
        if ended.is_none() && conn.settle().is_err() {
            meanwhile = "; an unknown request was sent meanwhile";
            ended = conn.ended_by_itself();
        }
        let Some((how, evidence)) = ended else {
            return false;
        };
        let reason = format!(
            "the agent ended by itself ({how}) after a turn while its input was open{meanwhile}"
        );
        let remedy = "An agent serves its sessions until its input ends.";
        self.block_turns(&reason, remedy, &evidence);
        self.breaks = Some(ANSWERED);
        true
    }

    fn block_sessions(&mut self, step: &'static str, reason: &str, remedy: &str, evidence: &Stop) {
        self.conditions.no_session = Some(format!("needs a session: {reason}"));
        self.cause = Some(RootCause::new(step, reason, remedy, evidence));
    }

    fn block_turns(&mut self, reason: &str, remedy: &str, evidence: &Stop) {
        self.conditions.no_turn = Some(format!("needs a turn: {reason}"));
        self.cause = Some(RootCause::new("prompt", reason, remedy, evidence));
    }
}

fn session_id(result: &Value) -> Option<String> {
    let id = result.get("sessionId")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// Whether the agent has sent output of a turn.
fn has_output(conn: &Conn, session: &str, request: usize) -> bool {
    let mut updates = conn.recording().updates();
    updates.any(|update| {
        update.index > request && update.session == session && crate::wire::is_output(update.kind)
    })
}

/// Returns a sentence that names the offered methods and the option that chooses one.
fn methods(conn: &Conn) -> String {
    let methods = conn
        .agent
        .as_ref()
        .and_then(|agent| agent.get("authMethods"));
    let methods = methods.and_then(Value::as_array).into_iter().flatten();
    let (mut usable, mut terminal) = (Vec::new(), Vec::new());
    for method in methods {
        let text = |name: &str| method.get(name).and_then(Value::as_str);
        let Some(id) = text("methodId").or_else(|| text("id")) else {
            continue;
        };
        let name = text("name").unwrap_or_default();
        match text("type") {
            Some("terminal") => terminal.push(format!("`{id}` ({name})")),
            _ => usable.push(format!("`{id}` ({name})")),
        }
    }
    let mut words = match usable.as_slice() {
        [] => "The agent offers no method that a request can use; log in by its own command, \
               or set its variables by --env NAME=VALUE."
            .to_owned(),
        methods => format!(
            "Choose a method by --auth-method ID, or set the agent's variables by --env NAME=VALUE. \
             It offers: {}.",
            methods.join(", ")
        ),
    };
    if !terminal.is_empty() {
        words += &format!(" In a terminal, before the run: {}.", terminal.join(", "));
    }
    words
}
