//! The official client at a URL: a prompt, a permission, cancel, two sessions, load with replay. Says what it
//! has seen, and exits 1 if it is not what is expected.
//!
//! Usage: client URL      (with the environment variable TOKEN)

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, LoadSessionRequest, NewSessionRequest,
    PromptRequest, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification,
    SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::{Agent, Client, Error, Result};
use agent_client_protocol_http::HttpClient;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

#[derive(Clone, Default)]
struct Seen {
    texts: Arc<Mutex<Vec<String>>>,
    permissions: Arc<AtomicUsize>,
}

impl Seen {
    fn take(&self) -> String {
        std::mem::take(&mut *self.texts.lock().unwrap()).concat()
    }

    fn add(&self, update: SessionUpdate) {
        let chunk = match update {
            SessionUpdate::AgentMessageChunk(chunk) => chunk,
            SessionUpdate::UserMessageChunk(chunk) => chunk,
            _ => return,
        };
        if let ContentBlock::Text(text) = chunk.content {
            self.texts.lock().unwrap().push(text.text);
        }
    }
}

fn check(passed: bool, what: &str) -> Result<()> {
    if passed {
        println!("ok  {what}");
        return Ok(());
    }
    println!("not ok  {what}");
    Err(Error::internal_error().data(what))
}

async fn prompt(agent: &ConnectionTo<Agent>, session: &SessionId, text: &str) -> Result<PromptResponse> {
    let blocks = vec![ContentBlock::Text(TextContent::new(text))];
    agent.send_request(PromptRequest::new(session.clone(), blocks)).block_task().await
}

async fn steps(agent: ConnectionTo<Agent>, seen: Seen) -> Result<()> {
    let hello = InitializeRequest::new(ProtocolVersion::V1);
    let hello = agent.send_request(hello).block_task().await?;
    check(hello.agent_capabilities.load_session, "initialize")?;
    let first = agent.send_request(NewSessionRequest::new("/")).block_task().await?.session_id;
    let second = agent.send_request(NewSessionRequest::new("/")).block_task().await?.session_id;
    check(first != second, "two sessions")?;
    let answer = prompt(&agent, &first, "hello there").await?;
    check(answer.stop_reason == StopReason::EndTurn, "a prompt")?;
    check(seen.take().contains("hello there"), "its updates, before its answer")?;
    prompt(&agent, &second, "permission").await?;
    check(seen.permissions.load(Ordering::Relaxed) == 1, "a permission")?;
    check(seen.take().contains("allow"), "its outcome")?;
    let slow = tokio::spawn({
        let (agent, first) = (agent.clone(), first.clone());
        async move { prompt(&agent, &first, "slow").await }
    });
    while !seen.take().contains("tick") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    agent.send_notification(CancelNotification::new(first.clone()))?;
    let cancelled = slow.await.map_err(|_| Error::internal_error())??;
    check(cancelled.stop_reason == StopReason::Cancelled, "cancel")?;
    seen.take();
    agent.send_request(LoadSessionRequest::new(first.clone(), "/")).block_task().await?;
    let mut replayed = seen.take();
    // The answer comes on another stream than the replay: they have no order.
    for _ in 0..500 {
        if replayed.contains("tick") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        replayed += &seen.take();
    }
    check(replayed.contains("hello there") && replayed.contains("tick"), "load, with its replay")?;
    let streamed = prompt(&agent, &second, "stream 5000").await?;
    check(streamed.stop_reason == StopReason::EndTurn, "5,000 updates")?;
    check(seen.take().len() >= 5000 * 60, "all of them")?;
    Ok(())
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: client URL")?;
    let token = std::env::var("TOKEN")?;
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
    let transport = HttpClient::builder_with_endpoint(&url)
        .configure_http(|http| http.no_proxy().default_headers(headers))
        .build()?;
    let seen = Seen::default();
    let (updates, asked) = (seen.clone(), seen.clone());
    Client
        .v1()
        .on_receive_notification(
            async move |note: SessionNotification, _| {
                updates.add(note.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                asked.permissions.fetch_add(1, Ordering::Relaxed);
                let chosen = SelectedPermissionOutcome::new(request.options[0].option_id.clone());
                let outcome = RequestPermissionOutcome::Selected(chosen);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async |agent: ConnectionTo<Agent>| steps(agent, seen).await)
        .await?;
    Ok(())
}
