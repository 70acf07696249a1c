//! `acp-conformance script`: steps against small agents, and as an agent.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};

/// Plays a script against a shell script, or else the reference agent.
fn played(script: &str, agent: Option<&str>) -> Ran {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("s.toml");
    fs::write(&file, script).unwrap();
    let mut args = vec!["script".to_owned(), file.display().to_string()];
    if let Some(agent) = agent {
        args.extend(["--", "sh", "-c", agent].map(str::to_owned));
    }
    let mut ran = acp_conformance(args);
    // Where the folder is does not matter.
    ran.stderr = ran.stderr.replace(&file.display().to_string(), "s.toml");
    ran
}

#[track_caller]
fn passes(script: &str, agent: &str) {
    let ran = played(script, Some(agent));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.ends_with(" steps done\n"), "{}", ran.stdout);
}

#[track_caller]
fn fails(script: &str, agent: &str, says: &str) {
    let ran = played(script, Some(agent));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(ran.stderr, format!("{says}\n"));
}

#[test]
fn the_example_of_the_help_is_played_against_the_reference_agent() {
    let help = acp_conformance(["script", "--help"]).stdout;
    let example = help.split_once("\nExample: ").unwrap().1;
    let lines = example.lines().filter_map(|line| line.strip_prefix("  "));
    let script: Vec<&str> = lines.collect();
    let steps = script
        .iter()
        .filter(|line| line.trim() == "[[step]]")
        .count();
    assert!(steps > 0, "{help}");
    let ran = played(&script.join("\n"), None);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let done = format!(": {steps} steps done\n");
    assert!(ran.stdout.ends_with(&done), "{}", ran.stdout);
}

#[test]
fn a_failure_names_the_step_what_was_expected_and_what_came() {
    let script = r#"
        timeout = 2
        [[step]]
        expect = { id = 1 }
        [[step]]
        expect = { id = 2, result = { stopReason = "cancelled" } }
    "#;
    let agent = r#"echo '{"id":1}'; echo noise; echo '{"id":2,"result":{"stopReason":"end_turn"}}'; echo '{"id":3}'; sleep 9"#;
    fails(
        script,
        agent,
        "s.toml:5: step 2, expect {\"id\":2,\"result\":{\"stopReason\":\"cancelled\"}}: no such message within 2s; \
         the nearest one differs at /result/stopReason: expected \"cancelled\", came \"end_turn\"\n  \
         came: noise\n  came: {\"id\":2,\"result\":{\"stopReason\":\"end_turn\"}}\n  came: {\"id\":3}",
    );
    let silent = "[[step]]\nwithin = 0.1\nnote = 'a word'\nexpect = {}";
    let says = "s.toml:1: step 1, a word: no such message within 100ms\n  nothing came";
    fails(silent, "sleep 9", says);
    let ended = "[[step]]\nexpect = { id = 1 }";
    let says = "s.toml:1: step 1, expect {\"id\":1}: the peer's output has ended\n  came: x";
    fails(ended, "echo x", says);
}

