//! An agent and a client in one process.

use std::future::poll_fn;
use std::task::Poll;

use super::channel;
use crate::connection::{Connection, ConnectionBuilder};
use crate::error::Result;
use crate::version::{IntoAgent, IntoClient};

/// Bytes in transit in each direction before the sender waits.
const CAPACITY: usize = 64 << 10;

/// Connects `agent` and `client` by a [`channel`]. Everything but the process boundary is real.
///
/// The connection is that of the client and runs both sides. It completes after
/// [`Peer::close_output`](crate::Peer::close_output) or [`Peer::close`](crate::Peer::close) on the client's
/// side, with the error of the side that failed.
pub fn duplex<V, W, A: IntoAgent<V>, C: IntoClient<W>>(
    agent: A,
    client: C,
) -> Connection<C::Agent> {
    let (near, far) = channel(CAPACITY);
    let mut serving = ConnectionBuilder::new().agent(agent, far);
    let calling = ConnectionBuilder::new().client(client, near);
    let (handle, peer, mut calling) = calling.into_parts();
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
    Connection::new(handle, peer, both)
}

/// Polls a connection until it completes, and keeps its result.
fn poll_once<F: Future<Output = Result<()>> + Unpin>(
    connection: &mut F,
    outcome: &mut Option<Result<()>>,
    cx: &mut std::task::Context<'_>,
) {
    if outcome.is_none()
        && let Poll::Ready(result) = std::pin::Pin::new(connection).poll(cx)
    {
        *outcome = Some(result);
    }
}
