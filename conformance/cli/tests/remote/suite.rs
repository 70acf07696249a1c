//! The suite over both transports: nothing weaker than on standard input and output.

use serde_json::Value;
use tokio::process::Command;

use crate::host::{Host, SCHEMES, within};

async fn report(args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    command.env_remove("ACP_TOKEN").kill_on_drop(true);
    command
        .args(["agent", "--strict", "--json", "-"])
        .args(args);
    let output = within(command.output()).await.unwrap();
    let code = output.status.code();
    assert_eq!(code, Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn verdicts(report: &Value) -> impl Iterator<Item = (&str, &str)> {
    let rows = report["requirements"].as_array().unwrap();
    rows.iter().map(|row| {
        (
            row["id"].as_str().unwrap(),
            row["verdict"].as_str().unwrap(),
        )
    })
}

#[tokio::test]
async fn all_that_passes_locally_passes_at_a_url() {
    let host = Host::start().await;
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/harness/reference.toml");
    let local = report(&[]).await;
    for scheme in SCHEMES {
        let url = host.url(scheme);
        let remote = report(&["--url", &url, "--profile", profile]).await;
        let mut about_stdio = Vec::new();
        for ((id, verdict), (other, expected)) in verdicts(&remote).zip(verdicts(&local)) {
            assert_eq!(id, other);
            match verdict == expected {
                true => {}
                false if verdict == "excluded" => about_stdio.push(id),
                false => panic!("{id} over {scheme}: {verdict}, not {expected}"),
            }
        }
        assert_eq!(
            about_stdio,
            [
                "transports.split-writes",
                "transports.joined-writes",
                "transports.large-message",
                "transports.blank-lines",
                "transports.crlf",
                "transports.ends-with-its-input",
            ]
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_is_no_subject() {
    let host = Host::start().await;
    let url = host.url("ws").replace("/acp", "/other");
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    command.args(["agent", "--url", &url]).kill_on_drop(true);
    let output = within(command.output()).await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("404"), "{stderr}");
}
