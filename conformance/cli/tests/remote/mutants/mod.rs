//! Servers that break the rules of the transport, to prove that the checks see it.
//!
//! Each is the reference agent's server with a fault in front of it. A test runs the area against
//! all of them: what is listed fails, and nothing else.

#[expect(dead_code, reason = "the suite needs more of it")]
#[path = "../../../../src/transport/frame.rs"]
mod frame;
mod frames;
mod http;
mod server;
mod streams;
mod websocket;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_conformance::harness::{Conditions, Env, Profile, Unresponsive};
use acp_conformance::requirements::{Choice, of_remote};
use acp_conformance::suite::{Options, Report, run};
use acp_conformance::target::{Endpoint, Target};
use acp_conformance::wire::{Schema, Version};
use futures_util::future::join_all;

use self::server::{Event, Fault, MutantServer, Out, TOKEN};

/// A way to break the server.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// What it does wrong, in a few words.
    pub name: &'static str,
    /// The requirements that fail because of it.
    pub breaks: &'static [&'static str],
    /// Those that may fail, too.
    pub may_break: &'static [&'static str],
    /// It leaves out what the check waits for, or harms other connections: nothing else is run, and
    /// with short limits.
    pub alone: bool,
    /// What it does.
    pub fault: Fault,
}

impl Mutant {
    const fn new(name: &'static str, breaks: &'static [&'static str], fault: Fault) -> Self {
        Self {
            name,
            breaks,
            may_break: &[],
            alone: false,
            fault,
        }
    }

    const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    const fn may_break(mut self, others: &'static [&'static str]) -> Self {
        self.may_break = others;
        self
    }
}

fn all() -> impl Iterator<Item = &'static Mutant> {
    [http::TABLE, streams::TABLE, frames::TABLE]
        .into_iter()
        .flatten()
}

/// Limits for an answer and for a turn that no sound server comes near, however busy the machine is.
const GENEROUS: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(40)];

/// Limits for what does not come.
const SHORT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Runs these requirements, or areas, at a URL; after a session and a turn, if `tries_setup`.
fn report(
    url: &str,
    only: &[&str],
    folder: &Path,
    limits: [Duration; 2],
    tries_setup: bool,
) -> Report {
    let agent = Endpoint::new(url).unwrap();
    let env = Env {
        target: Target::url(agent.token(TOKEN).unwrap()),
        profile: Profile::reference().unwrap(),
        schema: Schema::of(Version::V1).unwrap(),
        folder: folder.to_owned(),
        timeout: limits[0],
        turn_timeout: limits[1],
        // Long enough for what is on its way on a busy machine.
        quiet: Duration::from_millis(400),
        unresponsive: Unresponsive::default(),
        conditions: Conditions::default(),
    };
    let choice = Choice {
        only: only.iter().map(|&name| name.to_owned()).collect(),
        ..Choice::default()
    };
    let options = Options {
        choice,
        jobs: 8,
        tries_setup,
        ..Options::default()
    };
    run(&Arc::new(env), &options, |_, _| {}).unwrap()
}

/// Runs on a thread of its own, because the suite waits.
async fn of_server(
    server: &MutantServer,
    only: &'static [&'static str],
    limits: [Duration; 2],
    tries_setup: bool,
) -> Report {
    let url = server.url.clone();
    let report = tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::write(path.join("input.txt"), "one\n").unwrap();
        report(&url, only, &path, limits, tries_setup)
    });
    report.await.unwrap()
}

fn failures(report: &Report) -> BTreeSet<&'static str> {
    report.with("fail").map(|row| row.requirement.id).collect()
}

/// What a mutant got wrong about the table, in words; empty if nothing.
async fn mistakes(mutant: &Mutant) -> String {
    let server = MutantServer::start(mutant.fault).await;
    let report = match mutant.alone {
        true => of_server(&server, mutant.breaks, SHORT, false).await,
        false => of_server(&server, &["remote"], GENEROUS, false).await,
    };
    let failed = failures(&report);
    let listed: BTreeSet<_> = mutant.breaks.iter().copied().collect();
    let passed: Vec<_> = listed.difference(&failed).collect();
    let mut unlisted = failed.difference(&listed);
    let unlisted = unlisted.find(|id| !mutant.may_break.contains(id));
    let mut words = String::new();
    if !passed.is_empty() {
        words += &format!("{} does not break {passed:?}\n", mutant.name);
    }
    if let Some(id) = unlisted {
        let row = report.with("fail").find(|row| row.requirement.id == *id);
        words += &format!(
            "{} also breaks {id}: {:#?}\n",
            mutant.name,
            row.unwrap().verdict
        );
    }
    words
}

