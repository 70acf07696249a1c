//! Panics of handlers, stores and tasks, as errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use acp_sdk::v1::SessionId;
use pin_project_lite::pin_project;

pin_project! {
    /// Awaits a future; a panic in it is an error with the panic's text, and in the log: `what`
    /// panicked, for which session. A structure, because an `async fn` would keep the future twice.
    pub(crate) struct CatchPanic<'a, F> {
        what: &'static str,
        session: Option<&'a SessionId>,
        #[pin]
        future: F,
    }
}

/// Returns the future that awaits another one and [catches its panic](CatchPanic).
pub(crate) fn catch_panic<'a, F: Future>(
    what: &'static str,
    session: Option<&'a SessionId>,
    future: F,
) -> CatchPanic<'a, F> {
    CatchPanic {
        what,
        session,
        future,
    }
}

impl<F: Future> Future for CatchPanic<'_, F> {
    type Output = Result<F::Output, String>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match catch(this.what, *this.session, || this.future.poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

/// Calls a function, as [`CatchPanic`] awaits a future.
pub(crate) fn catch<T>(
    what: &'static str,
    session: Option<&SessionId>,
    call: impl FnOnce() -> T,
) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let panic = text(&*panic);
        let session = session.map(SessionId::as_str);
        tracing::error!(session, panic, "{what} panicked");
        panic
    })
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
