//! A bounded queue from async callers to a thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// A bounded queue. Callers wait for room without blocking their thread; threads wait for items.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    room: Semaphore,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    closed: bool,
    /// Threads that wait. Notifying is a system call, also when nobody waits.
    waiting: usize,
    /// How many items they wait for.
    wanted: usize,
}

/// What a thread gets from the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken<T> {
    /// At least one item.
    Items(Vec<T>),
    /// No item came in the time given.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                closed: false,
                waiting: 0,
                wanted: 1,
            }),
            filled: Condvar::new(),
            room: Semaphore::new(capacity),
        }
    }

    /// Appends an item once there is room; returns whether the queue was open.
    ///
    /// A future that is dropped before it completes has appended nothing.
    pub(super) async fn push(&self, item: T) -> bool {
        let Ok(permit) = self.room.acquire().await else {
            return false;
        };
        // `take` returns it.
        permit.forget();
        let mut state = self.state();
        if state.closed {
            return false;
        }
        state.items.push_back(item);
        let is_awaited = state.waiting > 0 && state.items.len() >= state.wanted;
        drop(state);
        if is_awaited {
            self.filled.notify_one();
        }
        true
    }

    /// Waits for items, up to `time` if given, and takes up to `most` of them.
    pub(super) fn take(&self, most: usize, time: Option<Duration>) -> Taken<T> {
        let deadline = time.map(|time| Instant::now() + time);
        let mut state = self.state();
        while state.items.is_empty() {
            if state.closed {
                return Taken::Closed;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Taken::Idle;
            }
            state = self.wait(state, left);
        }
        let count = state.items.len().min(most);
        let items: Vec<T> = state.items.drain(..count).collect();
        drop(state);
        self.room.add_permits(count);
        Taken::Items(items)
    }

    /// Waits until so many items are queued, or the time is over. For the only thread of a queue.
    pub(super) fn gather(&self, count: usize, time: Duration) {
        let mut state = self.state();
        if state.items.len() < count && !state.closed {
            state.wanted = count;
            state = self.wait(state, Some(time));
            state.wanted = 1;
        }
    }

    /// Waits until it is notified, or the time is over.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        time: Option<Duration>,
    ) -> MutexGuard<'a, State<T>> {
        state.waiting += 1;
        let waited = match time {
            None => self.filled.wait(state),
            Some(time) => self
                .filled
                .wait_timeout(state, time)
                .map(|(state, _)| state)
                .map_err(|error| PoisonError::new(error.into_inner().0)),
        };
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Refuses further items. What is queued can still be taken.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.room.close();
        self.filled.notify_all();
    }

    /// Closes the queue and drops what is queued, for a thread that ends early.
    pub(super) fn abandon(&self) {
        self.close();
        // Dropped outside the lock.
        let items = std::mem::take(&mut self.state().items);
        drop(items);
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pushing_waits_for_room_and_taking_makes_it() {
        let queue = Queue::new(2);
        assert!(queue.push(1).await && queue.push(2).await);
        let mut third = Box::pin(queue.push(3));
        tokio::select! {
            biased;
            _ = &mut third => panic!("pushed beyond the capacity"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(queue.take(9, None), Taken::Items(vec![1, 2]));
        assert!(third.await);
        assert!(queue.push(4).await);
        assert_eq!(queue.take(1, None), Taken::Items(vec![3]));
        queue.close();
        assert!(!queue.push(5).await);
        assert_eq!(queue.take(9, None), Taken::Items(vec![4]));
        assert_eq!(queue.take(9, None), Taken::Closed);
    }

    #[test]
    fn taking_ends_after_the_time_given() {
        let queue = Queue::<u8>::new(1);
        let time = Duration::from_millis(5);
        let start = Instant::now();
        assert_eq!(queue.take(1, Some(time)), Taken::Idle);
        assert!(start.elapsed() >= time);
    }

    #[test]
    fn gathering_ends_with_enough_items_or_after_the_time() {
        let queue = Queue::new(9);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let time = Duration::from_millis(5);
        let start = Instant::now();
        queue.gather(1, time);
        assert!(start.elapsed() >= time);
        let (long, start) = (Duration::from_secs(60), Instant::now());
        std::thread::scope(|scope| {
            let gathering = scope.spawn(|| queue.gather(2, long));
            while queue.state().waiting == 0 {
                std::thread::yield_now();
            }
            assert!(runtime.block_on(queue.push(1)));
            for _ in 0..100 {
                std::thread::yield_now();
            }
            assert!(!gathering.is_finished(), "one item is not enough");
            assert!(runtime.block_on(queue.push(2)));
        });
        // Enough are there already.
        queue.gather(2, long);
        assert!(start.elapsed() < long);
        assert_eq!(queue.take(9, None), Taken::Items(vec![1, 2]));
    }

    #[tokio::test]
    async fn who_waits_for_room_learns_that_the_queue_is_closed() {
        let queue = std::sync::Arc::new(Queue::new(1));
        assert!(queue.push(1).await);
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.push(2).await }
        });
        tokio::task::yield_now().await;
        queue.abandon();
        assert_eq!(waiting.await.ok(), Some(false));
        assert_eq!(queue.take(9, None), Taken::Closed);
    }
}
