//! Records all messages.

use std::path::Path;

use acp_sdk::Transcript;

use crate::{Proxy, Side};

/// Creates a proxy that writes a transcript of all messages to a new file, or to one in a directory, as `acp record` does. Texts are
/// masked, unless it is `verbatim`.
///
/// # Errors
///
/// Fails if the file exists or cannot be created.
pub fn record(file: impl AsRef<Path>, verbatim: bool) -> acp_sdk::Result<Proxy> {
    let transcript = Transcript::file(file)?;
    let transcript = match verbatim {
        true => transcript.verbatim(),
        false => transcript,
    };
    let recording = transcript.record()?;
    Ok(
        Proxy::new("record").observe(move |from, message| match from {
            Side::Client => recording.from_client(message),
            Side::Agent => recording.from_agent(message),
        }),
    )
}
