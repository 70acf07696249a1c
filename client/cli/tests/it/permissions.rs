//! Flags that answer permission requests, and the agent's access through `acp`.

use super::acp::{Acp, run};

async fn asked(flag: &str, kind: &str) -> String {
    let agent = format!("start; prompt; ask {kind}; say \"$(quoted)\"; end end_turn");
    let ended = run(&[flag, "--format", "quiet", "hi"], &agent).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

#[tokio::test]
async fn flags_answer_by_kind() {
    let chosen = |id| format!("'outcome':'selected','optionId':'{id}'");
    for kind in ["read", "execute"] {
        let answer = asked("--approve-all", kind).await;
        assert!(answer.contains(&chosen(2)), "{answer}");
        let answer = asked("--deny-all", kind).await;
        assert!(answer.contains(&chosen(1)), "{answer}");
    }
}

#[tokio::test]
async fn rules_decide_before_flags_and_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    let rules = "[[rule]]\neffect = \"deny\"\nkind = \"execute\"\n
        [[rule]]\neffect = \"allow\"\nname = \"pages\"\nkind = \"fetch\"\n";
    std::fs::write(&path, rules).unwrap();
    let file = path.to_str().unwrap();
    let ask = |kind| format!("start; prompt; ask {kind}; say \"$(quoted)\"; end end_turn");
    for (flag, kind, id, shown) in [
        (
            "--deny-all",
            "fetch",
            2,
            "allowed once by rule 2 (pages) of ",
        ),
        ("--approve-all", "execute", 1, "refused by rule 1 of "),
    ] {
        let ended = run(&[flag, "--rules", file, "hi"], &ask(kind)).await;
        let chosen = format!("'outcome':'selected','optionId':'{id}'");
        assert!(ended.stdout.contains(&chosen), "{ended:?}");
        assert!(ended.stderr.contains(shown), "{ended:?}");
        assert!(ended.stderr.contains("rules.toml"), "{ended:?}");
    }
    let ended = run(
        &["--deny-all", "--rules", file, "--format", "json", "hi"],
        &ask("fetch"),
    )
    .await;
    let lines = ended.lines();
    let answered = lines.iter().find(|line| line["type"] == "permission");
    let reason = format!("rule 2 (pages) of {file}");
    assert_eq!(answered.unwrap()["reason"], reason);
    // The flag decides requests that no rule matches.
    let ended = run(&["--deny-all", "--rules", file, "hi"], &ask("read")).await;
    assert!(ended.stderr.contains(": refused"), "{ended:?}");

    std::fs::write(&path, "[[rule]]\nefect = \"deny\"\n").unwrap();
    let ended = run(&["--rules", file, "hi"], &ask("edit")).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("unknown field `efect`"), "{ended:?}");
}

/// Without a terminal, no user can be asked. `setsid` detaches the test from its terminal.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn where_nobody_can_be_asked_only_reads_are_approved_and_only_if_so_wanted() {
    let no_terminal = "there is no terminal to ask on: use --approve-all";
    for (flag, kind, id, reason) in [
        (Some("--approve-reads"), "search", 2, "allowed once\n"),
        (Some("--approve-reads"), "fetch", 1, no_terminal),
        (
            Some("--deny-all"),
            "read",
            1,
            "refused; --deny-all rejects everything\n",
        ),
        (None, "read", 1, no_terminal),
    ] {
        let agent = format!("start; prompt; ask {kind}; say \"$(quoted)\"; end end_turn");
        let mut command = tokio::process::Command::new("setsid");
        command.args(["--wait", env!("CARGO_BIN_EXE_acp"), "run"]);
        command.args(flag).args(["hi", "--", "sh", "-c"]);
        command.arg(super::script::script(&agent));
        let ended = Acp::spawn(command).end().await;
        let chosen = format!("'outcome':'selected','optionId':'{id}'");
        assert!(ended.stdout.contains(&chosen), "{flag:?} {kind}: {ended:?}");
        assert!(ended.stderr.contains(reason), "{flag:?} {kind}: {ended:?}");
    }
}

