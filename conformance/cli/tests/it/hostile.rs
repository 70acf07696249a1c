//! Agents that behave as badly as processes can: the suite ends within its limits,
//! says what it saw, and leaves nobody behind.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};

/// Nothing waits this long when all is well.
const GUARD: Duration = Duration::from_secs(60);

const PROGRAM: &str = env!("CARGO_BIN_EXE_acp-conformance");

/// A pipe that every agent of a test holds open, so that its end says that they are
/// all dead.
struct Lifeline {
    folder: TempDir,
    /// Ours, so that it does not end between two agents.
    own: File,
    started: Receiver<()>,
    ended: Receiver<()>,
}

impl Lifeline {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("lifeline");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let (start, started) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let read_end = path.clone();
        std::thread::spawn(move || {
            let mut pipe = File::open(read_end).unwrap();
            pipe.read_exact(&mut [0]).unwrap();
            start.send(()).unwrap();
            pipe.read_to_end(&mut Vec::new()).unwrap();
            end.send(()).unwrap();
        });
        // Waits until the other end is open.
        let own = File::options().write(true).open(path).unwrap();
        Self {
            folder,
            own,
            started,
            ended,
        }
    }

    /// A script that is on this lifeline, with all that it starts, once it was spoken
    /// to: the suite starts an agent in vain first.
    fn tie(&self, script: &str) -> String {
        let path = self.folder.path().join("lifeline");
        format!(
            "read -r line; exec 9>'{}'; echo >&9; {script}",
            path.display()
        )
    }

    fn all_dead(self) {
        drop(self.own);
        let ended = self.ended.recv_timeout(GUARD);
        ended.expect("somebody is still alive");
    }
}

/// Answers the handshake, if that is what the first line was; its id is zero.
const SHAKES_HANDS: &str = r#"case "$line" in *'"initialize"'*)
    echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
esac"#;

/// The suite against an agent in shell, with short limits; nothing of it is left.
fn suite(options: &[&str], script: &str) -> Ran {
    let lifeline = Lifeline::new();
    let script = lifeline.tie(script);
    let limits = ["agent", "--timeout", "0.3", "--turn-timeout", "0.6"];
    let agent = ["--", "sh", "-c", &script];
    let started = Instant::now();
    let ran = acp_conformance(limits.iter().chain(options).chain(&agent));
    assert!(started.elapsed() < GUARD, "{:?}", started.elapsed());
    lifeline.all_dead();
    ran
}

/// Agents with which there is no handshake: a report says why, and the limit is waited for once.
#[test]
fn an_agent_without_an_answer_to_initialize_breaks_one_requirement() {
    let answer = "FAIL initialization.answer (must): expected an answer to initialize, got ";
    let line = "FAIL transports.only-messages (must): expected one message per line in answer to \
                initialize, got a line without an end, ";
    let cases = [
        ("cat > /dev/null", answer, "timed out after 600ms"),
        // More of it would be a flood, which ends earlier and otherwise.
        (
            "while echo garbage; do sleep 0.01; done",
            answer,
            "timed out after 600ms; last: garbage",
        ),
        ("while printf '{'; do sleep 0.1; done", line, " bytes: {{"),
        ("yes | tr -d '\\n'", line, " bytes: yyy"),
        ("echo starting; exit 7", answer, "exit status: 7"),
    ];
    let judge = |(script, says, shows): (&str, &str, &str), only: &[&str]| {
        let ran = suite(only, script);
        assert_eq!(ran.code, Some(1), "{script}: {}", ran.stderr);
        assert!(ran.stdout.contains(says), "{script}: {}", ran.stdout);
        assert!(ran.stdout.contains(shows), "{script}: {}", ran.stdout);
        let failures = ran.stdout.matches("\nFAIL ").count();
        assert_eq!(failures, 1, "{script}: {}", ran.stdout);
        assert!(ran.stdout.contains(", initialize: expected "), "{script}");
    };
    // Most of the time goes into waiting. What was chosen does not matter.
    std::thread::scope(|scope| {
        for case in cases {
            for only in [&[][..], &["--only", "prompt-turn"]] {
                scope.spawn(move || judge(case, only));
            }
        }
    });
    // Left out by name, it does not decide.
    let ran = suite(&["--skip", "initialization.answer"], "cat > /dev/null");
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
}

/// Commands that are no agents: the suite says why and ends.
#[test]
fn what_is_no_agent_is_told_so() {
    for (script, says) in [
        ("sleep 1000 & exit 7", "exit status: 7"),
        ("exit 7", "exit status: 7"),
        ("kill -9 $$", "signal: 9"),
        ("exec 1>&-; sleep 1000", "it closed its output"),
    ] {
        let ran = suite(&[], script);
        assert_eq!(ran.code, Some(2), "{script}: {}", ran.stdout);
        assert!(ran.stderr.contains(says), "{script}: {}", ran.stderr);
    }
}

/// Hundreds of checks do not wait for the same silence one after the other.
#[test]
fn an_agent_that_falls_silent_is_not_waited_for_again_and_again() {
    let ran = suite(
        &[],
        &format!("{SHAKES_HANDS}; while read -r line; do :; done"),
    );
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let says = "FAIL session-setup.session-id (must): expected an answer to session/new, got none";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    let failures = ran.stdout.lines().filter(|line| line.starts_with("FAIL "));
    let of_sessions = failures.filter(|line| line.contains("session/")).count();
    assert_eq!(of_sessions, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("\nBLOCKED "), "{}", ran.stdout);
}

