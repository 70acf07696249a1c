//! The upgrade to WebSocket.

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use super::http::{Request, Response, within};
use super::server::Server;
use crate::harness::{Outcome, Stop};

/// The key of every handshake: that of RFC 6455, section 1.3.
pub(super) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// Sends an upgrade. Yields the response and, at 101, the socket.
///
/// # Errors
/// When there is no response.
pub(super) async fn upgrade(
    server: &Server,
    request: &Request,
) -> Outcome<(Response, Option<TokioIo<Upgraded>>)> {
    let mut response = server.begin(request).await?;
    let switched = response.status().as_u16() == 101;
    let socket = match switched {
        true => {
            let upgrade = hyper::upgrade::on(&mut response);
            let socket = within(server.env.timeout, "the upgrade", upgrade).await?;
            Some(socket.map_err(|error| Stop::failed(format!("no upgrade: {error}")))?)
        }
        false => None,
    };
    let limit = server.env.timeout;
    let response = Response::read(response, request.describe(), limit).await?;
    Ok((response, socket.map(TokioIo::new)))
}

/// Sends an upgrade that is to be refused. Yields the response.
///
/// # Errors
/// When there is no response.
pub(crate) async fn refused_upgrade(server: &Server, request: &Request) -> Outcome<Response> {
    Ok(upgrade(server, request).await?.0)
}
