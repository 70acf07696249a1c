//! The sessions of `acp chat`: chosen from a list, continued, forked and switched.

use super::pty::Terminal;

async fn leave(mut terminal: Terminal) {
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn a_stored_session_is_chosen_and_left_again() {
    let mut terminal = Terminal::acp(&["chat", "--demo"]);
    terminal.shows("› ").await;
    terminal.types("/sessions\r");
    terminal.shows("▸  1  Raise the limit of the parser").await;
    terminal.shows("3 of 3").await;
    terminal.types("build");
    terminal.shows("▸  2  Explain the error of the build").await;
    terminal.shows("1 of 3").await;
    terminal.types("\r");
    terminal.shows("continues the session demo-b").await;
    terminal.shows("› Explain the error of the build").await;
    terminal.shows("It is done.").await;
    terminal.shows("end of the history").await;
    terminal.shows("› ").await;
    terminal.types("/session\r");
    terminal.shows("demo-b").await;
    terminal.shows("› ").await;
    terminal.types("/switch 1\r");
    terminal.shows("Session 1: demo-1").await;
    terminal.shows("› ").await;
    terminal.types("/switch\r");
    terminal.shows("▸  2  Explain the error of the build").await;
    terminal.types("\r");
    terminal.shows("Session 2: Explain the error").await;
    terminal.shows("› ").await;
    terminal.types("/switch 7\r");
    terminal.shows("No session 7 is open.").await;
    terminal.shows("› ").await;
    terminal.types("/fork\r");
    terminal.shows("cannot fork").await;
    leave(terminal).await;
}

#[tokio::test]
async fn a_list_that_is_left_can_be_referred_to() {
    let mut terminal = Terminal::acp(&["chat", "--demo"]);
    terminal.shows("› ").await;
    terminal.types("/resume\r");
    terminal.shows("3 of 3").await;
    terminal.types("\u{1b}");
    terminal.shows("  3  Rename a module").await;
    terminal.shows("/resume NUMBER").await;
    terminal.shows("› ").await;
    terminal.types("/resume 3\r");
    terminal.shows("continues the session demo-c").await;
    terminal.shows("end of the history").await;
    terminal.shows("› ").await;
    terminal.types("/resume demo-c\r");
    terminal.shows("is the current one").await;
    terminal.shows("› ").await;
    terminal.types("/resume none\r");
    terminal.shows("does not continue the session none").await;
    leave(terminal).await;
}

#[tokio::test]
async fn a_chat_begins_with_a_chosen_session() {
    let mut terminal = Terminal::acp(&["chat", "--demo", "--choose-session"]);
    terminal.shows("3 of 3").await;
    terminal.types("\u{1b}[B\r");
    terminal.shows("continues the session demo-b").await;
    terminal.shows("end of the history").await;
    leave(terminal).await;
    let mut terminal = Terminal::acp(&["chat", "--demo", "--choose-session"]);
    terminal.shows("3 of 3").await;
    terminal.types("\u{1b}");
    terminal.shows("no session was chosen").await;
    assert_eq!(terminal.code().await, Some(1));
}

/// What happens in a session in the background is announced once, and shown when it is changed to.
#[tokio::test]
async fn a_fork_goes_on_and_the_session_before_it_is_announced() {
    let late = |session: &str, text: &str| {
        format!(
            r#"send '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}\n\n"}}}}}}}}'"#
        )
    };
    let agent = format!(
        r#"answer '{{"protocolVersion":1}}'; answer '{{"sessionId":"s"}}'
        message; heard=$(quoted); send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{"sessionId":"t"}}}}'
        {}; prompt; {}; {}; end end_turn; message"#,
        late("s", "First news."),
        late("s", "More news."),
        late("t", "'\"$heard\"'"),
    );
    let agent = super::script::script(&agent);
    let args = ["chat", "--mcp-server", "files=sh", "--", "sh", "-c", &agent];
    let mut terminal = Terminal::acp(&args);
    terminal.shows("› ").await;
    terminal.types("/fork\r");
    terminal.shows("a copy of session 1").await;
    terminal.shows("session 1 has news: s · /switch 1").await;
    terminal.shows("› ").await;
    terminal.types("hi\r");
    let before = terminal.shows("'name':'files'").await;
    assert!(
        !before.contains("has news"),
        "it is announced once: {before}"
    );
    assert!(
        before.contains("session/fork") && !before.contains("First news"),
        "{before}"
    );
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("/switch 1\r");
    terminal.shows("Session 1: s").await;
    terminal.shows("First news.").await;
    terminal.shows("More news.").await;
    leave(terminal).await;
}

