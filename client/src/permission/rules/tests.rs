use acp_sdk::Json;
use acp_sdk::v1::{
    PermissionOption, RequestPermissionRequest, ToolCallLocation, ToolCallUpdate, ToolKind,
};
use serde_json::{Value, json};

use super::*;

mod always;
mod files;
mod information;
mod own_file;
#[cfg(unix)]
mod places;
mod unclear;

/// A question in a session in `/home/me/project`.
fn question(kind: Option<ToolKind>, locations: &[&str], input: &Value) -> PermissionRequest {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let option = |(id, kind): (&str, PermissionOptionKind)| PermissionOption::new(id, id, kind);
    let kinds = [
        ("reject", RejectOnce),
        ("never", RejectAlways),
        ("ever", AllowAlways),
        ("allow", AllowOnce),
    ];
    let locations = locations.iter().map(|&path| ToolCallLocation::new(path));
    let mut call = ToolCallUpdate::new("call").with_locations(locations.collect::<Vec<_>>());
    call.kind = kind;
    call.raw_input = Some(Json::new(input).unwrap());
    let options = kinds.into_iter().map(option).collect();
    let mut question = PermissionRequest::new(RequestPermissionRequest::new("s", call, options));
    question.cwd = Some("/home/me/project".into());
    question
}

fn edit(path: &str) -> PermissionRequest {
    question(Some(ToolKind::Edit), &[path], &Value::Null)
}

fn run(line: &str) -> PermissionRequest {
    question(Some(ToolKind::Execute), &[], &json!({ "command": line }))
}

/// Somebody who picks an option, and would notice not being asked.
struct Picks(&'static str);

impl Permissions for Picks {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        Decision::Option(self.0.into())
    }

    fn asks_person(&self) -> bool {
        true
    }
}

/// What became of a question: `allow`, `deny` or `ask`, and the number of the rule.
async fn decided(rules: &Rules, question: &PermissionRequest) -> (&'static str, usize) {
    let (decision, reason) = rules.decide_with_reason(question).await;
    let number = match &reason {
        Some(Reason::Rule(id) | Reason::Unclear(id)) => id.number,
        _ => 0,
    };
    let word = match decision {
        Decision::AllowOnce => "allow",
        Decision::Reject => "deny",
        Decision::Cancelled => "ask",
        other => panic!("{other:?}"),
    };
    (word, number)
}

struct Asked;

impl Permissions for Asked {
    async fn decide(&self, _: &PermissionRequest) -> Decision {
        Decision::Cancelled
    }

    fn asks_person(&self) -> bool {
        true
    }
}

fn rules(list: impl IntoIterator<Item = Rule>) -> Rules {
    list.into_iter()
        .fold(Rules::new(), Rules::rule)
        .fallback(Asked)
}

#[tokio::test]
async fn the_first_rule_that_matches_decides() {
    let rules = rules([
        Rule::deny().path("src/generated/**").unwrap(),
        Rule::allow().kind(ToolKind::Edit).path("src/**").unwrap(),
        Rule::deny().path("src/**").unwrap(),
        Rule::allow().command("cargo test **").unwrap(),
    ]);
    assert_eq!(
        decided(&rules, &edit("src/generated/a.rs")).await,
        ("deny", 1)
    );
    assert_eq!(decided(&rules, &edit("src/a.rs")).await, ("allow", 2));
    assert_eq!(
        decided(&rules, &edit("/home/me/project/src/a.rs")).await,
        ("allow", 2)
    );
    let delete = question(Some(ToolKind::Delete), &["src/a.rs"], &Value::Null);
    assert_eq!(decided(&rules, &delete).await, ("deny", 3));
    assert_eq!(decided(&rules, &edit("docs/a.md")).await, ("ask", 0));
    assert_eq!(decided(&rules, &run("cargo test -p x")).await, ("allow", 4));
    assert_eq!(decided(&rules, &run("cargo run")).await, ("ask", 0));
}

