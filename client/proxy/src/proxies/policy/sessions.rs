//! What the policy knows of sessions: their directories and tool calls.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use acp_client::PermissionRequest;
use acp_client::internal::{Calls, Converter, Ended};
use acp_sdk::v1::{RequestPermissionRequest, SessionNotification, SessionUpdate, ToolCallId};
use acp_sdk::{envelope, json};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mcp::sessions;
use crate::mcp::sessions::OPENING;
use crate::message::value;
use crate::shared::lock;
use crate::{Proxy, RawForward};

/// The maximum number of sessions that are known. Paths of others are judged as they are, and requests by
/// what they say.
const MOST_SESSIONS: usize = 10_000;

/// The maximum number of tool calls of a session that are known to be refused or left to the client.
const MOST_SETTLED: usize = 256;

/// The sessions of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions(Arc<Mutex<HashMap<String, Session>>>);

#[derive(Debug, Default)]
struct Session {
    cwd: Option<PathBuf>,
    /// Whether tool calls are those of a turn, and not of a history that is replayed.
    is_prompted: bool,
    calls: Calls,
    /// Tool calls whose permission request was refused or answered by the client.
    settled: VecDeque<ToolCallId>,
    converter: Converter,
}

impl Sessions {
    /// Adds hooks that follow the sessions, by the members that both versions have.
    pub(super) fn follow(&self, mut proxy: Proxy) -> Proxy {
        for method in OPENING {
            let known = self.clone();
            proxy = proxy.on_raw_request(Some(method), move |next, params| {
                let (known, request) = (known.clone(), value(params.as_deref()));
                let cwd = request["cwd"].as_str().map(PathBuf::from);
                async move {
                    // The agent may ask something before it answers. A fork has another id.
                    if let (Some(id), false) =
                        (request["sessionId"].as_str(), method == "session/fork")
                    {
                        known.opened(id, cwd.clone());
                    }
                    let response = next.call(params).await?;
                    if let Some(id) = sessions::opened(&request, &value(Some(&response))) {
                        known.opened(id, cwd);
                    }
                    Ok(response)
                }
            });
        }
        let of_prompts = self.clone();
        let proxy = proxy.on_raw_request(Some("session/prompt"), move |next, params| {
            let id = params.as_deref().and_then(envelope::session);
            if let Some(session) = of_prompts.lock().get_mut(&*id.unwrap_or_default()) {
                session.is_prompted = true;
            }
            next.call(params)
        });
        let of_ends = self.clone();
        sessions::on_end(proxy, move |id| drop(of_ends.lock().remove(id)))
    }

    fn opened(&self, id: &str, cwd: Option<PathBuf>) {
        let mut sessions = self.lock();
        if sessions.len() < MOST_SESSIONS || sessions.contains_key(id) {
            let session = Session {
                cwd,
                ..Session::default()
            };
            sessions.insert(id.to_owned(), session);
        }
    }

    /// Returns the directory of a session.
    pub(super) fn cwd(&self, id: &str) -> Option<PathBuf> {
        self.lock().get(id)?.cwd.clone()
    }

    /// Returns a permission request, completed with earlier information about its tool call.
    pub(super) fn question(&self, request: RequestPermissionRequest) -> PermissionRequest {
        let sessions = self.lock();
        let Some(session) = sessions.get(request.session_id.as_str()) else {
            return PermissionRequest::new(request);
        };
        let cwd = session.cwd.clone();
        let mut question = session.calls.question(request);
        question.cwd = cwd;
        question
    }

    /// Remembers that a call was refused, or is for the client to decide.
    pub(super) fn settled(&self, question: &PermissionRequest) {
        let request = &question.request;
        if let Some(session) = self.lock().get_mut(request.session_id.as_str()) {
            if session.settled.len() >= MOST_SETTLED {
                session.settled.pop_front();
            }
            session
                .settled
                .push_back(request.tool_call.tool_call_id.clone());
        }
    }

    /// Takes in an update. Returns the tool calls that have completed with it although they needed a permission,
    /// and that nobody was asked about.
    pub(super) fn update(&self, forward: &RawForward, params: Option<&RawValue>) -> Vec<Ended> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named<'a> {
            #[serde(borrow)]
            session_id: Cow<'a, str>,
            #[serde(borrow)]
            update: Tag<'a>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tag<'a> {
            #[serde(borrow)]
            session_update: Cow<'a, str>,
        }
        let Some(params) = params else {
            return Vec::new();
        };
        // Most updates are texts, of which nothing more is read.
        let named = serde_json::from_str::<Named<'_>>(params.get());
        let named = named
            .ok()
            .filter(|named| named.update.session_update.starts_with("tool_call"));
        let Some(named) = named else {
            return Vec::new();
        };
        let mut sessions = self.lock();
        let session = sessions.get_mut(&*named.session_id);
        let Some(session) = session.filter(|session| session.is_prompted) else {
            return Vec::new();
        };
        let updates = session.updates(params.get(), forward.version());
        let ended = updates
            .iter()
            .filter_map(|update| session.calls.remember(update, None));
        let mut ended: Vec<_> = ended.collect();
        ended.retain_mut(|ended| {
            let request = &mut ended.call.request;
            request.session_id = (&*named.session_id).into();
            ended.call.cwd.clone_from(&session.cwd);
            let id = &request.tool_call.tool_call_id;
            let is_settled = session.settled.contains(id);
            session.settled.retain(|settled| settled != id);
            !is_settled && ended.needed_permission()
        });
        ended
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        lock(&self.0)
    }
}

impl Session {
    /// Returns an update in the form of version 1; none if it is invalid, which is for the client to refuse.
    fn updates(&mut self, params: &str, version: Option<u16>) -> Vec<SessionUpdate> {
        if version == Some(2) {
            let note = json::from_str::<acp_sdk::v2::UpdateSessionNotification>(params);
            let converted = note.ok().map(|note| self.converter.update(note.update));
            return converted.into_iter().flatten().collect();
        }
        let note = json::from_str::<SessionNotification>(params);
        note.ok().map(|note| note.update).into_iter().collect()
    }
}
