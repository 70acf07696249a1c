//! The steps of a turn.

use serde_json::{Map, Value, json};

use super::run::{Player, has_code};
use super::verbs::{Begin, Content, Ending, Ends, Errors};
use crate::harness::{Conn, Outcome, inconclusive};
use crate::pattern::matches;

impl Player {
    pub(super) fn begin(
        &self,
        conn: &mut Conn,
        session: &Value,
        content: &Content,
        with: &Map<String, Value>,
    ) -> Outcome<usize> {
        let session = self.text(session)?;
        match content {
            Content::Word(word) if word == "slow" => conn.begin_slow(&session),
            Content::Word(word) => conn.begin(&session, word),
            Content::Blocks(blocks) => {
                conn.needs_turn()?;
                let mut params =
                    json!({"sessionId": session, "prompt": self.sent(&json!(blocks))?});
                self.add(&mut params, with)?;
                Ok(conn.request("session/prompt", params))
            }
        }
    }

    pub(super) fn begun(&mut self, conn: &mut Conn, step: &Begin) -> Outcome {
        self.running = self.begin(conn, &step.session, &step.begin, &Map::new())?;
        self.turns.insert(step.name().to_owned(), self.running);
        Ok(())
    }

    pub(super) fn ends(&mut self, conn: &mut Conn, step: &Ends) -> Outcome {
        let request = self.turns.get(&step.ends).copied().unwrap_or_default();
        self.ended(conn, request, &step.ending(), step.promptly)
    }

    pub(super) fn ended(
        &mut self,
        conn: &mut Conn,
        request: usize,
        ending: &Ending<'_>,
        promptly: bool,
    ) -> Outcome {
        let limit = match promptly {
            true => conn.env.timeout,
            false => conn.env.turn_timeout,
        };
        let reply = conn.turn_reply_within(request, limit)?;
        match (ending.error, &reply.answer) {
            (Some(Errors::Is(false)) | None, _) => {}
            (Some(_), Ok(_)) => {
                let reason = "expected an error for session/prompt, got a turn";
                return Err(conn.at(reply.index, reason));
            }
            (Some(errors), Err(_)) => return has_code(conn, &reply, errors, ""),
        }
        let stops = ending.stop.is_some() || ending.not_stop.is_some();
        if ending.error.is_none() && !stops {
            return Ok(());
        }
        let turn = conn.finish(request)?;
        let is_cancelled = ending.stop.is_some_and(|stop| stop == "cancelled");
        if is_cancelled && turn.end < self.cancelled {
            return inconclusive("the turn ended before it was cancelled");
        }
        let stop = match turn.stop.as_str() {
            "" => "none",
            stop => stop,
        };
        let wrong = match (ending.stop, ending.not_stop) {
            (Some(pattern), _)
                if matches(pattern, &json!(turn.stop), &mut self.bindings).is_err() =>
            {
                due(pattern)
            }
            (_, Some(other)) if other == turn.stop => format!("a stop reason other than {other}"),
            _ => return Ok(()),
        };
        Err(conn.at(turn.end, format!("expected {wrong}, got {stop}")))
    }
}

/// The stop reason of a pattern in words.
fn due(pattern: &Value) -> String {
    match pattern.as_str() {
        Some("{text}") | None => "a stop reason".to_owned(),
        Some(stop) => format!("the stop reason {stop}"),
    }
}
