//! `--agent-user`: what an agent that runs as another user can reach.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::serve::{TOKEN, User, text, token_file};

/// Any other user that every machine has.
const OTHER: &str = "nobody";

/// Says which secrets can be read, who the agent is, and what it inherits.
const LOOK: &str = r#"
for file in "$TOKEN_FILE" "$DISCOVERY.token" "$DISCOVERY.json" /proc/$PPID/environ; do
    grep -qs . "$file" && found="$found $(basename "$file")"
done
ls "$(dirname "$DISCOVERY")" >/dev/null 2>&1 && found="$found folder"
grep -q acp-server /proc/$PPID/cmdline || found="$found no-parent"
echo "found:${found:- nothing}. user $(id -un) groups $(id -G)." >&2
echo "home $HOME as $USER $LOGNAME run ${XDG_RUNTIME_DIR:-none}." >&2
grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | tr -d '\n\t' >&2
exit 4
"#;

/// Returns whether this test can start processes as another user.
fn is_root(user: &User) -> bool {
    let is_root = user.0.path().metadata().unwrap().uid() == 0;
    if !is_root {
        eprintln!("not tested: only root starts processes as another user");
    }
    is_root
}

#[test]
fn an_agent_of_another_user_reads_no_token() {
    let user = User::new();
    if !is_root(&user) {
        return;
    }
    // So that nothing but the files' own modes protects them.
    fs::set_permissions(user.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let token = token_file(&user);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let server = user.serve(&[]);
    let discovery = user.file(server.port).with_extension("");
    let look = |args: &[&str]| {
        let mut command = user.command(args);
        command.args(["--", "sh", "-c", LOOK]);
        command
            .env("TOKEN_FILE", &token)
            .env("DISCOVERY", &discovery);
        command.env("ACP_SERVER_TOKEN", TOKEN);
        let output = command.output().unwrap();
        text(&output.stderr)
    };
    let port = ["--port", "0", "--store", "memory"];
    for serve in [vec!["host"], [&["serve"][..], &port].concat()] {
        // As root it finds everything, so the test can fail.
        let said = look(&serve);
        let name = discovery.file_name().unwrap().to_str().unwrap();
        let found = format!("found: token {name}.token {name}.json environ folder. user root");
        assert!(said.contains(&found), "{said}");
        let said = look(&[&serve[..], &["--agent-user", OTHER]].concat());
        let expected = format!("found: nothing. user {OTHER} groups ");
        assert!(said.contains(&expected), "{said}");
        let groups = said.split("groups ").nth(1).unwrap();
        let groups = groups.split('.').next().unwrap();
        assert!(groups.split(' ').all(|group| group != "0"), "{said}");
        let inherits = format!("as {OTHER} {OTHER} run none.");
        assert!(said.contains(&inherits), "{said}");
        assert!(
            !said.contains(&format!("home {}", user.0.path().display())),
            "{said}"
        );
        let capabilities = said.split("CapInh:").nth(1).unwrap();
        let digits = capabilities.lines().next().unwrap();
        let is_none = digits
            .chars()
            .filter(char::is_ascii_digit)
            .all(|digit| digit == '0');
        assert!(is_none, "{said}");
    }
}

#[test]
fn an_agent_of_another_user_serves_sessions() {
    let user = User::new();
    if !is_root(&user) {
        return;
    }
    // Where another user reaches it.
    fs::set_permissions(user.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = user.0.path().join("agent");
    fs::copy(env!("CARGO_BIN_EXE_acp-server"), &program).unwrap();
    let agent = [program.to_str().unwrap(), "--store", "memory"];
    let args = ["--agent-user", OTHER, "--"];
    let server = user.serve(&[&args[..], &agent].concat());
    let token = user.token(&server);
    let body = r#"{"prompt":"hello","cwd":"/"}"#;
    let begun = server.post("/sessions", &token, body);
    assert_eq!(begun.status, 201, "{begun:?}");
}

#[test]
fn what_cannot_be_is_wrong_usage() {
    let user = User::new();
    for (args, reason) in [
        (
            &["--agent-user", "no-such-user", "--", "sh"][..],
            "has no user \"no-such-user\"",
        ),
        (
            &["--agent-user", OTHER],
            "--agent-user is for the command of an agent",
        ),
        (
            &["--agent-user", OTHER, "--sandbox", "--", "sh"],
            "cannot be used with",
        ),
        (
            &[
                "--agent-user",
                OTHER,
                "--local-tools",
                "fallback",
                "--",
                "sh",
            ],
            "does not go with --local-tools",
        ),
    ] {
        let (code, said) = user.fails(&[&["host"], args].concat());
        assert!(code == 2 && said.contains(reason), "{args:?}: {said}");
    }
    // Without a program that changes the user.
    let mut command = user.command(&["host", "--agent-user", OTHER, "--", "sh"]);
    let output = command.env("PATH", "/nonexistent").output().unwrap();
    let said = text(&output.stderr);
    assert!(
        said.contains("cannot start processes as nobody") && said.contains("CAP_SETUID"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(2));
}
