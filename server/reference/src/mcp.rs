//! Connections to MCP servers, as far as an agent without a model needs them.
//!
//! The reference agent connects to the servers of a session and asks for nothing but
//! `initialize`. Everything here blocks, with limits.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a server may take to connect, and again to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"acp-server","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A connection to an MCP server. Dropping it ends a server that it has started.
#[derive(Debug)]
pub struct McpConnection {
    child: Option<Child>,
}

impl McpConnection {
    /// Starts a server and initializes it.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or does not answer within 5 s.
    pub fn stdio<'a>(
        command: &Path,
        arguments: impl Iterator<Item = &'a str>,
        environment: impl Iterator<Item = (&'a str, &'a str)>,
        cwd: &Path,
    ) -> io::Result<Self> {
        let child = Command::new(command)
            .args(arguments)
            .envs(environment)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut connection = Self { child: Some(child) };
        connection.initialize()?;
        Ok(connection)
    }

    fn initialize(&mut self) -> io::Result<()> {
        let child = self.child.as_mut();
        let pipes = child.and_then(|child| Some((child.stdin.as_mut()?, child.stdout.take()?)));
        let (input, output) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{INITIALIZE}")?;
        input.flush()?;
        let (send, answered) = mpsc::channel();
        // Ends with the server, whose output it reads.
        std::thread::Builder::new().spawn(move || {
            let mut output = BufReader::new(output).take(MAX_ANSWER);
            let mut line = String::new();
            let _ = send.send(output.read_line(&mut line));
            let _ = io::copy(&mut output, &mut io::sink());
        })?;
        match answered.recv_timeout(TIMEOUT) {
            Ok(Ok(1..)) => {
                writeln!(input, "{INITIALIZED}")?;
                input.flush()
            }
            Ok(Ok(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Initializes a server over HTTP, without TLS.
    ///
    /// # Errors
    ///
    /// When the URL is not of `http`, or the server does not answer with success within 5 s.
    pub fn http<'a>(
        url: &str,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> io::Result<Self> {
        let headers = headers.map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers: String = headers.collect();
        for body in [INITIALIZE, INITIALIZED] {
            post(url, &headers, body)?;
        }
        Ok(Self { child: None })
    }
}

fn post(url: &str, headers: &str, body: &str) -> io::Result<()> {
    let rest = url.strip_prefix("http://");
    let rest = rest.ok_or_else(|| io::Error::other("only URLs of http are supported"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = match host.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:80"),
    };
    let address = address.to_socket_addrs()?.next();
    let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\
         Connection: close\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut status = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut status)?;
    match status.split(' ').nth(1) {
        Some("200" | "202") => Ok(()),
        _ => Err(io::Error::other(format!(
            "the MCP server answered {status:?}"
        ))),
    }
}

impl Drop for McpConnection {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
