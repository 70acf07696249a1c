//! The library as a test of somebody else uses it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use acp_client::{Client, Policy, Workspace};
use acp_sdk::v1::{
    Agent, AgentContext, CancelNotification, NewSessionRequest, NewSessionResponse, PromptRequest,
    PromptResponse, StopReason,
};

use super::*;
use crate::clients::{self, Launched};
use crate::harness::Profile;
use crate::requirements::{self, Check};
use crate::wire::Version;

/// What it panics with; empty when it does not.
fn panics(test: impl Test) -> String {
    let said = catch_unwind(AssertUnwindSafe(|| assert_conformant(test)));
    match said {
        Ok(()) => String::new(),
        Err(said) => *said.downcast::<String>().unwrap(),
    }
}

#[test]
fn the_reference_agent_passes_without_a_process() {
    // A store for all connections, as the disk is for all processes.
    let store = std::sync::Arc::new(acp_server::store::MemoryStore::new());
    let agent = move || {
        let server = acp_reference_agent::Reference::server().store(store.clone());
        server.build().connection(acp_server::Link::Stdio)
    };
    let test = AgentTest::new(agent).profile(Profile::reference().unwrap());
    let report = test.skip(["elicitation"]).strict().run().unwrap();
    assert!(report.conformant, "{}", report::text(&report).unwrap());
    assert_eq!(report.with(Outcome::Skip).count(), 0);
    let checked = requirements::all().filter(|(area, row)| {
        let is_checked = !matches!(row.check, Check::Excluded(_));
        is_checked && area.name != "elicitation"
    });
    assert_eq!(report.with(Outcome::Pass).count(), checked.count());
    assert_eq!(report.left_out, ["elicitation"]);
}

/// Answers prompts in sessions that were never opened, as no agent should.
struct Careless;

impl Agent for Careless {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> acp_sdk::HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("always the same"))
    }

    async fn prompt(
        &self,
        _: &AgentContext,
        _: PromptRequest,
    ) -> acp_sdk::HandlerResult<PromptResponse> {
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }
}

