//! What `acp chat` does with a prompt and an answer: attachments, an editor, whole outputs, the clipboard.

use super::pty::Terminal;

async fn leave(mut terminal: Terminal) {
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn escape_cancels_the_turn_and_no_more() {
    let agent = "start; prompt; say 'waiting\\n'; message; message";
    let mut terminal = Terminal::start(agent);
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("waiting\r\n").await;
    terminal.types("\u{1b}");
    terminal.shows("cancelling").await;
    // A second one does not end acp.
    terminal.types("\u{1b}\u{1b}x");
    terminal.shows("› x").await;
    terminal.types("\u{3}");
    assert_eq!(terminal.code().await, Some(130));
}

#[tokio::test]
async fn a_cut_output_is_shown_as_a_whole() {
    let call = |id: &str, text: &str| {
        format!(
            r#"update '{{"sessionUpdate":"tool_call","toolCallId":"{id}","title":"Call {id}","status":"completed","content":[{{"type":"content","content":{{"type":"text","text":"{text}"}}}}]}}'"#
        )
    };
    let long = |name: &str| {
        (1..=9)
            .map(|line| format!("{name}{line}\\n"))
            .collect::<String>()
    };
    let agent = format!(
        "start; prompt; {}; {}; {}; say 'The answer.'; end end_turn; message",
        call("a", &long("one")),
        call("b", "short"),
        call("c", &long("two")),
    );
    let mut terminal = Terminal::start(&agent);
    terminal.shows("› ").await;
    terminal.types("/copy\r");
    terminal.shows("There is no answer yet.").await;
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("… 3 more lines · /output 1").await;
    terminal.shows("… 3 more lines · /output 2").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("/output 1\r");
    terminal.shows("Call a").await;
    terminal.shows("one9").await;
    terminal.shows("› ").await;
    terminal.types("typed\u{f}");
    terminal.shows("Call c").await;
    terminal.shows("two9").await;
    terminal.shows("typed").await;
    terminal.types("\u{15}/output 3\r");
    terminal.shows("no such output").await;
    terminal.shows("› ").await;
    terminal.types("/copy\r");
    terminal.shows("\u{1b}]52;c;VGhlIGFuc3dlci4=\u{7}").await;
    terminal.shows("11 bytes").await;
    leave(terminal).await;
}

#[tokio::test]
async fn a_prompt_is_written_in_an_editor() {
    let agent = "start; prompt; say \"$(quoted)\"; end end_turn
        prompt; say \"$(quoted)\"; end end_turn; message";
    let mut terminal = Terminal::start(agent);
    terminal.shows("› ").await;
    terminal.types("/edit hi\r");
    terminal.shows("› hi-there").await;
    terminal.types("\r");
    terminal.shows("'text':'hi-there'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("again\u{18}\u{5}");
    terminal.shows("again-there").await;
    terminal.types("\r");
    terminal.shows("'text':'again-there'").await;
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

#[tokio::test]
async fn files_are_attached_as_the_agent_takes_them() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "words").unwrap();
    std::fs::write(dir.path().join("p.png"), b"\x89PNG").unwrap();
    let cwd = dir.path().to_str().unwrap();
    let start = |capabilities: &str| {
        let agent = super::script::script(&format!(
            r#"answer '{{"protocolVersion":1,"agentCapabilities":{{"promptCapabilities":{{{capabilities}}}}}}}'
            answer '{{"sessionId":"s"}}'; prompt; say "$(quoted)"; end end_turn; message"#
        ));
        Terminal::acp(&["chat", "--cwd", cwd, "--", "sh", "-c", &agent])
    };
    let mut terminal = start(r#""image":true,"embeddedContext":true"#);
    terminal.shows("› ").await;
    terminal.types("/image p.png\r");
    terminal.shows("Attached to the next prompt: p.png").await;
    terminal.shows("› ").await;
    terminal.types("/image a.txt\r");
    terminal.shows("Not attached: expected a PNG").await;
    terminal.shows("› ").await;
    terminal.types("see @a.txt.\r");
    terminal.shows("attached: a.txt (contents)").await;
    terminal.shows("'type':'image'").await;
    terminal.shows("'text':'words'").await;
    terminal.shows(" s\r\n").await;
    leave(terminal).await;

    let mut terminal = start("");
    terminal.shows("› ").await;
    terminal.types("/image p.png\r");
    terminal.shows("the agent takes no images").await;
    terminal.shows("› ").await;
    terminal.types("@p.png @a.txt\r");
    terminal.shows("attached: p.png (link), a.txt (link)").await;
    terminal.shows("the agent takes no images").await;
    terminal.shows("'type':'resource_link'").await;
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

#[tokio::test]
async fn an_image_in_the_clipboard_is_attached() {
    let agent = super::script::script(
        r#"answer '{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":true}}}'
        answer '{"sessionId":"s"}'; prompt; say "$(quoted)"; end end_turn; message"#,
    );
    let mut terminal = Terminal::acp(&["chat", "--", "sh", "-c", &agent]);
    let bin = terminal.data().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = |name: &str, script: &str| {
        // A process that is being started may have a file that is open for writing.
        let (file, ready) = (bin.join("new"), bin.join(name));
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, everybody).unwrap();
        std::fs::rename(file, ready).unwrap();
    };
    for name in ["wl-paste", "xclip", "pngpaste"] {
        program(name, "exit 1");
    }
    terminal.shows("› ").await;
    terminal.types("\u{16}");
    terminal
        .shows("Not attached: no image is in the clipboard (wl-paste, xclip")
        .await;
    program("wl-paste", "echo no image");
    terminal.types("/image\r");
    terminal.shows("Not attached: expected a PNG").await;
    terminal.shows("› ").await;
    program("wl-paste", "exit 1");
    program("xclip", r"printf '\211PNG'");
    terminal.types("see \u{16}");
    terminal.shows("the image in the clipboard").await;
    terminal.types("it\r");
    // The line has stayed.
    terminal.shows("'text':'see").await;
    terminal.shows("'type':'image'").await;
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

#[tokio::test]
async fn the_line_is_edited_with_the_keys_of_vi() {
    let agent = super::script::script("start; prompt; say \"$(quoted)\"; end end_turn; message");
    let args = ["chat", "--editing-mode", "vi", "--", "sh", "-c", &agent];
    let mut terminal = Terminal::acp(&args);
    terminal.shows("› ").await;
    terminal.types("one two three");
    terminal.shows("three").await;
    terminal.types("\u{1b}");
    terminal.shows(": ").await;
    terminal.types("bdw0xi");
    terminal.shows("› ").await;
    terminal.types("O\r");
    terminal.shows("'text':'One").await;
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}
