//! Rules in files.

use super::*;

#[tokio::test]
async fn always_is_remembered_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    let text = "# Mine.\nremember = \"file\"\n\n[[rule]] # none\neffect = \"deny\"\npath = \"x\"";
    std::fs::write(&path, text).unwrap();
    let rules = Rules::read(&path).unwrap().fallback(Picks("ever"));
    for _ in 0..2 {
        let _ = rules.decide_with_reason(&run("echo 'a\"b'")).await;
    }
    let (_, reason) = rules.decide_with_reason(&edit("src/a*b")).await;
    assert_eq!(reason, Some(Reason::Remembered(Some(path.clone()))));
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.starts_with(text), "{written}");
    assert_eq!(written.matches("[[rule]]").count(), 3, "{written}");
    // Another process, later.
    let rules = Rules::read(&path).unwrap().fallback(Asked);
    assert_eq!(decided(&rules, &run("echo 'a\"b'")).await, ("allow", 2));
    assert_eq!(decided(&rules, &edit("src/a*b")).await, ("allow", 3));
    assert_eq!(decided(&rules, &edit("src/axb")).await, ("ask", 0));
}

#[tokio::test]
async fn a_file_that_cannot_be_added_to_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    let text = "remember = \"file\"\nrule = [{ effect = \"deny\", path = \"x\" }]\n";
    std::fs::write(&path, text).unwrap();
    let rules = Rules::read(&path).unwrap().fallback(Picks("ever"));
    let (decision, reason) = rules.decide_with_reason(&edit("a")).await;
    assert_eq!(decision, Decision::Option("ever".into()));
    assert!(matches!(reason, Some(Reason::NotInFile(_))), "{reason:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    // It is remembered all the same, for the session.
    assert_eq!(rules.decide(&edit("a")).await, Decision::AllowOnce);
}

#[test]
fn several_that_add_rules_lose_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    std::fs::write(&path, "").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for number in 0..10 {
                    let rule = Rule::allow().command(&format!("x {thread} {number}"));
                    file::add(path, &rule.unwrap()).unwrap();
                }
            });
        }
    });
    let rules = file::read(&path).unwrap().rules;
    assert_eq!(rules.len(), 40);
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_mode_and_its_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("rules.toml"), dir.path().join("link"));
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    file::add(&link, &Rule::deny().kind(ToolKind::Fetch)).unwrap();
    assert!(link.is_symlink());
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(file::read(&path).unwrap().rules.len(), 1);
}

#[test]
fn mistakes_in_a_file_are_errors_that_say_where() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    let error = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let error = Rules::read(&path).unwrap_err().to_string();
        assert!(error.contains("rules.toml"), "{error}");
        error
    };
    let rule = "[[rule]]\neffect = \"deny\"\n";
    for (text, part) in [
        ("rule = 1".to_owned(), "line 1"),
        ("[[rule]]\neffect = \"alow\"".to_owned(), "line 2"),
        (
            "[[rule]]\nkind = \"edit\"".to_owned(),
            "missing field `effect`",
        ),
        (format!("{rule}kinds = \"edit\""), "unknown field `kinds`"),
        (
            format!("{rule}kind = \"exceute\""),
            "rule 1: unknown kind `exceute`",
        ),
        (
            format!("{rule}\n{rule}path = \"../x\""),
            "rule 2: invalid pattern `../x`",
        ),
        (format!("{rule}path = []"), "at least one value in `path`"),
        (format!("{rule}command = []"), "expected a program"),
        ("remember = \"ever\"".to_owned(), "line 1"),
    ] {
        let error = error(&text);
        assert!(error.contains(part), "{error}");
    }
    assert!(error(&"#".repeat(2 << 20)).contains("more than"));
    assert!(
        Rules::read(dir.path())
            .unwrap_err()
            .to_string()
            .contains("not a regular file")
    );
}

/// The example in the documentation does what is said there.
#[tokio::test]
async fn the_documented_example_is_true() {
    let guide = include_str!("../../../../../docs/permissions.md");
    let (_, example) = guide.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    std::fs::write(&path, example).unwrap();
    let rules = Rules::read(&path).unwrap().fallback(Asked);
    assert_eq!(rules.remember, Remember::File);
    assert_eq!(decided(&rules, &edit("src/.env")).await, ("deny", 1));
    assert_eq!(
        decided(&rules, &run("ls && sudo reboot")).await,
        ("deny", 2)
    );
    assert_eq!(decided(&rules, &run("git push -f")).await, ("deny", 3));
    assert_eq!(decided(&rules, &edit("src/a.rs")).await, ("allow", 4));
    assert_eq!(
        decided(&rules, &edit("src/../Cargo.toml")).await,
        ("ask", 0)
    );
    assert_eq!(decided(&rules, &run("cargo test -p x")).await, ("allow", 5));
    assert_eq!(decided(&rules, &run("git diff")).await, ("allow", 6));
    assert_eq!(decided(&rules, &run("git diff > x")).await, ("ask", 0));
    let search = question(Some(ToolKind::Search), &[], &json!({ "pattern": "KEY" }));
    assert_eq!(decided(&rules, &search).await, ("ask", 1));
    let read = question(Some(ToolKind::Read), &["/home/me/x"], &Value::Null);
    assert_eq!(decided(&rules, &read).await, ("allow", 7));
}
