//! What the agent has announced about the tool calls of open sessions.
//!
//! Many agents announce a tool call with its locations and input, and ask for permission with
//! nothing but its id. Memory: at most 256 tool calls and 1 MiB for each open session.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::Json;
use acp_sdk::v1::{
    SessionId, SessionNotification, SessionUpdate, ToolCallContent, ToolCallId, ToolCallLocation,
    ToolCallStatus,
};

use super::Question;

/// Tool calls that are remembered for each session.
const MOST_CALLS: usize = 256;

/// Bytes of paths and input that are remembered for each session.
const MOST_BYTES: usize = 1 << 20;

/// The largest input that is remembered, in bytes. It may be the content of a file.
const LARGEST_INPUT: usize = 64 << 10;

/// Tool calls of all open sessions.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedCalls {
    sessions: Mutex<HashMap<SessionId, OpenSession>>,
}

#[derive(Debug)]
struct OpenSession {
    cwd: PathBuf,
    calls: VecDeque<AnnouncedCall>,
    bytes: usize,
}

#[derive(Debug)]
struct AnnouncedCall {
    id: ToolCallId,
    paths: Vec<String>,
    raw_input: Option<Json>,
}

impl AnnouncedCall {
    fn bytes(&self) -> usize {
        let paths: usize = self.paths.iter().map(String::len).sum();
        paths + self.raw_input.as_ref().map_or(0, |input| input.get().len())
    }
}

impl AnnouncedCalls {
    /// Remembers tool calls of this session from now on.
    pub(crate) fn opened(&self, session: &SessionId, cwd: &Path) {
        let opened = OpenSession {
            cwd: cwd.to_owned(),
            calls: VecDeque::new(),
            bytes: 0,
        };
        self.lock().insert(session.clone(), opened);
    }

    /// Forgets a session.
    pub(crate) fn closed(&self, session: &SessionId) {
        self.lock().remove(session);
    }

    /// Takes in what an update says about a tool call.
    pub(crate) fn update(&self, note: &SessionNotification) {
        let (id, status, content, locations, raw_input) = match &note.update {
            SessionUpdate::ToolCall(call) => (
                &call.tool_call_id,
                call.status.as_ref(),
                Some(call.content.as_slice()),
                Some(call.locations.as_slice()),
                call.raw_input.as_ref(),
            ),
            SessionUpdate::ToolCallUpdate(call) => (
                &call.tool_call_id,
                call.status.as_ref(),
                call.content.as_deref(),
                call.locations.as_deref(),
                call.raw_input.as_ref(),
            ),
            _ => return,
        };
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(&note.session_id) else {
            return;
        };
        let known = session.take(id);
        if matches!(
            status,
            Some(ToolCallStatus::Completed | ToolCallStatus::Failed)
        ) {
            return;
        }
        let mut call = known.unwrap_or_else(|| AnnouncedCall {
            id: id.clone(),
            paths: Vec::new(),
            raw_input: None,
        });
        let paths = paths(locations, content);
        if !paths.is_empty() {
            call.paths = paths;
        }
        if let Some(input) = raw_input {
            // An input that is too long to be kept must not leave an older one in its place.
            call.raw_input = Some(input.clone()).filter(|input| input.get().len() <= LARGEST_INPUT);
        }
        session.put(call);
    }

