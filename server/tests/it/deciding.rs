//! Permission requests that rules decide, and questions that nobody answers.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_reference_agent::Reference;
use acp_sdk::v1::*;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::internal::session::{Ask, Reply};
use acp_server::{
    DecidePermissions, DecidedPermission, Handler, HandlerResult, OnTimeout, Policies, Received,
    Server, Session, Turn,
};

use crate::editor::{Desk, soon};

/// Answers with this option, and remembers what it was asked.
#[derive(Clone)]
struct Always {
    option: Option<&'static str>,
    asked: Arc<Mutex<Vec<RequestPermissionRequest>>>,
}

impl Always {
    fn new(option: Option<&'static str>) -> Self {
        Self {
            option,
            asked: Arc::default(),
        }
    }
}

impl DecidePermissions for Always {
    fn decide<'a>(
        &'a self,
        _: &'a Session,
        request: &'a RequestPermissionRequest,
    ) -> Pin<Box<dyn Future<Output = Option<DecidedPermission>> + Send + 'a>> {
        Box::pin(async {
            self.asked.lock().unwrap().push(request.clone());
            let chosen = SelectedPermissionOutcome::new(self.option?);
            Some(DecidedPermission {
                outcome: RequestPermissionOutcome::Selected(chosen),
                by: "rule 1 of the test".to_owned(),
            })
        })
    }
}

/// Returns how often the client was asked.
fn questions(desk: &Desk) -> usize {
    let told = desk.editor.told().into_iter();
    told.filter(|told| told == "session/request_permission")
        .count()
}

/// Returns how the questions of a session were answered, and by what.
async fn answers(session: &Session) -> Vec<(Option<RequestPermissionOutcome>, Option<String>)> {
    let mut history = session.history();
    let mut found = Vec::new();
    while let Some(received) = history.next().await.unwrap() {
        if let Received::Event(event) = received
            && let EventBody::Turn(TurnEvent::PermissionAnswered { outcome, by, .. }) = event.body
        {
            found.push((outcome, by));
        }
    }
    found
}

#[tokio::test]
async fn rules_decide_before_a_client_is_asked() {
    for option in ["allow", "reject"] {
        let rules = Always::new(Some(option));
        let server = Server::builder(Reference)
            .permissions(rules.clone())
            .build();
        let desk = Desk::of(&server).await;
        desk.prompt("permission").await.unwrap();
        assert_eq!(questions(&desk), 0, "the client was asked");
        let session = server.session(&desk.session).await.unwrap();
        let chosen = SelectedPermissionOutcome::new(option);
        let outcome = RequestPermissionOutcome::Selected(chosen);
        let by = "rule 1 of the test".to_owned();
        assert_eq!(answers(&session).await, [(Some(outcome), Some(by))]);
    }
}

#[tokio::test]
async fn what_rules_do_not_decide_is_for_the_client() {
    for rules in [
        Always::new(None),
        Always::new(Some("an option that was not offered")),
    ] {
        let server = Server::builder(Reference)
            .permissions(rules.clone())
            .build();
        let desk = Desk::of(&server).await;
        desk.prompt("permission").await.unwrap();
        assert_eq!(questions(&desk), 1);
        assert_eq!(rules.asked.lock().unwrap().len(), 1);
        let session = server.session(&desk.session).await.unwrap();
        assert_eq!(answers(&session).await[0].1, None);
    }
}

/// Asks as another agent does: by the id of a call that it announced before.
struct Terse;

impl Handler for Terse {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let update: SessionUpdate = serde_json::from_str(
            r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run","kind":"execute","rawInput":{"command":"rm x"}}"#,
        )
        .unwrap();
        turn.send(update).await?;
        let options = vec![PermissionOption::new(
            "no",
            "No",
            PermissionOptionKind::RejectOnce,
        )];
        let call = ToolCallUpdate::new("c");
        let request = RequestPermissionRequest::new(turn.session().id(), call, options);
        turn.ask(Ask::Permission(request)).await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn rules_are_told_what_was_said_of_the_call_before() {
    let rules = Always::new(Some("no"));
    let server = Server::builder(Terse).permissions(rules.clone()).build();
    let session = server.create_session("/w").await.unwrap();
    let prompt = session.prompt(vec!["go".into()]).unwrap();
    soon("the end", prompt.stop_reason()).await.unwrap();
    let asked = rules.asked.lock().unwrap().remove(0).tool_call;
    assert_eq!(asked.title.as_deref(), Some("Run"));
    assert_eq!(asked.kind, Some(ToolKind::Execute));
    assert!(asked.raw_input.unwrap().get().contains("rm x"));
}

fn impatient(on_timeout: OnTimeout) -> Policies {
    let mut policies = Policies::default();
    policies.question_timeout = Some(Duration::from_secs(600));
    policies.on_timeout = on_timeout;
    policies
}

/// No client is there: without the limit these turns would wait for ever.
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_is_answered_in_time() {
    let by = Some("nobody answered within 600 s".to_owned());
    for (on_timeout, expected, stop) in [
        (OnTimeout::Reject, Some("reject"), StopReason::EndTurn),
        (OnTimeout::Cancel, None, StopReason::Cancelled),
    ] {
        let server = Server::builder(Reference)
            .policies(impatient(on_timeout))
            .build();
        let session = server.create_session("/w").await.unwrap();
        let start = tokio::time::Instant::now();
        let prompt = session.prompt(vec!["permission".into()]).unwrap();
        assert_eq!(prompt.stop_reason().await.unwrap(), stop);
        assert_eq!(start.elapsed().as_secs(), 600);
        let outcome = match expected {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option))
            }
            None => RequestPermissionOutcome::Cancelled,
        };
        assert_eq!(answers(&session).await, [(Some(outcome), by.clone())]);
        assert!(session.pending_permissions().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_counts_and_a_later_one_does_not() {
    let server = Server::builder(Reference)
        .policies(impatient(OnTimeout::Reject))
        .build();
    let session = server.create_session("/w").await.unwrap();
    let allow = || RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new("allow"));
    for in_time in [true, false] {
        let mut events = session.subscribe(session.last_event());
        let prompt = session.prompt(vec!["permission".into()]).unwrap();
        let question = loop {
            if let Received::Event(event) = events.next().await.unwrap()
                && let EventBody::Turn(TurnEvent::PermissionAsked { question, .. }) = event.body
            {
                break question;
            }
        };
        let wait = if in_time { 599 } else { 601 };
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let answered = session.answer_permission(question, allow());
        assert_eq!(answered.is_ok(), in_time);
        prompt.stop_reason().await.unwrap();
    }
    let by: Vec<_> = answers(&session)
        .await
        .into_iter()
        .map(|(_, by)| by.is_some())
        .collect();
    assert_eq!(by, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_form_that_nobody_fills_in_is_cancelled() {
    let policies = impatient(OnTimeout::Reject);
    let server = Server::builder(Reference).policies(policies).build();
    let session = server.create_session("/w").await.unwrap();
    let scope = ElicitationSessionScope::new(session.id());
    let form = ElicitationFormMode::new(ElicitationSchema::new(), scope);
    let request = CreateElicitationRequest::new("Who are you?", form);
    let reply = session.ask(Ask::Elicitation(request)).await.unwrap();
    assert!(
        matches!(reply, Reply::Elicitation(ElicitationAction::Cancel)),
        "{reply:?}"
    );
}