#[test]
fn the_next_line_may_be_insisted_on() {
    let next = "[[step]]\nexpect = { id = 1 }\nnext = true";
    passes(next, r#"echo '{"id":1}'"#);
    let says = "s.toml:1: step 1, expect {\"id\":1}: the next message differs at /id: expected 1, came 2\n  came: {\"id\":2}";
    fails(next, r#"echo '{"id":2}'; echo '{"id":1}'"#, says);
    let ran = played(next, Some("echo noise"));
    assert!(
        ran.stderr.contains("the next line is not JSON: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_is_sent_arrives_byte_by_byte() {
    // The agent is an echo: what comes back is what was sent.
    let script = r#"
        [variables]
        name = "x"
        [[step]]
        send = { id = "{name}", method = "_{name}/{n}" }
        repeat = 3
        split = 3
        pause = 0
        [[step]]
        expect = { jsonrpc = "2.0", id = "x", method = "_x/0" }
        next = true
        [[step]]
        expect = { id = "{name}", method = "_x/2" }
        [[step]]
        raw = '{"id":"{name}"'
        [[step]]
        hex = "7d 0a"
        [[step]]
        expect = '{"id":"x","method":"{absent}"}'
        next = true
        [[step]]
        send = '{"id":"{late}"}'
    "#;
    let ran = played(script, Some("cat"));
    assert_eq!(
        ran.stderr,
        "s.toml:21: step 7, send {\"id\":\"{late}\"}: {late} has no value; no earlier `expect` binds it\n"
    );
}

#[test]
fn a_silence_is_broken_by_anything() {
    let silence = "[[step]]\nsilence = 0.1\n[[step]]\nclose = true\n[[step]]\nexit = 0";
    passes(silence, "cat");
    // Long enough for any agent to start; what it says ends the silence at once.
    let silence = "[[step]]\nsilence = 60";
    let says = "s.toml:1: step 1, silence of 60s: the peer was to be silent\n  came: x";
    fails(silence, "echo x; sleep 9", says);
    let says = "s.toml:1: step 1, silence of 60s: the peer's output has ended\n  nothing came";
    fails(silence, "exec >&-; sleep 9", says);
}

#[test]
fn ends_exits_and_signals_are_seen() {
    let exit = "[[step]]\nend = true\n[[step]]\nexit = 3";
    passes(exit, "echo x; exit 3");
    let says = "s.toml:3: step 2, exit 3: the process was to exit with 3, it did with 4";
    fails(exit, "exit 4", says);
    let kill = "[[step]]\nkill = 'TERM'\n[[step]]\nexit = 143";
    passes(kill, "sleep 60");
    let running = "[[step]]\nexit = 0\nwithin = 0.1";
    let says = "s.toml:1: step 1, exit 0: the process has not ended within 100ms";
    fails(running, "sleep 60", says);
    let open = "[[step]]\nend = true\nwithin = 0.1";
    let says = "s.toml:1: step 1, end: the peer's output did not end within 100ms";
    fails(open, "sleep 60", says);
}

#[test]
fn a_peer_that_does_not_read_does_not_hang_the_script() {
    let flood = "[[step]]\nraw = '0123456789'\nrepeat = 100000\nwithin = 0.5";
    let ran = played(flood, Some("sleep 60"));
    assert!(
        ran.stderr.contains("has not read all of it within"),
        "{}",
        ran.stderr
    );
    let ran = played(flood, Some("exec <&-; sleep 60"));
    assert!(
        ran.stderr.contains("does not take what is written"),
        "{}",
        ran.stderr
    );
    let closed = "[[step]]\nclose = true\n[[step]]\nraw = 'x'";
    let says = "s.toml:3: step 2, raw: an earlier step has closed the peer's input";
    fails(closed, "cat", says);
}

#[test]
fn an_agent_can_be_played_and_die() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("agent.toml");
    let script = r#"
        [[step]]
        expect = { id = "{id}", method = "initialize" }
        [[step]]
        send = { id = "{id}", result = { protocolVersion = "{version}" } }
        [[step]]
        die = 9
    "#;
    fs::write(&file, script).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-conformance"))
        .args(["script", "--as-agent", "--set", "version=1"])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(b"{\"id\":\"a\",\"method\":\"initialize\"}\n")
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"protocolVersion\":1}}";
    assert_eq!(lines.next().unwrap().unwrap(), answer);
    assert!(lines.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(9));

    fs::write(&file, "[[step]]\nkill = 'TERM'").unwrap();
    let ran = acp_conformance(["script", "--as-agent", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .contains("not a process that this script has started")
    );
}

#[test]
fn what_is_no_script_is_not_played() {
    let ran = played("[[step]]\ndance = 1", Some("cat"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("s.toml: "), "{}", ran.stderr);
    let ran = acp_conformance(["script", "/no/such.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot read /no/such.toml: "));
}

#[test]
fn what_does_not_match_binds_nothing() {
    let script = r#"
        timeout = 5
        [[step]]
        expect = { a = "{x}", b = 1 }
        [[step]]
        expect = { c = "{x}" }
    "#;
    let agent = r#"printf '{"a":1,"b":2}\n{"a":2,"b":1}\n{"c":2}\n'"#;
    passes(script, agent);
}

#[test]
fn the_count_of_a_step_is_unknown_to_the_next() {
    let script = r#"
        timeout = 5
        [[step]]
        send = { id = "{n}" }
        repeat = 2
        [[step]]
        expect = { id = "{n}" }
        next = true
        [[step]]
        expect = { id = 1 }
    "#;
    passes(script, "cat");
}
