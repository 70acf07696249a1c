//! Writes down what the agent does on the user's machine.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use acp_sdk::HandlerResult;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Proxy;
use crate::message::value;

/// What is written of the params of a request.
type Members = &'static [&'static str];

/// Requests of the agent with an effect, or an answer that permits one.
const REQUESTS: [(&str, Members); 4] = [
    ("fs/read_text_file", &["path"]),
    ("fs/write_text_file", &["path"]),
    ("terminal/create", &["command", "args", "cwd"]),
    ("session/request_permission", &["toolCall"]),
];

/// What is written of a tool call.
const TOOL_CALL: Members = &[
    "toolCallId",
    "title",
    "kind",
    "status",
    "locations",
    "rawInput",
];

/// Creates a proxy that adds a JSON line to a file for each effect: files that are read and written,
/// commands, answers to permission requests, and tool calls with their ends.
///
/// A line has `time` (milliseconds since the Unix epoch), `session`, `what` (the method, or `tool_call`), the
/// members of the request that say what is done, and `result`: `ok`, the outcome of a permission request, or
/// the error. Contents of files are not written. A line that cannot be written fails the request.
///
/// # Errors
///
/// Fails if the file cannot be opened.
pub fn audit(file: impl AsRef<Path>) -> io::Result<Proxy> {
    let log = Arc::new(Mutex::new(append(file.as_ref())?));
    let mut proxy = Proxy::new("audit");
    for (method, members) in REQUESTS {
        let log = log.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let log = log.clone();
            async move {
                let request = value(params.as_deref());
                let result = next.call(params).await;
                let mut line = members_of(&request, members);
                line.insert("result".to_owned(), outcome(&result));
                write(&log, &request["sessionId"], method, line)?;
                result
            }
        });
    }
    Ok(
        proxy.on_raw_notification(Some("session/update"), move |forward, params| {
            let log = log.clone();
            async move {
                let update = value(params.as_deref());
                let (session, update) = (&update["sessionId"], &update["update"]);
                let kind = update["sessionUpdate"].as_str().unwrap_or_default();
                let is_over = ["completed", "failed"]
                    .contains(&update["status"].as_str().unwrap_or_default());
                if kind == "tool_call" || (kind == "tool_call_update" && is_over) {
                    write(&log, session, "tool_call", members_of(update, TOOL_CALL))?;
                }
                forward.send(params).await
            }
        }),
    )
}

/// Opens a file for lines that are added at its end, which only its owner can read.
fn append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn members_of(value: &Value, members: Members) -> Map<String, Value> {
    let member = |name: &&str| Some(((*name).to_owned(), value.get(name)?.clone()));
    members.iter().filter_map(member).collect()
}

fn outcome(result: &HandlerResult<Box<RawValue>>) -> Value {
    match result {
        Ok(result) => match value(Some(result)).get("outcome") {
            Some(outcome) => outcome.clone(),
            None => "ok".into(),
        },
        Err(error) => json!({"error": error.as_response().message}),
    }
}

fn write(
    log: &Mutex<File>,
    session: &Value,
    what: &str,
    mut line: Map<String, Value>,
) -> io::Result<()> {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    line.insert("time".to_owned(), time.into());
    line.insert("session".to_owned(), session.clone());
    line.insert("what".to_owned(), what.into());
    let line = format!("{}\n", Value::Object(line));
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    log.write_all(line.as_bytes())
}
