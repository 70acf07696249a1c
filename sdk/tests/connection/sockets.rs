//! Agents behind sockets, and in memory.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_sdk::v1::StopReason;
use acp_sdk::{ConnectionBuilder, Error, Listener, connect_tcp, duplex};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::support::{TestAgent, TestClient, prompt, within};

async fn an_agent_in_memory_is_a_whole_connection() {
    let watcher = TestClient::default();
    let driver = duplex(TestAgent::default(), watcher.clone());
    let handle = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let answer = handle.prompt(prompt("s", "near")).await.unwrap();
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    assert_eq!(watcher.texts(), ["near"]);
    handle.peer().close_output();
    within(driver).await.unwrap().unwrap();
    assert!(
        handle
            .prompt(prompt("s", "x"))
            .await
            .unwrap_err()
            .is_closed()
    );
}

async fn in_memory_too_an_answer_after_our_end_is_heard() {
    let subject = TestAgent::default();
    let driver = duplex(subject.clone(), TestClient::default());
    let handle = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let call = tokio::spawn({
        let handle = handle.clone();
        async move { handle.prompt(prompt("s", "hang")).await }
    });
    subject.hanging.notified().await;
    handle.peer().close_output();
    let answer = within(call).await.unwrap().unwrap();
    assert_eq!(answer.stop_reason, StopReason::Cancelled);
    within(driver).await.unwrap().unwrap();
}

async fn in_memory_one_side_may_end_long_before_the_other() {
    let watcher = TestClient::default();
    let driver = duplex(TestAgent::default(), watcher.clone());
    let handle = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let call = tokio::spawn({
        let handle = handle.clone();
        async move { handle.prompt(prompt("s", "slow")).await }
    });
    watcher.reached_gate.notified().await;
    // The agent has nothing left to do; the client is still at an update.
    handle.peer().close_output();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!driver.is_finished());
    watcher.gate.notify_one();
    within(driver).await.unwrap().unwrap();
    assert_eq!(watcher.texts(), ["slow"]);
    within(call).await.unwrap().unwrap();
}

async fn every_connection_has_an_agent_of_its_own() {
    let listener = Listener::tcp("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let made = std::sync::Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let serving = tokio::spawn(listener.serve(move || {
        count.fetch_add(1, Ordering::Relaxed);
        TestAgent::default()
    }));
    for number in 1..=3 {
        let watcher = TestClient::default();
        let driver = connect_tcp(addr, watcher.clone()).await.unwrap();
        let handle = driver.handle().clone();
        let driver = tokio::spawn(driver);
        handle.prompt(prompt("s", "over tcp")).await.unwrap();
        assert_eq!(watcher.texts(), ["over tcp"]);
        assert_eq!(made.load(Ordering::Relaxed), number);
        handle.peer().close_output();
        within(driver).await.unwrap().unwrap();
    }
    serving.abort();
}

async fn connections_above_the_bound_wait_for_their_turn() {
    let listener = Listener::tcp("127.0.0.1:0")
        .await
        .unwrap()
        .max_connections(1);
    let addr = listener.local_addr().unwrap();
    let _serving = tokio::spawn(listener.serve(TestAgent::default));
    let first_driver = connect_tcp(addr, TestClient::default()).await.unwrap();
    let first = first_driver.handle().clone();
    let first_driver = tokio::spawn(first_driver);
    first.prompt(prompt("s", "x")).await.unwrap();

    let second_driver = connect_tcp(addr, TestClient::default()).await.unwrap();
    let second = second_driver.handle().clone();
    let _second_driver = tokio::spawn(second_driver);
    let waiting = tokio::spawn(async move { second.prompt(prompt("s", "x")).await });
    for _ in 0..100 {
        first.prompt(prompt("s", "x")).await.unwrap();
    }
    assert!(!waiting.is_finished());
    first.peer().close_output();
    within(first_driver).await.unwrap().unwrap();
    waiting.await.unwrap().unwrap();
}

async fn a_shutdown_lets_requests_end_and_refuses_new_connections() {
    let listener = Listener::tcp("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let subject = TestAgent::default();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    let agent = subject.clone();
    let serving = tokio::spawn(listener.serve_until(stopped, move || agent.clone()));
    let driver = connect_tcp(addr, TestClient::default()).await.unwrap();
    let handle = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let call = tokio::spawn(async move { handle.prompt(prompt("s", "hang")).await });
    subject.hanging.notified().await;
    stop.send(()).unwrap();
    // The handler hears of the end as of a cancellation, and its answer still arrives.
    let answer = call.await.unwrap().unwrap();
    assert_eq!(answer.stop_reason, StopReason::Cancelled);
    serving.await.unwrap().unwrap();
    driver.await.unwrap().unwrap();
    let refused = connect_tcp(addr, TestClient::default()).await.map(|_| ());
    assert!(
        matches!(refused, Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ConnectionRefused)
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_handler_that_never_ends() {
    let listener = Listener::tcp("127.0.0.1:0")
        .await
        .unwrap()
        .options(|| ConnectionBuilder::new().shutdown_timeout(Duration::from_secs(1)));
    let addr = listener.local_addr().unwrap();
    let subject = TestAgent::default();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    let agent = subject.clone();
    let serving = tokio::spawn(listener.serve_until(stopped, move || agent.clone()));
    let mut peer = TcpStream::connect(addr).await.unwrap();
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "flood"}]});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params});
    peer.write_all(format!("{request}\n").as_bytes())
        .await
        .unwrap();
    peer.read_exact(&mut [0; 1000]).await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
}

