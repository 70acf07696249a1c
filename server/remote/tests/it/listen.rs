//! The listener: limits, timeouts, HTTP/2 and the end.

use std::sync::Arc;
use std::time::Duration;

use acp_server_remote::{ListenSettings, Token, Tokens};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::raw::{Answer, Listener, PATIENCE, to_end};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Controls the route `/slow`.
#[derive(Default)]
struct Slow {
    begun: Notify,
    go: Notify,
}

/// A router with a quick route, one that answers when it is told, and an endless stream.
fn routes(go: Arc<Slow>) -> Router {
    let slow = |State(slow): State<Arc<Slow>>| async move {
        slow.begun.notify_one();
        slow.go.notified().await;
        "slow"
    };
    let endless = || async {
        let first = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from("first"))]);
        let rest = futures_util::stream::pending();
        Body::from_stream(futures_util::StreamExt::chain(first, rest))
    };
    Router::new()
        .route("/", get(|| async { "quick" }))
        .route("/slow", get(slow))
        .route("/endless", get(endless))
        .with_state(go)
}

async fn start(settings: ListenSettings) -> (Listener, Arc<Slow>) {
    let go = Arc::new(Slow::default());
    (Listener::start(routes(go.clone()), settings).await, go)
}

fn settings(change: impl FnOnce(&mut ListenSettings)) -> ListenSettings {
    let mut settings = ListenSettings::default();
    change(&mut settings);
    settings
}

/// Reads until the text has come.
async fn read_until(stream: &mut tokio::net::TcpStream, expected: &str) -> String {
    let mut text = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&text).contains(expected) {
            assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "ended early");
        }
    };
    timeout(PATIENCE, read).await.expect("the text should come");
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn connections_are_reused_and_pipelined_requests_are_answered_in_order() {
    let (listener, _) = start(ListenSettings::default()).await;
    let mut stream = listener.connect().await;
    for _ in 0..3 {
        stream.write_all(REQUEST.as_bytes()).await.unwrap();
        read_until(&mut stream, "quick").await;
    }
    let last = REQUEST.replace("localhost", "localhost\r\nConnection: close");
    let both = REQUEST.to_owned() + &last;
    stream.write_all(both.as_bytes()).await.unwrap();
    assert_eq!(to_end(stream).await.matches("quick").count(), 2);
}

#[tokio::test]
async fn requests_in_single_bytes_are_served_and_smuggled_ones_are_not() {
    let (listener, _) = start(ListenSettings::default()).await;
    let mut stream = listener.connect().await;
    stream.set_nodelay(true).unwrap();
    for byte in REQUEST.bytes() {
        stream.write_all(&[byte]).await.unwrap();
    }
    read_until(&mut stream, "quick").await;
    for headers in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: -5",
        "Content-Length: +5",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding : chunked",
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\nhello");
        assert_eq!(listener.send(&request).await.status, 400, "{headers}");
    }
}

#[tokio::test]
async fn too_many_and_too_large_headers_are_refused() {
    let (listener, _) = start(ListenSettings::default()).await;
    let mut request = "GET / HTTP/1.1\r\nHost: localhost\r\n".to_owned();
    for number in 0..200 {
        request += &format!("X-{number}: a\r\n");
    }
    assert_eq!(listener.send(&(request + "\r\n")).await.status, 431);
    let large = "a".repeat(100 << 10);
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {large}\r\n\r\n");
    let mut stream = listener.connect().await;
    // The listener may close before all is written.
    let _ = stream.write_all(request.as_bytes()).await;
    let text = to_end(stream).await;
    assert!(
        text.is_empty() || Answer::parse(&text).status == 431,
        "{text}"
    );
}

#[tokio::test]
async fn slow_headers_silence_and_idle_connections_end() {
    let short = Duration::from_millis(300);
    let (listener, slow) = start(settings(|settings| settings.header_timeout = short)).await;
    for begin in [
        "",
        "GET / HT",
        "PRI * HTTP/2.0\r\n",
        &REQUEST[..20],
        REQUEST,
    ] {
        let began = Instant::now();
        let mut stream = listener.connect().await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        let text = to_end(stream).await;
        assert_eq!(text.contains("quick"), begin == REQUEST, "{begin:?}");
        assert!(began.elapsed() >= short, "{begin:?}");
    }
    // A request that takes longer is no slow header.
    let mut stream = listener.connect().await;
    stream
        .write_all(REQUEST.replace("/ ", "/slow ").as_bytes())
        .await
        .unwrap();
    tokio::time::sleep(short * 2).await;
    slow.go.notify_one();
    read_until(&mut stream, "slow").await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_answered_503_until_one_ends() {
    let (listener, _) = start(settings(|settings| settings.connections = 3)).await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = listener.connect().await;
        stream.write_all(REQUEST.as_bytes()).await.unwrap();
        read_until(&mut stream, "quick").await;
        idle.push(stream);
    }
    for _ in 0..5 {
        let answer = listener.send(REQUEST).await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("retry-after"), Some("5"));
        assert_eq!(answer.json()["error"], "too_many_connections");
    }
    idle.pop();
    let closing = REQUEST.replace("localhost", "localhost\r\nConnection: close");
    let served = async {
        // The listener sees the end of the other connection a moment later.
        while listener.send(&closing).await.status != 200 {}
    };
    timeout(PATIENCE, served).await.unwrap();
    // Those that hold the places are served all the same.
    idle[0].write_all(REQUEST.as_bytes()).await.unwrap();
    read_until(&mut idle[0], "quick").await;
}

