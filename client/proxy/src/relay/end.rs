//! The end of a relay: what is passed on after a side has ended, and who learns why.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_sdk::{ErrorCode, RpcError};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Event, Relay};
use crate::message;
use crate::side::Side;

/// How long answers are waited for before an agent learns that its client has ended.
const ANSWERS: Duration = Duration::from_secs(2);

/// How long the rest of a side that has ended is passed on.
const REST: Duration = Duration::from_secs(5);

/// Why a proxy has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct End {
    /// The side that has ended first.
    pub side: Side,
    /// What is known of it.
    pub reason: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Relay {
    pub(crate) async fn run(mut self) -> End {
        let mut failure = None;
        let stop = self.stop.clone();
        let mut has_client = true;
        let side = loop {
            let event = match self.missed.take() {
                Some(event) => event,
                None => tokio::select! {
                    biased;
                    () = stop.cancelled(), if has_client => Event::Ended(Side::Client),
                    event = poll_fn(|cx| self.poll_pass(cx)) => event,
                },
            };
            match event {
                Event::Ended(Side::Client) => {
                    has_client = false;
                    self.is_ended[Side::Client.index()] = true;
                    self.shared.fail_calls(Side::Client, "the client has ended");
                    // It may still read the answers to what it has sent at last.
                    self.drain(Side::Client, ANSWERS).await;
                    if self.missed.is_some() {
                        // The agent is sent the rest at the end.
                        continue;
                    }
                    self.client_ended.cancel();
                    let agent = &mut self.ends[Side::Agent.index()];
                    let closing = poll_fn(|cx| agent.as_mut().poll_close(cx));
                    // An agent that is gone shows when it is read, and one that reads nothing may still write.
                    let _ = timeout(REST, closing).await;
                }
                Event::Ended(Side::Agent) => break Side::Agent,
                Event::Failed(side, error) => {
                    failure = Some(error);
                    break side;
                }
            }
        };
        self.is_ended[side.index()] = true;
        let explain = self.explain.take().filter(|_| has_client);
        let reason = match (side, explain, failure) {
            (Side::Agent, Some(explain), failure) => explain(failure).await,
            (side, _, Some(error)) => format!("the {} has ended: {error}", side.name()),
            (side, _, None) => format!("the {} has ended", side.name()),
        };
        self.shared.close(side, &reason);
        self.outgoing[side.index()].clear();
        self.drain(side, Duration::ZERO).await;
        self.answer_all(&reason);
        // Whoever is still there reads the end.
        let rest = async {
            for side in Side::BOTH {
                poll_fn(|cx| self.poll_write_all(side, cx)).await;
                let end = &mut self.ends[side.index()];
                let _ = poll_fn(|cx| end.as_mut().poll_close(cx)).await;
            }
        };
        let _ = timeout(REST, rest).await;
        for side in Side::BOTH {
            self.shared.close(side, &reason);
        }
        self.client_ended.cancel();
        match has_client {
            true => End { side, reason },
            false => End {
                side: Side::Client,
                reason: "the client has ended".to_owned(),
            },
        }
    }

    /// Passes on what a side has sent before its end, and waits for the answers to it for a limited time.
    async fn drain(&mut self, side: Side, for_answers: Duration) {
        let now = Instant::now();
        for (deadline, with_answers) in [(now + for_answers, true), (now + REST, false)] {
            let passing = poll_fn(|cx| {
                if self.missed.is_none() && self.is_waiting(side, with_answers) {
                    match self.poll_pass(cx) {
                        Poll::Ready(event) => self.missed = Some(event),
                        Poll::Pending if self.is_waiting(side, with_answers) => {
                            return Poll::Pending;
                        }
                        Poll::Pending => {}
                    }
                }
                Poll::Ready(())
            });
            tokio::select! {
                biased;
                () = passing => {}
                () = sleep_until(deadline) => {}
            }
            // Nobody waits any more for what hooks do for a client that has ended.
            if self.is_ended[Side::Client.index()] {
                let gates = self.hooked[Side::Client.index()].values();
                gates.for_each(|gate| gate.cancelled.cancel());
            }
        }
    }

    fn is_waiting(&self, from: Side, with_answers: bool) -> bool {
        let requests = (&self.passed[from.index()], &self.hooked[from.index()]);
        let is_unanswered = !requests.0.is_empty() || !requests.1.is_empty();
        // What a hook of the agent's request still does after its first message is for the answer.
        let for_answers = requests.1.values().filter(|gate| gate.is_released());
        let is_running = match from {
            Side::Agent => self.running.len() > for_answers.count(),
            Side::Client => with_answers && !self.running.is_empty(),
        };
        !self.order[from.index()].is_empty()
            || !self.is_sent(from.other())
            || is_running
            || (with_answers && (is_unanswered || !self.is_sent(from)))
    }

    /// Returns whether a side has been sent all there is for it.
    fn is_sent(&self, to: Side) -> bool {
        let is_taken = self.shared.outbox(to).is_empty() && self.outgoing[to.index()].is_empty();
        is_taken && !self.has_unflushed[to.index()]
    }

    /// Answers what nobody answers any more.
    fn answer_all(&mut self, reason: &str) {
        let error = RpcError::new(ErrorCode::INTERNAL_ERROR, reason);
        for side in Side::BOTH {
            let passed = std::mem::take(&mut self.passed[side.index()]).into_keys();
            let hooked = std::mem::take(&mut self.hooked[side.index()]).into_keys();
            for id in passed.chain(hooked) {
                let answer = message::answer(&id, Err(&error));
                self.shared.outbox(side).push(&answer);
            }
        }
    }

    /// Ready when a side has taken all there is for it, or takes nothing any more.
    fn poll_write_all(&mut self, to: Side, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.poll_write(to, cx) {
                Ok(true) => {}
                Ok(false) if !self.outgoing[to.index()].is_empty() => return Poll::Pending,
                Ok(false) | Err(_) => return Poll::Ready(()),
            }
        }
    }
}
