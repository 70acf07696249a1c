//! The results of requests, by method, and the error.

use agent_client_protocol_schema::v1 as official;
use criterion::Criterion;
use serde_json::{Value, json};

use crate::{CODE, SESSION, WORDS, compare, config_options};

/// Our types by the names of their definitions.
mod ours {
    pub(super) use acp_sdk::RpcError as Error;
    pub(super) use acp_sdk::v1::*;
}

/// Compares the two types of one name.
macro_rules! compare {
    ($c:ident, $($method:literal $ty:ident $message:expr;)*) => {
        $(compare::<ours::$ty, official::$ty>($c, concat!($method, ", answer"), &$message);)*
    };
}

pub(crate) fn all(c: &mut Criterion) {
    compare! { c,
        "initialize" InitializeResponse initialize();
        "session/new" NewSessionResponse
            json!({"sessionId": SESSION, "modes": modes(), "configOptions": config_options()});
        "session/load" LoadSessionResponse json!({"modes": modes()});
        "session/list" ListSessionsResponse sessions();
        "session/set_mode" SetSessionModeResponse json!({});
        "session/set_config_option" SetSessionConfigOptionResponse
            json!({"configOptions": config_options()});
        "session/prompt" PromptResponse json!({"stopReason": "end_turn"});
        "session/request_permission" RequestPermissionResponse
            json!({"outcome": {"outcome": "selected", "optionId": "allow"}});
        "fs/read_text_file" ReadTextFileResponse json!({"content": CODE.repeat(5)});
        "terminal/create" CreateTerminalResponse json!({"terminalId": "term_1"});
        "terminal/output" TerminalOutputResponse
            json!({"output": format!("{WORDS}\n").repeat(20), "truncated": false, "exitStatus": {"exitCode": 0}});
        "terminal/wait_for_exit" WaitForTerminalExitResponse json!({"exitCode": 0});
        "elicitation/create" CreateElicitationResponse
            json!({"action": "accept", "content": {"name": "Anna", "count": 3}});
        "an error as" Error
            json!({"code": -32602, "message": "invalid params", "data": {"path": "/prompt/0/type"}});
    }
}

fn initialize() -> Value {
    json!({"protocolVersion": 1,
        "agentCapabilities": {"loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": {"list": {}, "resume": {}}},
        "authMethods": [{"id": "browser", "name": "Log in", "description": WORDS}],
        "agentInfo": {"name": "agent", "title": "An agent", "version": "1.2.3"}})
}

fn modes() -> Value {
    json!({"currentModeId": "ask", "availableModes": [
        {"id": "ask", "name": "Ask", "description": WORDS},
        {"id": "code", "name": "Code", "description": WORDS}]})
}

fn sessions() -> Value {
    let session = json!({"sessionId": SESSION, "cwd": "/workspace", "title": WORDS,
        "updatedAt": "2026-11-21T18:00:00Z"});
    json!({"sessions": vec![session; 5], "nextCursor": "page_2"})
}
