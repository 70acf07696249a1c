//! The agent's side of a connection of protocol version 2, in terms of that of version 1: the same
//! sessions, with other messages.
//!
//! Methods of our own have the same form in both versions; the open questions in the result of
//! `_acp-sdk/session/state` are in the form in which the client is asked them.

use std::sync::atomic::Ordering;

use acp_sdk::convert::convert_logged;
use acp_sdk::extensions::methods::SteerSession;
use acp_sdk::runtime::Method as _;
use acp_sdk::v1::{self, Agent as _};
use acp_sdk::v2::*;
use acp_sdk::{AgentSide, HandlerError, HandlerResult, Json, MultiVersion, Peer, V1, V2};

use super::wire::{self, Encoded, SendPhase};
use super::{Client, ServerConnection, Subscription};
use crate::Session;
use crate::event::{Event, EventBody, EventKind};
use crate::session::{Ask, Inserted, Reply, Ticket, TurnResult};
use crate::v2::requests::{self, Resume};
use crate::v2::updates::OfChild;
use crate::v2::{from_v2, to_v2, updates};

/// The agent of version 2 of a connection.
#[derive(Debug)]
struct ConnectionV2(ServerConnection);

impl ServerConnection {
    /// Returns the agent for clients of every version that the server
    /// [offers](crate::ServerBuilder::offer_v2).
    pub fn every_version(self) -> MultiVersion<AgentSide> {
        let v2 = self.core().offers_v2.then(|| ConnectionV2(self.share()));
        let agent = MultiVersion::agent().version::<V1>(self);
        match v2 {
            Some(v2) => agent.version::<V2>(v2),
            None => agent,
        }
    }
}

impl ConnectionV2 {
    /// Returns the slash commands of a session that the client is attached to.
    fn commands(&self, session: &str) -> Vec<v1::AvailableCommand> {
        let subscription = self.0.client.subscription(&session.into());
        subscription.map_or_else(Vec::new, |subscription| {
            let state = subscription.session().state();
            state.settings.available_commands().to_vec()
        })
    }

    /// Sends what a replay ends with: its marker, and the state of the session. Nothing else of the
    /// session is sent between the replay and the response: a barrier holds it.
    async fn end_replay(&self, session: &str, is_replay: bool) -> HandlerResult<()> {
        let Some(subscription) = self.0.client.subscription(&session.into()) else {
            return Ok(());
        };
        let session = subscription.session();
        let marker = is_replay.then(|| ReplayComplete::new().into());
        // A replay has announced them.
        let children = subscription.children().clone();
        let (runs, asking) = {
            let state = session.state();
            let turn = state.queue.running().and_then(|running| running.turn);
            let questions = state.questions.values();
            let asking: Vec<_> = questions.map(|question| question.child.clone()).collect();
            (turn.is_some(), asking)
        };
        let asks = asking.contains(&None);
        let peer = self.0.client.peer().ok_or_else(closed)?;
        for child in children.iter().filter(|_| is_replay) {
            peer.room().await?;
            let asks = asking.iter().any(|asking| asking.as_ref() == Some(child));
            send_all(peer, session, &updates::open_child(child, asks), None)?;
        }
        for update in marker.into_iter().chain([updates::state(runs, asks)]) {
            if let Ok(text) = serde_json::to_string::<SessionUpdate>(&update) {
                peer.room().await?;
                wire::send_update(peer, session, &text, None)?;
            }
        }
        Ok(())
    }

    /// Waits until the prompt is in the conversation. Its result comes with it if it was taken from the
    /// ticket meanwhile.
    async fn inserted(
        &self,
        ctx: &AgentContext,
        ticket: &mut Ticket,
    ) -> HandlerResult<(Inserted, Option<TurnResult>)> {
        let progress = ticket.progress.clone();
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                inserted = progress.inserted.wait() => return Ok((inserted.clone(), None)),
                result = ticket.result() => {
                    // A short turn may have begun and ended since the branch above was polled.
                    if let Some(inserted) = progress.inserted.get() {
                        return Ok((inserted.clone(), Some(result)));
                    }
                    // Cancelled before it was in the conversation, or the store has failed.
                    return Err(result.stop.err().unwrap_or_else(HandlerError::cancelled));
                }
                () = ctx.request_cancelled(), if !is_cancelled => {
                    // When the connection is lost, the policy of the session decides on the prompt.
                    if ctx.peer().is_closing() {
                        return Err(HandlerError::cancelled());
                    }
                    // Its turn may be beginning: what comes next says whether it has.
                    ticket.cancel();
                    is_cancelled = true;
                }
            }
        }
    }
}

