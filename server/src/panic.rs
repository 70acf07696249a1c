//! Panics of handlers, stores and tasks, as errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use acp_sdk::v1::SessionId;

/// Awaits a future; a panic in it is an error with the panic's text, and in the log: `what` panicked,
/// for which session.
pub(crate) async fn catch_panic<T>(
    what: &'static str,
    session: Option<&SessionId>,
    future: impl Future<Output = T>,
) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(
        move |cx| match catch(what, session, || future.as_mut().poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}

/// Calls a function, as [`catch_panic`] awaits a future.
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
