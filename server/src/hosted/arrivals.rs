//! The order of an agent's requests behind the updates before them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The longest that a request waits for the updates before it.
const LONGEST: Duration = Duration::from_secs(30);

/// Counts the updates of a session that have arrived and those that are in the log.
#[derive(Debug)]
pub(super) struct Arrivals(watch::Sender<Counts>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: u64,
    done: u64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self(watch::Sender::new(Counts::default()))
    }
}

/// An update that has arrived. Dropped, it counts as done.
#[derive(Debug)]
pub(super) struct Arrived(Arc<Arrivals>);

impl Drop for Arrived {
    fn drop(&mut self) {
        self.0.0.send_modify(|counts| counts.done += 1);
    }
}

impl Arrivals {
    /// An update has arrived. Called in the order of arrival.
    pub(super) fn arrive(self: &Arc<Self>) -> Arrived {
        self.0.send_modify(|counts| counts.arrived += 1);
        Arrived(self.clone())
    }

    /// Waits for the updates that have arrived when this is called. They are handled in order.
    pub(super) fn earlier(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        let all = self.0.borrow().arrived;
        let mut counts = self.0.subscribe();
        async move {
            let done = counts.wait_for(|counts| counts.done >= all);
            let _ = tokio::time::timeout(LONGEST, done).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_what_came_before_it_only() {
        let arrivals = Arc::new(Arrivals::default());
        let first = arrivals.arrive();
        let earlier = arrivals.earlier();
        let _second = arrivals.arrive();
        let mut earlier = std::pin::pin!(earlier);
        tokio::select! {
            biased;
            () = &mut earlier => panic!("did not wait"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        let before = tokio::time::Instant::now();
        earlier.await;
        assert!(before.elapsed() < LONGEST, "waited for the later one");
    }
}
