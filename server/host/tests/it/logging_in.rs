//! Logins of users whose browser is on another machine.

use acp_server::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::client::{Client, Script};

async fn server(script: &Script, login: &str) -> Server {
    let agent = script.agent().env("LOGIN", login);
    Server::new(agent.start().await.unwrap())
}

async fn begin(server: &Server, offered: Value) -> (Client, u32) {
    let mut client = Client::offering(server, json!({ "elicitation": offered })).await;
    let login = client.begin("authenticate", json!({ "methodId": "key" }));
    let login = login.await;
    (client, login)
}

async fn answer(client: &mut Client, question: &Value, result: Value) {
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    client.send(answer).await;
}

/// Answers one HTTP request, and returns its first line.
async fn serve(listener: &TcpListener, status: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    let request = String::from_utf8(request).unwrap();
    request.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_page_that_the_agent_prints_is_opened_by_the_client_and_its_end_is_brought_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url =
        format!("https://id.example/a?x=1&redirect_uri=http%3A%2F%2Flocalhost%3A{port}%2Fend");
    let script = Script::new();
    let server = server(&script, &url).await;
    let (mut client, login) = begin(&server, json!({ "url": {}, "form": {} })).await;
    let page = client.next().await;
    assert_eq!(page["method"], "elicitation/create");
    assert_eq!(page["params"]["mode"], "url");
    assert_eq!(page["params"]["url"], url);
    assert_eq!(page["params"]["requestId"], login);
    let message = page["params"]["message"].as_str().unwrap();
    assert!(message.contains("To log in, open"), "{message}");
    answer(&mut client, &page, json!({ "action": "accept" })).await;

    let mut form = client.next().await;
    assert_eq!(form["params"]["mode"], "form");
    assert_eq!(form["params"]["requestId"], login);
    let message = form["params"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains(&format!("http://localhost:{port}/end")),
        "{message}"
    );
    // Only the agent's port and path are requested, and what goes wrong is said.
    for (address, reason) in [
        (format!("http://localhost:{port}/other"), "must begin with"),
        ("http://localhost:1/end".to_owned(), "must begin with"),
        (format!("http://localhost:{port}/end?code=0"), "status 400"),
    ] {
        let content = json!({ "address": address });
        let values = json!({ "action": "accept", "content": content });
        answer(&mut client, &form, values).await;
        if reason.contains("400") {
            let requested = serve(&listener, "400 Bad Request").await;
            assert_eq!(requested, "GET /end?code=0 HTTP/1.1");
        }
        form = client.next().await;
        let message = form["params"]["message"].as_str().unwrap();
        assert!(message.contains(reason), "{message}");
    }
    let content = json!({ "address": format!("http://127.0.0.1:{port}/end?code=42") });
    let values = json!({ "action": "accept", "content": content });
    answer(&mut client, &form, values).await;
    assert_eq!(
        serve(&listener, "200 OK").await,
        "GET /end?code=42 HTTP/1.1"
    );
    std::fs::write(script.path("code"), "42").unwrap();
    let answered = client.answer(login).await;
    assert!(answered["error"].is_null(), "{answered}");
    let complete = &client.before[0];
    assert_eq!(complete["method"], "elicitation/complete");
    assert_eq!(
        complete["params"]["elicitationId"],
        page["params"]["elicitationId"]
    );
}

#[tokio::test]
async fn what_is_asked_is_withdrawn_when_the_login_has_ended() {
    let url = "http://id.example/?redirect_uri=http://localhost:9/end";
    let script = Script::new();
    let server = server(&script, url).await;
    // It can open no page, but has a form.
    let (mut client, login) = begin(&server, json!({ "form": {} })).await;
    let form = client.next().await;
    let message = form["params"]["message"].as_str().unwrap();
    assert!(message.contains(url), "{message}");
    std::fs::write(script.path("code"), "").unwrap();
    let answered = client.answer(login).await;
    assert!(answered["error"].is_null(), "{answered}");
    let withdrawn = match client.before.pop() {
        Some(withdrawn) => withdrawn,
        None => client.next().await,
    };
    assert_eq!(withdrawn["method"], "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], form["id"]);
}

#[tokio::test]
async fn a_user_who_refuses_a_page_is_asked_no_more() {
    let url = "http://id.example/?redirect_uri=http://localhost:9/end";
    let script = Script::new();
    let server = server(&script, url).await;
    let (mut client, login) = begin(&server, json!({ "url": {}, "form": {} })).await;
    let page = client.next().await;
    answer(&mut client, &page, json!({ "action": "decline" })).await;
    // A client without elicitations logs in as before, and after this one.
    let (mut plain, second) = begin(&server, json!({})).await;
    std::fs::write(script.path("code"), "").unwrap();
    for (client, login) in [(&mut client, login), (&mut plain, second)] {
        let answered = client.answer(login).await;
        assert!(answered["error"].is_null(), "{answered}");
        assert!(client.before.is_empty(), "{:?}", client.before);
    }
}

#[tokio::test]
async fn what_the_agent_asks_during_a_login_reaches_the_client_that_logs_in() {
    let script = Script::new();
    let server = server(&script, "form").await;
    let (mut client, login) = begin(&server, json!({ "form": {} })).await;
    let question = client.next().await;
    assert_eq!(question["params"]["message"], "Key?");
    assert_eq!(question["params"]["requestId"], login);
    let values = json!({ "action": "accept", "content": { "key": "k-1" } });
    answer(&mut client, &question, values).await;
    let answered = client.answer(login).await;
    assert!(answered["error"].is_null(), "{answered}");
    // One that cannot be asked cancels.
    let (mut plain, login) = begin(&server, json!({})).await;
    let answered = plain.answer(login).await;
    assert_eq!(answered["error"]["message"], "no key");
}
