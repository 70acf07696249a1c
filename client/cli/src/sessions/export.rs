//! `acp sessions export`: a history as JSON lines or Markdown.

use serde_json::json;
use std::convert;

use super::history::{self, Update};
use super::markdown::Markdown;
use crate::args::{ExportFormat, SessionArgs};
use crate::open;
use crate::task::{Failure, Results};

/// Prints the history of a session while it is received.
pub(super) async fn export(
    args: &SessionArgs,
    format: ExportFormat,
    results: &mut Results,
) -> Result<(), Failure> {
    let (layer, updates) = history::tap(&args.id);
    let client = open::client(&args.agent, open::builder().layer(layer), convert::identity).await?;
    let cwd = super::directory(&client, args).await?;
    match format {
        ExportFormat::Json => {
            let agent = client.agent_info().agent_info.as_ref();
            let session =
                json!({"type": "session", "sessionId": args.id, "cwd": cwd, "agent": agent});
            results.json(&session.to_string()).await?;
            let id = json!(args.id);
            let each = async |update: Update| {
                let raw = update.raw;
                let line = format!(r#"{{"type":"update","sessionId":{id},"update":{raw}}}"#);
                results.json(&line).await
            };
            history::replay(&client, &args.id, &cwd, updates, each).await?;
        }
        ExportFormat::Markdown => {
            let mut markdown = Markdown::default();
            let each = async |update: Update| {
                for update in &update.typed {
                    results.text(&markdown.update(update)).await?;
                }
                Ok(())
            };
            history::replay(&client, &args.id, &cwd, updates, each).await?;
            results.text(&markdown.end()).await?;
        }
    }
    client.shutdown().await;
    Ok(())
}
