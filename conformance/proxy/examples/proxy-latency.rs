//! What the proxy adds to a message's way, and to a stream's CPU.
//!
//! `cargo run --release -p acp-conformance-proxy --example proxy-latency -- COMMAND`, with
//! the path of `acp-conformance` as the command, prints a Markdown table: round
//! trips of a prompt and its answer, one at a time, with an agent that does nothing
//! else, directly and through the proxy with a transcript; and a stream of updates
//! written 64 KiB at a time. Batches of both ways alternate, so that other work on
//! the machine disturbs both. Linux only: it reads CPU times from `/proc`.
#![allow(clippy::print_stdout, reason = "the table is the result")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails is none")]

use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Round trips in a batch, and batches.
const TRIPS: usize = 2000;
const BATCHES: usize = 10;

/// Updates of a stream.
const STREAM: usize = 200_000;

const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_000000000001","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"the quick brown fox jumps over the lazy dog, and so on it goes"}}}}"#;

fn main() {
    let argument = std::env::args().nth(1).unwrap();
    if argument == "agent" {
        return agent();
    }
    let folder = std::env::temp_dir().join(format!("proxy-latency-{}", std::process::id()));
    let log = folder.display().to_string();
    let own = std::env::current_exe().unwrap().display().to_string();
    let through = [&argument, "proxy", "--log", &log, "--", &own, "agent"];
    let mut peers = [Peer::start(&[&own, "agent"]), Peer::start(&through)];
    let mut trips = [Vec::new(), Vec::new()];
    for batch in 0..=BATCHES {
        for (peer, trips) in peers.iter_mut().zip(&mut trips) {
            let batch_trips = peer.trips();
            // The first one warms up.
            if batch > 0 {
                trips.extend(batch_trips);
            }
        }
    }
    let [direct, proxied] = trips.map(|mut trips| {
        trips.sort_unstable();
        [50, 99].map(|percent| trips[trips.len() * percent / 100].as_secs_f64() * 1e6)
    });
    println!("| | directly | through the proxy | added a message |\n|---|---|---|---|");
    for (name, direct, proxied) in [
        ("p50", direct[0], proxied[0]),
        ("p99", direct[1], proxied[1]),
    ] {
        let added = (proxied - direct) / 2.0;
        println!("| round trip {name}, µs | {direct:.1} | {proxied:.1} | {added:.1} |");
    }
    let [direct, proxied] = peers.each_mut().map(Peer::stream);
    println!(
        "| stream, messages a second | {:.0} | {:.0} | |",
        STREAM as f64 / direct.as_secs_f64(),
        STREAM as f64 / proxied.as_secs_f64()
    );
    let [_, mut proxy] = peers;
    drop(proxy.input);
    let cpu = cpu(proxy.child.id());
    assert!(proxy.child.wait().unwrap().success());
    let trips = TRIPS * (BATCHES + 1);
    println!(
        "\nCPU of the proxy and its judge: {:.1} µs a message, over {} messages.",
        cpu.as_secs_f64() * 1e6 / (2 * trips + STREAM) as f64,
        2 * trips + STREAM
    );
    let lost = std::fs::read_to_string(&folder).unwrap();
    let lost: Vec<&str> = lost
        .lines()
        .filter(|line| line.contains("\"lost\""))
        .collect();
    println!(
        "Not judged: {}",
        if lost.is_empty() {
            "none".to_owned()
        } else {
            lost.join("\n")
        }
    );
    std::fs::remove_file(&folder).unwrap();
}

struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(command: &[&str]) -> Self {
        let mut child = Command::new(command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::with_capacity(64 << 10, child.stdout.take().unwrap()),
            child,
        }
    }

    fn prompt(&mut self, id: usize, text: &str) {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"s\",\"prompt\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        );
        self.input.write_all(line.as_bytes()).unwrap();
    }

    fn trips(&mut self) -> Vec<Duration> {
        let mut line = String::new();
        let trip = |id| {
            let started = Instant::now();
            self.prompt(id, "ping");
            line.clear();
            self.output.read_line(&mut line).unwrap();
            started.elapsed()
        };
        (0..TRIPS).map(trip).collect()
    }

    fn stream(&mut self) -> Duration {
        let started = Instant::now();
        self.prompt(TRIPS, "stream");
        let mut chunk = vec![0; 64 << 10];
        let mut end = Vec::new();
        // The answer comes last; a read may end anywhere in it.
        while !end.ends_with(b"\"end_turn\"}}\n") {
            let length = self.output.read(&mut chunk).unwrap();
            assert_ne!(length, 0, "the agent has ended");
            end.extend_from_slice(&chunk[..length]);
            end.drain(..end.len().saturating_sub(64));
        }
        started.elapsed()
    }
}

/// CPU time of a process, all its threads, to the clock tick. To be asked while it
/// runs; the judge may have a little left to do.
fn cpu(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields = fields.split(' ').skip(11).take(2);
    let ticks: u64 = fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// An agent that answers prompts, and streams when the prompt asks for it.
fn agent() {
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line).unwrap() > 0 {
        let (_, rest) = line.split_once("\"id\":").unwrap();
        let (id, _) = rest.split_once(',').unwrap();
        if line.contains("stream") {
            let block = format!("{UPDATE}\n").repeat(STREAM);
            for chunk in block.as_bytes().chunks(64 << 10) {
                output.write_all(chunk).unwrap();
                output.flush().unwrap();
            }
        }
        let answer = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"stopReason\":\"end_turn\"}}}}\n"
        );
        output.write_all(answer.as_bytes()).unwrap();
        output.flush().unwrap();
        line.clear();
    }
}
