//! What a handler asks for and keeps: forms, also for clients without them, and data of the session.

use acp_sdk::v1::*;
use acp_server::{Elicitation, Error, Handler, HandlerResult, Link, Server, Turn};
use serde::{Deserialize, Serialize};

use crate::editor::{Desk, Editor, Permission, everything, text};
use crate::guards::runtime;
use crate::hiccups::{Busy, faulty};

/// Asks for a form and for a page, and sends what came of it.
async fn ask(turn: Turn) -> HandlerResult<StopReason> {
    let form = turn
        .elicit("Who are you?", ElicitationSchema::new())
        .await?;
    turn.send_text(format!("{form:?} ")).await?;
    let text = match turn.elicit_url("Log in", "https://example.com").await? {
        Elicitation::Accepted(page) => {
            page.complete().await?;
            "opened"
        }
        Elicitation::Declined => "declined",
        Elicitation::NotOffered => "not offered",
        _ => "something else",
    };
    turn.send_text(text).await?;
    Ok(StopReason::EndTurn)
}

#[tokio::test]
async fn a_client_without_forms_does_not_fail_the_turn() {
    let desk = Desk::at(runtime(ask), Editor::default(), ClientCapabilities::new()).await;
    assert_eq!(desk.prompt("x").await.unwrap(), StopReason::EndTurn);
    assert_eq!(desk.editor.said(), "NotOffered not offered");

    let desk = Desk::at(runtime(ask), Editor::default(), everything()).await;
    assert_eq!(desk.prompt("x").await.unwrap(), StopReason::EndTurn);
    assert_eq!(desk.editor.said(), "Declined declined");

    let editor = Editor {
        accepts: true,
        ..Editor::default()
    };
    let desk = Desk::at(runtime(ask), editor, everything()).await;
    assert_eq!(desk.prompt("x").await.unwrap(), StopReason::EndTurn);
    assert_eq!(
        desk.editor.said(),
        r#"Accepted({"name": String("Ada")}) opened"#
    );
}

#[cfg(feature = "schemars")]
#[tokio::test]
async fn a_form_of_a_type_returns_its_value() {
    #[derive(Debug, Deserialize, schemars::JsonSchema)]
    struct Person {
        name: String,
        /// In years
        age: Option<u32>,
    }
    #[derive(Debug, Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "the answer has no such field")]
    struct Address {
        street: String,
    }
    async fn ask(turn: Turn) -> HandlerResult<StopReason> {
        let person = turn.elicit_as::<Person>("Who are you?").await?.accepted();
        let person = person.ok_or("no answer")?;
        turn.send_text(format!("{} {:?}", person.name, person.age))
            .await?;
        let error = turn.elicit_as::<Address>("Where?").await.unwrap_err();
        assert!(matches!(error, Error::Form { .. }), "{error:?}");
        assert!(error.to_string().contains("`street`"), "{error}");
        Ok(StopReason::EndTurn)
    }
    let editor = Editor {
        accepts: true,
        ..Editor::default()
    };
    let desk = Desk::at(runtime(ask), editor, everything()).await;
    assert_eq!(desk.prompt("x").await.unwrap(), StopReason::EndTurn);
    let log = desk.editor.take();
    let schema = &log[0]["params"]["requestedSchema"];
    assert_eq!(schema["required"], serde_json::json!(["name"]));
    assert_eq!(schema["properties"]["age"]["description"], "In years");
    assert_eq!(log[1]["params"]["update"]["content"]["text"], "Ada None");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    conversation: String,
}

struct Keeper;

impl Handler for Keeper {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let session = turn.session();
        let kept = session.data_as::<Kept>()?;
        let text = kept.map_or("nothing".to_owned(), |kept| kept.conversation);
        turn.send_text(text).await?;
        let conversation = turn.prompt_text();
        session.set_data_from(&Kept { conversation })?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn data_of_a_session_has_a_type() {
    let server = Server::new(Keeper);
    let desk = Desk::of(&server).await;
    desk.prompt("first").await.unwrap();
    desk.prompt("second").await.unwrap();
    assert_eq!(desk.editor.said(), "nothingfirst");

    let session = server.session(&desk.session).await.unwrap();
    let conversation = "second".to_owned();
    assert_eq!(session.data_as().unwrap(), Some(Kept { conversation }));
    let error = session.data_as::<Vec<u8>>().unwrap_err();
    let Error::Data { session: id, .. } = &error else {
        panic!("expected an error of the data, got {error:?}");
    };
    assert_eq!(id, session.id());
    assert!(error.to_string().contains("Vec<u8>"), "{error}");
    session.set_data(None);
    assert_eq!(session.data_as::<Kept>().unwrap(), None);
}

#[tokio::test]
async fn stored_sessions_are_listed_to_the_last_page() {
    let server = Server::new(Keeper);
    let mut expected = std::collections::BTreeSet::new();
    for number in 0..205 {
        let cwd = if number % 2 == 0 { "/even" } else { "/odd" };
        let session = server.create_session(cwd).await.unwrap();
        expected.insert(session.id().to_string());
    }
    let mut found = std::collections::BTreeSet::new();
    let mut sessions = server.stored_sessions();
    while let Some(record) = sessions.next().await.unwrap() {
        assert!(found.insert(record.id.to_string()), "twice: {}", record.id);
    }
    assert_eq!(found, expected);
    assert_eq!(sessions.next().await.unwrap(), None);

    let mut sessions = server.stored_sessions().of_directory("/even");
    let mut even = 0;
    while let Some(record) = sessions.next().await.unwrap() {
        assert_eq!(record.cwd, "/even");
        even += 1;
    }
    assert_eq!(even, 103);
    let mut named = server.stored_sessions().named("nobody");
    assert_eq!(named.next().await.unwrap(), None);
}

/// It could be asked after the answer to `session/close`, and never learnt of the end of the question.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_asked_no_more_until_it_comes_back() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).build();
    let editor = || Editor {
        permission: Permission::Never,
        ..Editor::default()
    };
    let desk = Desk::at(server.connection(Link::Stdio), editor(), everything()).await;
    let other = Desk::at(server.connection(Link::Stdio), editor(), everything()).await;
    let resume = ResumeSessionRequest::new(desk.session.clone(), "/w");
    other.agent.resume_session(resume).await.unwrap();
    let session = server.session(&desk.session).await.unwrap();
    let turn = session.prompt(text("answered")).unwrap();
    desk.editor.until("session/request_permission").await;
    other.editor.until("session/request_permission").await;
    let close = CloseSessionRequest::new(desk.session.clone());
    desk.agent.close_session(close).await.unwrap();
    desk.editor.until("permission cancelled").await;
    desk.editor.take();
    desk.load().await.unwrap();
    desk.editor.until("session/request_permission").await;
    let question = session.pending_permissions().remove(0).question;
    let chosen = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new("allow"));
    session.answer_permission(question, chosen).unwrap();
    assert_eq!(turn.stop_reason().await.unwrap(), StopReason::EndTurn);
    let asked = other.editor.told().into_iter();
    let asked = asked.filter(|told| told == "session/request_permission");
    assert_eq!(asked.count(), 1);
}
