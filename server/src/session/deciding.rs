//! Questions that are answered in place of a person: by rules before anybody is asked, or when nobody
//! has answered in time.

use acp_sdk::conversation::Conversation;
use acp_sdk::v1::{
    ElicitationAction, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, SelectedPermissionOutcome, SessionUpdate, ToolCall, ToolCallId,
};
use tokio::sync::oneshot;

use super::audit::{self, Answerer, Ending};
use super::questions::{Ask, Reply, Withdrawn, answered};
use super::{ReceivedText, Session};
use crate::Result;
use crate::event::{EventBody, EventKind, QuestionId, TurnEvent};
use crate::handler::BoxFuture;
use crate::limits::OnTimeout;
use crate::log::Appender;
use crate::turn::push;

/// The most bytes of a tool call that rules receive.
const CALL_BYTES: usize = 1 << 20;

/// The latest events of a turn in which its tool calls are looked for.
const LATEST: u64 = 4096;

/// Decides permission requests before any client is asked.
///
/// The request and the decision are events of the session all the same.
pub trait DecidePermissions: Send + Sync + 'static {
    /// Decides a request, which has all that earlier events of the turn say of its tool call. `None`:
    /// the clients are asked.
    fn decide<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
    ) -> BoxFuture<'a, Option<DecidedPermission>>;

    /// Is told how a request was answered that it did not decide, such as to remember "always". The turn goes
    /// on when the future completes.
    fn answered<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
        outcome: &'a RequestPermissionOutcome,
    ) -> BoxFuture<'a, ()> {
        let _ = (session, request, outcome);
        Box::pin(std::future::ready(()))
    }
}

/// A decision without a person.
#[derive(Clone, Debug, PartialEq)]
pub struct DecidedPermission {
    /// The option, or that the turn is cancelled. An option that the request does not have is no
    /// decision.
    pub outcome: RequestPermissionOutcome,
    /// What has decided, for people: `rule 3 of FILE`.
    pub by: String,
}

impl Session {
    /// Appends a question with its answer: nobody is asked.
    pub(crate) fn write_decided(
        &self,
        appender: &mut Appender<'_>,
        mut ask: Ask,
        decided: DecidedPermission,
    ) -> Result<Reply> {
        let question = QuestionId(appender.next_number());
        let child = ask.take_child(self.id());
        push(appender, &ask.clone().event(question, child.clone()))?;
        let answered = TurnEvent::PermissionAnswered {
            question,
            outcome: Some(decided.outcome.clone()),
            by: Some(decided.by.clone()),
            child,
        };
        push(appender, &answered)?;
        let reply = Reply::Permission(decided.outcome);
        let ending = Ending::Answered(&Answerer::rule(&decided.by), &reply);
        audit::ended(self.id(), question, &ask, &ending);
        Ok(reply)
    }

    /// Returns the decision of the server's rules, if it has any and they decide.
    pub(crate) async fn decided(&self, ask: &Ask) -> Option<DecidedPermission> {
        let (Ask::Permission(request), Some(rules)) = (ask, &self.core().permissions) else {
            return None;
        };
        // Boxed, because every question has room for it otherwise.
        Box::pin(async {
            let request = self.completed(request).await;
            let decided = rules.decide(self, &request).await?;
            let reply = Reply::Permission(decided.outcome.clone());
            ask.check(&reply).is_ok().then_some(decided)
        })
        .await
    }

    /// Returns the request whose answer the server's rules are told, if there are rules.
    pub(crate) fn undecided(&self, ask: &Ask) -> Option<RequestPermissionRequest> {
        match (ask, &self.core().permissions) {
            (Ask::Permission(request), Some(_)) => Some(request.clone()),
            _ => None,
        }
    }

    /// Tells the server's rules how clients have answered.
    pub(crate) async fn tell_rules(
        &self,
        request: Option<RequestPermissionRequest>,
        reply: &Reply,
    ) {
        if let (Some(request), Reply::Permission(outcome)) = (request, reply)
            && let Some(rules) = &self.core().permissions
        {
            let request = self.completed(&request).await;
            rules.answered(self, &request, outcome).await;
        }
    }

