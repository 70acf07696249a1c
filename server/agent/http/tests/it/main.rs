//! Models and `fetch` against servers of the test.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use acp_agent::model::{
    Definition, Delta, ErrorKind, Message, Model, ModelError, Request, Stopped, Thought, Tokens,
    ToolResult, ToolUse,
};
use acp_agent_http::{Api, HttpModel};
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// What a server was sent: path and body.
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts a server that answers everything alike. Returns its URL, and what it is sent.
async fn serve(status: u16, headers: &'static [(&str, &str)], body: String) -> (String, Sent) {
    let sent = Sent::default();
    let seen = sent.clone();
    let answer = move |uri: axum::http::Uri, asked: Bytes| {
        let body = body.clone();
        let asked = serde_json::from_slice(&asked).unwrap_or_default();
        seen.lock().unwrap().push((uri.path().to_owned(), asked));
        async move {
            let mut response: Response = body.into_response();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            for (name, value) in headers {
                response.headers_mut().insert(*name, value.parse().unwrap());
            }
            response
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    (format!("http://{address}/v1"), sent)
}

const STREAM: &[(&str, &str)] = &[("content-type", "text/event-stream")];

fn events(events: &[(&str, Value)]) -> String {
    let events = events.iter().map(|(name, data)| match *name {
        "" => format!("data: {data}\n\n"),
        name => format!("event: {name}\ndata: {data}\n\n"),
    });
    events.collect()
}

async fn ask(api: Api, url: &str, request: &Request) -> Result<Vec<Delta>, ModelError> {
    let model = HttpModel::new(api, "a-model")
        .url(url)
        .key("k")
        .build()
        .unwrap();
    let mut answer = model.answer(request).await?;
    let mut deltas = Vec::new();
    while let Some(delta) = answer.next().await {
        deltas.push(delta?);
    }
    Ok(deltas)
}

/// A conversation with a call, its result and a thought.
fn request() -> Request {
    Request {
        instructions: "Be exact.".to_owned(),
        messages: vec![
            Message::user("1 + 2?"),
            Message::Agent {
                thought: Some(Thought {
                    text: "I add.".to_owned(),
                    signature: Some("signed".to_owned()),
                }),
                text: String::new(),
                tool_uses: vec![ToolUse {
                    id: "call-1".to_owned(),
                    name: "add".to_owned(),
                    arguments: json!({"a": 1, "b": 2}),
                }],
            },
            Message::Tools {
                results: vec![ToolResult {
                    id: "call-1".to_owned(),
                    name: "add".to_owned(),
                    output: "3".into(),
                }],
            },
        ],
        tools: vec![Definition {
            name: "add".to_owned(),
            description: "Adds.".to_owned(),
            input_schema: json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
        }],
    }
}

#[tokio::test]
async fn chat_completions_stream_text_calls_and_tokens() {
    let chunk = |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let call = |function: Value| json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5,
        "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 4}}});
    let mut body = events(&[
        ("", chunk(json!({"content": "It "}), Value::Null)),
        ("", chunk(json!({"content": "is"}), Value::Null)),
        (
            "",
            chunk(
                call(json!({"name": "add", "arguments": "{\"a\":"})),
                Value::Null,
            ),
        ),
        ("", chunk(call(json!({"arguments": "1}"})), Value::Null)),
        ("", chunk(json!({}), json!("tool_calls"))),
        ("", usage),
    ]);
    body.push_str("data: [DONE]\n\n");
    let (url, sent) = serve(200, STREAM, body).await;
    let deltas = ask(Api::Openai, &url, &request()).await.unwrap();
    let tokens = Tokens {
        input: 10,
        output: 5,
        cached: 4,
        thought: 0,
    };
    let used = ToolUse {
        id: "c".to_owned(),
        name: "add".to_owned(),
        arguments: json!({"a": 1}),
    };
    let text = |text: &str| Delta::Text(text.to_owned());
    assert_eq!(
        deltas,
        [
            text("It "),
            text("is"),
            Delta::Tokens(tokens),
            Delta::ToolUse(used)
        ]
    );

    let sent = sent.lock().unwrap();
    let (path, body) = &sent[0];
    assert_eq!(path, "/v1/chat/completions");
    let roles: Vec<_> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(body["messages"][3]["tool_call_id"], "call-1");
    assert_eq!(body["tools"][0]["function"]["name"], "add");
}

#[tokio::test]
async fn messages_of_anthropic_keep_the_signature_of_thoughts() {
    let block = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let body = events(&[
        (
            "message_start",
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}),
        ),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        ),
        (
            "content_block_delta",
            block(json!({"type": "thinking_delta", "thinking": "Hm."})),
        ),
        (
            "content_block_delta",
            block(json!({"type": "signature_delta", "signature": "mine"})),
        ),
        (
            "content_block_stop",
            json!({"type": "content_block_stop", "index": 0}),
        ),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Three."}}),
        ),
        (
            "content_block_stop",
            json!({"type": "content_block_stop", "index": 1}),
        ),
        (
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}}),
        ),
        ("message_stop", json!({"type": "message_stop"})),
    ]);
    let (url, sent) = serve(200, STREAM, body).await;
    let deltas = ask(Api::Anthropic, &url, &request()).await.unwrap();
    assert!(
        deltas.contains(&Delta::Thought("Hm.".to_owned())),
        "{deltas:?}"
    );
    assert!(
        deltas.contains(&Delta::Signature("mine".to_owned())),
        "{deltas:?}"
    );
    assert!(
        deltas.contains(&Delta::Text("Three.".to_owned())),
        "{deltas:?}"
    );
    assert!(
        deltas.contains(&Delta::Stopped(Stopped::MaxTokens)),
        "{deltas:?}"
    );

    let sent = sent.lock().unwrap();
    let (path, body) = &sent[0];
    assert_eq!(path, "/v1/messages");
    let answered = &body["messages"][1]["content"];
    assert_eq!(answered[0]["signature"], "signed", "{body}");
    assert_eq!(answered[0]["thinking"], "I add.");
    assert_eq!(answered[1]["id"], "call-1");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "call-1");
}

#[tokio::test]
async fn errors_say_who_can_do_something() {
    let wait = |seconds| ErrorKind::RateLimit {
        retry_after: Some(std::time::Duration::from_secs(seconds)),
    };
    let cases: [(u16, &str, ErrorKind); 6] = [
        (401, "bad key", ErrorKind::Credentials),
        (429, "slow down", wait(7)),
        (
            400,
            "maximum context length is 8192 tokens",
            ErrorKind::TooLong,
        ),
        (400, "no such member", ErrorKind::Invalid),
        (404, "no such model", ErrorKind::Invalid),
        (529, "overloaded", ErrorKind::Unavailable),
    ];
    for (status, message, kind) in cases {
        let body = json!({"error": {"message": message}}).to_string();
        let headers = &[("content-type", "application/json"), ("retry-after", "7")];
        let (url, _) = serve(status, headers, body).await;
        let error = ask(Api::Openai, &url, &request()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        let text = error.to_string();
        assert!(text.contains("a-model") && text.contains(message), "{text}");
        assert!(
            text.contains(&status.to_string()) && !text.contains('\n'),
            "{text}"
        );
    }
    let error = ask(Api::Openai, "http://127.0.0.1:1/v1", &request())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Network, "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn a_url_that_is_none_is_named() {
    let error = HttpModel::new(Api::Openai, "m")
        .url("not a url")
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("\"not a url\""), "{error}");
}
