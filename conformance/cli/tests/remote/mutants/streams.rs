//! Faults of the streams of events.

use super::Mutant;
use super::server::{Fault, Out};

/// The id that checks name a connection by that does not exist.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

pub const TABLE: &[Mutant] = &[
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
    )
    // The stream that this check has closed may still count as open.
    .may_break(&["remote.unknown-cursor"]),
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
        &[
            "remote.early-session-stream",
            "remote.load",
            "remote.sessions-survive",
        ],
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
];
