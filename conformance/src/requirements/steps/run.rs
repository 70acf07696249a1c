//! Performs steps with the client that the suite plays.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::Steps;
use super::verbs::{Call, Choosable, Errors, Opening, Step};
use super::words::{described, listed};
use crate::harness::{Caps, Conn, Cx, Entry, Outcome, Reply, Stop, fail};
use crate::pattern::{Bindings, Mismatch, matches, substitute};
use crate::requirements::config_options::with_select;
use crate::requirements::media;
use crate::requirements::modes::with_modes;
use crate::wire::{Party, sets_up};

impl Steps {
    /// Performs the steps.
    ///
    /// # Errors
    /// As the step that does not come to the expected result.
    pub(crate) fn run(&self, cx: &mut Cx) -> Outcome {
        let place = self.steps.iter().position(|it| matches!(it, Step::Each(_)));
        let (once, repeated) = self.steps.split_at(place.unwrap_or(self.steps.len()));
        let Some((Step::Each(each), repeated)) = repeated.split_first() else {
            return Player::default().play(cx, once.iter().map(Next::Step));
        };
        let values = each.iter();
        let repeated = values.flat_map(|value| {
            let steps = repeated.iter().map(Next::Step);
            std::iter::once(Next::Value(value)).chain(steps)
        });
        Player::default().play(cx, once.iter().map(Next::Step).chain(repeated))
    }
}

