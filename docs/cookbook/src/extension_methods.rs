use acp_client::{Client, Result};
use acp_sdk::v1::StopReason;
use acp_sdk::{Context, HandlerError, HandlerResult, Json};
use acp_server::{Handler, Turn};
use serde_json::{Value, json};

pub struct Librarian;

impl Handler for Librarian {
    type State = ();

    async fn prompt(&self, _: &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn ext_request(
        &self,
        _: &Context,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        if method != "_example.com/count_words" {
            return Err(HandlerError::method_not_found(method));
        }
        let params: Value = params.unwrap_or_else(|| json!({}).into()).parse()?;
        let Some(text) = params["text"].as_str() else {
            return Err(HandlerError::invalid_params("/text", "a text is required"));
        };
        Ok(json!({ "words": text.split_whitespace().count() }).into())
    }
}

/// The client's side.
pub async fn count_words(client: &Client, text: &str) -> Result<Json> {
    let params = json!({ "text": text }).into();
    client
        .extension_request("_example.com/count_words", Some(&params))
        .await
}