    /// Adds what was announced to a question.
    pub(crate) fn complete(&self, mut question: Question) -> Question {
        let sessions = self.lock();
        let Some(session) = sessions.get(&question.request.session_id) else {
            return question;
        };
        question.cwd = Some(session.cwd.clone());
        let id = &question.request.tool_call.tool_call_id;
        if let Some(known) = session.calls.iter().find(|call| call.id == *id) {
            if question.paths.is_empty() {
                question.paths.clone_from(&known.paths);
            }
            if question.raw_input.as_ref().is_none_or(says_nothing) {
                question.raw_input.clone_from(&known.raw_input);
            }
        }
        question
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, OpenSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenSession {
    fn take(&mut self, id: &ToolCallId) -> Option<AnnouncedCall> {
        let index = self.calls.iter().position(|call| call.id == *id)?;
        let call = self.calls.remove(index)?;
        self.bytes -= call.bytes();
        Some(call)
    }

    fn put(&mut self, call: AnnouncedCall) {
        self.bytes += call.bytes();
        self.calls.push_back(call);
        while self.calls.len() > MOST_CALLS || self.bytes > MOST_BYTES {
            let Some(oldest) = self.calls.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes();
        }
    }
}

/// Returns the paths of locations and diffs.
pub(super) fn paths(
    locations: Option<&[ToolCallLocation]>,
    content: Option<&[ToolCallContent]>,
) -> Vec<String> {
    let locations = locations.unwrap_or_default().iter();
    let mut paths: Vec<_> = locations.map(|place| place.path.to_string()).collect();
    for piece in content.unwrap_or_default() {
        if let ToolCallContent::Diff(diff) = piece {
            paths.push(diff.path.to_string());
        }
    }
    paths
}

fn says_nothing(input: &Json) -> bool {
    matches!(input.get().trim(), "null" | "{}" | "[]" | "\"\"")
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{RequestPermissionRequest, ToolCall, ToolCallUpdate};
    use serde_json::json;

    use super::*;

    fn json(value: &serde_json::Value) -> Json {
        Json::new(value).unwrap()
    }

    fn announce(calls: &AnnouncedCalls, call: ToolCall) {
        let update = SessionUpdate::ToolCall(call);
        calls.update(&SessionNotification::new("s", update));
    }

    fn ask(calls: &AnnouncedCalls, call: ToolCallUpdate) -> Question {
        let request = RequestPermissionRequest::new("s", call, vec![]);
        calls.complete(Question::new(request))
    }

    fn call(id: &str, path: &str) -> ToolCall {
        ToolCall::new(id, "Edit").with_locations(vec![ToolCallLocation::new(path)])
    }

    #[test]
    fn a_question_has_what_was_announced_unless_it_says_more() {
        let calls = AnnouncedCalls::default();
        calls.opened(&"s".into(), Path::new("/dir"));
        let input = json(&json!({"command": "ls"}));
        announce(&calls, call("1", "/dir/a").with_raw_input(input.clone()));
        let question = ask(&calls, ToolCallUpdate::new("1"));
        assert_eq!(question.cwd.as_deref(), Some(Path::new("/dir")));
        assert_eq!(question.paths, ["/dir/a"]);
        assert_eq!(question.raw_input, Some(input.clone()));
        let empty = ToolCallUpdate::new("1").with_raw_input(json(&json!({})));
        assert_eq!(ask(&calls, empty).raw_input, Some(input));
        let newer = json(&json!({"command": "rm"}));
        let asked = ToolCallUpdate::new("1")
            .with_raw_input(newer.clone())
            .with_locations(vec![ToolCallLocation::new("/dir/b")]);
        let question = ask(&calls, asked);
        assert_eq!(
            (question.paths, question.raw_input),
            (vec!["/dir/b".to_owned()], Some(newer))
        );
    }

    #[test]
    fn calls_that_have_ended_and_sessions_that_are_closed_are_forgotten() {
        let calls = AnnouncedCalls::default();
        announce(&calls, call("1", "/a"));
        assert!(ask(&calls, ToolCallUpdate::new("1")).paths.is_empty());
        calls.opened(&"s".into(), Path::new("/dir"));
        announce(&calls, call("1", "/a"));
        announce(
            &calls,
            call("1", "/a").with_status(ToolCallStatus::Completed),
        );
        assert!(ask(&calls, ToolCallUpdate::new("1")).paths.is_empty());
        calls.closed(&"s".into());
        assert_eq!(ask(&calls, ToolCallUpdate::new("1")).cwd, None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let calls = AnnouncedCalls::default();
        calls.opened(&"s".into(), Path::new("/dir"));
        let input = json(&json!({"content": "x".repeat(60_000)}));
        for id in 0..1000 {
            let id = id.to_string();
            announce(&calls, call(&id, "/a").with_raw_input(input.clone()));
        }
        let sessions = calls.lock();
        let session = &sessions[&SessionId::from("s")];
        assert!(session.bytes <= MOST_BYTES && session.calls.len() > 10);
        drop(sessions);
        let huge = json(&json!({"content": "x".repeat(LARGEST_INPUT)}));
        announce(&calls, call("1", "/a").with_raw_input(huge));
        assert_eq!(ask(&calls, ToolCallUpdate::new("1")).raw_input, None);
    }
}
