//! Messages with headers, over a connection.

use acp_sdk::v1::StopReason;
use acp_sdk::{ConnectionBuilder, Framing};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::support::{TestAgent, TestClient, agent, client, prompt};

fn with_header(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads one message as LSP has it, and insists on every byte of the header.
async fn read(reader: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Value {
    let mut header = String::new();
    reader.read_line(&mut header).await.unwrap();
    let length = header.strip_prefix("Content-Length: ").unwrap().trim_end();
    let mut body = vec![0; length.parse().unwrap()];
    let mut blank = String::new();
    reader.read_line(&mut blank).await.unwrap();
    assert_eq!(blank, "\r\n");
    reader.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

async fn a_peer_that_writes_headers_is_answered_with_headers() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let _driver = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
    let (reader, mut writer) = tokio::io::split(theirs);
    let mut reader = BufReader::new(reader);
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "ü"}]});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params});
    // Byte by byte, so that no header arrives in one piece.
    for byte in with_header(&request) {
        writer.write_all(&[byte]).await.unwrap();
    }
    let update = read(&mut reader).await;
    assert_eq!(update["params"]["update"]["content"]["text"], "ü");
    assert_eq!(read(&mut reader).await["result"]["stopReason"], "end_turn");

    let noise = b"Content-Length: many\r\n\r\n".to_vec();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "_alive"});
    writer
        .write_all(&[noise, with_header(&ping)].concat())
        .await
        .unwrap();
    let error = read(&mut reader).await;
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&json!(null), &json!(-32700))
    );
    assert_eq!(
        error["error"]["message"],
        "a Content-Length that is no length: many"
    );
    assert_eq!(read(&mut reader).await["result"], "yes");
}

async fn a_client_may_begin_with_headers() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let _agent = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
    let (reader, writer) = tokio::io::split(theirs);
    let watcher = TestClient::default();
    let driver = ConnectionBuilder::new()
        .framing(Framing::ContentLength)
        .client(watcher.clone(), (reader, writer));
    let handle = driver.handle().clone();
    let _client = tokio::spawn(driver);
    let answer = handle.prompt(prompt("s", "over headers")).await.unwrap();
    assert_eq!(answer.stop_reason, StopReason::EndTurn);
    assert_eq!(watcher.texts(), ["over headers"]);
}

async fn headers_on_a_stream_of_lines_are_bad_lines() {
    let (mut raw, _driver) = agent(TestAgent::default());
    raw.assert_alive().await;
    raw.write("Content-Length: 2\r\n").await;
    assert_eq!(raw.expect().await["error"]["code"], -32700);
    raw.assert_alive().await;
}

async fn a_client_says_nothing_to_noise_between_headers() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let connection = ConnectionBuilder::new().framing(Framing::ContentLength);
    let driver = connection.client(TestClient::default(), (reader, writer));
    let _driver = tokio::spawn(driver);
    let (reader, mut writer) = tokio::io::split(theirs);
    writer.write_all(b"Starting up!\n").await.unwrap();
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "no/such"});
    writer.write_all(&with_header(&ask)).await.unwrap();
    assert_eq!(read(&mut BufReader::new(reader)).await["id"], 1);
}

async fn a_stray_header_on_standard_output_does_not_change_the_framing() {
    for noise in ["content-type: text/html\n", "Content-Length: 5000\r\n\r\n"] {
        let (handle, mut raw, _driver) = client(TestClient::default());
        raw.write(noise).await;
        let call = tokio::spawn(async move { handle.prompt(prompt("s", "x")).await });
        assert_eq!(raw.expect().await["id"], 0);
        raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}))
            .await;
        call.await.unwrap().unwrap();
    }
}

crate::on_every_runtime!(
    a_stray_header_on_standard_output_does_not_change_the_framing,
    a_peer_that_writes_headers_is_answered_with_headers,
    a_client_may_begin_with_headers,
    headers_on_a_stream_of_lines_are_bad_lines,
    a_client_says_nothing_to_noise_between_headers,
);
