//! A connection over HTTP: its posts, its streams, and all that has come on them.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::events::Item;
use super::http::{Events, Request, Response, named};
use super::server::{Server, session_of, unanswered};
use crate::harness::{Failure, Outcome, Script, Stop, fail};
use crate::wire::shorten;

/// How many items wait to be read, and how many are kept.
const WAITING: usize = 1024;
const KEPT: usize = 100_000;

/// A connection that `initialize` has opened.
#[derive(Debug)]
pub(crate) struct Connection<'a> {
    pub(crate) server: &'a Server,
    /// Its id.
    pub(crate) id: String,
    cookies: Option<String>,
    /// The result of `initialize`.
    pub(crate) agent: Value,
    /// The responses to answers to the agent's requests.
    pub(crate) answers: Vec<Response>,
    /// Everything that has come, in order.
    pub(crate) log: Vec<Arrival>,
    script: Script,
    next_id: u64,
    streams: Vec<Stream>,
    arrivals: mpsc::Receiver<Arrival>,
    arrived: mpsc::Sender<Arrival>,
}

#[derive(Debug)]
struct Stream {
    session: Option<String>,
    reading: AbortHandle,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// What has come on a stream.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The number of the stream, in the order in which they were opened.
    pub(crate) stream: usize,
    pub(crate) what: What,
}

/// What comes on a stream.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A message, and the id of its event.
    Message {
        /// The id of the event.
        id: Option<String>,
        /// The message.
        value: Value,
    },
    /// Data that is no JSON object.
    Junk(String),
    /// A comment.
    Comment,
    /// The end, and why.
    End(String),
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// Its place in the log.
    pub(crate) at: usize,
    /// The number of its stream.
    pub(crate) stream: usize,
    /// The whole message.
    pub(crate) value: Value,
}

impl<'a> Connection<'a> {
    /// Opens a connection and its stream.
    ///
    /// # Errors
    /// When the server does not get that far.
    pub(crate) async fn open(server: &'a Server) -> Outcome<Self> {
        let mut connection = Self::without_streams(server).await?;
        connection.start().await?;
        Ok(connection)
    }

    /// Opens the stream of the connection, and authenticates when the profile says how.
    ///
    /// # Errors
    /// When the server does not get that far.
    pub(crate) async fn start(&mut self) -> Outcome {
        self.listen(None).await?;
        if let Some(method) = &self.server.env.profile.auth_method {
            let params = json!({"methodId": method});
            self.result("authenticate", params, None).await?;
        }
        Ok(())
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// When the server does not get that far.
    pub(crate) async fn without_streams(server: &'a Server) -> Outcome<Self> {
        let response = server.send(&server.initialize()).await?;
        if !response.status.is_success() {
            return Err(response.wrong("initialize is refused"));
        }
        let id = named(&response, "acp-connection-id")?.to_owned();
        let answer = response.json()?;
        let Some(result) = answer.get("result") else {
            return Err(response.wrong("initialize has no result"));
        };
        let (arrived, arrivals) = mpsc::channel(WAITING);
        Ok(Self {
            server,
            id,
            cookies: response.cookies(),
            agent: result.clone(),
            answers: Vec::new(),
            log: Vec::new(),
            script: Script::in_folder(&server.env.folder),
            next_id: 1,
            streams: Vec::new(),
            arrivals,
            arrived,
        })
    }

    /// A request of this connection.
    pub(crate) fn of_this(&self, request: Request, session: Option<&str>) -> Request {
        let mut request = request.with("acp-connection-id", &self.id);
        if let Some(session) = session {
            request = request.with("acp-session-id", session);
        }
        if let Some(cookies) = &self.cookies {
            request = request.with("cookie", cookies);
        }
        request
    }

    /// Posts a message, whatever comes of it.
    ///
    /// # Errors
    /// When there is no response.
    pub(crate) async fn post(&self, message: &Value, session: Option<&str>) -> Outcome<Response> {
        let request = self.of_this(self.server.post(message), session);
        self.server.send(&request).await
    }

    /// Posts a message that must be accepted.
    ///
    /// # Errors
    /// When it is not.
    pub(crate) async fn tell(&self, message: &Value, session: Option<&str>) -> Outcome {
        self.post(message, session).await?.is_success()
    }

    /// A GET of a stream.
    pub(crate) fn stream(&self, session: Option<&str>) -> Request {
        self.of_this(self.server.get(), session)
    }

    /// Opens a stream. Yields its number.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) async fn listen(&mut self, session: Option<&str>) -> Outcome<usize> {
        let request = self.stream(session);
        match self.try_listen(&request, session).await? {
            Ok(number) => Ok(number),
            Err(response) => Err(response.wrong("the stream is refused, or is none")),
        }
    }

