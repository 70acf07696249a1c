//! The agent's slash commands.

use super::*;

#[tokio::test]
async fn commands_are_listed_and_invoked() {
    let site = Site::start().await;
    assert_eq!(
        site.get("/commands").await.json(),
        json!({ "commands": [] })
    );
    let (id, other) = (site.create().await.id, site.create().await.id);
    site.talk(&id, "commands").await;
    let commands = site.get("/commands").await.json();
    let commands = commands["commands"].as_array().unwrap();
    assert!(!commands.is_empty());
    let name = commands[0]["name"].as_str().unwrap();
    assert!(commands[0]["description"].is_string() && commands[0]["args"].is_array());
    assert_eq!(commands[0]["source"], "acp-server");
    let of = site
        .get(&format!("/commands?session_id={other}"))
        .await
        .json();
    assert_eq!(of, json!({ "commands": [] }));

    let path = format!("/commands/{name}/invoke");
    let body = json!({ "session_id": id, "args": ["a", 1], "kwargs": { "k": "v" } });
    let answer = site.post(&path, body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let invoked = answer.json();
    assert_eq!(invoked["name"], name);
    assert_eq!(invoked["rendered"], format!("/{name} a 1 k=v"));
    let frames = site.frames(&id).await;
    let said = frames
        .iter()
        .rfind(|frame| frame.event == "user_message")
        .unwrap();
    assert_eq!(
        said.data["metadata"]["content"]["text"],
        invoked["rendered"]
    );
    assert_eq!(said.data["metadata"]["messageId"], invoked["message_id"]);
}

#[tokio::test]
async fn the_session_is_checked_before_the_command() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let path = "/commands/none/invoke";
    for (body, status, error) in [
        (json!({}), 400, "missing_session_id"),
        (
            json!({ "session_id": id, "args": "a" }),
            400,
            "args_must_be_list",
        ),
        (
            json!({ "session_id": id, "args": {} }),
            400,
            "args_must_be_list",
        ),
        (
            json!({ "session_id": id, "kwargs": [] }),
            400,
            "kwargs_must_be_object",
        ),
        (json!({ "session_id": "none" }), 404, "session_not_found"),
        (json!({ "session_id": id }), 404, "command_not_found"),
    ] {
        let answer = site.post(path, &body).await;
        refused(&answer, status, error);
    }
    let answer = site.post(path, json!({ "session_id": id })).await;
    assert_eq!(
        answer.body,
        r#"{"error":"command_not_found","name":"none"}"#
    );
}
