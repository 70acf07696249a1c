//! Failures: a clear message, a hint if there is one, and an exit code.

use std::process::Stdio;

use super::acp::{acp, command, run};
use crate::agent::within;

#[tokio::test]
async fn a_command_that_does_not_exist() {
    let ended = acp(&["run", "--deny-all", "hi", "--", "no-such-agent", "--acp"]).await;
    assert_eq!(ended.code, Some(3));
    assert_eq!(
        ended.stderr,
        "acp: cannot start the agent `no-such-agent --acp`: no-such-agent is not found in PATH\n\
         acp: is the agent installed, and its command right?\n"
    );
    assert_eq!(ended.stdout, "");
    let ended = acp(&[
        "run",
        "--format",
        "json",
        "--deny-all",
        "hi",
        "--",
        "no-such-agent",
    ])
    .await;
    let result = ended.result();
    assert_eq!(result["error"]["kind"], "spawn");
    assert_eq!(result["exitCode"], 3);
}

#[tokio::test]
async fn commands_that_are_none() {
    for (program, words) in [
        ("", "its name is empty"),
        (".", ". is a directory"),
        ("./no-such-agent", "/no-such-agent does not exist"),
    ] {
        let ended = acp(&["run", "--deny-all", "hi", "--", program]).await;
        assert_eq!(ended.code, Some(3));
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_prompt_that_is_empty() {
    let ended = acp(&["run", "--deny-all", " ", "--", "no-such-agent"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("it is empty"), "{}", ended.stderr);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = command(
        &["--deny-all", "hi"],
        "start; prompt; say text; end end_turn",
    );
    command.stdout(full.unwrap()).stderr(Stdio::piped());
    let output = within(command.spawn().unwrap().wait_with_output()).await;
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("acp: cannot write to standard output: No space left"),
        "{said}"
    );
}

/// A blocked standard error must not delay the agent.
#[tokio::test]
async fn a_closed_standard_error_does_no_harm() {
    let agent = "send noise; echo words >&2; start; prompt; say text; end end_turn";
    let mut command = command(&["--deny-all", "-v", "hi"], agent);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(Stdio::piped()).stderr(writer);
    let output = within(command.spawn().unwrap().wait_with_output()).await;
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"text\n");
}

#[tokio::test]
async fn a_standard_error_that_nobody_reads_does_no_harm() {
    let agent = "line=$(printf %0200d 0); i=0
        while [ $i -lt 3000 ]; do echo $line; i=$((i + 1)); done >&2
        start; prompt; say text; end end_turn";
    let mut command = command(&["--deny-all", "-v", "hi"], agent);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(Stdio::piped()).stderr(writer);
    let output = within(command.spawn().unwrap().wait_with_output()).await;
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"text\n");
    drop(reader);
}

#[tokio::test]
async fn an_agent_that_exits_during_initialize() {
    let agent = "echo 'error: unknown option' >&2; echo 'try --help' >&2; exit 9";
    let ended = run(&["--deny-all", "hi"], agent).await;
    assert_eq!(ended.code, Some(3));
    let text = ended.stderr;
    assert!(
        text.contains("exited with code 9 during initialize"),
        "{text}"
    );
    assert!(
        text.contains("ends with:\n  error: unknown option\n  try --help\n"),
        "{text}"
    );
    assert!(text.contains("many need an argument"), "{text}");
}

#[tokio::test]
async fn an_agent_of_version_2_only() {
    let refused = r#"message; send '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32022,"message":"Unsupported"}}'; cat >/dev/null"#;
    let ended = run(&["--deny-all", "hi"], refused).await;
    assert_ne!(ended.code, Some(0));
    let hint = "acp: `--protocol-version 2` offers version 2 too\n";
    assert!(ended.stderr.ends_with(hint), "{}", ended.stderr);
}

