//! Scenarios about the terminals of a client.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scripted_agent::{ScriptedAgent, hello};

/// What commands print that have a directory, and a variable.
pub(super) const IN_FOLDER: &str = "in the folder";
pub(super) const IN_VARIABLE: &str = "a b=c";

/// A file in the folder of the commands, if a command outlives the release of its terminal.
pub(super) const OUTLIVED: &str = "outlived";

/// The notification that a command still runs which the client was asked to kill.
pub(super) const NOT_KILLED: &str = "_acp-conformance/not-killed";

/// How long a command may take to begin, and to end; and how often it tells that it runs.
const LIMIT: Duration = Duration::from_secs(3);
const BEAT: Duration = Duration::from_millis(50);

pub(super) fn terminals(stage: &mut ScriptedAgent) -> bool {
    if !stage.declares("/terminal") {
        return hello(stage);
    }
    let shell = |script: &str| json!({"command": "sh", "args": ["-c", script]});
    let id = create(stage, shell("printf hello; exit 3"));
    stage.ask("terminal/wait_for_exit", json!({"terminalId": id}));
    stage.ask("terminal/output", json!({"terminalId": id}));
    stage.ask("terminal/release", json!({"terminalId": id}));
    stage.ask("terminal/output", json!({"terminalId": id}));
    let mut long = shell("printf 'aaaaääää'");
    if let Some(long) = long.as_object_mut() {
        long.insert("outputByteLimit".to_owned(), json!(5));
    }
    let id = create(stage, long);
    stage.ask("terminal/wait_for_exit", json!({"terminalId": id}));
    stage.ask("terminal/output", json!({"terminalId": id}));
    stage.ask("terminal/release", json!({"terminalId": id}));
    let id = create(stage, shell("printf started; exec sleep 60"));
    stage.ask("terminal/kill", json!({"terminalId": id}));
    stage.ask("terminal/wait_for_exit", json!({"terminalId": id}));
    stage.ask("terminal/output", json!({"terminalId": id}));
    stage.ask("terminal/release", json!({"terminalId": id}));
    hello(stage)
}

/// Commands with a directory, with variables, and one that still runs while other requests are served.
pub(super) fn options(stage: &mut ScriptedAgent) -> bool {
    let folder = Path::new(&stage.folder).join("nested");
    if !stage.declares("/terminal") || !folder.is_absolute() {
        return hello(stage);
    }
    // A failure shows in the command's output.
    let _ = fs::create_dir(&folder).and_then(|()| fs::write(folder.join("here.txt"), IN_FOLDER));
    let cat = json!({"command": "cat", "args": ["here.txt"], "cwd": folder});
    let print = json!({"command": "sh", "args": ["-c", "printf %s \"$ACP_CONFORMANCE_PROBE\""],
        "env": [{"name": "ACP_CONFORMANCE_PROBE", "value": IN_VARIABLE}]});
    for command in [cat, print] {
        let id = create(stage, command);
        stage.ask("terminal/wait_for_exit", json!({"terminalId": id}));
        stage.ask("terminal/output", json!({"terminalId": id}));
        stage.ask("terminal/release", json!({"terminalId": id}));
    }
    let done = folder.join("done");
    let until = "n=0; until [ -e \"$0\" ] || [ $n -gt 200 ]; do n=$((n + 1)); sleep 0.1; done";
    let id = create(stage, json!({"command": "sh", "args": ["-c", until, done]}));
    let wait = stage.begin("terminal/wait_for_exit", json!({"terminalId": id}));
    stage.ask("terminal/output", json!({"terminalId": id}));
    let kill = stage.begin("terminal/kill", json!({"terminalId": id}));
    if !stage.is_answered(&kill) {
        stage.notify(NOT_KILLED, &json!({}));
    }
    // Ends the command of a client that serves the others only afterwards.
    let _ = fs::write(done, "");
    stage.is_answered(&wait);
    stage.ask("terminal/release", json!({"terminalId": id}));
    let beat = folder.join("beat");
    let beats = "n=0; while [ $n -lt 200 ]; do n=$((n + 1)); : > \"$0\"; sleep 0.05; done";
    let id = create(stage, json!({"command": "sh", "args": ["-c", beats, beat]}));
    let begun = eventually(|| beat.exists());
    stage.ask("terminal/release", json!({"terminalId": id}));
    let ended = eventually(|| {
        // Fails when it was not written since.
        let _ = fs::remove_file(&beat);
        thread::sleep(4 * BEAT);
        !beat.exists()
    });
    if begun && !ended {
        let _ = fs::write(folder.join(OUTLIVED), "");
    }
    hello(stage)
}

/// Waits until this holds, for a limited time. Whether it does.
fn eventually(holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(BEAT);
    }
    true
}

pub(super) fn undeclared(stage: &mut ScriptedAgent) -> bool {
    // One that declares them would run it.
    if !stage.declares("/terminal") {
        stage.ask("terminal/create", json!({"command": "true"}));
    }
    hello(stage)
}

fn create(stage: &mut ScriptedAgent, params: Value) -> Value {
    let created = stage.ask("terminal/create", params);
    created.get("terminalId").cloned().unwrap_or_default()
}
