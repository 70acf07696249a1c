//! Agents and clients of version 2 in Rust, tested as their authors would: the examples of the
//! SDK, which pass, and what is wrong with them in words, which does not.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use acp_conformance::report::{self, Conformity, Outcome};
use acp_conformance::testing::Test;
use acp_conformance::wire::Version;
use acp_conformance::{AgentTest, ClientTest, Launched, assert_conformant};
use acp_sdk::{HandlerResult, IntoAgent, v2};

#[path = "../../../sdk/examples/agent-v2.rs"]
#[allow(dead_code, reason = "the example's entry is not called")]
mod agent;
#[path = "../../../sdk/examples/client-v2.rs"]
#[allow(dead_code, reason = "the example's entry is not called")]
mod client;
mod typed;

/// What the test panics with.
fn panics(test: impl Test) -> String {
    let said = catch_unwind(AssertUnwindSafe(|| assert_conformant(test)));
    *said.unwrap_err().downcast::<String>().unwrap()
}

/// The agent of the example in its words.
fn example<V, A>(make: fn() -> A) -> AgentTest
where
    A: IntoAgent<V> + Send,
    A::Client: Send,
{
    AgentTest::new(make)
        .prompt("hello", "one two three")
        .prompt("slow", "one wait")
        .prompt("permission", "ask two")
}

#[test]
fn an_agent_of_version_2_is_tested_in_this_process() {
    let report = example(agent::agent).protocol(Version::V2).run().unwrap();
    let text = report::text(&report).unwrap();
    assert_eq!(report.verdict, Conformity::Conformant, "{text}");
    // A small example: it lists all sessions on one page, whatever the cursor, and its errors have no data.
    let failed = report.with(Outcome::Fail).map(|entry| entry.id.as_str());
    assert_eq!(
        failed.collect::<Vec<_>>(),
        ["session-load.unknown-names-it", "session-list.bad-cursor"],
        "{text}"
    );
    // What every agent is asked, whatever it declares or does.
    let every = [
        "transports",
        "jsonrpc",
        "initialization",
        "session-list",
        "prompt-turn",
        "prompt-lifecycle",
        "extensibility",
    ];
    for (area, entries) in report.areas() {
        let open = [Outcome::Skip, Outcome::Inconclusive, Outcome::Blocked];
        // It has no work in the background, and sends no `_meta`.
        let absent = [".background-", ".trace-context"];
        let is_absent = |id: &str| absent.iter().any(|part| id.contains(part));
        let mut open = entries
            .iter()
            .filter(|row| open.contains(&row.verdict) && !is_absent(&row.id));
        let open = open.find(|_| every.contains(&area));
        assert!(open.is_none(), "{open:?}: {text}");
    }
    assert!(
        every
            .iter()
            .all(|name| report.areas().iter().any(|(area, _)| area == name))
    );
}

/// The reference agent of the server, with one of its words as the tool call.
fn server(tool: &str) -> AgentTest {
    let agent = || acp_reference_agent::reference_agent().every_version();
    let words = [
        ("hello", "Hello, agent"),
        ("slow", "slow"),
        ("plan", "plan"),
        ("form", "elicit form"),
        ("url", "elicit url"),
        ("tool", tool),
    ];
    let test = AgentTest::new(agent).protocol(Version::V2).strict();
    words
        .into_iter()
        .fold(test, |test, (word, text)| test.prompt(word, text))
}

/// What needs a login, another process of the agent, or something that none of its words does.
const NOT_SHOWN: [&str; 13] = [
    "authentication.authenticate",
    "authentication.logout",
    "authentication.opens-sessions",
    "plan.same-plan",
    "prompt-lifecycle.background-always",
    "prompt-lifecycle.background-announced",
    "prompt-lifecycle.background-ended",
    "session-load.survives-restart",
    "session-setup.inside-roots",
    "session-setup.working-directory",
    "tool-calls.absolute-cwd",
    "tool-calls.output-after-exit",
    "tool-calls.terminal-bytes",
];

