//! Standard input as a prompt.

use std::io::{self, Read as _};

/// Reads a prompt of less than `longest` bytes from standard input.
///
/// # Errors
///
/// Fails when it is longer or empty, or cannot be read.
pub(super) async fn prompt(longest: u64) -> Result<String, String> {
    let (tell, read) = tokio::sync::oneshot::channel();
    // The read cannot be cancelled, so it runs on a thread that is not joined.
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = io::stdin().take(longest).read_to_string(&mut text);
        // The receiver may have been dropped.
        let _ = tell.send(read.map(|_| text));
    });
    let reason = match read.await {
        Ok(Ok(text)) if text.len() as u64 == longest => {
            format!("it is longer than {longest} bytes")
        }
        Ok(Ok(text)) if text.trim().is_empty() => "it is empty".to_owned(),
        Ok(Ok(text)) => return Ok(text),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "reading it failed".to_owned(),
    };
    Err(format!(
        "cannot take the prompt from standard input: {reason}"
    ))
}
