//! The agent on standard input and output, with the extension as a layer.

use acp_extension_example::Librarian;
use acp_extension_example::extension::AgentExtensionLayer;
use acp_sdk::ConnectionBuilder;

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp_sdk::Result<()> {
    ConnectionBuilder::new()
        .layer(AgentExtensionLayer::new(Librarian))
        .serve_stdio(Librarian)
        .await
}
