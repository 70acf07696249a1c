//! Methods, headers and tokens: what is turned away at the door.

use hyper::Method;

use super::super::{Check, NamedCheck};
use crate::harness::{Outcome, skip};
use crate::remote::{Server, over_http, over_websocket, refused_upgrade};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "remote.other-methods",
        Run(|cx| over_http(cx, other_methods)),
    ),
    ("remote.token", Run(|cx| over_http(cx, token))),
    (
        "remote.websocket-token",
        Run(|cx| over_websocket(cx, websocket_token)),
    ),
    ("remote.foreign-host", Run(|cx| over_http(cx, foreign_host))),
    (
        "remote.foreign-origin",
        Run(|cx| over_http(cx, foreign_origin)),
    ),
    (
        "remote.websocket-foreign-host",
        Run(|cx| over_websocket(cx, websocket_foreign_host)),
    ),
    (
        "remote.websocket-foreign-origin",
        Run(|cx| over_websocket(cx, websocket_foreign_origin)),
    ),
];

async fn other_methods(server: &Server) -> Outcome {
    for method in [Method::PUT, Method::PATCH] {
        let request = server.request(method);
        server.send(&request).await?.has_status(&[405, 501])?;
    }
    Ok(())
}

/// A name and an origin that nobody serves.
const FOREIGN_HOST: &str = "attacker.invalid";
const FOREIGN_ORIGIN: &str = "http://attacker.invalid";

/// What a wrong token looks like.
const WRONG: &str = "Bearer not-the-token-of-this-server-but-another";

const NO_TOKEN: &str = "no token was given: --token-file or ACP_TOKEN";

async fn token(server: &Server) -> Outcome {
    if !server.has_token() {
        return skip(NO_TOKEN);
    }
    let delete = server.request(Method::DELETE);
    let delete = delete.with("acp-connection-id", super::posts::UNKNOWN);
    let get = server
        .get()
        .with("acp-connection-id", super::posts::UNKNOWN);
    for request in [server.initialize(), get, delete] {
        let without = request.clone().without("authorization");
        server.send(&without).await?.has_status(&[401])?;
        let wrong = request.with("authorization", WRONG);
        server.send(&wrong).await?.has_status(&[401])?;
    }
    Ok(())
}

async fn websocket_token(server: &Server) -> Outcome {
    if !server.has_token() {
        return skip(NO_TOKEN);
    }
    let request = server.upgrade_request();
    for request in [
        request.clone().without("authorization"),
        request.with("authorization", WRONG),
    ] {
        refused_upgrade(server, &request)
            .await?
            .has_status(&[401])?;
    }
    Ok(())
}

async fn foreign_host(server: &Server) -> Outcome {
    let request = server.initialize().with("host", FOREIGN_HOST);
    server.send(&request).await?.is_refusal()
}

async fn foreign_origin(server: &Server) -> Outcome {
    let request = server.initialize().with("origin", FOREIGN_ORIGIN);
    server.send(&request).await?.is_refusal()
}

async fn websocket_foreign_host(server: &Server) -> Outcome {
    let request = server.upgrade_request().with("host", FOREIGN_HOST);
    refused_upgrade(server, &request).await?.is_refusal()
}

async fn websocket_foreign_origin(server: &Server) -> Outcome {
    let request = server.upgrade_request().with("origin", FOREIGN_ORIGIN);
    refused_upgrade(server, &request).await?.is_refusal()
}
