//! Several things at once, for the tests of this crate and of the program.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many mutants are run at once: most of the time goes into waiting for what must not come.
const LANES: usize = 6;

/// Performs something for each of these, several at once, and joins the results.
pub(crate) fn in_lanes<T: Sync, R: Send>(all: &[T], perform: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let index = || next.fetch_add(1, Ordering::Relaxed);
        let numbers = std::iter::from_fn(|| all.get(index()));
        numbers.map(&perform).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let results = lanes.into_iter().map(|lane| lane.join().unwrap());
        results.flatten().collect()
    })
}
