//! A component of a chain: its two sides on one connection, by `proxy/initialize` and `proxy/successor`.
//!
//! ```text
//!        near (towards the client)  <── as it is ──────> ┐
//!                                                        ├ joined
//!        far (towards the agent)    <── wrapped in ────> ┘
//!                                       proxy/successor
//! ```
//!
//! The conductor has the process of the component as `joined`; a component has the conductor there, and its
//! own two sides as `near` and `far`. What happens to the messages is the same, except for `initialize`.
//!
//! Spec: <https://agentclientprotocol.com/rfds/proxy-chains>

mod translate;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_sdk::MessageTransport;
use bytes::Bytes;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// What begins a component's connection.
const PROXY_INITIALIZE: &str = "proxy/initialize";

/// How long the rest may take to be read.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Messages that are passed on before other tasks have their turn.
const BATCH: usize = 64;

/// Where a message comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Near,
    Far,
    Joined,
}

impl Place {
    const ALL: [Self; 3] = [Self::Near, Self::Far, Self::Joined];
}

/// Who `joined` leads to.
#[derive(Debug)]
pub(crate) enum Joined {
    /// The component with this name.
    Component { name: String, limit: Duration },
    /// The conductor.
    Conductor,
}

/// Why a link has ended.
#[derive(Debug)]
pub(crate) enum LinkEnd {
    /// A place sends nothing more, or takes nothing.
    Ended(Place),
    /// The component does not take part.
    Unusable(String),
}

pub(crate) struct Link {
    joined: Joined,
    ends: [Pin<Box<dyn MessageTransport>>; 3],
    /// What was read, and waits for room where it goes.
    waiting: [Option<(Place, Bytes)>; 3],
    has_unflushed: [bool; 3],
    is_ended: [bool; 3],
    /// The ids of requests of the far side, as JSON, by those on `joined`.
    renamed: HashMap<Box<str>, Box<str>>,
    last_id: u64,
    prefix: String,
    /// Requests from `joined` that are not answered, and where they went.
    asked: HashMap<Box<str>, Place>,
    /// The id of the component's `proxy/initialize`, and when it must be answered.
    initialize: Option<(Box<str>, Instant)>,
    /// Cancelled when the near side sends nothing more.
    near_ended: CancellationToken,
}

impl Link {
    pub(crate) fn new(joined: Joined, ends: [Pin<Box<dyn MessageTransport>>; 3]) -> Self {
        Self {
            joined,
            ends,
            waiting: Default::default(),
            has_unflushed: [false; 3],
            is_ended: [false; 3],
            renamed: HashMap::new(),
            last_id: 0,
            prefix: crate::message::prefix("successor"),
            asked: HashMap::new(),
            initialize: None,
            near_ended: CancellationToken::new(),
        }
    }

    /// Returns what tells that the near side sends nothing more.
    pub(crate) fn near_ended(&self) -> CancellationToken {
        self.near_ended.clone()
    }

    /// Passes messages on until a place has ended. Returns also whether the near side has ended before.
    pub(crate) async fn run(&mut self) -> (LinkEnd, bool) {
        let end = loop {
            let deadline = self.initialize.as_ref().map(|(_, deadline)| *deadline);
            let overdue = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let passed = tokio::select! {
                passed = poll_fn(|cx| self.poll_pass(cx)) => passed,
                () = overdue => break LinkEnd::Unusable(self.silent()),
            };
            match passed {
                // What the component still sends is passed on.
                Ok(Some(Place::Near)) => {
                    self.near_ended.cancel();
                    let joined = &mut self.ends[Place::Joined as usize];
                    let closing = poll_fn(|cx| joined.as_mut().poll_close(cx));
                    // A component that is gone shows when it is read, and one that reads nothing may still write.
                    let _ = timeout(CLOSE_LIMIT, closing).await;
                }
                Ok(Some(place)) => break LinkEnd::Ended(place),
                Ok(None) => {}
                Err((place, _)) => break LinkEnd::Ended(place),
            }
        };
        (end, self.near_ended.is_cancelled())
    }

    /// Ends what is still there: whoever it is reads what was passed on, and the end.
    pub(crate) async fn close(mut self) {
        self.near_ended.cancel();
        let closing = async {
            for end in &mut self.ends {
                // What is gone cannot be closed.
                let _ = poll_fn(|cx| end.as_mut().poll_close(cx)).await;
            }
        };
        let _ = timeout(CLOSE_LIMIT, closing).await;
    }

    fn silent(&self) -> String {
        match &self.joined {
            Joined::Component { name, limit } => format!(
                "the proxy `{name}` has not answered {PROXY_INITIALIZE} for {} s",
                limit.as_secs_f32()
            ),
            Joined::Conductor => "the conductor is silent".to_owned(),
        }
    }

    /// Passes messages on; ready when a place has ended, and now and then.
    fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Place>, (Place, io::Error)>> {
        let had_deadline = self.initialize.is_some();
        for _ in 0..BATCH {
            let mut has_passed = false;
            for from in Place::ALL {
                has_passed |= self.pass_one(from, cx)?;
                let is_over = self.is_ended[from as usize] && self.waiting[from as usize].is_none();
                if is_over && (from != Place::Near || !self.near_ended.is_cancelled()) {
                    return Poll::Ready(Ok(Some(from)));
                }
            }
            if self.initialize.is_some() != had_deadline {
                return Poll::Ready(Ok(None));
            }
            if !has_passed {
                for place in Place::ALL {
                    let end = &mut self.ends[place as usize];
                    if self.has_unflushed[place as usize]
                        && let Poll::Ready(flushed) = end.as_mut().poll_flush(cx)
                    {
                        self.has_unflushed[place as usize] = false;
                        flushed.map_err(|error| (place, error))?;
                    }
                }
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn pass_one(&mut self, from: Place, cx: &mut Context<'_>) -> Result<bool, (Place, io::Error)> {
        if self.waiting[from as usize].is_none() && !self.is_ended[from as usize] {
            let received = self.ends[from as usize].as_mut().poll_receive(cx);
            match received.map_err(|error| (from, error))? {
                Poll::Ready(Some(message)) => {
                    self.waiting[from as usize] = self.translate(from, message);
                    if self.waiting[from as usize].is_none() {
                        return Ok(true);
                    }
                }
                Poll::Ready(None) => self.is_ended[from as usize] = true,
                Poll::Pending => {}
            }
        }
        let Some((to, message)) = self.waiting[from as usize].take() else {
            return Ok(false);
        };
        let end = &mut self.ends[to as usize];
        if end
            .as_mut()
            .poll_ready(cx)
            .map_err(|error| (to, error))?
            .is_pending()
        {
            self.waiting[from as usize] = Some((to, message));
            return Ok(false);
        }
        end.as_mut()
            .start_send(message)
            .map_err(|error| (to, error))?;
        self.has_unflushed[to as usize] = true;
        Ok(true)
    }
}
