//! A proxy that asks politely. Before an agent: `polite opencode acp`; as a part of a chain:
//! `acp conduct polite -- opencode acp`.

use acp_client::AgentCommand;
use acp_proxy::{Next, Proxy};
use acp_sdk::v1::methods::Prompt;
use acp_sdk::v1::{ContentBlock, PromptRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proxy = Proxy::new("polite").on_request(
        |next: Next<Prompt>, mut request: PromptRequest| async move {
            request.prompt.push(ContentBlock::from("Please."));
            next.call(request).await
        },
    );
    let mut words = std::env::args_os().skip(1);
    let agent = words
        .next()
        .map(|program| AgentCommand::new(program).args(words));
    proxy.serve_stdio(agent).await?;
    Ok(())
}
