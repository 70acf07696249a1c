//! Commands: output, exit, and that nothing survives.

use std::time::Duration;

use acp_sdk::v1::{CreateTerminalRequest, EnvVariable, ErrorCode};
use acp_server::{Error, Limits, Terminal, Turn};

use crate::bench::{Bench, GUARD, fails};
use crate::lifeline::Lifeline;

async fn sh(turn: &Turn, script: &str) -> Terminal {
    turn.terminal("sh", ["-c", script]).await.unwrap()
}

async fn output(terminal: &Terminal) -> String {
    terminal.output().await.unwrap().output
}

/// Waits until the command has written exactly `expected`.
async fn until(terminal: &Terminal, expected: &str) {
    let written = async {
        while output(terminal).await != expected {
            tokio::task::yield_now().await;
        }
    };
    let written = tokio::time::timeout(GUARD, written).await;
    written.expect("the command does not write what is expected");
}

#[tokio::test]
async fn a_command_runs_in_the_session_without_a_shell() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let request = CreateTerminalRequest::new(turn.session().id(), "sh")
        .with_args(vec![
            "-c".into(),
            "pwd; echo $ONE; echo err >&2; cat; exit 3".into(),
        ])
        .with_env(vec![EnvVariable::new("ONE", "1")]);
    let terminal = turn.terminal_with(request).await.unwrap();
    let exit = terminal.wait().await.unwrap();
    assert_eq!((exit.code, exit.signal), (Some(3), None));
    let seen = terminal.output().await.unwrap();
    let cwd = bench.path("in").canonicalize().unwrap();
    assert_eq!(seen.output, format!("{}\n1\nerr\n", cwd.display()));
    assert!(!seen.truncated);
    assert_eq!(seen.exit_status.unwrap().exit_code, Some(3));
    let echo = turn.terminal("echo", ["$HOME", "*"]).await.unwrap();
    echo.wait().await.unwrap();
    assert_eq!(output(&echo).await, "$HOME *\n");
    assert_ne!(echo.id(), terminal.id());
}

#[tokio::test]
async fn the_end_of_the_output_is_kept_at_a_character_boundary() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let request = CreateTerminalRequest::new(turn.session().id(), "sh")
        .with_args(vec!["-c".into(), "yes € | head -n 300000; echo end".into()])
        .with_output_byte_limit(1000u64);
    let terminal = turn.terminal_with(request).await.unwrap();
    terminal.wait().await.unwrap();
    let seen = terminal.output().await.unwrap();
    assert!(seen.truncated);
    assert!((997..=1000).contains(&seen.output.len()));
    assert!(seen.output.ends_with("€\nend\n"));
    assert!(!seen.output.contains('\u{fffd}'));
}

#[tokio::test]
async fn limits_bound_what_is_kept() {
    let mut limits = Limits::default();
    limits.local.output_bytes = 100;
    limits.local.max_output_bytes = 200;
    let bench = Bench::with_limits(limits).await;
    let turn = bench.turn().await;
    for (asked, kept) in [(None, 100), (Some(150), 150), (Some(u64::MAX), 200)] {
        let mut request =
            CreateTerminalRequest::new(turn.session().id(), "seq").with_args(vec!["1000".into()]);
        request.output_byte_limit = asked;
        let terminal = turn.terminal_with(request).await.unwrap();
        terminal.wait().await.unwrap();
        assert_eq!(output(&terminal).await.len(), kept);
    }
}

#[tokio::test]
async fn all_output_is_there_at_the_exit() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    for _ in 0..50 {
        let terminal = sh(&turn, "head -c 60000 /dev/zero | tr '\\0' x").await;
        terminal.wait().await.unwrap();
        assert_eq!(output(&terminal).await.len(), 60_000);
        terminal.release().await.unwrap();
    }
}

#[tokio::test]
async fn output_is_there_while_the_command_runs() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let terminal = sh(&turn, "echo ready; cat /dev/zero | tail -c 1").await;
    until(&terminal, "ready\n").await;
    let seen = terminal.output().await.unwrap();
    assert_eq!(seen.exit_status, None);
}

#[tokio::test]
async fn kill_ends_the_whole_group() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let mut lifeline = Lifeline::new();
    let script = lifeline.script("echo begun; sleep 1000 & sleep 1000");
    let terminal = sh(&turn, &script).await;
    lifeline.runs().await;
    until(&terminal, "begun\n").await;
    terminal.kill().await.unwrap();
    lifeline.all_dead().await;
    let exit = terminal.wait().await.unwrap();
    assert_eq!(exit.signal.as_deref(), Some("SIGTERM"));
    // Killing again does nothing, and the output is still there.
    terminal.kill().await.unwrap();
    assert_eq!(output(&terminal).await, "begun\n");
}

#[tokio::test]
async fn what_ignores_sigterm_is_killed_after_the_grace_time() {
    let mut limits = Limits::default();
    limits.local.kill_grace = Duration::from_millis(50);
    let bench = Bench::with_limits(limits).await;
    let turn = bench.turn().await;
    let mut lifeline = Lifeline::new();
    let endless = "while :; do sleep 1; done";
    let script = format!("trap '' TERM; echo armed; ({endless}) & {endless}");
    let terminal = sh(&turn, &lifeline.script(&script)).await;
    lifeline.runs().await;
    until(&terminal, "armed\n").await;
    terminal.kill().await.unwrap();
    let exit = terminal.wait().await.unwrap();
    assert_eq!(exit.signal.as_deref(), Some("SIGKILL"));
    lifeline.all_dead().await;
}

