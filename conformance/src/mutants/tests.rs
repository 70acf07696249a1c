//! The files of mutants are read, and the vocabulary of edits does what it says.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::data::{FILES, File};
use super::*;
use crate::target::rewritten;
use Party::{Agent, Client};

#[test]
fn every_file_is_read_and_every_function_has_one_row() {
    let mut names = BTreeSet::new();
    for (file, text) in FILES {
        for mutant in File::mutants(text).unwrap_or_else(|error| panic!("{file}: {error}")) {
            assert!(names.insert((mutant.side, mutant.name)), "{}", mutant.name);
        }
    }
    let functions: Vec<_> = code::all().map(|(name, _)| name).collect();
    let texts = FILES.iter().map(|(_, text)| *text).collect::<String>();
    for name in &functions {
        assert_eq!(
            texts.matches(&format!("code = \"{name}\"")).count(),
            1,
            "{name}"
        );
    }
}

/// The mutant of a file with one row that has these lines.
fn mutant(lines: &str) -> Result<&'static Mutant, String> {
    let text = format!("[[mutant]]\nname = \"m\"\nbreaks = []\n{lines}");
    let mutants: &'static [Mutant] = File::mutants(&text)?.leak();
    mutants.first().ok_or_else(|| "no mutant".to_owned())
}

/// What an agent with this edit writes, and what is written to it, when these messages pass.
fn through(edit: &str, messages: &[(Party, Value)]) -> Vec<(Party, Value)> {
    let mutant = mutant(&format!("[[mutant.edit]]\n{edit}")).unwrap();
    let lines: Vec<_> = messages
        .iter()
        .map(|(from, it)| (*from, it.to_string()))
        .collect();
    let lines: Vec<_> = lines
        .iter()
        .map(|(from, line)| (*from, line.as_str()))
        .collect();
    let written = rewritten(mutant.rewrite().unwrap(), &lines).into_iter();
    let value = |line: String| serde_json::from_str(&line).unwrap_or(Value::String(line));
    written.map(|(from, line)| (from, value(line))).collect()
}

fn prompt(id: u64, session: &str, text: &str) -> (Party, Value) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    (
        Client,
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}),
    )
}

fn ended(id: u64) -> (Party, Value) {
    (
        Agent,
        json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}}),
    )
}

fn update(kind: &str) -> (Party, Value) {
    let update = json!({"sessionUpdate": kind, "list": [{"id": "a"}, {"id": "b", "n": 1}]});
    let params = json!({"sessionId": "s", "update": update});
    (
        Agent,
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
    )
}

/// The update of an agent with this edit.
fn edited(edit: &str) -> Value {
    let written = through(&format!("on.update = \"plan\"\n{edit}"), &[update("plan")]);
    written[0].1["params"]["update"].clone()
}

#[test]
fn edits_change_what_stands_in_messages() {
    let list = |edit: &str| edited(edit)["list"].clone();
    let (a, b) = (json!({"id": "a"}), json!({"id": "b", "n": 1}));
    assert_eq!(edited("set = { \"/params/update/new\" = 7 }")["new"], 7);
    assert_eq!(
        list("replace = { \"/params/update/list/[id=b]/n\" = 2 }"),
        json!([a, {"id": "b", "n": 2}])
    );
    assert_eq!(
        list("replace = { \"/params/update/list/0/n\" = 2 }"),
        json!([a, b])
    );
    assert_eq!(
        list("set = { \"/params/update/list/0/n\" = 2 }"),
        json!([{"id": "a", "n": 2}, b])
    );
    assert_eq!(list("remove = \"/params/update/list/[id=a]\""), json!([b]));
    assert_eq!(
        list("remove = \"/params/update/list/1/n\""),
        json!([a, {"id": "b"}])
    );
    assert_eq!(
        list("push = { \"/params/update/list\" = 3 }"),
        json!([a, b, 3])
    );
    assert_eq!(list("repeat = \"/params/update/list/1\""), json!([a, b, b]));
    assert_eq!(list("truncate = \"/params/update/list\""), json!([a]));
}

#[test]
fn what_does_not_match_is_left_alone() {
    let messages = [update("other"), prompt(1, "s", "hello"), ended(1)];
    assert_eq!(
        through("on.update = \"plan\"\ndrop = true", &messages),
        messages
    );
    let nowhere = "on.update = \"other\"\nremove = \"/params/nowhere\"\nthen.line = \"x\"";
    assert_eq!(through(nowhere, &messages), messages);
}