#[tokio::test]
async fn the_master_is_served_when_others_have_taken_their_connections() {
    let (master, other) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&other);
    let (listener, _) = start(settings(|settings| {
        settings.connections = 4;
        settings.reserve_for = Some(tokens);
    }))
    .await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = listener.connect().await;
        stream.write_all(REQUEST.as_bytes()).await.unwrap();
        read_until(&mut stream, "quick").await;
        idle.push(stream);
    }
    let with = |token: &Token| {
        let header = format!("localhost\r\nAuthorization: Bearer {}", token.secret());
        REQUEST.replace("localhost", &header)
    };
    assert_eq!(listener.send(REQUEST).await.status, 503);
    assert_eq!(listener.send(&with(&other)).await.status, 503);
    let mut stream = listener.connect().await;
    stream.write_all(with(&master).as_bytes()).await.unwrap();
    read_until(&mut stream, "quick").await;
    // It stays, beyond the time that a refused connection has.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3)).await;
    tokio::time::resume();
    stream.write_all(REQUEST.as_bytes()).await.unwrap();
    read_until(&mut stream, "quick").await;
    assert_eq!(
        listener.send(&with(&master)).await.status,
        503,
        "all is taken"
    );
}

#[tokio::test]
async fn hundreds_of_idle_connections_beyond_the_limit_do_not_disturb_the_others() {
    let (listener, _) = start(settings(|settings| settings.connections = 10)).await;
    let mut own = listener.connect().await;
    own.write_all(REQUEST.as_bytes()).await.unwrap();
    read_until(&mut own, "quick").await;
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(listener.connect().await);
    }
    for _ in 0..20 {
        own.write_all(REQUEST.as_bytes()).await.unwrap();
        read_until(&mut own, "quick").await;
    }
}

#[tokio::test]
async fn a_reader_that_stops_loses_its_connection() {
    let body = Body::from(vec![0; 64 << 20]);
    let body = Arc::new(std::sync::Mutex::new(Some(body)));
    let large = move || async move { body.lock().unwrap().take().unwrap_or_default() };
    let router = Router::new().route("/", get(large));
    let short = Duration::from_millis(200);
    let settings = settings(|settings| settings.write_timeout = short);
    let listener = Listener::start(router, settings).await;
    let mut stream = listener.connect().await;
    stream.write_all(REQUEST.as_bytes()).await.unwrap();
    let mut one = [0];
    stream.read_exact(&mut one).await.unwrap();
    tokio::time::sleep(short * 3).await;
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(rest.len() < 32 << 20, "{} bytes", rest.len());
}

#[tokio::test]
async fn open_requests_end_and_idle_connections_are_closed_at_the_end() {
    let (mut listener, slow) = start(ListenSettings::default()).await;
    let mut idle = listener.connect().await;
    idle.write_all(REQUEST.as_bytes()).await.unwrap();
    read_until(&mut idle, "quick").await;
    let mut open = listener.connect().await;
    let request = REQUEST.replace("/ ", "/slow ");
    open.write_all(request.as_bytes()).await.unwrap();
    let silent = listener.connect().await;
    timeout(PATIENCE, slow.begun.notified()).await.unwrap();

    listener.stop.cancel();
    assert_eq!(to_end(idle).await, "");
    assert_eq!(to_end(silent).await, "");
    assert!(!listener.task.is_finished());
    slow.go.notify_one();
    assert!(to_end(open).await.contains("slow"));
    timeout(PATIENCE, &mut listener.task)
        .await
        .unwrap()
        .unwrap();
    let refused = tokio::net::TcpStream::connect(listener.address).await;
    assert!(refused.is_err(), "the listener is closed");
}

#[tokio::test]
async fn what_does_not_end_is_dropped_after_the_deadline() {
    let short = Duration::from_millis(200);
    let settings = settings(|settings| settings.shutdown_timeout = short);
    let (mut listener, _) = start(settings).await;
    let mut endless = listener.connect().await;
    let request = REQUEST.replace("/ ", "/endless ");
    endless.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut endless, "first").await;
    let began = Instant::now();
    listener.stop.cancel();
    timeout(PATIENCE, &mut listener.task)
        .await
        .unwrap()
        .unwrap();
    assert!(began.elapsed() >= short);
    to_end(endless).await;
}

#[tokio::test]
async fn http2_without_tls_is_served_to_those_who_begin_with_it() {
    let (listener, _) = start(ListenSettings::default()).await;
    let io = hyper_util::rt::TokioIo::new(listener.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io)
        .await
        .unwrap();
    tokio::spawn(connection);
    let uri = format!("http://{}/", listener.address);
    for _ in 0..3 {
        let request = hyper::Request::get(&uri).body(Body::empty()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.version(), hyper::Version::HTTP_2);
    }
    listener.stop.cancel();
    let gone = async {
        while !sender.is_closed() {
            tokio::task::yield_now().await
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}
