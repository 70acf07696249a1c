//! What a client does for agents: permission, files, terminals.

use serde_json::{Value, json};

use super::assertions::{answer, equals, expect, needs, refused, result};
use super::commands::{IN_FOLDER, IN_VARIABLE, NOT_KILLED, OUTLIVED};
use super::played::{ClientCheck, Played};
use crate::harness::{Outcome, Stop, inconclusive, skip};
use crate::wire::Party;

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.reads", reads),
    ("client.reads-lines", reads_lines),
    ("client.read-fails", read_fails),
    ("client.refuses-relative-paths", refuses_relative_paths),
    ("client.creates-files", creates_files),
    ("client.writes-exactly", writes_exactly),
    ("client.runs-commands", runs_commands),
    ("client.exit-code", exit_code),
    ("client.release-invalidates", release_invalidates),
    ("client.truncates-characters", truncates_characters),
    ("client.keeps-killed-terminals", keeps_killed_terminals),
    ("client.terminal-cwd", terminal_cwd),
    ("client.terminal-env", terminal_env),
    ("client.answers-while-waiting", answers_while_waiting),
    ("client.release-kills", release_kills),
    (
        "client.refuses-undeclared-terminals",
        refuses_undeclared_terminals,
    ),
];

fn content(played: &Played, n: usize) -> Outcome<(usize, String)> {
    needs(played, "/fs/readTextFile")?;
    let (index, result) = result(played, "fs/read_text_file", n)?;
    let content = result.get("content").and_then(Value::as_str);
    Ok((index, content.unwrap_or_default().to_owned()))
}

fn reads(played: &Played) -> Outcome {
    let (index, content) = content(played, 0)?;
    let expected = json!("one\ntwo\nthree\n");
    equals(
        played,
        index,
        "the content",
        &expected,
        Some(&json!(content)),
    )
}

fn reads_lines(played: &Played) -> Outcome {
    let (index, content) = content(played, 1)?;
    let line = content.trim_end_matches('\n');
    equals(
        played,
        index,
        "the content of line 2",
        &json!("two"),
        Some(&json!(line)),
    )
}

fn read_fails(played: &Played) -> Outcome {
    needs(played, "/fs/readTextFile")?;
    refused(played, "fs/read_text_file", 2).map(drop)
}

fn refuses_relative_paths(played: &Played) -> Outcome {
    needs(played, "/fs/readTextFile")?;
    refused(played, "fs/read_text_file", 3).map(drop)
}

fn creates_files(played: &Played) -> Outcome {
    needs(played, "/fs/writeTextFile")?;
    let (index, _) = result(played, "fs/write_text_file", 0)?;
    let written = played.folder.join("out.txt").exists();
    expect(
        played,
        index,
        written,
        "expected the file to exist after it was written, got none",
    )
}

fn writes_exactly(played: &Played) -> Outcome {
    needs(played, "/fs/writeTextFile")?;
    result(played, "fs/write_text_file", 1)?;
    let (index, back) = content(played, 4)?;
    let written = json!("Grüße\nwithout a last newline");
    equals(played, index, "the content", &written, Some(&json!(back)))?;
    let left = std::fs::read_to_string(played.folder.join("out.txt"));
    let left = left.ok().map(|left| json!(left));
    let what = "the content after the second write";
    equals(played, index, what, &json!(""), left.as_ref())
}

fn output(played: &Played, n: usize) -> Outcome<(usize, &Value)> {
    needs(played, "/terminal")?;
    result(played, "terminal/output", n)
}

fn runs_commands(played: &Played) -> Outcome {
    let (index, output) = output(played, 0)?;
    let printed = output.get("output");
    equals(played, index, "the output", &json!("hello"), printed)?;
    let code = output.pointer("/exitStatus/exitCode");
    equals(played, index, "the exit code", &json!(3), code)
}

fn exit_code(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    let (index, exit) = result(played, "terminal/wait_for_exit", 0)?;
    let code = exit.get("exitCode");
    equals(played, index, "the exit code", &json!(3), code)
}

fn release_invalidates(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    if let Err(Stop::Fail(_)) = result(played, "terminal/release", 0) {
        return inconclusive("the client released no terminal");
    }
    refused(played, "terminal/output", 1).map(drop)
}

fn truncates_characters(played: &Played) -> Outcome {
    let (index, output) = output(played, 2)?;
    let truncated = output.get("truncated");
    equals(played, index, "`truncated`", &json!(true), truncated)?;
    let text = output
        .get("output")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let whole = text.chars().all(|c| c == 'ä');
    let reason =
        format!("expected at most 5 bytes of whole characters, the last ones, got {text:?}");
    let fits = (1..=5).contains(&text.len());
    expect(played, index, whole && fits, &reason)
}

fn keeps_killed_terminals(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    result(played, "terminal/kill", 0)?;
    result(played, "terminal/wait_for_exit", 2)?;
    result(played, "terminal/output", 3)?;
    result(played, "terminal/release", 2).map(drop)
}