#[test]
fn the_server_passes_in_version_2() {
    // Its words show a tool call, a permission and commands one at a time.
    let (mut passed, mut checked) = (BTreeSet::new(), BTreeSet::new());
    for tool in ["tool", "permission", "commands"] {
        let report = server(tool).run().unwrap();
        let text = report::text(&report).unwrap();
        assert_eq!(report.with(Outcome::Fail).count(), 0, "{tool}: {text}");
        passed.extend(report.with(Outcome::Pass).map(|entry| entry.id.clone()));
        let all = report.requirements.iter();
        let all = all.filter(|entry| entry.verdict != Outcome::Excluded);
        checked.extend(all.map(|entry| entry.id.clone()));
    }
    let rest: Vec<_> = checked.difference(&passed).collect();
    assert_eq!(rest, NOT_SHOWN);
}

#[test]
fn an_agent_of_both_versions_is_tested_in_the_one_that_is_asked_for() {
    // It starts no MCP servers.
    assert_conformant(example(agent::agent).skip(["session-load", "session-setup.mcp-stdio"]));
    let only = example(agent::agent).only(["initialization"]);
    let report = only.protocol(Version::V2).run().unwrap();
    assert_eq!(report.protocol, 2);
}

/// Opens sessions, always the same, and takes no prompt.
struct Careless;

impl v2::Agent for Careless {
    async fn initialize(
        &self,
        _: &v2::AgentContext,
        _: v2::InitializeRequest,
    ) -> HandlerResult<v2::InitializeResponse> {
        let info = v2::Implementation::new("careless", "1");
        Ok(v2::InitializeResponse::new(v2::ProtocolVersion::V2, info))
    }

    async fn new_session(
        &self,
        _: &v2::AgentContext,
        _: v2::NewSessionRequest,
    ) -> HandlerResult<v2::NewSessionResponse> {
        Ok(v2::NewSessionResponse::new("always the same"))
    }

    async fn prompt(
        &self,
        _: &v2::AgentContext,
        _: v2::PromptRequest,
    ) -> HandlerResult<v2::PromptResponse> {
        Err("not today".into())
    }

    async fn cancel_session(
        &self,
        _: &v2::AgentContext,
        _: v2::CancelSessionNotification,
    ) -> HandlerResult<()> {
        Ok(())
    }
}

#[test]
fn a_broken_agent_of_version_2_panics_with_the_report() {
    let test = AgentTest::new(|| Careless).protocol(Version::V2);
    let test = test.only(["session-setup"]);
    let said = panics(test);
    assert!(said.contains("FAIL session-setup."), "{said}");
    assert!(
        said.contains("https://agentclientprotocol.com/protocol/v2/"),
        "{said}"
    );
}

async fn talk(agent: Launched) -> client::Result<()> {
    let user = client::User::new(io::sink());
    let Launched {
        reader,
        writer,
        folder,
        prompt,
        interrupt,
        ..
    } = agent;
    let words = (folder.to_string_lossy(), prompt);
    let talk = client::talk(
        user,
        (reader, writer),
        (&words.0, &words.1),
        interrupt.requested(),
    );
    talk.await.map(drop)
}

#[test]
fn a_client_of_version_2_is_tested_in_this_process() {
    let test = ClientTest::new(talk).protocol(Version::V2).strict();
    let report = test.run().unwrap();
    let text = report::text(&report).unwrap();
    assert!(report.conformant, "{text}");
    for word in [Outcome::Fail, Outcome::Inconclusive] {
        assert_eq!(report.with(word).count(), 0, "{text}");
    }
    // It decides at once, so that neither side can cancel the question before.
    let skipped = report.with(Outcome::Skip).map(|row| row.id.as_str());
    let early = [
        "client.cancels-pending-permission",
        "client.cancelled-request",
    ];
    assert!(skipped.eq(early), "{text}");
    let rows = acp_conformance::clients::of(Version::V2).count();
    assert_eq!(report.requirements.len(), rows);
}

#[test]
fn a_broken_client_of_version_2_panics_with_the_report() {
    let ends = |agent: Launched| async move {
        drop(agent);
        Err::<(), _>("no agent for me")
    };
    let test = ClientTest::new(ends)
        .protocol(Version::V2)
        .only(["v2-hello"]);
    let said = panics(test);
    assert!(said.contains("it says: no agent for me"), "{said}");
}
