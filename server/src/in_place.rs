//! Work that rarely waits.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::task::JoinHandle;

/// Work that was begun.
pub(crate) enum Begun<T> {
    /// It is done.
    Done(T),
    /// It goes on in a task, whoever waits for it.
    Waits(JoinHandle<T>),
}

/// Begins work at once, in the task of the caller; what must wait goes on in a task of its own.
///
/// A task costs more than a short turn or a commit to memory. Nobody is woken by the first poll:
/// the task begins with another one.
pub(crate) fn begin<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Begun<T> {
    let mut work: Pin<Box<_>> = Box::pin(work);
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Begun::Done(done),
        Poll::Pending => Begun::Waits(tokio::spawn(work)),
    }
}
