//! The scripted server: this test binary, started again.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// The variable that makes the test a server: how it behaves, with `:` and a word for some.
pub const MODE: &str = "SCRIPTED_MCP_SERVER";

#[test]
#[ignore = "the program of other tests"]
fn scripted_server() {
    if let Ok(mode) = std::env::var(MODE) {
        let (mode, word) = mode.split_once(':').unwrap_or((&mode, ""));
        match mode {
            "broken" => fail("the key is missing"),
            "once" if std::fs::File::create_new(word).is_err() => fail("started again"),
            _ => {}
        }
        Server::default().run(mode == "silent");
        if mode == "deaf" {
            // Only a signal ends it.
            loop {
                std::thread::park();
            }
        }
        std::process::exit(0);
    }
}

fn fail(reason: &str) -> ! {
    eprintln!("{reason}");
    std::process::exit(3)
}

fn send(message: &impl std::fmt::Display) {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{message}").and_then(|()| output.flush());
    if written.is_err() {
        std::process::exit(4);
    }
}

#[derive(Default)]
struct Server {
    client: Value,
    cancelled: Vec<Value>,
    has_grown: bool,
}

impl Server {
    fn run(&mut self, is_silent: bool) {
        for line in std::io::stdin().lock().lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if is_silent {
                continue;
            }
            let (id, params) = (&message["id"], &message["params"]);
            let method = message["method"].as_str().unwrap_or_default();
            let result = match method {
                "initialize" => {
                    self.client = params.clone();
                    json!({"protocolVersion": params["protocolVersion"],
                        "capabilities": {"tools": {"listChanged": true}},
                        "serverInfo": {"name": "scripted", "version": "1"}})
                }
                "tools/list" => self.list(params["cursor"].as_str()),
                "tools/call" => match self.call(id, params) {
                    Some(result) => result,
                    None => continue,
                },
                "notifications/cancelled" => {
                    self.cancelled.push(params["requestId"].clone());
                    continue;
                }
                _ => continue,
            };
            send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
    }

    /// Two tools a page.
    fn list(&self, cursor: Option<&str>) -> Value {
        let mut names = vec![
            "echo",
            "everything",
            "fail",
            "refuse",
            "progress",
            "hang",
            "cancelled",
            "die",
            "huge",
            "grow",
            "flood",
            "noise",
            "pings",
            "client",
            "env",
            "no object",
        ];
        names.extend(self.has_grown.then_some("late"));
        let from: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let tools = names.iter().skip(from).take(2);
        let tools: Vec<_> = tools.map(|name| tool(name)).collect();
        let next = (from + 2 < names.len()).then(|| (from + 2).to_string());
        match next {
            Some(next) => json!({"tools": tools, "nextCursor": next}),
            None => json!({"tools": tools}),
        }
    }

    fn call(&mut self, id: &Value, params: &Value) -> Option<Value> {
        let arguments = &params["arguments"];
        let word = arguments["word"].as_str().unwrap_or_default();
        let number = arguments["number"].as_u64().unwrap_or_default();
        let text = match params["name"].as_str().unwrap() {
            "echo" => word.to_owned(),
            "everything" => {
                return Some(json!({"content": [
                    {"type": "text", "text": "words"},
                    {"type": "image", "data": "aW1n", "mimeType": "image/png"},
                    {"type": "resource_link", "uri": "file:///a.md", "name": "a.md"},
                ], "structuredContent": {"number": 1}}));
            }
            "fail" => {
                return Some(json!({"isError": true, "content": [{"type": "text", "text": word}]}));
            }
            "refuse" => {
                let error = json!({"code": -32602, "message": word});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                return None;
            }
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for progress in 1..=number {
                    let params = json!({"progressToken": token, "progress": progress,
                        "total": number, "message": "going on"});
                    send(
                        &json!({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": params}),
                    );
                }
                "done".to_owned()
            }
            "hang" => return None,
            "cancelled" => self.cancelled.len().to_string(),
            "die" => fail(word),
            "huge" => "x".repeat(usize::try_from(number).unwrap()),
            "grow" => {
                self.has_grown = true;
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                "grown".to_owned()
            }
            "flood" => {
                let line = "a line of standard error that nobody reads";
                (0..number).for_each(|number| eprintln!("{line} {number}"));
                "flooded".to_owned()
            }
            "noise" => {
                for noise in [
                    "no JSON",
                    "{\"jsonrpc\":",
                    "[1, 2]",
                    "{\"a\": 1}",
                    "null",
                    "",
                ] {
                    send(&noise);
                }
                "heard".to_owned()
            }
            "pings" => {
                (0..number).for_each(|id| {
                    send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
                });
                "sent".to_owned()
            }
            "client" => {
                let capabilities = &self.client["capabilities"];
                json!([self.client["clientInfo"]["name"], capabilities]).to_string()
            }
            "env" => std::env::var(word).unwrap_or_else(|_| "(none)".to_owned()),
            "no object" => {
                send(&json!({"jsonrpc": "2.0", "id": id, "result": {"unknown": "shape"}}));
                return None;
            }
            other => panic!("{other}"),
        };
        Some(json!({"content": [{"type": "text", "text": text}]}))
    }
}

fn tool(name: &str) -> Value {
    let annotations = json!({"title": "The title", "readOnlyHint": name == "echo",
        "destructiveHint": name == "die", "openWorldHint": false});
    json!({"name": name, "description": format!("Description of {name}"),
        "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
        "annotations": annotations})
}
