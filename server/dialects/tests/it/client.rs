//! A client that writes and reads messages, as lines or with headers.

use std::time::Duration;

use acp_sdk::{ConnectionBuilder, Framing, IntoAgent};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};

/// Time for the next message: what is missing must not hang.
pub const LONGEST: Duration = Duration::from_secs(30);

pub struct Client {
    stream: BufReader<DuplexStream>,
    id: u64,
    framing: Framing,
    /// All messages, as `> sent` and `< received`.
    pub lines: Vec<String>,
}

impl Client {
    pub fn of<A: IntoAgent<A>>(agent: A) -> Self {
        Self::over(agent, Framing::Lines, ConnectionBuilder::new())
    }

    /// The same with the framing of a connection.
    pub fn over<A: IntoAgent<A>>(
        agent: A,
        framing: Framing,
        connection: ConnectionBuilder,
    ) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let connection = connection.agent::<A, _>(agent, tokio::io::split(theirs));
        tokio::spawn(connection);
        Self {
            stream: BufReader::new(ours),
            id: 0,
            framing,
            lines: Vec::new(),
        }
    }

    pub async fn write(&mut self, line: &str) {
        self.lines.push(format!("> {line}"));
        let text = match self.framing {
            Framing::ContentLength => format!("Content-Length: {}\r\n\r\n{line}", line.len()),
            _ => format!("{line}\n"),
        };
        self.write_raw(&text).await;
    }

    pub async fn write_raw(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a request, and returns its id.
    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let id = self.id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&request.to_string()).await;
        id
    }

    /// Waits until the other side has closed the connection.
    pub async fn closed(&mut self) {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        let read = tokio::time::timeout(LONGEST, read).await;
        assert_eq!(read.expect("no end").unwrap(), 0, "{line}");
    }

    pub async fn next(&mut self) -> Value {
        let read = tokio::time::timeout(LONGEST, self.read());
        let line = read.await.expect("no further message").unwrap();
        self.lines.push(format!("< {}", line.trim_end()));
        serde_json::from_str(&line).unwrap()
    }

    async fn read(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        if self.framing != Framing::ContentLength {
            return Ok(line);
        }
        let length = line.trim_end().strip_prefix("Content-Length: ").unwrap();
        let mut body = vec![0; 2 + length.parse::<usize>().unwrap()];
        self.stream.read_exact(&mut body).await?;
        let body = String::from_utf8(body).unwrap();
        Ok(body.strip_prefix("\r\n").unwrap().to_owned())
    }

    /// Returns the answer to a request, and the notifications before it.
    pub async fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return (message, before);
            }
            before.push(message);
        }
    }

    pub async fn call(&mut self, method: &str, params: Value) -> (Value, Vec<Value>) {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Returns the result of a request, with the notifications before it.
    pub async fn result(&mut self, method: &str, params: Value) -> (Value, Vec<Value>) {
        let (answer, before) = self.call(method, params).await;
        assert!(answer["error"].is_null(), "{answer}");
        (answer["result"].clone(), before)
    }

    pub async fn error(&mut self, method: &str, params: Value) -> Value {
        let (answer, _) = self.call(method, params).await;
        assert!(answer["result"].is_null(), "{answer}");
        answer["error"].clone()
    }
}
