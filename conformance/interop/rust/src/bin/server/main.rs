//! An agent that understands words of `acp-server`; see `words.rs`. With `--stdio` on standard input and output;
//! else behind the official server, whose URL is printed on standard output, as those of the other languages do.

mod session;
mod words;

use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ClientCapabilities, CloseSessionRequest,
    CloseSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
    NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities, SessionListCapabilities,
    SessionNotification, SessionResumeCapabilities, StopReason,
};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Stdio, on_receive_notification, on_receive_request,
};
use agent_client_protocol_http::AcpHttpServer;

use session::{absolute, create, find, list};

/// The agent of one connection. Sessions belong to all connections.
fn agent() -> impl ConnectTo<Client> {
    let able = Arc::new(Mutex::new(ClientCapabilities::default()));
    let declared = able.clone();
    Agent
        .v1()
        .on_receive_request(
            async move |request: InitializeRequest, responder, _| {
                *declared.lock().unwrap() = request.client_capabilities;
                responder.respond(
                    InitializeResponse::new(ProtocolVersion::V1)
                        .agent_capabilities(capabilities())
                        .agent_info(Implementation::new("rust-agent", "1.0.0")),
                )
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: NewSessionRequest, responder, _| {
                let created = absolute(&request.cwd).map(|()| create(request.cwd));
                responder.respond_with_result(created.map(NewSessionResponse::new))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: LoadSessionRequest, responder, cx: ConnectionTo<Client>| {
                let found = absolute(&request.cwd).and_then(|()| find(&request.session_id));
                responder.respond_with_result(found.and_then(|session| {
                    for update in session.history.lock().unwrap().iter() {
                        let id = request.session_id.clone();
                        cx.send_notification(SessionNotification::new(id, update.clone()))?;
                    }
                    Ok(LoadSessionResponse::new())
                }))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: ResumeSessionRequest, responder, _| {
                let found = absolute(&request.cwd).and_then(|()| find(&request.session_id));
                responder.respond_with_result(found.map(|_| ResumeSessionResponse::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: CloseSessionRequest, responder, _| {
                let found = find(&request.session_id).map(|session| session.cancel());
                responder.respond_with_result(found.map(|()| CloseSessionResponse::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: ListSessionsRequest, responder, _| {
                responder.respond_with_result(list(&request))
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async |cancel: CancelNotification, _| {
                if let Ok(session) = find(&cancel.session_id) {
                    session.cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, cx: ConnectionTo<Client>| {
                let session = match find(&request.session_id) {
                    Ok(session) => session,
                    Err(error) => return responder.respond_with_error(error),
                };
                // From here on a cancel is for this prompt, too.
                let mut cancels = session.cancels.subscribe();
                let able = able.lock().unwrap().clone();
                // A handler holds up its connection, so a turn is a task.
                cx.spawn({
                    let cx = cx.clone();
                    async move {
                        let withdrawn = responder.cancellation();
                        let turn = async {
                            let _first = session.turn.lock().await;
                            words::follow(&cx, &able, &session, request).await
                        };
                        let done = tokio::select! {
                            biased;
                            _ = cancels.changed() => Ok(StopReason::Cancelled),
                            () = withdrawn.cancelled() => Ok(StopReason::Cancelled),
                            done = turn => done.map(|()| StopReason::EndTurn),
                        };
                        responder.respond_with_result(done.map(PromptResponse::new))
                    }
                })
            },
            on_receive_request!(),
        )
}

fn capabilities() -> AgentCapabilities {
    if std::env::var("INTEROP").is_ok_and(|kind| kind == "bare") {
        return AgentCapabilities::new();
    }
    AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(
            PromptCapabilities::new()
                .image(true)
                .audio(true)
                .embedded_context(true),
        )
        .session_capabilities(
            SessionCapabilities::new()
                .list(SessionListCapabilities::new())
                .resume(SessionResumeCapabilities::new())
                .close(SessionCloseCapabilities::new()),
        )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().any(|word| word == "--stdio") {
        return Ok(agent().connect_to(Stdio::new()).await?);
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/acp", listener.local_addr()?);
    Ok(axum::serve(listener, AcpHttpServer::new(agent).into_router()).await?)
}
