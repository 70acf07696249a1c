//! A connection over WebSocket, frame by frame.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};

use super::http::{Request, Response, initialize, unanswered};
use super::server::Server;
use crate::harness::{Failure, Outcome, Script, Stop, fail, serves};
use crate::suite::without_model_trouble;
use crate::transport::{Frame, Opcode, accepts_websocket};
use crate::wire::shorten;

/// How many frames are kept.
const KEPT: usize = 100_000;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// A WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocket<'a> {
    pub(crate) server: &'a Server,
    /// The response to the upgrade.
    pub(crate) response: Response,
    /// The result of `initialize`.
    pub(crate) agent: Value,
    /// Every frame that has come.
    pub(crate) frames: Vec<Frame>,
    /// Every message, with what was wrong with its frames in place of one that is no JSON object.
    pub(crate) messages: Vec<Result<Value, String>>,
    socket: TokioIo<Upgraded>,
    bytes: BytesMut,
    /// The message whose last frame has not come.
    begun: Option<BytesMut>,
    script: Script,
    next_id: u64,
    /// The socket has ended.
    ended: bool,
}

/// Sends an upgrade that is to be refused. Yields the response.
///
/// # Errors
/// When there is no response.
pub(crate) async fn refused_upgrade(server: &Server, request: &Request) -> Outcome<Response> {
    Ok(server.upgrade(request).await?.0)
}

impl<'a> WebSocket<'a> {
    /// Upgrades, and sends `initialize`.
    ///
    /// # Errors
    /// When the server does not get that far.
    pub(crate) async fn open(server: &'a Server) -> Outcome<Self> {
        let mut socket = Self::without_initialize(server, &server.upgrade_request()).await?;
        socket.text(initialize().to_string()).await;
        let answer = socket.reply(0, "initialize").await?;
        socket.agent = match answer.get("result") {
            Some(result) => result.clone(),
            None => return fail(format!("expected a result of initialize, got {answer}")),
        };
        if let Some(method) = server.auth_method() {
            let params = json!({"methodId": method});
            socket.call("authenticate", params).await?;
        }
        Ok(socket)
    }

    /// Upgrades by this request.
    ///
    /// # Errors
    /// When the server does not.
    pub(crate) async fn without_initialize(server: &'a Server, request: &Request) -> Outcome<Self> {
        let (response, socket) = server.upgrade(request).await?;
        let Some(socket) = socket else {
            return Err(response.wrong("expected a WebSocket, got a refusal"));
        };
        if !accepts_websocket(&response.headers) {
            return Err(
                response.wrong("expected the header sec-websocket-accept for the key, got another")
            );
        }
        Ok(Self {
            server,
            response,
            agent: Value::Null,
            frames: Vec::new(),
            messages: Vec::new(),
            socket,
            bytes: BytesMut::new(),
            begun: None,
            script: Script::in_folder(&server.env.folder),
            next_id: 1,
            ended: false,
        })
    }

