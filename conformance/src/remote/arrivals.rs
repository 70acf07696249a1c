//! What has come on the streams of a connection, and waiting for more.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::connection::Connection;
use super::http::{Arrival, What};
use crate::harness::{Failure, Outcome, Stop};
use crate::wire::shorten;

impl Connection<'_> {
    /// Waits until a comment has come after those that are here; whether it has.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) async fn comment(&mut self, limit: Duration) -> Outcome<bool> {
        let is_comment = |arrival: &Arrival| matches!(arrival.what, What::Comment);
        self.until(limit, self.log.len(), is_comment).await
    }

    /// Waits until a stream has ended; whether it has.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) async fn ends(&mut self, stream: usize) -> Outcome<bool> {
        let limit = self.server.env.timeout;
        let is_end =
            |arrival: &Arrival| arrival.stream == stream && matches!(arrival.what, What::End(_));
        self.until(limit, 0, is_end).await
    }

    /// Waits until so many events with an id have come on a stream, or for as long as this.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) async fn until_events(
        &mut self,
        limit: Duration,
        stream: usize,
        count: usize,
    ) -> Outcome {
        let deadline = Instant::now() + limit;
        while self.events(stream).count() < count {
            if self.next(deadline).await?.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn until(
        &mut self,
        limit: Duration,
        from: usize,
        fits: impl Fn(&Arrival) -> bool,
    ) -> Outcome<bool> {
        let deadline = Instant::now() + limit;
        let mut place = from;
        loop {
            while let Some(arrival) = self.log.get(place) {
                if fits(arrival) {
                    return Ok(true);
                }
                place += 1;
            }
            if self.next(deadline).await?.is_none() {
                return Ok(false);
            }
        }
    }

    /// Waits for a message that fits, from this place of the log on. `None`: none before the limit.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) async fn until_message(
        &mut self,
        limit: Duration,
        from: usize,
        fits: impl Fn(&Value) -> bool,
    ) -> Outcome<Option<usize>> {
        let deadline = Instant::now() + limit;
        let mut place = from;
        loop {
            while let Some(arrival) = self.log.get(place) {
                match &arrival.what {
                    What::Message { value, .. } if fits(value) => return Ok(Some(place)),
                    _ => place += 1,
                }
            }
            if self.next(deadline).await?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Takes what comes for a while: what must not come has no event to wait for.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) async fn quiet(&mut self) -> Outcome {
        let deadline = Instant::now() + self.server.env.quiet;
        while self.next(deadline).await?.is_some() {}
        Ok(())
    }

    /// The messages that have come, with their places and streams.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (usize, usize, &Value)> {
        let arrivals = self.log.iter().enumerate();
        arrivals.filter_map(|(place, arrival)| match &arrival.what {
            What::Message { value, .. } => Some((place, arrival.stream, value)),
            _ => None,
        })
    }

    /// The events of a stream that have ids: place, id and message.
    pub(crate) fn events(&self, stream: usize) -> impl Iterator<Item = (usize, &str, &Value)> {
        let arrivals = self.log.iter().enumerate();
        arrivals.filter_map(move |(place, arrival)| match &arrival.what {
            What::Message {
                id: Some(id),
                value,
            } if arrival.stream == stream => Some((place, id.as_str(), value)),
            _ => None,
        })
    }

    /// The place of the first data that is no JSON object.
    pub(crate) fn junk(&self) -> Option<usize> {
        let is_junk = |arrival: &Arrival| matches!(arrival.what, What::Junk(_));
        self.log.iter().position(is_junk)
    }

    /// The place of the first end of a stream that no later one of its kind has replaced.
    pub(crate) fn end(&self) -> Option<usize> {
        self.end_since(0)
    }

    pub(super) fn end_since(&self, from: usize) -> Option<usize> {
        let is_newest = |number: usize| {
            let mut later = self.streams.iter().skip(number + 1);
            !later.any(|stream| stream.session.as_deref() == self.session_of(number))
        };
        let is_end =
            |arrival: &Arrival| matches!(arrival.what, What::End(_)) && is_newest(arrival.stream);
        let mut later = self.log.iter().enumerate().skip(from);
        later
            .find(|(_, arrival)| is_end(arrival))
            .map(|(place, _)| place)
    }

    /// The failure that the item at this place is.
    pub(crate) fn wrong(&self, place: usize, reason: impl Into<String>) -> Stop {
        let came = self.log.get(place).map(|arrival| {
            let stream = match self.session_of(arrival.stream) {
                Some(session) => format!("on the stream of session {session}"),
                None => "on the stream of the connection".to_owned(),
            };
            let text = match &arrival.what {
                What::Message { value, .. } => value.to_string(),
                What::Junk(text) => text.clone(),
                What::Comment => "a comment".to_owned(),
                What::End(reason) => format!("the end ({reason})"),
            };
            shorten(&format!("{stream}: {text}"), 600)
        });
        Stop::Fail(Box::new(Failure {
            reason: reason.into(),
            sent: None,
            came,
        }))
    }
}
