//! The scenarios over HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::channel::Channel;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::log::Asked;
use super::scripted_agent::{CONNECTION, COOKIE, Piece, ScriptedAgent, Which};
use super::websocket;

/// The most bytes of a body, and how long it may take.
const BODY_BYTES: usize = acp_sdk::limits::MAX_MESSAGE_BYTES;
const BODY_TIME: Duration = Duration::from_secs(10);

/// Pieces that wait for the socket.
const PIECES: usize = 16;

pub(super) type Body = Either<Full<Bytes>, Channel<Bytes, std::io::Error>>;

/// Serves the scenario on a free port, until it is aborted.
pub(super) async fn serve(stage: Arc<ScriptedAgent>) -> std::io::Result<(u16, JoinHandle<()>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let serving = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            // A piece is a packet.
            let _ = socket.set_nodelay(true);
            let stage = stage.clone();
            connections.spawn(async move {
                let service = service_fn(|request| {
                    let stage = stage.clone();
                    async move { Ok::<_, Infallible>(respond(&stage, request).await) }
                });
                // A client may insist on HTTP/2, which the proposal requires.
                let http = Builder::new(TokioExecutor::new());
                let connection = http.serve_connection_with_upgrades(TokioIo::new(socket), service);
                // How a client ends its sockets is its own affair.
                let _ = connection.await;
            });
        }
    });
    Ok((port, serving))
}

async fn respond(stage: &Arc<ScriptedAgent>, request: Request<Incoming>) -> Response<Body> {
    let mut asked = Asked {
        method: request.method().to_string(),
        ..Asked::default()
    };
    for (name, value) in request.headers() {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let known = asked.headers.entry(name.as_str().to_owned()).or_default();
        match known.is_empty() {
            true => *known = value,
            false => *known = format!("{known}; {value}"),
        }
    }
    // Where the scenario has no WebSocket, it ignores the header, as it does that of HTTP/2.
    if stage.scenario.is_websocket && asked.is_upgrade() {
        return websocket::respond(stage, asked, request).map(|()| Either::Left(Full::default()));
    }
    let body = Limited::new(request.into_body(), BODY_BYTES).collect();
    if let Ok(Ok(body)) = tokio::time::timeout(BODY_TIME, body).await {
        asked.message = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    }
    let response = act(stage, &asked);
    asked.status = response.status().as_u16();
    let is_initialize = asked.calls() == Some("initialize");
    let message = asked.message.clone();
    let is_delete = asked.method == "DELETE";
    stage.note(asked);
    if response.status() == StatusCode::ACCEPTED {
        if is_delete {
            stage.end();
        } else if !is_initialize {
            stage.receive(&message);
        }
    }
    response
}

/// The response to a request.
fn act(stage: &Arc<ScriptedAgent>, asked: &Asked) -> Response<Body> {
    if let Some(status) = stage.refusal(&asked.message) {
        return status_alone(status);
    }
    if asked.calls() == Some("initialize") {
        let answer = stage.initialize(&asked.message).to_string();
        let mut response = Response::new(Either::Left(Full::from(answer)));
        let headers = response.headers_mut();
        for (name, value) in [
            ("content-type", "application/json"),
            ("acp-connection-id", CONNECTION),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Ok(cookie) = HeaderValue::from_str(&format!("{COOKIE}; Path=/; HttpOnly")) {
            headers.insert("set-cookie", cookie);
        }
        return response;
    }
    match asked.header("acp-connection-id") {
        None => return status_alone(400),
        Some(CONNECTION) => {}
        Some(_) => return status_alone(404),
    }
    match asked.method.as_str() {
        "POST" if asked.message == Value::Null => status_alone(400),
        "POST" | "DELETE" => status_alone(202),
        "GET" => stream(stage, asked),
        _ => status_alone(405),
    }
}

fn status_alone(status: u16) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
}

fn stream(stage: &Arc<ScriptedAgent>, asked: &Asked) -> Response<Body> {
    let which = match asked.header("acp-session-id") {
        Some(_) => Which::Session,
        None => Which::Connection,
    };
    let after = asked.header("last-event-id");
    let mut pieces = stage.open(which, after.and_then(|after| after.parse().ok()));
    let is_rough = stage.scenario.is_rough;
    let (mut sender, body) = Channel::new(PIECES);
    tokio::spawn(async move {
        while let Some(piece) = pieces.recv().await {
            let Piece::Bytes(bytes) = piece else {
                // What came before must arrive, so that it is no break.
                return;
            };
            let size = if is_rough { 1 } else { bytes.len().max(1) };
            for piece in bytes.chunks(size) {
                let piece = Bytes::copy_from_slice(piece);
                if sender.send_data(piece).await.is_err() {
                    return;
                }
            }
        }
    });
    let mut response = Response::new(Either::Right(body));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert("content-type", kind);
    response
}

#[cfg(test)]
mod tests {
    use hyper::Method;
    use tokio::net::TcpStream;

    use super::super::scenario;
    use super::*;

    /// The status of the response to `initialize` with this header, over HTTP/2 or HTTP/1.1.
    async fn status(port: u16, is_http2: bool, upgrade: Option<&'static str>) -> u16 {
        let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let socket = TokioIo::new(socket);
        let body = r#"{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}"#;
        let mut request = Request::new(Full::new(Bytes::from_static(body.as_bytes())));
        *request.uri_mut() = format!("http://127.0.0.1:{port}/acp").parse().unwrap();
        *request.method_mut() = Method::POST;
        if let Some(upgrade) = upgrade {
            let value = HeaderValue::from_static(upgrade);
            request.headers_mut().insert("upgrade", value);
        }
        if upgrade == Some("websocket") {
            *request.method_mut() = Method::GET;
            *request.body_mut() = Full::default();
        }
        let response = if is_http2 {
            let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), socket);
            let (mut sender, connection) = handshake.await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(socket).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await
        };
        response.unwrap().status().as_u16()
    }

    async fn serves_every_client() {
        let stage = Arc::new(ScriptedAgent::new(scenario("remote-http")));
        let (port, serving) = serve(stage.clone()).await.unwrap();
        assert_eq!(status(port, true, None).await, 200);
        assert_eq!(status(port, false, Some("h2c")).await, 200);
        // One that tries a WebSocket first goes on over HTTP.
        assert_eq!(status(port, false, Some("websocket")).await, 400);
        serving.abort();
        let (_, log) = stage.finish();
        let upgrades: Vec<_> = log.requests.iter().map(Asked::is_upgrade).collect();
        assert_eq!(upgrades, [false, false, true]);
    }

    #[tokio::test]
    async fn clients_of_http2_and_those_that_try_an_upgrade_are_served() {
        serves_every_client().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn clients_of_http2_and_those_that_try_an_upgrade_are_served_by_several_threads() {
        serves_every_client().await;
    }
}
