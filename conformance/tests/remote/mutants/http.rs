//! Faults of the HTTP transport.

use axum::http::Version;

use super::Mutant;
use super::server::{Answer, Asked, Fault, Out, TOKEN};

/// The id that checks name a connection by that does not exist.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

pub const TABLE: &[Mutant] = &[
    Mutant::new(
        "answers initialize with 201",
        &["remote.initialize"],
        Fault::response(|asked, answer| {
            if asked.calls("initialize") {
                answer.turn(200, 201);
            }
        }),
    ),
    Mutant::new(
        "has an id with a space",
        &["remote.connection-id"],
        Fault {
            request: |asked| {
                if let Some(id) = asked.connection().map(|id| id.replace(" of mine", "")) {
                    asked.set("acp-connection-id", &id);
                }
            },
            response: |asked, answer| {
                if asked.calls("initialize")
                    && let Some(id) = answer.headers.get("acp-connection-id")
                {
                    let id = format!("{} of mine", id.to_str().unwrap());
                    answer
                        .headers
                        .insert("acp-connection-id", id.parse().unwrap());
                }
            },
            ..Fault::NONE
        },
    ),
    Mutant::new(
        "accepts with 200 and a body",
        &["remote.accepted"],
        Fault::response(|asked, answer| {
            if asked.message.get("method").is_some() && answer.status == 202 {
                answer.status = 200;
                answer.body = Some("{}".to_owned());
            }
        }),
    ),
    Mutant::new(
        "accepts answers with 204",
        &["remote.answer-accepted"],
        Fault::response(|asked, answer| {
            if asked.message.get("result").is_some() {
                answer.turn(202, 204);
            }
        }),
    ),
    Mutant::new(
        "reads any content type",
        &["remote.content-type"],
        Fault::request(|asked| {
            if asked.is("POST") {
                asked.set("content-type", "application/json");
            }
        }),
    ),
    Mutant::new(
        "compares content types as text",
        &["remote.content-type-parameters"],
        Fault::response(|asked, answer| {
            let kind = asked.header("content-type");
            if kind.is_some_and(|kind| kind != "application/json") {
                answer.status = 415;
            }
        }),
    ),
    Mutant::new(
        "answers a post without connection with 404",
        &["remote.post-without-connection"],
        Fault::response(|asked, answer| {
            if asked.is("POST") && asked.connection().is_none() {
                answer.turn(400, 404);
            }
        }),
    ),
    Mutant::new(
        "answers a post to an unknown connection with 400",
        &["remote.post-to-unknown-connection"],
        Fault::response(|asked, answer| {
            if asked.is("POST") && asked.connection() == Some(UNKNOWN) {
                answer.turn(404, 400);
            }
        }),
    ),
    Mutant::new(
        "fails without a session header",
        &["remote.post-without-session"],
        Fault::response(|asked, answer| {
            if asked.calls("session/prompt") && asked.session().is_none() {
                answer.status = 500;
            }
        }),
    ),
    Mutant::new(
        "swallows batches",
        &["remote.batch"],
        Fault::response(|asked, answer| {
            if asked.message.is_array() {
                answer.turn(400, 202);
            }
        }),
    ),
    Mutant::new(
        "fails on what is no JSON",
        &["remote.broken-json"],
        Fault::response(|asked, answer| {
            let is_json = serde_json::from_slice::<serde_json::Value>(&asked.body).is_ok();
            if asked.is("POST") && !is_json {
                answer.turn(400, 500);
            }
        }),
    ),
    Mutant::new(
        "fails on what is no message",
        &["remote.not-a-message"],
        Fault::response(|asked, answer| {
            if asked.is("POST")
                && asked.message.get("jsonrpc").is_none()
                && !asked.message.is_array()
            {
                let is_json = serde_json::from_slice::<serde_json::Value>(&asked.body).is_ok();
                answer.turn(400, if is_json { 500 } else { 400 });
            }
        }),
    ),
    Mutant::new(
        "opens streams with 201",
        &["remote.event-stream", "remote.no-accept"],
        Fault::response(|asked, answer| {
            if asked.is("GET") {
                answer.turn(200, 201);
            }
        }),
    ),
    Mutant::new(
        "streams to any client",
        &["remote.accept"],
        Fault::request(|asked| {
            if asked.is("GET") && asked.headers.contains_key("accept") {
                asked.set("accept", "text/event-stream");
            }
        }),
    ),
    Mutant::new(
        "fails without Accept",
        &["remote.no-accept"],
        Fault::response(|asked, answer| {
            if asked.is("GET") && !asked.is_upgrade() && !asked.headers.contains_key("accept") {
                answer.status = 500;
            }
        }),
    ),
    Mutant::new(
        "answers a get without connection with 404",
        &["remote.get-without-connection"],
        Fault::response(|asked, answer| {
            if asked.is("GET") && asked.connection().is_none() {
                answer.turn(400, 404);
            }
        }),
    ),
    Mutant::new(
        "answers a get of an unknown connection with 400",
        &["remote.get-of-unknown-connection"],
        Fault::response(|asked, answer| {
            if asked.is("GET") && asked.connection() == Some(UNKNOWN) {
                answer.turn(404, 400);
            }
        }),
    ),
    Mutant::new(
        "answers session/new on a stream of a session",
        &["remote.connection-stream"],
        Fault::event(|event| {
            let known = event
                .asked
                .shared
                .known
                .lock()
                .unwrap()
                .iter()
                .filter(|(connection, _)| Some(connection.as_str()) == event.asked.connection())
                .count();
            if event.answers().as_deref() == Some("session/new") && known > 1 {
                return vec![Out::Instead(event.text.to_owned())];
            }
            event.pass()
        }),
    ),
    Mutant::new(
        "answers prompts on the stream of the connection",
        &["remote.session-stream", "remote.sessions-apart"],
        Fault::event(|event| {
            if event.answers().as_deref() == Some("session/prompt") {
                return vec![Out::To(None, event.text.to_owned())];
            }
            event.pass()
        }),
    )
    .may_break(&["remote.order", "remote.resume", "remote.resume-turn"]),
    Mutant::new(
        "sends updates to all sessions",
        &["remote.sessions-apart"],
        Fault::event(|event| {
            let mut outs = event.pass();
            if event.value["method"] == "session/update" {
                outs.push(Out::ToOthers(event.text.to_owned()));
            }
            outs
        }),
    ),
    Mutant::new(
        "asks on the stream of the connection",
        &["remote.agent-requests"],
        Fault::event(|event| {
            if event.value.get("method").is_some() && event.value.get("id").is_some() {
                return vec![Out::To(None, event.text.to_owned())];
            }
            event.pass()
        }),
    )
    .may_break(&["remote.resume"]),
    Mutant::new(
        "answers session/load on the stream of the session",
        &["remote.load"],
        Fault::event(|event| {
            if event.answers().as_deref() == Some("session/load") {
                return vec![Out::Instead(event.text.to_owned())];
            }
            event.pass()
        }),
    ),
    Mutant::new(
        "fails when a stream comes before its session",
        &["remote.early-session-stream", "remote.load"],
        Fault::response(|asked, answer| {
            if let (true, Some(connection), Some(session)) =
                (asked.is("GET"), asked.connection(), asked.session())
            {
                let key = (connection.to_owned(), session.to_owned());
                if !asked.shared.known.lock().unwrap().contains(&key) {
                    answer.status = 500;
                }
            }
        }),
    ),
    Mutant::new(
        "swaps a tool call and what follows",
        &["remote.order"],
        Fault::event(|event| {
            let mut held = event.held.lock().unwrap();
            if event.value["params"]["update"]["sessionUpdate"] == "tool_call" {
                held.push(event.text.to_owned());
                return Vec::new();
            }
            let mut outs = event.pass();
            if event.value["params"]["update"]["sessionUpdate"] == "tool_call_update" {
                outs.extend(held.drain(..).map(Out::Here));
            }
            outs
        }),
    )
    .may_break(&["remote.resume"]),
    Mutant::new(
        "answers twice",
        &["remote.answers-once"],
        Fault::event(|event| {
            let mut outs = event.pass();
            if event.answers().as_deref() == Some("session/new") {
                outs.extend(event.pass());
            }
            outs
        }),
    ),
    Mutant::new(
        "writes what is no message",
        &["remote.events"],
        Fault::event(|event| {
            let mut outs = event.pass();
            if event.answers().as_deref() == Some("session/prompt") {
                outs.insert(0, Out::Here("data: thinking\n\n".to_owned()));
            }
            outs
        }),
    ),
    Mutant::new(
        "answers on both streams of a session",
        &["remote.second-stream"],
        Fault {
            event: |event| {
                // A stream that was replaced gets what the new one gets.
                if event.answers().as_deref() == Some("session/prompt")
                    && !event.asked.headers.contains_key("last-event-id")
                {
                    return vec![Out::To(
                        event.asked.session().map(str::to_owned),
                        event.text.to_owned(),
                    )];
                }
                event.pass()
            },
            keeps_streams: true,
            ..Fault::NONE
        },
    )
    .alone(),
    Mutant::new(
        "ends the stream of a session after two turns",
        &["remote.stream-stays-open"],
        Fault::event(|event| {
            let mut outs = event.pass();
            if event.answers().as_deref() == Some("session/prompt") {
                let mut held = event.held.lock().unwrap();
                held.push(String::new());
                if held.len() == 2 {
                    outs.push(Out::End);
                }
            }
            outs
        }),
    ),
    Mutant::new(
        "ends the stream of a session that is closed",
        &["remote.stream-after-close"],
        Fault::event(|event| {
            let mut outs = event.pass();
            if event.answers().as_deref() == Some("session/close") {
                outs.push(Out::End);
            }
            outs
        }),
    ),
    Mutant::new(
        "writes no comments",
        &["remote.keep-alive"],
        Fault::event(|event| match event.text.starts_with(':') {
            true => Vec::new(),
            false => event.pass(),
        }),
    )
    .alone(),
    Mutant::new(
        "numbers events by their kind",
        &["remote.event-ids", "remote.resume"],
        Fault::event(|event| {
            let data: Vec<_> = event
                .text
                .lines()
                .filter(|line| line.starts_with("data:"))
                .collect();
            match data.as_slice() {
                [] => event.pass(),
                lines => vec![Out::Here(format!("id: 1\n{}\n\n", lines.join("\n")))],
            }
        }),
    )
    .may_break(&["remote.resume-turn"]),
    Mutant::new(
        "repeats the first event of a stream that continues",
        &["remote.resume"],
        Fault::event(|event| {
            let mut outs = event.pass();
            if event.count == 0
                && !event.value.is_null()
                && event.asked.headers.contains_key("last-event-id")
            {
                outs.extend(event.pass());
            }
            outs
        }),
    )
    .may_break(&["remote.resume-turn"]),
    Mutant::new(
        "repeats the last event that was read",
        &["remote.resume", "remote.resume-turn"],
        Fault::event(|event| {
            let mut outs = event.pass();
            if event.count == 0
                && !event.value.is_null()
                && let Some(cursor) = event.asked.header("last-event-id")
            {
                outs.insert(0, Out::Here(format!("id: {cursor}\ndata: {{}}\n\n")));
            }
            outs
        }),
    ),
    Mutant::new(
        "fails on a cursor that is none",
        &["remote.unknown-cursor"],
        Fault::response(|asked, answer| {
            let cursor = asked.header("last-event-id");
            if cursor.is_some_and(|cursor| cursor.starts_with("not")) {
                answer.status = 500;
            }
        }),
    ),
    Mutant::new(
        "deletes with 204",
        &["remote.delete"],
        Fault::response(|asked, answer| {
            if asked.is("DELETE") {
                answer.turn(202, 204);
            }
        }),
    ),
    Mutant::new(
        "answers what is deleted with 400",
        &["remote.deleted-is-unknown"],
        Fault::response(|asked, answer| {
            if !asked.is("DELETE") && asked.connection().is_some_and(|id| id != UNKNOWN) {
                answer.turn(404, 400);
            }
        }),
    ),
    Mutant::new(
        "leaves streams of deleted connections open",
        &["remote.delete-ends-streams"],
        Fault {
            keeps_streams: true,
            ..Fault::NONE
        },
    )
    .alone(),
    Mutant::new(
        "deletes nothing with 404",
        &["remote.delete-without-connection"],
        Fault::response(|asked, answer| {
            if asked.is("DELETE") && asked.connection().is_none() {
                answer.turn(400, 404);
            }
        }),
    ),
    Mutant::new(
        "deletes what is unknown",
        &["remote.delete-of-unknown-connection"],
        Fault::response(|asked, answer| {
            if asked.is("DELETE") && asked.connection() == Some(UNKNOWN) {
                answer.turn(404, 202);
            }
        }),
    ),
    Mutant::new(
        "ends all connections with one",
        &["remote.connections-apart"],
        Fault::response(kill_all),
    )
    .alone(),
    Mutant::new(
        "knows a session on its connection alone",
        &[
            "remote.sessions-survive",
            "remote.load",
            "remote.early-session-stream",
        ],
        Fault::request(|asked| {
            if asked.calls("session/load") {
                let mut message = asked.message.clone();
                message["params"]["sessionId"] = "another".into();
                asked.body = message.to_string().into();
                asked.headers.remove("acp-session-id");
            }
        }),
    ),
    Mutant::new(
        "has a body for every method",
        &["remote.other-methods"],
        Fault::response(|_, answer| answer.turn(405, 200)),
    ),
    Mutant::new(
        "wants no token",
        &["remote.token"],
        Fault::request(|asked| {
            if !asked.is_upgrade() {
                asked.set("authorization", &format!("Bearer {TOKEN}"));
            }
        }),
    ),
    Mutant::new(
        "wants no token for a WebSocket",
        &["remote.websocket-token"],
        Fault::request(|asked| {
            if asked.is_upgrade() {
                asked.set("authorization", &format!("Bearer {TOKEN}"));
            }
        }),
    ),
    Mutant::new(
        "serves every host",
        &["remote.foreign-host"],
        Fault::request(|asked| {
            if !asked.is_upgrade() && asked.version != Version::HTTP_2 {
                asked.set("host", "localhost");
            }
        }),
    ),
    Mutant::new(
        "serves every origin",
        &["remote.foreign-origin"],
        Fault::request(|asked| {
            if !asked.is_upgrade() {
                asked.headers.remove("origin");
            }
        }),
    ),
    Mutant::new(
        "upgrades for every host",
        &["remote.websocket-foreign-host"],
        Fault::request(|asked| {
            if asked.is_upgrade() {
                asked.set("host", "localhost");
            }
        }),
    ),
    Mutant::new(
        "upgrades for every origin",
        &["remote.websocket-foreign-origin"],
        Fault::request(|asked| {
            if asked.is_upgrade() {
                asked.headers.remove("origin");
            }
        }),
    ),
    Mutant::new(
        "has no HTTP/2",
        &["remote.http2"],
        Fault::response(|asked, answer| {
            if asked.version == Version::HTTP_2 {
                answer.status = 505;
            }
        }),
    ),
    Mutant::new(
        "reads bodies of any size",
        &["remote.large-body"],
        Fault {
            reads_all: true,
            ..Fault::NONE
        },
    )
    .alone(),
    Mutant::new(
        "reads headers of any size",
        &["remote.large-header"],
        Fault {
            header_bytes: 4 << 20,
            ..Fault::NONE
        },
    ),
];

/// With one connection all end.
fn kill_all(asked: &Asked, answer: &mut Answer) {
    let mut dead = asked.shared.dead.lock().unwrap();
    if asked.is("DELETE") && answer.status == 202 {
        dead.extend(asked.shared.open.lock().unwrap().drain());
    } else if asked.connection().is_some_and(|id| dead.contains(id)) {
        answer.status = 404;
    }
}