#[test]
fn edits_deliver_messages_otherwise() {
    let (plan, other) = (update("plan"), update("other"));
    let on = |rest: &str| format!("on.update = \"plan\"\n{rest}");
    let messages = [plan.clone(), other.clone()];
    assert_eq!(through(&on("drop = true"), &messages), messages[1..]);
    let line = (Agent, json!("x"));
    assert_eq!(
        through(&on("duplicate = true\nthen.line = \"x\""), &messages[..1]),
        [plan.clone(), line.clone(), plan.clone()]
    );
    assert_eq!(
        through(&on("before.line = \"x\""), &messages[..1]),
        [line, plan.clone()]
    );
    assert_eq!(through(&on("hold = \"message\""), &messages), [other, plan]);
    let batch = [(Agent, json!([1, 2]))];
    let split = "on = { from = \"agent\", line = { starts = \"[\" } }\nsplit = true";
    assert_eq!(
        through(split, &batch),
        [(Agent, json!(1)), (Agent, json!(2))]
    );
}

#[test]
fn edits_answer_in_the_stead_of_both_sides() {
    let asked = prompt(1, "s", "hello");
    let result = (Agent, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let on_request = "on.client = \"session/prompt\"\nresult = {}";
    let asked = [asked];
    assert_eq!(
        through(on_request, &asked).as_slice(),
        std::slice::from_ref(&result)
    );
    let [asked] = asked;
    let on_answer = "on.result = \"session/prompt\"\nresult = {}";
    assert_eq!(
        through(on_answer, &[asked.clone(), ended(1)]),
        [asked.clone(), result]
    );
    let refused = through(
        "on.answer = \"session/prompt\"\nrefuse = -1",
        &[asked, ended(1)],
    );
    assert_eq!(refused[1].1["error"]["code"], -1);
}

#[test]
fn what_an_edit_sends_names_parts_of_the_message() {
    let on = "on = { client = \"session/prompt\" }\n";
    let asked = [prompt(1, "s", "hello")];
    let sent = |rest: &str| through(&format!("{on}{rest}"), &asked)[0].clone();
    let (to, update) = sent("before.update = { sessionUpdate = \"{params/prompt/0/text}\" }");
    assert_eq!((to, &update["params"]["sessionId"]), (Agent, &json!("s")));
    assert_eq!(update["params"]["update"]["sessionUpdate"], "hello");
    let (_, request) = sent("before = { request = \"r\", params = \"{params}\" }");
    assert_eq!(
        (&request["method"], &request["params"]),
        (&json!("r"), &asked[0].1["params"])
    );
    assert_eq!(
        sent("before.notification = \"n\"").1,
        json!({"jsonrpc": "2.0", "method": "n"})
    );
    let (_, error) = sent("before.error = -7");
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&Value::Null, &json!(-7))
    );
}

/// A message is held until the request that was sent before it is answered, which the other side
/// never sees.
#[test]
fn a_message_waits_for_an_answer() {
    let edit = "on.update = \"plan\"\nbefore.request = \"r\"\nhold = \"answer\"";
    let answer = (
        Client,
        json!({"jsonrpc": "2.0", "id": "filter-1", "result": {}}),
    );
    let written = through(edit, &[update("plan"), update("other"), answer]);
    let kinds: Vec<_> = written
        .iter()
        .map(|(_, it)| &it["params"]["update"]["sessionUpdate"])
        .collect();
    assert_eq!(kinds, [&Value::Null, &json!("other"), &json!("plan")]);
}

/// The ids of the prompts that an agent with this condition drops.
fn dropped(condition: &str, messages: &[(Party, Value)]) -> Vec<u64> {
    let written = through(
        &format!("on.client = \"session/prompt\"\n{condition}\ndrop = true"),
        messages,
    );
    let prompts = messages.iter().filter(|it| it.1.get("method").is_some());
    let prompts = prompts.filter(|it| !written.contains(it));
    prompts.filter_map(|(_, it)| it["id"].as_u64()).collect()
}