    /// Sends bytes; whether the server takes them. If not, that is no failure: its frames say why.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> bool {
        let writing = async {
            self.socket.write_all(bytes).await?;
            self.socket.flush().await
        };
        let written = tokio::time::timeout(self.server.env.timeout, writing).await;
        matches!(written, Ok(Ok(())))
    }

    /// Sends a frame.
    pub(crate) async fn frame(&mut self, frame: &Frame) {
        self.raw(&frame.encode()).await;
    }

    /// Sends a message.
    pub(crate) async fn text(&mut self, text: impl Into<Bytes>) {
        self.frame(&Frame::new(Opcode::TEXT, text)).await;
    }

    /// The next request with this method. Yields its id too.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> (u64, Value) {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (id, message)
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Outcome<Value> {
        let (id, message) = self.request(method, params);
        self.text(message.to_string()).await;
        let answer = self.reply(id, method).await?;
        if let Some(error) = answer.get("error")
            && method == "session/prompt"
        {
            without_model_trouble(error)?;
        }
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => fail(format!("expected a result of {method}, got {answer}")),
        }
    }

    /// The params of `session/new`.
    pub(crate) fn setup(&self) -> Value {
        json!({"cwd": self.server.env.folder, "mcpServers": []})
    }

    /// Opens a session. Yields its id.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn new_session(&mut self) -> Outcome<String> {
        self.server.needs_session()?;
        let result = self.call("session/new", self.setup()).await?;
        match result["sessionId"].as_str() {
            Some(session) => Ok(session.to_owned()),
            None => fail(format!(
                "expected the id of a session in the result, got {result}"
            )),
        }
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// When there is none in time, or the socket ends.
    pub(crate) async fn reply(&mut self, id: u64, method: &str) -> Outcome<Value> {
        let limit = self.server.env.turn_timeout;
        let is_answer = |message: &Value| super::connection::is_answer(message, id);
        match self.message(limit, is_answer).await? {
            Some(answer) => Ok(answer),
            None if self.ended => {
                Err(self.over(format!("expected an answer to {method}, got the end")))
            }
            None => unanswered(method, limit),
        }
    }

    /// Waits for a message that fits; `None`: none in time, or the socket has ended.
    ///
    /// # Errors
    /// When a message is none, or more came than is kept.
    pub(crate) async fn message(
        &mut self,
        limit: Duration,
        fits: impl Fn(&Value) -> bool,
    ) -> Outcome<Option<Value>> {
        let deadline = Instant::now() + limit;
        let mut place = 0;
        loop {
            while let Some(message) = self.messages.get(place) {
                match message {
                    Ok(message) if fits(message) => return Ok(Some(message.clone())),
                    Ok(_) => {}
                    Err(reason) => return fail(reason.clone()),
                }
                place += 1;
            }
            if !self.next(deadline).await? {
                return Ok(None);
            }
        }
    }

    /// Waits for a frame that fits; `None`: none in time, or the socket has ended.
    ///
    /// # Errors
    /// When more came than is kept.
    pub(crate) async fn wait_for(
        &mut self,
        limit: Duration,
        fits: impl Fn(&Frame) -> bool,
    ) -> Outcome<Option<Frame>> {
        let deadline = Instant::now() + limit;
        let mut place = 0;
        loop {
            while let Some(frame) = self.frames.get(place) {
                if fits(frame) {
                    return Ok(Some(frame.clone()));
                }
                place += 1;
            }
            if !self.next(deadline).await? {
                return Ok(None);
            }
        }
    }

    /// Waits until the server ends the connection. Yields the code of its close frame; `None`
    /// without one.
    ///
    /// # Errors
    /// When it does not end it in time, or answers this request.
    pub(crate) async fn ends(&mut self, after: &str, unread: Option<u64>) -> Outcome<Option<u16>> {
        let limit = self.server.env.turn_timeout;
        let is_answer =
            |message: &Value| unread.is_some_and(|id| super::connection::is_answer(message, id));
        let is_last = |frame: &Frame| {
            let message = serde_json::from_slice(&frame.payload).unwrap_or_default();
            frame.opcode == Opcode::CLOSE || is_answer(&message)
        };
        match self.wait_for(limit, is_last).await? {
            Some(frame) if frame.opcode == Opcode::CLOSE => {
                Ok(Some(frame.close_code().unwrap_or(1005)))
            }
            Some(frame) => {
                let text = String::from_utf8_lossy(&frame.payload).into_owned();
                fail(format!("expected no answer to {after}, got {text}"))
            }
            None if self.ended => Ok(None),
            None => fail(format!(
                "expected the end of the connection after {after}, got none within {} s",
                limit.as_secs_f32()
            )),
        }
    }

    /// The connection still serves: a session opens.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) async fn still_serves(&mut self, after: &str) -> Outcome {
        serves(&format!("after {after}"), self.new_session().await)
    }

    /// Whether the server has ended the connection.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
            || self
                .frames
                .iter()
                .any(|frame| frame.opcode == Opcode::CLOSE)
    }

    /// The failure that this did not come.
    pub(crate) fn missing(&self, what: &str) -> Stop {
        match self.has_ended() {
            true => self.over(format!("expected {what}, got the end of the connection")),
            false => Stop::failed(format!(
                "expected {what}, got none within {} s",
                self.server.env.turn_timeout.as_secs_f32()
            )),
        }
    }

    /// Makes a whole turn.
    ///
    /// # Errors
    /// When it has no result, or the profile has no such word.
    pub(crate) async fn turn(&mut self, session: &str, words: &[&str]) -> Outcome<Value> {
        let text = self.server.prompt(words)?;
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.call("session/prompt", params).await
    }

    /// The failure of a socket that has ended.
    fn over(&self, reason: String) -> Stop {
        let close = self
            .frames
            .iter()
            .rev()
            .find(|frame| frame.opcode == Opcode::CLOSE);
        let came = match close {
            Some(close) => {
                let text = close.payload.get(2..).unwrap_or_default();
                format!(
                    "a close frame with code {}: {}",
                    close.close_code().unwrap_or(1005),
                    String::from_utf8_lossy(text)
                )
            }
            None => "the end of the socket without a close frame".to_owned(),
        };
        Stop::Fail(Box::new(Failure {
            reason,
            sent: None,
            came: Some(shorten(&came, 600)),
        }))
    }

    /// Reads until there is another frame; whether there is.
    async fn next(&mut self, deadline: Instant) -> Outcome<bool> {
        loop {
            let frame = Frame::decode(&mut self.bytes);
            if let Some(frame) = frame.map_err(Stop::failed)? {
                self.take(frame).await?;
                return Ok(true);
            }
            if self.ended {
                return Ok(false);
            }
            self.bytes.reserve(PIECE);
            match timeout_at(deadline, self.socket.read_buf(&mut self.bytes)).await {
                Err(_) => return Ok(false),
                Ok(Ok(1..)) => {}
                Ok(Ok(0) | Err(_)) => self.ended = true,
            }
        }
    }

    /// Notes a frame, answers pings and the agent's requests.
    async fn take(&mut self, frame: Frame) -> Outcome {
        if self.frames.len() >= KEPT {
            return fail(format!("expected at most {KEPT} frames, got more"));
        }
        let payload = frame.payload.clone();
        match frame.opcode {
            Opcode::TEXT if frame.is_last => self.arrive(&payload).await,
            Opcode::TEXT => self.begun = Some(BytesMut::from(payload.as_ref())),
            Opcode::CONTINUATION => {
                let mut whole = self.begun.take().unwrap_or_default();
                whole.extend_from_slice(&payload);
                match frame.is_last {
                    true => self.arrive(&whole).await,
                    false => self.begun = Some(whole),
                }
            }
            Opcode::PING => self.frame(&Frame::new(Opcode::PONG, payload)).await,
            _ => {}
        }
        self.frames.push(frame);
        Ok(())
    }

    async fn arrive(&mut self, message: &[u8]) {
        let message = match serde_json::from_slice::<Value>(message) {
            Ok(value) if value.is_object() => value,
            _ => {
                let text = shorten(&String::from_utf8_lossy(message), 600);
                let reason = format!("expected a JSON-RPC message in a text frame, got {text}");
                self.messages.push(Err(reason));
                return;
            }
        };
        let is_request = message.get("method").is_some() && message.get("id").is_some();
        let answer = is_request.then(|| self.script.respond(&message)).flatten();
        self.messages.push(Ok(message));
        if let Some(answer) = answer {
            let text = answer.to_string();
            self.frame(&Frame::new(Opcode::TEXT, text)).await;
        }
    }
}
