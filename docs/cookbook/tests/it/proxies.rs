//! Recipes for proxies.

use acp_client::{Client, Workspace};
use acp_cookbook::{answer_by_a_proxy, redact_secrets};
use acp_reference_agent::Reference;
use acp_sdk::v1::StopReason;

use crate::support::{allowing, attach, both_runtimes, say};

both_runtimes! {
    async fn secrets_do_not_reach_the_agent() {
        let server = Reference::server().build();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let agent = attach(&server);
        let proxy = redact_secrets::redacting().unwrap();
        tokio::spawn(proxy.run(tokio::io::split(theirs), tokio::io::split(agent)));
        let client = Client::builder().connect(tokio::io::split(ours)).await.unwrap();
        let session = client.new_session("/").await.unwrap();
        // The reference agent repeats what it has read.
        let outcome = say(&session, "use AKIAABCDEFGHIJKLMNOP for customer-17").await;
        assert_eq!(outcome.text, "use [redacted] for [redacted]");
    }

    async fn a_proxy_answers_some_requests_itself() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".env"), "secret").unwrap();
        std::fs::write(folder.path().join("a.txt"), "text").unwrap();
        let server = Reference::server().build();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let agent = attach(&server);
        tokio::spawn(answer_by_a_proxy::gate().run(tokio::io::split(theirs), tokio::io::split(agent)));
        let builder = allowing().workspace(Workspace::new());
        let client = builder.connect(tokio::io::split(ours)).await.unwrap();
        let session = client.new_session(folder.path()).await.unwrap();
        assert_eq!(say(&session, "deploy to production").await.stop_reason, StopReason::Refusal);
        let read = |name: &str| format!("read {}", folder.path().join(name).display());
        assert_eq!(say(&session, &read("a.txt")).await.text, "text");
        let turn = session.prompt(read(".env")).await.unwrap();
        let error = turn.outcome().await.unwrap_err();
        assert!(error.to_string().contains(".env"), "{error}");
    }
}
