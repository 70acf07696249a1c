//! Files of servers that run, and of those that were killed.

use super::*;

fn announcement(port: u16) -> Announcement {
    Announcement {
        prefix: "acp-server".to_owned(),
        started_at: 1e9,
        auth_token_hash: None,
        pid: std::process::id(),
        port,
        host: "127.0.0.1".to_owned(),
        scheme: "http".to_owned(),
        auth: "generated".to_owned(),
        ends_within: 8,
    }
}

#[test]
fn a_file_is_alive_until_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let discovery = Discovery::new(folder.path().join("run"));
    assert!(discovery.list().unwrap().is_empty());
    let mut announced = discovery.take(5173).unwrap();
    announced.announce(&announcement(5173)).unwrap();
    let token = announced.keep_token("very secret").unwrap();
    assert_eq!(fs::read_to_string(&token).unwrap(), "very secret\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&token).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    let found = discovery.list().unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].alive && found[0].is_alive());
    let text = fs::read_to_string(&found[0].path).unwrap();
    assert!(!text.contains("secret"), "{text}");
    found[0].remove_if_stale();
    let error = discovery.take(5173).unwrap_err().to_string();
    assert!(error.contains("5173") && error.contains(&std::process::id().to_string()));

    drop(announced);
    assert!(discovery.find(5173).is_none() && !token.exists());
    discovery.take(5173).unwrap();
}

#[test]
fn a_stale_file_is_taken_over_and_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let discovery = Discovery::new(folder.path());
    let path = folder.path().join("acp-server-80.json");
    fs::write(&path, "x".repeat(1000)).unwrap();
    fs::write(folder.path().join("acp-server-x.json"), "").unwrap();
    let stale = discovery.find(80).unwrap();
    assert!(!stale.alive && stale.announcement.is_none());

    let mut announced = discovery.take(80).unwrap();
    announced.announce(&announcement(80)).unwrap();
    let found = discovery.list().unwrap().pop().unwrap();
    assert_eq!(found.announcement.unwrap().port, 80);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600, "the stale file was readable for others");
        assert_eq!(mode(folder.path()), 0o700);
    }
}

#[test]
fn a_stale_file_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let discovery = Discovery::new(folder.path());
    fs::write(folder.path().join("acp-server-1.json"), "").unwrap();
    let token = folder.path().join("acp-server-1.token");
    fs::write(&token, "of a killed server").unwrap();
    discovery.find(1).unwrap().remove_if_stale();
    assert!(discovery.find(1).is_none() && !token.exists());
    fs::write(&token, "of a killed server").unwrap();
    let _announced = discovery.take(1).unwrap();
    assert!(!token.exists());
}
