//! `/acp` over WebSocket.

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::EndpointSettings;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::http::{Host, request};
use crate::raw::PATIENCE;

/// A client over WebSocket.
pub struct Socket {
    socket: WebSocketStream<TcpStream>,
    pub connection: String,
    next: u64,
}

impl Socket {
    pub async fn open(host: &Host) -> Self {
        let stream = TcpStream::connect(host.address).await.unwrap();
        let url = format!("ws://{}{}", host.address, host.path);
        let mut request = url.into_client_request().unwrap();
        if let Some(token) = &host.token {
            let value = format!("Bearer {}", token.secret()).parse().unwrap();
            request.headers_mut().insert("authorization", value);
        }
        let opened = tokio_tungstenite::client_async(request, stream).await;
        let (socket, response) = opened.unwrap();
        let connection = response.headers().get("acp-connection-id");
        let connection = connection.map_or("", |id| id.to_str().unwrap());
        Self {
            connection: connection.to_owned(),
            socket,
            next: 0,
        }
    }

    pub async fn connect(host: &Host) -> Self {
        let mut socket = Self::open(host).await;
        let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        socket.send("initialize", params).await;
        let answer = socket.receive().await.unwrap();
        assert_eq!(answer["result"]["protocolVersion"], 1);
        socket
    }

    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.text(request(id, method, params)).await;
        id
    }

    pub async fn text(&mut self, text: String) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// Returns the next message; `None` at the end.
    pub async fn receive(&mut self) -> Option<Value> {
        loop {
            match self.socket.next().await?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Sends a request and returns its answer, and the messages before it.
    pub async fn call(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let id = self.send(method, params).await;
        let mut before = Vec::new();
        loop {
            let message = self.receive().await.unwrap();
            if message["id"] == id && message["method"].is_null() {
                return (before, message);
            }
            before.push(message);
        }
    }

    pub async fn new_session(&mut self) -> String {
        let params = json!({ "cwd": "/", "mcpServers": [] });
        let (_, answer) = self.call("session/new", params).await;
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    async fn close_code(&mut self) -> Option<CloseCode> {
        loop {
            match self.socket.next().await?.ok()? {
                Message::Close(frame) => return frame.map(|frame| frame.code),
                _ => continue,
            }
        }
    }
}

pub fn event_id(message: &Value) -> Option<u64> {
    message["params"]["_meta"]["acp-sdk"]["eventId"].as_u64()
}

async fn host(settings: &EndpointSettings) -> Host {
    Host::start(Server::new(Reference), settings).await
}

#[tokio::test]
async fn a_turn_and_a_resume_after_a_loss() {
    let host = host(&EndpointSettings::default()).await;
    let mut socket = Socket::connect(&host).await;
    assert!(socket.connection.starts_with("conn_"));
    let session = socket.new_session().await;
    let prompt = json!([{ "type": "text", "text": "stream 1000" }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    socket.send("session/prompt", params).await;
    let mut cursor = 0;
    while cursor < 300 {
        cursor = event_id(&socket.receive().await.unwrap()).unwrap();
    }
    drop(socket);
    let mut socket = Socket::connect(&host).await;
    let resume = json!({ "sessionId": session, "sinceEventId": cursor });
    let (mut updates, answer) = socket.call("_acp-sdk/session/resume", resume).await;
    let handle = host.server.session(&session.as_str().into()).await.unwrap();
    while updates.last().and_then(event_id) < Some(1002) {
        updates.push(socket.receive().await.unwrap());
    }
    let text = |update: &Value| {
        let text = &update["params"]["update"]["content"]["text"];
        text.as_str().unwrap_or_default().to_owned()
    };
    let rest: String = updates.iter().map(text).collect();
    let numbers = updates.iter().filter_map(event_id);
    assert!(numbers.is_sorted_by(|before, after| before < after));
    // Chunks of sixty bytes, one an event. Some updates are several chunks.
    assert_eq!(rest.len() as u64, (1002 - cursor) * 60, "{answer}");
    assert!(handle.last_event() >= 1002);
}

#[tokio::test]
async fn the_first_message_is_initialize() {
    let host = host(&EndpointSettings::default()).await;
    let mut socket = Socket::open(&host).await;
    socket.socket.send(Message::binary(vec![1])).await.unwrap();
    socket.text(request(0, "session/new", json!({}))).await;
    assert_eq!(socket.close_code().await, Some(CloseCode::Protocol));
}

#[tokio::test]
async fn binary_messages_are_ignored_and_pings_answered() {
    let host = host(&EndpointSettings::default()).await;
    let mut socket = Socket::connect(&host).await;
    socket.socket.send(Message::binary(vec![1])).await.unwrap();
    socket
        .socket
        .send(Message::Ping(b"p".to_vec().into()))
        .await
        .unwrap();
    let pong = socket.socket.next().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong(b"p".to_vec().into()));
    socket.new_session().await;
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_connection_goes_on() {
    let host = host(&EndpointSettings::default()).await;
    let mut socket = Socket::connect(&host).await;
    socket.text("{".to_owned()).await;
    let answer = socket.receive().await.unwrap();
    assert_eq!(
        (&answer["error"]["code"], &answer["id"]),
        (&json!(-32700), &Value::Null)
    );
    socket.new_session().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_connection_but_no_session() {
    let mut settings = EndpointSettings::default();
    settings.message_bytes = 10_000;
    let host = host(&settings).await;
    let mut socket = Socket::connect(&host).await;
    let session = socket.new_session().await;
    // The server may stop reading before all is sent.
    let _ = socket.socket.send(Message::text("x".repeat(10_001))).await;
    while socket.receive().await.is_some() {}
    let mut socket = Socket::connect(&host).await;
    let place = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    let (_, answer) = socket.call("session/resume", place).await;
    assert!(answer["error"].is_null(), "{answer}");
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_given_up() {
    let mut settings = EndpointSettings::default();
    settings.keep_alive = std::time::Duration::from_millis(20);
    settings.connections = 1;
    let host = host(&settings).await;
    // Pings are only answered while the client reads.
    let _silent = Socket::connect(&host).await;
    let initialize = request(0, "initialize", json!({ "protocolVersion": 1 }));
    let mut tries = tokio::time::interval(settings.keep_alive);
    while host.post(&[], &initialize).await.status == 503 {
        tries.tick().await;
    }
}

/// Sends a message of JSON that is none of JSON-RPC, and returns whether it was answered.
async fn is_served(host: &Host, bytes: usize) -> bool {
    let mut socket = Socket::connect(host).await;
    let text = format!("\"{}\"", "x".repeat(bytes));
    // The server may stop reading before all is sent.
    let _ = socket.socket.send(Message::text(text)).await;
    socket.receive().await.is_some()
}

#[tokio::test]
async fn messages_that_do_not_arrive_whole_share_the_budget_of_bodies() {
    let mut settings = EndpointSettings::default();
    settings.bodies = acp_server_remote::BodyBudget::new(200_000);
    let host = host(&settings).await;
    let mut halves = Vec::new();
    for _ in 0..3 {
        let mut half = Socket::connect(&host).await;
        // A text of 1 MiB begins; a client masks what it sends.
        let frame = [&[0x81, 0xff][..], &(1_u64 << 20).to_be_bytes(), &[0; 4]].concat();
        let stream = half.socket.get_mut();
        stream.write_all(&frame).await.unwrap();
        stream.write_all(&[b'x'; 50_000]).await.unwrap();
        halves.push(half);
    }
    let refused = async { while is_served(&host, 100_000).await {} };
    timeout(PATIENCE, refused).await.expect("a refusal");
    // Small messages need no room.
    Socket::connect(&host).await.new_session().await;
    drop(halves);
    let served = async { while !is_served(&host, 100_000).await {} };
    timeout(PATIENCE, served).await.expect("an answer");
}
