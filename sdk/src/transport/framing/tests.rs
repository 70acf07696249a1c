use super::super::buffer::CHUNK;
use super::*;

/// What came out, owned: a message, the length of one that was too long, or a reason.
#[derive(Debug, Clone, PartialEq)]
enum Out {
    Text(String),
    TooLong(u64),
    Bad(String),
}

fn text(text: &str) -> Out {
    Out::Text(text.to_owned())
}

impl From<Frame<'_>> for Out {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            Frame::TooLong(oversized) => Self::TooLong(oversized.bytes),
            Frame::Bad(reason) => Self::Bad(reason),
        }
    }
}

fn feed(frames: &mut FrameDecoder, bytes: &[u8]) -> Vec<Out> {
    let mut out = Vec::new();
    for chunk in bytes.chunks(CHUNK) {
        frames.room()[..chunk.len()].copy_from_slice(chunk);
        frames.filled(chunk.len());
        while let Some(frame) = frames.next() {
            out.push(frame.into());
        }
    }
    out
}

/// Everything that comes out when `input` arrives in pieces of `piece` bytes.
fn cut(mut frames: FrameDecoder, input: &[u8], piece: usize) -> (Vec<Out>, Framing) {
    let mut out = Vec::new();
    for chunk in input.chunks(piece) {
        out.extend(feed(&mut frames, chunk));
    }
    out.extend(rest(&mut frames));
    (out, frames.framing())
}

fn rest(frames: &mut FrameDecoder) -> Vec<Out> {
    let mut out = Vec::new();
    while let Some(frame) = frames.rest() {
        out.push(frame.into());
    }
    out
}

/// Checks that every way to cut `input` up yields `expected`, and detects the framing.
fn assert_frames(input: impl AsRef<[u8]>, max: usize, framing: Framing, expected: &[Out]) {
    assert_decoded(Framing::Auto, input.as_ref(), max, framing, expected);
}

/// The same where the framing is set.
fn assert_framed(input: impl AsRef<[u8]>, max: usize, expected: &[Out]) {
    let framing = Framing::ContentLength;
    assert_decoded(framing, input.as_ref(), max, framing, expected);
}

fn assert_decoded(set: Framing, input: &[u8], max: usize, detected: Framing, expected: &[Out]) {
    for piece in 1..=input.len() {
        let (out, found) = cut(FrameDecoder::new(set, max), input, piece);
        assert_eq!((&out[..], found), (expected, detected), "pieces of {piece}");
    }
    for at in 0..=input.len() {
        let mut frames = FrameDecoder::new(set, max);
        let mut out = feed(&mut frames, &input[..at]);
        out.extend(feed(&mut frames, &input[at..]));
        out.extend(rest(&mut frames));
        assert_eq!(out, expected, "cut at {at}");
    }
}

#[test]
fn lines_come_out_whole_however_they_were_cut() {
    let input = "\u{feff}{\"a\":1}\r\n\n  \n{\"b\":\"\u{2028}ü\"}\n last ";
    let expected = ["{\"a\":1}", "{\"b\":\"\u{2028}ü\"}", "last"].map(text);
    assert_frames(input, 1000, Framing::Lines, &expected);
}

#[test]
fn lines_above_the_limit_are_skipped_with_their_length() {
    let expected = [text("{2345"), Out::TooLong(6), text("1"), Out::TooLong(7)];
    assert_frames("{2345\n123456\n1\n1234567", 5, Framing::Lines, &expected);
}

#[test]
fn bodies_come_out_whole_however_they_were_cut() {
    let input = "\u{feff}Content-Length: 9\r\n\r\n{\"ü\":1}\n\
                 content-type: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-LENGTH:2\r\n\r\n{}\
                 \r\nContent-Length: 3\n\n\n[]Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n5";
    let expected = ["{\"ü\":1}", "{}", "[]", "5"].map(text);
    assert_frames(input, 1000, Framing::ContentLength, &expected);
}

#[test]
fn bodies_above_the_limit_are_skipped_and_reported_with_their_length() {
    let input = "Content-Length: 6\r\n\r\n{    }Content-Length: 2\r\n\r\n{}";
    let expected = [Out::TooLong(6), text("{}")];
    assert_framed(input, 5, &expected);
    let expected = [text("{    }"), text("{}")];
    assert_framed(input, 6, &expected);
    let endless = "Content-Length: 99999999999999999\r\n\r\n{";
    assert_framed(endless, 5, &[Out::TooLong(99_999_999_999_999_999)]);
}

