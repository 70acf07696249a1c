use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Pieces of messages, whole ones among them, so that random sequences get somewhere.
const PIECES: [&str; 44] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    "\r\n",
    "\r\n\r\n",
    " ",
    "\t",
    "\u{feff}",
    "\u{2028}",
    "é",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "12345678901234567890",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":",
    "\"method\":",
    "\"params\":",
    "\"result\":",
    "\"error\":",
    "\"session\\/prompt\"",
    "\"session/new\"",
    "\"$/cancel_request\"",
    "\"requestId\":",
    "\"_meta\":",
    "\"\\ud800\"",
    "\"\\u0061\"",
    "Content-Length: ",
    "Content-Type: x",
    "content-length:3\n\n[1]",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_x\",\"params\":[1]}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[]}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"\\u0031\"}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"s\"}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":1,\"message\":\"m\"}}\n",
    "Content-Length: 2\r\n\r\n{}",
];

fn soup() -> impl Strategy<Value = Vec<u8>> {
    vec(select(&PIECES[..]), 0..30).prop_map(|pieces| pieces.concat().into_bytes())
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(256),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Inputs that once broke a promise about frames.
const BROKE_FRAMES: [&[u8]; 6] = [
    b"\x00\x7c\xef",
    b"\x00\x09c",
    b"\x00\x00\xdd: 7\r\n\x00\x02\x0e\x00\xaf\xef\x0c\n\"\x0c  \x00\x0c\x00\nC",
    b"\x01\x00\x00\x00ntent-Length: 7\x00\x03Cont\r\nCont",
    b"\x00\x00\x00rror\":th: {\nC",
    b"\xff\x03Content-Length:16\n\r\n{}\n\r  \n         \x18C\n{}      -",
];

#[test]
fn what_once_broke_frames_does_no_longer() {
    for input in BROKE_FRAMES {
        super::frames(input);
    }
    let blanks = "\t".repeat(200);
    let lost = format!("lost\n{blanks}Content-Length:{blanks}1{blanks}\r\n\r\n{{}}");
    // Pieces of every size, in each framing.
    for seed in 0..=u8::MAX {
        super::frames(&[&[99, seed], lost.as_bytes()].concat());
    }
}

#[test]
fn an_array_without_an_end_is_no_message() {
    super::envelope(b"[");
    super::envelope(b" [{}");
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn frames_do_not_depend_on_how_bytes_arrive(
        limit in prop_oneof![any::<u8>(), Just(u8::MAX)],
        seed: u8,
        input in soup(),
    ) {
        super::frames(&[&[limit, seed], &input[..]].concat());
    }

    #[test]
    fn lines_are_sorted_as_json_rpc_has_it(line in soup()) {
        super::envelope(&line);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
        super::frames(&bytes);
        super::envelope(&bytes);
        super::dispatch(&bytes);
    }

    #[test]
    fn every_request_is_answered_once(input in soup()) {
        super::dispatch(&input);
    }
}