/// What is next: a step, or the value of `{each}` from here on.
enum Next<'a> {
    Step(&'a Step),
    Value(&'a Value),
}

/// What the steps have come to.
#[derive(Default)]
pub(super) struct Player {
    pub(super) bindings: Bindings,
    /// Requests of turns by the names of these.
    pub(super) turns: HashMap<String, usize>,
    /// The turn that was begun last.
    pub(super) running: usize,
    /// Whether the agent has asked something since the last cancellation.
    was_asked: bool,
    /// The place of the last cancellation; 0 if there was none.
    pub(super) cancelled: usize,
    /// The place of the first message on the connection.
    start: usize,
    /// The place of the last line, if nothing was sent since.
    raw: Option<usize>,
}

impl Player {
    fn play<'a>(&mut self, cx: &mut Cx, steps: impl Iterator<Item = Next<'a>>) -> Outcome {
        let mut current: Option<&mut Conn> = None;
        for next in steps {
            let step = match next {
                Next::Value(value) => {
                    let value = self.sent(value)?;
                    self.bindings.insert("each".to_owned(), value);
                    continue;
                }
                Next::Step(step) => step,
            };
            let conn = match (current, step) {
                (Some(conn), step) if !matches!(step, Step::Open(_)) => conn,
                (_, Step::Open(step)) => {
                    let conn = match step.open {
                        Opening::Ready => cx.ready()?,
                        Opening::Fresh => cx.fresh()?,
                        Opening::Connected => {
                            let conn = cx.fresh()?;
                            let mut caps = conn.client_capabilities();
                            self.add(&mut caps, &step.with)?;
                            conn.open(&match step.with.is_empty() {
                                true => Caps::Full,
                                false => Caps::These(caps),
                            })?;
                            conn
                        }
                    };
                    conn.script.terminals = step.terminals;
                    self.begins(conn);
                    conn
                }
                (_, _) => {
                    let conn = cx.ready()?;
                    self.begins(conn);
                    conn
                }
            };
            self.step(conn, step)?;
            current = Some(conn);
        }
        Ok(())
    }

    fn begins(&mut self, conn: &Conn) {
        self.start = conn.mark();
        self.raw = None;
        let hello = conn.env.profile.prompt("hello", &conn.env.folder);
        let predefined = [
            ("folder", json!(conn.env.folder)),
            ("temp", json!(std::env::temp_dir())),
            ("hello", json!(hello.unwrap_or_default())),
            ("png", json!(media::png())),
            ("wav", json!(media::wav())),
        ];
        let predefined = predefined.map(|(name, value)| (name.to_owned(), value));
        self.bindings.extend(predefined);
    }

    fn step(&mut self, conn: &mut Conn, step: &Step) -> Outcome {
        let raw = self.raw.take();
        match step {
            // Performed before.
            Step::Each(_) | Step::Open(_) => Ok(()),
            Step::Needs(step) => conn.needs(step.0),
            Step::Initialized(step) => self.initialized(conn, step),
            Step::Session(step) => {
                let session = conn.session()?;
                self.bindings.insert(step.clone(), json!(session));
                Ok(())
            }
            Step::Choose(step) => {
                let (session, choice) = match step {
                    Choosable::Mode => {
                        let (session, modes) = with_modes(conn)?;
                        (session, json!(modes.into_iter().next()))
                    }
                    Choosable::Option => {
                        let (session, _, params) = with_select(conn)?;
                        (session, params)
                    }
                };
                self.bindings.insert("session".to_owned(), json!(session));
                let name = step.variable();
                self.bindings.insert(name.to_owned(), choice);
                Ok(())
            }
            Step::Prompt(step) => {
                let request = self.begin(conn, &step.session, &step.prompt, &step.with)?;
                self.ended(conn, request, &step.ending(), false)
            }
            Step::Begin(step) => self.begun(conn, step),
            Step::Cancel(step) => {
                let session = self.text(step)?;
                if std::mem::take(&mut self.was_asked) {
                    // The answer may have been all that the turn waited for.
                    conn.listen(conn.env.quiet);
                }
                self.cancelled = conn.cancel(&session);
                Ok(())
            }
            Step::Asked(step) => {
                self.was_asked = true;
                conn.asked(self.running, step).map(drop)
            }
            Step::Ends(step) => self.ends(conn, step),
            Step::Call(step) => self.call(conn, step),
            Step::Notify(step) => {
                conn.notify(&step.notify, self.sent(&step.params)?);
                Ok(())
            }
            Step::Raw(step) => {
                let line = self.text(step)?;
                self.raw = Some(conn.send_raw(format!("{line}\n")));
                Ok(())
            }
            Step::Expect(step) => self.expect(conn, raw, step),
            Step::Settle(_) => {
                // Later steps, and other requirements, judge an agent that ends meanwhile.
                conn.settle().ok();
                Ok(())
            }
            Step::Silent(_) => {
                conn.settle()?;
                conn.nothing_answered_since(self.start)
            }
            Step::Serves(_) => serves(conn, raw),
        }
    }

    /// What is sent, with the values of the variables.
    pub(super) fn sent(&self, value: &Value) -> Outcome<Value> {
        let mut value = value.clone();
        match substitute(&mut value, &self.bindings) {
            Ok(()) => Ok(value),
            Err(name) => fail(format!("expected a value of `{{{name}}}`, got none")),
        }
    }

    pub(super) fn text(&self, value: &Value) -> Outcome<String> {
        Ok(match self.sent(value)? {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    /// Adds members, with the values of the variables. What is no object stays, if there are none.
    pub(super) fn add(&self, value: &mut Value, members: &Map<String, Value>) -> Outcome {
        if !members.is_empty() {
            merge(value, &self.sent(&json!(members))?);
        }
        Ok(())
    }

    fn initialized(&mut self, conn: &Conn, pattern: &Value) -> Outcome {
        let agent = conn.agent.clone().unwrap_or_default();
        let Err(mismatch) = matches(pattern, &agent, &mut self.bindings) else {
            return Ok(());
        };
        let mut requests = conn.recording().calls(Party::Client, "initialize");
        let answer = requests.find_map(|(request, _)| conn.recording().answer(request));
        let place = answer.map_or(0, |(index, _)| index);
        Err(differs(
            conn,
            place,
            "/result",
            "the result of initialize",
            &mismatch,
        ))
    }

    fn params(&self, conn: &Conn, step: &Call) -> Outcome<Value> {
        let session = self.bindings.get("session").and_then(Value::as_str);
        let mut params = match (&step.params, step.call.as_str()) {
            (Some(params), _) => self.sent(params)?,
            (None, "initialize") => Caps::Full.initialize(conn.version()),
            (None, "session/new") => conn.setup(None),
            (None, method) if sets_up(method) => conn.setup(session),
            (None, _) => json!({}),
        };
        self.add(&mut params, &step.with)?;
        Ok(params)
    }

    fn call(&mut self, conn: &mut Conn, step: &Call) -> Outcome {
        let (method, params) = (step.call.as_str(), self.params(conn, step)?);
        let reply = match &step.id {
            None => conn.call(method, params)?,
            Some(id) => {
                let id = self.sent(id)?;
                let request =
                    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
                let request = conn.send(&request);
                let what = format!("an answer to {method}");
                let index =
                    conn.answered(request, &what, |entry| entry.request == Some(request))?;
                let answer = conn.recording().entries.get(index).map(Entry::answer);
                let answer = answer.unwrap_or_else(|| Ok(Value::Null));
                Reply { index, answer }
            }
        };
        let result = match (&reply.answer, &step.error) {
            (Ok(result), None | Some(Errors::Is(false))) => result,
            (Ok(result), Some(_)) if step.result.is_some() => result,
            (Ok(_), Some(_)) => {
                let reason = format!("expected an error for {method}, got a result");
                return Err(conn.at(reply.index, reason));
            }
            (Err(_), Some(errors)) => {
                let or = step.result.as_ref().map_or("", |_| "a result or ");
                return has_code(conn, &reply, errors, or);
            }
            (Err(_), None) if step.result.is_some() => {
                let reason = format!("expected a result of {method}, got an error");
                return Err(conn.at(reply.index, reason));
            }
            (Err(_), None) => {
                let code = reply.code().map(i32::from);
                return match step.not_error {
                    Some(other) if code == Some(other) => {
                        let reason =
                            format!("expected {method} to be supported, got error {other}");
                        Err(conn.at(reply.index, reason))
                    }
                    _ => Ok(()),
                };
            }
        };
        if method == "initialize" {
            conn.agent = Some(result.clone());
        }
        let Some(pattern) = &step.result else {
            return Ok(());
        };
        matches(pattern, result, &mut self.bindings).map_err(|mismatch| {
            let place = format!("the result of {method}");
            differs(conn, reply.index, "/result", &place, &mismatch)
        })
    }

    fn expect(&mut self, conn: &mut Conn, raw: Option<usize>, pattern: &Value) -> Outcome {
        let from = raw.unwrap_or(self.start);
        let fits = |entry: &Entry| {
            let mut bindings = self.bindings.clone();
            entry.from == Party::Agent && matches(pattern, &entry.value, &mut bindings).is_ok()
        };
        let index = conn.answered(from, &described(pattern), fits)?;
        let entry = conn.recording().entries.get(index);
        let bound = entry.map(|entry| matches(pattern, &entry.value, &mut self.bindings));
        debug_assert_eq!(bound, Some(Ok(())));
        Ok(())
    }
}

/// The agent goes on; a failure shows the line that was sent before.
fn serves(conn: &mut Conn, raw: Option<usize>) -> Outcome {
    let Some(raw) = raw else {
        return conn.still_serves();
    };
    let served = conn.settle().and_then(|()| conn.still_serves());
    served.map_err(|stop| match stop {
        Stop::Fail(mut failure) => {
            failure.sent = conn.recording().entries.get(raw).map(Entry::excerpt);
            Stop::Fail(failure)
        }
        other => other,
    })
}

/// The code of an error is one of these; `or` says what else would do.
pub(super) fn has_code(conn: &Conn, reply: &Reply, errors: &Errors, or: &str) -> Outcome {
    let codes = match errors {
        Errors::Is(true) => return Ok(()),
        Errors::Is(false) => &[][..],
        Errors::Code(code) => std::slice::from_ref(code),
        Errors::Codes(codes) => codes,
    };
    let code = reply.code().map(i32::from);
    if code.is_some_and(|code| codes.contains(&code)) {
        return Ok(());
    }
    let expected = match codes {
        [] => "no error".to_owned(),
        codes => format!("{or}error {}", listed(codes)),
    };
    let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    Err(conn.at(reply.index, format!("expected {expected}, got {code}")))
}

/// A failure at the message of this place, `within` which the pattern's value stands.
fn differs(conn: &Conn, index: usize, within: &str, what: &str, mismatch: &Mismatch) -> Stop {
    let Mismatch {
        pointer,
        expected,
        came,
    } = mismatch;
    let place = match pointer.as_str() {
        "" => format!("as {what}"),
        pointer => format!("at `{pointer}` of {what}"),
    };
    let reason = format!("expected {expected} {place}, got {came}");
    Stop::at_place(
        conn.recording(),
        index,
        &format!("{within}{pointer}"),
        reason,
    )
}

/// Adds members to an object and to the objects in it; other values are replaced.
fn merge(value: &mut Value, more: &Value) {
    match (value, more) {
        (Value::Object(members), Value::Object(more)) => {
            for (name, more) in more {
                merge(members.entry(name.as_str()).or_insert(Value::Null), more);
            }
        }
        (value, more) => *value = more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_added_at_every_depth() {
        let mut value = json!({"auth": {"terminal": true}, "list": [1]});
        merge(
            &mut value,
            &json!({"auth": {"teleport": {}}, "list": [], "new": {"a": 1}}),
        );
        let merged =
            json!({"auth": {"terminal": true, "teleport": {}}, "list": [], "new": {"a": 1}});
        assert_eq!(value, merged);
    }
}
