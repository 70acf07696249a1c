//! Directories in which a command runs, and its environment.

use super::*;

async fn denied(input: &Value) -> &'static str {
    let deny = Rule::deny().path("secrets/**").unwrap();
    let run = question(Some(ToolKind::Execute), &[], input);
    decided(&rules([deny, Rule::allow()]), &run).await.0
}

#[tokio::test]
async fn words_are_relative_to_each_directory_that_the_command_may_be_in() {
    for line in [
        "cd secrets && cat key",
        "cd ./secrets; cat key",
        "cd a && cd ../secrets && cat key",
        "pushd secrets; cat key",
        "(cd -P secrets; cat key)",
        "cd /home/me && cat project/secrets/key",
        "cd /; cat home/me/project/secrets/key",
        "git -C secrets show key",
        "git -Csecrets show key",
        "tar --directory=secrets -cf - key",
        "tar --directory secrets -cf - key",
        "env --chdir=secrets cat key",
        "bash -c 'cd secrets && cat key'",
        "if true; then cd secrets; cat key; fi",
        "CD secrets; cat key",
    ] {
        assert_eq!(denied(&json!({ "command": line })).await, "deny", "{line}");
    }
    for line in [
        "cd - && cat key",
        "cd; cat key",
        "popd; cat key",
        "cd \"$X\"; cat key",
    ] {
        assert_eq!(denied(&json!({ "command": line })).await, "ask", "{line}");
    }
    let many: String = (0..100).map(|n| format!("cd d{n}; ")).collect();
    assert_eq!(denied(&json!({ "command": many + "cat key" })).await, "ask");
    for line in ["cd src && cat key", "cat key", "git -C src show x"] {
        assert_eq!(denied(&json!({ "command": line })).await, "allow", "{line}");
    }
    for directory in ["secrets", "/home/me/project/secrets", "a/../secrets"] {
        for member in ["cwd", "workdir", "working_directory"] {
            let input = json!({ "command": "cat key", member: directory });
            assert_eq!(denied(&input).await, "deny", "{input}");
            let input = json!({ "command": ["cat", "key"], member: directory });
            assert_eq!(denied(&input).await, "deny", "{input}");
        }
    }
    for directory in [
        json!("~"),
        json!("$X"),
        json!(1),
        json!({ "in": "secrets" }),
    ] {
        let input = json!({ "command": "cat key", "cwd": directory });
        assert_eq!(denied(&input).await, "ask", "{input}");
    }
}

#[tokio::test]
async fn paths_of_the_input_are_relative_to_its_directory_too() {
    let input = json!({ "cwd": "secrets", "path": "key" });
    let read = question(Some(ToolKind::Read), &[], &input);
    let deny = Rule::deny().path("secrets/**").unwrap();
    let denying = rules([deny, Rule::allow()]);
    assert_eq!(decided(&denying, &read).await.0, "deny");
    let allowing = rules([Rule::allow().path("src/**").unwrap()]);
    for cwd in ["/etc", "..", "~"] {
        let input = json!({ "cwd": cwd, "path": "src/a" });
        let read = question(Some(ToolKind::Read), &[], &input);
        assert_eq!(decided(&allowing, &read).await.0, "ask", "{cwd}");
    }
}

#[tokio::test]
async fn a_directory_is_where_its_links_lead() {
    let dir = tempfile::tempdir().unwrap();
    let (project, outside) = (dir.path().join("project"), dir.path().join("outside"));
    std::fs::create_dir_all(project.join("sub")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, project.join("link")).unwrap();
    let rules = rules([Rule::allow().command("git status").unwrap()]);
    for (cwd, expected) in [
        ("sub", "allow"),
        ("new", "allow"),
        ("link", "ask"),
        ("link/new", "ask"),
        ("link/..", "ask"),
    ] {
        let input = json!({ "command": "git status", "workdir": cwd });
        let mut run = question(Some(ToolKind::Execute), &[], &input);
        run.cwd = Some(project.clone());
        assert_eq!(decided(&rules, &run).await.0, expected, "{cwd}");
    }
}

#[tokio::test]
async fn a_directory_that_is_no_text_is_elsewhere() {
    let rules = rules([Rule::allow().command("git status").unwrap()]);
    for (cwd, expected) in [
        (json!(null), "allow"),
        (json!("sub"), "allow"),
        (json!(1), "ask"),
        (json!({ "path": "sub" }), "ask"),
        (json!(["sub", "/tmp"]), "ask"),
    ] {
        let input = json!({ "command": "git", "args": ["status"], "cwd": cwd });
        let run = question(Some(ToolKind::Execute), &[], &input);
        assert_eq!(decided(&rules, &run).await.0, expected, "{input}");
    }
}

#[tokio::test]
async fn a_command_with_an_environment_is_not_simple() {
    let allowing = rules([Rule::allow().command("git status").unwrap()]);
    for (env, expected) in [
        (json!({}), "allow"),
        (json!([]), "allow"),
        (json!(null), "allow"),
        (json!({ "A": "1" }), "ask"),
        (json!([{ "name": "A", "value": "1" }]), "ask"),
        (json!("A=1"), "ask"),
        (json!(1), "ask"),
    ] {
        for member in ["env", "environment"] {
            let input = json!({ "command": "git", "args": ["status"], "cwd": "/home/me/project", member: env });
            let run = question(Some(ToolKind::Execute), &[], &input);
            assert_eq!(decided(&allowing, &run).await.0, expected, "{input}");
            // "Always" would forget the environment.
            let always = Rules::new().fallback(Picks("ever"));
            let (_, reason) = always.decide_with_reason(&run).await;
            let remembered = reason == Some(Reason::Remembered(None));
            assert_eq!(remembered, expected == "allow", "{input}");
        }
    }
    let denying = rules([Rule::deny().path("secrets/**").unwrap(), Rule::allow()]);
    let input = json!({ "command": "cat", "env": { "FILE": "secrets/key" } });
    let run = question(Some(ToolKind::Execute), &[], &input);
    assert_eq!(decided(&denying, &run).await.0, "deny");
}
