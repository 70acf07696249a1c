use std::pin::pin;
use std::sync::Arc;

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server::event::Batch;
use acp_server::store::{Commit, MemoryStore, SessionRecord, Store as _};
use futures_util::{FutureExt as _, StreamExt as _, poll};

use super::*;
use crate::access::Shares;
use crate::{EndpointSettings, Token, Tokens};

/// The events of the first turn, and of the second.
const LONG: u64 = 2_000;
const SHORT: u64 = 20;

/// Returns the routes' state, and a reader of a session's events after a number.
async fn reader(after: u64) -> (Rest, EventReader) {
    let store = MemoryStore::new();
    let lease = store.create(&SessionRecord::new("s", "/")).await.unwrap();
    let mut batch = Batch::new(1);
    for (turn, events) in [(1, LONG), (LONG + 1, SHORT)] {
        batch.push(&format!(r#"{{"event":"turn_started","turn":{turn}}}"#));
        for _ in 2..events {
            batch.push(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a word"}}"#);
        }
        batch.push(&format!(
            r#"{{"event":"turn_ended","turn":{turn},"stopReason":"end_turn"}}"#
        ));
    }
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(batch));
    store.commit(&lease, commit).await.unwrap();
    store.release(&lease).await.unwrap();
    let server = Server::builder(Reference).store(store).build();
    let session = server.session(&"s".into()).await.unwrap();
    let tokens = Tokens::new(&Token::random().unwrap());
    let rest = Rest::new(server.into(), EndpointSettings::default(), tokens);
    let place = Shares::new(8)
        .take(crate::access::Holder::Master, 1)
        .unwrap();
    let ended = CancellationToken::new();
    let reader = EventReader::new(
        session,
        Some(after),
        Dialect::Documented,
        place,
        ended,
        &rest,
    );
    let reader = reader.await.unwrap();
    (rest, reader)
}

/// Returns the numbers of the events in a piece.
fn numbers(piece: &[u8]) -> Vec<u64> {
    let lines = std::str::from_utf8(piece).unwrap().lines();
    let ids = lines.filter_map(|line| line.strip_prefix("id: "));
    ids.map(|id| id.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_reader_far_behind_waits_for_its_turn_and_reads_in_pieces() {
    let (rest, reader) = reader(0).await;
    let all = std::iter::from_fn(|| rest.long_reads().turns().take().now_or_never().flatten());
    let others: Vec<_> = all.collect();
    let mut stream = pin!(reader.stream());
    assert_eq!(stream.next().await.unwrap().unwrap(), HELLO);
    for _ in 0..3 {
        assert!(poll!(stream.next()).is_pending());
        tokio::task::yield_now().await;
    }
    drop(others);
    let (mut read, mut pieces) = (Vec::new(), 0);
    while let Some(Ok(piece)) = stream.next().await {
        assert!(piece.len() < PIECE + 1024, "{}", piece.len());
        read.extend(numbers(&piece));
        pieces += 1;
    }
    assert_eq!(read, (1..=LONG + SHORT).collect::<Vec<_>>());
    assert!(pieces < LONG, "{pieces}");
}

#[tokio::test]
async fn a_reader_that_is_nearly_there_waits_for_no_turn() {
    let (rest, reader) = reader(LONG).await;
    let all = std::iter::from_fn(|| rest.long_reads().turns().take().now_or_never().flatten());
    let _others: Vec<_> = all.collect();
    let pieces: Vec<_> = reader.stream().collect().await;
    let read: Vec<_> = pieces
        .iter()
        .flat_map(|piece| numbers(piece.as_ref().unwrap()))
        .collect();
    assert_eq!(read, (LONG + 1..=LONG + SHORT).collect::<Vec<_>>());
}
