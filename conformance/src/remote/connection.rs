//! A connection over HTTP: its posts and its streams.

use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::http::{Arrival, Reply, Request, Response, What, named, read, session_of, unanswered};
use super::server::Server;
use crate::harness::{Outcome, Script, fail, serves};
use crate::suite::without_model_trouble;

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
    pub(super) streams: Vec<Stream>,
    arrivals: mpsc::Receiver<Arrival>,
    arrived: mpsc::Sender<Arrival>,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) session: Option<String>,
    reading: AbortHandle,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reading.abort();
    }
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
        if let Some(method) = self.server.auth_method() {
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
            return Err(response.wrong("expected a result of initialize, got a refusal"));
        }
        let id = named(&response, "acp-connection-id")?.to_owned();
        let answer = response.json()?;
        let Some(result) = answer.get("result") else {
            return Err(response.wrong("expected a result of initialize, got none"));
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
            Err(response) => Err(response.wrong("expected a stream, got another response")),
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
                let reason = format!("expected an answer to {method}, got the end of its stream");
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
        self.server.needs_session()?;
        let reply = self.result("session/new", self.setup(None), None).await?;
        match reply.value["result"]["sessionId"].as_str() {
            Some(session) => Ok(session.to_owned()),
            None => Err(self.wrong(
                reply.at,
                "expected the id of a session in the result, got none",
            )),
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

    /// The answer to a prompt is a result. An error of the model decides nothing.
    ///
    /// # Errors
    /// For this reason when it is an error.
    pub(crate) fn is_turn(&self, reply: &Reply, reason: &str) -> Outcome {
        if let Some(error) = reply.value.get("error") {
            without_model_trouble(error)?;
        }
        match reply.value.get("result") {
            Some(_) => Ok(()),
            None => Err(self.wrong(reply.at, reason)),
        }
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
            return fail(format!("expected at most {KEPT} events, got more"));
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

    /// The connection still serves: a session opens.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) async fn still_serves(&mut self) -> Outcome {
        serves("afterwards", self.new_session_without_stream().await)
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
