//! The file of a Unix socket: accessible to its owner only, removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, ready};

use tokio::net::{UnixListener, UnixStream};

pub(super) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the created file: another may have replaced it.
    made: (u64, u64),
}

impl UnixSocket {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_behind(path) => {
                fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            bound => bound,
        }?;
        let metadata = fs::symlink_metadata(path)?;
        let socket = Self {
            listener,
            path: path.to_owned(),
            made: (metadata.dev(), metadata.ino()),
        };
        // Without this the umask decides, and it commonly lets others connect to a socket.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(socket)
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

/// Returns whether the file is a socket that no process listens on.
fn is_left_behind(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    is_socket
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