    /// Opens a stream by this request. Yields its number, or the refusal.
    ///
    /// # Errors
    /// When there is no response.
    pub(crate) async fn try_listen(
        &mut self,
        request: &Request,
        session: Option<&str>,
    ) -> Outcome<Result<usize, Response>> {
        let (response, events) = self.server.open(request).await?;
        let Some(events) = events else {
            return Ok(Err(response));
        };
        let number = self.streams.len();
        let reading = tokio::spawn(read(events, number, self.arrived.clone()));
        self.streams.push(Stream {
            session: session.map(str::to_owned),
            reading: reading.abort_handle(),
        });
        Ok(Ok(number))
    }

    /// Closes a stream from this side.
    pub(crate) fn close_stream(&mut self, stream: usize) {
        if let Some(stream) = self.streams.get(stream) {
            stream.reading.abort();
        }
    }

    /// The session of a stream; `None` for one of the connection.
    pub(crate) fn session_of(&self, stream: usize) -> Option<&str> {
        self.streams.get(stream)?.session.as_deref()
    }

    /// The params of a request that sets a session up.
    pub(crate) fn setup(&self, session: Option<&str>) -> Value {
        let mut params = json!({"cwd": self.server.env.folder, "mcpServers": []});
        if let Some(session) = session {
            params["sessionId"] = json!(session);
        }
        params
    }

