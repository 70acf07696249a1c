//! What the client is about to do for an agent, as a permission request.

use std::path::PathBuf;

use acp_sdk::Json;
use acp_sdk::text::command_line;
use acp_sdk::v1::{
    CreateTerminalRequest, Diff, PermissionOption, PermissionOptionKind, ReadTextFileRequest,
    RequestPermissionRequest, SessionId, ToolCallContent, ToolCallLocation, ToolCallUpdate,
    ToolKind, WriteTextFileRequest,
};
use serde_json::json;

use crate::permission::{ALL_CHANGES, Asker, PermissionRequest};

/// A request of the agent that the client serves.
#[derive(Debug, Clone, Copy)]
pub enum Effect<'a> {
    /// Reads a file.
    Read(&'a ReadTextFileRequest),
    /// Writes a file.
    Write(&'a WriteTextFileRequest),
    /// Starts a command.
    Run(&'a CreateTerminalRequest),
}

/// The options of a request of the client itself.
const OPTIONS: [(&str, &str, PermissionOptionKind); 4] = [
    ("allow", "Allow", PermissionOptionKind::AllowOnce),
    (
        "always",
        "Always allow this",
        PermissionOptionKind::AllowAlways,
    ),
    ("reject", "Reject", PermissionOptionKind::RejectOnce),
    (
        "never",
        "Always reject this",
        PermissionOptionKind::RejectAlways,
    ),
];

impl Effect<'_> {
    /// Returns the session of the request.
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Read(request) => &request.session_id,
            Self::Write(request) => &request.session_id,
            Self::Run(request) => &request.session_id,
        }
    }

    /// Returns what the client is about to do, for messages.
    pub fn what(&self) -> String {
        match self {
            Self::Read(request) => format!("reading {}", request.path),
            Self::Write(request) => format!("writing {}", request.path),
            Self::Run(request) => format!("running {}", words(request)),
        }
    }

    /// Returns the request. `old` is the present text of a file that is written, for a person who sees
    /// the change; without it the text is left out.
    pub fn question(&self, cwd: PathBuf, old: Option<Option<String>>) -> PermissionRequest {
        let (method, title, kind) = match self {
            Self::Read(request) => (
                "fs/read_text_file",
                format!("Read {}", request.path),
                ToolKind::Read,
            ),
            Self::Write(request) => (
                "fs/write_text_file",
                format!("Write {}", request.path),
                ToolKind::Edit,
            ),
            Self::Run(request) => (
                "terminal/create",
                format!("Run {}", words(request)),
                ToolKind::Execute,
            ),
        };
        // No tool call has this id: the agent does not say to which one its request belongs.
        let mut call = ToolCallUpdate::new(method)
            .with_title(title)
            .with_kind(kind);
        match self {
            Self::Read(request) => call.locations = located(&request.path),
            Self::Write(request) => {
                call.locations = located(&request.path);
                call.content = old.map(|old| {
                    let mut diff = Diff::new(request.path.clone(), request.content.clone());
                    diff.old_text = old;
                    vec![ToolCallContent::Diff(diff)]
                });
            }
            Self::Run(request) => call.raw_input = Some(input(request)),
        }
        let mut offered = options(&OPTIONS);
        if let Self::Write(_) = self {
            let name = "Allow all changes of files in this session";
            let kind = PermissionOptionKind::AllowAlways;
            offered.insert(2, PermissionOption::new(ALL_CHANGES, name, kind));
        }
        let request = RequestPermissionRequest::new(self.session().clone(), call, offered);
        let mut question = PermissionRequest::new(request);
        question.asker = Asker::Client;
        question.cwd = Some(cwd);
        question
    }
}

/// Returns the question whether an agent may call a tool of an MCP server in this process; the session is empty
/// if it is not known.
pub fn tool_question(
    session: &str,
    server: &str,
    tool: &str,
    arguments: Option<Json>,
) -> PermissionRequest {
    let mut call = ToolCallUpdate::new("mcp/message")
        .with_title(format!("Call the tool {tool} of {server}"))
        .with_kind(ToolKind::Other);
    call.raw_input = arguments;
    let request = RequestPermissionRequest::new(session, call, options(&OPTIONS));
    let mut question = PermissionRequest::new(request);
    question.asker = Asker::Client;
    question
}

/// Creates the options of a request of the client.
pub(super) fn options(all: &[(&str, &str, PermissionOptionKind)]) -> Vec<PermissionOption> {
    let option = |(id, name, kind): &(&str, &str, PermissionOptionKind)| {
        PermissionOption::new(*id, *name, kind.clone())
    };
    all.iter().map(option).collect()
}

fn located(path: &str) -> Option<Vec<ToolCallLocation>> {
    Some(vec![ToolCallLocation::new(path)])
}

/// Returns the program and its arguments on one line.
fn words(request: &CreateTerminalRequest) -> String {
    command_line(std::iter::once(&request.command).chain(&request.args))
}

/// Returns the members that rules compare.
fn input(request: &CreateTerminalRequest) -> Json {
    let mut input = json!({ "command": request.command, "args": request.args });
    if let Some(cwd) = &request.cwd {
        input["cwd"] = json!(cwd);
    }
    if !request.env.is_empty() {
        let variables = request
            .env
            .iter()
            .map(|var| (var.name.clone(), json!(var.value)));
        input["env"] = variables.collect();
    }
    Json::from(input)
}
