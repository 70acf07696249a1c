//! Bytes in, findings and a transcript out; and `check` on that transcript.

use std::sync::{Arc, Mutex};

use acp_conformance::judge::{CheckOptions, check};

use super::*;

const NEW: &str = r#"{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"m","command":"/m","args":[],"env":[{"name":"K","value":"s3cret"}]}]}}"#;
const SESSION: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"sessionId":"s"}}"#;

/// A log that can be read afterwards.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Recorded {
    log: String,
    findings: Vec<Diagnostic>,
    summary: Summary,
}

fn recorded_as(redact: bool, act: impl FnOnce(&mut Recorder)) -> Recorded {
    let log = Log::default();
    let findings = Arc::new(Mutex::new(Vec::new()));
    let found = findings.clone();
    let mut recorder = Recorder::new(
        Schemas::any().unwrap(),
        Some(Box::new(log.clone())),
        redact,
        Box::new(move |finding| found.lock().unwrap().push(finding.clone())),
    );
    act(&mut recorder);
    let summary = recorder.finish();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let findings = findings.lock().unwrap().clone();
    Recorded {
        log,
        findings,
        summary,
    }
}

/// Records, and checks that `check` finds the same.
fn recorded(act: impl FnOnce(&mut Recorder)) -> Recorded {
    let recorded = recorded_as(true, act);
    let mut again = Vec::new();
    let schemas = Schemas::any().unwrap();
    let options = CheckOptions::default();
    let found = |finding| again.push(finding);
    let summary = check(recorded.log.as_bytes(), schemas, &options, found, |_| {}).unwrap();
    assert_eq!(again, recorded.findings, "{}", recorded.log);
    assert_eq!(summary, recorded.summary);
    recorded
}

fn says(recorder: &mut Recorder, from: Party, text: &str) {
    recorder.bytes(from, SystemTime::now(), text.as_bytes());
}

fn line(recorder: &mut Recorder, from: Party, text: &str) {
    says(recorder, from, &format!("{text}\n"));
}

fn texts(recorded: &Recorded) -> Vec<String> {
    recorded
        .findings
        .iter()
        .map(|finding| format!("{} {finding}", finding.finding.place))
        .collect()
}

#[test]
fn a_clean_exchange_is_written_down_without_its_secret() {
    let clean = recorded(|recorder| {
        line(recorder, Party::Client, NEW);
        line(recorder, Party::Agent, SESSION);
    });
    assert_eq!(texts(&clean), [""; 0]);
    assert_eq!(clean.log.lines().count(), 2);
    assert!(!clean.log.contains("s3cret") && clean.log.contains("[redacted]"));
    assert!(clean.log.contains(SESSION), "as it was sent");
    let open = recorded_as(false, |recorder| line(recorder, Party::Client, NEW));
    assert!(open.log.contains(NEW));
}

