//! The command behind a server that hosts it.

use acp_sdk::ErrorCode;
use acp_server::{Server, UndoDirection, UndoRequest};
use acp_server_host::HostedAgent;

use super::folders;

#[tokio::test]
async fn turns_of_the_hosted_command_are_undone_and_redone() {
    let (home, project) = folders();
    let file = project.path().join("a.txt");
    std::fs::write(&file, "old").unwrap();
    let read = || std::fs::read_to_string(&file).unwrap();
    let agent = HostedAgent::builder(env!("CARGO_BIN_EXE_acp-agent"))
        .args(["--model", "scripted", "--mode", "code"])
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME");
    let agent = agent.start().await.unwrap();
    let server = Server::new(agent.clone());
    let session = server.create_session(project.path().to_str().unwrap());
    let session = session.await.unwrap();
    let write = r#"write {"path": "a.txt", "content": "new"}"#;
    let turn = session.prompt(vec![write.into()]).unwrap();
    turn.stop_reason().await.unwrap();
    assert_eq!(read(), "new");

    let undo = UndoRequest::new(UndoDirection::Undo);
    let undone = session.undo(undo.clone()).await.unwrap();
    assert!(undone.applied && read() == "old", "{undone:?}");
    let redone = session.undo(UndoRequest::new(UndoDirection::Redo));
    let redone = redone.await.unwrap();
    assert!(redone.applied && read() == "new", "{redone:?}");

    // Somebody else has changed the file.
    std::fs::write(&file, "mine").unwrap();
    let refused = session.undo(undo.clone()).await.unwrap();
    assert!(!refused.applied && read() == "mine", "{refused:?}");
    let forced = session.undo(undo.clone().with_force(true)).await.unwrap();
    assert!(forced.applied && read() == "old", "{forced:?}");
    let error = session.undo(undo).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::INVALID_REQUEST, "{error}");
    server.shutdown().await;
    agent.shutdown().await;
}
