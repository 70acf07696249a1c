//! `acp agents update`.

use std::process::Output;

use serde_json::json;

use crate::fake::{Server, within};

async fn update(url: String, folder: std::path::PathBuf) -> Output {
    let mut command = super::acp();
    command.args(["agents", "update", &url]);
    command.env("ACP_REGISTRY", folder).env("NO_PROXY", "*");
    within(command.output()).await.unwrap()
}

#[tokio::test]
async fn entries_are_kept_by_id() {
    let mut server = Server::start().await;
    let url = format!("http://127.0.0.1:{}/registry.json", server.port);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("registry");
    let running = tokio::spawn(update(url.clone(), folder.clone()));
    let good =
        json!({"id": "good", "version": "1.0.0", "distribution": {"uvx": {"package": "good"}}});
    let index = json!({"version": "1.0.0", "agents": [good, {"id": "../evil"}, 3]});
    server
        .next("GET")
        .await
        .respond("200 OK", "", &index.to_string())
        .await;
    let output = running.await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("kept 1 entries") && stderr.contains("skipped 2"),
        "{stderr}"
    );
    let kept = std::fs::read_to_string(folder.join("good/agent.json")).unwrap();
    assert_eq!(kept, good.to_string());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    for (path, expected) in [("", 0o700), ("good", 0o700), ("good/agent.json", 0o600)] {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = folder.join(path).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, expected, "{path}");
    }
    // A failed download leaves the entries unchanged.
    let running = tokio::spawn(update(url, folder.clone()));
    server
        .next("GET")
        .await
        .respond("404 Not Found", "", "")
        .await;
    let output = running.await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("404"));
    assert!(folder.join("good/agent.json").exists());
}
