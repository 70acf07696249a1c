//! Agents of the kit on a server, without a client.
#![allow(clippy::unwrap_used, reason = "tests")]

mod files;
mod restart;
mod steps;

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use acp_agent::model::{Delta, Message, Scripted};
use acp_agent::{Agent, Output};
use acp_sdk::v1::{
    ContentBlock, RequestPermissionOutcome, RequestPermissionRequest, SelectedPermissionOutcome,
    StopReason, TextContent,
};
use acp_server::{
    DecidePermissions, DecidedPermission, LocalTools, Policies, Server, ServerBuilder, Session,
};

/// Answers each question with an option, and counts them.
#[derive(Clone, Debug)]
struct User {
    option: &'static str,
    asked: Arc<Mutex<Vec<RequestPermissionRequest>>>,
}

impl User {
    fn who(option: &'static str) -> Self {
        Self {
            option,
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl DecidePermissions for User {
    fn decide<'a>(
        &'a self,
        _: &'a Session,
        request: &'a RequestPermissionRequest,
    ) -> Pin<Box<dyn Future<Output = Option<DecidedPermission>> + Send + 'a>> {
        Box::pin(async {
            self.asked.lock().unwrap().push(request.clone());
            let chosen = SelectedPermissionOutcome::new(self.option);
            Some(DecidedPermission {
                outcome: RequestPermissionOutcome::Selected(chosen),
                by: "the test".to_owned(),
            })
        })
    }
}

/// A server that serves files and commands itself.
fn server(agent: Agent, user: &User) -> ServerBuilder {
    let mut policies = Policies::default();
    policies.local_tools = Some(LocalTools::Fallback);
    Server::builder(agent)
        .policies(policies)
        .permissions(user.clone())
}

/// What the model was asked, in order.
type Requests = Arc<Mutex<Vec<acp_agent::model::Request>>>;

/// A model with these answers, and what it is asked.
fn model(answers: impl IntoIterator<Item = Vec<Delta>>) -> (Scripted, Requests) {
    let answers: Vec<_> = answers.into_iter().collect();
    let requests = Requests::default();
    let seen = requests.clone();
    let model = Scripted::new(move |number, request| {
        seen.lock().unwrap().push(request.clone());
        Ok(answers
            .get(number)
            .cloned()
            .unwrap_or_else(|| vec![text("done")]))
    });
    (model, requests)
}

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

async fn prompt(session: &Session, text: &str) -> StopReason {
    let handle = session.prompt(blocks(text)).unwrap();
    handle.stop_reason().await.unwrap()
}

fn blocks(text: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::Text(TextContent::new(text))]
}

/// The outputs of the tools in the last request.
fn outputs(requests: &Requests) -> Vec<Output> {
    let requests = requests.lock().unwrap();
    let last = requests.last().expect("a request");
    let results = last.messages.iter().filter_map(|message| match message {
        Message::Tools { results } => Some(results),
        _ => None,
    });
    results
        .flatten()
        .map(|result| result.output.clone())
        .collect()
}