#[tokio::test]
async fn a_path_that_leaves_the_directory_is_not_allowed() {
    let rules = rules([Rule::allow().path("src/**").unwrap()]);
    for path in [
        "src/../../etc/passwd",
        "src/../../../../../etc/passwd",
        "/etc/passwd",
        "/home/me/project/src/../../../../etc/passwd",
        "src/~",
    ] {
        let expected = if path == "src/~" { "allow" } else { "ask" };
        assert_eq!(decided(&rules, &edit(path)).await.0, expected, "{path}");
    }
    // One of several.
    let both = question(
        Some(ToolKind::Edit),
        &["src/a", "/etc/passwd"],
        &Value::Null,
    );
    assert_eq!(decided(&rules, &both).await.0, "ask");
    let hidden = json!({ "file_path": "/etc/passwd" });
    let hidden = question(Some(ToolKind::Edit), &["src/a"], &hidden);
    assert_eq!(decided(&rules, &hidden).await.0, "ask");
    // None at all, and in a session of unknown directory.
    assert_eq!(
        decided(&rules, &question(Some(ToolKind::Edit), &[], &json!({})))
            .await
            .0,
        "ask"
    );
    let mut lost = edit("src/a");
    lost.cwd = None;
    assert_eq!(decided(&rules, &lost).await.0, "ask");
    // What a command does with a path is not known.
    let command = question(None, &["src/a"], &json!({ "command": "rm -rf / src/a" }));
    assert_eq!(decided(&rules, &command).await.0, "ask");
    let command = question(Some(ToolKind::Execute), &["src/a"], &json!({}));
    assert_eq!(decided(&rules, &command).await.0, "ask");
}

#[tokio::test]
async fn a_command_is_allowed_as_a_whole_and_where_the_session_is() {
    let rules = rules([Rule::allow().command("git status **").unwrap()]);
    let judge = async |input: Value| {
        let question = question(Some(ToolKind::Execute), &[], &input);
        decided(&rules, &question).await.0
    };
    for input in [
        json!({ "command": "git status" }),
        json!({ "command": ["git", "status"] }),
        json!({ "command": ["/bin/bash", "-lc", "git status -s"], "cwd": "/home/me/project/sub" }),
        json!({ "command": "git", "args": ["status"] }),
        json!({ "cmd": "git status", "workdir": "." }),
        json!({ "command": "git status", "cmd": ["git", "status"] }),
    ] {
        // Two members are one command only if they say the same in the same way.
        let expected = if input.get("cmd").is_some() && input.get("command").is_some() {
            "ask"
        } else {
            "allow"
        };
        assert_eq!(judge(input.clone()).await, expected, "{input}");
    }
    for input in [
        json!({ "command": "git status; rm -rf /" }),
        json!({ "command": "git status\nrm -rf /" }),
        json!({ "command": ["bash", "-c", "git status && rm -rf /"] }),
        json!({ "command": "git", "args": ["status", "$(rm -rf /)"] }),
        json!({ "command": "git status", "args": "; rm -rf /" }),
        json!({ "command": "git status", "script": "rm -rf /" }),
        json!({ "command": "git status", "cwd": "/tmp/evil" }),
        json!({ "command": "git status", "cwd": "../evil" }),
        json!({ "command": "git status", "cwd": "~" }),
        json!({ "command": ["git", "status", 1] }),
        json!({ "command": { "line": "git status" } }),
        json!("git status"),
        json!({}),
    ] {
        assert_eq!(judge(input.clone()).await, "ask", "{input}");
    }
}

#[tokio::test]
async fn what_may_be_denied_is_not_allowed_by_a_later_rule() {
    let rules = rules([
        Rule::deny().path("**/.env").unwrap(),
        Rule::deny().command("rm **").unwrap(),
        Rule::allow(),
    ]);
    assert_eq!(decided(&rules, &edit("a/.env")).await, ("deny", 1));
    assert_eq!(decided(&rules, &edit("a/b")).await, ("allow", 3));
    let search = question(Some(ToolKind::Search), &["a"], &json!({ "glob": "x/.env" }));
    assert_eq!(decided(&rules, &search).await, ("deny", 1));
    for line in ["cat .env", "cp --from=.env x", "bash -c 'cat ./a/.ENV'"] {
        assert_eq!(decided(&rules, &run(line)).await, ("deny", 1), "{line}");
    }
    for line in ["ls; rm x", "sudo rm x", "echo $(rm x)"] {
        assert_eq!(decided(&rules, &run(line)).await, ("deny", 2), "{line}");
    }
    // Nobody knows what these are.
    for line in ["cat .e*", "cat $FILE", "cat ~/x"] {
        assert_eq!(decided(&rules, &run(line)).await, ("ask", 1), "{line}");
    }
    let silent = question(Some(ToolKind::Read), &[], &json!({}));
    assert_eq!(decided(&rules, &silent).await, ("ask", 1));
    let silent = question(Some(ToolKind::Execute), &["a"], &json!({}));
    assert_eq!(decided(&rules, &silent).await, ("ask", 2));
    assert_eq!(decided(&rules, &edit("~/x")).await, ("ask", 1));
    let think = question(Some(ToolKind::Think), &[], &json!({}));
    assert_eq!(decided(&rules, &think).await, ("allow", 3));
    assert_eq!(decided(&rules, &run("ls src")).await, ("allow", 3));
}

