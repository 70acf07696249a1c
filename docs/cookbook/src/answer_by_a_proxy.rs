use acp_proxy::{Next, Proxy};
use acp_sdk::HandlerError;
use acp_sdk::v1::methods::{Prompt, ReadTextFile};
use acp_sdk::v1::{ContentBlock, PromptRequest, PromptResponse, ReadTextFileRequest, StopReason};

/// Answers some requests itself, in both directions, and passes the others on.
pub fn gate() -> Proxy {
    Proxy::new("gate")
        .on_request(|next: Next<Prompt>, request: PromptRequest| async move {
            let is_forbidden = request.prompt.iter().any(|block| {
                matches!(block, ContentBlock::Text(text) if text.text.contains("production"))
            });
            match is_forbidden {
                true => Ok(PromptResponse::new(StopReason::Refusal)),
                false => next.pass().await,
            }
        })
        .on_request(
            |next: Next<ReadTextFile>, request: ReadTextFileRequest| async move {
                if request.path.ends_with(".env") {
                    return Err(HandlerError::resource_not_found(request.path));
                }
                next.pass().await
            },
        )
}
