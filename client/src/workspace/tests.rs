//! Terminals as an agent uses them: through requests.

#[cfg(feature = "pty")]
mod pty;
mod streams;

use acp_sdk::v1::{EnvVariable, ErrorCode, TerminalId};
use tokio::time::timeout;

use super::*;
use crate::hooks::{ConnectionId, Directories, Terminals as _};
use crate::lifeline::{GUARD, Lifeline};

struct Case {
    _dir: tempfile::TempDir,
    /// Where it is, without symbolic links.
    dir: std::path::PathBuf,
    session: SessionContext,
    workspace: Workspace,
}

/// The session `s` in a directory.
fn session(dir: &Path) -> SessionContext {
    let directories = Directories::open(dir.to_str().unwrap(), &[]);
    SessionContext::new(ConnectionId::new(), "s".into(), directories)
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            dir: dir.path().canonicalize().unwrap(),
            session: session(dir.path()),
            _dir: dir,
            workspace: Workspace::new(),
        }
    }

    /// The session `other` of the same connection.
    fn other(&self) -> SessionContext {
        let directories = Directories::open(self.dir.to_str().unwrap(), &[]);
        SessionContext::new(self.session.connection(), "other".into(), directories)
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    async fn create(&self, request: CreateTerminalRequest) -> HandlerResult<TerminalId> {
        let created = self.workspace.create_terminal(&self.session, request).await;
        created.map(|response| response.terminal_id)
    }

    async fn script(&self, text: &str) -> TerminalId {
        self.create(script(text)).await.unwrap()
    }

    async fn output(&self, id: &TerminalId) -> TerminalOutputResponse {
        let request = TerminalOutputRequest::new("s", id);
        self.workspace
            .terminal_output(&self.session, request)
            .await
            .unwrap()
    }

    /// Waits until the command has printed exactly `text`.
    async fn printing(&self, id: &TerminalId, text: &str) {
        let printed = timeout(GUARD, async {
            while self.output(id).await.output != text {
                tokio::task::yield_now().await;
            }
        });
        printed.await.expect("the command prints something else");
    }

    async fn wait(&self, id: &TerminalId) -> WaitForTerminalExitResponse {
        let request = WaitForTerminalExitRequest::new("s", id);
        let exit = timeout(
            GUARD,
            self.workspace
                .wait_for_terminal_exit(&self.session, request),
        )
        .await;
        exit.expect("the command goes on").unwrap()
    }

    async fn kill(&self, id: &TerminalId) {
        let request = KillTerminalRequest::new("s", id);
        let killed = timeout(GUARD, self.workspace.kill_terminal(&self.session, request)).await;
        killed.expect("the command goes on").unwrap();
    }

    async fn release(&self, id: &TerminalId) {
        let request = ReleaseTerminalRequest::new("s", id);
        let released = timeout(
            GUARD,
            self.workspace.release_terminal(&self.session, request),
        )
        .await;
        released.expect("the command goes on").unwrap();
    }

    async fn printed(&self, id: &TerminalId) -> String {
        self.wait(id).await;
        self.output(id).await.output
    }
}

fn command(command: &str, args: &[&str]) -> CreateTerminalRequest {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    CreateTerminalRequest::new("s", command).with_args(args)
}

