use super::*;
use crate::event::{TurnEvent, TurnId};
use crate::store::{MemoryStore, SessionRecord};

async fn log() -> Log {
    log_in(Arc::new(MemoryStore::new())).await
}

async fn log_in(store: Arc<MemoryStore>) -> Log {
    let record = SessionRecord::new("s", "/");
    let lease = store.create(&record).await.unwrap();
    let memory = Memory::new(usize::MAX);
    let log = Log::new(record.id, store, LogLimits::default(), memory, 0);
    log.set_lease(lease);
    log
}

fn started(appender: &mut Appender<'_>) -> Result<u64, StoreError> {
    let turn = TurnId(appender.next_number());
    let client = None;
    Ok(appender
        .push(&TurnEvent::TurnStarted {
            turn,
            client,
            prompt: None,
            model: None,
        })
        .unwrap())
}

/// Returns the numbers of the committed batches, as (first, last).
async fn batches(log: &Log) -> Vec<(u64, u64)> {
    let (mut found, mut older, mut after) = (Vec::new(), VecDeque::new(), 0);
    while let Next::Batch(batch, _) = log.next(after, &mut older).await.unwrap() {
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

#[tokio::test]
async fn a_batch_of_the_store_that_was_read_in_part_is_read_to_its_end() {
    let store = Arc::new(MemoryStore::new());
    let before = log_in(store.clone()).await;
    let epoch = before.epoch();
    for _ in 0..2 {
        for _ in 0..3 {
            before.append_deferred(epoch, started).unwrap();
        }
        before.commit().await;
    }

    // Nothing is in the memory of this one.
    let memory = Memory::new(usize::MAX);
    let log = Log::new("s".into(), store, LogLimits::default(), memory, 6);
    let (mut older, mut seen) = (VecDeque::new(), Vec::new());
    // The reader stops after each of these, as behind a barrier.
    for after in [0, 1, 3, 5] {
        let Next::Batch(batch, _) = log.next(after, &mut older).await.unwrap() else {
            panic!("nothing after {after}");
        };
        seen.push((after, batch.first(), batch.last()));
    }
    assert_eq!(seen, [(0, 1, 3), (1, 1, 3), (3, 4, 6), (5, 4, 6)]);
    assert!(matches!(log.next(6, &mut older).await, Ok(Next::Nothing)));

    // A cursor that was set back does not continue in what was read ahead.
    assert!(matches!(log.next(3, &mut older).await, Ok(Next::Batch(..))));
    let Next::Batch(batch, _) = log.next(0, &mut older).await.unwrap() else {
        panic!("nothing from the beginning");
    };
    assert_eq!(batch.first(), 1);
}

#[tokio::test]
async fn logs_with_the_oldest_commits_leave_memory_first() {
    let store = Arc::new(MemoryStore::new());
    let memory = Memory::new(300);
    let mut logs = Vec::new();
    for id in ["a", "b", "c"] {
        let lease = store.create(&SessionRecord::new(id, "/")).await.unwrap();
        let limits = LogLimits::default();
        let log = Log::new(id.into(), store.clone(), limits, memory.clone(), 0);
        log.set_lease(lease);
        logs.push(log);
    }
    let append = async |log: &Log| {
        log.append_deferred(log.epoch(), started).unwrap();
        log.commit().await;
    };
    let kept = |logs: &[Log]| -> Vec<bool> {
        let kept = logs.iter().map(|log| log.oldest_in_memory() <= log.last());
        kept.collect()
    };
    append(&logs[0]).await;
    let one = memory.bytes();
    assert!((30..100).contains(&one), "{one} bytes");
    append(&logs[1]).await;
    while memory.bytes() + one <= 300 {
        append(&logs[2]).await;
    }
    assert_eq!(kept(&logs), [true, true, true]);
    // The oldest commit is that of the first one, then that of the second one.
    append(&logs[2]).await;
    assert_eq!(kept(&logs), [false, true, true]);
    append(&logs[0]).await;
    assert_eq!(kept(&logs), [true, false, true]);
    assert!(memory.bytes() <= 300, "{} bytes", memory.bytes());
    // What left memory is read from the store.
    assert_eq!(batches(&logs[0]).await, [(1, 1), (2, 2)]);
    assert_eq!(batches(&logs[1]).await, [(1, 1)]);
    drop(logs);
    assert_eq!(memory.bytes(), 0, "a log that has gone");
}

/// The store of a server that has lost its lease has events of whoever has it now.
#[tokio::test]
async fn what_this_log_has_not_committed_is_not_read_from_the_store() {
    let store = Arc::new(MemoryStore::new());
    let log = log_in(store.clone()).await;
    let epoch = log.epoch();
    log.append_now(Some(epoch), started).unwrap();
    log.flush(epoch).await.unwrap();
    let (record, lease) = store.acquire(&"s".into()).await.unwrap();
    let memory = Memory::new(usize::MAX);
    let other = Log::new(record.id, store, LogLimits::default(), memory, 1);
    other.set_lease(lease);
    other.append_now(None, started).unwrap();
    other.flush(other.epoch()).await.unwrap();
    log.0.state().forget();
    let mut older = VecDeque::new();
    let first = log.next(0, &mut older).await.unwrap();
    assert!(matches!(first, Next::Batch(_, 1)));
    assert!(matches!(log.next(1, &mut older).await, Ok(Next::Nothing)));
}
