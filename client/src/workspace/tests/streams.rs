//! The output of a terminal as it is printed.

use super::*;

/// Reads a stream up to its end, and returns its bytes and the number of missed ones.
async fn all(stream: &mut OutputStream) -> (Vec<u8>, u64) {
    let (mut bytes, mut missed) = (Vec::new(), 0);
    while let Some(chunk) = timeout(GUARD, stream.next()).await.unwrap() {
        missed += chunk.missed;
        assert_eq!(chunk.position, missed + bytes.len() as u64);
        bytes.extend(chunk.bytes);
    }
    (bytes, missed)
}

#[tokio::test]
async fn output_is_shown_as_it_is_printed_and_from_a_position() {
    let case = Case::new();
    let text = "echo one; read line <go; echo two; exit 3";
    let made = std::process::Command::new("mkfifo")
        .arg(case.path("go"))
        .status();
    assert!(made.unwrap().success());
    let id = case.script(text).await;
    let mut stream = case.workspace.output_stream(&id, 0).unwrap();
    let first = timeout(GUARD, stream.next()).await.unwrap().unwrap();
    assert_eq!((first.position, &first.bytes[..]), (0, &b"one\n"[..]));
    assert_eq!(stream.exit(), None);
    let go = case.path("go");
    let go = tokio::task::spawn_blocking(move || std::fs::write(go, "\n"));
    go.await.unwrap().unwrap();
    let second = timeout(GUARD, stream.next()).await.unwrap().unwrap();
    assert_eq!((second.position, &second.bytes[..]), (4, &b"two\n"[..]));
    assert_eq!(timeout(GUARD, stream.next()).await.unwrap(), None);
    assert_eq!(stream.exit().unwrap().exit_code, Some(3));

    let mut late = case.workspace.output_stream(&id, 2).unwrap();
    let rest = timeout(GUARD, late.next()).await.unwrap().unwrap();
    assert_eq!(&rest.bytes[..], b"e\ntwo\n");
    case.release(&id).await;
    assert!(case.workspace.output_stream(&id, 0).is_none());
}

#[tokio::test]
async fn a_reader_that_is_slower_than_the_command_is_told_how_much_it_has_missed() {
    let case = Case::new();
    let request = script("head -c 3000000 /dev/zero").with_output_byte_limit(0);
    let id = case.create(request).await.unwrap();
    case.wait(&id).await;
    let mut stream = case.workspace.output_stream(&id, 0).unwrap();
    // The exit is known before the end of the pipe is.
    let (bytes, missed) = all(&mut stream).await;
    assert_eq!(bytes.len() as u64 + missed, 3_000_000);
    assert_eq!(bytes.len(), 64 << 10, "the limit is the agent's alone");
    assert_eq!(case.output(&id).await.output, "");
}

#[tokio::test]
async fn a_stream_ends_with_its_terminal() {
    let case = Case::new();
    let id = case.script("echo ready; exec sleep 1000").await;
    let mut stream = case.workspace.output_stream(&id, 0).unwrap();
    let first = timeout(GUARD, stream.next()).await.unwrap().unwrap();
    assert_eq!(&first.bytes[..], b"ready\n");
    let (rest, _) = tokio::join!(all(&mut stream), case.release(&id));
    assert_eq!(rest, (Vec::new(), 0));
}
