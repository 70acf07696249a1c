//! What the runtime does for a handler that does not do it itself.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sdk::v1::*;
use acp_server::{Error, Handler, HandlerResult, Link, Policies, Server, ServerConnection, Turn};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::editor::{Desk, Editor, Permission, everything, others_run, text};
use crate::raw::Raw;

/// A handler that is one closure.
pub struct Script<F>(pub F);

impl<F, Fut> Handler for Script<F>
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<StopReason>> + Send,
{
    type State = ();

    fn prompt(
        &self,
        (): &mut (),
        turn: Turn,
    ) -> impl Future<Output = HandlerResult<StopReason>> + Send {
        (self.0)(turn)
    }
}

/// The agent of a closure, whose cancelled turns may take this long.
fn within<F, Fut>(deadline: Duration, prompt: F) -> ServerConnection
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<StopReason>> + Send,
{
    let mut policies = Policies::default();
    policies.cancel_deadline = deadline;
    let server = Server::builder(Script(prompt)).policies(policies).build();
    server.connection(Link::Stdio)
}

pub fn runtime<F, Fut>(prompt: F) -> ServerConnection
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<StopReason>> + Send,
{
    within(Duration::from_millis(10), prompt)
}

async fn desk<F, Fut>(prompt: F) -> Desk
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<StopReason>> + Send,
{
    Desk::at(runtime(prompt), Editor::default(), everything()).await
}

#[tokio::test]
async fn a_dropped_tool_call_fails_while_the_turn_goes_on() {
    let desk = desk(|turn: Turn| async move {
        drop(turn.tool_call("Work", ToolKind::Other).await?);
        turn.send_text("still here").await?;
        Ok(StopReason::EndTurn)
    })
    .await;
    desk.prompt("go").await.unwrap();
    assert_eq!(
        desk.editor.told(),
        [
            "tool_call pending",
            "tool_call_update failed",
            "agent_message_chunk still here"
        ]
    );
}

#[tokio::test]
async fn a_dropped_tool_call_fails_before_the_turn_ends() {
    // The handler says nothing more and waits: the client is told all the same.
    let desk = desk(|turn: Turn| async move {
        drop(turn.tool_call("Work", ToolKind::Other).await?);
        turn.cancelled().await;
        Ok(StopReason::EndTurn)
    })
    .await;
    let turn = desk.start("go");
    desk.editor.until("tool_call_update failed").await;
    desk.cancel().await;
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
}

#[tokio::test]
async fn an_error_closes_tool_calls_and_releases_terminals() {
    let desk = desk(|turn: Turn| async move {
        let _call = turn.tool_call("Work", ToolKind::Other).await?;
        let _terminal = turn.terminal("true", []).await?;
        Err("out of tokens".into())
    })
    .await;
    let error = desk.prompt("go").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR));
    assert!(error.to_string().contains("out of tokens"), "{error}");
    let mut told = desk.editor.told();
    told.sort();
    assert_eq!(
        told,
        [
            "terminal/create",
            "terminal/release",
            "tool_call pending",
            "tool_call_update failed"
        ]
    );
}

