//! Where the output of a run leads.

use std::io;

/// Returns whether standard output and standard error lead to one terminal, pipe or file.
#[cfg(unix)]
pub(super) fn same_place() -> bool {
    use std::fs::File;
    use std::os::fd::{AsFd as _, BorrowedFd};
    use std::os::unix::fs::MetadataExt as _;

    let place = |stream: BorrowedFd<'_>| {
        let metadata = File::from(stream.try_clone_to_owned()?).metadata()?;
        io::Result::Ok((metadata.dev(), metadata.ino()))
    };
    match (place(io::stdout().as_fd()), place(io::stderr().as_fd())) {
        (Ok(output), Ok(error)) => output == error,
        _ => false,
    }
}

/// Returns whether standard output and standard error lead to one terminal.
#[cfg(not(unix))]
pub(super) fn same_place() -> bool {
    use std::io::IsTerminal as _;
    io::stdout().is_terminal() && io::stderr().is_terminal()
}
