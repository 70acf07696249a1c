use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::super::event::Event;
use super::*;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The reader empties its queue after the time is over, and before the event is dropped.
#[tokio::test(start_paused = true)]
async fn a_reader_that_catches_up_at_the_last_moment_is_woken() {
    let reader = Reader::default();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(woken.clone());
    assert!(matches!(
        reader.offer(SessionEvent::missed(1), HIGH_WATER),
        Offer::Taken
    ));
    let catch_up = || {
        let mut cx = Context::from_waker(&waker);
        while reader.poll(&mut cx).is_ready() {}
        false
    };
    let limit = Duration::from_secs(1);
    let delivered = reader.deliver(SessionEvent::missed(2), 1, limit, &catch_up);
    delivered.await.unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    let event = reader.ready().unwrap().event;
    assert!(matches!(event, Event::Missed(2)), "{event:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_has_caught_up_when_it_asks_for_the_next_event() {
    let limit = Duration::from_secs(10);
    let reader = Reader::default();
    assert!(reader.caught_up(limit).await, "there was no event");
    for _ in 0..2 {
        let _ = reader.offer(SessionEvent::missed(1), 1);
    }
    assert!(!reader.caught_up(limit).await, "it takes nothing");
    let mut caught_up = std::pin::pin!(reader.caught_up(limit));
    let mut is_pending = async || {
        let nearly = timeout(limit - Duration::from_secs(1), caught_up.as_mut());
        nearly.await.is_err()
    };
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        assert!(reader.poll(&mut cx).is_ready());
        assert!(is_pending().await, "it may be processing the event");
    }
    // What comes later is not waited for.
    let _ = reader.offer(SessionEvent::missed(1), 1);
    assert!(reader.poll(&mut cx).is_ready());
    assert!(caught_up.await);
    reader.close();
    assert!(
        !reader.caught_up(limit).await,
        "the last one was not processed"
    );
    assert!(matches!(reader.poll(&mut cx), Poll::Ready(None)));
    assert!(reader.caught_up(limit).await);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_waits_for_capacity_is_waited_for() {
    let limit = Duration::from_secs(10);
    let reader = Reader::default();
    let _ = reader.offer(SessionEvent::missed(1), HIGH_WATER);
    let mut delivered = std::pin::pin!(reader.deliver(
        SessionEvent::missed(2),
        1,
        Duration::from_secs(60),
        &|| true
    ));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(delivered.as_mut().poll(&mut cx).is_pending());
    let mut caught_up = std::pin::pin!(reader.caught_up(limit));
    assert!(caught_up.as_mut().poll(&mut cx).is_pending());
    assert!(reader.poll(&mut cx).is_ready());
    assert!(delivered.await.is_ok());
    assert!(reader.poll(&mut cx).is_ready());
    assert!(caught_up.as_mut().poll(&mut cx).is_pending());
    assert!(reader.poll(&mut cx).is_pending());
    assert!(caught_up.await);
}

#[tokio::test(start_paused = true)]
async fn events_that_two_tasks_deliver_are_both_counted() {
    let reader = Reader::default();
    let _ = reader.offer(SessionEvent::missed(1), HIGH_WATER);
    let limit = Duration::from_secs(1);
    let deliver = || reader.deliver(SessionEvent::missed(1), 1, limit, &|| false);
    let (first, second) = tokio::join!(deliver(), deliver());
    assert!(first.is_ok() && second.is_ok());
    reader.ready().unwrap();
    let event = reader.ready().unwrap().event;
    assert!(matches!(event, Event::Missed(2)), "{event:?}");
}
