//! Faults of the WebSocket transport.

use serde_json::{Value, json};

use super::Mutant;
use super::frame::{Frame, Opcode};
use super::server::{Act, Fault};

fn message(frame: &Frame) -> Value {
    let is_text = frame.opcode == Opcode::TEXT && frame.is_last;
    let message = is_text.then(|| serde_json::from_slice(&frame.payload).ok());
    message.flatten().unwrap_or_default()
}

fn pass(frame: Frame) -> Vec<Act> {
    vec![Act::Pass(frame)]
}

fn text(message: &Value) -> Frame {
    Frame::new(Opcode::TEXT, message.to_string())
}

/// A frame of the server, which has no mask.
fn of_server(message: &Value) -> Frame {
    Frame {
        is_masked: false,
        ..text(message)
    }
}

/// Makes the answer to a prompt an error of the model.
pub fn in_trouble(frame: Frame) -> Vec<Act> {
    let answer = message(&frame);
    if answer.pointer("/result/stopReason").is_none() {
        return pass(frame);
    }
    let error = json!({"code": -32603, "message": "overloaded"});
    pass(of_server(
        &json!({"jsonrpc": "2.0", "id": answer["id"], "error": error}),
    ))
}

pub const TABLE: &[Mutant] = &[
    // Sound.
    Mutant::new(
        "does all that it may",
        &[],
        Fault {
            response: |asked, answer| {
                // It implements other methods nowhere.
                answer.turn(405, 501);
                let Some(connection) = asked.connection().map(str::to_owned) else {
                    return;
                };
                // It accepts DELETE, and ends the connection afterwards.
                let mut dead = asked.shared.dead.lock().unwrap();
                if asked.is("DELETE") {
                    dead.insert(connection.clone());
                } else if dead.contains(&connection) {
                    let streams = asked.shared.streams.lock().unwrap();
                    if streams
                        .get(&connection)
                        .is_some_and(|open| !open.is_empty())
                    {
                        answer.turn(404, 202);
                    }
                }
                // It knows the sessions of a connection that were opened or loaded there.
                if let (true, Some(session)) = (asked.is("GET"), asked.session()) {
                    let key = (connection, session.to_owned());
                    if !asked.shared.known.lock().unwrap().contains(&key) {
                        answer.turn(200, 404);
                    }
                }
            },
            to_server: |frame| {
                let unasked = match frame.opcode {
                    Opcode::PING => Frame {
                        is_masked: false,
                        ..Frame::new(Opcode::PONG, "")
                    },
                    _ if message(&frame)["method"] == "session/new" => {
                        of_server(&json!({"jsonrpc": "2.0", "method": "_mutant/news"}))
                    }
                    _ => return pass(frame),
                };
                vec![Act::Back(unasked), Act::Pass(frame)]
            },
            ..Fault::NONE
        },
    ),
    Mutant::new(
        "has a wrong key in its handshake",
        &["remote.websocket"],
        Fault::response(|asked, answer| {
            if asked.is_upgrade() {
                let wrong = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=".parse().unwrap();
                answer.headers.insert("sec-websocket-accept", wrong);
            }
        }),
    )
    .alone(),
    Mutant::new(
        "names no connection of a WebSocket",
        &["remote.websocket-connection-id"],
        Fault::response(|asked, answer| {
            if asked.is_upgrade() {
                answer.headers.remove("acp-connection-id");
            }
        }),
    ),
    Mutant::new(
        "has a subprotocol of its own",
        &["remote.websocket-unasked"],
        Fault::response(|asked, answer| {
            if asked.is_upgrade() {
                answer
                    .headers
                    .insert("sec-websocket-protocol", "acp".parse().unwrap());
            }
        }),
    ),
    Mutant::new(
        "has an extension of its own",
        &["remote.websocket-unasked"],
        Fault::response(|asked, answer| {
            if asked.is_upgrade() {
                answer.headers.insert(
                    "sec-websocket-extensions",
                    "permessage-deflate".parse().unwrap(),
                );
            }
        }),
    ),
    Mutant::new(
        "speaks every version",
        &["remote.websocket-version"],
        Fault::request(|asked| {
            if asked.is_upgrade() {
                asked.set("sec-websocket-version", "13");
            }
        }),
    ),
    Mutant::new(
        "names no version",
        &["remote.websocket-version"],
        Fault::response(|asked, answer| {
            if asked.is_upgrade() {
                answer.headers.remove("sec-websocket-version");
            }
        }),
    ),
    Mutant::new(
        "answers before initialize",
        &["remote.websocket-first-message"],
        Fault::to_server(|frame| {
            let asked = message(&frame);
            // On other connections this is not the first request.
            if asked["method"] == "session/new" && asked["id"] == 1 {
                let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}});
                return vec![Act::Back(of_server(&result))];
            }
            pass(frame)
        }),
    )
    .alone(),
    Mutant::new(
        "sets a reserved bit",
        &["remote.websocket-messages"],
        Fault::to_client(|frame| {
            let reserved = u8::from(message(&frame)["method"] == "session/update");
            pass(Frame { reserved, ..frame })
        }),
    ),
    Mutant::new(
        "answers a prompt twice",
        &["remote.websocket-answers-once"],
        Fault::to_client(
            |frame| match message(&frame).pointer("/result/stopReason") {
                Some(_) => vec![Act::Pass(frame.clone()), Act::Pass(frame)],
                None => pass(frame),
            },
        ),
    ),
    Mutant::new(
        "has a code of its own for broken JSON",
        &["remote.websocket-broken-json"],
        Fault::to_client(|frame| {
            let mut answer = message(&frame);
            if answer["error"]["code"] == -32700 {
                answer["error"]["code"] = json!(-32000);
                return pass(of_server(&answer));
            }
            pass(frame)
        }),
    ),
    Mutant::new(
        "carries batches out",
        &["remote.websocket-batch"],
        Fault::to_server(|frame| match message(&frame) {
            Value::Array(batch) => batch.iter().map(|part| Act::Pass(text(part))).collect(),
            _ => pass(frame),
        }),
    ),
    Mutant::new(
        "does not answer a close frame",
        &["remote.websocket-close"],
        Fault::to_server(|frame| match frame.opcode {
            Opcode::CLOSE => vec![Act::End],
            _ => pass(frame),
        }),
    ),
    Mutant::new(
        "forgets sessions with their WebSocket",
        &["remote.websocket-sessions-survive"],
        Fault::to_server(|frame| {
            let mut asked = message(&frame);
            if asked["method"] == "session/load" {
                asked["params"]["sessionId"] = json!("another");
                return pass(text(&asked));
            }
            pass(frame)
        }),
    ),
    Mutant::new(
        "reads binary frames",
        &["remote.websocket-binary"],
        Fault::to_server(|mut frame| {
            if frame.opcode == Opcode::BINARY {
                frame.opcode = Opcode::TEXT;
            }
            pass(frame)
        }),
    ),
    // Sound: the ids of its requests are its own.
    Mutant::new(
        "asks with the ids of its client",
        &[],
        Fault::to_server(|frame| {
            let id = match frame.opcode {
                Opcode::BINARY => serde_json::from_slice::<Value>(&frame.payload).ok(),
                _ => None,
            };
            match id.map(|asked| asked["id"].clone()) {
                Some(id) => {
                    let asks = json!({"jsonrpc": "2.0", "id": id, "method": "_mutant/ask"});
                    vec![Act::Back(of_server(&asks)), Act::Pass(frame)]
                }
                None => pass(frame),
            }
        }),
    ),
    Mutant::new(
        "ends at a fragment",
        &["remote.websocket-fragments"],
        Fault::to_server(|frame| {
            // The one between which the ping is has more text.
            match frame.opcode == Opcode::TEXT && !frame.is_last && frame.payload.is_empty() {
                true => vec![Act::End],
                false => pass(frame),
            }
        }),
    ),
    Mutant::new(
        "decodes each fragment by itself",
        &["remote.websocket-fragments"],
        Fault::to_server(|mut frame| {
            if frame.opcode == Opcode::CONTINUATION {
                frame.payload = String::from_utf8_lossy(&frame.payload).into_owned().into();
            }
            pass(frame)
        }),
    )
    .alone(),
    Mutant::new(
        "answers pings with nothing in them",
        &["remote.websocket-ping"],
        Fault::to_client(|mut frame| {
            if frame.opcode == Opcode::PONG {
                frame.payload = bytes::Bytes::new();
            }
            pass(frame)
        }),
    )
    .alone(),
    Mutant::new(
        "reads unmasked frames",
        &["remote.websocket-unmasked"],
        Fault::to_server(|frame| {
            pass(Frame {
                is_masked: true,
                ..frame
            })
        }),
    ),
    Mutant::new(
        "reads what is not UTF-8",
        &["remote.websocket-utf8"],
        Fault::to_server(|mut frame| {
            if frame.opcode == Opcode::TEXT && frame.is_last {
                frame.payload = String::from_utf8_lossy(&frame.payload).into_owned().into();
            }
            pass(frame)
        }),
    ),
    Mutant::new(
        "ignores reserved bits",
        &["remote.websocket-reserved-bits"],
        Fault::to_server(|frame| {
            pass(Frame {
                reserved: 0,
                ..frame
            })
        }),
    ),
    Mutant::new(
        "reads reserved opcodes",
        &["remote.websocket-reserved-opcode"],
        Fault::to_server(|mut frame| {
            if frame.opcode == Opcode(3) {
                frame.opcode = Opcode::TEXT;
            }
            pass(frame)
        }),
    ),
    Mutant::new(
        "reads continuations of nothing",
        &["remote.websocket-continuation"],
        Fault::to_server(|mut frame| {
            if frame.opcode == Opcode::CONTINUATION
                && frame.payload.starts_with(b"{\"")
                && frame.is_last
            {
                frame.opcode = Opcode::TEXT;
            }
            // Sound: a ping that is too long may be ignored.
            match frame.opcode == Opcode::PING && frame.payload.len() > 125 {
                true => Vec::new(),
                false => pass(frame),
            }
        }),
    ),
    Mutant::new(
        "answers long pings",
        &["remote.websocket-long-ping"],
        Fault::to_server(|mut frame| {
            if frame.opcode == Opcode::PING {
                frame.payload.truncate(125);
            }
            pass(frame)
        }),
    ),
    Mutant::new(
        "reads frames of any size",
        &["remote.websocket-large-frame"],
        Fault {
            reads_all: true,
            ..Fault::NONE
        },
    )
    .alone(),
];
