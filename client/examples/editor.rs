//! An editor with an agent: unsaved buffers, permissions, a panel that shows what happens.
//!
//! `cargo run -p acp-client --example editor -- AGENT [ARGUMENT]...` asks the agent about this folder.

#![allow(clippy::print_stdout, reason = "the panel is standard output here")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use acp_client::{
    AgentCommand, Answered, Buffers, Client, Event, Events, OpenFiles, Policy, Workspace,
};
use acp_sdk::conversation::{Conversation, ItemKind};

/// The files that are open, by path, with text that may not be saved.
#[derive(Clone, Default)]
struct Editor(Arc<Mutex<HashMap<String, String>>>);

impl OpenFiles for Editor {
    async fn text(&self, path: &str) -> Option<String> {
        let buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.get(path).cloned()
    }

    async fn replace(&self, path: &str, text: &str) -> bool {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = buffers.get_mut(path);
        open.map(|buffer| *buffer = text.to_owned()).is_some()
    }
}

/// The panel beside the text: a row for each item of the conversation.
async fn panel(mut events: Events) {
    let mut conversation = Conversation::new();
    while let Some(event) = events.next().await {
        // A real panel replaces the rows of these items, and leaves all others as they are.
        for change in event.event.apply_to(&mut conversation) {
            let item = change.item().and_then(|id| conversation.item(id));
            match item.map(|item| (item.id.number(), &item.kind)) {
                Some((row, ItemKind::Message(message))) => {
                    println!("{row} {:?}: {}", message.role, message.text());
                }
                Some((row, ItemKind::ToolCall(call))) => {
                    println!("{row} tool {}: {:?}", call.title, call.status);
                }
                Some((row, ItemKind::TurnEnd { stop_reason })) => {
                    println!("{row} turn ended: {stop_reason:?}");
                }
                _ => {}
            }
        }
        if let Event::Permission(Answered { outcome, .. }) = event.event {
            println!("answered {outcome:?}");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let agent = words.next().ok_or("usage: editor AGENT [ARGUMENT]...")?;
    let (editor, disk) = (Editor::default(), Workspace::new());
    let client = Client::builder()
        .files(Buffers::new(editor, disk.clone()))
        .terminals(disk)
        .permissions(Policy::ApproveReads)
        .spawn(AgentCommand::new(agent).args(words))
        .await?;
    let session = client.new_session(".").await?;
    let panel = tokio::spawn(panel(session.events()));
    let outcome = session
        .prompt("What is in this folder?")
        .await?
        .outcome()
        .await?;
    println!(
        "{} tool calls in {:?}",
        outcome.tool_calls.len(),
        outcome.elapsed
    );
    drop(session);
    client.shutdown().await;
    panel.await?;
    Ok(())
}
