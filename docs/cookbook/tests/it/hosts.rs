//! Recipes for operators of agents.

use acp_client::{Client, Error, Event};
use acp_cookbook::{delegate_a_task, host_any_agent, serve_over_http, two_clients};
use acp_reference_agent::Reference;
use acp_sdk::v1::{SessionUpdate, StopReason};
use acp_server::Server;
use acp_server_remote::Token;
use tokio_util::sync::CancellationToken;

use crate::support::{both_runtimes, connect, process, say, words};

both_runtimes! {
    async fn an_agent_behind_http_and_websocket() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = Token::random().unwrap();
        let stop = CancellationToken::new();
        let secret = token.secret().to_owned();
        let run = serve_over_http::run(Reference, listener, &token, stop.clone());
        let use_it = async {
            for scheme in ["http", "ws"] {
                let url = format!("{scheme}://{address}/acp");
                let client = serve_over_http::connect(Client::builder(), &url, &secret).await.unwrap();
                let session = client.new_session("/").await.unwrap();
                assert_eq!(say(&session, "hello").await.text, "hello");
                client.shutdown().await;
                let wrong = "another-token-of-some-length-000";
                let refused = serve_over_http::connect(Client::builder(), &url, wrong).await;
                let Err(Error::Remote(error)) = refused else {
                    panic!("{refused:?}");
                };
                assert_eq!(error.status(), Some(401));
            }
            stop.cancel();
        };
        tokio::join!(run, use_it);
    }

    async fn an_agent_of_somebody_else_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let command = words("from the hosted agent");
        let command = command.each_ref().map(String::as_str);
        let hosted = host_any_agent::host(&command, &folder.path().join("sessions.db")).await;
        let (server, agent) = hosted.unwrap();
        let client = connect(&server, Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "hi").await.text, "from the hosted agent");
        // The agent itself lists no sessions.
        assert_eq!(client.list_sessions(None).await.unwrap().len(), 1);
        drop((session, client));
        server.shutdown().await;
        agent.shutdown().await;
        let error = host_any_agent::host(&["no-such-agent"], &folder.path().join("x.db")).await;
        assert!(error.unwrap_err().to_string().contains("no-such-agent"));
    }

    async fn two_clients_share_a_session() {
        let server = Reference::server().build();
        let one = connect(&server, Client::builder()).await;
        let two = connect(&server, Client::builder()).await;
        let session = one.new_session("/").await.unwrap();
        let (shared, mut events) = two_clients::watch(&two, &session, "/").await.unwrap();
        let reasons = two_clients::talk(&session, &shared).await.unwrap();
        assert_eq!(reasons, [StopReason::EndTurn, StopReason::EndTurn]);
        let mut texts = String::new();
        while !texts.contains("editor") {
            if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) =
                two_clients::next_foreign(&mut events).await.unwrap()
            {
                texts += &format!("{:?}", chunk.content);
            }
        }
    }

    async fn another_agent_does_the_work_in_the_same_session() {
        let server = Server::new(delegate_a_task::Foreman(process("Done by a colleague.")));
        let client = connect(&server, Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        let outcome = say(&session, "review").await;
        assert!(outcome.text.contains("I ask a colleague."), "{}", outcome.text);
        assert!(outcome.text.contains("Done by a colleague."), "{}", outcome.text);
        assert_eq!(session.settings().title.as_deref(), Some("0 tool calls"));
    }
}
