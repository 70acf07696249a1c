//! An editor with an agent: unsaved buffers, a panel with merged tool calls and diffs, and a review.
//!
//! `cargo run -p acp-client --features review --example editor -- AGENT [ARGUMENT]...`

#![allow(clippy::print_stdout, reason = "the panel is standard output here")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use acp_client::review::{Snapshots, UndoStack, hunks};
use acp_client::{AgentCommand, Ask, Buffers, Client, LiveConversation, OpenFiles, Workspace};
use acp_sdk::conversation::ItemKind;
use acp_sdk::v1::ToolCallContent;

/// The files that are open, by path, with text that may not be saved.
#[derive(Clone, Default)]
struct Editor(Arc<Mutex<HashMap<String, String>>>);

impl OpenFiles for Editor {
    async fn text(&self, path: &str) -> Option<String> {
        self.0.lock().ok()?.get(path).cloned()
    }

    async fn replace(&self, path: &str, text: &str) -> bool {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = buffers.get_mut(path);
        open.map(|buffer| *buffer = text.to_owned()).is_some()
    }
}

/// The panel beside the text: a row for each item, which a real panel replaces when it changes.
async fn panel(mut live: LiveConversation) {
    while let Some(step) = live.next().await {
        for change in step.changes {
            let item = change.item().and_then(|id| live.conversation().item(id));
            match item.map(|item| &item.kind) {
                Some(ItemKind::Message(message)) => println!("{}", message.text()),
                Some(ItemKind::ToolCall(call)) => {
                    println!("{} ({:?})", call.title, call.status);
                    call.content.iter().for_each(preview);
                }
                _ => {}
            }
        }
    }
}

fn preview(content: &ToolCallContent) {
    if let ToolCallContent::Diff(diff) = content {
        let old = diff.old_text.as_deref().unwrap_or_default();
        for hunk in hunks(old, &diff.new_text) {
            println!("{}\n-{}+{}", diff.path, hunk.removed, hunk.added);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command = std::env::args().skip(1).collect::<Vec<_>>();
    let (agent, args) = command.split_first().ok_or("usage: editor AGENT")?;
    let disk = Workspace::new();
    let builder = Client::builder().permissions(Ask::terminal()?);
    let builder = builder.files(Buffers::new(Editor::default(), disk.clone()));
    let agent = AgentCommand::new(agent).args(args);
    let client = builder.terminals(disk).spawn(agent).await?;
    let session = client.new_session(".").await?;
    let panel = tokio::spawn(panel(session.conversation()));
    let mut turns = UndoStack::new(Snapshots::of(".").await?);
    turns.begin().await?;
    let turn = session.prompt("Fix the first TODO here.").await?;
    println!("{}", turn.outcome().await?.stop_reason);
    // A real editor shows the changes of `turns.snapshots()`, and asks before it undoes them.
    if turns.end().await?.is_some() {
        println!("undone: {:#?}", turns.undo().await?);
    }
    client.shutdown().await;
    Ok(panel.await?)
}
