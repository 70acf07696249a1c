//! `acp agents install`.

use std::path::PathBuf;
use std::process::Output;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fake::{Server, within};

/// An agent that answers one prompt.
const AGENT: &str = r#"#!/bin/sh
answer() { IFS= read -r line; id=${line#*'"id":'}; printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "${id%%[,\}]*}" "$1"; }
answer '{"protocolVersion":1}'; answer '{"sessionId":"s"}'
IFS= read -r line; id=${line#*'"id":'}
printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1 $K"
printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "${id%%[,\}]*}"; read -r line
"#;

fn archive() -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(AGENT.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "dist/agent", AGENT.as_bytes())
        .unwrap();
    tar.into_inner().unwrap().finish().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

struct Home {
    dir: tempfile::TempDir,
    server: Server,
}

impl Home {
    async fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            server: Server::start().await,
        }
    }

    /// Describes the agent `an-agent` in the registry.
    fn describe(&self, version: &str, members: Value) {
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        let mut binary = json!({"cmd": "./dist/agent", "args": ["I am"], "env": {"K": version},
            "archive": format!("http://127.0.0.1:{}/a.tar.gz", self.server.port)});
        let members = members.as_object().unwrap().clone();
        binary.as_object_mut().unwrap().extend(members);
        let platform = format!("{system}-{}", std::env::consts::ARCH);
        let entry = json!({"id": "an-agent", "version": version, "distribution": {"binary": {platform: binary}}});
        let folder = self.dir.path().join("acp/registry/an-agent");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("agent.json"), entry.to_string()).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = super::acp();
        command
            .args(args)
            .env("NO_PROXY", "*")
            .env_remove("ACP_REGISTRY")
            .env("HOME", self.dir.path())
            .env("XDG_DATA_HOME", self.dir.path())
            .env("XDG_CONFIG_HOME", self.dir.path());
        command
    }

    async fn acp(&self, args: &[&str]) -> Output {
        within(self.command(args).output()).await.unwrap()
    }

    /// Installs the agent from a server with this response.
    async fn install(&mut self, headers: &str, body: &[u8]) -> (Option<i32>, String) {
        let install = self.command(&["agents", "install", "an-agent"]);
        self.download(install, headers, body).await
    }

    async fn download(
        &mut self,
        mut install: Command,
        headers: &str,
        body: &[u8],
    ) -> (Option<i32>, String) {
        let running = install.spawn().unwrap();
        self.server
            .next("GET")
            .await
            .respond_bytes(headers, body)
            .await;
        let output = within(running.wait_with_output()).await.unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    /// Returns the contents of the agent's folder, except the lock.
    fn installed(&self) -> Vec<PathBuf> {
        let folder = self.dir.path().join("acp/agents/an-agent");
        let listed = folder.read_dir().into_iter().flatten().flatten();
        let names = listed.map(|entry| PathBuf::from(entry.file_name()));
        names.filter(|name| name.as_os_str() != ".lock").collect()
    }
}

fn length(body: &[u8]) -> String {
    format!("Content-Length: {}\r\n", body.len())
}

#[tokio::test]
async fn an_agent_is_installed_and_run() {
    let mut home = Home::new().await;
    let body = archive();
    home.describe("1.0.0", json!({"sha256": sha256(&body)}));
    let output = home.acp(&["run", "--deny-all", "an-agent", "hi"]).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("`acp agents install an-agent` installs it"),
        "{stderr}"
    );
    let (code, stderr) = home.install(&length(&body), &body).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("installed an-agent 1.0.0"), "{stderr}");
    let output = home.acp(&["run", "--deny-all", "an-agent", "hi"]).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "I am 1.0.0\n",
        "{stderr}"
    );
    for (path, expected) in [
        ("agents", 0o700),
        ("agents/an-agent", 0o700),
        ("agents/an-agent/.lock", 0o600),
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = home.dir.path().join("acp").join(path).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, expected, "{path}");
    }
    // It is already installed.
    let output = home.acp(&["agents", "install", "an-agent"]).await;
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("installed already")
    );
    // A newer version replaces it; the file may have been downloaded manually.
    home.describe("1.1.0", json!({}));
    let output = home.acp(&["agents", "install", "an-agent"]).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("no checksum") && stderr.contains("--allow-unverified"),
        "{stderr}"
    );
    assert_eq!(home.installed(), [PathBuf::from("1.0.0")]);
    let list = ["agents", "--all", "--format", "json"];
    let row: Value = serde_json::from_slice(&home.acp(&list).await.stdout).unwrap();
    assert_eq!(
        (&row["version"], &row["installed"]),
        (&json!("1.1.0"), &json!("1.0.0"))
    );
    let output = home.acp(&["agents", "an-agent"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("1.0.0 (new: 1.1.0)  found"), "{text}");
    let output = home.acp(&["run", "--deny-all", "an-agent", "hi"]).await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "I am 1.0.0\n");
    let file = home.dir.path().join("by-hand.tgz");
    std::fs::write(&file, &body).unwrap();
    let output = home
        .acp(&[
            "agents",
            "install",
            "an-agent",
            "--allow-unverified",
            "--archive",
            file.to_str().unwrap(),
        ])
        .await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(home.installed(), [PathBuf::from("1.1.0")]);
    let output = home.acp(&["run", "--deny-all", "an-agent", "hi"]).await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "I am 1.1.0\n");
    let again = home.command(&[
        "agents",
        "install",
        "--again",
        "--allow-unverified",
        "an-agent",
    ]);
    let (code, stderr) = home.download(again, &length(&body), &body).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(home.installed(), [PathBuf::from("1.1.0")]);
}