#[tokio::test]
async fn an_endless_writer_can_be_killed() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let terminal = turn.terminal("yes", []).await.unwrap();
    let killed = tokio::time::timeout(GUARD, terminal.kill()).await;
    killed.expect("it was not killed").unwrap();
    let seen = terminal.output().await.unwrap();
    assert!(seen.output.len() <= 1 << 20);
    assert!(seen.exit_status.is_some());
}

/// A server that a script starts holds the output open, and is no reason to wait.
#[tokio::test]
async fn what_a_command_leaves_running_goes_on_until_the_release() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let mut lifeline = Lifeline::new();
    let terminal = sh(&turn, &lifeline.script("sleep 1000 & echo started")).await;
    lifeline.runs().await;
    let exit = tokio::time::timeout(GUARD, terminal.wait()).await.unwrap();
    assert!(exit.unwrap().is_success());
    assert_eq!(output(&terminal).await, "started\n");
    assert!(lifeline.is_held());
    terminal.release().await.unwrap();
    lifeline.all_dead().await;
}

#[tokio::test]
async fn a_dropped_terminal_is_released() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let mut lifeline = Lifeline::new();
    let terminal = sh(&turn, &lifeline.script("sleep 1000 & sleep 1000")).await;
    lifeline.runs().await;
    drop(terminal);
    lifeline.all_dead().await;
}

/// The end of the turn waits until its commands have ended.
#[tokio::test]
async fn nothing_survives_the_turn() {
    let bench = Bench::new().await;
    let (turn, prompt) = bench.begin().await;
    let mut lifelines = Vec::new();
    for _ in 0..3 {
        let mut lifeline = Lifeline::new();
        let terminal = sh(&turn, &lifeline.script("sleep 1000")).await;
        lifeline.runs().await;
        lifelines.push(lifeline);
        // Even if its guard is lost.
        std::mem::forget(terminal);
    }
    bench.end(prompt).await;
    for lifeline in lifelines {
        lifeline.all_dead().await;
    }
    let late = turn.terminal("true", []).await;
    assert!(matches!(late, Err(Error::TurnEnded(..))));
}

#[tokio::test]
async fn nothing_survives_a_cancelled_turn() {
    let bench = Bench::new().await;
    let (turn, prompt) = bench.begin().await;
    let mut lifeline = Lifeline::new();
    let terminal = sh(&turn, &lifeline.script("sleep 1000")).await;
    lifeline.runs().await;
    let waiting = tokio::spawn(async move { (terminal.wait().await, terminal) });
    let note = acp_sdk::v1::CancelNotification::new(&bench.session);
    bench.agent.cancel(note).await.unwrap();
    let (waited, terminal) = waiting.await.unwrap();
    assert!(matches!(waited, Err(Error::Cancelled)), "{waited:?}");
    prompt.await.unwrap().unwrap();
    lifeline.all_dead().await;
    drop(terminal);
}

#[tokio::test]
async fn nothing_survives_the_session() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let mut lifeline = Lifeline::new();
    let _terminal = sh(&turn, &lifeline.script("sleep 1000")).await;
    lifeline.runs().await;
    bench.server.shutdown().await;
    lifeline.all_dead().await;
}

#[test]
fn nothing_survives_the_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (lifeline, bench) = runtime.block_on(async {
        let bench = Bench::new().await;
        let turn = bench.turn().await;
        let mut lifeline = Lifeline::new();
        std::mem::forget(sh(&turn, &lifeline.script("sleep 1000 & sleep 1000")).await);
        lifeline.runs().await;
        (lifeline.into_file(), bench)
    });
    drop(runtime);
    Lifeline::ends(lifeline);
    drop(bench);
}

#[tokio::test]
async fn a_turn_has_a_limited_number_of_terminals() {
    let mut limits = Limits::default();
    limits.local.terminals = 2;
    let bench = Bench::with_limits(limits).await;
    let turn = bench.turn().await;
    let first = turn.terminal("true", []).await.unwrap();
    let _second = turn.terminal("true", []).await.unwrap();
    let third = turn.terminal("true", []).await;
    fails(third, ErrorCode::INTERNAL_ERROR, "release one first");
    first.release().await.unwrap();
    // Its place is free when its task has ended, which is a little later.
    let free = async {
        while turn.terminal("true", []).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(GUARD, free).await.unwrap();
}

#[tokio::test]
async fn commands_that_cannot_start_say_why() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    let missing = turn.terminal("no-such-program", []).await;
    fails(missing, ErrorCode::INVALID_PARAMS, "no-such-program");
    let line = turn.terminal("ls -l", []).await;
    fails(line, ErrorCode::INVALID_PARAMS, "`sh` with `-c`");
    bench.file("in/file", "");
    for (cwd, code, words) in [
        (bench.named("out"), ErrorCode::INVALID_PARAMS, "outside"),
        ("in".into(), ErrorCode::INVALID_PARAMS, "absolute"),
        (
            bench.named("in/file"),
            ErrorCode::INVALID_PARAMS,
            "directory",
        ),
        (bench.named("in/no"), ErrorCode::RESOURCE_NOT_FOUND, "in/no"),
    ] {
        let request = CreateTerminalRequest::new(turn.session().id(), "true").with_cwd(cwd);
        fails(turn.terminal_with(request).await, code, words);
    }
    let request =
        CreateTerminalRequest::new(turn.session().id(), "pwd").with_cwd(bench.named("extra"));
    let terminal = turn.terminal_with(request).await.unwrap();
    terminal.wait().await.unwrap();
    assert!(output(&terminal).await.ends_with("/extra\n"));
}