/// How many mutants are run at once: most of the time goes into waiting for what must not come.
const LANES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutants_fail_what_they_break_and_nothing_else() {
    let chosen = std::env::var("ACP_MUTANT").ok();
    let is_chosen = |mutant: &&Mutant| chosen.as_deref().is_none_or(|name| name == mutant.name);
    let queue = Arc::new(Mutex::new(all().filter(is_chosen).collect::<Vec<_>>()));
    let lane = async |queue: Arc<Mutex<Vec<&'static Mutant>>>| {
        let mut words = String::new();
        loop {
            let Some(mutant) = queue.lock().unwrap().pop() else {
                return words;
            };
            words += &mistakes(mutant).await;
        }
    };
    let words = join_all((0..LANES).map(|_| lane(queue.clone()))).await;
    let words = words.concat();
    assert!(words.is_empty(), "{words}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_fault_breaks_nothing_and_skips_nothing() {
    let server = MutantServer::start(Fault::NONE).await;
    let report = of_server(&server, &["remote"], GENEROUS, false).await;
    for state in ["fail", "skip", "inconclusive"] {
        let found: Vec<_> = report
            .with(state)
            .map(|row| (row.requirement.id, &row.verdict))
            .collect();
        assert!(found.is_empty(), "{state}: {found:#?}");
    }
}

/// The requirements of such a server with this verdict.
async fn with_verdict(
    fault: Fault,
    only: &'static [&'static str],
    tries_setup: bool,
    verdict: &str,
) -> Vec<&'static str> {
    let server = MutantServer::start(fault).await;
    let report = of_server(&server, only, GENEROUS, tries_setup).await;
    let rows = report.with(verdict).map(|row| row.requirement.id);
    rows.filter(|id| only.contains(id)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_a_login_that_is_missing_is_blocked() {
    // The first one has the preflight try a session.
    const ROWS: &[&str] = &[
        "session-setup.unique-id",
        "remote.batch",
        "remote.connection-stream",
        "remote.websocket-fragments",
        "remote.websocket-utf8",
    ];
    let fault = Fault::event(|event| match event.answers().as_deref() {
        Some("session/new") => vec![error(event, -32000, "Authentication required")],
        _ => event.pass(),
    });
    assert_eq!(with_verdict(fault, ROWS, true, "blocked").await, ROWS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_in_trouble_decides_nothing() {
    const ROWS: &[&str] = &[
        "remote.post-without-session",
        "remote.early-session-stream",
        "remote.websocket-messages",
    ];
    let fault = Fault {
        event: |event| match event.answers().as_deref() {
            Some("session/prompt") => vec![error(event, -32603, "overloaded")],
            _ => event.pass(),
        },
        to_client: frames::in_trouble,
        ..Fault::NONE
    };
    assert_eq!(with_verdict(fault, ROWS, false, "inconclusive").await, ROWS);
}

/// An error instead of the answer that this event is.
fn error(event: &Event<'_>, code: i32, message: &str) -> Out {
    let error = serde_json::json!({"code": code, "message": message});
    let answer = serde_json::json!({"jsonrpc": "2.0", "id": event.value["id"], "error": error});
    Out::Here(format!("data: {answer}\n\n"))
}

/// The status says why: the proposal has no JSON-RPC error for what a server does not pass on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_refuse_by_the_status_alone() {
    const ROWS: &[&str] = &["jsonrpc.missing-params", "jsonrpc.parse-error"];
    let fault = Fault::response(|asked, answer| {
        let is_json = serde_json::from_slice::<serde_json::Value>(&asked.body).is_ok();
        let lacks_session = asked.calls("session/prompt") && asked.session().is_none();
        if asked.is("POST") && (!is_json || lacks_session) {
            answer.status = 400;
            answer.body = Some(String::new());
        }
    });
    assert_eq!(with_verdict(fault, ROWS, false, "pass").await, ROWS);
}

#[test]
fn every_check_of_the_transport_has_a_mutant_that_fails_it() {
    let broken: BTreeSet<_> = all().flat_map(|mutant| mutant.breaks).copied().collect();
    let rows: BTreeSet<_> = of_remote(Version::V1).map(|(_, row)| row.id).collect();
    let unproven: Vec<_> = rows.difference(&broken).collect();
    assert!(unproven.is_empty(), "{unproven:?}");
    let unknown: Vec<_> = broken.difference(&rows).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
