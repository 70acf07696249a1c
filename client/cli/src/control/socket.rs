//! The Unix socket beside the file of a session's name.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::{Control, Kept, LIMIT, LONGEST_ANSWER, LONGEST_REQUEST, accept};

/// A socket that is served until it is dropped, which must be before the name is unlocked.
#[derive(Debug)]
pub(in super::super) struct Socket {
    path: PathBuf,
    _serving: AbortOnDropHandle<()>,
}

impl Socket {
    /// Serves requests about a name.
    ///
    /// # Errors
    ///
    /// Fails when the socket cannot be bound, such as for a path of more than about 100 bytes.
    pub(in super::super) fn listen(kept: &Kept, control: Control) -> io::Result<Self> {
        let path = kept.socket();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        accept::remove_old(&path);
        let listener = UnixListener::bind(&path)?;
        let of_name = path.clone();
        let serving = tokio::spawn(async move {
            // After an error the session cannot be reached any more.
            while let Ok((stream, _)) = listener.accept().await {
                let _ = timeout(LIMIT, serve(stream, &of_name, &control)).await;
            }
        });
        Ok(Self {
            path,
            _serving: AbortOnDropHandle::new(serving),
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(stream: UnixStream, path: &Path, control: &Control) -> io::Result<()> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    (&mut stream)
        .take(LONGEST_REQUEST)
        .read_line(&mut request)
        .await?;
    if let Some(id) = request.trim_end().strip_prefix("prompt ") {
        return accept::accept(id, path, control, stream).await;
    }
    if let Some(status) = control.answer(&request) {
        let answer = serde_json::to_string(&status)? + "\n";
        stream.write_all(answer.as_bytes()).await?;
    }
    stream.shutdown().await
}

/// Sends a request. Returns the answer and the stream behind it; `None` if no process listens.
///
/// # Errors
///
/// Fails when the process does not answer in time, or not as expected.
pub(super) async fn ask<T: DeserializeOwned>(
    path: &Path,
    request: &str,
) -> Result<Option<(T, BufReader<UnixStream>)>, String> {
    let exchange = async {
        let stream = match UnixStream::connect(path).await {
            Ok(stream) => stream,
            // One that a killed process has left is refused.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut stream = BufReader::new(stream);
        stream.write_all(format!("{request}\n").as_bytes()).await?;
        let mut answer = String::new();
        (&mut stream)
            .take(LONGEST_ANSWER)
            .read_line(&mut answer)
            .await?;
        Ok(Some((serde_json::from_str(&answer)?, stream)))
    };
    // Others may be served before.
    let limit = LIMIT * 3;
    match timeout(limit, exchange).await {
        Ok(answer) => answer.map_err(|error: io::Error| error.to_string()),
        Err(_) => Err(format!("it did not answer within {} s", limit.as_secs())),
    }
}
