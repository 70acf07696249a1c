//! Transcripts: what stands in them, and that they never harm the connection.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use acp_sdk::service::layers::Deadline;
use acp_sdk::{ConnectionBuilder, Transcript};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{TestAgent, TestClient, prompt, within};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn records(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Runs an agent with a transcript on `input` to its end; yields what it answered.
async fn run(transcript: Transcript, input: impl AsRef<[u8]>) -> Vec<u8> {
    run_with(ConnectionBuilder::new(), transcript, input).await
}

async fn run_with(
    connection: ConnectionBuilder,
    transcript: Transcript,
    input: impl AsRef<[u8]>,
) -> Vec<u8> {
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let driver = connection
        .max_message_bytes(1000)
        .transcript(transcript)
        .agent(TestAgent::default(), (reader, writer));
    let driver = tokio::spawn(driver);
    theirs.write_all(input.as_ref()).await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut output = Vec::new();
    theirs.read_to_end(&mut output).await.unwrap();
    driver.await.unwrap().unwrap();
    output
}

const PROMPT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"s3cret"}]}}"#;

async fn both_directions_are_written_in_order() {
    let memory = Memory::default();
    let long = "x".repeat(2000);
    let input =
        format!("{PROMPT}\ns3cret\n{long}\n{{\"id\":1,\"method\":7,\"name\":\"s3cret\"}}\n");
    run(Transcript::new(memory.clone()), input).await;
    let records = memory.records();
    let short: Vec<String> = records
        .iter()
        .map(|record| {
            let at = record["at"].as_f64().unwrap();
            assert!(at > 1.7e9, "seconds since 1970: {at}");
            let method = record["msg"]["method"].as_str().unwrap_or_default();
            let rest = ["raw", "why"].map(|member| record[member].as_str().unwrap_or_default());
            format!(
                "{} {method} {}",
                record["dir"].as_str().unwrap(),
                rest.join(" ")
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            "c2a session/prompt  ",
            "c2a  [redacted: 6 bytes] not JSON",
            "c2a  [skipped] 2000 bytes exceed the limit",
            "c2a   ",
            "a2c session/update  ",
            "a2c   ",
            "a2c   ",
            "a2c   ",
            "a2c   ",
        ]
    );
    assert_eq!(records[5]["msg"]["result"]["stopReason"], "end_turn");
    assert!(!format!("{records:?}").contains("s3cret"));
}

/// The layer does not implement `masking_rules`, whose default is empty.
async fn a_layer_keeps_the_masking_rules() {
    let memory = Memory::default();
    let layered = ConnectionBuilder::new().layer(Deadline::new().others(Duration::from_secs(60)));
    run_with(
        layered,
        Transcript::new(memory.clone()),
        format!("{PROMPT}\n"),
    )
    .await;
    let records = memory.records();
    let answer = records.last().unwrap();
    assert_eq!(answer["msg"]["result"]["stopReason"], "end_turn");
    assert!(!format!("{records:?}").contains("s3cret"));
}

async fn a_client_is_told_apart_from_an_agent() {
    let memory = Memory::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let _agent = tokio::spawn(acp_sdk::serve(TestAgent::default(), (reader, writer)));
    let (reader, writer) = tokio::io::split(theirs);
    let driver = ConnectionBuilder::new()
        .transcript(Transcript::new(memory.clone()))
        .client(TestClient::default(), (reader, writer));
    let handle = driver.handle().clone();
    let driver = tokio::spawn(driver);
    handle.prompt(prompt("s", "x")).await.unwrap();
    handle.peer().close_output();
    within(driver).await.unwrap().unwrap();
    let dirs: Vec<Value> = memory
        .records()
        .iter()
        .map(|record| record["dir"].clone())
        .collect();
    assert_eq!(dirs, ["c2a", "a2c", "a2c"]);
}

async fn verbatim_means_every_byte_but_line_feeds() {
    let memory = Memory::default();
    run(
        Transcript::new(memory.clone()).verbatim(),
        format!("{PROMPT}\ns3cret\n"),
    )
    .await;
    let written = memory.0.lock().unwrap().clone();
    let written = String::from_utf8(written).unwrap();
    assert!(
        written.contains(&format!("\"msg\":{PROMPT}}}\n")),
        "{written}"
    );
    assert_eq!(memory.records()[1]["raw"], "s3cret");
}

async fn a_transcript_ends_at_its_size() {
    let memory = Memory::default();
    run(
        Transcript::new(memory.clone()).max_bytes(400),
        format!("{PROMPT}\n").repeat(5),
    )
    .await;
    let written = memory.0.lock().unwrap().len();
    assert!((200..=400).contains(&written), "{written} bytes");
    assert!(!memory.records().is_empty());
}

/// Fails in one way or another at the second write.
struct Bad {
    writes: u32,
    fail: Box<dyn FnMut() -> io::Result<usize> + Send>,
}

impl Write for Bad {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if self.writes == 1 {
            return Ok(bytes.len());
        }
        (self.fail)()
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_fails_does_no_harm() {
    let (_never, forever) = mpsc::channel::<()>();
    let failures: [Box<dyn FnMut() -> io::Result<usize> + Send>; 3] = [
        Box::new(|| Err(io::Error::other("the disk is full"))),
        Box::new(|| panic!("a fault in the writer")),
        Box::new(move || {
            let _ = forever.recv();
            Ok(0)
        }),
    ];
    for fail in failures {
        let transcript = Transcript::new(Bad { writes: 0, fail });
        let output = run(transcript, format!("{PROMPT}\n").repeat(100)).await;
        let answers = String::from_utf8(output)
            .unwrap()
            .matches("end_turn")
            .count();
        assert_eq!(answers, 100);
    }
}

/// Writes nothing before it is told to.
struct Gate {
    open: mpsc::Receiver<()>,
    memory: Memory,
    /// Tells by its drop that nothing more will be written.
    _ending: mpsc::Sender<()>,
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.open.recv();
        self.memory.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn what_does_not_fit_is_counted() {
    const COUNT: usize = 100_000;
    let (open, gate) = mpsc::channel();
    let (ending, ended) = mpsc::channel();
    let memory = Memory::default();
    let transcript = Transcript::new(Gate {
        open: gate,
        memory: memory.clone(),
        _ending: ending,
    });
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new()
        .transcript(transcript)
        .agent(TestAgent::default(), (reader, writer));
    let driver = tokio::spawn(driver);
    let (mut output, mut input) = tokio::io::split(theirs);
    let note = json!({"jsonrpc": "2.0", "method": "_note"});
    input
        .write_all(format!("{note}\n").repeat(COUNT).as_bytes())
        .await
        .unwrap();
    // The notifications are read, and recorded, before this is answered.
    let alive = json!({"jsonrpc": "2.0", "id": 1, "method": "_alive"});
    input
        .write_all(format!("{alive}\n").as_bytes())
        .await
        .unwrap();
    output.read_u8().await.unwrap();
    drop(open);
    drop((input, output));
    driver.await.unwrap().unwrap();
    assert!(ended.recv().is_err(), "the writer is dropped");
    let records = memory.records();
    let lost: u64 = records
        .iter()
        .filter_map(|record| record["lost"].as_u64())
        .sum();
    assert!(lost > 0);
    let kept = records
        .iter()
        .filter(|record| record["lost"].is_null())
        .count();
    assert_eq!(
        lost as usize + kept,
        COUNT + 2,
        "the ping and its answer included"
    );
}

#[cfg(unix)]
#[test]
fn a_file_is_new_and_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("transcript.jsonl");
    drop(Transcript::file(&path).unwrap());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        Transcript::file(&path).is_err(),
        "nobody's transcript is overwritten"
    );
}

/// Tells when the transcript lets go of it.
struct Held(mpsc::Sender<()>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn a_connection_that_is_dropped_ends_its_transcript_whoever_still_has_a_handle() {
    let (ended, end) = mpsc::channel();
    let driver = ConnectionBuilder::new()
        .transcript(Transcript::new(Held(ended)))
        .client(
            TestClient::default(),
            (tokio::io::empty(), tokio::io::sink()),
        );
    drop(driver);
    let limit = std::time::Duration::from_secs(30);
    end.recv_timeout(limit).expect("its thread ends");
}

crate::on_every_runtime!(
    both_directions_are_written_in_order,
    a_layer_keeps_the_masking_rules,
    a_client_is_told_apart_from_an_agent,
    verbatim_means_every_byte_but_line_feeds,
    a_transcript_ends_at_its_size,
    what_does_not_fit_is_counted,
    a_connection_that_is_dropped_ends_its_transcript_whoever_still_has_a_handle,
);
