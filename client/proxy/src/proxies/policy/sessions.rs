//! What the policy knows of sessions and their child sessions: their directories and tool calls.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use acp_client::PermissionRequest;
use acp_client::internal::{ANNOUNCEMENT, Calls, Converter, Ended, SessionTree, announced_child};
use acp_sdk::v1::{
    RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, ToolCallId,
};
use acp_sdk::{Meta, envelope, json};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Proxy;
use crate::mcp::sessions;
use crate::shared::lock;

/// The maximum number of sessions that are known, and of child sessions. Paths of others are judged as they are,
/// and requests by what they say.
const MOST_SESSIONS: usize = 10_000;

/// The maximum number of tool calls of a session that are known to be refused or left to the client.
const MOST_SETTLED: usize = 256;

/// The sessions of a connection. A child session has the directory and the turns of the one that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Sessions(Arc<Mutex<SessionTree<Session>>>);

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

impl Default for Sessions {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(SessionTree::new(MOST_SESSIONS))))
    }
}

impl Sessions {
    /// Adds hooks that follow the sessions, by the members that both versions have.
    pub(super) fn follow(&self, mut proxy: Proxy) -> Proxy {
        #[derive(Deserialize)]
        struct Opening {
            #[serde(default)]
            cwd: Option<PathBuf>,
        }
        for method in sessions::OPENING {
            let known = self.clone();
            proxy = proxy.on_raw_request(Some(method), move |next, params| {
                let known = known.clone();
                let text = params.as_deref().map_or("null", RawValue::get);
                let cwd = serde_json::from_str::<Opening>(text)
                    .ok()
                    .and_then(|opening| opening.cwd);
                // The agent may ask something before it answers. A fork has another id.
                let named = params.as_deref().filter(|_| method != "session/fork");
                let named = sessions::named(named);
                async move {
                    if let Some(id) = &named {
                        known.opened(id, cwd.clone());
                    }
                    let response = next.call(params).await?;
                    if let (None, Some(id)) = (named, envelope::session(&response)) {
                        known.opened(&id, cwd);
                    }
                    Ok(response)
                }
            });
        }
        let of_prompts = self.clone();
        let proxy = proxy.on_raw_request(Some("session/prompt"), move |next, params| {
            let id = params.as_deref().and_then(envelope::session);
            of_prompts.prompted(&id.unwrap_or_default());
            next.call(params)
        });
        let of_ends = self.clone();
        sessions::on_end(proxy, move |id| drop(of_ends.lock().close(id)))
    }

    fn opened(&self, id: &str, cwd: Option<PathBuf>) {
        let mut tree = self.lock();
        // What is known of an earlier time is out of date.
        tree.close(id);
        if tree.all_open().len() < MOST_SESSIONS {
            tree.open(id.into(), |_| Session {
                cwd,
                ..Session::default()
            });
        }
    }

    /// Records that a session, and all that belong to the same one of the client, work for a prompt.
    fn prompted(&self, id: &str) {
        let mut tree = self.lock();
        let root = tree.root(id).cloned();
        if let Some(session) = root.and_then(|root| tree.state(root.as_str(), Session::default)) {
            session.is_prompted = true;
        }
    }

    /// Returns the directory of a session.
    pub(super) fn cwd(&self, id: &str) -> Option<PathBuf> {
        let tree = self.lock();
        tree.all_open().get(tree.root(id)?)?.cwd.clone()
    }

    /// Returns a permission request, completed with earlier information about its tool call.
    pub(super) fn question(&self, request: RequestPermissionRequest) -> PermissionRequest {
        let id = request.session_id.clone();
        let mut tree = self.lock();
        tree.adopt_named(&id, request.meta.as_ref());
        let mut question = match tree.state(id.as_str(), Session::default) {
            Some(session) => session.calls.question(request),
            None => PermissionRequest::new(request),
        };
        drop(tree);
        question.cwd = self.cwd(id.as_str());
        question
    }

    /// Remembers that a call was refused, or is for the client to decide.
    pub(super) fn settled(&self, question: &PermissionRequest) {
        let request = &question.request;
        let mut tree = self.lock();
        if let Some(session) = tree.state(request.session_id.as_str(), Session::default) {
            if session.settled.len() >= MOST_SETTLED {
                session.settled.pop_front();
            }
            let id = request.tool_call.tool_call_id.clone();
            session.settled.push_back(id);
        }
    }

    /// Takes in an update of a protocol version. Returns the tool calls that have completed with it although they
    /// needed a permission, and that nobody was asked about.
    pub(super) fn update(
        &self,
        version: Option<u16>,
        params: Option<&RawValue>,
    ) -> Option<Vec<Ended>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named<'a> {
            #[serde(borrow)]
            session_id: Cow<'a, str>,
            #[serde(borrow)]
            update: Tag<'a>,
            #[serde(rename = "_meta", borrow)]
            meta: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tag<'a> {
            #[serde(borrow)]
            session_update: Cow<'a, str>,
        }
        let params = params?.get();
        // Most updates are texts, of which nothing more is read.
        let named: Named<'_> = serde_json::from_str(params).ok()?;
        let kind = &*named.update.session_update;
        let is_announcement = kind == ANNOUNCEMENT;
        if !is_announcement && !kind.starts_with("tool_call") {
            return None;
        }
        let id = &SessionId::from(&*named.session_id);
        let meta = named
            .meta
            .map(|meta| serde_json::from_str::<Meta>(meta.get()));
        let mut tree = self.lock();
        tree.adopt_named(id, meta.and_then(Result::ok).as_ref());
        let root = tree.all_open().get(tree.root(id.as_str())?)?;
        let (is_prompted, cwd) = (root.is_prompted, root.cwd.clone());
        if !is_prompted && !is_announcement {
            return None;
        }
        let session = tree.state(id.as_str(), Session::default)?;
        let updates = session.updates(params, version);
        if let Some(announced) = updates.iter().find_map(announced_child) {
            tree.announce(announced, id);
            return None;
        }
        let calls = &mut session.calls;
        let ended = updates
            .iter()
            .filter_map(|update| calls.remember(update, None));
        let mut ended: Vec<_> = ended.collect();
        ended.retain_mut(|ended| {
            let request = &mut ended.call.request;
            request.session_id = id.clone();
            ended.call.cwd.clone_from(&cwd);
            let id = &request.tool_call.tool_call_id;
            let is_settled = session.settled.contains(id);
            session.settled.retain(|settled| settled != id);
            !is_settled && ended.needed_permission()
        });
        Some(ended)
    }

    /// Returns the sessions that are to be cancelled so that a session does nothing more: itself, if it is a child
    /// that can be, and that of the client.
    pub(super) fn cancelled_with(&self, id: &SessionId) -> (Option<SessionId>, SessionId) {
        let tree = self.lock();
        let child = tree.child(id.as_str()).filter(|child| child.can_cancel);
        let root = tree.root(id.as_str()).unwrap_or(id);
        (child.map(|child| child.session.clone()), root.clone())
    }

    fn lock(&self) -> MutexGuard<'_, SessionTree<Session>> {
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