impl Agent for ConnectionV2 {
    async fn initialize(
        &self,
        ctx: &AgentContext,
        req: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        self.0.client.is_v2.store(true, Ordering::Release);
        let request = requests::initialize(req)?;
        let response = self.0.initialize(&same(ctx), request).await?;
        requests::initialized(response, self.0.core().info.mcp_stdio)
    }

    async fn login_auth(
        &self,
        ctx: &AgentContext,
        req: LoginAuthRequest,
    ) -> HandlerResult<LoginAuthResponse> {
        self.0.authenticate(&same(ctx), from_v2(req)?).await?;
        Ok(LoginAuthResponse::new())
    }

    async fn logout_auth(
        &self,
        ctx: &AgentContext,
        _: LogoutAuthRequest,
    ) -> HandlerResult<LogoutAuthResponse> {
        self.0.logout(&same(ctx), v1::LogoutRequest::new()).await?;
        Ok(LogoutAuthResponse::new())
    }

    async fn new_session(
        &self,
        ctx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        self.0.client.admit("session/new", None)?;
        requests::check_mcp_servers(&req.mcp_servers, &self.0.core().info)?;
        let response = self.0.new_session(&same(ctx), from_v2(req)?).await?;
        let commands = self.commands(response.session_id.as_str());
        requests::new_session(response, commands)
    }

    async fn list_sessions(
        &self,
        ctx: &AgentContext,
        req: ListSessionsRequest,
    ) -> HandlerResult<ListSessionsResponse> {
        let response = self.0.list_sessions(&same(ctx), from_v2(req)?).await?;
        to_v2(response)
    }

    async fn delete_session(
        &self,
        ctx: &AgentContext,
        req: DeleteSessionRequest,
    ) -> HandlerResult<DeleteSessionResponse> {
        self.0.delete_session(&same(ctx), from_v2(req)?).await?;
        Ok(DeleteSessionResponse::new())
    }

    async fn resume_session(
        &self,
        ctx: &AgentContext,
        req: ResumeSessionRequest,
    ) -> HandlerResult<ResumeSessionResponse> {
        let id = &req.session_id.clone();
        self.0.client.admit("session/resume", Some(id.as_str()))?;
        requests::check_mcp_servers(&req.mcp_servers, &self.0.core().info)?;
        let is_replay = req.replay_from.is_some();
        let mut response: ResumeSessionResponse = match requests::resume_session(req)? {
            Resume::Load(request) => {
                let response = self.0.load_session(&same(ctx), request).await;
                to_v2(response.map_err(|error| of_session(id, error))?)?
            }
            Resume::Resume(request) => {
                let response = v1::Agent::resume_session(&self.0, &same(ctx), request).await;
                to_v2(response.map_err(|error| of_session(id, error))?)?
            }
        };
        response.available_commands = to_v2(self.commands(id.as_str()))?;
        self.end_replay(id.as_str(), is_replay).await?;
        Ok(response)
    }

    /// Closing a session that does not exist succeeds.
    async fn close_session(
        &self,
        ctx: &AgentContext,
        req: CloseSessionRequest,
    ) -> HandlerResult<CloseSessionResponse> {
        match v1::Agent::close_session(&self.0, &same(ctx), from_v2(req)?).await {
            Err(error) if error.as_response().code != ErrorCode::RESOURCE_NOT_FOUND => Err(error),
            _ => Ok(CloseSessionResponse::new()),
        }
    }

    async fn set_session_config_option(
        &self,
        ctx: &AgentContext,
        req: SetSessionConfigOptionRequest,
    ) -> HandlerResult<SetSessionConfigOptionResponse> {
        let id = &req.session_id.clone();
        let req = requests::set_config_option(req)?;
        let set = v1::Agent::set_session_config_option(&self.0, &same(ctx), req).await;
        to_v2(set.map_err(|error| of_session(id, error))?)
    }

