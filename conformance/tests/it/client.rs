//! `acp-conformance client`: the bundled client, and clients that break the rules.
//!
//! A broken client is a record of a sound one, changed as the client would have
//! changed it: the checks see nothing but the record and how the client ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use acp_conformance::clients::{self, ClientEnv, Played, SCENES};
use acp_conformance::suite::Verdict;
use acp_conformance::wire::Schema;
use serde_json::{Value, json};

use crate::command::acp_conformance;

#[test]
fn the_bundled_client_is_conformant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let ran = acp_conformance(["client", "--json", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("acp "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nconformant: "), "{}", ran.stdout);
    assert!(ran.stdout.contains(" of the client, 0 of them invalid"));
    assert!(
        ran.stdout
            .contains(" 0 broken that decide, 0 that advise, 0 for information, 0 inconclusive")
    );
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let schema = serde_json::from_str(acp_conformance::report::SCHEMA).unwrap();
    assert!(jsonschema::is_valid(&schema, &report), "{report}");
    assert_eq!(report["kind"], "client");
    assert!(report["requirements"].as_array().unwrap().len() > 30);
}

#[cfg(unix)]
#[test]
fn a_client_that_launches_nothing_fails() {
    let only = ["client", "--only", "client.version"];
    let ran = acp_conformance(only.iter().chain(&["--", "sh", "-c", "echo no agent >&2"]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let says = "the client did not call initialize; it never launched the agent; it says: no agent";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("again acp-conformance client --only client.version -- sh")
    );
}

#[test]
fn a_client_that_does_not_exist_and_an_unknown_row_are_mistakes() {
    let ran = acp_conformance(["client", "--", "/no/such/client"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot start /no/such/client"));
    let ran = acp_conformance(["client", "--only", "client.none"]);
    assert_eq!(ran.code, Some(2));
}

type Break = fn(&mut Lines, &mut Played);

/// A scene, what is done to its record, and the requirements that fail by it.
struct Broken(&'static str, &'static [&'static str], Break);

/// The lines of a record.
struct Lines(Vec<Value>);

impl Lines {
    /// The client's first call of a method.
    fn call(&mut self, method: &str) -> &mut Value {
        let mut lines = self.0.iter_mut().map(|line| &mut line["value"]);
        lines.find(|value| value["method"] == method).unwrap()
    }

    /// The client's answer to the n-th request of the agent with this method.
    fn answer(&mut self, method: &str, n: usize) -> &mut Value {
        let values = self.0.iter().map(|line| &line["value"]);
        let mut asked = values.filter(|value| value["method"] == method);
        let id = asked.nth(n).unwrap()["id"].clone();
        let mut lines = self.0.iter_mut().map(|line| &mut line["value"]);
        let answers = |value: &&mut Value| value["id"] == id && value.get("method").is_none();
        lines.find(answers).unwrap()
    }

    /// Something more that the client says, at this place.
    fn says(&mut self, place: usize, value: Value) {
        self.0
            .insert(place, json!({"from": "client", "at": 0, "value": value}));
    }

    /// A line of the client that is no message.
    fn mutters(&mut self) {
        self.0
            .push(json!({"from": "client", "at": 0, "raw": "debug: sent"}));
    }
}

fn allow(answer: &mut Value, result: Value) {
    answer.as_object_mut().unwrap().remove("error");
    answer["result"] = result;
}

fn refuse(answer: &mut Value, code: i64) {
    answer.as_object_mut().unwrap().remove("result");
    answer["error"] = json!({"code": code, "message": "no"});
}

const BROKEN: &[Broken] = &[
    Broken("hello", &["client.initialize-first"], |lines, _| {
        lines.says(0, json!({"jsonrpc": "2.0", "method": "_early"}));
    }),
    Broken("hello", &["client.version"], |lines, _| {
        lines.call("initialize")["params"]["protocolVersion"] = json!(0);
    }),
    Broken("hello", &["client.info"], |lines, _| {
        lines.call("initialize")["params"]["clientInfo"] = Value::Null;
    }),
    Broken(
        "version",
        &["client.closes-on-other-version"],
        |lines, _| {
            let params = json!({"cwd": "/", "mcpServers": []});
            let new =
                json!({"jsonrpc": "2.0", "id": 77, "method": "session/new", "params": params});
            lines.says(2, new);
        },
    ),
    Broken("hello", &["client.only-messages"], |lines, _| {
        lines.mutters()
    }),
    Broken("files", &["client.valid-files"], |lines, _| lines.mutters()),
    Broken("terminals", &["client.valid-terminals"], |lines, _| {
        lines.mutters()
    }),
    Broken("hello", &["client.absolute-cwd"], |lines, _| {
        lines.call("session/new")["params"]["cwd"] = json!("project");
    }),
    Broken("hello", &["client.no-undeclared-methods"], |lines, _| {
        let list = json!({"jsonrpc": "2.0", "id": 77, "method": "session/list", "params": {}});
        lines.says(4, list);
    }),
    Broken("hello", &["client.no-undeclared-content"], |lines, _| {
        let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
        lines.call("session/prompt")["params"]["prompt"][0] = image;
    }),
    Broken("hello", &["client.no-undeclared-servers"], |lines, _| {
        let server = json!({"type": "http", "name": "x", "url": "https://x", "headers": []});
        lines.call("session/new")["params"]["mcpServers"] = json!([server]);
    }),
    Broken(
        "hello",
        &["client.no-undeclared-directories"],
        |lines, _| {
            lines.call("session/new")["params"]["additionalDirectories"] = json!(["/tmp"]);
        },
    ),
    Broken("hello", &["client.custom-fields"], |lines, _| {
        lines.call("initialize")["params"]["editor"] = json!("x");
    }),
    Broken("hello", &["client.comes-to-an-end"], |_, played| {
        played.exit = None
    }),
    Broken("permission", &["client.permission"], |lines, _| {
        let outcome = json!({"outcome": "selected", "optionId": "allow"});
        lines.answer("session/request_permission", 0)["result"]["outcome"] = outcome;
    }),
    Broken("files", &["client.reads"], |lines, _| {
        lines.answer("fs/read_text_file", 0)["result"]["content"] = json!("one\r\n");
    }),
    Broken("files", &["client.reads-lines"], |lines, _| {
        lines.answer("fs/read_text_file", 1)["result"]["content"] = json!("three\n");
    }),
    Broken("files", &["client.read-fails"], |lines, _| {
        allow(lines.answer("fs/read_text_file", 2), json!({"content": ""}));
    }),
    Broken("files", &["client.refuses-relative-paths"], |lines, _| {
        allow(lines.answer("fs/read_text_file", 3), json!({"content": ""}));
    }),
    Broken(
        "files",
        &["client.creates-files", "client.writes-exactly"],
        |_, played| played.folder.push("elsewhere"),
    ),
    Broken("files", &["client.writes-exactly"], |lines, _| {
        lines.answer("fs/read_text_file", 4)["result"]["content"] = json!("Gr\u{fffd}\u{fffd}e");
    }),
    Broken("terminals", &["client.runs-commands"], |lines, _| {
        lines.answer("terminal/output", 0)["result"]["output"] = json!("");
    }),
    Broken("terminals", &["client.exit-code"], |lines, _| {
        lines.answer("terminal/wait_for_exit", 0)["result"]["exitCode"] = json!(0);
    }),
    Broken("terminals", &["client.release-invalidates"], |lines, _| {
        let output = json!({"output": "hello", "truncated": false});
        allow(lines.answer("terminal/output", 1), output);
    }),
    Broken("terminals", &["client.truncates-characters"], |lines, _| {
        lines.answer("terminal/output", 2)["result"]["output"] = json!("\u{fffd}ää");
    }),
    Broken(
        "terminals",
        &["client.keeps-killed-terminals"],
        |lines, _| {
            refuse(lines.answer("terminal/output", 3), -32002);
        },
    ),
    Broken(
        "terminals",
        &["client.refuses-undeclared-terminals"],
        |lines, _| {
            lines.call("initialize")["params"]["clientCapabilities"]["terminal"] = json!(false);
        },
    ),
    Broken(
        "strangeness",
        &["client.answers-extensions", "client.method-not-found"],
        |lines, _| {
            let id = lines.answer("_acp-conformance/unknown", 0)["id"].clone();
            lines
                .0
                .retain(|line| line["from"] == "agent" || line["value"]["id"] != id);
        },
    ),
    Broken("strangeness", &["client.method-not-found"], |lines, _| {
        lines.answer("no/such/method", 0)["error"]["code"] = json!(-32603);
    }),
    Broken(
        "strangeness",
        &["client.ignores-notifications"],
        |lines, _| {
            let error = json!({"code": -32601, "message": "no"});
            lines.says(9, json!({"jsonrpc": "2.0", "id": null, "error": error}));
        },
    ),
    Broken(
        "strangeness",
        &["client.survives-the-future", "client.ignores-notifications"],
        |_, played| played.exit = Some(Some(101)),
    ),
    Broken("noise", &["client.survives-noise"], |_, played| {
        played.exit = Some(None)
    }),
    Broken(
        "questions",
        &["client.no-undeclared-answers"],
        |lines, _| {
            refuse(lines.answer("elicitation/create", 0), -32603);
        },
    ),
    Broken("questions", &["client.ignores-completions"], |_, played| {
        played.exit = Some(Some(1));
    }),
    Broken(
        "cancellation",
        &["client.cancels-permission", "client.hears-after-cancelling"],
        |lines, _| {
            let outcome = json!({"outcome": "selected", "optionId": "o-2"});
            lines.answer("session/request_permission", 0)["result"]["outcome"] = outcome;
        },
    ),
    Broken(
        "cancellation",
        &["client.hears-after-cancelling"],
        |lines, _| {
            let id = lines.call("session/prompt")["id"].clone();
            lines
                .0
                .retain(|line| line["from"] == "client" || line["value"]["id"] != id);
        },
    ),
    Broken("death", &["client.notices-death"], |_, played| {
        played.exit = Some(Some(0))
    }),
];

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::v1().unwrap()));

/// The bundled client.
fn bundled() -> ClientEnv {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let words = [
        program,
        "reference-client",
        "run",
        "--approve-all",
        "--cwd",
        "{cwd}",
        "{prompt}",
        "--",
        "{agent}",
    ];
    ClientEnv {
        command: words.map(Into::into).to_vec(),
        program: program.into(),
        prompt: "Hello".into(),
        schema: SCHEMA.clone(),
        timeout: Duration::from_secs(30),
    }
}

/// Every scene, played to the bundled client.
static SOUND: LazyLock<BTreeMap<&'static str, Played>> = LazyLock::new(|| {
    let env = bundled();
    let play = |name| (name, clients::play(&env, name).unwrap());
    SCENES.iter().map(|scene| play(scene.name)).collect()
});

#[test]
fn the_folder_of_a_scene_goes_with_it() {
    let played = clients::play(&bundled(), SCENES[0].name).unwrap();
    let folder = played.folder.clone();
    assert!(folder.join("input.txt").exists());
    drop(played);
    assert!(!folder.exists());
}

/// The requirements that fail after a scene.
fn failures(scene: &str, played: &Played) -> BTreeSet<&'static str> {
    let rows = clients::all().filter(|row| row.scene == scene);
    let fails = rows.filter(|row| Verdict::from((row.check)(played)).as_str() == "fail");
    fails.map(|row| row.id).collect()
}

#[test]
fn broken_clients_fail_what_they_break_and_nothing_else() {
    for Broken(scene, breaks, change) in BROKEN {
        let sound = &SOUND[scene];
        assert!(failures(scene, sound).is_empty(), "{scene}");
        let lines = sound
            .record
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let mut lines = Lines(lines.collect());
        let mut broken = sound.clone();
        change(&mut lines, &mut broken);
        let record: String = lines.0.iter().map(|line| format!("{line}\n")).collect();
        let broken = Played::new(&SCHEMA, record, broken.exit, broken.stderr, broken.folder);
        let listed: BTreeSet<_> = breaks.iter().copied().collect();
        assert_eq!(failures(scene, &broken), listed);
    }
}

#[test]
fn every_check_of_clients_has_a_client_that_fails_it() {
    let broken: BTreeSet<_> = BROKEN
        .iter()
        .flat_map(|Broken(_, breaks, _)| *breaks)
        .collect();
    for row in clients::all() {
        assert!(broken.contains(&row.id), "{}", row.id);
    }
}
