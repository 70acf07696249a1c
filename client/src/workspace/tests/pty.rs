//! Commands in pseudo-terminals.

use super::*;

fn case() -> Case {
    let mut case = Case::new();
    case.workspace = case.workspace.pseudo_terminals(100, 30);
    case
}

#[tokio::test]
async fn a_command_has_a_terminal_of_the_size_and_an_empty_input() {
    let case = case();
    let text =
        "[ -t 1 ] && [ -t 2 ] && echo terminal; stty size <&1; echo $TERM $PAGER; cat; exit 3";
    let id = case.script(text).await;
    let printed = case.printed(&id).await;
    assert_eq!(printed, "terminal\r\n30 100\r\nxterm-256color cat\r\n");
    assert_eq!(case.wait(&id).await.exit_code, Some(3));

    let request = script("echo $TERM").with_env(vec![EnvVariable::new("TERM", "dumb")]);
    let id = case.create(request).await.unwrap();
    assert_eq!(case.printed(&id).await, "dumb\r\n");
}

#[tokio::test]
async fn output_in_a_pseudo_terminal_is_bounded_and_whole() {
    let case = case();
    let request = script("seq 1 100000").with_output_byte_limit(8);
    let id = case.create(request).await.unwrap();
    assert_eq!(case.printed(&id).await, "100000\r\n");
    assert!(case.output(&id).await.truncated);
}

#[tokio::test]
async fn a_pseudo_terminal_is_killed_with_its_group_and_its_session() {
    let case = case();
    let lifeline = Lifeline::new();
    let id = case
        .script(&lifeline.tie("sleep 1000 & echo ready; wait"))
        .await;
    case.printing(&id, "ready\r\n").await;
    case.kill(&id).await;
    assert_eq!(case.wait(&id).await.signal.as_deref(), Some("SIGTERM"));
    lifeline.all_dead().await;

    let lifeline = Lifeline::new();
    let id = case
        .script(&lifeline.tie("sleep 1000 & echo ready; exit 0"))
        .await;
    case.printing(&id, "ready\r\n").await;
    let mut stream = case.workspace.output_stream(&id, 7).unwrap();
    assert_eq!(case.wait(&id).await.exit_code, Some(0));
    case.workspace.end_session(&case.session);
    lifeline.all_dead().await;
    assert_eq!(timeout(GUARD, stream.next()).await.unwrap(), None);
}
