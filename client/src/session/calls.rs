//! Announced tool calls, for the permission requests that refer to them.
//!
//! Many agents announce a tool call with its title, locations and input, and request permission
//! with only its id. Memory: at most 256 tool calls and 1 MiB for each session.
//!
//! This is not a [`Conversation`](acp_sdk::conversation::Conversation): of contents, which may be
//! whole files, only the paths are copied for each update, and a call that has ended must not
//! answer for another one with its id.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::Json;
use acp_sdk::conversation::is_final;
use acp_sdk::v1::{
    RequestPermissionRequest, SessionUpdate, ToolCallContent, ToolCallId, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};

use crate::guard::Ended;
use crate::permission::{PermissionRequest, paths};

/// Maximum number of remembered tool calls.
const MOST_CALLS: usize = 256;

/// Maximum size of the remembered titles, paths and inputs, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Maximum size of a remembered input, in bytes. It may be the content of a file.
const LARGEST_INPUT: usize = 64 << 10;

/// The latest tool calls of a session that have not ended.
#[derive(Debug, Default)]
pub struct Calls {
    calls: VecDeque<Announced>,
    bytes: usize,
}

#[derive(Debug)]
struct Announced {
    id: ToolCallId,
    title: Option<String>,
    kind: Option<ToolKind>,
    paths: Vec<String>,
    raw_input: Option<Json>,
    /// Whether its content is a terminal of the client, which was asked for at its start.
    has_terminal: bool,
    /// The prompt that it belongs to, if the agent names it.
    prompt_id: Option<Arc<str>>,
}

/// Members of an update about a tool call.
struct News<'a> {
    id: &'a ToolCallId,
    title: Option<&'a String>,
    kind: Option<&'a ToolKind>,
    status: Option<&'a ToolCallStatus>,
    content: Option<&'a [ToolCallContent]>,
    locations: Option<&'a [ToolCallLocation]>,
    raw_input: Option<&'a Json>,
}

impl<'a> News<'a> {
    fn of(update: &'a SessionUpdate) -> Option<Self> {
        Some(match update {
            SessionUpdate::ToolCall(call) => Self {
                id: &call.tool_call_id,
                title: Some(&call.title),
                kind: call.kind.as_ref(),
                status: call.status.as_ref(),
                content: Some(&call.content),
                locations: Some(&call.locations),
                raw_input: call.raw_input.as_ref(),
            },
            SessionUpdate::ToolCallUpdate(call) => Self {
                id: &call.tool_call_id,
                title: call.title.as_ref(),
                kind: call.kind.as_ref(),
                status: call.status.as_ref(),
                content: call.content.as_deref(),
                locations: call.locations.as_deref(),
                raw_input: call.raw_input.as_ref(),
            },
            _ => return None,
        })
    }

    fn has_ended(&self) -> bool {
        is_final(self.status)
    }
}

impl Announced {
    fn new(id: &ToolCallId) -> Self {
        Self {
            id: id.clone(),
            title: None,
            kind: None,
            paths: Vec::new(),
            raw_input: None,
            has_terminal: false,
            prompt_id: None,
        }
    }

    fn update(&mut self, news: &News<'_>) {
        if let Some(title) = news.title {
            self.title = Some(title.clone());
        }
        if let Some(kind) = news.kind {
            self.kind = Some(kind.clone());
        }
        let paths = paths(news.locations, news.content);
        if !paths.is_empty() {
            self.paths = paths;
        }
        let is_terminal = |piece: &ToolCallContent| matches!(piece, ToolCallContent::Terminal(_));
        self.has_terminal |= news.content.unwrap_or_default().iter().any(is_terminal);
        if let Some(input) = news.raw_input {
            // If an input exceeds the limit, the previous input is dropped, because it is outdated.
            self.raw_input = Some(input.clone()).filter(|input| input.get().len() <= LARGEST_INPUT);
        }
    }

    /// Returns what is known of the call. Its session is filled in by the caller.
    fn into_question(self) -> PermissionRequest {
        let call = ToolCallUpdate::new(self.id);
        let request = RequestPermissionRequest::new("", call, Vec::new());
        let mut question = PermissionRequest::new(request);
        question.title = self.title;
        question.kind = self.kind;
        question.paths = self.paths;
        question.raw_input = self.raw_input;
        question
    }

    fn bytes(&self) -> usize {
        let paths: usize = self.paths.iter().map(String::len).sum();
        let title = self.title.as_ref().map_or(0, String::len);
        title + paths + self.raw_input.as_ref().map_or(0, |input| input.get().len())
    }
}

impl Calls {
    /// Remembers an update of a tool call. Returns the call if it has ended and the client did not run
    /// it.
    pub fn remember(
        &mut self,
        update: &SessionUpdate,
        prompt_id: Option<&Arc<str>>,
    ) -> Option<Ended> {
        let news = News::of(update)?;
        let known = self.take(news.id);
        let mut call = known.unwrap_or_else(|| Announced::new(news.id));
        call.update(&news);
        call.prompt_id = prompt_id.cloned();
        if !news.has_ended() {
            self.put(call);
            return None;
        }
        (!call.has_terminal).then(|| Ended {
            has_completed: news.status == Some(&ToolCallStatus::Completed),
            call: call.into_question(),
        })
    }