/// The n-th command printed this.
fn printed(played: &Played, n: usize, text: &str) -> Outcome {
    let (index, output) = output(played, n)?;
    equals(
        played,
        index,
        "the output",
        &json!(text),
        output.get("output"),
    )
}

fn terminal_cwd(played: &Played) -> Outcome {
    printed(played, 0, IN_FOLDER)
}

fn terminal_env(played: &Played) -> Outcome {
    printed(played, 1, IN_VARIABLE)
}

fn answers_while_waiting(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    let recording = &played.recording;
    let asked = |method| recording.calls(Party::Agent, method).nth(2);
    let (Some((wait, _)), Some((output, _))) =
        (asked("terminal/wait_for_exit"), asked("terminal/output"))
    else {
        return inconclusive("the scenario did not get to terminal/wait_for_exit");
    };
    let waited = recording.answer(wait).map(|(index, _)| index);
    if waited.is_some_and(|waited| waited < output) {
        return inconclusive("terminal/wait_for_exit was answered before the command ended");
    }
    let (index, _) = answer(played, "terminal/output", 2)?;
    let reason = "expected the answer to terminal/output while terminal/wait_for_exit is pending, \
        got it afterwards";
    expect(
        played,
        index,
        waited.is_none_or(|waited| index < waited),
        reason,
    )?;
    answer(played, "terminal/kill", 0)?;
    match recording.calls(Party::Agent, NOT_KILLED).next() {
        Some((index, _)) => Err(Stop::at(
            recording,
            index,
            "expected an answer to terminal/kill while terminal/wait_for_exit is pending, got none",
        )),
        None => Ok(()),
    }
}

fn release_kills(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    let (index, _) = result(played, "terminal/release", 3)?;
    let outlived = played.folder.join("nested").join(OUTLIVED).exists();
    let reason = "expected the command to end with its terminal, got one that goes on";
    expect(played, index, !outlived, reason)
}

fn refuses_undeclared_terminals(played: &Played) -> Outcome {
    if played.recording.declared("/terminal").is_some() {
        return skip("the client declares terminals, and nothing says how it does not");
    }
    refused(played, "terminal/create", 0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Said = (&'static str, Value);

    fn begin() -> Said {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {"terminal": true}});
        let begin = json!({"id": 0, "method": "initialize", "params": params});
        ("client", begin)
    }

    /// A request of the agent.
    fn ask(id: u64, method: &str) -> Said {
        ("agent", json!({"id": id, "method": method, "params": {}}))
    }

    fn result_of(id: u64, result: Value) -> Said {
        ("client", json!({"id": id, "result": result}))
    }

    fn refusal_of(id: u64) -> Said {
        let error = json!({"code": -32602, "message": "no"});
        ("client", json!({"id": id, "error": error}))
    }

    #[test]
    fn a_terminal_that_was_not_released_shows_nothing_of_one_that_was() {
        let outcome = |released: Said, output: Said| {
            let output_of = |id: u64| ask(id, "terminal/output");
            let before = [begin(), output_of(1), refusal_of(1)];
            let after = [ask(2, "terminal/release"), released, output_of(3), output];
            release_invalidates(&Played::of(before.into_iter().chain(after)))
        };
        let released = || result_of(2, json!({}));
        assert!(outcome(released(), refusal_of(3)).is_ok());
        let kept = outcome(released(), result_of(3, json!({"output": ""})));
        assert!(matches!(kept, Err(Stop::Fail(_))), "{kept:?}");
        let never = outcome(refusal_of(2), refusal_of(3));
        assert!(matches!(never, Err(Stop::Inconclusive(_))), "{never:?}");
    }

    #[test]
    fn truncated_output_is_not_empty() {
        let outcome = |text: &str| {
            let mut said = vec![begin()];
            for id in 1..=3 {
                let output = json!({"output": text, "truncated": true});
                said.extend([ask(id, "terminal/output"), result_of(id, output)]);
            }
            truncates_characters(&Played::of(said))
        };
        assert!(outcome("ää").is_ok());
        assert!(outcome("").is_err());
        assert!(outcome("äää").is_err());
    }

    #[test]
    fn a_command_that_nobody_kills_while_the_agent_waits_is_seen() {
        let outcome = |is_late: bool| {
            let mut said = vec![begin()];
            for id in 1..=3 {
                said.extend([
                    ask(10 + id, "terminal/wait_for_exit"),
                    ask(id, "terminal/output"),
                ]);
                said.push(result_of(id, json!({"output": "", "truncated": false})));
            }
            said.push(ask(4, "terminal/kill"));
            let late = ("agent", json!({"method": NOT_KILLED, "params": {}}));
            said.extend(is_late.then_some(late));
            said.extend([result_of(4, json!({})), result_of(13, json!({}))]);
            answers_while_waiting(&Played::of(said))
        };
        assert!(outcome(false).is_ok());
        assert!(matches!(outcome(true), Err(Stop::Fail(_))));
    }
}