#[test]
fn a_line_without_an_end_is_thrown_away() {
    let lifeline = Lifeline::new();
    // Its last byte and its end come in one write: nobody sees it too long and without an end. The agent
    // ends with it, so that nothing depends on the time that it takes.
    let script = "{ head -c 33554433 /dev/zero; echo; } | dd bs=65536 iflag=fullblock status=none";
    let script = lifeline.tie(script);
    let ran = acp_conformance(["agent", "--turn-timeout", "100", "--", "sh", "-c", &script]);
    let says = "last: a line of 33554433 bytes";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    lifeline.all_dead();
}

#[test]
fn a_flood_has_an_end() {
    let flood = r#"{SHAKES_HANDS}; exec yes '{"jsonrpc":"2.0","method":"_flood","params":{}}'"#;
    let only = ["--only", "session-setup.session-id"];
    let ran = suite(&only, &flood.replace("{SHAKES_HANDS}", SHAKES_HANDS));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("FAIL session-setup.session-id"),
        "{}",
        ran.stdout
    );
}

#[test]
fn agents_do_not_outlive_a_suite_that_is_killed() {
    let lifeline = Lifeline::new();
    let script = lifeline.tie("sleep 1000 & while :; do sleep 1; done");
    let mut suite = Command::new(env!("CARGO_BIN_EXE_acp-conformance"))
        .args(["agent", "--turn-timeout", "100", "--", "sh", "-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    lifeline.started.recv_timeout(GUARD).unwrap();
    suite.kill().unwrap();
    suite.wait().unwrap();
    lifeline.all_dead();
}

/// A run whose third agent hangs, once that one runs. It has a temporary folder of its own.
fn hanging(lifeline: &Lifeline, script: &str, options: &[&str]) -> Child {
    let folder = lifeline.folder.path();
    let script = format!(
        r#"exec 9>'{0}/lifeline'; cd '{0}'
        for n in 1 2; do mkdir "start$n" 2> /dev/null && exec "$0" reference-agent; done
        echo >&9; {script}"#,
        folder.display()
    );
    let temporary = folder.join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut suite = Command::new(PROGRAM);
    suite
        .env("TMPDIR", temporary)
        .args(["agent", "--jobs", "1", "--only", "initialization"])
        .args(options);
    begun(lifeline, &mut suite, &script)
}

/// Starts the suite with a peer that is a script, and waits until that one runs.
fn begun(lifeline: &Lifeline, suite: &mut Command, script: &str) -> Child {
    let suite = suite
        .args(["--", "sh", "-c", script, PROGRAM])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    lifeline.started.recv_timeout(GUARD).unwrap();
    suite
}

fn send(suite: &Child, signal: Signal) {
    rustix::process::kill_process(Pid::from_child(suite), signal).unwrap();
}

/// What was paid for is reported, in every format.
#[test]
fn an_interrupted_run_ends_with_a_report() {
    let lifeline = Lifeline::new();
    let folder = lifeline.folder.path().to_owned();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let files = ["json", "junit", "html", "markdown"].map(|name| (format!("--{name}"), file(name)));
    let options: Vec<&str> = files
        .iter()
        .flat_map(|(option, file)| [option.as_str(), file.as_str()])
        .collect();
    let suite = hanging(&lifeline, "cat > /dev/null", &options);
    send(&suite, Signal::INT);
    let ran = Ran::from(suite.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let left: Vec<_> = folder.join("temporary").read_dir().unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let says = "the run was interrupted; the report has what was judged before";
    assert!(
        ran.stdout.contains(&format!("incomplete, because {says}")),
        "{}",
        ran.stdout
    );
    for (option, file) in &files {
        let report = std::fs::read_to_string(file).unwrap();
        assert!(report.contains("incomplete"), "{option}: {report}");
        assert!(
            report.contains("the run was interrupted"),
            "{option}: {report}"
        );
    }
    let report = std::fs::read(file("json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["verdict"], "incomplete");
    let rows = report["requirements"].as_array().unwrap();
    let count = |verdict: &str| rows.iter().filter(|row| row["verdict"] == verdict).count();
    assert_eq!(count("fail"), 0, "{report}");
    assert!(count("pass") > 0 && count("inconclusive") > 0, "{report}");
    lifeline.all_dead();
}

#[test]
fn a_second_signal_ends_a_run_at_once() {
    let lifeline = Lifeline::new();
    // Ends neither with its input nor when it is terminated.
    let mut suite = hanging(&lifeline, "trap '' TERM; while :; do sleep 1; done", &[]);
    send(&suite, Signal::TERM);
    let mut said = BufReader::new(suite.stderr.take().unwrap()).lines();
    let is_noted = said.any(|line| line.unwrap().contains("Interrupt again to end at once"));
    assert!(is_noted);
    send(&suite, Signal::INT);
    assert_eq!(suite.wait().unwrap().code(), Some(130));
    lifeline.all_dead();
}

/// What was played or sent before is reported.
#[test]
fn an_interrupted_run_against_a_client_or_with_fuzzing_is_incomplete() {
    let agent = r#"exec "$0" reference-agent"#;
    for (options, script, says) in [
        (
            &["client"][..],
            "sleep 1000",
            "incomplete, because the run was interrupted",
        ),
        (
            &["agent", "--fuzz", "1000000"],
            agent,
            "incomplete: the run was interrupted",
        ),
    ] {
        let lifeline = Lifeline::new();
        let pipe = lifeline.folder.path().join("lifeline");
        let script = format!("exec 9>'{}'; echo >&9; {script}", pipe.display());
        let suite = begun(&lifeline, Command::new(PROGRAM).args(options), &script);
        send(&suite, Signal::INT);
        let ran = Ran::from(suite.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
        lifeline.all_dead();
    }
}
