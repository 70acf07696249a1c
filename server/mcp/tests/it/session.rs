//! A whole agent: the example `tools`, with a client that names the servers.

use acp_client::{AgentCommand, Client, Policy};
use acp_sdk::v1::NewSessionRequest;

use crate::support::{Lifeline, in_shell, scripted};

#[tokio::test]
async fn the_servers_of_a_session_end_with_it() {
    // Examples are built with the tests, beside them.
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.set_file_name("examples");
    let agent = AgentCommand::new(program.join("tools"));
    let client = Client::builder().permissions(Policy::ApproveReads);
    let client = client.spawn(agent).await.unwrap();
    let lifeline = Lifeline::new();
    let of_a = in_shell("a", "", &lifeline.tie("exec \"$@\""));
    let cwd = tempfile::tempdir().unwrap();
    let request = NewSessionRequest::new(
        cwd.path().to_str().unwrap(),
        vec![of_a, scripted("broken", "broken")],
    );
    let session = client.new_session_with(request).await.unwrap();
    let mut said = Vec::new();
    for prompt in ["a__echo {\"word\": \"hello\"}", "states"] {
        let turn = session.prompt(prompt).await.unwrap();
        said.push(turn.outcome().await.unwrap().to_string());
    }
    assert!(said[0].contains("hello"), "{said:?}");
    assert!(said[1].contains("Ready"), "{said:?}");
    assert!(said[1].contains("the key is missing"), "{said:?}");
    session.close().await.unwrap();
    lifeline.all_dead().await;
    client.shutdown().await.unwrap();
}
