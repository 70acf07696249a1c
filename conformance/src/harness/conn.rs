//! One connection: what is sent, what comes, and the limits on waiting for it.
//!
//! Messages are processed only while a check waits for something; then requests of
//! the agent are answered by the script, in order. Every message of both sides goes
//! through the wire tracker and into the recording.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::script::{Said, Script};
use super::{
    Conditions, Entry, Failure, LOOK, Outcome, Profile, Recorder, Recording, Stop, Unresponsive,
};
use crate::target::{Event, Link, Target, Unended};
use crate::wire::{FindingKind, Kind, Party, Schema, Version};

/// How many messages a connection may have in one check, and how many bytes of the agent, before
/// the suite ends it: it keeps all of them to look at. A connection with as many of several checks
/// is not shared further.
const MESSAGES: usize = 200_000;
const BYTES: usize = 64 << 20;

/// Why a line that is not UTF-8 is no message.
const NOT_UTF8: &str = "it is not UTF-8";

/// How many messages are still processed when time is up, because they have come.
const OVERTIME: usize = 4096;

/// What all connections of a run share.
#[derive(Debug)]
pub struct Env {
    /// The agent.
    pub target: Target,
    /// What is said to it.
    pub profile: Profile,
    /// The protocol.
    pub schema: Arc<Schema>,
    /// The sessions' working directory.
    pub folder: PathBuf,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long a prompt turn may take.
    pub turn_timeout: Duration,
    /// How long to listen for what must not come, where nothing marks the end.
    pub quiet: Duration,
    /// What is not worth waiting for.
    pub unresponsive: Unresponsive,
    /// What the preflight has found, and what the run may do.
    pub conditions: Conditions,
}

impl Env {
    /// Returns how long the agent may take to start, up to its first session.
    #[must_use]
    pub fn start_timeout(&self) -> Duration {
        self.conditions.start_timeout.unwrap_or(self.turn_timeout)
    }
}

/// The result of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A message, at this place of the recording.
    Entry(usize),
    /// The word that a request will not be answered.
    Unanswered,
    /// Nothing in time.
    Timeout,
    /// The agent's output has ended.
    Ended,
}

/// A connection to a running agent.
#[derive(Debug)]
pub struct Conn {
    /// What all connections share.
    pub env: Arc<Env>,
    /// How the agent's requests are answered.
    pub script: Script,
    /// The agent's answer to `initialize`, once it came.
    pub agent: Option<Value>,
    pub(super) barrier_ignored: bool,
    link: Link,
    recorder: Recorder,
    started: Instant,
    next_id: u64,
    /// Requests of the agent that the script leaves open.
    held: Vec<usize>,
    /// Our requests that will not be answered, as far as somebody has said so.
    unanswered: BTreeSet<usize>,
    /// Bytes that the agent wrote.
    bytes: usize,
    /// The messages and bytes of earlier checks on this connection.
    earlier: [usize; 2],
    /// Messages that were processed since time was up.
    overtime: usize,
    /// Whether an interruption of the run ends its waits.
    is_interruptible: bool,
}

