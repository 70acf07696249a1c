//! Adds files to what the agent is told first.

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::HandlerError;
use serde_json::{Value, json};

use super::{raw, value};
use crate::Proxy;

/// The maximum size of a file, in bytes.
const LARGEST: u64 = 1 << 20;

/// The maximum number of sessions that are remembered. Of older ones the files may be told twice.
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
    let told = Arc::new(Mutex::new(HashSet::new()));
    let mut proxy = Proxy::new("context");
    // An earlier connection has told them to sessions that exist.
    for method in ["session/load", "session/resume", "session/fork"] {
        let told = told.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let session = session(&value(params.as_deref()));
            let told = told.clone();
            async move {
                let result = next.call(params).await?;
                let forked = session_of_result(&value(Some(&result)));
                is_first(&told, forked.unwrap_or(session));
                Ok(result)
            }
        });
    }
    Ok(
        proxy.on_raw_request(Some("session/prompt"), move |next, params| {
            let mut request = value(params.as_deref());
            let is_first = is_first(&told, session(&request));
            let files = files.clone();
            async move {
                let mut params = params;
                if let (true, Some(prompt)) = (is_first, request["prompt"].as_array_mut()) {
                    let texts = texts(&files).map_err(HandlerError::internal)?;
                    prompt.splice(0..0, texts);
                    params = Some(raw(&request)?);
                }
                next.call(params).await
            }
        }),
    )
}

fn session(params: &Value) -> String {
    params["sessionId"].as_str().unwrap_or_default().to_owned()
}

fn session_of_result(result: &Value) -> Option<String> {
    Some(result["sessionId"].as_str()?.to_owned())
}

fn is_first(told: &Mutex<HashSet<String>>, session: String) -> bool {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() >= MOST_SESSIONS {
        told.clear();
    }
    told.insert(session)
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
