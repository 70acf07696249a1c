//! Recipes for tests.

use acp_agent::model::{Delta, Scripted};
use acp_client::Client;
use acp_cookbook::{record_and_replay, run_the_suite};

use crate::support::{connect, say};

#[test]
fn the_agent_is_conformant() {
    acp_conformance::assert_conformant(run_the_suite::agent());
}

#[tokio::test]
async fn a_recording_answers_as_the_model_did() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.jsonl");
    let model = Scripted::list([vec![Delta::Text("42".to_owned())]]);
    let server = record_and_replay::recording(model, &file).unwrap();
    let client = connect(&server, Client::builder()).await;
    let session = client.new_session("/").await.unwrap();
    assert_eq!(say(&session, "the answer?").await.text, "42");
    assert!(
        record_and_replay::recording(Scripted::list([]), &file).is_err(),
        "the file exists"
    );
    // Without the model.
    for (question, answer) in [
        ("the answer?", Ok("42")),
        ("another?", Err("the last message is not the recorded one")),
    ] {
        let client = connect(
            &record_and_replay::replaying(&file).unwrap(),
            Client::builder(),
        )
        .await;
        let session = client.new_session("/").await.unwrap();
        let outcome = session.prompt(question).await.unwrap().outcome().await;
        match answer {
            Ok(text) => assert_eq!(outcome.unwrap().text, text),
            Err(reason) => {
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains(reason), "{error}");
            }
        }
    }
}