#[tokio::test]
async fn a_directory_of_something_denied_is_not_allowed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("src/keys")).unwrap();
    let rules = rules([Rule::deny().path("src/keys/**").unwrap(), Rule::allow()]);
    let judge = async |kind, path: &str| {
        let mut question = question(Some(kind), &[path], &Value::Null);
        question.cwd = Some(dir.path().to_owned());
        decided(&rules, &question).await.0
    };
    assert_eq!(judge(ToolKind::Delete, "src/keys/x").await, "deny");
    assert_eq!(judge(ToolKind::Delete, "src").await, "ask");
    assert_eq!(judge(ToolKind::Move, ".").await, "ask");
    assert_eq!(judge(ToolKind::Delete, "src/other").await, "allow");
}

#[tokio::test]
async fn kinds_are_compared_and_none_may_be_any() {
    let rules = rules([Rule::deny().kind(ToolKind::Execute), Rule::allow()]);
    let of = |kind| question(kind, &["a"], &json!({}));
    assert_eq!(
        decided(&rules, &of(Some(ToolKind::Execute))).await,
        ("deny", 1)
    );
    assert_eq!(
        decided(&rules, &of(Some(ToolKind::Read))).await,
        ("allow", 2)
    );
    assert_eq!(decided(&rules, &of(None)).await, ("ask", 1));
    // A command is a command, whatever it is called.
    let disguised = question(Some(ToolKind::Read), &[], &json!({ "command": "ls" }));
    assert_eq!(decided(&rules, &disguised).await, ("deny", 1));
}

#[tokio::test]
async fn an_option_that_allows_for_ever_is_not_chosen_by_a_rule() {
    let rules = rules([Rule::allow()]);
    let mut question = edit("a");
    let options = &mut question.request.options;
    options.retain(|option| option.kind != PermissionOptionKind::AllowOnce);
    assert_eq!(decided(&rules, &question).await, ("ask", 0));
}

#[tokio::test]
async fn always_is_remembered_for_the_session() {
    let rules = Rules::new().fallback(Picks("ever"));
    for question in [run("cargo test 'a b*'"), edit("src/[a].rs")] {
        let (decision, reason) = rules.decide_with_reason(&question).await;
        assert_eq!(decision, Decision::Option("ever".into()));
        assert_eq!(reason, Some(Reason::Remembered(None)));
        let (decision, reason) = rules.decide_with_reason(&question).await;
        assert_eq!(decision, Decision::AllowOnce);
        let id = match reason {
            Some(Reason::Rule(id)) => id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id.source, RuleSource::Session);
        // The same in another session, and something similar, are asked again.
        let mut elsewhere = question.clone();
        elsewhere.request.session_id = "other".into();
        let (decision, _) = rules.decide_with_reason(&elsewhere).await;
        assert_eq!(decision, Decision::Option("ever".into()));
    }
    for question in [run("cargo test 'a bc'"), edit("src/a.rs")] {
        let (decision, _) = rules.decide_with_reason(&question).await;
        assert_eq!(decision, Decision::Option("ever".into()));
    }
    let (_, reason) = rules.decide_with_reason(&run("a; b")).await;
    assert!(
        matches!(reason, Some(Reason::NotRemembered(_))),
        "{reason:?}"
    );

    let rules = Rules::new().fallback(Picks("never"));
    rules.decide_with_reason(&run("cargo publish")).await;
    let (decision, reason) = rules.decide_with_reason(&run("cd x; cargo publish")).await;
    assert_eq!(decision, Decision::Reject);
    assert_eq!(reason.unwrap().to_string(), "rule 1 of this session");
}

#[tokio::test]
async fn once_is_not_remembered_and_neither_is_always_if_so_wanted() {
    let rules = Rules::new().fallback(Picks("allow"));
    for _ in 0..2 {
        let (_, reason) = rules.decide_with_reason(&edit("a")).await;
        assert_eq!(reason, None);
    }
    let rules = Rules::new().fallback(Picks("ever")).remember(Remember::No);
    for _ in 0..2 {
        let (_, reason) = rules.decide_with_reason(&edit("a")).await;
        assert_eq!(reason, None);
    }
}
