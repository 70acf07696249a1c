//! Continuing after a cursor.

use acp_reference_agent::Reference;
use serde_json::json;

use crate::editor::event_ids;

use super::*;

#[tokio::test]
async fn resuming_continues_after_any_cursor() {
    let server = Server::new(Reference);
    let one = Guest::new(&server).await;
    let session = one.create().await;
    // 1 is the start, 2 the words of the user, 8 the end.
    one.prompt(&session, "stream 5").await.unwrap();
    let all: Vec<u64> = (2..=7).collect();
    let cases = [
        (json!({}), 0),
        (json!({ "sinceEventId": null }), 0),
        (json!({ "sinceEventId": 0 }), 0),
        (json!({ "sinceEventId": 1 }), 0),
        (json!({ "sinceEventId": 2 }), 1),
        (json!({ "sinceEventId": 4 }), 3),
        (json!({ "sinceEventId": 7 }), 6),
        (json!({ "sinceEventId": 8 }), 6),
        (json!({ "sinceEventId": 9 }), 6),
        (json!({ "sinceEventId": u64::MAX }), 6),
        (json!({ "sinceEventId": -1 }), 0),
        (json!({ "sinceEventId": 4.5 }), 0),
        (json!({ "sinceEventId": "4" }), 0),
    ];
    // A new client each time, and one that is attached already and is sent its own words, too.
    let attached = Guest::new(&server).await;
    attached.resume(&session).await.unwrap();
    for (mut params, skipped) in cases {
        params["sessionId"] = json!(session);
        let new = Guest::new(&server).await;
        for guest in [&new, &attached, &one] {
            guest.editor.take();
            let answer = guest.ext("_acp-sdk/session/resume", params.clone()).await;
            let expected = &all[skipped..];
            assert_eq!(
                answer.unwrap(),
                json!({
                    "sessionId": session,
                    "replayed": expected.len(),
                    "lastEventId": 8,
                    "truncated": false,
                }),
                "{params}"
            );
            assert_eq!(event_ids(&guest.editor.take()), expected, "{params}");
        }
    }
    // Each is attached from then on.
    let last = Guest::new(&server).await;
    let params = json!({ "sessionId": session, "sinceEventId": 8 });
    last.ext("_acp-sdk/session/resume", params).await.unwrap();
    one.prompt(&session, "hello").await.unwrap();
    last.editor.until("agent_message_chunk hello").await;
    assert_eq!(event_ids(&last.editor.take()), [10, 11]);

    for (params, code) in [
        (
            json!({ "sessionId": "nobody" }),
            ErrorCode::RESOURCE_NOT_FOUND,
        ),
        (json!({}), ErrorCode::INVALID_PARAMS),
    ] {
        let error = last.ext("_acp-sdk/session/resume", params).await;
        assert_eq!(error.unwrap_err().code(), Some(code));
    }
}

#[tokio::test]
async fn resuming_in_the_middle_of_a_turn_has_no_gap_and_no_double() {
    let server = Server::new(Reference);
    let one = Guest::new(&server).await;
    let session = one.create().await;
    let turn = one.start(&session, "stream 2000");
    one.editor.until("agent_message_chunk 00000010").await;
    let two = Guest::new(&server).await;
    let params = json!({ "sessionId": session, "sinceEventId": 7 });
    two.ext("_acp-sdk/session/resume", params).await.unwrap();
    turn.await.unwrap().unwrap();
    two.editor.until("agent_message_chunk 00001999").await;
    let ids = event_ids(&two.editor.take());
    assert!(ids.iter().copied().eq(8..=2002), "{ids:?}");
}

#[tokio::test]
async fn the_answer_to_a_lost_prompt_is_given_again() {
    let server = Server::new(Reference);
    let one = Guest::new(&server).await;
    let session = one.create().await;
    let named = |id: &str, said: &str| {
        let meta = json!({ "acp-sdk": { "promptId": id } });
        let request = json!({
            "sessionId": session,
            "prompt": [{ "type": "text", "text": said }],
            "_meta": meta,
        });
        let request: PromptRequest = serde_json::from_value(request).unwrap();
        let agent = one.agent.clone();
        tokio::spawn(async move { agent.prompt(request).await })
    };
    named("first", "hello").await.unwrap().unwrap();
    assert!(named("second", "fail").await.unwrap().is_err());
    let slow = named("third", "slow");
    one.editor.until("agent_message_chunk tick").await;

    let two = Guest::new(&server).await;
    two.resume(&session).await.unwrap();
    let method = "_acp-sdk/session/prompt_result";
    let result = async |id: &str| {
        let params = json!({ "sessionId": session, "promptId": id });
        two.ext(method, params).await
    };
    assert_eq!(result("first").await.unwrap()["stopReason"], "end_turn");
    let failed = result("second").await.unwrap_err();
    assert_eq!(failed.code(), Some(ErrorCode::INTERNAL_ERROR));
    let unknown = result("fourth").await.unwrap_err();
    assert_eq!(unknown.code(), Some(ErrorCode::RESOURCE_NOT_FOUND));
    let (third, ()) = tokio::join!(result("third"), async {
        one.agent
            .cancel(CancelNotification::new(session.clone()))
            .await
            .unwrap();
    });
    assert_eq!(third.unwrap()["stopReason"], "cancelled");
    assert!(slow.await.unwrap().is_ok());
    // A client that is not attached gets an error that says so.
    let three = Guest::new(&server).await;
    let params = json!({ "sessionId": session, "promptId": "first" });
    assert!(three.ext(method, params).await.is_err());
}