    /// Returns a permission request, completed with earlier information about its tool call.
    pub fn question(&self, request: RequestPermissionRequest) -> PermissionRequest {
        let known = self.find(&request.tool_call.tool_call_id);
        let mut question = PermissionRequest::new(request);
        let Some(known) = known else {
            return question;
        };
        question.title = question.title.or_else(|| known.title.clone());
        question.kind = question.kind.or_else(|| known.kind.clone());
        if question.paths.is_empty() {
            question.paths.clone_from(&known.paths);
        }
        if question.raw_input.as_ref().is_none_or(says_nothing) {
            question.raw_input.clone_from(&known.raw_input);
        }
        question
    }

    /// Returns the prompt that a tool call belongs to, if the call is known.
    pub(super) fn prompt_of(&self, id: &ToolCallId) -> Option<Option<&str>> {
        self.find(id).map(|call| call.prompt_id.as_deref())
    }

    fn find(&self, id: &ToolCallId) -> Option<&Announced> {
        self.calls.iter().find(|call| call.id == *id)
    }

    fn take(&mut self, id: &ToolCallId) -> Option<Announced> {
        let index = self.calls.iter().position(|call| call.id == *id)?;
        let call = self.calls.remove(index)?;
        self.bytes -= call.bytes();
        Some(call)
    }

    fn put(&mut self, call: Announced) {
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

fn says_nothing(input: &Json) -> bool {
    matches!(input.get().trim(), "null" | "{}" | "[]" | "\"\"")
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{ToolCall, ToolCallUpdate};
    use serde_json::json;

    use super::*;

    fn json(value: &serde_json::Value) -> Json {
        Json::new(value).unwrap()
    }

    fn announce(calls: &mut Calls, call: ToolCall) {
        let _ = calls.remember(&SessionUpdate::ToolCall(call), None);
    }

    fn ask(calls: &Calls, call: ToolCallUpdate) -> PermissionRequest {
        calls.question(RequestPermissionRequest::new("s", call, vec![]))
    }

    fn call(id: &str, path: &str) -> ToolCall {
        ToolCall::new(id, "Edit").with_locations(vec![ToolCallLocation::new(path)])
    }

    #[test]
    fn questions_know_title_and_kind() {
        let mut calls = Calls::default();
        announce(
            &mut calls,
            ToolCall::new("a", "Read it").with_kind(ToolKind::Read),
        );
        let renamed = ToolCallUpdate::new("a").with_title("Read that");
        let _ = calls.remember(&SessionUpdate::ToolCallUpdate(renamed), None);
        let question = ask(&calls, ToolCallUpdate::new("a"));
        assert_eq!(question.title.as_deref(), Some("Read that"));
        assert_eq!(question.kind, Some(ToolKind::Read));
        let question = ask(&calls, ToolCallUpdate::new("a").with_kind(ToolKind::Edit));
        assert_eq!(question.kind, Some(ToolKind::Edit), "the question is newer");
        assert_eq!(ask(&calls, ToolCallUpdate::new("b")).kind, None);
    }

    #[test]
    fn questions_know_paths_and_input_unless_they_say_more() {
        let mut calls = Calls::default();
        let input = json(&json!({"command": "ls"}));
        announce(
            &mut calls,
            call("1", "/dir/a").with_raw_input(input.clone()),
        );
        let question = ask(&calls, ToolCallUpdate::new("1"));
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
    fn calls_that_have_ended_are_forgotten() {
        let mut calls = Calls::default();
        announce(&mut calls, call("1", "/a"));
        announce(
            &mut calls,
            call("1", "/a").with_status(ToolCallStatus::Completed),
        );
        assert!(ask(&calls, ToolCallUpdate::new("1")).paths.is_empty());
        assert_eq!((calls.calls.len(), calls.bytes), (0, 0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut calls = Calls::default();
        for id in 0..1000 {
            announce(&mut calls, ToolCall::new(id.to_string(), ""));
        }
        assert_eq!(calls.calls.len(), MOST_CALLS);
        let input = json(&json!({"content": "x".repeat(60_000)}));
        for id in 0..1000 {
            let id = id.to_string();
            announce(&mut calls, call(&id, "/a").with_raw_input(input.clone()));
        }
        assert!(calls.bytes <= MOST_BYTES && calls.calls.len() > 10);
        let huge = json(&json!({"content": "x".repeat(LARGEST_INPUT)}));
        announce(&mut calls, call("1", "/a").with_raw_input(huge));
        assert_eq!(ask(&calls, ToolCallUpdate::new("1")).raw_input, None);
    }
}
