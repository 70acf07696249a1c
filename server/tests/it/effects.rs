//! Commands and changes of files with the user's permission.

use acp_sdk::v1::*;
use acp_server::{Capability, Error, HandlerResult, Turn};
use serde_json::{Value, json};

use crate::editor::{Desk, Editor, Permission, everything};
use crate::guards::runtime;

/// A client that answers permission requests like this.
fn editor(permission: Permission) -> Editor {
    Editor {
        permission,
        ..Editor::default()
    }
}

async fn command(turn: Turn) -> HandlerResult<StopReason> {
    let said = match turn.run_command("cargo", ["test", "a b"]).await? {
        Some(tests) => format!("{}: {}", tests.exit, tests.output),
        None => "rejected".to_owned(),
    };
    turn.send_text(said).await?;
    Ok(StopReason::EndTurn)
}

async fn edit(turn: Turn) -> HandlerResult<StopReason> {
    let edited = turn.edit_file("a.txt", Some("old\n"), "new\n").await?;
    turn.send_text(edited.to_string()).await?;
    Ok(StopReason::EndTurn)
}

/// Returns the tool call as it was announced, and as the request for permission has it.
fn judged(log: &[Value]) -> (Value, Value) {
    let of = |method: &str| {
        let mut entries = log.iter().filter(|entry| entry["method"] == method);
        entries.next().unwrap()["params"].clone()
    };
    let announced = of("session/update")["update"].clone();
    (
        announced,
        of("session/request_permission")["toolCall"].clone(),
    )
}

#[tokio::test]
async fn a_command_is_shown_before_it_is_allowed_and_run() {
    let desk = Desk::at(runtime(command), editor(Permission::First), everything()).await;
    desk.prompt("go").await.unwrap();
    let log = desk.editor.take();
    let (announced, asked) = judged(&log);
    for call in [&announced, &asked] {
        assert_eq!(call["title"], "cargo test 'a b'");
        assert_eq!(call["kind"], "execute");
        let input = json!({"command": "cargo", "args": ["test", "a b"], "cwd": "/w"});
        assert_eq!(call["rawInput"], input);
    }
    *desk.editor.log.lock().unwrap() = log;
    assert_eq!(
        desk.editor.told(),
        [
            "tool_call pending",
            "session/request_permission",
            "tool_call_update in_progress",
            "terminal/create",
            "tool_call_update",
            "terminal/wait_for_exit",
            "terminal/output",
            "tool_call_update completed",
            "terminal/release",
            "agent_message_chunk exit code 0: out\n",
        ]
    );
}

#[tokio::test]
async fn a_rejected_command_is_not_run() {
    let desk = Desk::at(runtime(command), editor(Permission::Last), everything()).await;
    desk.prompt("go").await.unwrap();
    assert_eq!(
        desk.editor.told(),
        [
            "tool_call pending",
            "session/request_permission",
            "tool_call_update failed",
            "agent_message_chunk rejected",
        ]
    );
}

#[tokio::test]
async fn nothing_is_asked_where_nobody_can_do_it() {
    let prompt = |turn: Turn| async move {
        let command = turn.run_command("true", []).await;
        let edit = turn.edit_file("a.txt", None, "new\n").await;
        for (result, expected) in [
            (command.map(drop), Capability::Terminal),
            (edit.map(drop), Capability::WriteTextFile),
        ] {
            match result {
                Err(Error::Unsupported(missing)) => assert_eq!(missing, expected),
                other => panic!("expected an error, got {other:?}"),
            }
        }
        Ok(StopReason::EndTurn)
    };
    let server = acp_server::Server::new(crate::guards::Script(prompt));
    let agent = server.connection(acp_server::Link::Remote);
    let offered = ClientCapabilities::new();
    let desk = Desk::at(agent, editor(Permission::First), offered).await;
    desk.prompt("go").await.unwrap();
    assert_eq!(desk.editor.told(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_change_is_shown_before_it_is_allowed_and_written() {
    let desk = Desk::at(runtime(edit), editor(Permission::First), everything()).await;
    desk.prompt("go").await.unwrap();
    let log = desk.editor.take();
    let (announced, asked) = judged(&log);
    let diff = json!({"type": "diff", "path": "/w/a.txt", "oldText": "old\n", "newText": "new\n"});
    for call in [&announced, &asked] {
        assert_eq!(call["title"], "Edit a.txt");
        assert_eq!(call["locations"], json!([{"path": "/w/a.txt"}]));
        assert_eq!(call["content"], json!([diff]));
    }
    *desk.editor.log.lock().unwrap() = log;
    assert_eq!(
        desk.editor.told(),
        [
            "tool_call pending",
            "session/request_permission",
            "tool_call_update in_progress",
            "fs/write_text_file",
            "tool_call_update completed",
            "agent_message_chunk true",
        ]
    );

    let desk = Desk::at(runtime(edit), editor(Permission::Last), everything()).await;
    desk.prompt("go").await.unwrap();
    let told = desk.editor.told();
    assert!(!told.contains(&"fs/write_text_file".to_owned()), "{told:?}");
    assert_eq!(told.last().unwrap(), "agent_message_chunk false");
}
