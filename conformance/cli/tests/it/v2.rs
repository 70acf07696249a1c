//! A test in Rust of an agent of version 2 that is a command.

use std::time::Duration;

use acp_conformance::wire::Version;
use acp_conformance::{AgentTest, assert_conformant};

/// An agent, tested in v2 as a library would from a test of its own.
fn tested(command: &[&str]) -> AgentTest {
    AgentTest::command(command)
        .protocol(Version::V2)
        .turn_timeout(Duration::from_secs(10))
        .only(["initialization.same-version"])
}

#[test]
fn a_test_in_rust_asks_for_the_version_that_is_set() {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    assert_conformant(tested(&[program, "reference-agent", "--protocol", "2"]));
    // Answers `initialize`, whose id is 0, in v1 whatever is asked for.
    let agent = r#"read line
        echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
        cat >/dev/null"#;
    let failed = std::panic::catch_unwind(|| assert_conformant(tested(&["sh", "-c", agent])));
    let said = failed.expect_err("an agent of v1 is none of v2");
    let said = said.downcast_ref::<String>().unwrap();
    let says = "the agent speaks version 1, not 2";
    assert!(said.contains(says), "{said}");
}
