//! Agents here are small shell scripts: what is tested is processes, not messages.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use super::*;
use crate::lifeline::{GUARD, Lifeline};

/// Graces that only run out where a test wants them to.
fn script(text: &str, eof: Duration, terminate: Duration) -> AgentProcess {
    AgentCommand::new("sh")
        .arg("-c")
        .arg(text)
        .shutdown_grace(eof, terminate)
        .spawn()
        .unwrap()
}

fn patient(text: &str) -> AgentProcess {
    script(text, GUARD, GUARD)
}

async fn first_line(output: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut line = String::new();
    let mut reader = BufReader::new(output);
    timeout(GUARD, reader.read_line(&mut line))
        .await
        .unwrap()
        .unwrap();
    line.trim_end().to_owned()
}

fn spawn_error(command: AgentCommand) -> String {
    command.spawn().unwrap_err().to_string()
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why() {
    assert_eq!(
        spawn_error(AgentCommand::new("no-such-agent").arg("--acp").arg("a b")),
        "cannot start the agent `no-such-agent --acp \"a b\"`: no-such-agent is not found in PATH"
    );
    assert_eq!(
        spawn_error(AgentCommand::new("/no/such/agent")),
        "cannot start the agent `/no/such/agent`: /no/such/agent does not exist"
    );
    assert_eq!(
        spawn_error(AgentCommand::new("sh").current_dir("/no/such/directory")),
        "cannot start the agent `sh`: its working directory /no/such/directory does not exist"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent");
    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    assert!(spawn_error(AgentCommand::new(&file)).ends_with("agent is not executable"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, mode).unwrap();
    let error = spawn_error(AgentCommand::new(&file));
    assert!(error.contains("the interpreter of"), "{error}");
}

#[tokio::test]
async fn arguments_and_environment_reach_the_agent_unchanged() {
    let mut agent = AgentCommand::new("sh")
        .args(["-c", r#"printf '%s|' "$@" "$WORD""#, "sh", "a b", "$HOME;"])
        .env("WORD", "it's")
        .spawn()
        .unwrap();
    let (mut output, _input) = agent.take_streams().unwrap();
    let mut text = String::new();
    timeout(GUARD, output.read_to_string(&mut text))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(text, "a b|$HOME;|it's|");
}

#[tokio::test]
async fn the_agent_starts_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = AgentCommand::new("sh")
        .args(["-c", "pwd -P"])
        .current_dir(dir.path())
        .spawn()
        .unwrap();
    let (mut output, _input) = agent.take_streams().unwrap();
    let expected = dir.path().canonicalize().unwrap();
    assert_eq!(first_line(&mut output).await, expected.to_str().unwrap());
}

#[tokio::test]
async fn the_end_of_input_ends_the_agent() {
    let mut agent = patient("cat; exit 7");
    let exit = timeout(GUARD, agent.shutdown()).await.unwrap();
    assert_eq!((exit.code, exit.signal), (Some(7), None));
    assert_eq!(agent.exit(), Some(exit));
}

#[tokio::test]
async fn an_agent_that_ignores_the_end_of_input_is_terminated() {
    let mut agent = script(
        "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done",
        Duration::ZERO,
        GUARD,
    );
    let (mut output, _input) = agent.take_streams().unwrap();
    assert_eq!(first_line(&mut output).await, "ready");
    let exit = timeout(GUARD, agent.shutdown()).await.unwrap();
    assert_eq!(exit.code, Some(9));
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed() {
    let mut agent = script(
        "trap '' TERM; echo ready; while :; do sleep 0.01; done",
        Duration::ZERO,
        Duration::ZERO,
    );
    let (mut output, _input) = agent.take_streams().unwrap();
    assert_eq!(first_line(&mut output).await, "ready");
    let exit = timeout(GUARD, agent.shutdown()).await.unwrap();
    assert_eq!(exit.signal_name().as_deref(), Some("SIGKILL"));
}

/// A grandchild that lets all streams go and would outlive the agent.
const LEAVES_A_CHILD: &str = "sleep 1000 </dev/null >/dev/null 2>&1 & echo ready";

#[tokio::test]
async fn what_an_agent_leaves_behind_is_killed_at_shutdown() {
    let lifeline = Lifeline::new();
    let mut agent = patient(&lifeline.tie(&format!("{LEAVES_A_CHILD}; cat")));
    let (mut output, input) = agent.take_streams().unwrap();
    assert_eq!(first_line(&mut output).await, "ready");
    drop(input);
    let exit = timeout(GUARD, agent.shutdown()).await.unwrap();
    assert!(exit.is_success());
    lifeline.all_dead().await;
}

#[tokio::test]
async fn an_agent_and_its_children_are_killed_when_it_is_dropped() {
    let lifeline = Lifeline::new();
    let mut agent = patient(&lifeline.tie(&format!("{LEAVES_A_CHILD}; cat")));
    let (mut output, _input) = agent.take_streams().unwrap();
    assert_eq!(first_line(&mut output).await, "ready");
    drop(agent);
    lifeline.all_dead().await;
}

#[tokio::test]
async fn what_a_dead_agent_left_behind_is_killed_too() {
    let lifeline = Lifeline::new();
    let mut agent = patient(&lifeline.tie(LEAVES_A_CHILD));
    let (mut output, _input) = agent.take_streams().unwrap();
    assert_eq!(first_line(&mut output).await, "ready");
    timeout(GUARD, agent.exited()).await.unwrap();
    drop(agent);
    lifeline.all_dead().await;
}

#[tokio::test]
async fn output_ends_with_the_agent_although_a_child_holds_the_pipe() {
    let mut agent = patient("echo before; sleep 1000 & echo after; exit 4");
    let (mut output, _input) = agent.take_streams().unwrap();
    let mut text = String::new();
    timeout(GUARD, output.read_to_string(&mut text))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(text, "before\nafter\n");
    assert_eq!(agent.exit().unwrap().code, Some(4));
    let closed = timeout(GUARD, agent.explain_close()).await.unwrap();
    let CloseReason::ProcessExited(exit) = closed else {
        panic!("{closed:?}");
    };
    assert_eq!(exit.code, Some(4));
}

#[tokio::test]
async fn all_output_is_read_however_much_there_is_at_the_exit() {
    let mut agent = patient("head -c 60000 /dev/zero; exit 0");
    timeout(GUARD, agent.exited()).await.unwrap();
    let (mut output, _input) = agent.take_streams().unwrap();
    let mut bytes = Vec::new();
    timeout(GUARD, output.read_to_end(&mut bytes))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(bytes.len(), 60_000);
}

#[tokio::test]
async fn standard_error_is_drained_and_its_end_is_kept() {
    let script = "i=0; while [ $i -lt 5000 ]; do echo \"noise $i\" >&2; i=$((i+1)); done; \
                  echo last words >&2; exit 1";
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut agent = AgentCommand::new("sh")
        .args(["-c", script])
        .on_stderr(move |line| drop(tell.send(line.to_owned())))
        .spawn()
        .unwrap();
    timeout(GUARD, agent.shutdown()).await.unwrap();
    let words = agent.stderr_tail().await;
    assert_eq!(words.len(), LAST_LINES);
    assert_eq!(words.last().map(String::as_str), Some("last words"));
    let mut lines = Vec::new();
    while let Some(line) = told.recv().await {
        lines.push(line);
    }
    assert_eq!(lines.len(), 5001);
}

#[tokio::test]
async fn standard_error_is_drained_after_the_exit_too() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let made = std::process::Command::new("mkfifo").arg(&gate).status();
    assert!(made.unwrap().success());
    let script = format!(
        "{{ read -r _ <'{}'; echo late >&2; }} & exit 0",
        gate.display()
    );
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let agent = AgentCommand::new("sh")
        .arg("-c")
        .arg(script)
        .on_stderr(move |line| drop(tell.send(line.to_owned())))
        .spawn()
        .unwrap();
    timeout(GUARD, agent.exited()).await.unwrap();
    assert_eq!(agent.stderr_tail().await, [""; 0]);
    // What the agent has left behind must not block on a pipe that nobody reads.
    std::fs::write(&gate, "go\n").unwrap();
    let line = timeout(GUARD, told.recv()).await.unwrap();
    assert_eq!(line.as_deref(), Some("late"));
}

#[tokio::test]
async fn an_agent_that_only_closes_its_output_is_called_alive() {
    let mut agent = patient("exec >&-; cat >/dev/null");
    let (mut output, mut input) = agent.take_streams().unwrap();
    let mut nothing = Vec::new();
    timeout(GUARD, output.read_to_end(&mut nothing))
        .await
        .unwrap()
        .unwrap();
    tokio::time::pause();
    let closed = agent.explain_close().await;
    assert_eq!(
        closed.to_string(),
        "the agent closed its output and is still running"
    );
    tokio::time::resume();
    input.shutdown().await.unwrap();
    let exit = timeout(GUARD, agent.await_end()).await.unwrap();
    assert!(exit.is_success(), "shutting its input down ends `cat`");
    assert!(input.write_all(b"more").await.is_err());
}

/// What has left the process group of the agent.
#[cfg(target_os = "linux")]
mod left {
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::*;

    /// The agent waits for the end of its input.
    const AND_STAYS: &str = "setsid sh -c 'echo left; exec sleep 1000' & cat";

    async fn started(text: &str) -> (AgentProcess, AgentOutput, AgentInput, Lifeline) {
        let lifeline = Lifeline::new();
        let mut agent = patient(&lifeline.tie(text));
        let (mut output, input) = agent.take_streams().unwrap();
        assert_eq!(first_line(&mut output).await, "left");
        (agent, output, input, lifeline)
    }

    #[tokio::test]
    async fn it_ends_when_the_agent_is_ended() {
        let (agent, _output, input, lifeline) = started(AND_STAYS).await;
        drop(input);
        timeout(GUARD, agent.await_end()).await.unwrap();
        lifeline.all_dead().await;
        let (agent, _output, _input, lifeline) = started(AND_STAYS).await;
        timeout(GUARD, agent.terminate()).await.unwrap();
        lifeline.all_dead().await;
    }

    #[tokio::test]
    async fn it_ends_when_the_agent_is_dropped() {
        let (agent, _output, _input, lifeline) = started(AND_STAYS).await;
        drop(agent);
        lifeline.all_dead().await;
        // One that has ended by itself.
        let (agent, _output, input, lifeline) = started(AND_STAYS).await;
        drop(input);
        timeout(GUARD, agent.exited()).await.unwrap();
        drop(agent);
        lifeline.all_dead().await;
    }

    #[tokio::test]
    async fn many_agents_that_end_at_once_are_swept_together() {
        let mut ends = tokio::task::JoinSet::new();
        let (other, _output, _input, survivor) = started(AND_STAYS).await;
        for _ in 0..20 {
            let (agent, output, input, lifeline) = started(AND_STAYS).await;
            ends.spawn(async move {
                timeout(GUARD, agent.terminate()).await.unwrap();
                drop((output, input));
                lifeline.all_dead().await;
            });
        }
        while let Some(ended) = ends.join_next().await {
            ended.unwrap();
        }
        assert!(other.exit().is_none());
        other.terminate().await;
        survivor.all_dead().await;
    }

    #[tokio::test]
    async fn its_memory_counts_as_that_of_its_agent() {
        use crate::process::memory::resident_bytes;

        const BYTES: u64 = 20_000_000;
        let text = format!(
            "setsid sh -c 'a=$(head -c {BYTES} /dev/zero | tr \\\\0 x); echo left; sleep 1000; echo $a' & cat"
        );
        let (agent, _output, _input, lifeline) = started(&text).await;
        let (small, _small_output, _small_input, other) = started(AND_STAYS).await;
        let trees = [small.tree(), agent.tree()];
        let measured = resident_bytes(&trees);
        assert!(measured[0] > 0 && measured[0] < BYTES, "{measured:?}");
        assert!(measured[1] > BYTES, "{measured:?}");
        drop((agent, small));
        assert_eq!(resident_bytes(&trees), [0, 0]);
        lifeline.all_dead().await;
        other.all_dead().await;
    }

    #[tokio::test]
    async fn it_stays_where_that_is_wanted() {
        let text = "setsid sh -c 'echo $$; exec sleep 1000' & cat";
        let agent = AgentCommand::new("sh").args(["-c", text]).leave_detached();
        let mut agent = agent.spawn().unwrap();
        let (mut output, input) = agent.take_streams().unwrap();
        let process = first_line(&mut output).await.parse().unwrap();
        let process = Pid::from_raw(process).unwrap();
        drop(input);
        timeout(GUARD, agent.await_end()).await.unwrap();
        drop(agent);
        let lives = test_kill_process(process);
        kill_process(process, Signal::KILL).unwrap();
        lives.unwrap();
    }
}
