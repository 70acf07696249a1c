//! Accepts the prompts of another `acp`.
//!
//! A client writes the prompt to a file beside the socket and sends the file's name. Only a process that may
//! write there has its prompts accepted, so no agent in a sandbox: it can connect to the socket, but not create
//! the file. The file is removed when it is read, so it is one prompt, and is refused if it is old, such as one
//! that a killed client has left.
//!
//! Behind the answer the process that runs the turn sends pieces: what `acp run` would write to its two
//! streams, and at last the exit code. A client that accepts nothing for 2 s, or is gone, gets no more of them;
//! the turn goes on.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::{Control, Prompted};
use crate::args::Format;
use crate::output::{Output, Waiting};
use crate::text_file;

/// Maximum size of the file of a prompt, in bytes.
pub(super) const LONGEST_PROMPT: u64 = 1 << 20;

/// Age from which the file of a prompt is refused.
const OLD: Duration = Duration::from_secs(60);

/// The contents of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) text: String,
    /// The format of the output; without it nobody waits for it.
    pub(super) format: Option<Format>,
    pub(super) is_terminal: bool,
    pub(super) is_shared: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    Accepted,
    Refused(String),
}

/// Accepts a prompt, or refuses it with a reason. Does not answer a client that has written no prompt.
pub(super) async fn accept(
    id: &str,
    socket: &Path,
    control: &Control,
    mut stream: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let Some(request) = read(id, socket) else {
        return stream.shutdown().await;
    };
    let place = control.place();
    let answer = match &place {
        Ok(_) => Answer::Accepted,
        Err(reason) => Answer::Refused((*reason).to_owned()),
    };
    let line = serde_json::to_string(&answer)? + "\n";
    stream.write_all(line.as_bytes()).await?;
    stream.flush().await?;
    if let Ok(place) = place {
        let Request { text, format, .. } = request;
        let (is_terminal, is_shared) = (request.is_terminal, request.is_shared);
        let waiting =
            |format| Output::of_prompt(format, Waiting::new(stream), is_terminal, is_shared);
        place.send(Prompted {
            id: id.to_owned(),
            text,
            output: format.map(waiting),
        });
    }
    Ok(())
}

/// Reads and removes the file of a prompt.
fn read(id: &str, socket: &Path) -> Option<Request> {
    // An id is no path.
    if !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return None;
    }
    let file = socket.with_extension(format!("{id}.prompt"));
    let age = file.metadata().and_then(|metadata| metadata.modified());
    let is_new = age.is_ok_and(|time| time.elapsed().unwrap_or_default() < OLD);
    let text = text_file::read(&file, LONGEST_PROMPT);
    std::fs::remove_file(&file).ok()?;
    serde_json::from_str(&text.ok()??).ok().filter(|_| is_new)
}