#[test]
fn a_wrong_length_costs_what_it_covers_and_no_more() {
    // Too short: the rest of the body stands before the next header.
    let short = "Content-Length: 5\r\n\r\n{\"a\":1}Content-Length: 2\r\n\r\n{}";
    let lost = Out::Bad("not a header: 1}Content-Length: 2".to_owned());
    assert_framed(short, 99, &[text("{\"a\":"), lost, text("{}")]);
    // Too long: the next header is torn, and the message after it comes through.
    let long = "Content-Length: 14\r\n\r\n{\"a\":1}Content-Length: 3\r\n\r\n{ }\
                Content-Length: 2\r\n\r\n{}";
    let lost = Out::Bad("a header without Content-Length".to_owned());
    let torn = text("{\"a\":1}Content");
    assert_framed(long, 99, &[torn, lost, text("{}")]);
}

#[test]
fn bad_headers_say_why_and_the_next_message_is_read() {
    for (header, reason) in [
        (
            "Content-Length: x\r\n\r\n{1}",
            "a Content-Length that is no length: x",
        ),
        (
            "Content-Length: -1\r\n\r\n{1}",
            "a Content-Length that is no length: -1",
        ),
        (
            "Content-Length: +1\r\n\r\n{1}",
            "a Content-Length that is no length: +1",
        ),
        (
            "Content-Length:\r\n\r\n{1}",
            "a Content-Length that is no length: ",
        ),
        (
            "Content-Length: 18446744073709551616\r\n\r\n{1}",
            "a Content-Length that is no length: 18446744073709551616",
        ),
        (
            "Content-Length: 3\r\nContent-Length: 4\r\n\r\n{1}",
            "a header with two different lengths",
        ),
        (
            "Content-Type: x\r\n\r\n{1}",
            "a header without Content-Length",
        ),
        (
            "Content-Type: x\r\n{\"jsonrpc\":\"2.0\"}\n",
            "not a header: {\"jsonrpc\":\"2.0\"}",
        ),
        (
            "Content-Type: x\r\nprogress 5%\r\n",
            "not a header: progress 5%",
        ),
    ] {
        let input = format!("{header}Content-Length: 2\r\n\r\n{{}}");
        let expected = [Out::Bad(reason.to_owned()), text("{}")];
        assert_framed(input, 99, &expected);
    }
}

#[test]
fn an_input_that_ends_early_says_where() {
    for (input, reason) in [
        (
            "Content-Length: 9\r\n\r\n{}",
            "the input ended after 2 of a message's 9 bytes",
        ),
        ("Content-Length: 9\r\n", "the input ended within a header"),
        ("Content-Length: 9", "the input ended within a header"),
    ] {
        let expected = [Out::Bad(reason.to_owned())];
        assert_framed(input, 99, &expected);
    }
    assert_framed("Content-Length: 2\r\n\r\n{}\r\n", 99, &[text("{}")]);
}

#[test]
fn noise_before_the_first_message_decides_nothing() {
    let noise = "Connected to the cache\nc\n";
    let lines = format!("{noise}{{}}\nContent-Length: 2\n");
    let expected = ["Connected to the cache", "c", "{}", "Content-Length: 2"].map(text);
    assert_frames(lines, 99, Framing::Lines, &expected);
    let headers = format!("{noise}Content-Length: 2\r\n\r\n[]");
    let expected = ["Connected to the cache", "c", "[]"].map(text);
    assert_frames(headers, 99, Framing::ContentLength, &expected);
    assert_frames("\r\n \t[]\n", 99, Framing::Lines, &[text("[]")]);
    assert_frames("Cont", 99, Framing::Auto, &[text("Cont")]);
}

#[test]
fn a_header_counts_with_an_empty_line_and_a_body_that_is_json() {
    let message = "{\"a\":1}";
    for noise in [
        "content-type: text/html",
        "Content-Length: 2",
        "Content-Length: 2\r\n\r\n<html>",
        "Content-Length: 2\n\nno",
        "Content-Length: 99\r\n",
        "Content-Type: a\nContent-Length: 9\nServer: b",
        "Content-Length: 1\nContent-Length: 1",
        "Content-Length: 7\n\rContent-Type: a\n",
        "Content-Length: 5000000\n",
    ] {
        let mut expected: Vec<Out> = noise
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(text)
            .collect();
        expected.push(text(message));
        let input = format!("{noise}\n{message}\n");
        assert_frames(&input, 9999, Framing::Lines, &expected);
        // Nothing but the message is waited for: more may never come.
        let mut frames = FrameDecoder::new(Framing::Auto, 9999);
        assert_eq!(feed(&mut frames, input.as_bytes()), expected, "{noise}");
    }
    let typed = format!("Content-Type: x\r\nContent-Length: 7\r\n\r\n{message}");
    assert_frames(typed, 99, Framing::ContentLength, &[text(message)]);
}