    /// Posts a request. Yields its id.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        params: Value,
        session: Option<&str>,
    ) -> Outcome<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.tell(&message, session).await?;
        Ok(id)
    }

    /// Waits for the answer to a request, on whatever stream.
    ///
    /// # Errors
    /// When it does not come in time.
    pub(crate) async fn reply(&mut self, id: u64, method: &str) -> Outcome<Reply> {
        let limit = self.server.env.turn_timeout;
        let deadline = Instant::now() + limit;
        let (mut place, begun) = (0, self.log.len());
        loop {
            while let Some(arrival) = self.log.get(place) {
                if let What::Message { value, .. } = &arrival.what
                    && is_answer(value, id)
                {
                    return Ok(Reply {
                        at: place,
                        stream: arrival.stream,
                        value: value.clone(),
                    });
                }
                place += 1;
            }
            if let Some(place) = self.end_since(begun) {
                let reason = format!("a stream ended before the answer to {method} came");
                return Err(self.wrong(place, reason));
            }
            if self.next(deadline).await?.is_none() {
                return unanswered(method, limit);
            }
        }
    }

    /// Posts a request and waits for its result.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn result(
        &mut self,
        method: &str,
        params: Value,
        session: Option<&str>,
    ) -> Outcome<Reply> {
        let id = self.begin(method, params, session).await?;
        let reply = self.reply(id, method).await?;
        match reply.value.get("result") {
            Some(_) => Ok(reply),
            None => Err(self.wrong(
                reply.at,
                format!("expected a result of {method}, got an error"),
            )),
        }
    }

    /// Opens a session and its stream. Yields its id.
    ///
    /// # Errors
    /// When the server does not get that far.
    pub(crate) async fn new_session(&mut self) -> Outcome<String> {
        let session = self.new_session_without_stream().await?;
        self.listen(Some(&session)).await?;
        Ok(session)
    }

    /// Opens a session. Yields its id.
    ///
    /// # Errors
    /// When the server does not get that far.
    pub(crate) async fn new_session_without_stream(&mut self) -> Outcome<String> {
        let reply = self.result("session/new", self.setup(None), None).await?;
        match reply.value["result"]["sessionId"].as_str() {
            Some(session) => Ok(session.to_owned()),
            None => Err(self.wrong(reply.at, "the result names no session")),
        }
    }

    /// Begins a turn. Yields the id of the request.
    ///
    /// # Errors
    /// When it is refused, or the profile has no such word.
    pub(crate) async fn prompt(&mut self, session: &str, words: &[&str]) -> Outcome<u64> {
        let text = self.server.prompt(words)?;
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.begin("session/prompt", params, Some(session)).await
    }

    /// Makes a whole turn.
    ///
    /// # Errors
    /// When it is not answered, or the profile has no such word.
    pub(crate) async fn turn(&mut self, session: &str, words: &[&str]) -> Outcome<Reply> {
        let id = self.prompt(session, words).await?;
        self.reply(id, "session/prompt").await
    }

    /// Ends the connection as its client.
    ///
    /// # Errors
    /// When there is no response.
    pub(crate) async fn delete(&self) -> Outcome<Response> {
        let request = self.of_this(self.server.request(Method::DELETE), None);
        self.server.send(&request).await
    }

    /// Waits for the next item, and answers it if it is a request. `None`: nothing before the deadline.
    ///
    /// # Errors
    /// When an answer is refused, or more came than is kept.
    pub(crate) async fn next(&mut self, deadline: Instant) -> Outcome<Option<usize>> {
        // This side keeps a sender, so there is no end.
        let Ok(Some(arrival)) = timeout_at(deadline, self.arrivals.recv()).await else {
            return Ok(None);
        };
        if self.log.len() >= KEPT {
            return fail(format!("more than {KEPT} events came"));
        }
        let request = match &arrival.what {
            What::Message { value, .. } if is_request(value) => Some(value.clone()),
            _ => None,
        };
        self.log.push(arrival);
        if let Some(request) = request
            && let Some(answer) = self.script.respond(&request)
        {
            let session = session_of(&request).map(str::to_owned);
            let response = self.post(&answer, session.as_deref()).await?;
            self.answers.push(response);
        }
        Ok(Some(self.log.len() - 1))
    }

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

    fn end_since(&self, from: usize) -> Option<usize> {
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

    /// The connection still serves: a session opens.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) async fn still_serves(&mut self) -> Outcome {
        match self.new_session_without_stream().await {
            Ok(_) => Ok(()),
            Err(Stop::Fail(mut failure)) => {
                failure.reason =
                    format!("the connection is of no use afterwards: {}", failure.reason);
                Err(Stop::Fail(failure))
            }
            Err(other) => Err(other),
        }
    }
}

/// A notification that nobody knows.
pub(crate) fn unknown_notification() -> Value {
    json!({"jsonrpc": "2.0", "method": "_conformance/notice", "params": {}})
}

/// Returns whether a message is the answer to this request.
pub(crate) fn is_answer(message: &Value, id: u64) -> bool {
    message.get("method").is_none() && message.get("id").and_then(Value::as_u64) == Some(id)
}

fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

/// Passes on what comes on a stream.
async fn read(mut events: Events, stream: usize, arrived: mpsc::Sender<Arrival>) {
    loop {
        let what = match events.next().await {
            Ok(Some(Item::Event { id, data })) => match serde_json::from_str::<Value>(&data) {
                Ok(value) if value.is_object() => What::Message { id, value },
                _ => What::Junk(data),
            },
            Ok(Some(Item::Comment)) => What::Comment,
            Ok(None) => What::End("complete".to_owned()),
            Err(reason) => What::End(reason),
        };
        let is_end = matches!(what, What::End(_));
        if arrived.send(Arrival { stream, what }).await.is_err() || is_end {
            return;
        }
    }
}