#[tokio::test]
async fn files_are_read_and_written_inside_the_directory_only() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("in");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    std::fs::write(inside.join("file"), "one\ntwo\n").unwrap();
    std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
    let agent = r#"start; prompt; p=$(pwd -P)
        get() { call fs/read_text_file '{"sessionId":"s","path":"'"$1"'"'"$2"'}'; say "$(quoted)\n"; }
        get "$p/file" ',"line":2'; get "$p/../secret"; get "$p/link"; get file
        call fs/write_text_file '{"sessionId":"s","path":"'"$p/sub/new"'","content":"text"}'
        say "$(quoted)\n"
        call fs/write_text_file '{"sessionId":"s","path":"'"$p/../out"'","content":"text"}'
        say "$(quoted)\n"
        end end_turn"#;
    let acp = Acp::start_in(&inside, &["--approve-all", "hi"], agent);
    let ended = acp.end().await;
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].contains("'content':'two"), "{}", ended.stdout);
    let rest = &lines[1..];
    assert!(rest[0].contains("outside of the session"), "{rest:?}");
    assert!(rest[1].contains("outside of the session"), "{rest:?}");
    assert!(rest[2].contains("not an absolute path"), "{rest:?}");
    assert!(rest[3].contains("'result'"), "{rest:?}");
    assert!(rest[4].contains("outside of the session"), "{rest:?}");
    assert_eq!(
        std::fs::read_to_string(inside.join("sub/new")).unwrap(),
        "text"
    );
    assert!(!dir.path().join("out").exists());
    assert!(!ended.stdout.contains("secret'"), "{}", ended.stdout);
}

#[tokio::test]
async fn commands_run_in_terminals() {
    let agent = r#"start; prompt
        call terminal/create '{"sessionId":"s","command":"printf","args":["%s|","a b","$HOME"]}'
        t=${line#*'"terminalId":"'}; t=${t%%'"'*}
        call terminal/wait_for_exit '{"sessionId":"s","terminalId":"'$t'"}'; say "$(quoted)\n"
        call terminal/output '{"sessionId":"s","terminalId":"'$t'"}'; say "$(quoted)\n"
        call terminal/release '{"sessionId":"s","terminalId":"'$t'"}'
        end end_turn"#;
    let ended = run(&["--approve-all", "hi"], agent).await;
    assert!(ended.stdout.contains("'exitCode':0"), "{ended:?}");
    assert!(ended.stdout.contains("'output':'a b|$HOME|'"), "{ended:?}");
}

/// Everything that an agent can have `acp` do, without asking.
const HOSTILE: &str = r#"start; prompt; p=$(pwd -P)
    call fs/read_text_file '{"sessionId":"s","path":"'"$p/file"'"}'; say "$(quoted)\n"
    call fs/read_text_file '{"sessionId":"s","path":"'"$p/.env"'"}'; say "$(quoted)\n"
    call fs/write_text_file '{"sessionId":"s","path":"'"$p/new"'","content":"text"}'; say "$(quoted)\n"
    call terminal/create '{"sessionId":"s","command":"touch","args":["ran"]}'; say "$(quoted)\n"
    t=${line#*'"terminalId":"'}; t=${t%%'"'*}
    call terminal/wait_for_exit '{"sessionId":"s","terminalId":"'$t'"}'
    end end_turn"#;

/// Runs the hostile agent, and returns what it achieved: `file` and `.env` read, written, run.
async fn achieved(options: &[&str], rules: &str) -> [bool; 4] {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("in");
    std::fs::create_dir(&inside).unwrap();
    for name in ["file", ".env"] {
        std::fs::write(inside.join(name), "secret").unwrap();
    }
    let file = dir.path().join("rules.toml");
    std::fs::write(&file, rules).unwrap();
    let mut args = options.to_vec();
    // Elsewhere than in the directory of the session, which would be a reason for a warning.
    if !rules.is_empty() {
        args.extend(["--rules", file.to_str().unwrap()]);
    }
    args.push("hi");
    let ended = Acp::start_in(&inside, &args, HOSTILE).end().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<_> = ended.stdout.lines().collect();
    for line in &lines {
        // A person has seen none of it.
        let (flag, rule) = (
            "not allowed: --deny-all rejects everything",
            "not allowed: rule 1 of ",
        );
        let is_refused = line.contains(flag) || line.contains(rule);
        assert!(is_refused || line.contains("'result'"), "{line}");
    }
    let read = |at: usize| lines[at].contains("secret");
    [
        read(0),
        read(1),
        inside.join("new").exists(),
        inside.join("ran").exists(),
    ]
}

#[tokio::test]
async fn what_acp_does_for_an_agent_is_what_the_flags_and_rules_allow() {
    let (yes, no) = (true, false);
    assert_eq!(achieved(&["--deny-all"], "").await, [no; 4]);
    assert_eq!(achieved(&["--approve-all"], "").await, [yes; 4]);
    let touch = "[[rule]]\neffect = \"allow\"\ncommand = \"touch **\"\n";
    assert_eq!(achieved(&["--deny-all"], touch).await, [no, no, no, yes]);
    let other = "[[rule]]\neffect = \"allow\"\ncommand = \"cargo test **\"\n";
    assert_eq!(achieved(&["--deny-all"], other).await, [no; 4]);
    let secrets = "[[rule]]\neffect = \"deny\"\npath = \"**/.env\"\n";
    assert_eq!(
        achieved(&["--approve-all"], secrets).await,
        [yes, no, yes, yes]
    );
}

#[tokio::test]
async fn rules_that_the_agent_could_change_are_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rules.toml");
    std::fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    let agent = "start; prompt; end end_turn";
    let ended = Acp::start_in(dir.path(), &["--rules", path, "hi"], agent)
        .end()
        .await;
    assert!(ended.stderr.contains("can change the rules"), "{ended:?}");
    let ended = run(&["--rules", path, "hi"], agent).await;
    assert!(!ended.stderr.contains("can change the rules"), "{ended:?}");
}

/// Without a terminal nobody can be asked.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn where_nobody_can_be_asked_acp_only_reads() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["file", ".env"] {
        std::fs::write(dir.path().join(name), "secret").unwrap();
    }
    for flag in [None, Some("--approve-reads")] {
        let mut command = tokio::process::Command::new("setsid");
        command.args(["--wait", env!("CARGO_BIN_EXE_acp"), "run"]);
        command.args(flag).args(["hi", "--", "sh", "-c"]);
        command
            .arg(super::script::script(HOSTILE))
            .current_dir(dir.path());
        let ended = Acp::spawn(command).end().await;
        assert_eq!(ended.stdout.matches("secret").count(), 2, "{ended:?}");
        let why = "there is no terminal to ask on: use --approve-all";
        assert_eq!(ended.stdout.matches(why).count(), 2, "{ended:?}");
        assert!(!ended.stdout.contains("by the user"), "{ended:?}");
        assert!(!dir.path().join("new").exists() && !dir.path().join("ran").exists());
    }
}

