//! The table of docs/client.md: each effect under each policy, by who asks.

use super::*;

/// What the client serves: effect by policy.
#[tokio::test]
async fn the_client_serves_what_the_policy_allows() {
    // read file, read .env, write file, write .env, `touch tested`, `touch other`
    type Row = [bool; 6];
    async fn row(permissions: impl Permissions) -> Row {
        let mut case = Case::with(permissions).await;
        let done = [
            case.read("file").await.is_ok(),
            case.read(".env").await.is_ok(),
            case.write("file").await.is_ok(),
            case.write(".env").await.is_ok(),
            case.run(&["touch", "tested"]).await.is_ok(),
            case.run(&["touch", "other"]).await.is_ok(),
        ];
        for (name, ran) in [("tested", done[4]), ("other", done[5])] {
            assert_eq!(case.dir.path().join(name).exists(), ran, "{name}");
        }
        done
    }
    let (yes, no) = (true, false);
    assert_eq!(row(Policy::DenyAll).await, [no, no, no, no, no, no]);
    assert_eq!(row(Policy::ApproveReads).await, [yes, yes, no, no, no, no]);
    assert_eq!(row(Policy::ApproveAll).await, [yes; 6]);
    assert_eq!(row(no_secrets()).await, [yes, no, yes, no, yes, yes]);
    assert_eq!(row(only_tests()).await, [no, no, no, no, yes, no]);
    let person = Person::who(Decision::AllowOnce);
    assert_eq!(row(person.clone()).await, [yes; 6]);
    assert_eq!(person.asked().len(), 4, "reading asks nobody");
    let person = Person::who(Decision::Reject);
    assert_eq!(row(person.clone()).await, [yes, yes, no, no, no, no]);
    assert_eq!(person.asked().len(), 4);
}

/// The other columns of the table in docs/client.md: what the agent asks for, and what it does unasked.
#[tokio::test]
async fn what_the_agent_asks_for_or_does_unasked_is_decided_by_the_policy() {
    // asks to read, to read .env, to edit, to run `touch tested`, to run `touch other`; then has edited,
    // and has run `touch other`, unasked, and the turn goes on
    type Row = [bool; 7];
    async fn row(permissions: impl Permissions + Clone) -> Row {
        let mut case = Case::with(permissions.clone()).await;
        let read =
            |path: String| json!({"title": "Read", "kind": "read", "locations": [{"path": path}]});
        let calls = [
            read(case.path("file")),
            read(case.path(".env")),
            edit(&case.dir.path().join("file")),
            execute("touch tested"),
            execute("touch other"),
        ];
        let mut row = [false; 7];
        for (at, call) in calls.iter().enumerate() {
            row[at] = case.permission(&at.to_string(), call.clone()).await;
        }
        for (at, call) in [(5, &calls[2]), (6, &calls[4])] {
            let mut case = Case::with(permissions.clone()).await;
            case.report("unasked", call.clone()).await;
            let outcome = case.end("end_turn").await;
            row[at] = outcome.not_allowed.is_empty();
        }
        row
    }
    let (yes, no) = (true, false);
    assert_eq!(row(Policy::DenyAll).await, [no; 7]);
    assert_eq!(
        row(Policy::ApproveReads).await,
        [yes, yes, no, no, no, no, no]
    );
    assert_eq!(row(Policy::ApproveAll).await, [yes; 7]);
    assert_eq!(row(no_secrets()).await, [yes, no, yes, yes, yes, yes, yes]);
    assert_eq!(row(only_tests()).await, [no, no, no, yes, no, no, no]);
    let person = Person::who(Decision::AllowOnce);
    assert_eq!(row(person.clone()).await, [yes; 7]);
    assert_eq!(
        person.asked().len(),
        7,
        "the agent's questions are all shown"
    );
    let person = Person::who(Decision::Reject);
    assert_eq!(row(person.clone()).await, [no; 7]);
    assert_eq!(person.asked().len(), 7);
}
