//! Accepts the prompts of another `acp`.
//!
//! A client writes the prompt to a file beside the socket and sends the file's name. Only a process that may
//! write there has its prompts accepted, so no agent in a sandbox: it can connect to the socket, but not create
//! the file. The file is removed when it is read, so it is one prompt, and is refused if it is old. One that a
//! killed client has left is removed when a process next listens, or takes a prompt, for the name.
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
    let request = read(id, socket);
    remove_old(socket);
    let Some(request) = request else {
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

/// Removes the prompts that killed clients have left beside a socket. What cannot be removed stays.
pub(super) fn remove_old(socket: &Path) {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_stem()) else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let file = entry.path();
        // NAME.ID.prompt
        let is_of_name = file.file_stem().map(Path::new).and_then(Path::file_stem) == Some(name);
        if is_of_name && file.extension().is_some_and(|end| end == "prompt") && !is_new(&file) {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn is_new(file: &Path) -> bool {
    let time = file.metadata().and_then(|metadata| metadata.modified());
    time.is_ok_and(|time| time.elapsed().unwrap_or_default() < OLD)
}

/// Reads and removes the file of a prompt.
fn read(id: &str, socket: &Path) -> Option<Request> {
    // An id is no path.
    if !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return None;
    }
    let file = socket.with_extension(format!("{id}.prompt"));
    let is_new = is_new(&file);
    let text = text_file::read(&file, LONGEST_PROMPT);
    std::fs::remove_file(&file).ok()?;
    serde_json::from_str(&text.ok()??).ok().filter(|_| is_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_that_killed_clients_have_left_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, age| {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - age)
                .unwrap();
        };
        write("work.sock", OLD * 2);
        write("work.0-old.prompt", OLD * 2);
        write("work.0-new.prompt", Duration::ZERO);
        write("working.0-old.prompt", OLD * 2);
        remove_old(&folder.path().join("work.sock"));
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["work.0-new.prompt", "work.sock", "working.0-old.prompt"]
        );
    }
}
