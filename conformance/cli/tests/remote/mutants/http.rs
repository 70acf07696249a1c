//! Faults in answers to requests.

use axum::http::Version;

use super::Mutant;
use super::server::{Answer, Asked, Fault, TOKEN};

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