#[test]
fn wrong_messages_and_noise_are_found_alike_live_and_afterwards() {
    let bad = SESSION.replace("\"s\"", "7");
    let found = recorded(|recorder| {
        line(recorder, Party::Client, NEW);
        line(recorder, Party::Agent, "");
        line(recorder, Party::Agent, &bad);
        line(recorder, Party::Agent, "Listening");
        line(recorder, Party::Client, r#"{"apiKey":"s3cret""#);
        recorder.bytes(Party::Agent, SystemTime::now(), b"{\"a\":\"\xff\"}\n");
        line(recorder, Party::Agent, "[]");
    });
    let texts = texts(&found);
    let expected = [
        "2 error[jsonrpc.schema] agent: session/new at /result/sessionId: ",
        "3 error[transports.only-messages] agent: the agent's output holds what is no message: not JSON: ",
        "4 error[client.only-messages] client: the client's output holds what is no message: not JSON: ",
        "5 error[transports.only-messages] agent: the agent's output holds what is no message: not UTF-8 from byte 6 on",
        "6 error[jsonrpc.envelope] agent: expected one message, got a batch",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for (text, start) in texts.iter().zip(expected) {
        assert!(text.starts_with(start), "{text}");
    }
    assert!(!found.log.contains("s3cret"), "{}", found.log);
}

#[test]
fn bytes_may_arrive_in_any_pieces_from_both_at_once() {
    let found = recorded(|recorder| {
        let (client, agent) = (format!("{NEW}\r\n"), format!("{SESSION}\n"));
        let middle = client.len() - 1;
        says(recorder, Party::Client, &client[..middle]);
        says(recorder, Party::Agent, &agent[..5]);
        says(recorder, Party::Client, &client[middle..]);
        says(recorder, Party::Agent, &agent[5..]);
    });
    assert_eq!(texts(&found), [""; 0]);
    assert_eq!(found.summary.messages(), 2);
}

#[test]
fn lines_in_a_gap_are_counted_once() {
    // Lines 1 to 7, the first begun before the gap, the last ended after it.
    let found = recorded(|recorder| {
        says(recorder, Party::Agent, "1");
        recorder.gap(Party::Agent, 3, true);
        recorder.gap(Party::Agent, 0, true);
        recorder.gap(Party::Agent, 2, true);
        says(recorder, Party::Agent, "6");
        says(recorder, Party::Agent, &format!("\n{SESSION}\n"));
        recorder.gap(Party::Agent, 1, false);
        line(recorder, Party::Agent, "{");
    });
    assert_eq!(found.summary.agent.lost, 7);
    assert_eq!(found.summary.agent.valid + found.summary.agent.open, 1);
    let texts = texts(&found);
    assert!(texts[0].starts_with("1 warning[lost] agent: 4 messages were not judged"));
    assert!(texts[1].starts_with("2 warning[lost] agent: 2 messages were"));
    assert!(texts[2].starts_with("4 warning[lost] agent: a message was"));
    assert!(
        texts[3].starts_with("5 error[transports.only-messages]"),
        "{texts:?}"
    );
}

#[test]
fn a_gap_in_one_direction_leaves_the_other_alone() {
    let found = recorded(|recorder| {
        says(recorder, Party::Client, &NEW[..9]);
        recorder.gap(Party::Agent, 1, true);
        line(recorder, Party::Client, &NEW[9..]);
        line(recorder, Party::Agent, "}");
        line(recorder, Party::Agent, SESSION);
    });
    assert_eq!(found.summary.agent.lost, 2);
    assert_eq!(
        (found.summary.client.valid, found.summary.agent.valid),
        (1, 1)
    );
}

#[test]
fn what_the_end_cuts_off_is_judged_if_it_is_whole_and_lost_otherwise() {
    let found = recorded(|recorder| {
        says(recorder, Party::Client, NEW);
        says(recorder, Party::Agent, &SESSION[..9]);
        recorder.end(Party::Client);
    });
    assert_eq!(found.summary.client.valid, 1);
    let texts = texts(&found);
    assert_eq!(texts.len(), 1);
    assert!(texts[0].ends_with("a message was not judged: the stream ended within it"));
}

#[test]
fn a_line_that_is_too_long_is_lost_and_the_next_is_judged() {
    let found = recorded(|recorder| {
        says(recorder, Party::Agent, &"x".repeat(RAW_LIMIT + 1));
        line(recorder, Party::Agent, "");
        for _ in 0..9 {
            says(recorder, Party::Agent, &"y".repeat(MESSAGE_LIMIT / 8));
        }
        line(recorder, Party::Agent, "");
        line(recorder, Party::Client, NEW);
    });
    assert_eq!(found.summary.agent.lost, 2);
    assert_eq!(found.summary.client.valid, 1);
    assert!(texts(&found)[1].contains("bytes is over the limit"));
}

#[test]
fn a_log_that_fails_is_given_up_once_and_judging_goes_on() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let schemas = Schemas::any().unwrap();
    let mut recorder = Recorder::new(schemas, Some(Box::new(Full)), true, Box::new(|_| {}));
    line(&mut recorder, Party::Client, NEW);
    let error = recorder.take_log_error().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    line(&mut recorder, Party::Agent, SESSION);
    assert!(recorder.take_log_error().is_none());
    assert_eq!(recorder.finish().messages(), 2);
}