    /// Waits for the reply to a question, or for the time after which it is answered in place of a
    /// person. Returns whether the turn is to be cancelled, because nobody has answered.
    pub(crate) async fn reply_in_time(
        &self,
        asked: &Withdrawn,
        mut reply: oneshot::Receiver<Result<Reply>>,
    ) -> Result<(Reply, bool)> {
        let (timeout, on_timeout) = {
            let policies = &self.state().policies;
            (policies.question_timeout, policies.on_timeout)
        };
        let Some(timeout) = timeout else {
            return answered(reply.await).map(|reply| (reply, false));
        };
        if let Ok(reply) = tokio::time::timeout(timeout, &mut reply).await {
            return answered(reply).map(|reply| (reply, false));
        }
        let by = format!("nobody answered within {} s", timeout.as_secs_f64());
        let in_place = match (&asked.question.ask, on_timeout) {
            (Ask::Elicitation(_), _) => Reply::Elicitation(ElicitationAction::Cancel),
            (Ask::Permission(request), OnTimeout::Reject) => {
                Reply::Permission(rejection(&request.options))
            }
            (Ask::Permission(_), OnTimeout::Cancel) => {
                Reply::Permission(RequestPermissionOutcome::Cancelled)
            }
        };
        // Somebody may have been faster.
        let _ = self.reply(&asked.question, &Answerer::rule(&by), in_place);
        let reply = answered(reply.await)?;
        Ok((reply, on_timeout == OnTimeout::Cancel))
    }

    /// Returns a request with all that earlier events of the turn say of its tool call.
    async fn completed(&self, request: &RequestPermissionRequest) -> RequestPermissionRequest {
        let mut request = request.clone();
        let Ok(Some(call)) = self.known_call(&request.tool_call.tool_call_id).await else {
            return request;
        };
        let asked = &mut request.tool_call;
        asked.title = asked.title.take().or(Some(call.title));
        asked.kind = asked.kind.take().or(call.kind);
        asked.status = asked.status.take().or(call.status);
        asked.raw_input = asked.raw_input.take().or(call.raw_input);
        asked.content = asked.content.take().or(Some(call.content));
        asked.locations = asked.locations.take().or(Some(call.locations));
        request
    }

    /// Returns what the latest events of the running turn say of a tool call.
    ///
    /// # Errors
    ///
    /// The store's.
    async fn known_call(&self, id: &ToolCallId) -> Result<Option<ToolCall>> {
        let running = self
            .state()
            .queue
            .running()
            .and_then(|running| running.turn);
        // What is not committed cannot be read.
        self.log().flush(self.log().epoch()).await?;
        let last = self.last_event();
        let start = running.map_or(last, |turn| turn.0);
        let mut events = self.subscribe(start.max(last.saturating_sub(LATEST)));
        let mut known = Conversation::with_limit(CALL_BYTES);
        while let Some(received) = events.next_text_now().await? {
            let ReceivedText::Event(number, batch) = received else {
                continue;
            };
            let stored = batch.stored(number);
            // Reading a text costs much more than looking into it.
            let is_of_call = |text: &str| text.contains("\"toolCallId\"");
            let stored =
                stored.filter(|event| event.kind() != EventKind::Turn && is_of_call(event.text));
            if let Some(EventBody::Update(update)) = stored.map(|event| event.parse().body) {
                let of = match &update {
                    SessionUpdate::ToolCall(call) => Some(&call.tool_call_id),
                    SessionUpdate::ToolCallUpdate(call) => Some(&call.tool_call_id),
                    _ => None,
                };
                if of == Some(id) {
                    let _ = known.apply(&update);
                }
            }
            if number >= last {
                break;
            }
        }
        Ok(known.tool_call(id).map(|(_, call)| call.clone()))
    }
}

/// Returns the outcome that rejects a call once; without such an option, the one that cancels.
fn rejection(options: &[PermissionOption]) -> RequestPermissionOutcome {
    let once = |option: &&PermissionOption| option.kind == PermissionOptionKind::RejectOnce;
    match options.iter().find(once) {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
            option.option_id.clone(),
        )),
        None => RequestPermissionOutcome::Cancelled,
    }
}
