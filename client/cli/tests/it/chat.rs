//! `acp chat` in a pseudo-terminal.

use std::process::Stdio;

use tokio::process::Command;

use super::pty::Terminal;
use super::script::script;
use crate::agent::within;

#[tokio::test]
async fn a_conversation_in_a_terminal() {
    let agent = r#"start
        prompt; say '**Hello** \u001b[2Jthere.\n'; ask execute; say "$(quoted)"; end end_turn
        prompt; say 'waiting\n'; message; end cancelled
        message"#;
    let mut terminal = Terminal::start(agent);
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("Hello there.\r\n").await;
    terminal.shows("? May the agent: Do it (execute)").await;
    terminal.shows("y  allow once: Yes").await;
    terminal.types("y");
    terminal.shows("'optionId':'2'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("again\r");
    terminal.shows("waiting\r\n").await;
    terminal.types("\u{3}");
    terminal.shows("cancelled after ").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

/// What `acp` would do for the agent is asked about, and so is what the agent did by itself.
#[tokio::test]
async fn effects_are_asked_about_in_the_terminal() {
    let agent = r#"start; prompt; p=$(pwd -P)
        call fs/write_text_file '{"sessionId":"s","path":"'"$p/new"'","content":"first\nsecond"}'; say "$(quoted) 1\n"
        call terminal/create '{"sessionId":"s","command":"touch","args":["ran"]}'; say "$(quoted) 2\n"
        update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run rm","kind":"execute","status":"completed"}'
        message; say "$(quoted) 3\n"; end cancelled; message"#;
    let dir = tempfile::tempdir().unwrap();
    let agent = super::script::script(agent);
    let cwd = dir.path().to_str().unwrap();
    let mut terminal = Terminal::acp(&["chat", "--cwd", cwd, "--", "sh", "-c", &agent]);
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("? May acp for the agent: Write").await;
    terminal.shows("+ second").await;
    terminal.shows("y  allow once: Allow").await;
    // Ctrl-A and Ctrl-D are no answers.
    terminal.types("\u{1}\u{4}y");
    terminal.shows("'result':{}} 1").await;
    terminal.shows("? May acp for the agent: Run touch").await;
    terminal.shows("n  reject once").await;
    terminal.types("n");
    terminal.shows("not allowed by the user").await;
    terminal.shows("? The agent did, unasked: Run rm").await;
    terminal.shows("n  reject once: End the turn").await;
    terminal.types("n");
    terminal.shows("session/cancel").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
    assert!(dir.path().join("new").exists() && !dir.path().join("ran").exists());
}

#[tokio::test]
async fn elicitations_are_answered_in_the_terminal() {
    let agent = r#"message; case $line in *'"elicitation":{"form":{},"url":{}}'*) ;; *) exit 9 ;; esac
        send '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":1}}'; answer '{"sessionId":"s"}'
        prompt
        call elicitation/create '{"sessionId":"s","mode":"form","message":"Which \u001b[2Jone?","requestedSchema":{"type":"object",
            "required":["size"],"properties":{"size":{"type":"string","enum":["small","large"]},"name":{"type":"string"}}}}'
        say "$(quoted) 1\\n"
        call elicitation/create '{"sessionId":"s","mode":"form","message":"And?","requestedSchema":{"type":"object","properties":{"a":{"type":"boolean"}}}}'
        say "$(quoted) 2\\n"
        call elicitation/create '{"sessionId":"s","mode":"url","message":"Log in","elicitationId":"e","url":"https://example.com/login?a=b"}'
        say "$(quoted) 3\\n"
        call elicitation/create '{"sessionId":"s","mode":"url","message":"Again","elicitationId":"f","url":"https://example.com/"}'
        end cancelled; message"#;
    // Requests and their answers are lines.
    let agent = agent.replace(
        "{\"type\":\"object\",\n            ",
        "{\"type\":\"object\",",
    );
    let mut terminal = Terminal::start(&agent);
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal
        .shows("? The agent asks:\r\n  Which one?\r\n")
        .await;
    terminal.shows("size, required (1 of 2)").await;
    terminal.shows("2  large").await;
    terminal.shows("Enter  next").await;
    terminal.types("3\r");
    terminal.shows("is none of the choices").await;
    terminal.types("\u{15}2\r");
    terminal.shows("name (2 of 2)").await;
    terminal.types("Eve\r");
    terminal.shows("Enter  send").await;
    terminal.types("\r");
    terminal
        .shows("'content':{'size':'large','name':'Eve'}")
        .await;
    terminal.shows("The agent asks:\r\n  And?").await;
    terminal.shows("Enter  next").await;
    terminal.types("\u{1b}");
    terminal.shows("'action':'decline'").await;
    terminal
        .shows("to open a page:\r\n  Log in\r\n  https://example.com/login?a=b\r\n")
        .await;
    terminal.shows("y  agree").await;
    terminal.types("y");
    terminal.shows("'action':'accept'").await;
    terminal.shows("https://example.com/\r\n").await;
    terminal.shows("y  agree").await;
    terminal.types("\u{3}");
    terminal.shows("cancelled after ").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn two_interrupts_end_it() {
    let mut terminal = Terminal::start("start; prompt; say 'waiting\\n'; message; message");
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("waiting\r\n").await;
    terminal.types("\u{3}");
    terminal.shows("cancelling").await;
    terminal.types("\u{3}");
    assert_eq!(terminal.code().await, Some(130));
}

#[tokio::test]
async fn a_cancel_returns_what_was_queued_to_the_line() {
    let agent = r#"start; prompt; say 'waiting\n'; message; end cancelled
        prompt; say "$(quoted)"; end end_turn; message"#;
    let mut terminal = Terminal::start(agent);
    terminal.shows("› ").await;
    terminal.types("first\r");
    terminal.shows("waiting").await;
    terminal.types("second\rthi");
    terminal.shows("next: second").await;
    terminal.shows("› thi").await;
    terminal.types("\u{3}");
    terminal.shows("cancelled after ").await;
    terminal.shows("not sent").await;
    terminal.shows("thi").await;
    terminal.types("rd\r");
    terminal.shows("'text':'second/nthird'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn steer_gives_the_running_turn_input() {
    let agent = super::script::script(
        r#"answer '{"protocolVersion":1,"_meta":{"steering":{"supported":true}}}'; answer '{"sessionId":"s"}'
        prompt; say 'One.\n\n'
        message; send '{"jsonrpc":"2.0","id":'"$id"',"result":{"outcome":"injected"}}'; say "$(quoted) 2\n\n"
        message; send '{"jsonrpc":"2.0","id":'"$id"',"result":{"outcome":"promptRequired"}}'; end end_turn
        prompt; say "$(quoted)\n"; end end_turn; message"#,
    );
    let mut terminal = Terminal::acp(&["chat", "--", "sh", "-c", &agent]);
    terminal.shows("› ").await;
    terminal.types("go\r");
    terminal.shows("One.").await;
    terminal.types("/steer left\r");
    terminal.shows("› left\r\n").await;
    terminal.shows("_session/steering").await;
    terminal.shows("'text':'left'").await;
    terminal.types("/steer right\r");
    terminal.shows("it is sent after the turn").await;
    terminal.shows("'text':'right'").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn an_agent_that_cannot_be_steered_gets_the_input_later() {
    let agent = r#"start; prompt; say 'One.\n\n'; read -r go < GO; end end_turn
        prompt; say "$(quoted) 2\n"; end end_turn; message"#;
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let made = std::process::Command::new("mkfifo").arg(&go).status();
    assert!(made.unwrap().success());
    let agent = agent.replace("GO", go.to_str().unwrap());
    let mut terminal = Terminal::start(&agent);
    terminal.shows("› ").await;
    terminal.types("go\r");
    terminal.shows("One.").await;
    terminal.types("/steer left\r");
    terminal
        .shows("the agent takes no input during turns")
        .await;
    terminal.shows("next: left").await;
    tokio::task::spawn_blocking(move || std::fs::write(go, "\n"))
        .await
        .unwrap()
        .unwrap();
    terminal.shows("'text':'left'").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn the_prompt_has_a_status_and_changes_the_mode() {
    let agent = super::script::script(
        r#"answer '{"protocolVersion":1,"agentInfo":{"name":"tester","version":"1"}}'
        answer '{"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Asking"},{"id":"plan","name":"Planning"}]}}'
        answer '{}'; prompt; update '{"sessionUpdate":"usage_update","used":25,"size":100,"cost":{"amount":0.5,"currency":"EUR"}}'
        end end_turn; message"#,
    );
    let mut terminal = Terminal::acp(&["chat", "--", "sh", "-c", &agent]);
    terminal.shows("tester · Asking").await;
    terminal.types("hi\u{1b}[Z");
    terminal.shows("tester · Planning").await;
    terminal.types(" there\r");
    terminal.shows("25 of 100 tokens").await;
    terminal.shows("Planning · 25 % context · 0.5 EUR").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn a_mode_may_be_an_option() {
    let option = r#"{"id":"how","name":"How","category":"mode","type":"select","currentValue":"CURRENT","options":[{"value":"ask","name":"Asking"},{"value":"plan","name":"Planning"}]}"#;
    let (ask, plan) = (
        option.replace("CURRENT", "ask"),
        option.replace("CURRENT", "plan"),
    );
    let agent = super::script::script(&format!(
        r#"answer '{{"protocolVersion":1}}'; answer '{{"sessionId":"s","configOptions":[{ask}]}}'
        answer '{{"configOptions":[{plan}]}}'; message"#
    ));
    let mut terminal = Terminal::acp(&["chat", "--", "sh", "-c", &agent]);
    terminal.shows("Asking").await;
    terminal.types("/mode\r");
    terminal.shows("● ask").await;
    terminal.shows("› ").await;
    terminal.types("/mode plan\r");
    terminal.shows("Planning").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn a_chosen_mode_is_that_of_later_sessions_too() {
    let modes = r#""modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Asking"},{"id":"plan","name":"Planning"}]}"#;
    let agent = super::script::script(&format!(
        r#"answer '{{"protocolVersion":1}}'; answer '{{"sessionId":"s",{modes}}}'; answer '{{}}'
        answer '{{"sessionId":"t",{modes}}}'; message; heard=$(quoted)
        send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{}}}}'; prompt
        send '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"t","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"'"$heard"'"}}}}}}}}'
        end end_turn; message"#
    ));
    let mut terminal = Terminal::acp(&["chat", "--", "sh", "-c", &agent]);
    terminal.shows("Asking").await;
    terminal.types("/mode plan\r");
    terminal.shows("Planning").await;
    terminal.types("/new\r");
    terminal.shows("A new session.").await;
    terminal.shows("Planning").await;
    terminal.types("hi\r");
    terminal.shows("'session/set_mode'").await;
    terminal.shows("'modeId':'plan'").await;
    terminal.shows("Planning").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn what_a_turn_changed_is_undone_and_redone() {
    let dir = tempfile::tempdir().unwrap();
    let (file, cwd) = (dir.path().join("a"), dir.path().to_str().unwrap());
    std::fs::write(&file, "before").unwrap();
    let agent = super::script::script("start; prompt; printf after >a; end end_turn; message");
    let end = ["--cwd", cwd, "--", "sh", "-c", &agent];
    let read = || std::fs::read_to_string(&file).unwrap();

    let mut terminal = Terminal::acp(&[&["chat", "--undo", "always"][..], &end].concat());
    terminal.shows("› ").await;
    terminal.types("/undo\r");
    terminal.shows("No turn has changed a file.").await;
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("changed: a · /undo brings them back").await;
    assert_eq!(read(), "after");
    terminal.shows("› ").await;
    terminal.types("/undo\r");
    terminal.shows("Restored: a.").await;
    assert_eq!(read(), "before");
    terminal.shows("› ").await;
    terminal.types("/undo\r");
    terminal.shows("There is nothing left.").await;
    terminal.shows("› ").await;
    terminal.types("/redo\r");
    terminal.shows("Restored: a.").await;
    assert_eq!(read(), "after");
    std::fs::write(&file, "mine").unwrap();
    terminal.shows("› ").await;
    terminal.types("/undo\r");
    terminal.shows("Changed since, and kept: a.").await;
    assert_eq!(read(), "mine");
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));

    let mut terminal = Terminal::acp(&[&["chat"][..], &end].concat());
    terminal.shows("› ").await;
    terminal.types("/undo\r");
    terminal.shows("is no git repository").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn files_are_completed_after_an_at() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/words.rs"), "").unwrap();
    let agent = super::script::script("start; prompt; say \"$(quoted)\"; end end_turn; message");
    let cwd = dir.path().to_str().unwrap();
    let mut terminal = Terminal::acp(&["chat", "--cwd", cwd, "--", "sh", "-c", &agent]);
    terminal.shows("› ").await;
    terminal.types("read @word\t");
    terminal.shows("@src/words.rs").await;
    terminal.types("now\r");
    terminal.shows("attached: src/words.rs (link)").await;
    terminal.shows("now'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn a_question_rings_unless_told_not_to() {
    for (args, rings) in [
        (&["chat", "--demo"][..], true),
        (&["chat", "--demo", "--no-bell"], false),
    ] {
        let mut terminal = Terminal::acp(args);
        terminal.shows("› ").await;
        terminal.types("hi\r");
        let before = terminal.shows("y  allow once").await;
        assert_eq!(before.contains('\u{7}'), rings);
        terminal.types("\u{3}");
        terminal.shows("cancelled after").await;
        terminal.shows("› ").await;
        terminal.types("\u{4}");
        assert_eq!(terminal.code().await, Some(0));
    }
}

#[tokio::test]
async fn the_demo_shows_what_a_chat_displays() {
    let mut terminal = Terminal::acp(&["chat", "--demo"]);
    terminal.shows("demo · Ask").await;
    terminal.types("hi\r");
    for shown in [
        "What you see",
        "Shift-Tab │ the next mode",
        "• A plan",
        "? May the agent",
        "hello.rs +1 -1",
    ] {
        terminal.shows(shown).await;
    }
    terminal.shows("y  allow once: Yes").await;
    terminal.types("y");
    terminal.shows("✓ Change the greeting (edit)").await;
    terminal.shows("That is all").await;
    terminal.shows("✓ Show text").await;
    terminal.shows("0.0042 EUR\r\n").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn without_a_terminal_it_refuses() {
    let ended = Command::new(env!("CARGO_BIN_EXE_acp"))
        .args(["chat", "--", "sh"])
        .stdin(Stdio::null())
        .output();
    let ended = within(ended).await.unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("Use `acp run`"), "{stderr}");
}

/// Standard error is the terminal, which is in raw mode.
#[tokio::test]
async fn lines_of_standard_error_are_part_of_the_conversation() {
    let agent = super::script::script(
        r#"start; prompt; say 'First line'; printf 'gar\033[2Jbage\n'; printf 'complaint\n' >&2
        call _x '{}'; end end_turn; message"#,
    );
    let mut terminal = Terminal::acp(&["chat", "--verbose", "--", "sh", "-c", &agent]);
    terminal.shows("› ").await;
    terminal.types("hi\r");
    let mut shown = String::new();
    while !(shown.contains("bage") && shown.contains("complaint")) {
        shown += &terminal.shows("\n").await;
    }
    shown += &terminal.shows("› ").await;
    assert!(shown.contains("skipped an invalid message"), "{shown}");
    assert!(shown.contains("agent: complaint\r\n"), "{shown}");
    let is_raw = |(at, _): (usize, _)| at == 0 || !shown[..at].ends_with('\r');
    let raw: Vec<_> = shown
        .match_indices('\n')
        .filter(|place| is_raw(*place))
        .collect();
    assert!(
        raw.is_empty(),
        "a line of the terminal is garbled: {shown:?}"
    );
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

/// Text is in colours of the terminal's own palette that can be read on dark and on light backgrounds:
/// neither white nor black, and none that the terminal does not choose.
#[tokio::test]
async fn a_chat_can_be_read_on_any_background() {
    let agent = r##"start
        prompt; say '# Title\n**bold** `code`\n\n```sh\nls\n```\n| a |\n|---|\n| b |\n'; ask execute
        update '{"sessionUpdate":"tool_call","toolCallId":"d","title":"Look","kind":"read","status":"failed"}'
        update '{"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"pending"}]}'
        end end_turn; message"##;
    let mut terminal = Terminal::with(&["chat", "--", "sh", "-c", &script(agent)], true);
    let mut shown = terminal.shows("› ").await;
    terminal.types("hi\r");
    shown += &terminal.shows("? May the agent:").await;
    shown += &terminal.shows("allow once: Yes").await;
    terminal.types("y");
    shown += &terminal.shows("› ").await;
    // A hint of the history, then the menu of commands.
    terminal.types("h");
    shown += &terminal.shows("i").await;
    terminal.types("\u{8}/s\t");
    shown += &terminal.shows("essions").await;
    drop(terminal);
    let mut codes = Vec::new();
    for piece in shown.split("\u{1b}[").skip(1) {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        if piece[end..].starts_with('m') {
            // The first eight colours of the long form are those of the short form.
            let short = piece[..end].replace("38;5;", "3");
            codes.push(short);
        }
    }
    let codes: Vec<&str> = codes.iter().flat_map(|codes| codes.split(';')).collect();
    assert!(codes.contains(&"1") && codes.contains(&"2"), "{shown:?}");
    // Off; bold, dim, italic, underlined, reverse; the default colours; red to cyan.
    let allowed = |code: &str| {
        let numbers = [0..=4, 7..=7, 31..=36, 39..=39, 49..=49];
        code.is_empty()
            || code
                .parse()
                .is_ok_and(|code: u8| numbers.iter().any(|range| range.contains(&code)))
    };
    let others: Vec<_> = codes.iter().filter(|code| !allowed(code)).collect();
    assert!(others.is_empty(), "{others:?}\n{shown:?}");
}
