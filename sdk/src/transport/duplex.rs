//! An agent and a client in one process, joined in memory.

use std::future::poll_fn;
use std::task::Poll;

use crate::connection::{ConnectionBuilder, Driver};
use crate::error::Result;
use crate::version::{IntoAgent, IntoClient};

/// Bytes that may be on the way in each direction before the writer waits.
const PIPE: usize = 64 << 10;

/// Connects `agent` and `client` in memory: everything but the process boundary is real.
///
/// The driver runs both sides and must be polled, usually by spawning it. It ends once the
/// client is told to [`finish`](crate::runtime::Peer::finish), with the error of the side
/// that failed, if one did.
pub fn duplex<V, W, A: IntoAgent<V>, C: IntoClient<W>>(agent: A, client: C) -> (C::Agent, Driver) {
    let (near, far) = tokio::io::duplex(PIPE);
    let (reader, writer) = tokio::io::split(far);
    let (_, mut serving) = ConnectionBuilder::new().agent(agent, reader, writer);
    let (reader, writer) = tokio::io::split(near);
    let (handle, mut calling) = ConnectionBuilder::new().client(client, reader, writer);
    let both = async move {
        let (mut served, mut called) = (None, None);
        poll_fn(|cx| {
            poll_once(&mut serving, &mut served, cx);
            poll_once(&mut calling, &mut called, cx);
            match (&served, &called) {
                (Some(served), Some(called)) => Poll::Ready(served.clone().and(called.clone())),
                _ => Poll::Pending,
            }
        })
        .await
    };
    (handle, Driver::new(both))
}

/// Polls a driver until it has ended, and keeps what it ended with.
fn poll_once(
    driver: &mut Driver,
    outcome: &mut Option<Result<()>>,
    cx: &mut std::task::Context<'_>,
) {
    if outcome.is_none()
        && let Poll::Ready(result) = std::pin::Pin::new(driver).poll(cx)
    {
        *outcome = Some(result);
    }
}
