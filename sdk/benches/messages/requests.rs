//! The params of requests and of the other notifications, by method.

use acp_sdk::v1 as ours;
use agent_client_protocol_schema::v1 as official;
use criterion::Criterion;
use serde_json::{Value, json};

use crate::{CODE, FILE, SESSION, compare, mcp_servers, text};

/// Compares the two types of one name.
macro_rules! compare {
    ($c:ident, $($method:literal $ty:ident $message:expr;)*) => {
        $(compare::<ours::$ty, official::$ty>($c, $method, &$message);)*
    };
}

pub(crate) fn all(c: &mut Criterion) {
    let terminal = json!({"sessionId": SESSION, "terminalId": "term_1"});
    compare! { c,
        "initialize" InitializeRequest initialize();
        "authenticate" AuthenticateRequest json!({"methodId": "browser"});
        "session/new" NewSessionRequest json!({"cwd": "/workspace", "mcpServers": mcp_servers()});
        "session/load" LoadSessionRequest
            json!({"sessionId": SESSION, "cwd": "/workspace", "mcpServers": mcp_servers()});
        "session/list" ListSessionsRequest json!({"cwd": "/workspace", "cursor": "page_2"});
        "session/set_mode" SetSessionModeRequest json!({"sessionId": SESSION, "modeId": "code"});
        "session/set_config_option" SetSessionConfigOptionRequest
            json!({"sessionId": SESSION, "configId": "model", "value": "large"});
        "session/prompt" PromptRequest prompt();
        "session/prompt, 50 kB of image" PromptRequest picture();
        "session/cancel" CancelNotification json!({"sessionId": SESSION});
        "$/cancel_request" CancelRequestNotification json!({"requestId": 12});
        "session/request_permission" RequestPermissionRequest permission();
        "fs/read_text_file" ReadTextFileRequest
            json!({"sessionId": SESSION, "path": FILE, "line": 10, "limit": 50});
        "fs/write_text_file" WriteTextFileRequest
            json!({"sessionId": SESSION, "path": FILE, "content": CODE.repeat(5)});
        "terminal/create" CreateTerminalRequest terminal_create();
        "terminal/output" TerminalOutputRequest terminal;
        "elicitation/create" CreateElicitationRequest elicitation();
        "elicitation/complete" CompleteElicitationNotification json!({"elicitationId": "elic_1"});
    }
}

fn initialize() -> Value {
    json!({"protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true},
        "clientInfo": {"name": "editor", "title": "An editor", "version": "1.2.3"}})
}

fn prompt() -> Value {
    json!({"sessionId": SESSION, "prompt": [
        text("Look at this file, please."),
        {"type": "resource", "resource": {"uri": "file:///workspace/src/main.rs",
            "mimeType": "text/x-rust", "text": "fn main() {}\n".repeat(20)}}]})
}

fn picture() -> Value {
    json!({"sessionId": SESSION, "prompt": [
        text("What is this?"),
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoA".repeat(4200)}]})
}

fn permission() -> Value {
    json!({"sessionId": SESSION,
        "toolCall": {"toolCallId": "call_1", "title": "Run a command", "kind": "execute"},
        "options": [
            {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
            {"optionId": "reject", "name": "Reject", "kind": "reject_once"}]})
}

fn terminal_create() -> Value {
    json!({"sessionId": SESSION, "command": "cargo", "args": ["test", "--all"],
        "env": [{"name": "RUST_LOG", "value": "debug"}], "cwd": "/workspace",
        "outputByteLimit": 1_048_576})
}

fn elicitation() -> Value {
    json!({"sessionId": SESSION, "mode": "form", "message": "Which name?",
        "requestedSchema": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name", "maxLength": 50},
            "count": {"type": "integer", "minimum": 1, "default": 3}}}})
}
