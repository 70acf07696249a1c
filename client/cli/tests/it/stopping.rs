//! Ctrl-C, timeouts, readers that disconnect, and processes that must not survive.

use rustix::process::Signal;

use super::acp::{Acp, Gate, run};
use crate::lifeline::Lifeline;

/// An agent with a child that holds none of its streams and would outlive it.
fn with_child(agent: &str) -> String {
    format!("sleep 1000 </dev/null >/dev/null 2>&1 & {agent}")
}

/// Waits for the cancellation.
const CANCELLED: &str = "message
    case $line in *session/cancel*) say ' stopped'; end cancelled;; *) say \"$(quoted)\";; esac
    message";

fn cancellable() -> String {
    format!("start; prompt; say working; {CANCELLED}")
}

#[tokio::test]
async fn an_interrupt_cancels_the_turn() {
    let mut acp = Acp::start(&["--deny-all", "hi"], &cancellable());
    acp.printed("working").await;
    acp.signal(Signal::INT);
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(ended.stdout, "working stopped\n");
    let expected = "acp: interrupted: cancelling the turn; Ctrl-C ends the agent\n\
                    acp: the turn was cancelled\n";
    assert_eq!(ended.stderr, expected);
}

#[tokio::test]
async fn a_second_interrupt_ends_the_agent_with_all_it_started() {
    let lifeline = Lifeline::new();
    let agent = lifeline.tie(&with_child(
        "start; prompt; say working; while :; do message; done",
    ));
    let mut acp = Acp::start(&["--format", "json", "--deny-all", "hi"], &agent);
    acp.printed("working").await;
    acp.signal(Signal::INT);
    acp.complained("cancelling the turn").await;
    acp.signal(Signal::INT);
    let ended = acp.end().await;
    lifeline.all_dead().await;
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(ended.result()["error"]["kind"], "stopped");
    assert_eq!(ended.result()["exitCode"], 130);
    assert_eq!(ended.result()["text"], "working");
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed_by_the_second_interrupt() {
    let lifeline = Lifeline::new();
    let agent = lifeline.tie(&with_child(
        "trap '' TERM; start; prompt; say working; while :; do sleep 1; done",
    ));
    let mut acp = Acp::start(&["--deny-all", "hi"], &agent);
    acp.printed("working").await;
    acp.signal(Signal::INT);
    acp.complained("cancelling the turn").await;
    acp.signal(Signal::INT);
    let ended = acp.end().await;
    lifeline.all_dead().await;
    assert_eq!(ended.code, Some(130), "{ended:?}");
}

#[tokio::test]
async fn an_interrupt_before_the_turn_ends_the_agent() {
    let lifeline = Lifeline::new();
    let agent = lifeline.tie(&with_child("echo ready >&2; cat >/dev/null"));
    let mut acp = Acp::start(&["-v", "--deny-all", "hi"], &agent);
    acp.complained("agent: ready").await;
    acp.signal(Signal::INT);
    let ended = acp.end().await;
    lifeline.all_dead().await;
    assert_eq!(ended.code, Some(130));
    assert!(
        ended
            .stderr
            .ends_with("acp: interrupted; the agent was ended\n"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_request_to_terminate_ends_the_agent() {
    let lifeline = Lifeline::new();
    let agent = lifeline.tie(&with_child(
        "start; prompt; say working; while :; do message; done",
    ));
    let mut acp = Acp::start(&["--deny-all", "hi"], &agent);
    acp.printed("working").await;
    acp.signal(Signal::TERM);
    let ended = acp.end().await;
    lifeline.all_dead().await;
    assert_eq!(ended.code, Some(130));
    assert!(ended.stderr.contains("ended by a signal"), "{ended:?}");
}

#[tokio::test]
async fn the_time_limit_cancels_the_turn() {
    let ended = run(&["--timeout", "3", "--deny-all", "hi"], &cancellable()).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(ended.stdout, "working stopped\n");
    assert!(ended.stderr.contains("the time is up"), "{ended:?}");
}

#[tokio::test]
async fn the_time_limit_counts_from_the_beginning() {
    let args = ["--timeout", "0.3", "--format", "json", "--deny-all", "hi"];
    let ended = run(&args, "cat >/dev/null").await;
    assert_eq!(ended.code, Some(5));
    assert_eq!(
        ended.result()["error"]["message"],
        "the time is up; the agent was ended"
    );
}

#[tokio::test]
async fn a_reader_that_leaves_cancels_the_turn() {
    let gate = Gate::new();
    // More than the capacity of a pipe: a process that another test starts may share our end for a
    // moment.
    let more = "say \"$(head -c 200000 /dev/zero | tr '\\0' x)\"";
    let agent = format!(
        "start; prompt; say one; {}; {more}; {CANCELLED}",
        gate.pass()
    );
    let mut acp = Acp::start(&["--deny-all", "hi"], &agent);
    acp.printed("one").await;
    acp.close_stdout();
    gate.open();
    let ended = acp.end().await;
    assert_eq!(ended.code, Some(130), "{ended:?}");
}

#[tokio::test]
async fn what_an_agent_leaves_behind_is_ended_with_it() {
    let lifeline = Lifeline::new();
    let agent = lifeline.tie(&with_child("start; prompt; say done; end end_turn"));
    let ended = run(&["--deny-all", "hi"], &agent).await;
    lifeline.all_dead().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"));
}

#[tokio::test]
async fn an_agent_that_never_exits_is_made_to() {
    let lifeline = Lifeline::new();
    let agent = lifeline.tie(&with_child(
        "trap '' TERM; start; prompt; say done; end end_turn; while :; do sleep 1; done",
    ));
    let ended = run(&["--deny-all", "hi"], &agent).await;
    lifeline.all_dead().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"));
}
