//! Requests with too little information for a rule that denies.

use super::*;
use crate::permission::Ask;

/// A call that the rule `deny path="**/.env"` may deny: its path is ambiguous.
fn may_be_denied(kind: ToolKind) -> PermissionRequest {
    question(Some(kind), &["$FILE"], &Value::Null)
}

fn secrets() -> Rules {
    Rules::new().rule(Rule::deny().path("**/.env").unwrap())
}

#[tokio::test]
async fn only_a_person_allows_an_unclear_denial() {
    for policy in [Policy::ApproveAll, Policy::ApproveReads, Policy::DenyAll] {
        let rules = secrets().fallback(policy);
        for kind in [ToolKind::Read, ToolKind::Edit] {
            let (decision, reason) = rules.decide_with_reason(&may_be_denied(kind)).await;
            assert_eq!(decision, Decision::Reject, "{policy:?}");
            let reason = reason.unwrap().to_string();
            assert!(reason.contains("too little information"), "{reason}");
        }
    }
    let clear = secrets().fallback(Policy::ApproveAll);
    assert_eq!(clear.decide(&edit("a")).await, Decision::Allow);
    // Rules that are the fallback of rules have its fallback.
    let nested = secrets().fallback(Rules::new().fallback(Policy::ApproveAll));
    let decision = nested.decide(&may_be_denied(ToolKind::Edit)).await;
    assert_eq!(decision, Decision::Reject);
    let nested = secrets().fallback(Rules::new().fallback(Asked));
    let decision = nested.decide(&may_be_denied(ToolKind::Edit)).await;
    assert_eq!(decision, Decision::Cancelled);
}

#[tokio::test]
async fn a_person_is_asked_although_reads_are_approved() {
    let ask = || Ask::new("no\n".as_bytes(), std::io::sink()).approve_reads();
    let read = question(Some(ToolKind::Read), &["a"], &Value::Null);
    let rules = secrets().fallback(ask());
    assert_eq!(rules.decide(&read).await, Decision::AllowOnce);
    let unclear = may_be_denied(ToolKind::Read);
    assert_eq!(rules.decide(&unclear).await, Decision::Reject);
}
