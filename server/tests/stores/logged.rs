//! What the log says of turns, and of a store that fails for a while.

use std::io;
use std::sync::{Arc, Mutex};

use acp_sdk::v1::{ContentBlock, StopReason, TextContent};
use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_server::{Handler, HandlerResult, Server, Turn};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};
use serde_json::Value;
use tracing::level_filters::LevelFilter;

/// The lines of a test.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Collects what this thread logs from now on.
    fn collect(&self) -> tracing::subscriber::DefaultGuard {
        let lines = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(LevelFilter::DEBUG)
            .with_writer(move || lines.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Returns the events of a level.
    fn of(&self, level: &str) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let ours = |line: &Value| line["target"].as_str().unwrap().starts_with("acp_server");
        lines
            .filter(|line: &Value| line["level"] == level && ours(line))
            .collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Talker;

impl Handler for Talker {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        assert_ne!(turn.prompt_text(), "panic", "as the test wants it");
        turn.send_text("hello").await?;
        Ok(StopReason::EndTurn)
    }
}

fn prompt(text: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::Text(TextContent::new(text))]
}

/// One test, because the places that limit how often they log are those of the process.
#[tokio::test(start_paused = true)]
async fn turns_panics_and_commits_that_are_repeated_are_logged_with_their_session() {
    let lines = Lines::default();
    let _collecting = lines.collect();
    let store = Arc::new(FaultyStore::new(Arc::<MemoryStore>::default()));
    let server = Server::builder(Talker).store(store.clone()).build();
    let session = server.create_session("/w").await.unwrap();
    let id = session.id().as_str();

    let fault = Fault::Fail(StoreErrorKind::Unavailable);
    store.inject_next(Operation::Commit, 4, When::Before, fault.clone());
    let stop = session.prompt(prompt("x")).unwrap().stop_reason().await;
    assert_eq!(stop.unwrap(), StopReason::EndTurn);
    let warnings = lines.of("WARN");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(
        warnings[0]["message"],
        "a commit failed, and is tried again"
    );
    assert_eq!(warnings[0]["session"], id);
    assert!(warnings[0]["error"].is_string());
    let again = lines.of("INFO");
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(again[0]["message"], "commits succeed again");
    assert_eq!(again[0]["session"], id);
    let turns = lines.of("DEBUG");
    let turn = |message: &str| {
        let found = turns.iter().find(|line| line["message"] == message);
        let found = found.unwrap_or_else(|| panic!("{message}: {turns:?}"));
        (found["session"].as_str(), found["turn"].as_u64())
    };
    assert_eq!(turn("turn started"), (Some(id), Some(1)));
    assert_eq!(turn("turn ended"), (Some(id), Some(1)));

    let stop = session.prompt(prompt("panic")).unwrap().stop_reason().await;
    assert!(stop.is_err());
    let errors = lines.of("ERROR");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["message"], "the handler panicked");
    assert_eq!(errors[0]["session"], id);

    // Within a minute, another one is counted only.
    store.inject_next(Operation::Commit, 2, When::Before, fault);
    let stop = session.prompt(prompt("x")).unwrap().stop_reason().await;
    assert_eq!(stop.unwrap(), StopReason::EndTurn);
    assert_eq!((lines.of("WARN").len(), lines.of("INFO").len()), (1, 1));
}
