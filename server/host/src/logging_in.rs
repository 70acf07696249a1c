//! A login whose user is on another machine: pages that the agent prints or asks for are opened by the
//! client that logs in, and the address at which its browser ends is brought to the agent.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction,
    ElicitationAction, ElicitationFormMode, ElicitationId, ElicitationMode,
    ElicitationRequestScope, ElicitationSchema, ElicitationUrlMode,
};
use acp_sdk::{Json, RequestId};
use acp_server::internal::raw_object::RawObject;
use acp_server::{Elicitation, Login};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use super::messages::{answer_of, json, read};
use super::redirect::Redirect;

/// Pages of one login that the user is asked to open.
const PAGES: usize = 8;

/// How often the user can paste an address.
const ATTEMPTS: usize = 5;

/// Lines with URLs that wait to be read.
const WAITING: usize = 64;

/// The field of the form.
const ADDRESS: &str = "address";

/// The login that is under way, if there is one.
#[derive(Debug)]
pub(super) struct Logins {
    /// Lines with URLs that processes print.
    printed: broadcast::Sender<Arc<str>>,
    current: Mutex<Option<Login>>,
    /// Held by a login: it could not be said whose page an agent prints.
    pub(super) one: tokio::sync::Mutex<()>,
}

/// Ends the login when it is dropped.
pub(super) struct Current<'a>(&'a Logins);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl Default for Logins {
    fn default() -> Self {
        Self {
            printed: broadcast::Sender::new(WAITING),
            current: Mutex::default(),
            one: tokio::sync::Mutex::default(),
        }
    }
}

impl Logins {
    /// A process has printed a line.
    pub(super) fn line(&self, line: &str) {
        if self.printed.receiver_count() > 0 && line.contains("://") {
            // Without a receiver nobody logs in.
            let _ = self.printed.send(acp_sdk::text::single_line(line).into());
        }
    }

    /// Begins a login. The second value must be polled until it has ended: it asks its user.
    pub(super) fn begin(&self, login: &Login) -> (Current<'_>, impl Future<Output = ()> + use<>) {
        self.set(Some(login.clone()));
        let relaying = relay(login.clone(), self.printed.subscribe());
        (Current(self), relaying)
    }

    fn set(&self, login: Option<Login>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = login;
    }

    fn current(&self) -> Option<Login> {
        let current = self.current.lock();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the user who logs in what the agent asks without a session. Without a login, the answer is
    /// `cancel`.
    pub(super) async fn elicitation(&self, params: &RawObject) -> HandlerResult<Json> {
        let mut asked = Elicitation::NotOffered;
        if let Some(login) = self.current() {
            let request: CreateElicitationRequest = read(&params.to_json())?;
            asked = login.elicit(request).await.map_err(answer_of)?;
        }
        let action = match asked {
            Elicitation::Accepted(values) => {
                let mut accepted = ElicitationAcceptAction::new();
                accepted.content = (!values.is_empty()).then_some(values);
                ElicitationAction::Accept(accepted)
            }
            Elicitation::Declined => ElicitationAction::Decline,
            _ => ElicitationAction::Cancel,
        };
        json(&CreateElicitationResponse::new(action))
    }

    /// The work on a page of the login is done.
    pub(super) async fn complete(&self, id: String) {
        if let Some(login) = self.current() {
            // A client that has gone misses it.
            let _ = login.complete_elicitation(id.into()).await;
        }
    }
}

/// Asks the user to open the pages that are printed. Never completes by itself.
async fn relay(login: Login, mut printed: broadcast::Receiver<Arc<str>>) {
    let mut seen = HashSet::new();
    let mut asking = JoinSet::new();
    loop {
        match printed.recv().await {
            Ok(line) => {
                for url in urls(&line) {
                    if seen.len() < PAGES && seen.insert(url.to_owned()) {
                        asking.spawn(page(login.clone(), url.to_owned(), line.clone()));
                    }
                }
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            // The agent is dropped with its last handle, which a login has.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Returns the URLs of a line.
fn urls(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || "<>\"'`()[]".contains(c));
    let words = words.map(|word| word.trim_end_matches(['.', ',', ';', ':', '!']));
    words.filter(|word| word.starts_with("https://") || word.starts_with("http://"))
}

/// Asks the user to open a page, and for the address where it ends.
async fn page(login: Login, url: String, line: Arc<str>) {
    let id = ElicitationId::from(format!("login-{:x}", random()));
    let mode = ElicitationUrlMode::new(&id, &url, nowhere());
    let request = CreateElicitationRequest::new(
        format!("The agent says: {line}"),
        ElicitationMode::Url(mode),
    );
    let opened = login.elicit(request).await;
    let refused = matches!(
        opened,
        Ok(Elicitation::Declined | Elicitation::Cancelled) | Err(_)
    );
    if let Some(redirect) = Redirect::of(&url).filter(|_| !refused) {
        ask_address(&login, &url, &redirect).await;
        // The page is of no further use, however it ended.
        let _ = login.complete_elicitation(id).await;
    }
}

/// Asks for the address at which the browser has ended, and brings it to the agent.
async fn ask_address(login: &Login, url: &str, redirect: &Redirect) {
    let mut problem = String::new();
    for _ in 0..ATTEMPTS {
        let message = format!(
            "{problem}Log in at {url}\nIf your browser then cannot open a page at {}, paste its address \
             here.",
            redirect.address()
        );
        let Some(form) = form() else { return };
        let mode = ElicitationMode::Form(ElicitationFormMode::new(form, nowhere()));
        let request = CreateElicitationRequest::new(message, mode);
        let Ok(Elicitation::Accepted(values)) = login.elicit(request).await else {
            return;
        };
        let values = serde_json::to_value(&values).unwrap_or_default();
        match redirect
            .bring(values[ADDRESS].as_str().unwrap_or_default())
            .await
        {
            Ok(()) => return,
            Err(reason) => problem = format!("That did not work: {reason}.\n"),
        }
    }
}

fn form() -> Option<ElicitationSchema> {
    let form = json!({
        "type": "object",
        "properties": { ADDRESS: { "type": "string", "title": "Address" } },
        "required": [ADDRESS],
    });
    serde_json::from_value(form).ok()
}

/// A scope that the login replaces by its own.
fn nowhere() -> ElicitationRequestScope {
    ElicitationRequestScope::new(RequestId::from(0))
}

fn random() -> u64 {
    let mut random = [0; 8];
    // An id that another page has is still one of this connection's.
    let _ = getrandom::fill(&mut random);
    u64::from_ne_bytes(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_found_in_what_people_read() {
        let line = "Open <https://id.example/a?b=1&c=(2)> or (http://localhost:1/x), then ftp://x.";
        let found: Vec<_> = urls(line).collect();
        assert_eq!(
            found,
            ["https://id.example/a?b=1&c=", "http://localhost:1/x"]
        );
        assert_eq!(
            urls("see https://id.example/device.").next(),
            Some("https://id.example/device")
        );
        assert_eq!(urls("no url://").next(), None);
    }
}
