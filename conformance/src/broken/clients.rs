//! Clients that break the rules: the bundled client, behind a filter between it and
//! the agent that it launches, or with a shell around it that ends otherwise.

use serde_json::{Value, json};

use crate::subject::{Filter, Passing, Tap};
use crate::wire::Party;

/// A way to break the bundled client.
#[derive(Clone, Copy, Debug)]
pub struct BrokenClient {
    /// What it does wrong, in a few words.
    pub name: &'static str,
    /// The scene in which it shows.
    pub scene: &'static str,
    /// The requirements of that scene that fail because of it; no others do.
    pub breaks: &'static [&'static str],
    /// How it is broken.
    pub how: How,
}

/// How a client is broken.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// Its messages pass through this filter, and so do the agent's.
    Filter(Filter),
    /// It is started by this shell script, as `"$@"`.
    Shell(&'static str),
}

/// The broken client of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static BrokenClient> {
    CLIENTS
        .iter()
        .chain(super::second_clients::CLIENTS)
        .find(|broken| broken.name == name)
}

/// Every broken client.
pub const CLIENTS: &[BrokenClient] = &[
    filter(
        "speaks-too-early",
        "hello",
        &["client.initialize-first"],
        |tap, it| {
            if it.asks("initialize") {
                tap.to_agent(&json!({"jsonrpc": "2.0", "method": "_early"}));
            }
            tap.forward(&it);
        },
    ),
    filter("version-zero", "hello", &["client.version"], |tap, it| {
        param(tap, it, "initialize", "protocolVersion", json!(0));
    }),
    filter("nameless", "hello", &["client.info"], |tap, it| {
        param(tap, it, "initialize", "clientInfo", Value::Null);
    }),
    filter(
        "any-version-will-do",
        "version",
        &["client.closes-on-other-version"],
        |tap, it| {
            let id = "on-any-version";
            if it.succeeds("initialize") {
                // Held back until the agent has answered: the client ends it at this.
                *tap.kept("answer") = it.value;
                let params = json!({"cwd": "/", "mcpServers": []});
                tap.to_agent(&json!({
                    "jsonrpc": "2.0", "id": id, "method": "session/new", "params": params,
                }));
            } else if it.from == Party::Agent && it.value["id"] == id {
                let answer = tap.kept("answer").take();
                tap.to_client(&answer);
            } else {
                tap.forward(&it);
            }
        },
    ),
    filter("mutters", "hello", &["client.only-messages"], |tap, it| {
        mutter(tap, &it, it.asks("initialize"));
    }),
    filter(
        "mutters-of-files",
        "files",
        &["client.valid-files"],
        |tap, it| {
            let hit = says(&it, "fs/read_text_file") && it.params["line"] == 2;
            mutter(tap, &it, hit);
        },
    ),
    filter(
        "mutters-of-terminals",
        "terminals",
        &["client.valid-terminals"],
        |tap, it| {
            let hit = says(&it, "terminal/create");
            mutter(tap, &it, hit);
        },
    ),
    filter(
        "relative-cwd",
        "hello",
        &["client.absolute-cwd"],
        |tap, it| {
            param(tap, it, "session/new", "cwd", json!("project"));
        },
    ),
    filter(
        "lists-unasked",
        "hello",
        &["client.no-undeclared-methods"],
        |tap, it| {
            if it.succeeds("session/new") {
                ask(tap, "session/list", json!({}));
            }
            tap.forward(&it);
        },
    ),
    filter(
        "pictures-for-all",
        "hello",
        &["client.no-undeclared-content"],
        |tap, it| {
            let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
            param(tap, it, "session/prompt", "prompt", json!([image]));
        },
    ),
    filter(
        "servers-for-all",
        "hello",
        &["client.no-undeclared-servers"],
        |tap, it| {
            let server = json!({"type": "http", "name": "x", "url": "https://x", "headers": []});
            param(tap, it, "session/new", "mcpServers", json!([server]));
        },
    ),
    filter(
        "roots-for-all",
        "hello",
        &["client.no-undeclared-directories"],
        |tap, it| {
            param(
                tap,
                it,
                "session/new",
                "additionalDirectories",
                json!(["/tmp"]),
            );
        },
    ),
    filter(
        "vendor-fields",
        "hello",
        &["client.custom-fields"],
        |tap, it| {
            param(tap, it, "initialize", "editor", json!("x"));
        },
    ),
    shell(
        "never-ends",
        "hello",
        &["client.comes-to-an-end"],
        "\"$@\"; sleep 1000",
    ),
    filter(
        "chooses-what-was-not-offered",
        "permission",
        &["client.permission"],
        |tap, it| {
            let hit = says(&it, "session/request_permission");
            answer(
                tap,
                it,
                hit,
                json!({"outcome": {"outcome": "selected", "optionId": "allow"}}),
            );
        },
    ),
    filter("own-newlines", "files", &["client.reads"], |tap, it| {
        let hit = reads(&it, "/input.txt") && it.params.get("line").is_none();
        answer(tap, it, hit, json!({"content": "one\r\n"}));
    }),
    filter(
        "lines-from-zero",
        "files",
        &["client.reads-lines"],
        |tap, it| {
            let hit = says(&it, "fs/read_text_file") && it.params["line"] == 2;
            answer(tap, it, hit, json!({"content": "three\n"}));
        },
    ),
    filter(
        "missing-is-empty",
        "files",
        &["client.read-fails"],
        |tap, it| {
            let hit = reads(&it, "/missing.txt");
            answer(tap, it, hit, json!({"content": ""}));
        },
    ),
    filter(
        "takes-relative-paths",
        "files",
        &["client.refuses-relative-paths"],
        |tap, it| {
            let hit = says(&it, "fs/read_text_file") && it.at("/path") == "input.txt";
            answer(tap, it, hit, json!({"content": ""}));
        },
    ),
    filter(
        "writes-nothing",
        "files",
        &["client.creates-files", "client.writes-exactly"],
        |tap, it| {
            let hit = it.tells("fs/write_text_file");
            tap.reply(&it, hit, &json!({}));
        },
    ),
    filter(
        "own-encoding",
        "files",
        &["client.writes-exactly"],
        |tap, it| {
            let hit = reads(&it, "/out.txt");
            answer(tap, it, hit, json!({"content": "Gr\u{fffd}\u{fffd}e"}));
        },
    ),
    filter(
        "loses-output",
        "terminals",
        &["client.runs-commands"],
        |tap, it| {
            let hit = nth(tap, &it, "terminal/output") == 1;
            let output = json!({"output": "", "truncated": false, "exitStatus": {"exitCode": 3}});
            answer(tap, it, hit, output);
        },
    ),
    filter(
        "all-is-well",
        "terminals",
        &["client.exit-code"],
        |tap, it| {
            let hit = nth(tap, &it, "terminal/wait_for_exit") == 1;
            answer(tap, it, hit, json!({"exitCode": 0}));
        },
    ),
    filter(
        "never-forgets",
        "terminals",
        &["client.release-invalidates"],
        |tap, it| {
            let hit = nth(tap, &it, "terminal/output") == 2;
            answer(tap, it, hit, json!({"output": "hello", "truncated": false}));
        },
    ),
    filter(
        "cuts-characters",
        "terminals",
        &["client.truncates-characters"],
        |tap, it| {
            let hit = nth(tap, &it, "terminal/output") == 3;
            answer(
                tap,
                it,
                hit,
                json!({"output": "\u{fffd}ä", "truncated": true}),
            );
        },
    ),
    filter(
        "killed-is-gone",
        "terminals",
        &["client.keeps-killed-terminals"],
        |tap, it| {
            let hit = nth(tap, &it, "terminal/output") == 4;
            refuse(tap, it, hit, -32002);
        },
    ),
    filter(
        "terminals-for-all",
        "without-terminals",
        &["client.refuses-undeclared-terminals"],
        |tap, it| {
            let hit = it.asks("initialize");
            tap.edit(it, hit, |value| {
                value["params"]["clientCapabilities"]["terminal"] = json!(false);
            });
        },
    ),
    filter(
        "ignores-extensions",
        "strangeness",
        &["client.answers-extensions", "client.method-not-found"],
        |tap, it| {
            let hit = says(&it, "_acp-conformance/unknown");
            tap.lose(&it, hit);
        },
    ),
    filter(
        "unknown-is-internal",
        "strangeness",
        &["client.method-not-found"],
        |tap, it| {
            let hit = says(&it, "no/such/method");
            refuse(tap, it, hit, -32603);
        },
    ),
    filter(
        "answers-notifications",
        "strangeness",
        &["client.ignores-notifications"],
        |tap, it| {
            if it.tells("_acp-conformance/note") {
                let error = json!({"code": -32601, "message": "no"});
                tap.to_agent(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
            }
            tap.forward(&it);
        },
    ),
    shell(
        "fears-the-future",
        "strangeness",
        &["client.survives-the-future", "client.ignores-notifications"],
        "\"$@\"; exit 101",
    ),
    shell(
        "dies-of-noise",
        "noise",
        &["client.survives-noise"],
        "\"$@\"; kill -9 $$",
    ),
    filter(
        "questions-are-internal",
        "questions",
        &["client.no-undeclared-answers"],
        |tap, it| {
            let hit = says(&it, "elicitation/create");
            refuse(tap, it, hit, -32603);
        },
    ),
    shell(
        "dies-of-completions",
        "questions",
        &["client.ignores-completions"],
        "\"$@\"; exit 1",
    ),
    filter(
        "allows-what-is-cancelled",
        "cancellation",
        &["client.cancels-permission"],
        |tap, it| {
            let hit = says(&it, "session/request_permission");
            answer(
                tap,
                it,
                hit,
                json!({"outcome": {"outcome": "selected", "optionId": "o-2"}}),
            );
        },
    ),
    filter(
        "leaves-when-it-has-cancelled",
        "cancellation",
        &["client.hears-after-cancelling"],
        |tap, it| {
            let gone = *tap.kept("gone") == true;
            tap.lose(&it, gone && it.from == Party::Client);
            if says(&it, "session/request_permission") {
                *tap.kept("gone") = json!(true);
            }
        },
    ),
    shell(
        "overlooks-death",
        "death",
        &["client.notices-death"],
        "\"$@\"; exit 0",
    ),
];

pub(super) const fn filter(
    name: &'static str,
    scene: &'static str,
    breaks: &'static [&'static str],
    filter: Filter,
) -> BrokenClient {
    let how = How::Filter(filter);
    BrokenClient {
        name,
        scene,
        breaks,
        how,
    }
}

