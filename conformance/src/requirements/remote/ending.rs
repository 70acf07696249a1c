//! DELETE, and what outlives a connection.

use hyper::Method;

use super::super::{Check, NamedCheck};
use super::posts::UNKNOWN;
use super::streams::{load_leniently, with_history};
use crate::harness::{Outcome, fail};
use crate::remote::{Connection, Server, over_http, unknown_notification};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("remote.delete", Run(|cx| over_http(cx, delete))),
    (
        "remote.deleted-is-unknown",
        Run(|cx| over_http(cx, deleted_is_unknown)),
    ),
    (
        "remote.delete-ends-streams",
        Run(|cx| over_http(cx, delete_ends_streams)),
    ),
    (
        "remote.delete-without-connection",
        Run(|cx| over_http(cx, delete_without_connection)),
    ),
    (
        "remote.delete-of-unknown-connection",
        Run(|cx| over_http(cx, delete_of_unknown_connection)),
    ),
    (
        "remote.connections-apart",
        Run(|cx| over_http(cx, connections_apart)),
    ),
    (
        "remote.sessions-survive",
        Run(|cx| over_http(cx, sessions_survive)),
    ),
];

async fn delete(server: &Server) -> Outcome {
    let connection = Connection::open(server).await?;
    connection.delete().await?.has_status(&[202])
}

async fn deleted_is_unknown(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    connection.delete().await?;
    // Status 202 does not say that it is done. Another row judges whether the stream ends.
    connection.ends(0).await?;
    let response = connection.post(&unknown_notification(), None).await?;
    response.has_status(&[404])?;
    let response = server.send(&connection.stream(None)).await?;
    response.has_status(&[404])
}

async fn delete_ends_streams(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    connection.new_session().await?;
    connection.delete().await?;
    for stream in [0, 1] {
        if !connection.ends(stream).await? {
            return fail(format!(
                "expected the streams of a deleted connection to end, got one that did not within {} s",
                server.env.timeout.as_secs_f32()
            ));
        }
    }
    Ok(())
}

async fn delete_without_connection(server: &Server) -> Outcome {
    let request = server.request(Method::DELETE);
    server.send(&request).await?.has_status(&[400])
}

async fn delete_of_unknown_connection(server: &Server) -> Outcome {
    let request = server.request(Method::DELETE);
    let request = request.with("acp-connection-id", UNKNOWN);
    server.send(&request).await?.has_status(&[404])
}

async fn connections_apart(server: &Server) -> Outcome {
    let one = Connection::open(server).await?;
    let mut other = Connection::open(server).await?;
    one.delete().await?;
    other.still_serves().await
}

async fn sessions_survive(server: &Server) -> Outcome {
    let (first, session) = with_history(server).await?;
    // Its streams end without a word.
    drop(first);
    let mut connection = Connection::open(server).await?;
    load_leniently(&mut connection, &session).await.map(drop)
}
