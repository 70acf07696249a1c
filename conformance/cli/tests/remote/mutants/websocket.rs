//! WebSockets of a server with a fault: frames pass through a socket to the sound one.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::frame::Frame;
use super::server::{Act, Answer, Asked, Fault, Shared};

pub async fn serve(
    sound: SocketAddr,
    shared: Arc<Shared>,
    fault: Fault,
    request: Request,
) -> Response {
    let mut asked = Asked {
        method: request.method().clone(),
        version: request.version(),
        headers: request.headers().clone(),
        body: Bytes::new(),
        message: Value::Null,
        shared,
    };
    (fault.request)(&mut asked);
    let (near, head) = {
        let mut near = TcpStream::connect(sound).await.unwrap();
        let mut head = b"GET /acp HTTP/1.1\r\n".to_vec();
        for (name, value) in &asked.headers {
            head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        near.write_all(&head).await.unwrap();
        let head = head_of(&mut near).await;
        (near, head)
    };
    let (status, headers) = parse(&head);
    let mut answer = Answer {
        status,
        headers,
        body: None,
    };
    (fault.response)(&asked, &mut answer);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap();
    *response.headers_mut() = answer.headers;
    if answer.status == 101 {
        tokio::spawn(async move {
            let upgraded = hyper::upgrade::on(request).await.unwrap();
            pump(TokioIo::new(upgraded), near, fault).await;
        });
    } else {
        response.headers_mut().remove("content-length");
    }
    response
}

/// Reads a head, byte by byte: what follows are frames.
async fn head_of(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

fn parse(head: &str) -> (u16, HeaderMap) {
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .unwrap();
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let name = HeaderName::try_from(name).unwrap();
        Some((name, HeaderValue::from_str(value).unwrap()))
    });
    (status.parse().unwrap(), headers.collect())
}

async fn pump(client: TokioIo<hyper::upgrade::Upgraded>, server: TcpStream, fault: Fault) {
    let (mut from_client, to_client) = tokio::io::split(client);
    let (mut from_server, to_server) = server.into_split();
    let (to_client, to_server) = (Mutex::new(to_client), Mutex::new(to_server));
    let forth = pass(
        &mut from_client,
        &to_server,
        &to_client,
        fault.to_server,
        fault.reads_all,
    );
    let back = pass(
        &mut from_server,
        &to_client,
        &to_server,
        fault.to_client,
        false,
    );
    tokio::select! {
        () = forth => {}
        () = back => {}
    }
}

/// Passes frames on until there are no more.
async fn pass(
    from: &mut (impl AsyncRead + Unpin),
    to: &Mutex<impl AsyncWrite + Unpin>,
    back: &Mutex<impl AsyncWrite + Unpin>,
    change: fn(Frame) -> Vec<Act>,
    reads_all: bool,
) {
    let mut bytes = BytesMut::new();
    loop {
        match Frame::decode(&mut bytes) {
            Ok(Some(frame)) => {
                for act in change(frame) {
                    let written = match act {
                        Act::Pass(frame) => to.lock().await.write_all(&frame.encode()).await,
                        Act::Back(frame) => back.lock().await.write_all(&frame.encode()).await,
                        Act::End => return,
                    };
                    if written.is_err() {
                        return;
                    }
                }
                continue;
            }
            Ok(None) => {}
            // A frame of more bytes than there will be.
            Err(_) if reads_all => {
                bytes.clear();
                while matches!(from.read_buf(&mut bytes).await, Ok(1..)) {
                    bytes.clear();
                }
                return;
            }
            Err(_) => {
                let rest = std::mem::take(&mut bytes);
                if to.lock().await.write_all(&rest).await.is_err() {
                    return;
                }
                // There may be an answer before it is at its end.
                let _ = tokio::io::copy(from, &mut *to.lock().await).await;
                return;
            }
        }
        if !matches!(from.read_buf(&mut bytes).await, Ok(1..)) {
            return;
        }
    }
}