pub(super) const fn shell(
    name: &'static str,
    scene: &'static str,
    breaks: &'static [&'static str],
    script: &'static str,
) -> BrokenClient {
    let how = How::Shell(script);
    BrokenClient {
        name,
        scene,
        breaks,
        how,
    }
}

/// Whether it is the client's answer to this method.
pub(super) fn says(it: &Passing, method: &str) -> bool {
    it.from == Party::Client && it.method == method && it.value.get("method").is_none()
}

/// Whether it is the client's answer to a request for a file that ends like this.
fn reads(it: &Passing, path: &str) -> bool {
    says(it, "fs/read_text_file") && it.at("/path").ends_with(path)
}

/// The number of this answer among the client's to this method, from one; zero if it is
/// something else.
fn nth(tap: &mut Tap<'_>, it: &Passing, method: &str) -> u64 {
    if !says(it, method) {
        return 0;
    }
    let number = tap.kept(method).as_u64().unwrap_or_default() + 1;
    *tap.kept(method) = json!(number);
    number
}

/// Changes a member of the params of what the client calls.
pub(super) fn param(tap: &mut Tap<'_>, it: Passing, method: &str, name: &str, value: Value) {
    let hit = it.asks(method);
    tap.edit(it, hit, |message| message["params"][name] = value);
}

/// Gives this result in the stead of the client's answer when it is the one.
pub(super) fn answer(tap: &mut Tap<'_>, it: Passing, hit: bool, result: Value) {
    replace(tap, it, hit, "result", result);
}

/// Refuses in the stead of the client's answer when it is the one.
pub(super) fn refuse(tap: &mut Tap<'_>, it: Passing, hit: bool, code: i64) {
    replace(
        tap,
        it,
        hit,
        "error",
        json!({"code": code, "message": "no"}),
    );
}

fn replace(tap: &mut Tap<'_>, it: Passing, hit: bool, member: &str, value: Value) {
    tap.edit(it, hit, |message| {
        let id = message["id"].take();
        *message = json!({"jsonrpc": "2.0", "id": id, member: value});
    });
}

/// Asks the agent something that the client knows nothing of.
fn ask(tap: &mut Tap<'_>, method: &str, params: Value) {
    let id = "filter-1";
    tap.to_agent(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
}

/// Writes a line to the agent that is no message, after one that is.
pub(super) fn mutter(tap: &mut Tap<'_>, it: &Passing, hit: bool) {
    tap.forward(it);
    if hit {
        tap.raw_to_agent("debug: sent\n");
    }
}
