//! What the policy knows of sessions and their child sessions: their directories and tool calls.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::{iter, mem};

use acp_client::PermissionRequest;
use acp_client::internal::{
    ANNOUNCEMENT, Announced, Calls, Converter, Ended, announced_child, named_parent,
};
use acp_sdk::v1::{RequestPermissionRequest, SessionNotification, SessionUpdate, ToolCallId};
use acp_sdk::{Meta, envelope, json};
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

/// The maximum number of child sessions that are known of a session.
const MOST_CHILDREN: usize = 64;

/// The maximum number of sessions from a child session to that of the client.
const DEEPEST: usize = 16;

/// The sessions of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table(HashMap<String, Session>);

#[derive(Debug, Default)]
struct Session {
    cwd: Option<PathBuf>,
    /// The session that a child session of the agent belongs to. A child has its directory and its turns.
    parent: Option<String>,
    children: VecDeque<String>,
    /// The client may cancel the child session.
    can_cancel: bool,
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
                    let named = request["sessionId"].as_str();
                    // The agent may ask something before it answers. A fork has another id.
                    let named = named.filter(|_| method != "session/fork");
                    if let Some(id) = named {
                        known.opened(id, cwd.clone());
                    }
                    let response = next.call(params).await?;
                    let answered = value(Some(&response));
                    if let (None, Some(id)) = (named, answered["sessionId"].as_str()) {
                        known.opened(id, cwd);
                    }
                    Ok(response)
                }
            });
        }
        let of_prompts = self.clone();
        let proxy = proxy.on_raw_request(Some("session/prompt"), move |next, params| {
            let id = params.as_deref().and_then(envelope::session);
            of_prompts.lock().prompted(&id.unwrap_or_default());
            next.call(params)
        });
        let of_ends = self.clone();
        sessions::on_end(proxy, move |id| of_ends.lock().remove(id))
    }

    fn opened(&self, id: &str, cwd: Option<PathBuf>) {
        let mut table = self.lock();
        // What is known of an earlier time is out of date.
        table.remove(id);
        if table.0.len() < MOST_SESSIONS {
            let session = Session {
                cwd,
                ..Session::default()
            };
            table.0.insert(id.to_owned(), session);
        }
    }

    /// Returns the directory of a session.
    pub(super) fn cwd(&self, id: &str) -> Option<PathBuf> {
        self.lock().0.get(id)?.cwd.clone()
    }

    /// Returns a permission request, completed with earlier information about its tool call.
    pub(super) fn question(&self, request: RequestPermissionRequest) -> PermissionRequest {
        let mut table = self.lock();
        let id = request.session_id.as_str();
        table.find_parent(id, || request.meta.clone());
        let Some(session) = table.0.get(id) else {
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
        if let Some(session) = self.lock().0.get_mut(request.session_id.as_str()) {
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
            #[serde(rename = "_meta", borrow)]
            meta: Option<&'a RawValue>,
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
        let named = named.ok().filter(|named| {
            let kind = &named.update.session_update;
            kind.starts_with("tool_call") || kind == ANNOUNCEMENT
        });
        let Some(named) = named else {
            return Vec::new();
        };
        let mut table = self.lock();
        let meta = || serde_json::from_str(named.meta?.get()).ok();
        table.find_parent(&named.session_id, meta);
        let Some(session) = table.0.get_mut(&*named.session_id) else {
            return Vec::new();
        };
        if !session.is_prompted && named.update.session_update != ANNOUNCEMENT {
            return Vec::new();
        }
        let updates = session.updates(params.get(), forward.version());
        if let Some(announced) = updates.iter().find_map(announced_child) {
            table.announced(&announced, &named.session_id);
            return Vec::new();
        }
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

    /// Returns the sessions that are to be cancelled so that a session does nothing more: itself, if it can be, and
    /// that of the client, which is the last one.
    pub(super) fn cancelled_with(&self, id: &str) -> Vec<String> {
        let table = self.lock();
        let mut cancelled = Vec::new();
        if table.0.get(id).is_some_and(|session| session.can_cancel) {
            cancelled.push(id.to_owned());
        }
        cancelled.push(table.root(id).to_owned());
        cancelled
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.0)
    }
}

impl Table {
    /// Records that a session and its children work for a prompt.
    fn prompted(&mut self, id: &str) {
        let Some(session) = self.0.get_mut(id) else {
            return;
        };
        if !mem::replace(&mut session.is_prompted, true) {
            for child in session.children.clone() {
                self.prompted(&child);
            }
        }
    }

    /// Records the parent that a message of an unknown session names.
    fn find_parent(&mut self, id: &str, meta: impl FnOnce() -> Option<Meta>) {
        if self.0.contains_key(id) {
            return;
        }
        if let Some(parent) = meta().as_ref().and_then(named_parent) {
            self.adopt(id, parent.as_str());
        }
    }

    /// Records what a session has said about its child.
    fn announced(&mut self, announced: &Announced, parent: &str) {
        let id = announced.session.as_str();
        self.adopt(id, parent);
        if let Some(child) = self.0.get_mut(id).filter(|child| child.parent.is_some()) {
            child.can_cancel = announced.can_cancel.unwrap_or(child.can_cancel);
        }
    }

    /// Adds an unknown session as the child of a known one. The latest children are kept.
    fn adopt(&mut self, id: &str, parent: &str) {
        let is_full = self.0.len() >= MOST_SESSIONS;
        if self.0.contains_key(id) || is_full || self.depth(parent) >= DEEPEST {
            return;
        }
        let Some(known) = self.0.get_mut(parent) else {
            return;
        };
        known.children.push_back(id.to_owned());
        let child = Session {
            cwd: known.cwd.clone(),
            parent: Some(parent.to_owned()),
            is_prompted: known.is_prompted,
            ..Session::default()
        };
        if known.children.len() > MOST_CHILDREN
            && let Some(oldest) = known.children.pop_front()
        {
            self.remove(&oldest);
        }
        self.0.insert(id.to_owned(), child);
    }

    /// Forgets a session and its children.
    fn remove(&mut self, id: &str) {
        let Some(session) = self.0.remove(id) else {
            return;
        };
        for child in &session.children {
            self.remove(child);
        }
        let parent = session.parent.and_then(|parent| self.0.get_mut(&parent));
        if let Some(parent) = parent {
            parent.children.retain(|child| child != id);
        }
    }

    /// Returns the number of sessions that a session is below.
    fn depth(&self, id: &str) -> usize {
        self.ancestors(id).count() - 1
    }

    /// Returns the session of the client that a session belongs to.
    fn root<'a>(&'a self, id: &'a str) -> &'a str {
        self.ancestors(id).last().unwrap_or(id)
    }

    /// Returns a session and those that it is below, of which none is a child of its own: a parent is known before its
    /// child.
    fn ancestors<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a str> {
        iter::successors(Some(id), |id| self.0.get(*id)?.parent.as_deref())
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

#[cfg(test)]
mod tests {
    use super::{DEEPEST, MOST_CHILDREN, Sessions};

    #[test]
    fn child_sessions_are_bounded_and_end_with_their_parent() {
        let sessions = Sessions::default();
        sessions.opened("s", None);
        for number in 0..=MOST_CHILDREN {
            sessions.lock().adopt(&number.to_string(), "s");
        }
        assert_eq!(sessions.lock().0.len(), 1 + MOST_CHILDREN);
        assert!(!sessions.lock().0.contains_key("0"), "the oldest");
        let mut parent = "1".to_owned();
        for depth in 0..2 * DEEPEST {
            let child = format!("below {depth}");
            sessions.lock().adopt(&child, &parent);
            parent = child;
        }
        assert_eq!(sessions.lock().0.len(), MOST_CHILDREN + DEEPEST);
        // The client opens it, so that it is no child any more.
        sessions.opened("below 0", None);
        assert_eq!(sessions.lock().root("below 0"), "below 0");
        assert_eq!(sessions.lock().0.len(), 2 + MOST_CHILDREN);
        sessions.lock().remove("s");
        assert_eq!(sessions.lock().0.len(), 1);
    }
}