fn script(text: &str) -> CreateTerminalRequest {
    command("sh", &["-c", text])
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: HandlerResult<T>, code: ErrorCode, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn output_and_exit_status_are_those_of_the_command() {
    let case = Case::new();
    let id = case
        .script("echo out; echo err >&2; echo more; exit 3")
        .await;
    let exit = case.wait(&id).await;
    assert_eq!((exit.exit_code, exit.signal), (Some(3), None));
    let output = case.output(&id).await;
    assert_eq!(output.output, "out\nerr\nmore\n");
    assert!(!output.truncated);
    assert_eq!(output.exit_status.unwrap().exit_code, Some(3));
}

#[tokio::test]
async fn arguments_environment_and_directory_are_passed_without_a_shell() {
    let case = Case::new();
    let mut request = command("printf", &["%s|", "a b", "$HOME", "; echo no"]);
    let id = case.create(request).await.unwrap();
    assert_eq!(case.printed(&id).await, "a b|$HOME|; echo no|");

    std::fs::create_dir(case.path("sub")).unwrap();
    request = script("printf '%s|%s' \"$WORD\" \"$(pwd -P)\"")
        .with_env(vec![EnvVariable::new("WORD", "it's")])
        .with_cwd(case.path("sub"));
    let id = case.create(request).await.unwrap();
    let expected = format!("it's|{}", case.path("sub"));
    assert_eq!(case.printed(&id).await, expected);

    let id = case.script("pwd -P; cat").await;
    let expected = format!("{}\n", case.dir.display());
    assert_eq!(case.printed(&id).await, expected, "and input is empty");
}

/// Only Linux starts a command in an open directory.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_directory_that_is_renamed_and_replaced_is_still_meant() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["in", "out"] {
        std::fs::create_dir(path(name)).unwrap();
        std::fs::write(path(name).join("file"), name).unwrap();
    }
    let session = session(&path("in"));
    std::fs::rename(path("in"), path("moved")).unwrap();
    std::os::unix::fs::symlink(path("out"), path("in")).unwrap();

    let case = Case {
        dir: path("in"),
        _dir: dir,
        session,
        workspace: Workspace::new(),
    };
    let file = case.path("file");
    let read = ReadTextFileRequest::new("s", &file);
    let read = case.workspace.read_text_file(&case.session, read).await;
    let read = read.unwrap();
    assert_eq!(read.content, "in");
    for cwd in [None, Some(case.path(""))] {
        let mut request = command("cat", &["file"]);
        request.cwd = cwd;
        let id = case.create(request).await.unwrap();
        assert_eq!(case.printed(&id).await, "in");
    }
}

#[tokio::test]
async fn what_cannot_be_run_is_explained() {
    let case = Case::new();
    let code = ErrorCode::INVALID_PARAMS;
    let missing = case.create(command("no-such-command", &[])).await;
    fails(missing, code, "no-such-command is not found in PATH");
    let line = case.create(command("echo a | cat", &[])).await;
    fails(line, code, "a shell line needs a shell");
    let outside = case.create(command("true", &[]).with_cwd("/")).await;
    fails(outside, code, "outside of the session's directories");
    let relative = case.create(command("true", &[]).with_cwd(".")).await;
    fails(relative, code, "not an absolute path");
    std::fs::write(case.path("file"), "").unwrap();
    let file = case
        .create(command("true", &[]).with_cwd(case.path("file")))
        .await;
    fails(file, code, "is not a directory");
}

#[tokio::test]
async fn output_is_truncated_from_the_beginning_inside_no_character() {
    let case = Case::new();
    let request = command("printf", &["%s", "0123456789äöü"]).with_output_byte_limit(5);
    let id = case.create(request).await.unwrap();
    case.wait(&id).await;
    let output = case.output(&id).await;
    assert_eq!(output.output, "öü", "five bytes would begin inside ä");
    assert!(output.truncated);
}

#[tokio::test]
async fn output_is_bounded_even_without_a_limit() {
    let case = Case::new();
    let id = case.script("head -c 3000000 /dev/zero | tr '\\0' x").await;
    case.wait(&id).await;
    let output = case.output(&id).await;
    assert_eq!(output.output.len(), 1 << 20);
    assert!(output.truncated);
}

#[tokio::test]
async fn output_is_bounded_whatever_limit_is_named() {
    let case = Case::new();
    let request = script("head -c 5000000 /dev/zero | tr '\\0' x");
    let id = case.create(request.with_output_byte_limit(u64::MAX)).await;
    let id = id.unwrap();
    case.wait(&id).await;
    let output = case.output(&id).await;
    assert_eq!(output.output.len(), 4 << 20);
    assert!(output.truncated);
}

#[tokio::test]
async fn output_can_be_read_while_the_command_runs() {
    let case = Case::new();
    let id = case.script("echo started; exec sleep 1000").await;
    let started = timeout(GUARD, async {
        while case.output(&id).await.output != "started\n" {
            tokio::task::yield_now().await;
        }
    });
    started.await.unwrap();
    assert_eq!(case.output(&id).await.exit_status, None);
    case.release(&id).await;
}

