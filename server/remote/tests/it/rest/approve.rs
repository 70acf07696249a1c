//! Answering permission requests.

use super::*;

/// A session that waits for a permission.
async fn asking(site: &Site) -> (String, Stream, String) {
    let id = site.create().await.id;
    let mut stream = site.stream(&format!("/session/{id}/events"), None).await;
    site.post(
        &format!("/session/{id}/message"),
        json!({ "text": "permission" }),
    )
    .await;
    let asked = stream.until("permission_request").await;
    let permission = asked.data["permission_id"].as_str().unwrap().to_owned();
    assert_eq!(asked.id.unwrap().to_string(), permission);
    assert!(
        asked.data["tool_call"]["toolCallId"].is_string(),
        "{asked:?}"
    );
    // Whoever approves sees all that was said of the call, wherever it was said.
    let call = &asked.data["tool_call"];
    assert!(call["title"].is_string(), "{asked:?}");
    assert!(
        asked.data["options"].as_array().unwrap().len() >= 2,
        "{asked:?}"
    );
    (id, stream, permission)
}

#[tokio::test]
async fn the_first_answer_counts_and_is_an_event() {
    let site = Site::start().await;
    for approved in [true, false] {
        let (id, mut stream, permission) = asking(&site).await;
        let state = site.get(&format!("/session/{id}")).await.json();
        assert_eq!(state["pending_permissions"], json!([permission]));
        let approval = |approved| json!({ "session_id": id, "permission_id": permission, "approved": approved });
        let answer = site.post("/tool/approve", approval(approved)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let body = answer.json();
        assert_eq!(
            (&body["resolved"], &body["approved"]),
            (&json!(true), &json!(approved))
        );
        let late = site.post("/tool/approve", approval(!approved)).await;
        refused(&late, 404, "permission_not_found");
        let event = stream.until("loop_event").await;
        assert_eq!(event.data["type"], "permission_result");
        let chosen = &event.data["data"]["outcome"]["optionId"];
        assert_eq!(chosen, &body["option_id"]);
        assert_eq!(chosen, if approved { "allow" } else { "reject" });
        assert_eq!(stream.until("result").await.data["success"], true);
    }
}

#[tokio::test]
async fn a_permission_is_named_in_the_forms_of_all_interfaces() {
    let site = Site::start().await;
    for form in 0..3 {
        let (id, mut stream, permission) = asking(&site).await;
        let named = match form {
            0 => json!(permission),
            1 => json!(permission.parse::<u64>().unwrap()),
            // As `/rpc` names it.
            _ => json!(format!("{id}/{permission}")),
        };
        let body = json!({ "session_id": id, "permission_id": named, "approved": true });
        let answer = site.post("/tool/approve", body).await;
        assert_eq!(answer.status, 200, "{named}: {answer:?}");
        stream.until("result").await;
    }
    let (id, _stream, permission) = asking(&site).await;
    for (named, status, error) in [
        (json!(true), 400, "invalid_field"),
        (json!(1.5), 400, "invalid_field"),
        (json!(-1), 404, "permission_not_found"),
        (
            json!(format!("other/{permission}")),
            404,
            "permission_not_found",
        ),
    ] {
        let body = json!({ "session_id": id, "permission_id": named, "approved": true });
        refused(&site.post("/tool/approve", body).await, status, error);
    }
    // An option is a text, too.
    let permission: u64 = permission.parse().unwrap();
    let body =
        json!({ "session_id": id, "permission_id": permission, "approved": true, "option_id": 1 });
    refused(
        &site.post("/tool/approve", body).await,
        400,
        "unknown_option",
    );
}

#[tokio::test]
async fn answers_at_once_are_one_answer() {
    let site = Site::start().await;
    let (id, mut stream, permission) = asking(&site).await;
    let answer = async |approved: bool| {
        let body = json!({ "session_id": id, "permission_id": permission, "approved": approved });
        site.post("/tool/approve", body).await.status
    };
    let (a, b, c, d) = tokio::join!(answer(true), answer(false), answer(true), answer(false));
    let mut statuses = [a, b, c, d];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404, 404, 404]);
    stream.until("result").await;
}

#[tokio::test]
async fn what_is_no_answer_leaves_the_request_open() {
    let site = Site::start().await;
    let (id, mut stream, permission) = asking(&site).await;
    for (body, status, error) in [
        (json!({}), 400, "missing_session_id_or_permission_id"),
        (
            json!({ "session_id": id, "approved": true }),
            400,
            "missing_session_id_or_permission_id",
        ),
        (
            json!({ "permission_id": "1", "approved": true }),
            400,
            "missing_session_id_or_permission_id",
        ),
        (
            json!({ "session_id": id, "permission_id": permission }),
            400,
            "missing_approved",
        ),
        (
            json!({ "session_id": id, "permission_id": permission, "approved": "yes" }),
            400,
            "invalid_field",
        ),
        (
            json!({ "session_id": "none", "permission_id": permission, "approved": true }),
            404,
            "session_not_found",
        ),
        (
            json!({ "session_id": id, "permission_id": "99", "approved": true }),
            404,
            "permission_not_found",
        ),
        (
            json!({ "session_id": id, "permission_id": "x", "approved": true }),
            404,
            "permission_not_found",
        ),
        (
            json!({ "session_id": id, "permission_id": permission, "approved": true, "option_id": "other" }),
            400,
            "unknown_option",
        ),
        (
            json!({ "session_id": id, "permission_id": permission, "approved": true, "option_id": "reject" }),
            400,
            "unknown_option",
        ),
    ] {
        let answer = site.post("/tool/approve", &body).await;
        refused(&answer, status, error);
    }
    let body = json!({
        "session_id": id,
        "permission_id": permission,
        "approved": true,
        "option_id": "allow",
    });
    assert_eq!(site.post("/tool/approve", body).await.status, 200);
    stream.until("result").await;
    // Nothing waits in a session that is not in memory.
    site.server.shutdown().await;
    let body = json!({ "session_id": id, "permission_id": permission, "approved": true });
    refused(
        &site.post("/tool/approve", body).await,
        404,
        "permission_not_found",
    );
}
