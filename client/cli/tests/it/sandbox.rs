//! `--sandbox`: what a confined agent writes, and by whom. `acp doctor`.

use std::path::Path;

use acp_client::{AgentCommand, Client, Mechanism, SandboxSettings, Workspace};

use super::acp::{Acp, Ended, acp, command};
use super::mechanisms::mechanisms;
use super::script::script;
use crate::agent::within;

/// Writes inside of the session's directory and outside, by itself and by terminals of the client.
const WRITER: &str = r#"
start; prompt
echo x > own 2> /dev/null && say 'inside '
echo x > ../outside/own 2> /dev/null || say 'refused '
terminal() { call terminal/create '{"sessionId":"s","command":"sh","args":["-c","'"$1"'"]}'
    id=${line#*'"terminalId":"'}; id=${id%%'"'*}
    call terminal/wait_for_exit '{"sessionId":"s","terminalId":"'"$id"'"}'; say "$(quoted) "; }
terminal 'echo x > terminal'
terminal 'echo x > ../outside/terminal'
echo x > "$TMPDIR/x" && say 'temporary'
end end_turn"#;

/// A folder `project`, beside a folder `outside`.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["project", "outside"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn run_in(dir: &Path, args: &[&str], agent: &str) -> Ended {
    let mut command = command(args, agent);
    command.current_dir(dir.join("project"));
    Acp::spawn(command).end().await
}

#[tokio::test]
async fn a_confined_agent_writes_in_its_directory_only() {
    for mechanism in mechanisms() {
        let dir = place();
        let flag = format!("--sandbox={mechanism}");
        let ended = run_in(dir.path(), &[&flag, "--approve-all", "-v", "hi"], WRITER).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let exits = ["'exitCode':0", "'exitCode':2"];
        let [first, second] = exits.map(|exit| ended.stdout.find(exit));
        assert!(first.unwrap() < second.unwrap(), "{ended:?}");
        assert!(ended.stdout.starts_with("inside refused "), "{ended:?}");
        assert!(ended.stdout.trim_end().ends_with("temporary"), "{ended:?}");
        assert_eq!(names(&dir.path().join("project")), ["own", "terminal"]);
        assert_eq!(names(&dir.path().join("outside")), [""; 0]);
        let project = dir.path().join("project").canonicalize().unwrap();
        let shown = ended
            .stderr
            .lines()
            .find(|line| line.contains("may write in"));
        assert!(
            shown.unwrap().contains(project.to_str().unwrap()),
            "{ended:?}"
        );
    }
}

/// The test above means something: the same agent without a sandbox writes everywhere.
#[tokio::test]
async fn without_a_sandbox_the_same_agent_writes_outside() {
    let dir = place();
    let ended = run_in(dir.path(), &["--approve-all", "hi"], WRITER).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(names(&dir.path().join("outside")), ["own", "terminal"]);
}

#[tokio::test]
async fn paths_can_be_added() {
    for mechanism in mechanisms() {
        let dir = place();
        let flag = format!("--sandbox={mechanism}");
        let agent = "start; prompt; echo x > ../outside/own && say written; end end_turn";
        let args = [
            &flag,
            "--sandbox-write",
            "../outside",
            "--approve-all",
            "hi",
        ];
        let ended = run_in(dir.path(), &args, agent).await;
        assert_eq!(ended.stdout.trim_end(), "written", "{ended:?}");
    }
}

/// An agent in a mode in which it never asks is refused, but not in a sandbox.
#[tokio::test]
async fn a_confined_agent_need_not_ask() {
    let agent = r#"answer '{"protocolVersion":1}'
        answer '{"sessionId":"s","modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo","name":"Yolo"}]}}'
        prompt; say fine; end end_turn"#;
    let dir = place();
    let ended = run_in(dir.path(), &["hi"], agent).await;
    assert_eq!(ended.code, Some(6), "{ended:?}");
    for mechanism in mechanisms() {
        let flag = format!("--sandbox={mechanism}");
        let ended = run_in(dir.path(), &[&flag, "hi"], agent).await;
        assert_eq!(
            (ended.code, ended.stdout.trim_end()),
            (Some(0), "fine"),
            "{ended:?}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_enforced_is_refused() {
    let dir = place();
    for (args, reason) in [
        (vec!["--sandbox", "--sandbox-no-network"], "andlock"),
        (vec!["--sandbox=chroot"], "use landlock or bubblewrap"),
        (vec!["--sandbox-write", "."], "--sandbox"),
        (
            vec!["--sandbox", "--sandbox-write", "missing"],
            "missing cannot be made writable",
        ),
    ] {
        let args = [&args[..], &["hi"]].concat();
        let ended = run_in(dir.path(), &args, "touch started; start").await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(reason), "{ended:?}");
        assert_eq!(names(&dir.path().join("project")), [""; 0], "{args:?}");
    }
    let remote = ["run", "--sandbox", "--url", "http://127.0.0.1:9/", "hi"];
    let ended = acp(&remote).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("an agent at a URL"), "{ended:?}");
}

#[tokio::test]
async fn the_doctor_tries_each_sandbox() {
    let ended = acp(&["doctor"]).await;
    let works = mechanisms();
    assert_eq!(ended.code, Some(i32::from(works.is_empty())), "{ended:?}");
    for mechanism in Mechanism::ALL {
        let line = ended
            .stdout
            .lines()
            .find(|line| line.starts_with(mechanism.name()));
        let works = works.contains(&mechanism);
        assert_eq!(line.unwrap().contains(": works"), works, "{ended:?}");
    }
}

/// A program that starts agents has the same by the library, on a runtime with several threads too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_confines_agents_that_are_restarted() {
    for mechanism in mechanisms() {
        let dir = place();
        let project = dir.path().join("project");
        let sandbox = SandboxSettings::new(mechanism)
            .writable(&project)
            .prepare()
            .unwrap();
        // The first process ends in its turn.
        let agent = script(
            r#"echo x >> runs; answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
            if [ "$(wc -l < runs)" = 1 ]; then answer '{"sessionId":"s"}'; exit 1; fi
            answer null; prompt; echo x > ../outside/own 2> /dev/null || say refused; end end_turn"#,
        );
        let wait = std::time::Duration::from_millis(10);
        let command = AgentCommand::new("sh")
            .args(["-c".to_owned(), agent])
            .current_dir(&project)
            .sandbox(sandbox.clone())
            .restart(acp_client::Reconnect::default().with_waits(wait, wait));
        let builder = Client::builder().workspace(Workspace::new().sandbox(sandbox));
        let client = within(builder.spawn(command)).await.unwrap();
        let session = within(client.new_session(&project)).await.unwrap();
        let mut events = session.events();
        // The session is continued in the second process.
        while !matches!(
            within(events.next()).await.unwrap().event,
            acp_client::Event::Gap(_)
        ) {}
        let turn = session.prompt("hi").await.unwrap();
        let outcome = within(turn.outcome()).await.unwrap();
        assert_eq!(outcome.text, "refused", "{mechanism}");
        assert_eq!(names(&dir.path().join("outside")), [""; 0]);
    }
}