#[test]
fn the_rest_of_a_line_that_is_skipped_decides_nothing() {
    let mut frames = FrameDecoder::new(Framing::Auto, 10);
    assert_eq!(feed(&mut frames, &[b'x'; 20]), []);
    let rest = feed(&mut frames, b"Content-Length: 2\n{}\n");
    assert_eq!(rest, [Out::TooLong(37), text("{}")]);
    assert_eq!(frames.framing(), Framing::Lines);
}

#[test]
fn what_was_set_is_not_detected() {
    let mut frames = FrameDecoder::new(Framing::Lines, 99);
    let out = feed(&mut frames, b"Content-Length: 2\r\n\r\n{}\n");
    assert_eq!(out, [text("Content-Length: 2"), text("{}")]);
    let mut frames = FrameDecoder::new(Framing::ContentLength, 99);
    let out = feed(&mut frames, b"{}\nContent-Length: 2\r\n\r\n[]");
    assert_eq!(out, [Out::Bad("not a header: {}".to_owned()), text("[]")]);
}

#[test]
fn what_is_skipped_is_not_kept() {
    let starts = [
        "x",
        " ",
        "{",
        "Content-Length: 999999999999\r\n\r\n",
        "Content-Type: ",
        "Content-Length: 1\r\n\r\n{not a header",
    ];
    for start in starts {
        let mut frames = FrameDecoder::new(Framing::Auto, 1024);
        feed(&mut frames, start.as_bytes());
        let mut reported = 0;
        for _ in 0..1000 {
            reported += feed(
                &mut frames,
                &[if start == " " { b' ' } else { b'x' }; CHUNK],
            )
            .len();
        }
        assert!(reported <= 1, "{start:?}: {reported} reports");
        let held = frames.buffer.held().len();
        assert!(held <= CHUNK, "{start:?}: {held} bytes are held");
        let room = frames.room().len();
        assert!(room <= 4 * CHUNK, "{start:?}: {room} bytes of room");
    }
}

#[test]
fn the_buffer_shrinks_after_a_long_message() {
    let body = vec![b'x'; 10 << 20];
    let length = format!("Content-Length: {}\r\n\r\n", body.len());
    let lines = [&body[..], b"\n"].concat();
    let headers = [length.as_bytes(), &body].concat();
    for (framing, input) in [(Framing::Lines, lines), (Framing::ContentLength, headers)] {
        let mut frames = FrameDecoder::new(framing, 32 << 20);
        let out = feed(&mut frames, &input);
        assert!(matches!(&out[..], [Out::Text(text)] if text.len() == 10 << 20));
        assert!(frames.room().len() <= 4 * CHUNK);
    }
}

#[test]
fn headers_state_the_length_in_bytes() {
    assert_eq!(
        with_headers("{\"ü\":1}\n[]\n".as_bytes()),
        "Content-Length: 8\r\n\r\n{\"ü\":1}Content-Length: 2\r\n\r\n[]".as_bytes()
    );
    let lines = b"{\"a\":1}\n[2]\n";
    let decoder = FrameDecoder::new(Framing::Auto, 99);
    let (out, framing) = cut(decoder, &with_headers(lines), 3);
    assert_eq!(out, ["{\"a\":1}", "[2]"].map(text));
    assert_eq!(framing, Framing::ContentLength);
}

#[test]
fn a_huge_header_is_refused_and_the_next_message_is_read() {
    let expected = [
        Out::Bad("a header of more than 8192 bytes".to_owned()),
        text("{}"),
    ];
    let one_line = format!("Content-Type: {}\r\n", "x".repeat(9000));
    let many_lines = "X-Nothing: 1\r\n".repeat(700);
    for header in [one_line, many_lines] {
        let input = format!("Content-Length: 9\r\n{header}\r\nContent-Length: 2\r\n\r\n{{}}");
        for piece in [1, 7, 1000, input.len()] {
            let decoder = FrameDecoder::new(Framing::ContentLength, 99);
            let (out, _) = cut(decoder, input.as_bytes(), piece);
            assert_eq!(out, expected);
        }
    }
}

#[test]
fn the_limit_holds_for_what_was_too_short_to_tell() {
    // Found by fuzzing: the beginning of a mark or a header, and then nothing.
    assert_frames([0xef], 0, Framing::Auto, &[Out::TooLong(1)]);
    assert_frames("Conten", 5, Framing::Auto, &[Out::TooLong(6)]);
}

#[test]
fn a_header_after_a_loss_is_found_however_the_blanks_in_it_were_cut() {
    // Found by fuzzing: so many blanks that, in pieces, the name was no longer kept.
    let lost = Out::Bad("a Content-Length that is no length: x".to_owned());
    let input = |blanks: usize| {
        let blanks = "\t".repeat(blanks);
        format!("Content-Length: x\r\nContent-Length:{blanks}2\r\n\r\n[]")
    };
    let found = [lost.clone(), text("[]")];
    assert_framed(input(100), 99, &found);
    assert_framed(input(200), 99, &[lost]);
}
