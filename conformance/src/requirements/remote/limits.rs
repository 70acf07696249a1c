//! HTTP/2, and requests that are too large.

use bytes::Bytes;

use super::super::{Check, NamedCheck};
use crate::harness::{Outcome, Stop, fail};
use crate::remote::{Events, Item, Server, initialize, over_http, unanswered};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("remote.http2", Run(|cx| over_http(cx, http2))),
    ("remote.large-body", Run(|cx| over_http(cx, large_body))),
    ("remote.large-header", Run(|cx| over_http(cx, large_header))),
];

/// A stream and posts beside it, all in one connection.
async fn http2(server: &Server) -> Outcome {
    let mut connection = server.http2().await?;
    let (response, _) = connection.send(&server.initialize()).await?;
    response.is_success()?;
    let Some(id) = response.header("acp-connection-id").map(str::to_owned) else {
        return Err(response.wrong("expected the header acp-connection-id, got none"));
    };
    let get = server.get().with("acp-connection-id", &id);
    let (response, events) = connection.send(&get).await?;
    let Some(mut events) = events else {
        return Err(response.wrong("expected a stream, got another response"));
    };
    let unknown = serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": "_conformance/unknown"});
    let post = server.post(&unknown).with("acp-connection-id", &id);
    connection.send(&post).await?.0.is_success()?;
    let limit = server.env.turn_timeout;
    match tokio::time::timeout(limit, answer(&mut events)).await {
        Ok(outcome) => outcome,
        Err(_) => unanswered("_conformance/unknown", limit),
    }
}

async fn answer(events: &mut Events) -> Outcome {
    loop {
        match events.next().await {
            Ok(Some(Item::Event { data, .. })) => {
                let message = serde_json::from_str::<serde_json::Value>(&data);
                if message.is_ok_and(|message| message["id"] == 7) {
                    return Ok(());
                }
            }
            Ok(Some(Item::Comment)) => {}
            Ok(None) => return fail("expected an answer on the stream, got its end"),
            Err(reason) => return Err(Stop::failed(reason)),
        }
    }
}

/// How much of a body is sent at most, and how much is announced.
const SENT: usize = 64 << 20;
const ANNOUNCED: u64 = 1 << 40;
const PIECE: usize = 64 << 10;

async fn large_body(server: &Server) -> Outcome {
    let request = server
        .initialize()
        .with("content-length", &ANNOUNCED.to_string());
    let mut head = server.head(&request);
    head.extend_from_slice(b"\r\n");
    let piece = Bytes::from(vec![b' '; PIECE]);
    let pieces = std::iter::once(Bytes::from(head)).chain(std::iter::repeat_n(piece, SENT / PIECE));
    refused(server, pieces, "a refusal of a body of a tebibyte").await
}

/// Bytes of the header. No server takes as many by default.
const HEADER: usize = 1 << 20;

async fn large_header(server: &Server) -> Outcome {
    let body = initialize().to_string();
    let request = server.initialize();
    let request = request.with("content-length", &body.len().to_string());
    let mut head = server.head(&request);
    head.extend_from_slice(b"x-large: ");
    head.resize(head.len() + HEADER, b'x');
    head.extend_from_slice(b"\r\n\r\n");
    head.extend_from_slice(body.as_bytes());
    refused(
        server,
        [Bytes::from(head)],
        "a refusal of a header of a mebibyte",
    )
    .await
}

/// The request is refused, or its connection ended, and others are served.
async fn refused(server: &Server, pieces: impl IntoIterator<Item = Bytes>, what: &str) -> Outcome {
    match server.raw(pieces, what).await? {
        None => {}
        Some(400..=499) => {}
        Some(status) => return fail(format!("expected {what}, got status {status}")),
    }
    server.still_serves().await
}
