//! Starts everything, and watches for the end.
//!
//! One loop, one closed set of events: whatever ends a connection is seen here.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use acp_conformance::judge::Summary;
use acp_conformance::process_group::{self, Agent};
use acp_conformance::wire::{Party, Schemas};
use rustix::process::Signal;

use super::pump::{End, Pump};
use super::recorder::Recorder;
use super::tap::Tap;
use super::{Options, Outcome, ProxyError, judge, signals};

/// Copies of so many bytes may wait for the judge.
const TAP_LIMIT: usize = 16 << 20;

/// How many events wait for the loop: each thread has one to tell, and what is left
/// is for signals.
const EVENTS: usize = 32;

/// The same where the wire waits for the judge: few, so that the judge is done soon
/// after the agent.
const PATIENT_LIMIT: usize = 1 << 20;

/// How long the judge may take to finish after the agent has ended.
const VERDICT: Duration = Duration::from_secs(2);

/// What the loop hears of.
#[derive(Debug)]
enum Event {
    /// A direction has ended; named by who writes in it.
    Ended(Party, End),
    /// The editor sent us a signal.
    Signal(Signal),
    /// The agent has ended.
    Exited,
    /// The judge is done.
    Judged(Box<Summary>),
}

/// Forwards this process's standard input and output to and from an agent until
/// the agent ends. Standard input and output are closed afterwards.
///
/// # Errors
/// Fails when the agent cannot be started, or when the system refuses signals, pipes or the standard streams.
pub fn run(options: Options) -> Result<Outcome, ProxyError> {
    let schemas = Schemas::given(options.version)?;
    let recorder = Recorder::new(schemas, options.log, options.redact, options.findings);
    let (events, heard) = mpsc::sync_channel(EVENTS);
    let tell = events.clone();
    // Before the agent exists, so that no signal falls between. One too many is lost,
    // as signals that come faster than they are handled are.
    signals::watch(signals::OF_EDITOR, move |signal| {
        drop(tell.try_send(Event::Signal(signal)))
    })?;
    let (input, output) = process_group::take_stdio()?;
    let (stop_client, stop_agent) = (io::pipe()?, io::pipe()?);
    let (agent, streams) = Agent::start(&options.command)?;
    let tap = Arc::new(match options.complete {
        true => Tap::patient(PATIENT_LIMIT),
        false => Tap::new(TAP_LIMIT),
    });
    let pumps = [
        Pump {
            from: Party::Client,
            source: input,
            sink: streams.input,
            stop: stop_client.0,
        },
        Pump {
            from: Party::Agent,
            source: streams.output,
            sink: output,
            stop: stop_agent.0,
        },
    ];
    for pump in pumps {
        let (tap, from) = (tap.clone(), pump.from);
        spawn(&events, move || Event::Ended(from, pump.run(&tap)));
    }
    let (judged, leader) = (tap.clone(), agent.group());
    spawn(&events, move || {
        Event::Judged(Box::new(judge::run(&judged, recorder)))
    });
    spawn(&events, move || {
        process_group::wait_for(leader);
        Event::Exited
    });

    let mut connection = Connection {
        agent,
        heard,
        grace: options.grace,
        input: None,
        output: None,
        stage: Stage::Open,
    };
    connection.until_exit();
    // The pump stops when it has forwarded what the agent left behind.
    drop(stop_agent.1);
    connection.until_forwarded();
    drop(stop_client.1);
    tap.close();
    let summary = connection.verdict();
    Ok(Outcome {
        code: connection.end(),
        summary,
    })
}

/// Does something in a thread and sends what came of it.
fn spawn(
    events: &SyncSender<Event>,
    act: impl FnOnce() -> Event + Send + 'static,
) -> JoinHandle<()> {
    let events = events.clone();
    // Nobody listens any more when the proxy is done.
    thread::spawn(move || drop(events.send(act())))
}

/// Tells the user something on standard error, which may be gone with the editor.
fn say(what: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "acp-conformance: {what}");
}

/// How far the agent has been asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not at all: the editor is there.
    Open,
    /// Its input has ended and nobody reads what it writes.
    Alone(Instant),
    /// It was sent `SIGTERM`.
    Terminated(Instant),
    /// It was sent `SIGKILL`.
    Killed,
}

struct Connection {
    agent: Agent,
    heard: Receiver<Event>,
    grace: Duration,
    /// How the editor's stream ended.
    input: Option<End>,
    /// How the agent's stream ended.
    output: Option<End>,
    stage: Stage,
}

impl Connection {
    /// Until the agent has ended.
    fn until_exit(&mut self) {
        loop {
            match self.next() {
                Some(Event::Exited) => return,
                Some(Event::Signal(signal)) => {
                    self.agent.signal(signal);
                }
                Some(Event::Ended(from, end)) => self.ended(from, end),
                Some(Event::Judged(_)) => {}
                None => self.escalate(),
            }
        }
    }

    /// Until everything that the agent has written is forwarded. A signal ends the
    /// wait: the agent is not there any more to receive it.
    fn until_forwarded(&mut self) {
        while self.output.is_none() {
            match self.heard.recv() {
                Ok(Event::Ended(from, end)) => self.ended(from, end),
                Ok(Event::Signal(_)) | Err(_) => return,
                Ok(Event::Exited | Event::Judged(_)) => {}
            }
        }
    }

    /// The result of the judge, if it has one in time.
    fn verdict(&mut self) -> Option<Summary> {
        let deadline = Instant::now() + VERDICT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok(Event::Judged(summary)) => return Some(*summary),
                Ok(Event::Ended(..) | Event::Exited) => {}
                Ok(Event::Signal(_)) | Err(_) => return None,
            }
        }
    }

    /// The agent's exit code. Who is left of its group is ended if the editor is gone.
    fn end(&mut self) -> u8 {
        if self.stage != Stage::Open {
            self.agent.signal(Signal::KILL);
        }
        self.agent.reap()
    }

    fn ended(&mut self, from: Party, end: End) {
        if let End::Failed(error) = &end {
            let reader = from.peer();
            say(format_args!(
                "cannot forward from the {from} to the {reader}: {error}"
            ));
        }
        match from {
            Party::Client => self.input = Some(end),
            Party::Agent => self.output = Some(end),
        }
        let editor_is_gone = match (&self.input, &self.output) {
            // An agent that hung up by itself is alone only if the editor did so too.
            (Some(End::Unread | End::Stopped), Some(End::Eof | End::Stopped)) => false,
            (Some(_), Some(_)) => true,
            _ => false,
        };
        if editor_is_gone && self.stage == Stage::Open {
            self.stage = Stage::Alone(Instant::now() + self.grace);
        }
    }

    fn escalate(&mut self) {
        self.stage = match self.stage {
            Stage::Alone(_) => {
                self.agent.signal(Signal::TERM);
                Stage::Terminated(Instant::now() + self.grace)
            }
            Stage::Open | Stage::Terminated(_) | Stage::Killed => {
                self.agent.signal(Signal::KILL);
                Stage::Killed
            }
        };
    }

    /// The next event; `None` when it is time to ask the agent harder.
    fn next(&self) -> Option<Event> {
        match self.stage {
            Stage::Open | Stage::Killed => self.heard.recv().ok(),
            Stage::Alone(deadline) | Stage::Terminated(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.heard.recv_timeout(left).ok()
            }
        }
    }
}
