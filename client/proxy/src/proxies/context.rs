//! Puts files before the first prompt of each session.

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::HandlerError;
use serde_json::{Value, json};

use crate::Proxy;
use crate::mcp::sessions;
use crate::message::{raw, value};

/// The maximum size of a file, in bytes.
const LARGEST: u64 = 1 << 20;

/// The maximum number of sessions that are remembered. Older ones may be given the files twice.
const MOST_SESSIONS: usize = 10_000;

/// Creates a proxy that puts the texts of files before the first prompt of each session.
///
/// They are read then. A prompt whose files cannot be read is answered with an error.
///
/// # Errors
///
/// Fails if a file cannot be read now.
pub fn context(files: impl IntoIterator<Item = PathBuf>) -> io::Result<Proxy> {
    let files: Arc<[PathBuf]> = files.into_iter().collect();
    texts(&files)?;
    let given = Arc::new(Mutex::new(HashSet::new()));
    let mut proxy = Proxy::new("context");
    // An earlier connection has given them to sessions that exist.
    for method in ["session/load", "session/resume", "session/fork"] {
        let given = given.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let named = sessions::named(params.as_deref());
            let given = given.clone();
            async move {
                let result = next.call(params).await?;
                // That of a fork is a new one.
                is_first(&given, sessions::opened(named, &result));
                Ok(result)
            }
        });
    }
    Ok(
        proxy.on_raw_request(Some("session/prompt"), move |next, params| {
            let is_first = is_first(&given, sessions::named(params.as_deref()));
            let files = files.clone();
            async move {
                let mut params = params;
                if is_first {
                    let mut request = value(params.as_deref());
                    if let Some(prompt) = request["prompt"].as_array_mut() {
                        let texts = texts(&files).map_err(HandlerError::internal)?;
                        prompt.splice(0..0, texts);
                        params = Some(raw(&request)?);
                    }
                }
                next.call(params).await
            }
        }),
    )
}

fn is_first(given: &Mutex<HashSet<String>>, session: Option<String>) -> bool {
    let mut given = given.lock().unwrap_or_else(PoisonError::into_inner);
    if given.len() >= MOST_SESSIONS {
        given.clear();
    }
    given.insert(session.unwrap_or_default())
}

/// Returns the files as contents of a prompt.
fn texts(files: &[PathBuf]) -> io::Result<Vec<Value>> {
    let text = |path: &PathBuf| {
        let text = text(path).map_err(|error| {
            let path = path.display();
            io::Error::other(format!("cannot read {path} for the prompt: {error}"))
        })?;
        let text = format!("From {}:\n\n{text}", path.display());
        Ok(json!({"type": "text", "text": text}))
    };
    files.iter().map(text).collect()
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(LARGEST + 1);
    file.read_to_string(&mut text)?;
    match text.len() as u64 > LARGEST {
        true => Err(io::Error::other("it is longer than 1 MiB")),
        false => Ok(text),
    }
}
