//! What a script may say, and what is said about one that says something else.

use serde_json::json;

use super::*;

fn step(text: &str) -> Result<Step, String> {
    match Script::parse("s.toml", &format!("\n[[step]]\n{text}\n")) {
        Ok(mut script) => Ok(script.steps.remove(0)),
        Err(error) => Err(error.to_string()),
    }
}

#[track_caller]
fn action(text: &str) -> Action {
    step(text).unwrap().action
}

#[track_caller]
fn refused(text: &str, why: &str) {
    let error = step(text).unwrap_err();
    assert!(error.contains(why), "{error}");
}

const ONCE: Manner = Manner {
    repeat: 1,
    split: None,
};

#[test]
fn a_table_gets_its_version_and_text_is_left_alone() {
    let version = json!({"jsonrpc": "2.0", "id": 1});
    assert_eq!(action("send = { id = 1 }"), Action::Send(version, ONCE));
    let text = json!({"id": null});
    assert_eq!(action("send = '{\"id\":null}'"), Action::Send(text, ONCE));
    let pattern = json!({"id": 1});
    assert_eq!(
        action("expect = { id = 1 }\nnext = true"),
        Action::Expect {
            pattern,
            next: true
        }
    );
}

#[test]
fn bytes_are_text_or_digits_and_sent_in_a_manner() {
    let manner = Manner {
        repeat: 3,
        split: Some((2, Duration::from_millis(500))),
    };
    assert_eq!(
        action("raw = \"a\\n\"\nrepeat = 3\nsplit = 2\npause = 0.5"),
        Action::Raw(Bytes::Text("a\n".into()), manner)
    );
    assert_eq!(
        action("hex = 'ff 0A'"),
        Action::Raw(Bytes::Hex(vec![0xff, 0x0a]), ONCE)
    );
}

#[test]
fn the_rest_is_one_word_each() {
    assert_eq!(action("delay = 1"), Action::Delay(Duration::from_secs(1)));
    let half = Duration::from_millis(500);
    assert_eq!(action("silence = 0.5"), Action::Silence(half));
    assert_eq!(action("close = true"), Action::Close);
    assert_eq!(action("end = true"), Action::End);
    assert_eq!(action("exit = 0"), Action::Exit(0));
    assert_eq!(action("kill = 'STOP'"), Action::Kill(Signal::Stop));
    assert_eq!(action("die = 3"), Action::Die(3));
}

#[test]
fn a_step_has_a_line_a_title_and_a_limit() {
    let text = "timeout = 9\n\n[[step]]\nclose = true\n# a comment\n[[step]]\nnote = 'the end'\nend = true\nwithin = 2\n";
    let script = Script::parse("s.toml", text).unwrap();
    let told: Vec<_> = script
        .steps()
        .iter()
        .map(|step| (step.line, step.title.as_str(), step.within.as_secs()))
        .collect();
    assert_eq!(told, [(3, "close", 9), (6, "the end", 2)]);
}

#[test]
fn a_mistake_is_named_with_file_line_and_step() {
    let error = step("close = true\n[[step]]\nnext = true").unwrap_err();
    assert_eq!(
        error,
        "s.toml:4: step 2: does nothing; it needs one of send, raw, hex, expect, silence, delay, close, end, exit, kill, die"
    );
    refused("close = true\nend = true", "does two things, close and end");
    refused("close = false", "`close = false` does nothing");
    refused("close = true\nsplit = 1", "`split` and `pause` go with");
    refused("close = true\nnext = true", "`next` goes with expect");
    refused("delay = 1\nwithin = 1", "`within` has no meaning for delay");
    refused("raw = ''\nsplit = 0", "at least 1");
    refused("raw = ''\npause = 1", "`pause` goes with `split`");
    refused("delay = -1", "`delay` is a number of seconds");
    refused("hex = 'f'", "pairs of hexadecimal digits");
    refused("hex = 'fg'", "pairs of hexadecimal digits");
    refused("send = '{'", "`send` is not JSON: ");
    refused("send = 1", "`send` is a table");
    refused("dance = 1", "unknown field `dance`");
    refused("kill = 'HUP'", "unknown variant `HUP`");
    refused("raw = ", "s.toml: ");
    let empty = Script::parse("s.toml", "timeout = 1").unwrap_err();
    assert_eq!(empty.to_string(), "s.toml: no [[step]]");
}
