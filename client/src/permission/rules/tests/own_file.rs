//! The file of the rules, which a call must not change.

use super::*;

/// A project with a rule file that allows everything, and a link to it.
struct Project {
    dir: tempfile::TempDir,
    rules: Rules,
}

impl Project {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("conf");
        std::fs::create_dir(&conf).unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        let path = conf.join("rules.toml");
        std::fs::write(&path, "[[rule]]\neffect = \"allow\"\n").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&path, dir.path().join("src/link")).unwrap();
        let rules = Rules::read(&path).unwrap().fallback(Policy::ApproveAll);
        Self { dir, rules }
    }

    async fn judge(&self, mut question: PermissionRequest) -> (Decision, String) {
        question.cwd = Some(self.dir.path().to_owned());
        let (decision, reason) = self.rules.decide_with_reason(&question).await;
        (
            decision,
            reason.map(|reason| reason.to_string()).unwrap_or_default(),
        )
    }
}

#[tokio::test]
async fn no_rule_and_no_policy_allows_a_change_of_the_rules() {
    let project = Project::new();
    let absolute = project.dir.path().canonicalize().unwrap();
    let absolute = absolute.join("conf/rules.toml");
    for path in [
        "conf/rules.toml",
        "src/../conf/rules.toml",
        "conf/RULES.toml",
        "conf/rules.toml.lock",
        absolute.to_str().unwrap(),
        if cfg!(unix) {
            "src/link"
        } else {
            "conf/rules.toml"
        },
    ] {
        for kind in [
            Some(ToolKind::Edit),
            Some(ToolKind::Other),
            Some(ToolKind::Read),
            None,
        ] {
            let (decision, reason) = project.judge(question(kind, &[path], &Value::Null)).await;
            assert_eq!(decision, Decision::Reject, "{path}");
            assert!(reason.contains("may change the rules in"), "{reason}");
        }
        let hidden = question(Some(ToolKind::Edit), &["a"], &json!({ "to": path }));
        assert_eq!(project.judge(hidden).await.0, Decision::Reject, "{path}");
    }
    let run = run("echo x > conf/rules.toml");
    assert_eq!(project.judge(run).await.0, Decision::Reject);
}

#[tokio::test]
async fn a_call_that_may_change_the_rules_is_not_allowed_unseen() {
    let project = Project::new();
    for (kind, path) in [
        (ToolKind::Delete, "conf"),
        (ToolKind::Move, "."),
        (ToolKind::Edit, "~/x"),
        (ToolKind::Edit, "conf/*.toml"),
        (ToolKind::Other, "conf"),
    ] {
        let input = json!({ "path": path });
        let (decision, reason) = project.judge(question(Some(kind), &[], &input)).await;
        assert_eq!(decision, Decision::Reject, "{path}");
        assert!(reason.contains("may change the rules in"), "{reason}");
    }
    let silent = question(Some(ToolKind::Edit), &[], &json!({}));
    assert_eq!(project.judge(silent).await.0, Decision::Reject);
}

#[tokio::test]
async fn the_file_hinders_nothing_else() {
    let project = Project::new();
    for other in [
        edit("src/a"),
        edit("conf/rules2.toml"),
        question(Some(ToolKind::Delete), &["src"], &Value::Null),
        question(Some(ToolKind::Read), &["conf"], &Value::Null),
        question(Some(ToolKind::Read), &["~/x"], &Value::Null),
        question(Some(ToolKind::Search), &[], &json!({ "pattern": "x" })),
        question(Some(ToolKind::Other), &[], &json!({ "query": "x" })),
        question(None, &[], &json!({})),
        run("git show HEAD~1"),
    ] {
        let (decision, reason) = project.judge(other.clone()).await;
        assert_eq!(decision, Decision::AllowOnce, "{other:?}: {reason}");
    }
}

#[test]
fn a_file_inside_of_a_directory_is_found() {
    let project = Project::new();
    let dir = project.dir.path();
    let file = project.rules.file_inside(dir).unwrap();
    assert!(file.ends_with("conf/rules.toml"));
    assert!(project.rules.file_inside(dir.join("conf")).is_some());
    assert!(project.rules.file_inside(dir.join("src/../conf")).is_some());
    assert_eq!(project.rules.file_inside(dir.join("src")), None);
    assert_eq!(Rules::new().file_inside(dir), None);
    #[cfg(unix)]
    {
        // Who can replace the link replaces the rules.
        let rules = Rules::read(dir.join("src/link")).unwrap();
        assert!(rules.file_inside(dir.join("src")).is_some());
        assert!(rules.file_inside(dir.join("conf")).is_some());
    }
}
