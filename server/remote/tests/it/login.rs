//! An agent that requires a login: what is open over `/rpc` and REST before one.

use acp_sdk::v1::{AuthMethodAgent, StopReason};
use acp_server::{AgentInfo, Handler, HandlerResult, Login, Server, Turn};
use acp_server_remote::{Token, Tokens};

use crate::http::Host;

pub(crate) struct Closed;

impl Handler for Closed {
    type State = ();

    fn info(&self) -> AgentInfo {
        let info = AgentInfo::new("closed", "1").auth_method(AuthMethodAgent::new("key", "Key"));
        info.require_auth()
    }

    async fn authenticate(&self, _: &Login) -> HandlerResult<()> {
        Ok(())
    }

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

/// Paths of the document that are about no session.
const OF_THE_SERVER: [&str; 8] = [
    "/agents", "/health", "/healthz", "/info", "/metrics", "/readyz", "/ticket", "/tools",
];

struct Fixture {
    master: Host,
    reader: Host,
    session: String,
}

impl Fixture {
    async fn new() -> Self {
        let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
        let tokens = Tokens::new(&master).with_read_only(&reader);
        let server = Server::new(Closed);
        let session = server.create_session("/w").await.unwrap();
        let host = Host::with_rest(server, tokens).await;
        Self {
            master: host.with_token(&master),
            reader: host.with_token(&reader),
            session: session.id().to_string(),
        }
    }
}

#[tokio::test]
async fn no_route_of_sessions_is_open() {
    let all = Fixture::new().await;
    let document = all.master.at("/openapi.json").request("GET", &[], "").await;
    assert_eq!(document.status, 200);
    let document = document.finish().await.json();
    let mut count = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let of_server = OF_THE_SERVER.contains(&path.as_str());
        let route: &'static str = path
            .replace("{id}", &all.session)
            .replace("{name}", "x")
            .leak();
        for method in ["get", "post", "delete"] {
            if methods.get(method).is_none() || of_server {
                continue;
            }
            count += 1;
            let method = method.to_uppercase();
            let json = [("content-type", "application/json")];
            let opened = all.master.at(route).request(&method, &json, "{}").await;
            assert_eq!(opened.status, 403, "{method} {path}");
            let answer = opened.finish().await.json();
            assert_eq!(answer["error"], "login_required", "{method} {path}");
        }
    }
    assert!(count > 20, "{count}");
    let listed = all.reader.at("/sessions").request("GET", &[], "").await;
    assert_eq!(listed.status, 200, "readers cannot log in");
}

#[cfg(feature = "rpc")]
#[tokio::test]
async fn calls_about_sessions_need_a_login_of_the_same_websocket() {
    use crate::http::request;
    use crate::websocket::Socket;
    use serde_json::{Value, json};

    let all = Fixture::new().await;
    let rpc = all.master.at("/rpc");
    let id = all.session.as_str();
    let params = json!({
        "sessionId": id, "cwd": "/w", "mcpServers": [], "modeId": "x", "configId": "x", "value": "x",
        "prompt": [{ "type": "text", "text": "hello" }], "after": 0, "waitMs": 0,
        "requestId": format!("{id}/1"), "action": "decline", "outcome": { "outcome": "cancelled" },
    });
    for method in [
        "session_new",
        "session_load",
        "session_resume",
        "session_fork",
        "session_list",
        "session_close",
        "session_delete",
        "session_set_mode",
        "session_set_config_option",
        "session_state",
        "session_prompt",
        "session_prompt_start",
        "session_cancel",
        "session_events",
        "permission_respond",
        "elicitation_respond",
    ] {
        let call = request(1, method, params.clone());
        let answer = rpc.post(&[], &call).await.json();
        assert_eq!(answer["error"]["code"], -32000, "{method}: {answer}");
    }
    let mut socket = Socket::open(&rpc).await;
    let code = |answer: &Value| answer["error"]["code"].clone();
    let (_, refused) = socket.call("session_subscribe", params.clone()).await;
    assert_eq!(code(&refused), -32000, "{refused}");
    let (_, login) = socket
        .call("authenticate", json!({ "methodId": "key" }))
        .await;
    assert!(login["error"].is_null(), "{login}");
    let (_, list) = socket.call("session_list", json!({})).await;
    assert_eq!(list["result"]["sessions"][0]["sessionId"], id);
    // It holds also for an agent that required none before.
    let (_, logout) = socket.call("logout", json!({})).await;
    assert!(logout["error"].is_null(), "{logout}");
    let (_, refused) = socket.call("session_delete", params).await;
    assert_eq!(code(&refused), -32000, "{refused}");
}
