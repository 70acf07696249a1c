//! Sends cases to an agent, and shrinks those that it fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_conformance::harness::{Capability, Caps, Conn, Entry, Env, Outcome, Reply};
use acp_conformance::judge::{Diagnostic, Level};
use acp_conformance::wire::{Finding, FindingKind, Party};
use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::case::{Case, Cases, Demand, Setting, demand, is_odd, smaller};
use super::random::Random;
use super::{Broken, FuzzError, Report};

/// How many agents are started to shrink one failure.
const SHRINKING: usize = 60;

/// How long the search for a smaller message may take; a message that is never answered needs the
/// limit of an answer for each try.
const SHRINKING_TIME: Duration = Duration::from_secs(20);

/// After so many waits for answers that never came, the others are short.
const WAITS: usize = 2;
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// How many different failures end the run.
const ENOUGH: usize = 10;

/// The code of "invalid params", and of "invalid request", which says as much.
const REFUSALS: [ErrorCode; 2] = [ErrorCode::INVALID_PARAMS, ErrorCode::INVALID_REQUEST];

/// Sends `count` messages; the same ones for the same seed. `tell` receives how many
/// are done.
///
/// # Errors
/// When no session can be opened at all.
pub fn run(
    env: &Arc<Env>,
    count: u64,
    seed: u64,
    mut tell: impl FnMut(u64),
) -> Result<Report, FuzzError> {
    let document = env.schema.version().document()?;
    let mut cases = Cases {
        document,
        random: Random::new(seed),
        next: 0,
    };
    let mut report = Report {
        sent: 0,
        accepted: 0,
        refused: 0,
        failures: Vec::new(),
        repeated: 0,
        interrupted: false,
    };
    let interruption = &env.conditions.interruption;
    let mut fuzzed = match Fuzzed::start(env) {
        Err(_) if interruption.is_interrupted() => {
            report.interrupted = true;
            return Ok(report);
        }
        started => started?,
    };
    let mut timeouts = 0;
    for done in 0..count {
        if report.failures.len() >= ENOUGH {
            break;
        }
        tell(done);
        let case = cases.draw(&env.schema, &fuzzed.setting);
        let came = fuzzed.send(&case);
        if interruption.is_interrupted() {
            // What came then may be for want of waiting.
            report.interrupted = true;
            break;
        }
        report.sent += 1;
        match came {
            Ok(Came::Result) => report.accepted += 1,
            Ok(Came::Refusal) => report.refused += 1,
            Ok(Came::Nothing) => {}
            Err(reason) => {
                timeouts += usize::from(fuzzed.has_timed_out);
                if report.failures.iter().any(|known| known.reason == reason) {
                    report.repeated += 1;
                } else {
                    report.failures.push(shrunk(env, case, reason, &fuzzed)?);
                }
                if interruption.is_interrupted() {
                    report.interrupted = done + 1 < count;
                    break;
                }
                fuzzed = Fuzzed::start(env)?;
                fuzzed.is_impatient = timeouts >= WAITS;
            }
        }
    }
    Ok(report)
}

/// What an agent made of a case.
enum Came {
    Result,
    Refusal,
    Nothing,
}

/// A connection with a session.
struct Fuzzed {
    conn: Conn,
    setting: Setting,
    /// The ids of requests whose envelope is wrong; what repeats one of them is no violation.
    odd_ids: Vec<Value>,
    has_timed_out: bool,
    /// Whether waits on other connections have timed out often enough.
    is_impatient: bool,
}

impl Fuzzed {
    fn start(env: &Arc<Env>) -> Result<Self, FuzzError> {
        Self::opened(env).map_err(|stop| FuzzError::NoSession(stop.reason().to_owned()))
    }

    fn opened(env: &Arc<Env>) -> Outcome<Self> {
        let mut conn = Conn::start(env.clone())?;
        conn.open(&Caps::Full)?;
        let (session, result) = conn.new_session()?;
        let mode = result.pointer("/modes/currentModeId");
        let setting = Setting {
            folder: env.folder.clone(),
            session,
            prompt: env.profile.prompt("hello", &env.folder).unwrap_or_default(),
            mode: mode.and_then(Value::as_str).map(str::to_owned),
            lists: conn.can(Capability::LIST),
        };
        Ok(Self {
            conn,
            setting,
            odd_ids: Vec::new(),
            has_timed_out: false,
            is_impatient: false,
        })
    }

    /// Sends a case; the error says what is wrong with what came.
    fn send(&mut self, case: &Case) -> Result<Came, String> {
        let mark = self.conn.mark();
        if is_odd(&case.message)
            && let Some(id) = case.message.get("id")
        {
            self.odd_ids.push(id.clone());
        }
        let place = self.conn.send(&case.message);
        let came = match case.demand {
            Demand::Survive => Came::Nothing,
            Demand::Accept | Demand::RefuseParams => self.answered(place, case.demand)?,
        };
        let alive = self.conn.settle();
        alive.map_err(|stop| format!("the agent does not live on: {}", stop.reason()))?;
        let findings = self.conn.since(mark).flat_map(|(_, entry)| {
            let findings = entry.findings.iter();
            findings.filter(|finding| !self.is_repetition(entry, finding))
        });
        let of_agent = findings.filter(|found| found.by == Some(Party::Agent));
        let version = self.conn.env.schema.version();
        let mut found = of_agent.map(|finding| Diagnostic::new(version, finding.clone()));
        match found.find(|found| found.level == Level::Error) {
            // Without the value, so that one violation is one reason.
            Some(found) => Err(format!(
                "the agent breaks {}: {} at {}",
                found.requirement.unwrap_or(found.finding.rule.as_str()),
                found.finding.method.as_deref().unwrap_or("a message"),
                found.finding.pointer
            )),
            None => Ok(came),
        }
    }

