//! The programs of the migration guide.

use std::io::Cursor;
use std::time::Duration;

use acp_client::{Client, Policy};
use acp_cookbook::*;
use acp_sdk::v1::{SessionUpdate, StopReason, ToolCallStatus};
use acp_server::Server;

use crate::support::{allowing, both_runtimes, connect, process, say};

both_runtimes! {
    async fn the_echo_agent_speaks_both_versions() {
        let server = Server::new(migration_echo_agent::Echo);
        for builder in [Client::builder(), Client::builder().offer_v2()] {
            let client = connect(&server, builder).await;
            let session = client.new_session("/").await.unwrap();
            assert_eq!(say(&session, "hello").await.text, "hello");
            assert_eq!(session.settings().title.as_deref(), Some("Echo agent session"));
            let id = session.id().clone();
            drop(session);
            client.resume_session(id, "/").await.unwrap();
        }
    }

    async fn an_agent_of_single_methods() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(acp_sdk::serve(migration_plain_agent::Plain, tokio::io::split(theirs)));
        let client = Client::builder().connect(tokio::io::split(ours)).await.unwrap();
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "hello").await.text, "Hello.");
    }

    async fn one_prompt_of_a_process() {
        let mut shown = 0;
        let show = |update: &SessionUpdate| {
            shown += usize::from(matches!(update, SessionUpdate::AgentMessageChunk(_)));
        };
        let reason = migration_one_shot_client::one_shot(process("4"), "2+2?", show).await;
        assert_eq!((reason.unwrap(), shown), (StopReason::EndTurn, 1));
    }

    async fn the_agent_of_typescript_reads_asks_and_stops() {
        let pause = Duration::from_millis(1);
        let server = Server::new(migration_typescript_agent::Example { pause });
        for (builder, status, text) in [
            (allowing(), ToolCallStatus::Completed, "The configuration is changed."),
            (Client::builder().permissions(Policy::DenyAll), ToolCallStatus::Failed, "I leave the configuration as it is."),
        ] {
            let client = connect(&server, builder).await;
            let session = client.new_session("/").await.unwrap();
            let outcome = say(&session, "help").await;
            assert!(outcome.text.ends_with(text), "{}", outcome.text);
            assert_eq!(outcome.tool_calls[1].status, Some(status));
        }
        let pause = Duration::from_secs(60);
        let server = Server::new(migration_typescript_agent::Example { pause });
        let client = connect(&server, allowing()).await;
        let session = client.new_session("/").await.unwrap();
        let turn = session.prompt("help").await.unwrap();
        session.cancel();
        assert_eq!(turn.outcome().await.unwrap().stop_reason, StopReason::Cancelled);
    }
}

#[test]
fn a_chat_of_lines() {
    let mut output = Vec::new();
    let input = Cursor::new("one\n\ntwo\n");
    migration_python_client::chat(process("yes"), input, &mut output).unwrap();
    assert_eq!(
        String::from_utf8(output).unwrap(),
        "| Agent: yes\n| Agent: yes\n"
    );
}