#[tokio::test]
async fn a_killed_terminal_can_still_be_asked() {
    let case = Case::new();
    let id = case.script("echo before; exec sleep 1000").await;
    let waiting = case.wait(&id);
    let killing = async {
        while case.output(&id).await.output.is_empty() {
            tokio::task::yield_now().await;
        }
        case.kill(&id).await;
        case.output(&id).await
    };
    let (exit, output) = tokio::join!(waiting, killing);
    assert_eq!(exit.exit_code, None);
    assert_eq!(exit.signal.as_deref(), Some("SIGTERM"));
    assert_eq!(output.output, "before\n");
    assert_eq!(
        output.exit_status.unwrap().signal.as_deref(),
        Some("SIGTERM")
    );
    case.kill(&id).await;
    case.release(&id).await;
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed() {
    let case = Case::new();
    let id = case
        .script("trap '' TERM; echo ready; while :; do sleep 0.01; done")
        .await;
    let ready = timeout(GUARD, async {
        while case.output(&id).await.output.is_empty() {
            tokio::task::yield_now().await;
        }
    });
    ready.await.unwrap();
    case.kill(&id).await;
    assert_eq!(case.wait(&id).await.signal.as_deref(), Some("SIGKILL"));
}

/// A grandchild that holds the terminal's output and would outlive the command.
const LEAVES_A_CHILD: &str = "sleep 1000 & echo ready";

#[tokio::test]
async fn a_released_terminal_is_unknown_and_dead() {
    let case = Case::new();
    let lifeline = Lifeline::new();
    let id = case
        .script(&lifeline.tie(&format!("{LEAVES_A_CHILD}; wait")))
        .await;
    case.printing(&id, "ready\n").await;
    case.release(&id).await;
    lifeline.all_dead().await;

    let request = TerminalOutputRequest::new("s", &id);
    let output = case.workspace.terminal_output(&case.session, request).await;
    fails(output, ErrorCode::RESOURCE_NOT_FOUND, id.as_str());
    let request = ReleaseTerminalRequest::new("s", &id);
    let released = case
        .workspace
        .release_terminal(&case.session, request)
        .await;
    fails(released, ErrorCode::RESOURCE_NOT_FOUND, "session s");
}

/// Processes in a session of their own, out of reach of a signal to the group.
#[cfg(target_os = "linux")]
mod left {
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::*;

    /// The command waits for it.
    const AND_STAYS: &str = "setsid sh -c 'echo left; exec sleep 1000' & wait";

    /// The command ends before it.
    const AND_ENDS: &str = "setsid sh -c 'echo left; exec sleep 1000' & exit 0";

    /// The one that is left has no environment; its parent has.
    const CHILD_WITHOUT_MARK: &str =
        "setsid sh -c 'env -i sh -c \"echo left; exec sleep 1000\"; true' & wait";

    async fn started(case: &Case, text: &str) -> (TerminalId, Lifeline) {
        let lifeline = Lifeline::new();
        let id = case.script(&lifeline.tie(text)).await;
        case.printing(&id, "left\n").await;
        (id, lifeline)
    }

    #[tokio::test]
    async fn they_end_when_the_terminal_is_released() {
        let case = Case::new();
        for text in [AND_STAYS, AND_ENDS, CHILD_WITHOUT_MARK] {
            let (id, lifeline) = started(&case, text).await;
            case.release(&id).await;
            lifeline.all_dead().await;
        }
    }

    /// Waits until the process that is left has printed its number.
    async fn number(case: &Case, session: &SessionContext, id: &TerminalId) -> Pid {
        let printed = timeout(GUARD, async {
            loop {
                let request = TerminalOutputRequest::new(session.id().clone(), id);
                let output = case.workspace.terminal_output(session, request).await;
                let output = output.unwrap().output;
                if output.ends_with('\n') {
                    return output;
                }
                tokio::task::yield_now().await;
            }
        });
        let number = printed.await.expect("no number is printed");
        Pid::from_raw(number.trim().parse().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn they_end_with_their_session_and_no_other() {
        let case = Case::new();
        let survivor = Lifeline::new();
        let text = survivor.tie("setsid sh -c 'echo $$; exec sleep 1000' & wait");
        // A name for the mark that the agent chooses changes nothing.
        let mut request = script(&text).with_env(vec![EnvVariable::new("ACP_MARKS", "mine")]);
        request.session_id = "other".into();
        let session = case.other();
        let created = case.workspace.create_terminal(&session, request).await;
        let process = number(&case, &session, &created.unwrap().terminal_id).await;

        let (id, lifeline) = started(&case, AND_STAYS).await;
        case.release(&id).await;
        lifeline.all_dead().await;
        let (_, lifeline) = started(&case, AND_ENDS).await;
        case.workspace.end_session(&case.session);
        lifeline.all_dead().await;
        test_kill_process(process).expect("the other session's is dead");

        case.workspace.end_session(&case.other());
        survivor.all_dead().await;
    }

    #[tokio::test]
    async fn they_end_with_the_workspace() {
        let case = Case::new();
        let (_, lifeline) = started(&case, AND_STAYS).await;
        let (_, another) = started(&case, AND_ENDS).await;
        drop(case);
        lifeline.all_dead().await;
        another.all_dead().await;
    }

    /// What the documentation says of processes that have neither mark nor parent.
    #[tokio::test]
    async fn one_that_clears_its_environment_and_outlives_its_parent_goes_on() {
        let case = Case::new();
        let lifeline = Lifeline::new();
        let text = "setsid env -i sh -c 'echo $$; exec sleep 1000' & exit 0";
        let id = case.script(&lifeline.tie(text)).await;
        let process = number(&case, &case.session, &id).await;
        case.wait(&id).await;
        case.release(&id).await;
        test_kill_process(process).expect("it is found nevertheless");
        kill_process(process, Signal::KILL).unwrap();
        lifeline.all_dead().await;
    }
}

#[tokio::test]
async fn the_exit_is_told_although_a_child_holds_the_output() {
    let case = Case::new();
    let lifeline = Lifeline::new();
    let id = case
        .script(&lifeline.tie(&format!("{LEAVES_A_CHILD}; exit 5")))
        .await;
    assert_eq!(case.wait(&id).await.exit_code, Some(5));
    assert_eq!(case.output(&id).await.output, "ready\n");
    case.release(&id).await;
    lifeline.all_dead().await;
}

#[tokio::test]
async fn terminals_belong_to_one_session_and_end_with_it() {
    let case = Case::new();
    let lifeline = Lifeline::new();
    let id = case
        .script(&lifeline.tie("echo ready; exec sleep 1000"))
        .await;
    case.printing(&id, "ready\n").await;
    let other = WaitForTerminalExitRequest::new("other", &id);
    let waited = case
        .workspace
        .wait_for_terminal_exit(&case.other(), other)
        .await;
    fails(waited, ErrorCode::RESOURCE_NOT_FOUND, "session other");
    case.workspace.end_session(&case.other());
    assert!(case.workspace.terminals.find(&case.session, &id).is_ok());
    case.workspace.end_session(&case.session);
    assert!(case.workspace.terminals.find(&case.session, &id).is_err());
    lifeline.all_dead().await;
}

#[tokio::test]
async fn terminals_end_with_the_workspace() {
    let case = Case::new();
    let lifeline = Lifeline::new();
    let id = case
        .script(&lifeline.tie("echo ready; exec sleep 1000"))
        .await;
    case.printing(&id, "ready\n").await;
    drop(case);
    lifeline.all_dead().await;
}

#[tokio::test]
async fn terminals_that_nobody_releases_are_limited() {
    let case = Case::new();
    let mut ids = Vec::new();
    for _ in 0..64 {
        ids.push(case.create(command("true", &[])).await.unwrap());
    }
    let refused = case.create(command("true", &[])).await;
    fails(refused, ErrorCode::INTERNAL_ERROR, "release one first");
    case.release(&ids[0]).await;
    case.create(command("true", &[])).await.unwrap();
}

#[tokio::test]
async fn a_workspace_without_terminals_declares_and_starts_none() {
    let case = Case::new();
    let workspace = case.workspace.clone().without_terminals();
    assert!(!workspace.is_offered());
    let request = command("true", &[]);
    let created = workspace.create_terminal(&case.session, request).await;
    fails(created, ErrorCode::METHOD_NOT_FOUND, "terminal/create");
}
