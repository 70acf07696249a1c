//! Agents with a defect in their messages.

use serde_json::{Value, json};

use crate::connection::Step::{Handle, Raw, Write};
use crate::connection::{Fault, fault};
use crate::hooks::{answers, is_request, kind, refusal, success};

pub(crate) static MESSAGES: &[Fault] = &[
    fault("base", "No defect."),
    fault(
        "ids-as-strings",
        "Answers a request with the number 1 as its id by the string \"1\".",
    )
    .outgoing(|_, mut m| {
        if m.get("method").is_none() && m["id"].is_number() {
            m["id"] = json!(m["id"].to_string());
        }
        vec![Write(m)]
    }),
    fault(
        "ids-as-floats",
        "Writes whole-numbered ids as 1.0 in responses.",
    )
    .outgoing(|_, mut m| {
        if let (None, Some(id)) = (m.get("method"), m["id"].as_i64()) {
            m["id"] = json!(id as f64);
        }
        vec![Write(m)]
    }),
    fault(
        "string-ids-dropped",
        "Never answers a request whose id is a string.",
    )
    .incoming(|_, m| {
        if is_request(&m) && m["id"].is_string() {
            vec![]
        } else {
            vec![Handle(m)]
        }
    }),
    fault(
        "notification-answered",
        "Answers every notification with a result whose id is null.",
    )
    .incoming(
        |_, m| match m.get("method").is_some() && m.get("id").is_none() {
            true => vec![
                Handle(m),
                Write(json!({"jsonrpc": "2.0", "id": null, "result": null})),
            ],
            false => vec![Handle(m)],
        },
    ),
    fault(
        "batches",
        "Writes the response to session/prompt and the update before it as an array.",
    )
    .outgoing(|memory, m| {
        if kind(&m) == "agent_message_chunk" {
            let earlier = std::mem::replace(&mut memory.held, vec![m]);
            return earlier.into_iter().map(Write).collect();
        }
        let mut held = std::mem::take(&mut memory.held);
        held.push(m);
        vec![Write(if held.len() == 1 {
            held.remove(0)
        } else {
            json!(held)
        })]
    }),
    fault(
        "unknown-method-silent",
        "Never answers a request whose method it does not know.",
    )
    .outgoing(|_, m| {
        if m["error"]["code"] == -32601 {
            vec![]
        } else {
            vec![Write(m)]
        }
    }),
    fault(
        "unknown-method-internal-error",
        "Answers an unknown method with -32603 instead of -32601.",
    )
    .outgoing(|_, mut m| {
        if m["error"]["code"] == -32601 {
            m["error"]["code"] = json!(-32603);
        }
        vec![Write(m)]
    }),
    fault(
        "unknown-method-succeeds",
        "Answers an unknown method with an empty result.",
    )
    .outgoing(|_, m| {
        if m["error"]["code"] == -32601 {
            vec![success(&m, json!({}))]
        } else {
            vec![Write(m)]
        }
    }),
    fault(
        "invalid-params-internal-error",
        "Answers invalid parameters with -32603 instead of -32602.",
    )
    .outgoing(|_, mut m| {
        if m["error"]["code"] == -32602 {
            m["error"]["code"] = json!(-32603);
        }
        vec![Write(m)]
    }),
    fault(
        "invalid-params-silent",
        "Never answers a request with invalid parameters.",
    )
    .outgoing(|_, m| {
        if m["error"]["code"] == -32602 {
            vec![]
        } else {
            vec![Write(m)]
        }
    }),
    fault("parse-error-fatal", "Exits when a line is not JSON.").incoming(|_, m| {
        if m.is_null() {
            std::process::exit(1);
        }
        vec![Handle(m)]
    }),
    fault(
        "unknown-notification-fatal",
        "Exits when it does not know a notification.",
    )
    .incoming(|_, m| {
        let known = ["session/cancel", "$/cancel_request"];
        let method = m["method"].as_str().unwrap_or("session/cancel");
        if m.get("id").is_none() && !known.contains(&method) {
            std::process::exit(1);
        }
        vec![Handle(m)]
    }),
    fault(
        "error-without-message",
        "Sends errors that have a code and no message.",
    )
    .outgoing(|_, mut m| {
        if let Some(error) = m["error"].as_object_mut() {
            error.remove("message");
        }
        vec![Write(m)]
    }),
    fault(
        "jsonrpc-missing",
        "Leaves the member `jsonrpc` out of responses.",
    )
    .outgoing(|_, mut m| {
        if m.get("method").is_none()
            && let Some(members) = m.as_object_mut()
        {
            members.remove("jsonrpc");
        }
        vec![Write(m)]
    }),
    fault(
        "result-and-null-error",
        "Sends `\"error\": null` beside the result of session/new.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new") {
            m["error"] = Value::Null;
        }
        vec![Write(m)]
    }),
    fault("answers-twice", "Answers session/new two times.").outgoing(|memory, m| {
        match answers(memory, &m, "session/new") {
            true => vec![Write(m.clone()), Write(m)],
            false => vec![Write(m)],
        }
    }),
    fault(
        "logs-on-stdout",
        "Writes a line of log text before the response to initialize.",
    )
    .outgoing(|memory, m| match memory.answered(&m) == "initialize" {
        true => vec![Raw("INFO the agent has started".into()), Write(m)],
        false => vec![Write(m)],
    }),
    fault(
        "pretty-printed",
        "Writes a message over several lines, indented.",
    )
    .outgoing(|memory, m| match memory.answered(&m) == "session/new" {
        true => vec![Raw(serde_json::to_string_pretty(&m).unwrap_or_default())],
        false => vec![Write(m)],
    }),
    fault(
        "two-on-a-line",
        "Writes the last update and the response to session/prompt on one line.",
    )
    .outgoing(|memory, m| {
        if kind(&m) == "agent_message_chunk" {
            let earlier = std::mem::replace(&mut memory.held, vec![m]);
            return earlier.into_iter().map(Write).collect();
        }
        let held: String = memory.held.drain(..).map(|held| held.to_string()).collect();
        vec![Raw(format!("{held}{m}"))]
    }),
    fault("long-lines-lost", "Ignores messages of more than 64 KiB.").incoming(|_, m| {
        if m.to_string().len() > 65_536 {
            vec![]
        } else {
            vec![Handle(m)]
        }
    }),
    fault(
        "custom-root-field",
        "Adds a field of its own to the root of the response to session/new.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new") {
            m["result"]["model"] = json!("small");
        }
        vec![Write(m)]
    }),
    fault(
        "rejects-meta",
        "Refuses requests with a member `_meta` in their parameters.",
    )
    .incoming(|_, m| {
        let refuses = is_request(&m) && m["params"].get("_meta").is_some();
        if refuses {
            vec![refusal(&m, -32602)]
        } else {
            vec![Handle(m)]
        }
    }),
];
