use std::io::{self, BufRead, Write};

use acp_client::blocking::Client;
use acp_client::{AgentCommand, Result};
use acp_sdk::v1::{ContentBlock, SessionUpdate};

/// Prompts the agent with each line, and prints its messages. It offers neither files nor terminals,
/// and allows nothing: what the Python class answered with `method_not_found`.
pub fn chat(agent: AgentCommand, input: impl BufRead, mut output: impl Write) -> Result<()> {
    let client = Client::spawn(acp_client::Client::builder(), agent)?;
    let session = client.new_session(".")?;
    for line in input.lines().map_while(io::Result::ok) {
        if line.is_empty() {
            continue;
        }
        let mut turn = session.prompt(line)?;
        for event in turn.by_ref() {
            let acp_client::Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event.event
            else {
                continue;
            };
            let text = match chunk.content {
                ContentBlock::Text(text) => text.text,
                ContentBlock::Image(_) => "<image>".to_owned(),
                ContentBlock::Audio(_) => "<audio>".to_owned(),
                ContentBlock::ResourceLink(link) => link.uri,
                _ => "<resource>".to_owned(),
            };
            // A closed output ends nothing: the agent has done its work.
            let _ = writeln!(output, "| Agent: {text}");
        }
        if let Err(error) = turn.outcome() {
            let _ = writeln!(output, "Prompt failed: {error}");
        }
    }
    client.shutdown();
    Ok(())
}
