//! Recorded traffic through three proxies. `ACP_RECORDINGS` names a folder with more of it: files with a line
//! `{"dir": "c2a" or "a2c", "msg": MESSAGE}` for each message.

use std::path::Path;

use acp_proxy::Proxy;
use acp_sdk::channel;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{Peer, both_runtimes};

/// A session of a client with an agent, a message a line.
const SESSION: &str = include_str!("../../../../sdk/tests/conversation/recording.jsonl");

#[derive(Deserialize)]
struct Line<'a> {
    dir: &'a str,
    #[serde(borrow)]
    msg: &'a RawValue,
}

/// Returns the messages, each with whether the client wrote it.
fn messages(text: &str) -> Vec<(bool, String)> {
    let read = |line: &str| match serde_json::from_str::<Line>(line) {
        Ok(line) => (line.dir == "c2a", line.msg.get().to_owned()),
        Err(_) => (line.contains(r#""session/prompt""#), line.to_owned()),
    };
    text.lines().map(read).collect()
}

fn recordings() -> Vec<String> {
    fn add(folder: &Path, texts: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => add(&path, texts),
                false => texts.push(std::fs::read_to_string(path).unwrap()),
            }
        }
    }
    let mut texts = vec![SESSION.to_owned()];
    if let Some(folder) = std::env::var_os("ACP_RECORDINGS") {
        let before = texts.len();
        add(Path::new(&folder), &mut texts);
        assert!(texts.len() > before, "no recordings in {folder:?}");
    }
    texts
}

both_runtimes! {
    async fn recordings_pass_three_proxies_byte_for_byte() {
        for recording in recordings() {
            let (client, mut near) = channel(64 << 10);
            for name in ["first", "second", "third"] {
                let (far, next) = channel(64 << 10);
                tokio::spawn(Proxy::new(name).run(near, far));
                near = next;
            }
            let (mut client, mut agent) = (Peer(client), Peer(near));
            for (by_client, text) in messages(&recording) {
                let (from, to) = match by_client {
                    true => (&mut client, &mut agent),
                    false => (&mut agent, &mut client),
                };
                from.send(&text).await;
                assert_eq!(to.text().await, text);
            }
        }
    }
}
