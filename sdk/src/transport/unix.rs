//! The file of a Unix socket: accessible to its owner only, removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, ready};

use tokio::net::{UnixListener, UnixStream};

/// Connections that wait to be accepted, as std has it.
const BACKLOG: u32 = 128;

pub(super) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the created file: another may have replaced it.
    made: (u64, u64),
}

impl UnixSocket {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        let bound = match bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_behind(path) => {
                fs::remove_file(path)?;
                bind(path)
            }
            bound => bound,
        }?;
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            listener: bound.listen(BACKLOG)?,
            path: path.to_owned(),
            made: (metadata.dev(), metadata.ino()),
        })
    }

    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        let (stream, _) = ready!(self.listener.poll_accept(cx))?;
        Poll::Ready(Ok(stream))
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let now = fs::symlink_metadata(&self.path);
        if now.is_ok_and(|now| (now.dev(), now.ino()) == self.made) {
            // Whoever listens here next replaces a file that could not be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates the file of a socket that does not listen yet.
///
/// Until then the system refuses all connections. Without the change of mode the umask decides, and
/// it commonly lets others connect.
fn bind(path: &Path) -> io::Result<tokio::net::UnixSocket> {
    let socket = tokio::net::UnixSocket::new_stream()?;
    socket.bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(socket)
}

/// Returns whether the file is a socket that no process listens on.
fn is_left_behind(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    is_socket
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_connects_before_the_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let connect = || std::os::unix::net::UnixStream::connect(&path);
        let bound = bind(&path).unwrap();
        let refused = connect().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let _listener = bound.listen(BACKLOG).unwrap();
        connect().unwrap();
    }
}
