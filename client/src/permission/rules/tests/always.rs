//! "Always" remembers exactly the call that the user saw.

use super::*;

/// Answers with "always", and returns the reason and the decision about another call.
async fn then(seen: &PermissionRequest, other: &PermissionRequest) -> (Reason, Decision) {
    let rules = Rules::new().fallback(Picks("ever"));
    let (_, reason) = rules.decide_with_reason(seen).await;
    (reason.unwrap(), rules.decide(other).await)
}

#[tokio::test]
async fn a_call_without_a_kind_is_not_remembered() {
    let seen = question(None, &["src/a"], &Value::Null);
    let delete = question(Some(ToolKind::Delete), &["src/a"], &Value::Null);
    let (reason, decision) = then(&seen, &delete).await;
    assert_eq!(decision, Decision::Option("ever".into()));
    assert!(
        reason.to_string().contains("the call has no kind"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_command_with_paths_is_remembered_with_them() {
    let create = |path: &str| {
        let input = json!({ "command": "create", "path": path });
        question(Some(ToolKind::Edit), &[], &input)
    };
    let (reason, decision) = then(&create("src/a"), &create("src/a")).await;
    assert_eq!(reason, Reason::Remembered(None));
    assert_eq!(decision, Decision::AllowOnce);
    let (_, decision) = then(&create("src/a"), &create("/etc/passwd")).await;
    assert_eq!(decision, Decision::Option("ever".into()));
    let (reason, _) = then(&create("~/a"), &create("~/a")).await;
    assert!(matches!(reason, Reason::NotRemembered(_)), "{reason}");
}
#[tokio::test]
async fn what_a_rule_may_deny_is_not_remembered() {
    let rules = Rules::new().rule(Rule::deny().path("**/.env").unwrap());
    let rules = rules.fallback(Picks("ever"));
    let search = question(Some(ToolKind::Search), &["src"], &Value::Null);
    let (decision, reason) = rules.decide_with_reason(&search).await;
    assert_eq!(decision, Decision::Option("ever".into()));
    let reason = reason.unwrap().to_string();
    assert!(
        reason.contains("not remembered") && reason.contains("rule 1"),
        "{reason}"
    );
}