    /// Whether an answer is at fault only for the id that it repeats from a request of this run.
    fn is_repetition(&self, entry: &Entry, finding: &Finding) -> bool {
        let is_about_id = match finding.rule {
            FindingKind::Envelope => finding.pointer == "/id",
            FindingKind::UnmatchedAnswer => true,
            _ => false,
        };
        let id = entry.value.get("id");
        is_about_id && id.is_some_and(|id| self.odd_ids.contains(id))
    }

    /// Waits for an answer: as long as for a turn if the message is valid or the agent is at work, and
    /// as long as for any other answer if it is not, because nothing is to be done but to refuse it.
    fn reply(&mut self, place: usize, demand: Demand) -> Outcome<Reply> {
        let env = self.conn.env.clone();
        let limit = match (demand, self.is_impatient) {
            (Demand::Accept, false) => env.turn_timeout,
            (Demand::Accept, true) | (_, false) => env.timeout,
            (_, true) => env.timeout.min(SHORT_WAIT),
        };
        let reply = self.conn.reply_within(place, limit);
        let is_of_agent = |(_, entry): (usize, &Entry)| entry.from == Party::Agent;
        let is_at_work = self.conn.since(place).any(is_of_agent);
        let reply = match reply {
            Err(_) if is_at_work && !self.is_impatient && !self.conn.has_ended() => {
                let rest = env.turn_timeout.saturating_sub(limit);
                self.conn.reply_within(place, rest)
            }
            reply => reply,
        };
        self.has_timed_out = reply.is_err() && !self.conn.has_ended();
        reply
    }

    fn answered(&mut self, place: usize, demand: Demand) -> Result<Came, String> {
        let reply = self
            .reply(place, demand)
            .map_err(|stop| stop.reason().to_owned())?;
        let code = reply.code();
        match (&reply.answer, demand) {
            (Ok(_), _) => Ok(Came::Result),
            (Err(_), Demand::Accept) => {
                Err(format!("a valid message is refused with {}", written(code)))
            }
            (Err(_), _) if code.is_some_and(|code| REFUSALS.contains(&code)) => Ok(Came::Refusal),
            (Err(_), _) => Err(format!(
                "invalid params are refused with {}, not with {}",
                written(code),
                ErrorCode::INVALID_PARAMS
            )),
        }
    }
}

fn written(code: Option<ErrorCode>) -> String {
    code.map_or_else(|| "no code".to_owned(), |code| code.to_string())
}

/// Makes a failing case as small as it can be while it fails for the same reason on
/// a connection of its own.
fn shrunk(env: &Arc<Env>, case: Case, reason: String, last: &Fuzzed) -> Result<Broken, FuzzError> {
    let mut tries = 0;
    let started = Instant::now();
    let mut fails = |case: &Case| -> Result<Option<Fuzzed>, FuzzError> {
        tries += 1;
        let interruption = &env.conditions.interruption;
        let is_late = tries > SHRINKING || started.elapsed() > SHRINKING_TIME;
        if is_late || interruption.is_interrupted() {
            return Ok(None);
        }
        let mut fuzzed = match Fuzzed::start(env) {
            Err(_) if interruption.is_interrupted() => return Ok(None),
            started => started?,
        };
        // What was waited for once is not waited for as long again.
        fuzzed.is_impatient = last.has_timed_out;
        // A session's id is new for each agent.
        let mut case = case.clone();
        rename(
            &mut case.message,
            &last.setting.session,
            &fuzzed.setting.session,
        );
        let failed = fuzzed.send(&case).err();
        Ok((failed.as_ref() == Some(&reason)).then_some(fuzzed))
    };
    let Some(mut shortest) = fails(&case)? else {
        return Ok(Broken {
            reason,
            done: case.done,
            alone: false,
            transcript: transcript(&last.conn),
        });
    };
    let mut case = case;
    'smaller: loop {
        for message in smaller(&case.message) {
            let whole = case.demand == Demand::Accept;
            if demand(&env.schema, &message, whole) != case.demand {
                continue;
            }
            let candidate = Case {
                message,
                ..case.clone()
            };
            if let Some(fuzzed) = fails(&candidate)? {
                (case, shortest) = (candidate, fuzzed);
                continue 'smaller;
            }
        }
        break;
    }
    Ok(Broken {
        reason,
        done: case.done,
        alone: true,
        transcript: transcript(&shortest.conn),
    })
}

fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Value::Object(members) => {
            for member in members.values_mut() {
                rename(member, from, to);
            }
        }
        _ => {}
    }
}

/// The last messages of a connection, as `check` reads them.
fn transcript(conn: &Conn) -> Vec<String> {
    const KEPT: usize = 40;
    let entries = &conn.recording().entries;
    let skipped = entries.len().saturating_sub(KEPT);
    let line = |entry: &Entry| match &entry.raw {
        Some(raw) => json!({"dir": entry.from.tag(), "raw": raw}).to_string(),
        None => json!({"dir": entry.from.tag(), "msg": entry.value}).to_string(),
    };
    entries.iter().skip(skipped).map(line).collect()
}

#[cfg(test)]
#[cfg(unix)]
#[path = "run_tests.rs"]
mod tests;
