//! Prompts of another `acp`, and their output.
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
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::{Control, LIMIT, Live, one, socket, unreached};
use crate::agents::text_up_to;
use crate::args::{Format, PromptArgs};
use crate::exit::Code;
use crate::folders;
use crate::output::{Output, same_place};
use crate::run;
use crate::task::{Failure, Results};

/// Maximum size of the file of a prompt, in bytes.
const LONGEST_PROMPT: u64 = 1 << 20;

/// Maximum size of a piece of output, in bytes.
const LONGEST_PIECE: usize = 64 << 10;

/// Age from which the file of a prompt is refused.
const OLD: Duration = Duration::from_secs(60);

/// The contents of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    text: String,
    /// The format of the output; without it nobody waits for it.
    format: Option<Format>,
    is_terminal: bool,
    is_shared: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Accepted,
    Refused(String),
}

/// A prompt of another `acp` that was accepted.
#[derive(Debug)]
pub(in super::super) struct Prompted {
    pub(in super::super) id: String,
    pub(in super::super) text: String,
    /// Where its output goes, if somebody waits for it.
    pub(in super::super) output: Option<Output>,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Piece {
    Output = 1,
    Error = 2,
    /// The exit code, a byte.
    Exit = 3,
}

/// The client that waits for the output of its prompt.
pub(in super::super) struct Waiting(Box<dyn AsyncWrite + Send + Unpin>);

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

impl Waiting {
    /// Sends bytes.
    ///
    /// # Errors
    ///
    /// Fails when the client is gone, or does not accept a piece in time.
    pub(in super::super) async fn send(&mut self, what: Piece, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(LONGEST_PIECE) {
            let writing = async {
                self.0.write_u8(what as u8).await?;
                // A piece has at most 64 KiB.
                self.0.write_u32(piece.len() as u32).await?;
                self.0.write_all(piece).await?;
                self.0.flush().await
            };
            timeout(LIMIT, writing).await??;
        }
        Ok(())
    }
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
        let waiting = |format| {
            let waiting = Waiting(Box::new(stream));
            Output::of_prompt(format, waiting, is_terminal, is_shared)
        };
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
    let text = text_up_to(&file, LONGEST_PROMPT);
    std::fs::remove_file(&file).ok()?;
    serde_json::from_str(&text.ok()??).ok().filter(|_| is_new)
}

/// Executes `acp prompt`.
pub(in super::super) async fn prompt(
    args: &PromptArgs,
    results: &mut Results,
) -> Result<Code, Failure> {
    let text = match &*args.prompt {
        "-" => run::from_stdin(LONGEST_PROMPT)
            .await
            .map_err(Failure::failed)?,
        text => text.to_owned(),
    };
    let Live { path, .. } = one(&args.named).await?;
    let request = Request {
        text,
        format: (!args.no_wait).then_some(args.format),
        is_terminal: io::IsTerminal::is_terminal(&io::stdout()),
        is_shared: same_place(),
    };
    let id = acp_client::internal::new_prompt_id();
    let file = path.with_extension(format!("{id}.prompt"));
    let json = serde_json::to_vec(&request).map_err(|error| Failure::failed(error.to_string()))?;
    if json.len() as u64 >= LONGEST_PROMPT {
        let message = format!("the prompt is longer than {LONGEST_PROMPT} bytes");
        return Err(Failure::usage(message));
    }
    // Removed if the process does not take it.
    let _file = write(&file, &json).map_err(|error| {
        Failure::failed(format!(
            "cannot write the prompt to {}: {error}",
            file.display()
        ))
    })?;
    let name = &args.named.session;
    let answer = socket::ask::<Answer>(&path, &format!("prompt {id}")).await;
    let stream = match answer {
        Ok(Some((Answer::Accepted, stream))) => stream,
        Ok(Some((Answer::Refused(reason), _))) => {
            let message = format!("the session {name:?} takes no prompt: {reason}");
            return Err(Failure::failed(message));
        }
        Ok(None) => {
            return Err(Failure::failed(format!(
                "no acp uses the session {name:?} any more"
            )));
        }
        Err(reason) => return Err(unreached(&args.named, &reason)),
    };
    if args.no_wait {
        match args.format {
            Format::Json => {
                let line = serde_json::json!({ "type": "accepted", "promptId": id });
                results.json(&line.to_string()).await?;
            }
            Format::Text | Format::Quiet => results.line(&id).await?,
        }
        return Ok(Code::EndTurn);
    }
    copy(stream, results).await
}

fn write(file: &Path, json: &[u8]) -> io::Result<tempfile::TempPath> {
    let mut open = folders::open_file(file)?;
    let path = tempfile::TempPath::try_from_path(file)?;
    io::Write::write_all(&mut open, json)?;
    Ok(path)
}

/// Copies the output of a turn until its end.
async fn copy(mut pieces: impl AsyncRead + Unpin, results: &mut Results) -> Result<Code, Failure> {
    let mut bytes = Vec::new();
    while let Ok(what) = pieces.read_u8().await
        && let Ok(length) = pieces.read_u32().await
        && length as usize <= LONGEST_PIECE
    {
        bytes.resize(length as usize, 0);
        if pieces.read_exact(&mut bytes).await.is_err() {
            break;
        }
        match what {
            1 => results.bytes(&bytes).await?,
            2 => {
                results.flush().await?;
                let mut stderr = tokio::io::stderr();
                let _ = stderr.write_all(&bytes).await;
                let _ = stderr.flush().await;
            }
            _ => {
                let mut codes = Code::ALL.into_iter();
                let code = codes.find(|code| bytes == [*code as u8]);
                return Ok(code.unwrap_or(Code::Failed));
            }
        }
    }
    let message = "the rest of the turn is not shown: the acp that runs it has ended, or this one was too \
                   slow for it";
    Err(Failure::failed(message))
}