#[tokio::test]
async fn a_panic_is_the_error_of_one_prompt() {
    let desk = desk(|turn: Turn| async move {
        if turn.prompt_text() == "panic" {
            let _call = turn.tool_call("Work", ToolKind::Other).await?;
            panic!("no such luck");
        }
        Ok(StopReason::EndTurn)
    })
    .await;
    let error = desk.prompt("panic").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR));
    assert!(error.to_string().contains("no such luck"), "{error}");
    assert_eq!(
        desk.editor.told(),
        ["tool_call pending", "tool_call_update failed"]
    );
    assert_eq!(desk.prompt("go").await.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn nothing_is_sent_after_the_turn() {
    let kept: Arc<Mutex<Option<Arc<Turn>>>> = Arc::default();
    let keep = kept.clone();
    let desk = desk(move |turn: Turn| {
        let keep = keep.clone();
        async move {
            let turn = Arc::new(turn);
            std::mem::forget(turn.tool_call("Leaked", ToolKind::Other).await?);
            *keep.lock().unwrap() = Some(turn);
            Ok(StopReason::EndTurn)
        }
    })
    .await;
    desk.prompt("go").await.unwrap();
    // Even a call whose guard was leaked is closed.
    assert_eq!(
        desk.editor.told(),
        ["tool_call pending", "tool_call_update failed"]
    );
    let turn = kept.lock().unwrap().take().unwrap();
    let late = [
        turn.send_text("late").await.unwrap_err(),
        turn.tool_call("late", ToolKind::Other).await.unwrap_err(),
        turn.read_file("late").await.unwrap_err(),
        turn.terminal("late", []).await.unwrap_err(),
    ];
    for error in late {
        assert!(matches!(error, Error::TurnEnded(..)), "{error}");
        assert!(error.to_string().contains(desk.session.as_str()), "{error}");
    }
    desk.prompt("go").await.unwrap();
    assert_eq!(desk.editor.told().len(), 2);
}

#[tokio::test]
async fn a_tool_call_without_a_guard_is_closed_too() {
    let desk = desk(|turn: Turn| async move {
        for (id, status) in [("mine-1", "completed"), ("mine-2", "in_progress")] {
            let call = ToolCall::new(id, "By hand").with_status(ToolCallStatus::Pending);
            turn.send(SessionUpdate::ToolCall(call)).await?;
            let change = ToolCallUpdate::new(id).with_status(ToolCallStatus::from(status));
            turn.send(SessionUpdate::ToolCallUpdate(change)).await?;
        }
        Ok(StopReason::EndTurn)
    })
    .await;
    desk.prompt("go").await.unwrap();
    let log = desk.editor.take();
    let last = &log.last().unwrap()["params"]["update"];
    assert_eq!(log.len(), 5);
    assert_eq!(
        (&last["toolCallId"], &last["status"]),
        (&"mine-2".into(), &"failed".into())
    );
}

#[tokio::test]
async fn a_cancelled_handler_is_dropped_where_it_waits() {
    struct Told(Arc<Notify>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let dropped = Arc::new(Notify::new());
    let told = dropped.clone();
    let desk = desk(move |turn: Turn| {
        let told = Told(told.clone());
        async move {
            turn.send_text("waiting").await?;
            pending::<()>().await;
            drop(told);
            Ok(StopReason::EndTurn)
        }
    })
    .await;
    let turn = desk.start("go");
    desk.editor.until("agent_message_chunk waiting").await;
    desk.cancel().await;
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    dropped.notified().await;
}

#[tokio::test]
async fn until_its_deadline_a_cancelled_handler_may_tell_but_not_ask() {
    let prompt = |turn: Turn| async move {
        let call = turn.tool_call("Work", ToolKind::Other).await?;
        turn.cancelled().await;
        let refused = [
            turn.read_file("a").await.unwrap_err(),
            turn.ask_permission(&call).await.unwrap_err(),
            turn.terminal("true", []).await.unwrap_err(),
        ];
        assert!(
            refused.iter().all(|e| matches!(e, Error::Cancelled)),
            "{refused:?}"
        );
        call.fail("Stopped.").await?;
        turn.send_text("partial answer").await?;
        // An error in a cancelled turn is not the client's business.
        Err("aborted".into())
    };
    let runtime = within(Duration::from_secs(60), prompt);
    let desk = Desk::at(runtime, Editor::default(), everything()).await;
    let turn = desk.start("go");
    desk.editor.until("tool_call").await;
    desk.cancel().await;
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    assert_eq!(
        desk.editor.told(),
        [
            "tool_call pending",
            "tool_call_update failed",
            "agent_message_chunk partial answer"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_handler_is_dropped_at_its_deadline() {
    let prompt = |turn: Turn| async move {
        turn.send_text("waiting").await?;
        pending().await
    };
    let runtime = within(Duration::from_secs(60), prompt);
    let desk = Desk::at(runtime, Editor::default(), everything()).await;
    let turn = desk.start("go");
    desk.editor.until("agent_message_chunk waiting").await;
    let begun = tokio::time::Instant::now();
    desk.cancel().await;
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn a_terminal_whose_creation_was_given_up_is_released() {
    let editor = Editor {
        slow_terminals: true,
        ..Editor::default()
    };
    let prompt = |turn: Turn| async move {
        turn.terminal("true", []).await?.wait().await?;
        Ok(StopReason::EndTurn)
    };
    let desk = Desk::at(runtime(prompt), editor, everything()).await;
    let turn = desk.start("go");
    desk.editor.until("terminal/create").await;
    desk.cancel().await;
    desk.editor.go_on.notify_one();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    assert_eq!(desk.editor.told(), ["terminal/create", "terminal/release"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_answers_does_not_hold_the_turn() {
    let editor = Editor {
        slow_terminals: true,
        ..Editor::default()
    };
    let prompt = |turn: Turn| async move {
        turn.terminal("true", []).await?.wait().await?;
        Ok(StopReason::EndTurn)
    };
    let desk = Desk::at(runtime(prompt), editor, everything()).await;
    let turn = desk.start("go");
    desk.editor.until("terminal/create").await;
    desk.cancel().await;
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    // The terminal comes late and is given back all the same.
    desk.editor.go_on.notify_one();
    desk.editor.until("terminal/release").await;
}

#[tokio::test]
async fn a_decision_goes_by_the_kind_of_the_option() {
    let prompt = |turn: Turn| async move {
        let call = turn.tool_call("Work", ToolKind::Other).await?;
        let options = vec![
            PermissionOption::new("no", "No", PermissionOptionKind::RejectAlways),
            PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowAlways),
        ];
        let decision = turn.ask_permission_with(&call, options).await?;
        let (allowed, for_good) = (decision.is_allowed(), decision.is_always());
        turn.send_text(format!("{} {allowed} {for_good}", decision.option()))
            .await?;
        Ok(StopReason::EndTurn)
    };
    for (permission, said) in [
        (Permission::First, "no false true"),
        (Permission::Last, "yes true true"),
    ] {
        let editor = Editor {
            permission,
            ..Editor::default()
        };
        let desk = Desk::at(runtime(prompt), editor, everything()).await;
        desk.prompt("go").await.unwrap();
        assert_eq!(desk.editor.said(), said);
    }
}

#[tokio::test]
async fn an_option_that_was_not_offered_is_no_permission() {
    let editor = Editor {
        permission: Permission::Invented,
        ..Editor::default()
    };
    let desk = Desk::with(editor, everything()).await;
    let error = desk.prompt("permission").await.unwrap_err();
    assert!(error.to_string().contains("invented"), "{error}");
    assert_eq!(
        desk.editor.told().last().unwrap(),
        "tool_call_update failed"
    );
}

#[tokio::test]
async fn relative_paths_are_taken_from_the_working_directory() {
    let desk = desk(|turn: Turn| async move {
        turn.read_file("src/a.rs").await?;
        turn.write_file("/tmp/b", "b").await?;
        turn.terminal("true", []).await?.release().await?;
        Ok(StopReason::EndTurn)
    })
    .await;
    desk.prompt("go").await.unwrap();
    let log = desk.editor.take();
    assert_eq!(log[0]["params"]["path"], "/w/src/a.rs");
    assert_eq!(log[1]["params"]["path"], "/tmp/b");
    assert_eq!(log[2]["params"]["cwd"], "/w");
}

#[tokio::test]
async fn chunks_of_a_message_share_an_id_until_something_comes_between() {
    let desk = desk(|turn: Turn| async move {
        for said in ["a", "b"] {
            turn.send_text(said).await?;
        }
        turn.send_thought("c").await?;
        turn.set_plan(vec![]).await?;
        turn.send_thought("d").await?;
        Ok(StopReason::EndTurn)
    })
    .await;
    desk.prompt("go").await.unwrap();
    desk.prompt("go").await.unwrap();
    let log = desk.editor.take();
    let ids: Vec<_> = log
        .iter()
        .filter_map(|entry| entry["params"]["update"]["messageId"].as_str())
        .collect();
    assert_eq!(ids.len(), 8);
    assert_eq!(ids[0], ids[1]);
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 6, "{ids:?}");
}

/// Begins a turn that drops a terminal, which the client releases only when it may go on.
async fn releasing_slowly() -> (Desk, JoinHandle<acp_sdk::Result<StopReason>>) {
    let editor = Editor {
        slow_release: true,
        ..Editor::default()
    };
    let runtime = runtime(async |turn: Turn| {
        drop(turn.terminal("true", []).await?);
        Ok(StopReason::EndTurn)
    });
    let desk = Desk::at(runtime, editor, everything()).await;
    let turn = desk.start("go");
    (desk, turn)
}

#[tokio::test]
async fn the_answer_waits_until_the_client_has_its_terminals_back() {
    let (desk, turn) = releasing_slowly().await;
    desk.editor.until("terminal/release").await;
    others_run().await;
    assert!(!turn.is_finished());
    desk.editor.go_on.notify_one();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn a_cancel_that_comes_while_the_turn_cleans_up_counts() {
    let (desk, turn) = releasing_slowly().await;
    // The handler has ended.
    desk.editor.until("terminal/release").await;
    desk.cancel().await;
    desk.agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    desk.editor.go_on.notify_one();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
}

/// A turn does not wait for a client that does not read: it has ended when the cancel comes, and
/// the answer is that of the turn, behind all that it sent.
#[tokio::test]
async fn a_cancel_after_the_end_of_the_turn_changes_nothing() {
    let runtime = runtime(async |turn: Turn| {
        let call = turn.tool_call("Look", ToolKind::Read).await?;
        for _ in 0..2 {
            turn.send_content(ContentBlock::from("x".repeat(200_000)))
                .await?;
        }
        drop(call);
        Ok(StopReason::EndTurn)
    });
    let mut raw = Raw::serve(runtime);
    let session = raw.open_session().await;
    let params = json!({ "sessionId": session, "prompt": text("go") });
    raw.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params }))
        .await;
    // Nothing else can run, so the turn has ended.
    others_run().await;
    let params = json!({ "sessionId": session });
    raw.send(json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }))
        .await;
    others_run().await;
    let (answer, before) = raw.answer(2).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(before, 4);
}

#[tokio::test(start_paused = true)]
async fn closing_sends_all_that_the_cancelled_turn_sends() {
    let runtime = within(Duration::from_secs(60), async |turn: Turn| {
        turn.send_text("waiting").await?;
        turn.cancelled().await;
        for _ in 0..2 {
            turn.send_content(ContentBlock::from("x".repeat(200_000)))
                .await?;
        }
        Ok(StopReason::EndTurn)
    });
    let mut raw = Raw::serve(runtime);
    let session = raw.open_session().await;
    let params = json!({ "sessionId": session, "prompt": text("go") });
    raw.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params }))
        .await;
    let update = raw.next().await;
    assert_eq!(update["params"]["update"]["content"]["text"], "waiting");
    let params = json!({ "sessionId": session });
    raw.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "session/close", "params": params }))
        .await;
    let mut updates = 0;
    loop {
        let message = raw.next().await;
        if message["id"] == 3 {
            assert!(message["result"].is_object(), "{message}");
            break;
        }
        updates += usize::from(message["method"] == "session/update");
    }
    assert_eq!(updates, 2);
}
