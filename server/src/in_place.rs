//! Work that rarely waits.

use std::pin::Pin;
use std::task::{Context, Waker};

/// Begins work at once, in the task of the caller; what must wait goes on in a task of its own.
///
/// A task costs more than a short turn or a commit to memory. Nobody is woken by the first poll:
/// the task begins with another one.
pub(crate) fn run(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<_>> = Box::pin(work);
    let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if polled.is_pending() {
        tokio::spawn(work);
    }
}