async fn a_running_listener_is_shut_down_gracefully() {
    let listener = Listener::tcp("127.0.0.1:0").await.unwrap();
    let subject = TestAgent::default();
    let agent = subject.clone();
    let running = listener.start(move || agent.clone());
    let addr = running.local_addr().unwrap();
    let driver = connect_tcp(addr, TestClient::default()).await.unwrap();
    let handle = driver.handle().clone();
    let mut connection = driver.start();
    let call = tokio::spawn(async move { handle.prompt(prompt("s", "hang")).await });
    subject.hanging.notified().await;
    within(running.shutdown()).await.unwrap();
    let answer = within(call).await.unwrap().unwrap();
    assert_eq!(answer.stop_reason, StopReason::Cancelled, "not cut off");
    within(connection.closed()).await.unwrap();
    assert!(connection.is_closed());
}

async fn what_does_not_begin_like_a_message_is_cut_off() {
    let listener = Listener::tcp("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let _serving = tokio::spawn(listener.serve(TestAgent::default));
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_alive\"}\n";
    let http = format!(
        "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for (input, answered) in [(http.as_str(), false), (body, true)] {
        let mut peer = TcpStream::connect(addr).await.unwrap();
        peer.write_all(input.as_bytes()).await.unwrap();
        peer.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // A cut connection may be reset, for it still held unread bytes.
        let _ = peer.read_to_end(&mut answer).await;
        assert_eq!(!answer.is_empty(), answered, "{input}");
    }
}

async fn an_address_that_does_not_work_is_named() {
    let listener = Listener::tcp("127.0.0.1:0").await.unwrap();
    let taken = listener.local_addr().unwrap();
    let error = Listener::tcp(taken).await.err().unwrap().to_string();
    assert!(error.contains(&taken.to_string()), "{error}");
    drop(listener);
    let error = connect_tcp(taken, TestClient::default()).await;
    let error = error.err().unwrap().to_string();
    assert!(error.contains(&taken.to_string()), "{error}");
    let error = acp_sdk::Transcript::file("/no/such/directory/transcript")
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("transcript `/no/such/directory/transcript`"),
        "{error}"
    );
}

async fn tcp_stays_on_this_machine_unless_asked() {
    let refused = Listener::tcp("0.0.0.0:0").await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("can be reached from other machines"),
        "{refused}"
    );
    assert!(Listener::tcp_exposed("0.0.0.0:0").await.is_ok());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::PermissionsExt as _;

    use acp_sdk::{connect_unix, serve_unix};

    use super::*;

    #[tokio::test]
    async fn a_unix_socket_is_private_and_gone_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let listener = Listener::unix(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            let _ = stopped.await;
        };
        let serving = tokio::spawn(listener.serve_until(stopped, TestAgent::default));
        let watcher = TestClient::default();
        let driver = connect_unix(&path, watcher.clone()).await.unwrap();
        let handle = driver.handle().clone();
        let _driver = tokio::spawn(driver);
        handle.prompt(prompt("s", "over unix")).await.unwrap();
        assert_eq!(watcher.texts(), ["over unix"]);

        let taken = serve_unix(&path, TestAgent::default).await.unwrap_err();
        assert!(
            matches!(&taken, Error::Io { source, .. } if source.kind() == ErrorKind::AddrInUse),
            "{taken}"
        );
        assert!(taken.to_string().contains("agent.sock"), "{taken}");
        assert!(
            path.exists(),
            "a failed attempt leaves the other's file alone"
        );

        stop.send(()).unwrap();
        serving.await.unwrap().unwrap();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_file_of_the_dead_is_replaced_and_a_plain_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::unix(&path).unwrap());
        std::fs::write(&path, "precious").unwrap();
        assert!(Listener::unix(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn a_file_that_another_listener_has_put_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let first = Listener::unix(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = Listener::unix(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}

crate::on_every_runtime!(
    an_agent_in_memory_is_a_whole_connection,
    in_memory_too_an_answer_after_our_end_is_heard,
    in_memory_one_side_may_end_long_before_the_other,
    every_connection_has_an_agent_of_its_own,
    connections_above_the_bound_wait_for_their_turn,
    a_shutdown_lets_requests_end_and_refuses_new_connections,
    a_running_listener_is_shut_down_gracefully,
    what_does_not_begin_like_a_message_is_cut_off,
    an_address_that_does_not_work_is_named,
    tcp_stays_on_this_machine_unless_asked,
);
