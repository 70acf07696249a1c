use super::*;
use crate::event::{TurnEvent, TurnId};
use crate::store::{MemoryStore, SessionRecord};

async fn log() -> Log {
    let store = Arc::new(MemoryStore::new());
    let record = SessionRecord::new("s", "/");
    let lease = store.create(&record).await.unwrap();
    let log = Log::new(record.id, store, LogLimits::default(), 0);
    log.set_lease(lease);
    log
}

fn started(appender: &mut Appender<'_>) -> Result<u64, StoreError> {
    let turn = TurnId(appender.next_number());
    Ok(appender.push(&TurnEvent::TurnStarted { turn }).unwrap())
}

/// Returns the numbers of the committed batches, as (first, last).
async fn batches(log: &Log) -> Vec<(u64, u64)> {
    let (mut found, mut older, mut after) = (Vec::new(), VecDeque::new(), 0);
    while let Next::Batch(batch) = log.next(after, &mut older).await.unwrap() {
        found.push((batch.first(), batch.last()));
        after = batch.last();
    }
    found
}

#[tokio::test]
async fn a_deferred_append_waits_for_whoever_commits() {
    let log = log().await;
    let epoch = log.epoch();
    assert_eq!(log.append_deferred(epoch, started).unwrap(), 1);
    tokio::task::yield_now().await;
    assert_eq!(batches(&log).await, []);
    assert_eq!(log.append_deferred(epoch, started).unwrap(), 2);
    log.commit().await;
    assert_eq!(batches(&log).await, [(1, 2)]);

    assert_eq!(log.append_deferred(epoch, started).unwrap(), 3);
    log.flush(epoch).await.unwrap();
    assert_eq!(batches(&log).await, [(1, 2), (3, 3)]);

    assert_eq!(log.append_deferred(epoch, started).unwrap(), 4);
    assert_eq!(log.append_now(Some(epoch), started).unwrap(), 5);
    log.flush(epoch).await.unwrap();
    assert_eq!(batches(&log).await, [(1, 2), (3, 3), (4, 5)]);
}

#[tokio::test]
async fn a_task_whose_work_was_done_by_another_leaves_later_work_to_the_next() {
    let log = log().await;
    let epoch = log.epoch();
    assert_eq!(log.append_now(Some(epoch), started).unwrap(), 1);
    log.commit().await;
    assert_eq!(batches(&log).await, [(1, 1)]);
    // The task of the first append begins after that of the second was spawned.
    assert_eq!(log.append_now(Some(epoch), started).unwrap(), 2);
    log.flush(epoch).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(batches(&log).await, [(1, 1), (2, 2)]);
}
