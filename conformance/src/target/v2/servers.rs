//! The MCP servers of a session, which the reference agent of version 2 connects to and asks nothing
//! but `initialize`. Everything here blocks, with limits.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Refusal, invalid};

/// How long a server may take to connect, and again to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes.
const ANSWER: u64 = 1 << 20;

/// A server that this agent has started. Dropping it ends the server.
#[derive(Debug)]
pub(super) struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects to the servers that a session is opened with, and returns those that it has started. Servers
/// that fail are left out.
///
/// # Errors
/// When one has another transport than stdio or HTTP.
pub(super) fn connect(params: &Value) -> Result<Vec<Started>, Refusal> {
    let servers = params.get("mcpServers").and_then(Value::as_array);
    let servers = servers.into_iter().flatten();
    let mut transports = servers.clone().map(|server| server["type"].as_str());
    if transports.any(|name| !matches!(name, Some("stdio" | "http"))) {
        return Err(invalid("an MCP server is reached over stdio or http"));
    }
    let cwd = params["cwd"].as_str().unwrap_or_default();
    let mut started = Vec::new();
    for server in servers {
        match server["type"].as_str() {
            Some("stdio") => started.extend(start(server, cwd)),
            // What a server answers to one that asks nothing else does not matter.
            _ => drop(messages().try_for_each(|message| post(server, &message))),
        }
    }
    Ok(started)
}

/// The messages that connect to a server.
fn messages() -> impl Iterator<Item = String> {
    let info = json!({"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    messages.into_iter().map(|message| message.to_string())
}

/// Starts a server and initializes it.
fn start(server: &Value, cwd: &str) -> io::Result<Started> {
    let args = server["args"].as_array().into_iter().flatten();
    let child = Command::new(server["command"].as_str().unwrap_or_default())
        .args(args.filter_map(Value::as_str))
        .envs(pairs(&server["env"]))
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut started = Started(child);
    let output = started.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let input = started.0.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    initialize(input, output)?;
    Ok(started)
}

fn initialize(input: &mut ChildStdin, output: ChildStdout) -> io::Result<()> {
    let (answer, answered) = mpsc::channel();
    // Ends with the server, whose output it reads.
    std::thread::Builder::new().spawn(move || {
        let mut output = BufReader::new(output).take(ANSWER);
        let _ = answer.send(output.read_line(&mut String::new()));
        let _ = io::copy(&mut output, &mut io::sink());
    })?;
    let mut messages = messages();
    input.write_all(line(messages.next()).as_bytes())?;
    match answered.recv_timeout(TIMEOUT) {
        Ok(Ok(1..)) => input.write_all(line(messages.next()).as_bytes()),
        Ok(Ok(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn line(message: Option<String>) -> String {
    message.unwrap_or_default() + "\n"
}

/// Posts a message to a server over HTTP, without TLS.
fn post(server: &Value, message: &str) -> io::Result<()> {
    let url = server["url"].as_str().unwrap_or_default();
    let rest = url.strip_prefix("http://");
    let rest = rest.ok_or_else(|| io::Error::other("only URLs of http are supported"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = match host.contains(':') {
        true => host.to_socket_addrs()?.next(),
        false => (host, 80).to_socket_addrs()?.next(),
    };
    let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let headers = pairs(&server["headers"]).map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers: String = headers.collect();
    let length = message.len();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\
         Connection: close\r\n{headers}\r\n{message}"
    );
    stream.write_all(request.as_bytes())?;
    let mut status = String::new();
    BufReader::new(stream.take(ANSWER)).read_line(&mut status)?;
    match status.split(' ').nth(1) {
        Some("200" | "202") => Ok(()),
        _ => Err(io::Error::other(status)),
    }
}

/// The names and values of a list of them.
fn pairs(list: &Value) -> impl Iterator<Item = (&str, &str)> {
    let pairs = list.as_array().into_iter().flatten();
    pairs.filter_map(|pair| Some((pair.get("name")?.as_str()?, pair.get("value")?.as_str()?)))
}
