//! Agents as shell scripts: they send raw lines, which no typed layer repairs.

/// Functions for scripts. The session is always `s`.
pub const PRELUDE: &str = r#"
# Reads a message; its id goes to $id.
message() { IFS= read -r line || exit 0; id=${line#*'"id":'}; id=${id%%[,\}]*}; }
send() { printf '%s\n' "$1"; }
# Reads a request and answers it with a result.
answer() { message; send '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
refuse() { message; send '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":'"$1"',"message":"'"$2"'"}}'; }
start() { answer '{"protocolVersion":1}'; answer '{"sessionId":"s"}'; }
# Reads the prompt, to be answered by `end`.
prompt() { message; prompt=$id; }
end() { send '{"jsonrpc":"2.0","id":'"$prompt"',"result":{"stopReason":"'"$1"'"}}'; }
update() { send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'"$1"'}}'; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
# Calls the client; the whole answer goes to $line.
call() { send '{"jsonrpc":"2.0","id":"q","method":"'"$1"'","params":'"$2"'}'; message; }
# Asks for permission to do something of a kind; allow comes last.
ask() { call session/request_permission '{"sessionId":"s","toolCall":{"toolCallId":"c","title":"Do it","kind":"'"$1"'"},"options":[{"optionId":"1","name":"No","kind":"reject_once"},{"optionId":"2","name":"Yes","kind":"allow_once"}]}'; }
# What a message carries, in a form that fits into a string of JSON.
quoted() { printf '%s' "$line" | tr '"\\' "'/"; }
"#;

/// A script for `sh -c`.
pub fn script(text: &str) -> String {
    format!("{PRELUDE}{text}")
}
