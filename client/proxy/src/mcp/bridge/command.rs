//! The program that an agent starts in place of a server.

use std::ffi::OsString;
use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::SECRET;

/// The program that an agent starts to reach a server inside of the connection. It calls [`run_bridge`] with
/// the address, which is its last argument.
#[derive(Clone, Debug)]
#[must_use]
pub struct BridgeCommand {
    program: String,
    args: Vec<String>,
}

impl BridgeCommand {
    /// Sets a program, by its absolute path, and the arguments before the address.
    pub fn new(
        program: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
        }
    }

    /// The command `acp mcp-bridge`, which agents find in `PATH`.
    pub fn acp() -> Self {
        Self::new("acp", ["mcp-bridge"])
    }

    pub(super) fn declaration(&self, name: &Value, address: &str, secret: &str) -> Value {
        let mut args = self.args.clone();
        args.push(address.to_owned());
        json!({
            "name": name,
            "command": self.program,
            "args": args,
            // Not an argument, for those are shown to every user of the machine.
            "env": [{"name": SECRET, "value": secret}],
        })
    }
}

/// Copies `input` and `output` from and to a server inside of an agent's connection, until either ends.
/// `address` is what the agent was given, and the secret is in the environment.
///
/// # Errors
///
/// Fails without a secret, and if the address cannot be reached: the session has ended, or its host.
pub async fn run_bridge(
    address: &str,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let Some(secret) = std::env::var_os(SECRET) else {
        let message =
            format!("the variable {SECRET} is missing: an agent starts this program with it");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    };
    let connected = TcpStream::connect(address).await;
    let mut stream = connected.map_err(|error| {
        let message = format!("nobody listens at {address}, so the session has ended: {error}");
        io::Error::new(error.kind(), message)
    })?;
    let mut line = OsString::into_encoded_bytes(secret);
    line.push(b'\n');
    stream.write_all(&line).await?;
    let (mut from, mut to) = stream.split();
    tokio::select! {
        sent = async {
            tokio::io::copy(&mut input, &mut to).await?;
            // What was asked is still answered.
            to.shutdown().await?;
            std::future::pending().await
        } => sent,
        received = tokio::io::copy(&mut from, &mut output) => received.map(drop),
    }
}