#[tokio::test]
async fn a_name_stays_with_its_session() {
    let mut terminal = Terminal::acp(&["chat", "--demo", "--session", "work"]);
    for (line, shown, named) in [
        ("/new\r", "A new session.", "demo-2"),
        ("/resume demo-a\r", "end of the history", "demo-2"),
        ("/new\r", "A new session.", "demo-2"),
        ("/resume work\r", "Session 2: demo-2", "demo-2"),
        ("/new\r", "A new session.", "demo-4"),
    ] {
        terminal.shows("› ").await;
        terminal.types(line);
        terminal.shows(shown).await;
        let files = terminal.names();
        assert!(files.contains(&format!("\"{named}\"")), "{line}: {files}");
    }
    leave(terminal).await;
}

/// Opens a second session, and says in it what the client sent for it.
const SECOND: &str = r#"message; servers=$(quoted); send '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"t"}}'
    prompt; send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$servers"'"}}}}'
    end end_turn; message"#;

async fn second_session(mut terminal: Terminal) {
    terminal.shows("› ").await;
    terminal.types("again\r");
    terminal.shows("'name':'files'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    let files = terminal.names();
    assert!(files.contains(r#""sessionId":"t""#), "{files}");
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

const NAMED: [&str; 5] = ["chat", "--session", "work", "--mcp-server", "files=sh"];

#[tokio::test]
async fn a_new_session_keeps_its_name_and_servers() {
    let agent = super::script::script(&format!(
        r#"answer '{{"protocolVersion":1,"agentCapabilities":{{"loadSession":true}}}}'; answer '{{"sessionId":"s"}}'; {SECOND}"#
    ));
    let mut terminal = Terminal::acp(&[&NAMED[..], &["--", "sh", "-c", &agent]].concat());
    terminal.shows("› ").await;
    terminal.types("/new\r");
    terminal.shows("A new session.").await;
    second_session(terminal).await;
}

#[tokio::test]
async fn a_session_in_place_of_a_lost_one_keeps_its_name_and_servers() {
    let dir = tempfile::tempdir().unwrap();
    let agent = super::script::script(&format!(
        r#"answer '{{"protocolVersion":1,"agentCapabilities":{{"loadSession":true}}}}'
        if [ -e again ]; then refuse -32002 Gone; {SECOND}; fi; touch again; answer '{{"sessionId":"s"}}'"#
    ));
    let cwd = dir.path().to_str().unwrap();
    let args = ["--cwd", cwd, "--", "sh", "-c", &agent];
    let mut terminal = Terminal::acp(&[&NAMED[..], &args].concat());
    terminal.shows("was lost").await;
    second_session(terminal).await;
}

#[tokio::test]
async fn a_session_that_cannot_be_resumed_is_explained() {
    let agent = super::script::script(
        r#"answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'; message
        send '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32603,"message":"Internal error","data":{"details":"no such rollout"}}}'; message"#,
    );
    let mut terminal = Terminal::acp(&["chat", "--resume", "gone", "--", "sh", "-c", &agent]);
    terminal.shows("does not continue the session gone").await;
    terminal.shows("no such rollout").await;
    terminal.shows("acp sessions list").await;
    assert_eq!(terminal.code().await, Some(1));
}

#[tokio::test]
async fn a_continued_session_shows_its_history() {
    let capabilities = r#""loadSession":true,"sessionCapabilities":{"resume":{}}"#;
    let agent = super::script::script(&format!(
        r#"answer '{{"protocolVersion":1,"agentCapabilities":{{{capabilities}}}}}'; message
        update '{{"sessionUpdate":"user_message_chunk","content":{{"type":"text","text":"Old words"}}}}'; say 'Old answer'
        send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{}}}}'; message"#
    ));
    let agent = agent.replace("\"sessionId\":\"s\"", "\"sessionId\":\"old\"");
    let mut terminal = Terminal::acp(&["chat", "--resume", "old", "--", "sh", "-c", &agent]);
    terminal.shows("continues the session old").await;
    terminal.shows("› Old words").await;
    terminal.shows("Old answer").await;
    terminal.shows("end of the history").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
    let resumes = agent.replace("\"loadSession\":true,", "");
    let resumes = resumes.replace("session/update", "_none");
    let mut terminal = Terminal::acp(&["chat", "--resume", "old", "--", "sh", "-c", &resumes]);
    terminal
        .shows("continues the session old, without its history")
        .await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

/// A question of a session in the background names it, and shows the change of its own call.
#[tokio::test]
async fn a_question_of_another_session_names_it() {
    let update = |session: &str, update: &str| {
        format!(
            r#"send '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{update}}}}}'"#
        )
    };
    let call = |text: &str| {
        format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"Write","status":"pending","content":[{{"type":"diff","path":"/a","newText":"{text}\n"}}]}}"#
        )
    };
    let title =
        r#"{"sessionUpdate":"session_info_update","title":"Pay\u001b[2J the bill"}"#.to_owned();
    let form = |session: &str, message: &str| {
        format!(
            r#"call elicitation/create '{{"sessionId":"{session}","mode":"form","message":"{message}","requestedSchema":{{"type":"object","properties":{{"a":{{"type":"boolean"}}}}}}}}'"#
        )
    };
    let agent = format!(
        r#"answer '{{"protocolVersion":1}}'; answer '{{"sessionId":"s"}}'
        answer '{{"sessionId":"t"}}'; {}; {}; prompt; {}; ask edit; {}; {}; end end_turn; message"#,
        update("s", &title),
        update("s", &call("of the first")),
        update("t", &call("of the second")),
        form("s", "The first?"),
        form("t", "The second?"),
    );
    let mut terminal = Terminal::start(&agent);
    terminal.shows("› ").await;
    terminal.types("/fork\r");
    terminal.shows("a copy of session 1").await;
    terminal.shows("› ").await;
    terminal.types("hi\r");
    let question = terminal.shows("Esc  refuse").await;
    assert!(
        question.contains("In session 1 (Pay the bill):\r\n? May the agent: Do it"),
        "{question}"
    );
    let change = question.split("? May the agent").nth(1).unwrap();
    assert!(
        change.contains("+ of the first") && !change.contains("of the second"),
        "{change}"
    );
    terminal.types("y");
    let form = terminal.shows("The first?").await;
    assert!(
        form.contains("In session 1 (Pay the bill):\r\n? The agent asks:"),
        "{form}"
    );
    // Earlier keys are not answers.
    terminal.shows("decline").await;
    terminal.types("\u{1b}");
    let form = terminal.shows("The second?").await;
    assert!(!form.contains("In session"), "{form}");
    terminal.shows("decline").await;
    terminal.types("\u{1b}");
    terminal.shows(" s\r\n").await;
    leave(terminal).await;
}

#[tokio::test]
async fn a_session_that_is_closed_for_another_is_named() {
    let mut terminal = Terminal::acp(&["chat", "--demo"]);
    for _ in 2..=8 {
        terminal.shows("› ").await;
        terminal.types("/new\r");
        let shown = terminal.shows("A new session.").await;
        assert!(!shown.contains("closed"), "{shown}");
    }
    terminal.shows("› ").await;
    terminal.types("/new\r");
    terminal.shows("A new session.").await;
    terminal
        .shows("Session 1 (demo-1) was closed: 8 sessions are open.")
        .await;
    terminal.shows("/resume demo-1 continues it.").await;
    leave(terminal).await;
}
