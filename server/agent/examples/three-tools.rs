//! An agent with three tools of its own: `acp run 'count {"text": "a b"}' -- cargo run -p acp-agent --example three-tools`.

use acp_agent::model::Scripted;
use acp_agent::{Agent, Call, Risk, Tool, ToolOutcome};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Text {
    /// Any text.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// A new file, relative to the working directory.
    path: String,
    /// What to write.
    text: String,
}

async fn count(text: Text, _: Call) -> ToolOutcome<String> {
    Ok(format!("{} words", text.text.split_whitespace().count()))
}

async fn first(file: Text, call: Call) -> ToolOutcome<String> {
    let text = call.turn().read_file(&file.text).await?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

async fn note(note: Note, call: Call) -> ToolOutcome<String> {
    // Shows the change, asks, and can be undone.
    call.write_file(&note.path, None, &note.text).await?;
    Ok(format!("Wrote {}.", note.path))
}

fn tools() -> [Tool; 3] {
    [
        Tool::new("count", "Counts words.", count),
        Tool::new("first", "Returns the first line of a file.", first),
        Tool::new("note", "Writes a new file.", note)
            .risk(Risk::Edits)
            .asks_itself(),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp_sdk::Result<()> {
    // It repeats what you say; models of providers are in the crate acp-agent-http.
    let model = Scripted::demo();
    let agent = Agent::new(model).instructions("Be brief.").tools(tools());
    acp_server::serve_stdio(agent).await
}