    /// Answers when the message is in the conversation. Its turn goes on.
    async fn prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        self.0
            .client
            .admit("session/prompt", Some(req.session_id.as_str()))?;
        let id = &req.session_id.clone();
        // In a task, for the prompt is answered when its turn begins.
        let submitted = self.0.submit(requests::prompt(req)?, Session::submit).await;
        let (session, subscription, mut ticket) =
            submitted.map_err(|error| of_session(id, error))?;
        let epoch = session.log().epoch();
        let (inserted, ended) = self.inserted(ctx, &mut ticket).await?;
        let ended = async {
            match ended {
                Some(result) => result,
                None => ticket.result().await,
            }
        };
        tokio::select! {
            biased;
            _ = subscription.sent_through(inserted.last_event) => {}
            result = ended => match result.stop {
                // It could not be committed, so it is not in the conversation.
                Err(error) if result.last_event == 0 => return Err(error),
                _ => {
                    drop(result.barrier);
                    let _ = subscription.sent_through(inserted.last_event).await;
                }
            },
        }
        let log = session.log();
        if !log.has_committed(inserted.last_event) {
            // The client was detached before it was sent the message.
            let flushed = log.flush(epoch).await;
            flushed.map_err(|error| super::store_failed(session.id(), &error))?;
        }
        if ticket.progress.is_lost() {
            let checked = log.check(epoch);
            checked.map_err(|error| super::store_failed(session.id(), &error))?;
            return Err(HandlerError::internal("the prompt could not be committed"));
        }
        Ok(PromptResponse::new(inserted.message.as_str()))
    }

    async fn cancel_session(
        &self,
        ctx: &AgentContext,
        note: CancelSessionNotification,
    ) -> HandlerResult<()> {
        self.0.cancel(&same(ctx), from_v2(note)?).await
    }

    #[cfg(feature = "unstable")]
    async fn message_mcp_notification(
        &self,
        ctx: &AgentContext,
        note: MessageMcpNotification,
    ) -> HandlerResult<()> {
        v1::Agent::message_mcp_notification(&self.0, &same(ctx), from_v2(note)?).await
    }

    async fn ext_request(
        &self,
        ctx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        let params = match method {
            SteerSession::NAME => params.map(requests::steer).transpose()?,
            "session/fork" => {
                let servers = requests::forked_mcp_servers(params.as_ref())?;
                requests::check_mcp_servers(&servers, &self.0.core().info)?;
                params
            }
            _ => params,
        };
        let answer = v1::Agent::ext_request(&self.0, &same(ctx), method, params).await?;
        if method != "session/fork" {
            return Ok(answer);
        }
        let response: v1::NewSessionResponse = answer.parse().map_err(HandlerError::internal)?;
        let commands = self.commands(response.session_id.as_str());
        let response = requests::new_session(response, commands)?;
        Json::new(&response).map_err(HandlerError::internal)
    }

    async fn ext_notification(
        &self,
        ctx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<()> {
        v1::Agent::ext_notification(&self.0, &same(ctx), method, params).await
    }
}

/// Returns the same request as version 1 has it.
fn same(ctx: &AgentContext) -> v1::AgentContext {
    v1::AgentContext::new((**ctx).clone())
}

/// Adds to the error of a session that is missing or closed what version 2 defines.
fn of_session(id: &SessionId, error: HandlerError) -> HandlerError {
    let response = error.as_response();
    if response.code != ErrorCode::RESOURCE_NOT_FOUND || response.data.is_some() {
        return error;
    }
    match Json::new(&SessionNotFoundErrorData::new(id)) {
        Ok(data) => HandlerError::response(response.clone().with_data(data)),
        Err(_) => error,
    }
}

/// Sends an event; returns the number of updates sent.
///
/// # Errors
///
/// When the connection has ended.
pub(super) fn send_event(
    client: &Client,
    peer: &Peer,
    subscription: &Subscription,
    event: Encoded<'_>,
) -> acp_sdk::Result<u64> {
    let session = subscription.session();
    let is_turn = event.kind == EventKind::Turn;
    if is_turn && event.phase == SendPhase::Live && client.wants_state() {
        super::requests::send_state(client, peer, session, event.place.number)?;
    }
    // A response to `session/resume` contains the options and follows the state; notices are no
    // part of the conversation.
    let in_history = match event.kind {
        EventKind::Turn | EventKind::Notice | EventKind::ConfigOptions => false,
        EventKind::Child
        | EventKind::UserMessage
        | EventKind::AgentMessage
        | EventKind::ToolCall
        | EventKind::Usage
        | EventKind::Compaction
        | EventKind::Mode
        | EventKind::Update => true,
    };
    if !in_history && event.phase == SendPhase::Loaded {
        return Ok(0);
    }
    let parsed = Event::parse(event.place.number, event.text);
    if let EventBody::Turn(turn) = &parsed.body
        && let Some(child) = turn.facts().child
    {
        let mut of_child = updates::of_child(turn, event.phase == SendPhase::Loaded);
        if !subscription.sends_child(child, turn) {
            let state = session.state();
            let title = state.child_titles.iter().find(|(id, _)| id == child);
            let title = title.map(|(_, title)| title.as_str());
            of_child.splice(..0, updates::announced(child, title, None));
        }
        return send_all(peer, session, &of_child, Some(event.place));
    }
    let update = updates::update(parsed);
    let text = update.and_then(|update| serde_json::to_string(&update).ok());
    let Some(text) = text else { return Ok(0) };
    wire::send_update(peer, session, &text, Some(event.place))?;
    Ok(1)
}

