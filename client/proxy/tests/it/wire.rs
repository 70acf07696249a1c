//! A client and an agent that send and receive texts.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use acp_proxy::{End, Proxy};
use acp_sdk::{ChannelTransport, MessageTransport as _, channel};
use serde_json::Value;
use tokio::task::JoinHandle;

/// Longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Peer(pub(crate) ChannelTransport);

impl Peer {
    pub(crate) async fn send(&mut self, text: &str) {
        poll_fn(|cx| Pin::new(&mut self.0).poll_ready(cx))
            .await
            .unwrap();
        let message = text.to_owned().into();
        Pin::new(&mut self.0).start_send(message).unwrap();
    }

    /// Receives the next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let receiving = poll_fn(|cx| Pin::new(&mut self.0).poll_receive(cx));
        let received = tokio::time::timeout(LIMIT, receiving).await;
        let message = received.expect("a message in time").unwrap()?;
        Some(String::from_utf8(message.to_vec()).unwrap())
    }

    pub(crate) async fn text(&mut self) -> String {
        self.next().await.expect("a message and no end")
    }

    pub(crate) async fn json(&mut self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    pub(crate) async fn close(&mut self) {
        poll_fn(|cx| Pin::new(&mut self.0).poll_close(cx))
            .await
            .unwrap();
    }
}

pub(crate) struct Wired {
    pub(crate) client: Peer,
    pub(crate) agent: Peer,
    pub(crate) proxy: JoinHandle<End>,
}

/// Starts a proxy between a client and an agent.
pub(crate) fn wired(proxy: Proxy) -> Wired {
    let (client, near) = channel(64 << 10);
    let (far, agent) = channel(64 << 10);
    Wired {
        client: Peer(client),
        agent: Peer(agent),
        proxy: tokio::spawn(proxy.run(near, far)),
    }
}

pub(crate) fn prompt(id: u32, session: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

pub(crate) fn update(session: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )
}

pub(crate) fn end_turn(id: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"end_turn"}}}}"#)
}

/// Makes each test of an asynchronous function run on one thread and on several.
macro_rules! both_runtimes {
    ($($(#[$meta:meta])* async fn $name:ident() $body:block)*) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            let mut one = tokio::runtime::Builder::new_current_thread();
            one.enable_all().build().unwrap().block_on(async $body);
            let mut several = tokio::runtime::Builder::new_multi_thread();
            several.worker_threads(3).enable_all().build().unwrap().block_on(async $body);
        }
    )*};
}
pub(crate) use both_runtimes;
