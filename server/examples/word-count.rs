//! An agent that remembers: its model, a counter of words, continues after the process was killed.
//!
//! `word-count FILE` keeps its sessions in FILE. What `open` does here with a counter, an agent
//! with a real model does with the messages of its context.

use acp_sdk::v1::{ContentBlock, SessionUpdate, StopReason};
use acp_server::event::EventBody;
use acp_server::store::SqliteStore;
use acp_server::{Handler, HandlerResult, Opening, Received, Server, Settings, Turn};

struct WordCount;

impl Handler for WordCount {
    /// The words of the user so far.
    type State = usize;

    async fn open(&self, words: &mut usize, opening: &Opening) -> HandlerResult<Settings> {
        let mut history = opening.session.history();
        while let Some(received) = history.next().await? {
            if let Received::Event(event) = received
                && let EventBody::Update(SessionUpdate::UserMessageChunk(chunk)) = event.body
                && let ContentBlock::Text(text) = chunk.content
            {
                *words += text.text.split_whitespace().count();
            }
        }
        Ok(Settings::new())
    }

    async fn prompt(&self, words: &mut usize, turn: Turn) -> HandlerResult<StopReason> {
        *words += turn.prompt_text().split_whitespace().count();
        turn.send_text(format!("You have said {words} words."))
            .await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> HandlerResult<()> {
    let path = std::env::args_os().nth(1).ok_or("usage: word-count FILE")?;
    let server = Server::builder(WordCount).store(SqliteStore::open(path)?);
    Ok(server.build().serve_stdio().await?)
}
