//! The tool `fetch`.

use std::time::Duration;

use acp_agent::{Call, Risk, Tool, ToolError, ToolOutcome};
use acp_sdk::v1::ToolKind;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;

/// Bytes of a body that are read.
const MOST: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
struct Fetch {
    /// An `http` or `https` URL.
    url: String,
}

/// Returns the tool `fetch`: the text that a URL has. The user is asked, because a URL can carry what the
/// conversation knows, and can be one that only this machine reaches.
#[must_use]
pub fn fetch() -> Tool {
    let description = "Gets a URL and returns its text, at most 1 MiB, with the status. Pages are returned as \
        their source.";
    Tool::new("fetch", description, |fetch: Fetch, _: Call| get(fetch))
        .kind(ToolKind::Fetch)
        .risk(Risk::Acts)
        .timeout(Duration::from_secs(60))
        .shown(
            |fetch| format!("Fetch {}", fetch["url"].as_str().unwrap_or_default()),
            |_| Vec::new(),
        )
}

async fn get(fetch: Fetch) -> ToolOutcome<String> {
    let failed = |error: reqwest::Error| ToolError::failed(crate::error::causes(&error));
    let client = crate::client(|client| client.redirect(reqwest::redirect::Policy::none()))?;
    let response = client.get(&fetch.url).send().await.map_err(failed)?;
    let status = response.status();
    if let Some(next) = response.headers().get("location")
        && status.is_redirection()
    {
        let next = next.to_str().unwrap_or("an unreadable URL");
        // The user has allowed this URL and no other.
        return Ok(format!(
            "[{status}: it is at {next} now; fetch that if you need it]"
        ));
    }
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    let mut is_whole = true;
    while let Some(piece) = stream.next().await {
        body.extend_from_slice(&piece.map_err(failed)?);
        if body.len() > MOST {
            body.truncate(MOST);
            is_whole = false;
            break;
        }
    }
    if body.contains(&0) {
        return Err(ToolError::failed(format!(
            "{status}: the answer is no text"
        )));
    }
    let text = String::from_utf8_lossy(&body);
    let cut = if is_whole { "" } else { "\n[There is more.]" };
    Ok(format!("[{status}]\n{text}{cut}"))
}