/// Sends updates of an event about a child session. Only the first has the number of the event.
fn send_all(
    peer: &Peer,
    session: &Session,
    of_child: &[OfChild],
    mut place: Option<wire::Place<'_>>,
) -> acp_sdk::Result<u64> {
    let mut sent = 0;
    for OfChild { child, update } in of_child {
        let child = child.as_ref().map(serde_json::to_string).transpose();
        // Types of the protocol always have a JSON form.
        if let (Ok(text), Ok(child)) = (serde_json::to_string(update), child) {
            wire::write_update(peer, session, &text, place.take(), child.as_deref())?;
            sent += 1;
        }
    }
    Ok(sent)
}

/// Announces that the events up to a number are no longer kept.
///
/// # Errors
///
/// When the connection has ended.
pub(super) fn send_gap(
    peer: &Peer,
    session: &Session,
    last: u64,
    words: String,
) -> acp_sdk::Result<()> {
    let update = SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, words));
    match serde_json::to_string(&update) {
        Ok(text) => {
            let place = wire::Place {
                number: last,
                prompt: None,
            };
            wire::send_update(peer, session, &text, Some(place))
        }
        Err(_) => Ok(()),
    }
}

fn closed() -> acp_sdk::Error {
    acp_sdk::Error::Closed(acp_sdk::CloseReason::Dropped)
}

/// Asks the client. Dropping the future cancels the request.
///
/// # Errors
///
/// When the client refuses, or the connection ends; and -32602 when version 2 cannot express the
/// question, so that the turn does not wait for an answer that nobody can give.
pub(super) async fn ask(
    client: &Client,
    ask: &Ask,
    child: Option<&v1::SessionId>,
) -> acp_sdk::Result<Reply> {
    let peer = client.peer().ok_or_else(closed)?;
    let handle = ClientHandle::new(peer.clone());
    Ok(match ask {
        Ask::Permission(request) => {
            let request = permission(request, child);
            let request = request.ok_or_else(|| inexpressible("session/request_permission"))?;
            let answer = handle.request_permission(request).await?;
            // An outcome that version 1 cannot express is no approval.
            Reply::Permission(
                convert_logged(answer.outcome).unwrap_or(v1::RequestPermissionOutcome::Cancelled),
            )
        }
        Ask::Elicitation(request) => {
            let request = convert_logged(request.clone());
            let request = request.ok_or_else(|| inexpressible("elicitation/create"))?;
            let answer = handle.create_elicitation(request).await?;
            let action = convert_logged(answer.action);
            Reply::Elicitation(action.unwrap_or(v1::ElicitationAction::Cancel))
        }
    })
}

/// Converts a permission request, which a child session may have made.
fn permission(
    request: &v1::RequestPermissionRequest,
    child: Option<&v1::SessionId>,
) -> Option<RequestPermissionRequest> {
    let mut next: RequestPermissionRequest = convert_logged(request.clone())?;
    if let Some(child) = child {
        next.session_id = child.as_str().into();
        let parent = serde_json::json!({ "parentSessionId": request.session_id });
        next.meta = Some(next.meta.unwrap_or_default().with("acp-sdk", &parent));
    }
    Some(next)
}

/// Returns a question as clients are asked it; `None` if version 2 cannot express it.
pub(super) fn question(ask: &Ask, child: Option<&v1::SessionId>) -> Option<Json> {
    let request = match ask {
        Ask::Permission(request) => Json::new(&permission(request, child)?),
        Ask::Elicitation(request) => {
            let request: CreateElicitationRequest = convert_logged(request.clone())?;
            Json::new(&request)
        }
    };
    request.ok()
}

fn inexpressible(method: &str) -> acp_sdk::Error {
    let reason = "version 2 of the protocol cannot express the question; offer at least one choice";
    acp_sdk::Error::Response {
        method: method.to_owned(),
        error: Box::new(acp_sdk::RpcError::new(ErrorCode::INVALID_PARAMS, reason)),
    }
}