#[test]
fn edits_know_what_came_before() {
    let messages = [
        prompt(1, "s", "one"),
        prompt(2, "t", "two"),
        prompt(3, "s", "three"),
        ended(1),
        ended(2),
        ended(3),
        prompt(4, "t", "two"),
    ];
    let none: [u64; 0] = [];
    assert_eq!(dropped("", &messages), [1, 2, 3, 4]);
    assert_eq!(dropped("on.nth = 2", &messages), [2]);
    assert_eq!(dropped("on.turns = 2", &messages), [2, 3]);
    assert_eq!(dropped("on.session_turns = 2", &messages), [3]);
    assert_eq!(dropped("on.idle = true", &messages), none);
    assert_eq!(
        dropped("on.after = { client = \"session/prompt\" }", &messages),
        [2, 3, 4]
    );
    let same = "on.after = { client = \"session/prompt\" }\non.same = \"/sessionId\"";
    assert_eq!(dropped(same, &messages), [3, 4]);
    assert_eq!(
        dropped("on.until = { client = \"session/prompt\" }", &messages),
        [1]
    );
    let both =
        "on.after = { client = \"session/prompt\" }\non.until = { result = \"session/prompt\" }";
    assert_eq!(dropped(both, &messages), [2, 3]);
    assert_eq!(dropped("on.initialize = { \"/a\" = 1 }", &messages), none);
}

#[test]
fn patterns_fit_what_they_say() {
    let messages = [prompt(1, "s", "one two")];
    let fits = |pattern: &str| !dropped(&format!("on.prompt = {pattern}"), &messages).is_empty();
    for pattern in [
        "\"one two\"",
        "{ is = \"one two\" }",
        "{ not = \"one\" }",
        "{ starts = \"one\", ends = \"two\" }",
        "{ contains = \"e t\", lacks = \"x\" }",
        "{ present = true, type = \"string\" }",
    ] {
        assert!(fits(pattern), "{pattern}");
    }
    for pattern in [
        "\"one\"",
        "{ is = \"one\" }",
        "{ not = \"one two\" }",
        "{ starts = \"two\" }",
        "{ starts = \"one\", ends = \"one\" }",
        "{ contains = \"x\" }",
        "{ lacks = \"one\" }",
        "{ present = false }",
        "{ type = \"array\" }",
    ] {
        assert!(!fits(pattern), "{pattern}");
    }
}

#[test]
fn rows_that_can_do_nothing_are_errors() {
    for (lines, error) in [
        ("", "expected edits, `code`, or `shell` for a client"),
        ("code = \"none\"", "no function `none` in the module code"),
        ("shell = \"exit 1\"", "expected edits"),
        (
            "scenario = \"hello\"\ncode = \"one_huge_page\"",
            "clients have a scenario",
        ),
        ("typo = 1", "unknown field `typo`"),
        (
            "edit = [{ on.update = \"plan\", dorp = true }]",
            "unknown field `dorp`",
        ),
        (
            "edit = [{ on.updaet = \"plan\", drop = true }]",
            "unknown field `updaet`",
        ),
        (
            "edit = [{ on.prompt = { stars = \"x\" }, drop = true }]",
            "unknown field `stars`",
        ),
        (
            "edit = [{ on.prompt = \"x\", drop = true }]",
            "`on` names no message",
        ),
        (
            "edit = [{ on = { client = \"a\", agent = \"b\" }, drop = true }]",
            "several kinds",
        ),
        (
            "edit = [{ on = { client = \"a\", same = \"/b\" }, drop = true }]",
            "`same` needs `after`",
        ),
        (
            "edit = [{ on = { client = \"a\", params = { b = 1 } }, drop = true }]",
            "begin with `/`",
        ),
        ("edit = [{ on.client = \"a\" }]", "an edit does nothing"),
        (
            "edit = [{ on.client = \"a\", drop = true, refuse = 1 }]",
            "in several ways",
        ),
        (
            "edit = [{ on.client = \"a\", remove = \"params\" }]",
            "begin with `/`",
        ),
        (
            "edit = [{ on.client = \"a\", remove = \"/result/b\" }]",
            "no member `result`",
        ),
        (
            "edit = [{ on.result = \"a\", set = { \"/params/b\" = 1 } }]",
            "no member `params`",
        ),
        (
            "edit = [{ on.client = \"a\", then = {} }]",
            "expected one of update",
        ),
        (
            "edit = [{ on.client = \"a\", then = { line = \"a\", params = 1 } }]",
            "without a method",
        ),
        (
            "edit = [{ on = { client = \"a\", after = { client = \"b\", nth = 1 } }, drop = true }]",
            "cannot stand in `after`",
        ),
    ] {
        let found = mutant(lines).err().unwrap_or_default();
        assert!(found.contains(error), "{lines}: {found}");
    }
}