#[tokio::test]
async fn what_is_wrong_with_a_download_leaves_nothing_behind() {
    let mut home = Home::new().await;
    let body = archive();
    let mut evil = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    evil.append_link(&mut header, "dist", "/tmp").unwrap();
    let evil = evil.into_inner().unwrap().finish().unwrap();
    let huge = "Content-Length: 2000000000\r\n";
    for (version, members, headers, body, reason) in [
        (
            "1.0.0",
            json!({"sha256": sha256(b"another")}),
            length(&body),
            &body[..],
            "expected the SHA-256",
        ),
        (
            "1.0.0",
            json!({}),
            length(&body),
            &body[..body.len() / 2],
            "cannot download http://127.0.0.1",
        ),
        (
            "1.0.0",
            json!({}),
            String::new(),
            &body[..body.len() / 2],
            "the archive is broken",
        ),
        (
            "1.0.0",
            json!({}),
            huge.to_owned(),
            b"",
            "it has more than 1073741824 bytes",
        ),
        (
            "1.0.0",
            json!({}),
            length(&evil),
            &evil,
            "is a link or a special file",
        ),
        (
            "1.0.0",
            json!({"cmd": "./other"}),
            length(&body),
            &body,
            "\"./other\" is not in the archive",
        ),
        (
            "1.0.0",
            json!({"cmd": "../../../sh"}),
            length(&body),
            &body,
            "leads out of the folder",
        ),
    ] {
        home.describe(version, members);
        let install = home.command(&["agents", "install", "--allow-unverified", "an-agent"]);
        let (code, stderr) = home.download(install, &headers, body).await;
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}, not {reason}");
        assert!(
            stderr.contains("cannot install an-agent 1.0.0: "),
            "{stderr}"
        );
        assert!(home.installed().is_empty(), "{reason}");
    }
    for (version, members, reason) in [
        ("../1", json!({}), "cannot be the name of a folder"),
        (
            "1.0.0",
            json!({"archive": "http://example.com/a.tar.gz"}),
            "it is not an https URL",
        ),
    ] {
        home.describe(version, members);
        let output = home
            .acp(&["agents", "install", "--allow-unverified", "an-agent"])
            .await;
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(reason), "{stderr}");
        assert!(home.installed().is_empty(), "{reason}");
    }
    let output = home.acp(&["agents", "install", "nobody"]).await;
    assert_eq!(output.status.code(), Some(2));
}

#[tokio::test]
async fn an_older_version_replaces_no_newer_one() {
    let mut home = Home::new().await;
    let body = archive();
    let members = json!({"sha256": sha256(&body)});
    let folder = "1.10.0";
    home.describe(folder, members.clone());
    let (code, stderr) = home.install(&length(&body), &body).await;
    assert_eq!(code, Some(0), "{stderr}");
    for (older, reason) in [
        ("1.9.0", "the newer version 1.10.0 is installed"),
        ("v1.9.9", "the newer version 1.10.0 is installed"),
        ("1.10.0-beta.1", "the newer version 1.10.0 is installed"),
        ("2026-11", "which one is newer is unknown"),
    ] {
        home.describe(older, members.clone());
        let output = home.acp(&["agents", "install", "an-agent"]).await;
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains(reason) && stderr.contains("--allow-downgrade"),
            "{stderr}, not {reason}"
        );
        assert_eq!(home.installed(), [PathBuf::from(folder)]);
    }
    home.describe("1.9.0", members.clone());
    let install = home.command(&["agents", "install", "--allow-downgrade", "an-agent"]);
    let (code, stderr) = home.download(install, &length(&body), &body).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(home.installed(), [PathBuf::from("1.9.0")]);
    // Metadata of a build has no order.
    for newer in ["1.9.0+build", "2.0.0"] {
        home.describe(newer, members.clone());
        let (code, stderr) = home.install(&length(&body), &body).await;
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(home.installed(), [PathBuf::from(newer)]);
    }
}

#[tokio::test]
async fn an_installation_that_is_interrupted_is_removed_by_the_next() {
    let mut home = Home::new().await;
    let body = archive();
    home.describe("1.0.0", json!({"sha256": sha256(&body)}));
    let mut running = home
        .command(&["agents", "install", "an-agent"])
        .spawn()
        .unwrap();
    let request = home.server.next("GET").await;
    let output = home.acp(&["agents", "install", "an-agent"]).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("another acp is installing it"), "{stderr}");
    running.kill().await.unwrap();
    drop(request);
    assert_eq!(home.installed().len(), 1);
    let (code, stderr) = home.install(&length(&body), &body).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(home.installed(), [PathBuf::from("1.0.0")]);
}