#[test]
fn a_broken_agent_panics_with_the_report() {
    let said = panics(AgentTest::new(|| Careless).only(["session-setup"]));
    for what in [
        "FAIL session-setup.unique-id (must)",
        "  spec  ",
        "https://agentclientprotocol.com/protocol/v1/session-setup#",
        "  sent  {",
        "  came  {",
        "  again this test with .only([\"session-setup.unique-id\"])",
        "not conformant: ",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
}

/// Starts a command in a terminal and does not wait for it.
struct Hasty;

impl acp_server::Handler for Hasty {
    type State = ();

    async fn prompt(
        &self,
        _: &mut (),
        turn: acp_server::Turn,
    ) -> acp_server::HandlerResult<StopReason> {
        drop(turn.terminal("server", []).await?);
        Ok(StopReason::EndTurn)
    }
}

#[test]
fn a_turn_that_ends_before_it_is_cancelled_decides_nothing() {
    let agent = || acp_server::Server::new(Hasty).connection(acp_server::Link::Stdio);
    let test = AgentTest::new(agent).prompt("terminal", "Start the server.");
    let report = test.only(["terminals.cancelled"]).run().unwrap();
    let text = report::text(&report).unwrap();
    assert_eq!(report.with(Outcome::Inconclusive).count(), 1, "{text}");
    assert!(
        text.contains("the turn ended before it was cancelled"),
        "{text}"
    );
}

#[test]
fn an_agent_without_a_login_is_not_asked_to_refuse_one() {
    let test = AgentTest::new(|| Careless).only(["authentication.unknown-method"]);
    let report = test.run().unwrap();
    let text = report::text(&report).unwrap();
    assert_eq!(report.with(Outcome::Skip).count(), 1, "{text}");
}

#[test]
fn a_test_that_decides_nothing_fails() {
    let said = panics(AgentTest::new(|| Careless).only(["plan"]));
    assert!(said.starts_with("nothing was decided"), "{said}");
}

#[test]
fn a_test_is_strict_when_it_says_so() {
    let agent = || AgentTest::new(|| Careless).only(["initialization.answer"]);
    let client = || ClientTest::new(sound).only(["client.info"]);
    assert!(!agent().run().unwrap().strict && agent().strict().run().unwrap().strict);
    assert!(!client().run().unwrap().strict && client().strict().run().unwrap().strict);
}

#[cfg(unix)]
#[test]
fn a_program_that_is_not_the_suite_plays_no_agent() {
    let said = panics(ClientTest::command(["acp", "{agent}"]).suite("/bin/sh"));
    assert!(said.contains("cannot use /bin/sh"), "{said}");
    assert!(said.contains("it is not acp-conformance"), "{said}");
}

#[test]
fn what_cannot_be_run_says_so() {
    let said = panics(AgentTest::command(["/no/such/agent"]).only(["plan"]));
    assert!(said.contains("cannot start /no/such/agent"), "{said}");
    let said = panics(AgentTest::new(|| Careless).only(["plans"]));
    assert!(said.contains("is called plans"), "{said}");
    let said = panics(ClientTest::command(["acp", "{agent}"]).suite("/no/such/suite"));
    assert!(said.contains("cannot use /no/such/suite"), "{said}");
}

/// A client that does what clients should.
async fn sound(agent: Launched) -> acp_client::Result<()> {
    let client = Client::builder()
        .workspace(Workspace::new())
        .permissions(Policy::ApproveAll)
        .connect((agent.reader, agent.writer))
        .await?;
    let session = client.new_session(&agent.folder).await?;
    let mut turn = session.prompt(agent.prompt).await?;
    loop {
        tokio::select! {
            event = turn.next() => if event.is_none() { break },
            () = agent.interrupt.requested() => turn.cancel(),
        }
    }
    turn.outcome().await?;
    client.shutdown().await;
    Ok(())
}

/// What the client has no chance to do: it declares terminals, decides at once, and lists no sessions.
const NOT_DONE: [&str; 5] = [
    "client.refuses-undeclared-terminals",
    "client.cancels-pending-permission",
    "client.cancelled-request",
    "client.opaque-cursors",
    "client.end-of-pages",
];

#[test]
fn a_client_within_this_process_passes() {
    let report = ClientTest::new(sound).strict().run().unwrap();
    let text = report::text(&report).unwrap();
    assert!(report.conformant, "{text}");
    assert_eq!(report.with(Outcome::Fail).count(), 0, "{text}");
    assert_eq!(report.with(Outcome::Inconclusive).count(), 0, "{text}");
    let skipped = report.with(Outcome::Skip).map(|row| row.id.as_str());
    assert_eq!(skipped.collect::<Vec<_>>(), NOT_DONE, "{text}");
    assert_eq!(report.requirements.len(), clients::of(Version::V1).count());
}

#[test]
fn a_client_that_never_speaks_panics_with_the_report() {
    let silent = |agent: Launched| async move {
        drop(agent);
        Err::<(), _>("no agent for me")
    };
    let said = panics(ClientTest::new(silent).only(["hello"]));
    assert!(
        said.contains("expected a call of initialize, got none; it says: no agent for me"),
        "{said}"
    );
    assert!(
        said.contains("again this test with .only([\"client."),
        "{said}"
    );
}

#[test]
fn a_client_that_panics_or_hangs_is_no_end_of_the_test() {
    let panics_itself = |_: Launched| async {
        if true {
            panic!("oh no")
        }
        Ok::<(), String>(())
    };
    let said = panics(ClientTest::new(panics_itself).only(["hello"]));
    assert!(said.contains("it says: the client panicked"), "{said}");
    let hangs = |agent: Launched| async move {
        let _agent = agent;
        std::future::pending::<Result<(), String>>().await
    };
    let test = ClientTest::new(hangs).timeout(Duration::from_millis(100));
    let said = panics(test.only(["hello"]));
    assert!(said.contains("not conformant: "), "{said}");
}

#[test]
fn a_pass_says_how_much_was_not_exercised() {
    let test = AgentTest::new(|| Careless).only(["session-setup.session-id", "modes.set"]);
    let report = test.run().unwrap();
    let line = not_exercised(&report).unwrap();
    assert!(
        line.contains("1 of 2 requirements were not exercised"),
        "{line}"
    );
    let test = AgentTest::new(|| Careless).only(["session-setup.session-id"]);
    assert_eq!(not_exercised(&test.run().unwrap()), None);
}

#[test]
fn a_failure_prints_the_failures_and_one_line_of_counts() {
    let said = panics(AgentTest::new(|| Careless).only(["session-setup", "plan"]));
    assert!(said.contains("\nFAIL session-setup.unique-id"), "{said}");
    assert!(
        !said.contains("passed of run") && !said.contains("Inconclusive"),
        "{said}"
    );
    let last = said.lines().last().unwrap();
    assert!(
        last.starts_with("not conformant: ") && last.contains(" inconclusive"),
        "{last}"
    );
}