/// An agent that asks nobody is ended after its first tool call.
#[tokio::test]
async fn an_agent_that_asks_nobody_is_ended_with_a_code_of_its_own() {
    let agent = r#"start; prompt
        update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run rm","kind":"execute","status":"completed"}'
        message; end cancelled"#;
    for format in ["text", "json"] {
        let ended = run(&["--deny-all", "--format", format, "hi"], agent).await;
        assert_eq!(ended.code, Some(6), "{ended:?}");
        let told = match format {
            "json" => ended.lines().last().unwrap()["notAllowed"].to_string(),
            _ => ended.stderr,
        };
        assert!(told.contains("Run rm"), "{told}");
    }
    let agent = agent.replace("message; end cancelled", "end end_turn");
    let ended = run(&["--approve-all", "hi"], &agent).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn the_mode_in_which_the_agent_asks_is_chosen() {
    let agent = r#"answer '{"protocolVersion":1}'
        answer '{"sessionId":"s","modes":{"currentModeId":"auto","availableModes":[{"id":"auto","name":"Auto"},{"id":"default","name":"Ask"}]}}'
        message; case $line in *session/set_mode*) said=$(quoted); send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'; message ;; esac
        prompt=$id; say "$said."; end end_turn"#;
    let ended = run(&["--deny-all", "hi"], agent).await;
    assert!(ended.stdout.contains("'modeId':'default'"), "{ended:?}");
    let ended = run(&["--approve-all", "hi"], agent).await;
    assert_eq!(ended.stdout.trim(), ".", "{ended:?}");

    let agent = r#"answer '{"protocolVersion":1}'
        answer '{"sessionId":"s","modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo","name":"All"}]}}'
        message"#;
    let ended = run(&["--deny-all", "hi"], agent).await;
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(ended.stderr.contains("in the mode `yolo`"), "{ended:?}");
}