/// `cat` repeats `initialize` instead of responding to it.
#[tokio::test]
async fn a_program_that_is_no_agent() {
    for program in ["cat", "exec >&-; cat"] {
        let ended = run(&["--deny-all", "hi"], program).await;
        assert_ne!(ended.code, Some(0), "{program}");
        let hint = "acp: if the agent does not say what is wrong: many need an argument";
        assert!(ended.stderr.contains(hint), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn an_agent_that_dies_during_the_prompt() {
    let agent = "start; prompt; say begun; echo 'panic!' >&2; kill -9 $$";
    let ended = run(&["--deny-all", "hi"], agent).await;
    assert_eq!(ended.code, Some(3));
    assert_eq!(ended.stdout, "begun\n");
    let expected = "was ended by SIGKILL during session/prompt; \
                    its standard error ends with:\n  panic!\n";
    assert!(ended.stderr.ends_with(expected), "{}", ended.stderr);
    let ended = run(&["--format", "json", "--deny-all", "hi"], agent).await;
    let result = ended.result();
    assert_eq!(result["error"]["kind"], "agent_exited");
    assert_eq!(result["sessionId"], "s");
}

#[tokio::test]
async fn noise_on_standard_output_is_skipped_and_reported() {
    let agent = "send 'Loading model...'; start; send '[\"no\"'; prompt
        for i in 1 2 3 4 5 6 7 8; do send \"noise $i\"; done; say text; end end_turn
        # Whatever the client answers to noise would be a line here.
        if IFS= read -r line; then echo \"answered: $line\" >&2; fi";
    let ended = run(&["--deny-all", "-v", "hi"], agent).await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stdout, "text\n");
    let expected = "acp: skipped an invalid message on the agent's output: Loading model...\n\
                    acp: skipped an invalid message on the agent's output: [\"no\"\n\
                    acp: skipped an invalid message on the agent's output: noise 1\n\
                    acp: skipped an invalid message on the agent's output: noise 2\n\
                    acp: skipped an invalid message on the agent's output: noise 3\n\
                    acp: skipped more of the agent's output, which is not shown\n";
    assert_eq!(ended.stderr, expected);
}

#[tokio::test]
async fn an_agent_that_requires_authentication() {
    let agent =
        "answer '{\"protocolVersion\":1,\"authMethods\":[{\"id\":\"key\",\"name\":\"A key\"}]}'
        message; case $line in
        *authenticate*key*) send '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'
            answer '{\"sessionId\":\"s\"}'; prompt; say welcome; end end_turn;;
        *) send '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"no\"}}';;
        esac; message";
    let ended = run(&["--deny-all", "hi"], agent).await;
    assert_eq!(ended.code, Some(4));
    assert_eq!(
        ended.stderr,
        "acp: the agent requires authentication before session/new; its methods:\n  key: A key\n\
         acp: log in by `acp login` with the same agent, or by the agent's own command\n"
    );
    let ended = run(&["--deny-all", "--auth", "key", "hi"], agent).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "welcome\n"));
}

#[tokio::test]
async fn another_version_of_the_protocol() {
    let ended = run(
        &["--deny-all", "hi"],
        "answer '{\"protocolVersion\":2}'; message",
    )
    .await;
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.stderr,
        "acp: unsupported protocol version: expected 1, the agent answered 2\n\
         acp: update acp or the agent, whichever is older\n"
    );
}

#[tokio::test]
async fn errors_of_the_agent_and_results_of_another_form() {
    let ended = run(
        &["--deny-all", "hi"],
        "start; refuse -32603 'no model'; message",
    )
    .await;
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.stderr,
        "acp: `session/prompt` failed: no model (code -32603)\n"
    );
    let agent = "start; message; send '{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32603,\"message\":\"Internal error\",\"data\":{\"message\":\"no key\"}}}'; message";
    let ended = run(&["--deny-all", "hi"], agent).await;
    let expected =
        "acp: `session/prompt` failed: Internal error (code -32603)\nacp: details: no key\n";
    assert_eq!(ended.stderr, expected);
    let agent = "answer '{\"protocolVersion\":1}'; answer '{\"session\":\"s\"}'; message";
    let ended = run(&["--deny-all", "--format", "json", "hi"], agent).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("invalid result of `session/new`"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.result()["error"]["kind"], "protocol");
    let agent = "start; refuse -32603 'no model'; message";
    let ended = run(&["--deny-all", "--format", "json", "hi"], agent).await;
    assert_eq!(ended.result()["error"]["code"], -32603);
}

#[tokio::test]
async fn wrong_usage() {
    for args in [
        &["run"][..],
        &["run", "hi"],
        &["run", "hi", "--"],
        &["run", "--format", "xml", "hi", "--", "agent"],
        &["run", "--timeout", "0", "hi", "--", "agent"],
        &["walk"],
    ] {
        let ended = acp(args).await;
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(ended.stderr.contains("try '--help'"), "{}", ended.stderr);
    }
    let args = [
        "run",
        "--deny-all",
        "--cwd",
        "/no/such/dir",
        "hi",
        "--",
        "cat",
    ];
    let ended = acp(&args).await;
    assert_eq!(ended.code, Some(2));
    let expected = "acp: cannot use /no/such/dir as a working directory: ";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
}

#[tokio::test]
async fn help_teaches() {
    let ended = acp(&["--help"]).await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("Try it:"), "{}", ended.stdout);
    let ended = acp(&["run", "--help"]).await;
    for words in [
        "Examples:",
        "Exit codes:",
        "--approve-reads",
        "stopReason",
        "while it is received",
    ] {
        assert!(ended.stdout.contains(words), "{words}");
    }
}
