//! What the agent asks the client, again on each connection until it is answered.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::agent::{Agent, State};

pub(super) struct Call {
    method: &'static str,
    params: Value,
    answered: oneshot::Sender<Value>,
}

impl Agent {
    pub(super) async fn ask(&self, session: &str, name: &str) {
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let call = json!({"toolCallId": name, "title": name, "kind": "edit"});
        let params = json!({"sessionId": session, "toolCall": call, "options": options});
        let answer = self
            .call(session, "session/request_permission", params)
            .await;
        let outcome = &answer["result"]["outcome"]["outcome"];
        let expected = match self.is_cancelled(session) {
            true => outcome == "cancelled" || outcome == "selected",
            false => outcome == "selected",
        };
        assert!(expected, "{name}: {answer}");
    }

    pub(super) async fn read(&self, session: &str, name: &str) {
        let params = json!({"sessionId": session, "path": format!("/{name}")});
        let answer = self.call(session, "fs/read_text_file", params).await;
        assert_eq!(
            answer["result"]["content"],
            format!("content of /{name}"),
            "{answer}"
        );
    }

    /// Calls the client, again on each connection until it answers.
    async fn call(&self, session: &str, method: &'static str, params: Value) -> Value {
        let (answered, answer) = oneshot::channel();
        let name = params["path"]
            .as_str()
            .or(params["toolCall"]["title"].as_str());
        let what = format!("{method} {}", name.unwrap());
        {
            let mut state = self.state();
            let of = state.sessions.get_mut(session).unwrap();
            of.open.push(Some(Call {
                method,
                params,
                answered,
            }));
            let index = of.open.len() - 1;
            let line = of.attached;
            Self::send_call(&mut state, line, session, index);
        }
        match timeout(Duration::from_secs(3600), answer).await {
            Ok(Ok(answer)) => answer,
            // The turn ends with its connection.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => panic!("{what} is not answered"),
        }
    }

    fn send_call(state: &mut State, line: u64, session: &str, index: usize) {
        let Some(current) = state.line.as_mut().filter(|current| current.number == line) else {
            return;
        };
        let Some(call) = &state.sessions[session].open[index] else {
            return;
        };
        let id = current.requests;
        current.requests += 1;
        current.calls.insert(id, (session.to_owned(), index));
        let (method, params) = (call.method, &call.params);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let _ = current.sender.send(message.to_string().into());
    }

    pub(super) fn repeat_calls(&self, session: &str) {
        let mut state = self.state();
        let (calls, line) = {
            let of = &state.sessions[session];
            (of.open.len(), of.attached)
        };
        for index in 0..calls {
            Self::send_call(&mut state, line, session, index);
        }
    }

    pub(super) fn answered(&self, line: u64, message: Value) {
        let mut state = self.state();
        let Some(current) = state.line.as_mut().filter(|current| current.number == line) else {
            return;
        };
        let id = message["id"].as_u64().unwrap();
        let call = current.calls.remove(&id);
        let (session, index) = call.unwrap_or_else(|| panic!("no call has the id of {message}"));
        let session = state.sessions.get_mut(&session).unwrap();
        if let Some(call) = session.open.get_mut(index).and_then(Option::take) {
            let _ = call.answered.send(message);
        }
    }
}