/// Rounds a duration for people: to tenths of a second, and to milliseconds below one second.
fn rounded(time: Duration) -> Duration {
    let unit = match time.as_secs() {
        0 => 1,
        _ => 100,
    };
    let millis = (time.as_micros() + unit * 500) / (unit * 1000) * unit;
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

impl Conn {
    /// Starts the agent; nothing is sent yet.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(env: Arc<Env>) -> Outcome<Self> {
        let link = env.target.start();
        let link = link.map_err(|error| Stop::failed(error.to_string()))?;
        Ok(Self::over(env, link))
    }

    /// Speaks over a link on which nothing was sent yet.
    pub(crate) fn over(env: Arc<Env>, link: Link) -> Self {
        let mut script = Script::default();
        script.files.folder.clone_from(&env.folder);
        let mut recorder = Recorder::new(env.schema.clone());
        recorder.recording.began = Some(SystemTime::now());
        Self {
            recorder,
            env,
            script,
            agent: None,
            barrier_ignored: false,
            link,
            started: Instant::now(),
            next_id: 0,
            held: Vec::new(),
            unanswered: BTreeSet::new(),
            bytes: 0,
            earlier: [0; 2],
            overtime: 0,
            is_interruptible: true,
        }
    }

    /// What was said so far.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recorder.recording
    }

    /// Ends the connection. Yields what was said.
    #[must_use]
    pub fn into_recording(self) -> Recording {
        self.recorder.recording
    }

    /// The place of the next message; what follows is what comes after now.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.recording().entries.len()
    }

    /// The place of the first line of the agent that is not UTF-8, if there is one.
    pub(crate) fn not_utf8(&self) -> Option<usize> {
        let lines = self.recording().entries.iter();
        let mut lines = lines.map(|entry| entry.findings_by(Party::Agent, &[FindingKind::NotJson]));
        lines.position(|mut found| found.any(|it| it.message.ends_with(NOT_UTF8)))
    }

    /// The messages since a mark, with their places.
    pub fn since(&self, mark: usize) -> impl Iterator<Item = (usize, &Entry)> {
        self.recording().entries.iter().enumerate().skip(mark)
    }

    /// Sends a message. Yields its place.
    pub fn send(&mut self, value: &Value) -> usize {
        self.link.send(format!("{value}\n").into_bytes());
        self.record(Party::Client, value.clone())
    }

    /// Sends bytes as they are. Yields the place of their record.
    pub fn send_raw(&mut self, bytes: impl Into<Vec<u8>>) -> usize {
        let bytes = bytes.into();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.link.send(bytes);
        self.recorder.probe(text, self.started.elapsed())
    }

    /// Sends messages in one write. Yields their places.
    pub fn send_joined(&mut self, messages: &[Value]) -> Vec<usize> {
        let lines: String = messages.iter().map(|value| format!("{value}\n")).collect();
        self.link.send(lines.into_bytes());
        let record = |value: &Value| self.record(Party::Client, value.clone());
        messages.iter().map(record).collect()
    }

    /// Sends the first bytes of a message, which is recorded with the others.
    pub(crate) fn send_part(&mut self, bytes: Vec<u8>) {
        self.link.send(bytes);
    }

    /// Sends bytes that form this message, piece by piece. Yields its place.
    pub fn send_in_pieces(
        &mut self,
        message: &Value,
        pieces: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> usize {
        for piece in pieces {
            self.link.send(piece);
        }
        self.record(Party::Client, message.clone())
    }

    /// Sends a request with the next id. Yields its place.
    pub fn request(&mut self, method: &str, params: Value) -> usize {
        let id = self.next_id();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// An id that no request had before.
    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Sends a notification. Yields its place.
    pub fn notify(&mut self, method: &str, params: Value) -> usize {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Closes the agent's input.
    pub fn close(&mut self) {
        self.link.close();
    }

    /// Waits for the next message, and answers it if it is a request.
    pub fn pump(&mut self, deadline: Instant) -> Waiting {
        loop {
            if self.is_flooded() {
                self.link.end();
                return Waiting::Ended;
            }
            self.overtime = match Instant::now() < deadline {
                true => 0,
                false if self.overtime >= OVERTIME => return Waiting::Timeout,
                false => self.overtime + 1,
            };
            if self.is_interrupted() {
                return Waiting::Ended;
            }
            let look = deadline.min(Instant::now() + LOOK);
            let event = self.link.next(look);
            if event.is_none() && look < deadline {
                continue;
            }
            if let Some(Event::Line(line)) = &event {
                self.bytes += line.len();
            }
            let index = match event {
                None => return Waiting::Timeout,
                Some(Event::End) => return Waiting::Ended,
                Some(Event::Unanswered(id)) => {
                    self.unanswered
                        .extend(self.recorder.open_request(Party::Client, &id));
                    return Waiting::Unanswered;
                }
                // Nobody marks a connection of the suite.
                Some(Event::Mark) => continue,
                Some(Event::TooLong(length)) => {
                    let text = format!("a line of {length} bytes");
                    self.noise(
                        text,
                        FindingKind::TooLong,
                        "it is longer than any message may be",
                    )
                }
                // An empty line is no message and no harm.
                Some(Event::Line(line)) if line.trim_ascii().is_empty() => continue,
                Some(Event::Line(line)) => match serde_json::from_slice::<Value>(&line) {
                    Ok(value) => self.record(Party::Agent, value),
                    Err(error) => {
                        let text = String::from_utf8_lossy(&line).into_owned();
                        let reason = match std::str::from_utf8(&line) {
                            Ok(_) => error.to_string(),
                            Err(_) => NOT_UTF8.to_owned(),
                        };
                        self.noise(text, FindingKind::NotJson, &reason)
                    }
                },
            };
            self.respond(index);
            return Waiting::Entry(index);
        }
    }

    /// Waits until `find` yields something for a message at or after `from`.
    ///
    /// # Errors
    /// A failure that names `what` when time is up or the agent has ended.
    pub fn wait<T>(
        &mut self,
        from: usize,
        what: &str,
        limit: Duration,
        find: impl FnMut(&Recording, usize) -> Option<T>,
    ) -> Outcome<T> {
        self.wait_on(None, from, what, limit, find)
    }

    /// As [`Conn::wait`], and fails as soon as it is known that the request at the place
    /// `request` will not be answered.
    pub(crate) fn wait_on<T>(
        &mut self,
        request: Option<usize>,
        from: usize,
        what: &str,
        limit: Duration,
        mut find: impl FnMut(&Recording, usize) -> Option<T>,
    ) -> Outcome<T> {
        let deadline = Instant::now() + limit;
        let mut next = from;
        loop {
            while next < self.mark() {
                if let Some(found) = find(self.recording(), next) {
                    return Ok(found);
                }
                next += 1;
            }
            if request.is_some_and(|request| self.is_unanswered(request)) {
                let came = "the word that it will not be answered".to_owned();
                return Err(self.missing(format!("expected {what}, got none"), came));
            }
            match self.pump(deadline) {
                Waiting::Entry(_) | Waiting::Unanswered => {}
                // A child of it may hold its output open.
                Waiting::Timeout if self.link.exit(Instant::now()).is_some() => {
                    return Err(self.died(what));
                }
                Waiting::Timeout => {
                    let came = self.heard_since(from);
                    let came = format!("timed out after {:?}{came}", rounded(limit));
                    return Err(self.missing(format!("expected {what}, got none"), came));
                }
                Waiting::Ended => return Err(self.died(what)),
            }
        }
    }

    /// Listens for a while, whatever comes.
    pub fn listen(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while !matches!(self.pump(deadline), Waiting::Timeout | Waiting::Ended) {}
    }

    /// Waits for the agent's output to end.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            match self.pump(deadline) {
                Waiting::Entry(_) | Waiting::Unanswered => {}
                // A child may hold the output open when the agent is gone.
                Waiting::Timeout => return self.link.exit(Instant::now()).is_some(),
                Waiting::Ended => {
                    return !self.link.is_process() || self.link.exit(deadline).is_some();
                }
            }
        }
    }

    /// Answers the requests that the script left open, as a client does that
    /// cancels a turn.
    pub fn answer_held(&mut self) {
        for index in std::mem::take(&mut self.held) {
            if let Some(entry) = self.recording().entries.get(index) {
                let method = entry.method.clone().unwrap_or_default();
                self.say(index, Script::cancelled(&method));
            }
        }
    }

    /// Whether another check may go on with this connection: the agent runs, and
    /// nobody waits for anything.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let open = |(index, entry): (usize, &Entry)| {
            let barrier = entry.method.as_deref() == Some(super::expect::BARRIER);
            entry.kind == Kind::Request && !barrier && self.recording().answer(index).is_none()
        };
        !self.link.has_ended() && !self.recording().entries.iter().enumerate().any(open)
    }

    /// Whether somebody has said that the request at this place will not be answered.
    pub(super) fn is_unanswered(&self, request: usize) -> bool {
        self.unanswered.contains(&request)
    }

    fn is_interrupted(&self) -> bool {
        self.is_interruptible && self.env.conditions.interruption.is_over()
    }

    /// From now on, an interruption of the run does not end its waits.
    pub(super) fn begin_cleanup(&mut self) {
        self.is_interruptible = false;
    }

    /// Whether the agent's output has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.link.has_ended()
    }

    /// Another check begins on this connection.
    pub(super) fn begin_check(&mut self) {
        self.earlier = [self.mark(), self.bytes];
    }

    /// The messages and the bytes of the agent since the check began.
    fn of_check(&self) -> [usize; 2] {
        let [messages, bytes] = self.earlier;
        [
            self.mark().saturating_sub(messages),
            self.bytes.saturating_sub(bytes),
        ]
    }

    fn is_flooded(&self) -> bool {
        let [messages, bytes] = self.of_check();
        messages >= MESSAGES || bytes >= BYTES
    }

    /// Whether the connection has too much to be shared further.
    pub(super) fn is_heavy(&self) -> bool {
        self.mark() >= MESSAGES || self.bytes >= BYTES
    }

    /// Returns why the suite has ended the agent, if it has.
    pub(super) fn flood(&self) -> Option<String> {
        let [messages, bytes] = self.of_check();
        self.is_flooded().then(|| {
            format!(
                "the suite ended the agent after {bytes} bytes in {messages} messages on a connection; \
                 a check may have {BYTES} bytes and {MESSAGES} messages"
            )
        })
    }

    /// Returns how long the agent took until its first message; as long as the connection is open, if
    /// there is none.
    pub(crate) fn start_took(&self) -> Duration {
        let first = self.recording().of(Party::Agent).next();
        first.map_or_else(|| self.started.elapsed(), |entry| entry.at)
    }

    /// The last lines of the agent's standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.link.stderr()
    }

    fn missing(&self, reason: String, came: String) -> Stop {
        let ours = self.recording().entries.iter().rev();
        let sent = ours
            .filter(|entry| entry.from == Party::Client)
            .find(|entry| entry.method.as_deref() != Some(super::expect::BARRIER));
        Stop::Fail(Box::new(Failure {
            reason,
            sent: sent.map(Entry::excerpt),
            came: Some(came),
        }))
    }

    /// Returns how the agent has ended although nothing asked it to, if it has.
    pub(crate) fn ended_by_itself(&mut self) -> Option<(String, Stop)> {
        if self.is_flooded() || !self.ends_within(self.env.quiet) {
            return None;
        }
        let how = self.exit();
        Some((how, self.died("an agent that runs")))
    }

    /// Returns the failure of an agent whose process has ended in a turn although nothing asked it to.
    pub(crate) fn ended_in_a_turn(&mut self) -> Option<Failure> {
        let is_own_end = self.has_ended() && self.link.is_process() && !self.link.is_closed();
        if !is_own_end || self.is_flooded() {
            return None;
        }
        let prompts = self.recording().calls(Party::Client, "session/prompt");
        // One without a text, which had to be refused, began no turn.
        let prompts = prompts.filter(|(_, entry)| entry.params().get("prompt").is_some());
        let open: Vec<usize> = prompts.map(|(index, _)| index).collect();
        let open = open
            .into_iter()
            .find(|index| self.turn_end(*index).is_none())?;
        let Stop::Fail(mut failure) = self.died("an answer to session/prompt") else {
            return None;
        };
        let prompt = self.recording().entries.get(open);
        failure.sent = prompt.map(Entry::excerpt);
        Some(*failure)
    }

    /// How the agent has ended, whose output has.
    fn exit(&mut self) -> String {
        let deadline = Instant::now() + self.env.quiet;
        let how = self.link.exit(deadline);
        how.unwrap_or_else(|| "it closed its output".to_owned())
    }

    fn died(&mut self, what: &str) -> Stop {
        let how = self.exit();
        let how = self.flood().unwrap_or(how);
        let stderr = self.link.stderr();
        let mut came = format!("the agent ended ({how})");
        if !stderr.is_empty() {
            came = format!("{came}; the end of its standard error:\n{stderr}");
        }
        self.missing(format!("expected {what}, got the end of the agent"), came)
    }

    /// Returns what has come of a line whose end has not.
    pub(crate) fn unended(&self) -> Unended {
        self.link.unended()
    }

    /// Returns the last message of the agent since a place, in words; nothing if there is none.
    pub(crate) fn heard_since(&self, from: usize) -> String {
        let agents = self
            .since(from)
            .filter(|(_, entry)| entry.from == Party::Agent);
        match agents.last() {
            Some((_, entry)) => format!("; last: {}", entry.excerpt()),
            None => String::new(),
        }
    }

    fn noise(&mut self, text: String, rule: FindingKind, reason: &str) -> usize {
        let at = self.started.elapsed();
        self.recorder.noise(Party::Agent, text, rule, reason, at)
    }

    fn record(&mut self, from: Party, value: Value) -> usize {
        self.recorder.message(from, value, self.started.elapsed())
    }

    fn respond(&mut self, index: usize) {
        let Some(entry) = self.recording().entries.get(index) else {
            return;
        };
        let method = entry.method.clone().unwrap_or_default();
        if entry.calls(Party::Agent, "$/cancel_request") {
            let id = entry.params().get("requestId").cloned();
            let open = id.and_then(|id| self.recorder.open_request(Party::Agent, &id));
            if let Some(position) = self.held.iter().position(|held| Some(*held) == open) {
                let held = self.held.swap_remove(position);
                let asked = self.recording().entries.get(held);
                // A client of version 2 answers a question with the outcome for this.
                let asked = asked.filter(|_| self.version() == Version::V2);
                let method = asked.and_then(|asked| asked.method.clone());
                self.say(held, Script::cancelled(&method.unwrap_or_default()));
            }
        } else if entry.from == Party::Agent && entry.kind == Kind::Request {
            let params = entry.params().clone();
            let is_late =
                method == "session/request_permission" && self.is_cancelled(entry.session());
            let said = match is_late {
                true => Script::cancelled(&method),
                false => self.script.answer(&method, &params),
            };
            self.say(index, said);
            if method == "terminal/kill" {
                self.end_commands(&params);
            }
        }
    }

    /// Whether the client has cancelled what it last prompted in this session. A client that has grants
    /// no permission any more.
    fn is_cancelled(&self, session: Option<&str>) -> bool {
        let ours = self.recording().entries.iter().rev().filter(|entry| {
            entry.from == Party::Client && entry.is_call() && entry.session() == session
        });
        let last = ours
            .filter_map(|entry| entry.method.as_deref())
            .find(|method| {
                matches!(
                    *method,
                    "session/prompt" | "session/cancel" | "session/close"
                )
            });
        last.is_some_and(|method| method != "session/prompt")
    }

    /// A killed command has ended: whoever waits for it learns so.
    fn end_commands(&mut self, killed: &Value) {
        let waits = |entry: &Entry| {
            entry.method.as_deref() == Some("terminal/wait_for_exit")
                && entry.params().get("terminalId") == killed.get("terminalId")
        };
        let all = std::mem::take(&mut self.held);
        let entries = &self.recording().entries;
        let (ended, held) = all
            .into_iter()
            .partition(|index| entries.get(*index).is_some_and(waits));
        self.held = held;
        let ended: Vec<usize> = ended;
        for index in ended {
            self.say(index, Script::cancelled("terminal/wait_for_exit"));
        }
    }

    fn say(&mut self, request: usize, said: Said) {
        let entry = self.recording().entries.get(request);
        let Some(id) = entry.and_then(|entry| entry.value.get("id")).cloned() else {
            return;
        };
        match said.message(&id) {
            Some(answer) => drop(self.send(&answer)),
            None => self.held.push(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_for_people() {
        let said = [4_999_944_167, 5_000_000_000, 1_249_000_000, 300_000_000, 0];
        let said = said.map(|nanos| format!("{:?}", rounded(Duration::from_nanos(nanos))));
        assert_eq!(said, ["5s", "5s", "1.2s", "300ms", "0ns"]);
    }
}
